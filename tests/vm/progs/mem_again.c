// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that come and go, so that one has what another had: a key that was given
 * back gives no access, and nothing of what it named is left to the next.
 */
#include <sys/mman.h>

#include "mem.h"

#define PAGES	48

static void drop(uint8_t *p)
{
	munmap(p, 2 * PAGES * PAGE);
}

static struct ibv_mr *reg(struct mem *m, uint8_t *p, unsigned int pages, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(m->end[1].dev.pd, p, pages * PAGE, access);

	if (!mr)
		fail("reg_mr of %u pages: %m", pages);
	return mr;
}

/* The last byte, and none behind it. */
static bool ends(struct mem *m, struct ibv_mr *mr)
{
	uint8_t *last = (uint8_t *)mr->addr + mr->length - 100;

	return write_arrives(m, last, (uintptr_t)last, mr->rkey, 100) &&
	       rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)last, mr->rkey, 101, IBV_WC_REM_ACCESS_ERR);
}

static bool dereg(struct ibv_mr *mr, bool ok)
{
	return (!ibv_dereg_mr(mr) || fail("dereg_mr: %m")) && ok;
}

static bool refused(struct mem *m, uint8_t *p, uint32_t rkey)
{
	uint8_t was = *p;

	return rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p, rkey, 64, IBV_WC_REM_ACCESS_ERR) &&
	       (*p == was || fail("and wrote"));
}

static bool old_keys(struct mem *m)
{
	static const unsigned int pages[] = { 1, 5, PAGES };
	uint8_t *p = scattered(PAGES);
	unsigned int i, k, r;
	struct ibv_mr *mr;
	uint32_t key[6];
	bool ok = true;

	for (k = 0; ok && k < 3; k++) {
		for (i = 0; ok && i < 6; i++) {
			mr = reg(m, p, pages[k], MEM_ALL);
			if (!mr)
				return false;
			key[i] = mr->rkey;
			ok = write_arrives(m, p, (uintptr_t)p, mr->rkey, PAGE) && ends(m, mr);
			for (r = 0; ok && r < i; r++)
				ok = (key[r] != key[i] || fail("a key serves again")) &&
				     refused(m, p, key[r]);
			ok = dereg(mr, ok) && refused(m, p, key[i]);
		}
	}
	drop(p);
	return ok;
}

/* What is in the one buffer when the other was written to. */
static bool untouched(uint8_t *p, uint8_t val)
{
	unsigned int i;

	for (i = 0; i < PAGES * PAGE; i++)
		if (p[i] != val)
			return fail("byte %u of memory of an earlier region was written", i);
	return true;
}

static bool other_pages(struct mem *m)
{
	/* More, fewer, and as many pages, for reading and for writing. */
	static const struct { unsigned int pages; bool write; } turn[] = {
		{ 40, true }, { 48, true }, { 33, true }, { 48, false }, { 48, true }, { 47, true },
	};
	uint8_t *p[2] = { scattered(PAGES), scattered(PAGES) };
	unsigned int i, off;
	struct ibv_mr *mr;
	bool ok = true;

	for (i = 0; ok && i < sizeof(turn) / sizeof(turn[0]); i++) {
		uint8_t *ours = p[i % 2], *theirs = p[!(i % 2)];

		memset(theirs, 0x77, PAGES * PAGE);
		mr = reg(m, ours, turn[i].pages, turn[i].write ? MEM_ALL : IBV_ACCESS_REMOTE_READ);
		if (!mr)
			return false;
		if (!turn[i].write)
			ok = refused(m, ours, mr->rkey);
		for (off = 0; ok && off < mr->length; off += 8 * PAGE) {
			uint32_t len = mr->length - off < MEM_SIZE ? mr->length - off : MEM_SIZE;

			if (turn[i].write) {
				ok = write_arrives(m, ours + off, (uintptr_t)ours + off, mr->rkey, len);
				continue;
			}
			fill(ours + off, len, i);
			ok = rdma(m, IBV_WR_RDMA_READ, (uintptr_t)ours + off, mr->rkey, len,
				  IBV_WC_SUCCESS) &&
			     (!memcmp(m->end[0].buf, ours + off, len) || fail("READ of other memory"));
		}
		if (ok && turn[i].write)
			ok = ends(m, mr);
		ok = dereg(mr, ok) && untouched(theirs, 0x77);
	}
	drop(p[0]);
	drop(p[1]);
	return ok;
}

/* One that was registered again in between has its list from elsewhere. */
static bool after_rereg(struct mem *m)
{
	uint8_t *p[3] = { scattered(PAGES), scattered(PAGES), scattered(PAGES) };
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;
	int ret;

	if (!m->end[1].is_skua)
		return skip("not of soft-RoCE");
	for (i = 0; ok && i < 3; i++) {
		mr = reg(m, p[0], PAGES, MEM_ALL);
		if (!mr)
			return false;
		ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p[1], PAGES * PAGE, 0);
		ok = (!ret || fail("rereg_mr: %d, %m", ret)) && refused(m, p[0], mr->rkey) &&
		     write_arrives(m, p[1], (uintptr_t)p[1], mr->rkey, MEM_SIZE) && ends(m, mr);
		ok = dereg(mr, ok);
		if (!ok)
			break;
		/* The same pages as before, and others. */
		mr = reg(m, p[i % 2 ? 2 : 0], PAGES, MEM_ALL);
		if (!mr)
			return false;
		ok = write_arrives(m, mr->addr, (uintptr_t)mr->addr, mr->rkey, MEM_SIZE) &&
		     ends(m, mr);
		ok = dereg(mr, ok);
	}
	for (i = 0; i < 3; i++)
		drop(p[i]);
	return ok;
}

/* New pages at the old address. */
static bool remapped(struct mem *m)
{
	uint8_t *p = scattered(PAGES);
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;

	for (i = 0; ok && i < 4; i++) {
		mr = reg(m, p, PAGES, MEM_ALL);
		if (!mr)
			return false;
		ok = write_arrives(m, p, (uintptr_t)p, mr->rkey, MEM_SIZE) && ends(m, mr);
		ok = dereg(mr, ok);
		if (madvise(p + i * PAGE, (PAGES - i) * PAGE, MADV_DONTNEED))
			die("madvise: %m");
	}
	drop(p);
	return ok;
}

/* A key has 8 bits that change: it must not be the same again when they come round. */
static bool never_again(struct mem *m)
{
	uint32_t key[600];
	const unsigned int num = sizeof(key) / sizeof(key[0]);
	uint8_t *p = scattered(PAGES);
	unsigned int i, k;
	struct ibv_mr *mr;
	bool ok = true;

	if (!m->end[1].is_skua)
		return skip("not of soft-RoCE");
	for (i = 0; ok && i < num; i++) {
		mr = reg(m, p, 1, MEM_ALL);
		if (!mr)
			return false;
		key[i] = mr->rkey;
		ok = dereg(mr, true);
		for (k = 0; ok && k < i; k++)
			ok = key[k] != key[i] || fail("key %u is key %u again", i, k);
	}
	drop(p);
	return ok;
}

const struct mem_case mem_cases_again[] = {
	{ "keys do not come back", never_again },
	{ "keys of regions that are gone", old_keys },
	{ "other pages under keys that serve again", other_pages },
	{ "rereg, and the key serves again", after_rereg },
	{ "new pages at the address of an earlier region", remapped },
	{}
};
