// SPDX-License-Identifier: GPL-2.0
/*
 * DMA table: bus address -> (file, offset).
 *
 * Each memory file is mapped into the process once, whole, however many ranges
 * name it: with an emulated IOMMU a client sends one map per 4 KiB page, and a
 * mapping for each would hit the kernel's limit at 256 MiB. A range stores an
 * offset and no pointer, so a file may move when it grows, and its mapping
 * goes with the last range.
 *
 * Single-threaded, like everything that uses it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "dma.h"

/* More than any guest has, and small enough that one file cannot use up the process. */
#define FILE_SIZE_MAX	(1ull << 44)

/**
 * struct dma_file - a memory file mapped into this process
 * @next: list of all
 * @dev: with @ino, which file it is; stable while it is mapped
 * @ino: see @dev
 * @base: where it is mapped
 * @size: how much of it is mapped, from offset 0
 * @writable: mapped for writing as well
 * @refs: ranges that use it
 * @broken: the owner cut it while it was in use: no access any more
 */
struct dma_file {
	struct dma_file *next;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
	size_t size;
	bool writable;
	unsigned int refs;
	volatile sig_atomic_t broken;
};

struct dma_range {
	uint64_t first;
	uint64_t last;
	struct dma_file *file;
	uint64_t offset;
	unsigned int prot;
};

/* Of the process, not of a table: two functions of one guest share its memory file. */
static struct dma_file *files;

/*
 * The owner of a file can cut it under our mapping, and an access then raises
 * SIGBUS. One hostile client must not end the service of the others: put empty
 * memory in place of the file, mark it, and let the access finish there. The
 * accessor sees the mark afterwards and reports a fault.
 *
 * The signal is synchronous, raised by the copy itself, so the list is whole.
 */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uint8_t *addr = info->si_addr;
	void *repl;

	(void)context;
	for (struct dma_file *file = files; file; file = file->next) {
		if (addr < file->base || addr >= file->base + file->size)
			continue;
		repl = mmap(file->base, file->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		if (repl == MAP_FAILED)
			break;
		file->broken = 1;
		return;
	}
	/* Not ours: the access comes again and ends the process as it should. */
	signal(sig, SIG_DFL);
}

void dmatab_init(struct dma_table *tab)
{
	struct sigaction sa = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	memset(tab, 0, sizeof(*tab));
	sigaction(SIGBUS, &sa, NULL);
}

unsigned int dmatab_files(void)
{
	unsigned int n = 0;

	for (struct dma_file *file = files; file; file = file->next)
		n++;
	return n;
}

/* Ranges that overlap compare equal, so a search finds any that touches the key. */
static int range_cmp(const void *a, const void *b)
{
	const struct dma_range *ra = a, *rb = b;

	if (ra->last < rb->first)
		return -1;
	return ra->first > rb->last;
}

static struct dma_range *range_find(const struct dma_table *tab, uint64_t first, uint64_t last)
{
	struct dma_range key = { .first = first, .last = last };
	void *node = tfind(&key, &tab->root, range_cmp);

	return node ? *(struct dma_range **)node : NULL;
}

static int range_insert(struct dma_table *tab, const struct dma_range *val)
{
	struct dma_range *range;

	if (tab->count == DMA_MAX_RANGES)
		return -ENOSPC;
	range = malloc(sizeof(*range));
	if (!range)
		return -ENOMEM;
	*range = *val;
	if (!tsearch(range, &tab->root, range_cmp)) {
		free(range);
		return -ENOMEM;
	}
	tab->count++;
	if (range->file)
		range->file->refs++;
	return 0;
}

static void file_put(struct dma_file *file)
{
	if (--file->refs)
		return;
	for (struct dma_file **link = &files; *link; link = &(*link)->next) {
		if (*link == file) {
			*link = file->next;
			break;
		}
	}
	munmap(file->base, file->size);
	free(file);
}

static void range_remove(struct dma_table *tab, struct dma_range *range)
{
	tdelete(range, &tab->root, range_cmp);
	tab->count--;
	tab->last = NULL;
	if (range->file)
		file_put(range->file);
	free(range);
}

/*
 * What the descriptor is, apart from being open: memory, and how much of it.
 *
 * A page fault on a disk, network or user space file system could stop the one thread
 * that serves everybody, for as long as its owner likes, and so can already the question
 * how large a file is. F_GET_SEALS asks no file system: the kernel answers it for tmpfs,
 * which is what a memfd is, and for hugetlbfs, and for no other.
 */
static int file_check(int fd, unsigned int prot, struct stat *st)
{
	int mode = fcntl(fd, F_GETFL);

	if (mode < 0)
		return -errno;
	if (fcntl(fd, F_GET_SEALS) < 0)
		return -EMEDIUMTYPE;
	if (fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EMEDIUMTYPE;
	if ((mode & O_ACCMODE) == O_WRONLY)
		return -EACCES;
	if ((prot & DMA_PROT_WRITE) && (mode & O_ACCMODE) != O_RDWR)
		return -EACCES;
	if (st->st_size <= 0)
		return -ERANGE;
	if ((uint64_t)st->st_size > FILE_SIZE_MAX)
		return -EFBIG;
	return 0;
}

/* Map @file anew, if it is not mapped yet, has grown or now needs writing. */
static int file_remap(struct dma_file *file, int fd, size_t size, bool writable)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *base = mmap(NULL, size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	if (file->base)
		munmap(file->base, file->size);
	file->base = base;
	file->size = size;
	file->writable = writable;
	return 0;
}

/* The mapped file behind @fd, with at least @end bytes; no reference is taken yet. */
static int file_get(int fd, uint64_t end, unsigned int prot, struct dma_file **res)
{
	struct dma_file *file;
	struct stat st;
	bool writable;
	size_t size;
	int err = file_check(fd, prot, &st);

	if (err)
		return err;
	if (end > (uint64_t)st.st_size)
		return -ERANGE;

	for (file = files; file; file = file->next) {
		if (file->dev == st.st_dev && file->ino == st.st_ino)
			break;
	}
	if (file && file->broken)
		return -EFAULT;
	if (file && end <= file->size && (file->writable || !(prot & DMA_PROT_WRITE))) {
		*res = file;
		return 0;
	}

	writable = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	if (file) {
		/* Never smaller than before: other ranges rely on what is mapped. */
		size = (uint64_t)st.st_size > file->size ? (size_t)st.st_size : file->size;
		*res = file;
		return file_remap(file, fd, size, writable);
	}

	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	err = file_remap(file, fd, st.st_size, writable);
	if (err) {
		free(file);
		return err;
	}
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->next = files;
	files = file;
	*res = file;
	return 0;
}

int dmatab_map(struct dma_table *tab, uint64_t iova, uint64_t size, unsigned int prot, int fd,
	       uint64_t offset)
{
	struct dma_range range = {
		.first = iova,
		.last = iova + size - 1,
		.offset = offset,
		.prot = prot,
	};
	int err;

	if (!size || range.last < iova || (iova | size | offset) % DMA_PAGE_SIZE)
		return -EINVAL;
	if (range_find(tab, range.first, range.last))
		return -EEXIST;
	if (fd < 0) {
		range.prot = 0;
		return range_insert(tab, &range);
	}
	if (offset + size < offset)
		return -ERANGE;

	err = file_get(fd, offset + size, prot, &range.file);
	if (err)
		return err;
	/* Hold the file meanwhile: a failed insert must not leave it mapped for nobody. */
	range.file->refs++;
	err = range_insert(tab, &range);
	file_put(range.file);
	return err;
}

int dmatab_unmap(struct dma_table *tab, uint64_t iova, uint64_t size)
{
	uint64_t first = iova, last = iova + size - 1;
	struct dma_range *range, tail;
	int err = 0;

	if (!size || last < first)
		return -EINVAL;

	/* Shrinking in place keeps the order of the tree: nothing lies between. */
	while ((range = range_find(tab, first, last))) {
		if (range->first >= first && range->last <= last) {
			range_remove(tab, range);
			continue;
		}
		tail = *range;
		tail.offset += last + 1 - range->first;
		tail.first = last + 1;
		if (range->first >= first) {
			*range = tail;
			continue;
		}
		range->last = first - 1;
		/* Out of memory loses the tail too: less access, never more. */
		if (tail.last > last)
			err = range_insert(tab, &tail);
	}
	return err;
}

static void range_free(void *ptr)
{
	struct dma_range *range = ptr;

	if (range->file)
		file_put(range->file);
	free(range);
}

void dmatab_unmap_all(struct dma_table *tab)
{
	tdestroy(tab->root, range_free);
	tab->root = NULL;
	tab->count = 0;
	tab->last = NULL;
}

/* The range that holds @iova and allows @prot. */
static struct dma_range *range_at(struct dma_table *tab, uint64_t iova, unsigned int prot)
{
	struct dma_range *range = tab->last;

	if (!range || iova < range->first || iova > range->last) {
		range = range_find(tab, iova, iova);
		if (!range)
			return NULL;
		tab->last = range;
	}
	if ((range->prot & prot) != prot || range->file->broken)
		return NULL;
	return range;
}

/* Bytes from @iova to the end of its range, at most @len. */
static size_t range_piece(const struct dma_range *range, uint64_t iova, size_t len)
{
	uint64_t left = range->last - iova;

	return left >= len - 1 ? len : left + 1;
}

static uint8_t *range_ptr(const struct dma_range *range, uint64_t iova)
{
	return range->file->base + range->offset + (iova - range->first);
}

static bool span_ok(struct dma_table *tab, uint64_t iova, size_t len, unsigned int prot)
{
	struct dma_range *range;
	size_t n;

	if (iova + len - 1 < iova)
		return false;
	for (; len; iova += n, len -= n) {
		range = range_at(tab, iova, prot);
		if (!range)
			return false;
		n = range_piece(range, iova, len);
	}
	return true;
}

/*
 * Natural words go as one access; anything longer is ordered as a whole after
 * the writes before it, which is what a posted write promises.
 */
static void copy_to_guest(void *dst, const void *src, size_t len)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	if (len <= 8 && !((uintptr_t)dst % len)) {
		switch (len) {
		case 8:
			memcpy(&v64, src, 8);
			__atomic_store_n((uint64_t *)dst, v64, __ATOMIC_RELEASE);
			return;
		case 4:
			memcpy(&v32, src, 4);
			__atomic_store_n((uint32_t *)dst, v32, __ATOMIC_RELEASE);
			return;
		case 2:
			memcpy(&v16, src, 2);
			__atomic_store_n((uint16_t *)dst, v16, __ATOMIC_RELEASE);
			return;
		case 1:
			__atomic_store_n((uint8_t *)dst, *(const uint8_t *)src, __ATOMIC_RELEASE);
			return;
		}
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(dst, src, len);
}

/* Words as above; what is read later is not older than what is read here. */
static void copy_from_guest(void *dst, const void *src, size_t len)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	if (len <= 8 && !((uintptr_t)src % len)) {
		switch (len) {
		case 8:
			v64 = __atomic_load_n((const uint64_t *)src, __ATOMIC_ACQUIRE);
			memcpy(dst, &v64, 8);
			return;
		case 4:
			v32 = __atomic_load_n((const uint32_t *)src, __ATOMIC_ACQUIRE);
			memcpy(dst, &v32, 4);
			return;
		case 2:
			v16 = __atomic_load_n((const uint16_t *)src, __ATOMIC_ACQUIRE);
			memcpy(dst, &v16, 2);
			return;
		case 1:
			*(uint8_t *)dst = __atomic_load_n((const uint8_t *)src, __ATOMIC_ACQUIRE);
			return;
		}
	}
	memcpy(dst, src, len);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

int dmatab_read(struct dma_table *tab, uint64_t iova, void *buf, size_t len)
{
	struct dma_range *range;
	uint8_t *dst = buf;
	size_t n;

	if (iova + len - 1 < iova && len)
		return -EFAULT;
	for (; len; iova += n, dst += n, len -= n) {
		range = range_at(tab, iova, DMA_PROT_READ);
		if (!range)
			return -EFAULT;
		n = range_piece(range, iova, len);
		copy_from_guest(dst, range_ptr(range, iova), n);
		if (range->file->broken)
			return -EFAULT;
	}
	return 0;
}

int dmatab_write(struct dma_table *tab, uint64_t iova, const void *buf, size_t len)
{
	struct dma_range *range;
	const uint8_t *src = buf;
	size_t n;

	if (len && !span_ok(tab, iova, len, DMA_PROT_WRITE))
		return -EFAULT;
	for (; len; iova += n, src += n, len -= n) {
		range = range_at(tab, iova, DMA_PROT_WRITE);
		if (!range)
			return -EFAULT;
		n = range_piece(range, iova, len);
		copy_to_guest(range_ptr(range, iova), src, n);
		if (range->file->broken)
			return -EFAULT;
	}
	return 0;
}
