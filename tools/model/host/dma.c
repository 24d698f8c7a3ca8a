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
 * A table is used by one thread, and the mapped files belong to that thread: for two functions
 * of a guest in two threads the guest's memory is mapped twice. A helper does what can take
 * long: it unmaps a file without other users, which frees its pages, and frees the nodes of a
 * large tree.
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

#define FILE_HASH	1024

/* Bytes unmapped in one call, during which page faults of other threads wait. */
#define UNMAP_PIECE	(16ull << 20)

/* Ranges removed in one call; larger trees are freed by the helper. */
#define UNMAP_BATCH	512

/**
 * struct dma_file - a memory file mapped into this process
 * @job: to unmap it
 * @next: in its hash chain
 * @dev: with @ino, which file it is; stable while it is mapped
 * @ino: see @dev
 * @base: address of the mapping
 * @size: mapped bytes, from offset 0
 * @writable: mapped for reading and writing
 * @refs: number of tables that use it, and of calls that hold a reference
 * @broken: the owner has truncated it while it was in use: it is not accessed any more
 */
struct dma_file {
	struct closer_job job;
	struct dma_file *next;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
	size_t size;
	bool writable;
	unsigned int refs;
	volatile sig_atomic_t broken;
};

/**
 * struct dma_use - a file that a table uses
 * @next: in the table's hash chain
 * @file: the file
 * @ranges: ranges of the table in it
 */
struct dma_use {
	struct dma_use *next;
	struct dma_file *file;
	unsigned int ranges;
};

/* @use is NULL if the range is not accessible. */
struct dma_range {
	uint64_t first;
	uint64_t last;
	struct dma_file *file;
	struct dma_use *use;
	uint64_t offset;
	unsigned int prot;
};

/* The nodes of a tree that was removed as a whole. */
struct dma_tree {
	struct closer_job job;
	void *root;
};

/* Number of files that were truncated while they were in use. */
static _Thread_local volatile sig_atomic_t cuts;

/* Per thread and not per table: functions of one guest share its memory file. */
static _Thread_local struct dma_file *files[FILE_HASH];

static struct dma_file **file_chain(dev_t dev, ino_t ino)
{
	return &files[((uint64_t)ino * 0x9e3779b97f4a7c15ull ^ dev) >> 32 & (FILE_HASH - 1)];
}

static struct dma_file *file_at(const uint8_t *addr)
{
	for (unsigned int i = 0; i < FILE_HASH; i++) {
		for (struct dma_file *file = files[i]; file; file = file->next) {
			if (addr >= file->base && addr < file->base + file->size)
				return file;
		}
	}
	return NULL;
}

/*
 * The owner of a file can truncate it while it is mapped, and an access then raises SIGBUS. That
 * must not end the service of other clients: the handler maps empty memory in place of the file
 * and marks it, and the access is completed there. The accessor sees the mark and reports a
 * fault.
 *
 * The signal is raised synchronously by the copy, so the hash is consistent, and it is that of
 * the thread that copies.
 */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	struct dma_file *file = file_at(info->si_addr);
	void *repl;

	(void)context;
	if (file) {
		repl = mmap(file->base, file->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		if (repl != MAP_FAILED) {
			file->broken = 1;
			cuts = cuts + 1;
			return;
		}
	}
	/* Not in a mapped file: the access is repeated, and its signal ends the process. */
	signal(sig, SIG_DFL);
}

void dmatab_init(struct dma_table *tab, struct closer *closer)
{
	struct sigaction sa = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	memset(tab, 0, sizeof(*tab));
	tab->closer = closer;
	sigaction(SIGBUS, &sa, NULL);
}

unsigned int dmatab_files(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < FILE_HASH; i++)
		for (struct dma_file *file = files[i]; file; file = file->next)
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
	if (range->use)
		range->use->ranges++;
	return 0;
}

/* In pieces, so that other threads do not wait for all of it. Huge pages are not split. */
static void unmap(uint8_t *base, size_t size)
{
	while (size > UNMAP_PIECE && !munmap(base, UNMAP_PIECE)) {
		base += UNMAP_PIECE;
		size -= UNMAP_PIECE;
	}
	munmap(base, size);
}

static void file_unmap(struct closer_job *job)
{
	struct dma_file *file = (struct dma_file *)job;

	unmap(file->base, file->size);
	free(file);
}

static void file_put(struct dma_table *tab, struct dma_file *file)
{
	struct dma_file **link = file_chain(file->dev, file->ino);

	if (--file->refs)
		return;
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	file->job.fn = file_unmap;
	file->job.bytes = file->size;
	closer_run(tab->closer, &file->job);
}

static struct dma_use **use_chain(struct dma_table *tab, const struct dma_file *file)
{
	return &tab->use[(uintptr_t)file / sizeof(*file) % DMA_USE_HASH];
}

/* The table's use of a file, made if there is none. NULL without memory. */
static struct dma_use *use_get(struct dma_table *tab, struct dma_file *file)
{
	struct dma_use **link = use_chain(tab, file), *use;

	for (use = *link; use; use = use->next) {
		if (use->file == file)
			return use;
	}
	use = calloc(1, sizeof(*use));
	if (!use)
		return NULL;
	use->file = file;
	file->refs++;
	use->next = *link;
	*link = use;
	tab->num_files++;
	return use;
}

static bool table_uses(struct dma_table *tab, const struct dma_file *file)
{
	for (struct dma_use *use = *use_chain(tab, file); use; use = use->next) {
		if (use->file == file)
			return true;
	}
	return false;
}

static void use_put(struct dma_table *tab, struct dma_use *use)
{
	struct dma_use **link = use_chain(tab, use->file);

	if (use->ranges)
		return;
	while (*link != use)
		link = &(*link)->next;
	*link = use->next;
	tab->num_files--;
	file_put(tab, use->file);
	free(use);
}

static void range_remove(struct dma_table *tab, struct dma_range *range)
{
	tdelete(range, &tab->root, range_cmp);
	tab->count--;
	tab->last = NULL;
	if (range->use) {
		range->use->ranges--;
		use_put(tab, range->use);
	}
	free(range);
}

/*
 * Check that the descriptor is memory, and get its size.
 *
 * A page fault on a disk, network or user space file system can block the thread for any time,
 * and so can fstat() there. F_GET_SEALS does not call the file system: the kernel answers it for
 * tmpfs (which includes memfd) and hugetlbfs only.
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
	if ((uint64_t)st->st_size > DMA_MAX_BYTES)
		return -EFBIG;
	return 0;
}

/*
 * May the table map @size bytes of a file, of which it has mapped @had already? Released files
 * count until the helper has unmapped them.
 */
static int quota_check(const struct dma_table *tab, bool new_file, uint64_t size, uint64_t had)
{
	unsigned int files = tab->num_files + new_file, going;
	uint64_t bytes = size - had;
	size_t more;

	for (unsigned int i = 0; i < DMA_USE_HASH; i++)
		for (struct dma_use *use = tab->use[i]; use; use = use->next)
			bytes += use->file->size;
	if (files > DMA_MAX_FILES || bytes > DMA_MAX_BYTES)
		return -ENOSPC;
	going = closer_jobs(tab->closer, &more);
	if (files + going > DMA_MAX_FILES || bytes + more > DMA_MAX_BYTES)
		return closer_stuck(tab->closer) ? -ENOSPC : -EAGAIN;
	return 0;
}

/* Map @file anew, if it is not mapped yet, has grown or now needs writing. */
static int file_remap(struct dma_table *tab, struct dma_file *file, int fd, size_t size,
		      bool writable)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	struct dma_file *old = file->base ? calloc(1, sizeof(*old)) : NULL;
	void *base;
	int err;

	if (file->base && !old)
		return -ENOMEM;
	base = mmap(NULL, size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		err = -errno;
		free(old);
		return err;
	}
	if (old) {
		old->base = file->base;
		old->size = file->size;
		old->job.fn = file_unmap;
		old->job.bytes = file->size;
		closer_run(tab->closer, &old->job);
	}
	file->base = base;
	file->size = size;
	file->writable = writable;
	return 0;
}

static struct dma_file *file_new(struct dma_table *tab, int fd, const struct stat *st,
				 bool writable, int *err)
{
	struct dma_file **chain = file_chain(st->st_dev, st->st_ino), *file;

	*err = -ENOMEM;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	*err = file_remap(tab, file, fd, st->st_size, writable);
	if (*err) {
		free(file);
		return NULL;
	}
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->next = *chain;
	*chain = file;
	return file;
}

/* The mapped file behind @fd, with at least @end bytes; one reference is the caller's. */
static int file_get(struct dma_table *tab, int fd, uint64_t end, unsigned int prot,
		    struct dma_file **res)
{
	struct dma_file *file;
	bool writable, used, anew;
	struct stat st;
	size_t size;
	int err = file_check(fd, prot, &st);

	if (err)
		return err;
	if (end > (uint64_t)st.st_size)
		return -ERANGE;
	for (file = *file_chain(st.st_dev, st.st_ino); file; file = file->next) {
		if (file->dev == st.st_dev && file->ino == st.st_ino)
			break;
	}
	if (file && file->broken)
		return -EFAULT;
	used = file && table_uses(tab, file);
	writable = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	anew = !file || end > file->size || (!file->writable && prot & DMA_PROT_WRITE);
	/* Never smaller than before: other ranges rely on what is mapped. */
	size = file && (!anew || file->size > (uint64_t)st.st_size) ? file->size : (size_t)st.st_size;
	if (!used || anew)
		err = quota_check(tab, !used, size, used ? file->size : 0);
	if (!err && !file)
		file = file_new(tab, fd, &st, writable, &err);
	else if (!err && anew)
		err = file_remap(tab, file, fd, size, writable);
	if (err)
		return err;
	file->refs++;
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

	err = file_get(tab, fd, offset + size, prot, &range.file);
	if (err)
		return err;
	range.use = use_get(tab, range.file);
	err = range.use ? range_insert(tab, &range) : -ENOMEM;
	/* If the insertion fails the file must not stay mapped. */
	if (err && range.use)
		use_put(tab, range.use);
	file_put(tab, range.file);
	return err;
}

int dmatab_unmap(struct dma_table *tab, uint64_t iova, uint64_t size)
{
	uint64_t first = iova, last = iova + size - 1;
	struct dma_range *range, tail;
	unsigned int num = 0;
	int err = 0;

	if (!size || last < first)
		return -EINVAL;

	/* Shrinking in place keeps the order of the tree: nothing lies between. */
	while ((range = range_find(tab, first, last))) {
		if (num++ == UNMAP_BATCH)
			return -EAGAIN;
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
		/* Without memory the tail is removed, too, which restricts access. */
		if (tail.last > last)
			err = range_insert(tab, &tail);
	}
	return err;
}

static void tree_free(struct closer_job *job)
{
	struct dma_tree *tree = (struct dma_tree *)job;

	tdestroy(tree->root, free);
	free(tree);
}

void dmatab_unmap_all(struct dma_table *tab)
{
	struct dma_tree *tree = tab->count > UNMAP_BATCH ? calloc(1, sizeof(*tree)) : NULL;

	for (unsigned int i = 0; i < DMA_USE_HASH; i++) {
		while (tab->use[i]) {
			tab->use[i]->ranges = 0;
			use_put(tab, tab->use[i]);
		}
	}
	if (tree) {
		tree->root = tab->root;
		tree->job.fn = tree_free;
		closer_run(tab->closer, &tree->job);
	} else {
		tdestroy(tab->root, free);
	}
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
 * Naturally aligned words are written by one access. A longer write is ordered as a whole after
 * the writes before it, as a posted write is.
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
	/* The source may be guest memory, too: payload of a train of the same guest. */
	memmove(dst, src, len);
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

const void *dmatab_ptr(struct dma_table *tab, uint64_t iova, size_t len)
{
	struct dma_range *range = range_at(tab, iova, DMA_PROT_READ);

	return range && range_piece(range, iova, len) == len ? range_ptr(range, iova) : NULL;
}

unsigned int dmatab_broken(struct dma_table *tab)
{
	if (tab->cuts_seen == (unsigned int)cuts)
		return tab->broken;
	tab->cuts_seen = (unsigned int)cuts;
	tab->broken = 0;
	for (unsigned int i = 0; i < DMA_USE_HASH; i++)
		for (struct dma_use *use = tab->use[i]; use; use = use->next)
			tab->broken += !!use->file->broken;
	return tab->broken;
}
