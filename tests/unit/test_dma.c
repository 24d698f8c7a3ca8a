// SPDX-License-Identifier: GPL-2.0
/* DMA table: translation, ranges that span, files that grow or shrink, many maps. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/dma.h"

#define PG	DMA_PAGE_SIZE
#define RW	(DMA_PROT_READ | DMA_PROT_WRITE)
#define FILE_PAGES	64

static struct dma_table tab;
static int memfd;
static uint8_t *guest;

static int setup(void **state)
{
	(void)state;
	dmatab_init(&tab, NULL);
	memfd = memfd_create("guest", MFD_CLOEXEC);
	assert_true(memfd >= 0);
	assert_int_equal(ftruncate(memfd, FILE_PAGES * PG), 0);
	guest = mmap(NULL, FILE_PAGES * PG, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_true(guest != MAP_FAILED);
	for (unsigned int i = 0; i < FILE_PAGES * PG; i++)
		guest[i] = i / PG + i;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dmatab_unmap_all(&tab);
	munmap(guest, FILE_PAGES * PG);
	close(memfd);
	assert_int_equal(dmatab_files(), 0);
	return 0;
}

static void test_translate(void **state)
{
	uint8_t buf[64];

	(void)state;
	assert_int_equal(dmatab_map(&tab, 0x100000, 4 * PG, RW, memfd, 8 * PG), 0);
	assert_int_equal(dmatab_read(&tab, 0x100000 + 100, buf, 64), 0);
	assert_memory_equal(buf, guest + 8 * PG + 100, 64);
	memset(buf, 0xa5, sizeof(buf));
	assert_int_equal(dmatab_write(&tab, 0x100000 + 4 * PG - 64, buf, 64), 0);
	assert_memory_equal(buf, guest + 12 * PG - 64, 64);
	assert_int_equal(dmatab_read(&tab, 0x100000 - 1, buf, 1), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 0x100000 + 4 * PG - 1, buf, 2), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 0x100000 + 4 * PG - 1, buf, 1), 0);
	assert_int_equal(dmatab_read(&tab, 0, buf, 0), 0);
	assert_int_equal(dmatab_write(&tab, 0, buf, 0), 0);
}

/* Neighbours on the bus, apart in the file; and a write that fails writes nothing. */
static void test_span(void **state)
{
	uint8_t buf[3 * PG], was[PG];

	(void)state;
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, 9 * PG), 0);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, memfd, 3 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 2 * PG, PG, DMA_PROT_READ, memfd, 5 * PG), 0);
	assert_int_equal(dmatab_read(&tab, 0, buf, 3 * PG), 0);
	assert_memory_equal(buf, guest + 9 * PG, PG);
	assert_memory_equal(buf + PG, guest + 3 * PG, PG);
	assert_memory_equal(buf + 2 * PG, guest + 5 * PG, PG);

	memcpy(was, guest + 3 * PG, PG);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(dmatab_write(&tab, PG + 10, buf, PG), -EFAULT);
	assert_memory_equal(was, guest + 3 * PG, PG);
	assert_int_equal(dmatab_write(&tab, PG - 10, buf, 20), 0);
	assert_memory_equal(buf, guest + 10 * PG - 10, 10);
	assert_memory_equal(buf, guest + 3 * PG, 10);
	assert_int_equal(dmatab_read(&tab, 2 * PG, buf, PG + 1), -EFAULT);
}

static void test_edges(void **state)
{
	uint64_t top = -(uint64_t)PG;
	uint8_t buf[16];

	(void)state;
	assert_int_equal(dmatab_map(&tab, top, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_read(&tab, UINT64_MAX - 15, buf, 16), 0);
	assert_int_equal(dmatab_read(&tab, UINT64_MAX - 15, buf, 17), -EFAULT);
	assert_int_equal(dmatab_write(&tab, UINT64_MAX - 14, buf, 16), -EFAULT);
	assert_int_equal(dmatab_map(&tab, top, 2 * PG, RW, memfd, 0), -EINVAL);
	assert_int_equal(dmatab_map(&tab, 0, 0, RW, memfd, 0), -EINVAL);
	assert_int_equal(dmatab_map(&tab, 1, PG, RW, memfd, 0), -EINVAL);
	assert_int_equal(dmatab_map(&tab, 0, 100, RW, memfd, 0), -EINVAL);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, 8), -EINVAL);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, FILE_PAGES * PG), -ERANGE);
	assert_int_equal(dmatab_map(&tab, 0, 2 * PG, RW, memfd, top), -ERANGE);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, top), -ERANGE);
	assert_int_equal(dmatab_unmap(&tab, 0, 0), -EINVAL);
	assert_int_equal(dmatab_unmap(&tab, top, 2 * PG), -EINVAL);
	assert_int_equal(tab.count, 1);
}

static void test_overlap(void **state)
{
	(void)state;
	assert_int_equal(dmatab_map(&tab, 4 * PG, 4 * PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_map(&tab, 4 * PG, 4 * PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_map(&tab, 0, 5 * PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_map(&tab, 7 * PG, 5 * PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_map(&tab, 0, 40 * PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_map(&tab, 5 * PG, PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_map(&tab, 0, 4 * PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_map(&tab, 8 * PG, PG, RW, memfd, 0), 0);
	assert_int_equal(tab.count, 3);
	assert_int_equal(dmatab_files(), 1);
}

/* Head, tail, middle and across: what is left translates as before. */
static void test_partial_unmap(void **state)
{
	uint8_t byte;

	(void)state;
	assert_int_equal(dmatab_map(&tab, 0, 10 * PG, RW, memfd, 20 * PG), 0);
	assert_int_equal(dmatab_read(&tab, 0, &byte, 1), 0);
	assert_int_equal(dmatab_unmap(&tab, 0, PG), 0);
	assert_int_equal(dmatab_unmap(&tab, 9 * PG, 100 * PG), 0);
	assert_int_equal(dmatab_unmap(&tab, 4 * PG, 2 * PG), 0);
	assert_int_equal(tab.count, 2);
	for (unsigned int i = 0; i < 10; i++) {
		bool gone = i == 0 || i == 9 || i == 4 || i == 5;

		assert_int_equal(dmatab_read(&tab, i * PG + 7, &byte, 1), gone ? -EFAULT : 0);
		if (!gone)
			assert_int_equal(byte, guest[(20 + i) * PG + 7]);
	}
	assert_int_equal(dmatab_unmap(&tab, 3 * PG, 4 * PG), 0);
	assert_int_equal(dmatab_read(&tab, 3 * PG, &byte, 1), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 6 * PG, &byte, 1), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 7 * PG, &byte, 1), 0);
	assert_int_equal(dmatab_unmap(&tab, 500 * PG, PG), 0);
	assert_int_equal(dmatab_unmap(&tab, 0, 1000 * PG), 0);
	assert_int_equal(tab.count, 0);
	assert_int_equal(dmatab_files(), 0);
}

/* ROMs and the like: known, not reachable, and gone when unmapped. */
static void test_no_fd(void **state)
{
	uint8_t buf[8] = { 0 };

	(void)state;
	assert_int_equal(dmatab_map(&tab, 0, 4 * PG, DMA_PROT_READ, -1, 0), 0);
	assert_int_equal(dmatab_map(&tab, 4 * PG, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_read(&tab, 0, buf, 8), -EFAULT);
	assert_int_equal(dmatab_write(&tab, 0, buf, 8), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 4 * PG - 4, buf, 8), -EFAULT);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, memfd, 0), -EEXIST);
	assert_int_equal(dmatab_unmap(&tab, PG, PG), 0);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_read(&tab, PG, buf, 8), 0);
}

static void test_bad_files(void **state)
{
	char path[64];
	int fds[2], ro;
	uint8_t byte = 1;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fds[0], 0), -EMEDIUMTYPE);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fds[0], 0), -EBADF);
	fds[0] = open("/dev/zero", O_RDWR);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fds[0], 0), -EMEDIUMTYPE);
	close(fds[0]);
	fds[0] = open("/proc/self/maps", O_RDONLY);
	assert_int_equal(dmatab_map(&tab, 0, PG, DMA_PROT_READ, fds[0], 0), -EMEDIUMTYPE);
	close(fds[0]);

	/* A read-only descriptor reads, and does not gain from another's right to write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	ro = open(path, O_RDONLY);
	assert_true(ro >= 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, ro, 0), -EACCES);
	assert_int_equal(dmatab_map(&tab, 0, PG, DMA_PROT_READ, ro, 0), 0);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_map(&tab, 2 * PG, PG, RW, ro, 0), -EACCES);
	assert_int_equal(dmatab_write(&tab, 0, &byte, 1), -EFAULT);
	assert_int_equal(dmatab_write(&tab, PG, &byte, 1), 0);
	assert_int_equal(dmatab_read(&tab, 0, &byte, 1), 0);
	assert_int_equal(byte, 1);
	assert_int_equal(dmatab_files(), 1);
	close(ro);
}

static void test_two_tables(void **state)
{
	struct dma_table other;
	uint64_t val = 0x1122334455667788;

	(void)state;
	dmatab_init(&other, NULL);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_map(&other, 0x70000, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_files(), 1);
	assert_int_equal(dmatab_write(&tab, 8, &val, 8), 0);
	val = 0;
	assert_int_equal(dmatab_read(&other, 0x70008, &val, 8), 0);
	assert_int_equal(val, 0x1122334455667788);
	dmatab_unmap_all(&tab);
	assert_int_equal(dmatab_files(), 1);
	assert_int_equal(dmatab_read(&other, 0x70008, &val, 8), 0);
	dmatab_unmap_all(&other);
	assert_int_equal(dmatab_files(), 0);
}

static void test_grow(void **state)
{
	int fd = memfd_create("grow", MFD_CLOEXEC);
	uint8_t byte = 7;

	(void)state;
	assert_int_equal(ftruncate(fd, PG), 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fd, 0), 0);
	assert_int_equal(dmatab_write(&tab, 5, &byte, 1), 0);
	assert_int_equal(ftruncate(fd, 1024 * PG), 0);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, fd, 1023 * PG), 0);
	assert_int_equal(dmatab_files(), 1);
	assert_int_equal(dmatab_write(&tab, 2 * PG - 1, &byte, 1), 0);
	byte = 0;
	assert_int_equal(dmatab_read(&tab, 5, &byte, 1), 0);
	assert_int_equal(byte, 7);
	close(fd);
}

/* Where a range lies: in one piece, to be read, or nowhere. */
static void test_ptr(void **state)
{
	const uint8_t *at;

	(void)state;
	assert_int_equal(dmatab_map(&tab, 0, 2 * PG, RW, memfd, 8 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 2 * PG, 2 * PG, RW, memfd, 4 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 4 * PG, PG, DMA_PROT_WRITE, memfd, 0), 0);
	at = dmatab_ptr(&tab, 100, 2 * PG - 100);
	assert_non_null(at);
	assert_memory_equal(at, guest + 8 * PG + 100, 2 * PG - 100);
	assert_null(dmatab_ptr(&tab, 100, 2 * PG - 99));
	assert_null(dmatab_ptr(&tab, 4 * PG, 8));
	assert_null(dmatab_ptr(&tab, 5 * PG, 8));
	at = dmatab_ptr(&tab, 4 * PG - 1, 1);
	assert_non_null(at);
	assert_int_equal(*at, guest[6 * PG - 1]);
	/* What lies there can be written to another place of the same memory. */
	assert_int_equal(dmatab_write(&tab, 50, dmatab_ptr(&tab, 0, PG), PG), 0);
	assert_int_equal(dmatab_broken(&tab), 0);
}

/* The owner cuts the file under us: a fault, not the end of the process. */
static void test_shrink(void **state)
{
	int fd = memfd_create("shrink", MFD_CLOEXEC);
	uint8_t buf[16] = { 0 };

	(void)state;
	/* Again: the test framework took SIGBUS for itself after the setup. */
	dmatab_init(&tab, NULL);
	assert_int_equal(ftruncate(fd, 16 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 0, 16 * PG, RW, fd, 0), 0);
	assert_int_equal(dmatab_map(&tab, 64 * PG, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_write(&tab, 15 * PG, buf, 16), 0);
	assert_int_equal(dmatab_broken(&tab), 0);
	assert_int_equal(ftruncate(fd, PG), 0);
	assert_int_equal(dmatab_write(&tab, 15 * PG, buf, 16), -EFAULT);
	assert_int_equal(dmatab_broken(&tab), 1);
	assert_null(dmatab_ptr(&tab, 0, 16));
	assert_int_equal(dmatab_write(&tab, 15 * PG, buf, 8), -EFAULT);
	assert_int_equal(dmatab_read(&tab, 0, buf, 16), -EFAULT);
	assert_int_equal(dmatab_map(&tab, 32 * PG, PG, RW, fd, 0), -EFAULT);
	/* Others are not touched. */
	assert_int_equal(dmatab_write(&tab, 64 * PG, buf, 16), 0);
	assert_int_equal(dmatab_unmap(&tab, 0, 16 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fd, 0), 0);
	assert_int_equal(dmatab_write(&tab, 0, buf, 16), 0);
	close(fd);
}

static int map_file(uint64_t page, uint64_t size)
{
	int fd = memfd_create("one", MFD_CLOEXEC), err;

	assert_int_equal(ftruncate(fd, size), 0);
	err = dmatab_map(&tab, page * PG, PG, RW, fd, 0);
	close(fd);
	return err;
}

/* What one table maps leaves room for others: files, and the process's address space. */
static void test_quota(void **state)
{
	struct dma_table other;
	unsigned int n;

	(void)state;
	dmatab_init(&other, NULL);
	for (n = 0; n < DMA_MAX_FILES; n++)
		assert_int_equal(map_file(n, PG), 0);
	assert_int_equal(map_file(n, PG), -ENOSPC);
	assert_int_equal(dmatab_files(), DMA_MAX_FILES);
	/* Another table has its own, also of the same files. */
	assert_int_equal(dmatab_map(&other, 0, PG, RW, memfd, 0), 0);
	assert_int_equal(dmatab_unmap(&tab, 7 * PG, PG), 0);
	assert_int_equal(dmatab_map(&tab, 7 * PG, PG, RW, memfd, 0), 0);
	/* One that is there already is no other, however many ranges it has. */
	assert_int_equal(dmatab_map(&tab, n * PG, PG, RW, memfd, PG), 0);
	dmatab_unmap_all(&tab);
	assert_int_equal(dmatab_files(), 1);

	assert_int_equal(map_file(0, DMA_MAX_BYTES + PG), -EFBIG);
	assert_int_equal(map_file(0, DMA_MAX_BYTES), 0);
	assert_int_equal(map_file(1, PG), -ENOSPC);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, memfd, 0), -ENOSPC);
	dmatab_unmap_all(&tab);
	for (n = 0; n < 256; n++)
		assert_int_equal(map_file(n, DMA_MAX_BYTES / 256), 0);
	assert_int_equal(map_file(n, PG), -ENOSPC);
	dmatab_unmap_all(&tab);
	dmatab_unmap_all(&other);
}

/* A file that grows takes no more than one that was as large from the start. */
static void test_quota_grow(void **state)
{
	int fd = memfd_create("grow", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, PG), 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, fd, 0), 0);
	assert_int_equal(map_file(9, DMA_MAX_BYTES / 2), 0);
	assert_int_equal(ftruncate(fd, DMA_MAX_BYTES), 0);
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, fd, PG), -ENOSPC);
	/* What is mapped of it is not asked for again. */
	assert_int_equal(dmatab_map(&tab, PG, PG, RW, fd, 0), 0);
	assert_int_equal(ftruncate(fd, DMA_MAX_BYTES / 2), 0);
	assert_int_equal(dmatab_map(&tab, 2 * PG, PG, RW, fd, DMA_MAX_BYTES / 2 - PG), 0);
	assert_int_equal(map_file(10, PG), -ENOSPC);
	close(fd);
}

/* Many ranges go in several calls; what is left works until then. */
static void test_unmap_batches(void **state)
{
	unsigned int calls = 1, before = 5000;
	uint8_t byte;
	int err;

	(void)state;
	for (unsigned int i = 0; i < 5000; i++)
		assert_int_equal(dmatab_map(&tab, i * PG, PG, RW, memfd, 0), 0);
	while ((err = dmatab_unmap(&tab, 0, 4999 * PG)) == -EAGAIN) {
		assert_in_range(before - tab.count, 1, 512);
		before = tab.count;
		calls++;
	}
	assert_int_equal(err, 0);
	assert_int_equal(calls, 10);
	assert_int_equal(tab.count, 1);
	assert_int_equal(dmatab_read(&tab, 4999 * PG, &byte, 1), 0);
	assert_int_equal(dmatab_read(&tab, 0, &byte, 1), -EFAULT);
}

/* Of this process's processor time: others run beside it. */
static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static double map_many(unsigned int n, unsigned int order)
{
	double t0 = seconds();
	uint8_t byte;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t page = order ? (i * 40503ull) % n : i;

		if (dmatab_map(&tab, page * PG, PG, RW, memfd, page % FILE_PAGES * PG))
			fail_msg("map %u of %u", i, n);
	}
	assert_int_equal(tab.count, n);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t page = (i * 12289ull) % n;

		assert_int_equal(dmatab_read(&tab, page * PG + 3, &byte, 1), 0);
		assert_int_equal(byte, guest[page % FILE_PAGES * PG + 3]);
	}
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(dmatab_unmap(&tab, (uint64_t)(n - 1 - i) * PG, PG), 0);
	assert_int_equal(tab.count, 0);
	return seconds() - t0;
}

/*
 * What an emulated IOMMU sends: a map for each page. One file mapping for all,
 * and the cost of a map must not grow with their number: sixteen times as many
 * take 16 * log(n) ratio = about 23 times as long, and 256 times in a table
 * that is searched end to end. The bound lies well between.
 */
static void test_many(void **state)
{
	double few = 0, many = 0;

	(void)state;
	map_many(4000, 1);
	for (unsigned int order = 0; order < 2; order++) {
		few += map_many(4000, order);
		many += map_many(64000, order);
	}
	print_message("4000 maps: %.1f ms, 64000 maps: %.1f ms\n", few * 500, many * 500);
	assert_true(many < few * 110);
}

static void test_limit(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < DMA_MAX_RANGES; i++) {
		if (dmatab_map(&tab, (uint64_t)i * PG, PG, RW, memfd, 0))
			fail_msg("map %u", i);
	}
	assert_int_equal(dmatab_map(&tab, (uint64_t)DMA_MAX_RANGES * PG, PG, RW, memfd, 0),
			 -ENOSPC);
	assert_int_equal(dmatab_unmap(&tab, 0, 16 * PG), 0);
	assert_int_equal(dmatab_map(&tab, 0, PG, RW, memfd, 0), 0);
}

/* Against a plain array, by a fixed sequence of random maps, unmaps and accesses. */
static void test_random(void **state)
{
	enum { PAGES = 128 };
	int want[PAGES];
	uint32_t rnd = 12345;
	uint8_t byte;

	(void)state;
	memset(want, -1, sizeof(want));
	for (unsigned int step = 0; step < 50000; step++) {
		unsigned int page, n, at, busy = 0;

		rnd = rnd * 1664525 + 1013904223;
		page = rnd >> 24 & (PAGES - 1);
		n = 1 + (rnd >> 16 & 15);
		at = (rnd >> 8 & 31);
		if (page + n > PAGES)
			n = PAGES - page;
		if (rnd >> 31) {
			assert_int_equal(dmatab_unmap(&tab, page * PG, n * PG), 0);
			for (unsigned int i = 0; i < n; i++)
				want[page + i] = -1;
		} else {
			for (unsigned int i = 0; i < n; i++)
				busy |= want[page + i] >= 0;
			assert_int_equal(dmatab_map(&tab, page * PG, n * PG, RW, memfd, at * PG),
					 busy ? -EEXIST : 0);
			for (unsigned int i = 0; i < n && !busy; i++)
				want[page + i] = at + i;
		}
		page = rnd >> 10 & (PAGES - 1);
		assert_int_equal(dmatab_read(&tab, page * PG + 9, &byte, 1),
				 want[page] < 0 ? -EFAULT : 0);
		if (want[page] >= 0)
			assert_int_equal(byte, guest[want[page] * PG + 9]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_translate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_span, setup, teardown),
		cmocka_unit_test_setup_teardown(test_edges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partial_unmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_fd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quota, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quota_grow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmap_batches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ptr, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shrink, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
