// SPDX-License-Identifier: GPL-2.0
/*
 * Memory on the chip: contexts by sectors, one bound for all that is there, and the account
 * of it.
 */
#include <stdio.h>

#include "core_test.h"
#include "icm.h"
#include "rc.h"

#define SECTORS(table)	(SKUA_ICM_##table##_SIZE / CTX_SECTOR)
#define RRC		40	/* an entry that no object uses: any content will do */

static struct tlp ctx_tlp(struct rig *r, enum tlp_kind kind)
{
	return r->f.dev->tlp.fn.v[kind][TLP_CTX];
}

static void fill(struct rig *r, uint32_t index)
{
	uint8_t *at = mini_icm(&r->m, SKUA_ICM_RRC, index);

	for (unsigned int i = 0; i < SKUA_ICM_RRC_SIZE; i++)
		at[i] = (uint8_t)(i / CTX_SECTOR + 1);
}

static void evict(struct rig *r)
{
	cache_evict_range(r->f.dev, 0, UINT64_MAX);
}

/* A miss reads what is asked for and not there, adjacent sectors by one request. */
static void read_part(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	struct ctx_cache *c = &dev->icm->table[SKUA_ICM_RRC].cache;
	static const struct {
		uint32_t ask;
		unsigned int reqs, sectors;
	} step[] = {
		{ 0x06, 1, 2 }, { 0x02, 0, 0 }, { 0x06, 0, 0 }, { 0x47, 2, 2 }, { 0xff, 2, 4 },
		{ 0xff, 0, 0 },
	};
	uint64_t hits = c->hits, misses = c->misses;

	fill(r, RRC);
	for (unsigned int k = 0; k < sizeof(step) / sizeof(step[0]); k++) {
		struct tlp before = ctx_tlp(r, TLP_MRD_UP), now;
		uint8_t *ctx = ctx_get_part(dev, SKUA_ICM_RRC, RRC, step[k].ask);

		assert_non_null(ctx);
		now = ctx_tlp(r, TLP_MRD_UP);
		assert_int_equal(now.count - before.count, step[k].reqs);
		assert_int_equal(now.bytes - before.bytes, step[k].sectors * CTX_SECTOR);
		for (unsigned int s = 0; s < SECTORS(RRC); s++) {
			if (step[k].ask >> s & 1)
				assert_int_equal(ctx[s * CTX_SECTOR], s + 1);
		}
		ctx_put(dev, ctx);
	}
	assert_int_equal(c->hits - hits, 3);
	assert_int_equal(c->misses - misses, 3);
	assert_int_equal(c->sectors, SECTORS(RRC));
}

/* Write-back writes what was changed, adjacent sectors by one request, and once. */
static void write_part(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	uint8_t *at = mini_icm(&r->m, SKUA_ICM_RRC, RRC), *ctx;
	struct tlp before, now;

	fill(r, RRC);
	ctx = ctx_get(dev, SKUA_ICM_RRC, RRC);
	ctx[0] = 0x10;
	ctx[1 * CTX_SECTOR] = 0x11;
	ctx[2 * CTX_SECTOR] = 0x12;
	ctx[4 * CTX_SECTOR] = 0x14;
	ctx_dirty_part(dev, ctx, 0x16);
	ctx_put(dev, ctx);
	evict(r);
	before = ctx_tlp(r, TLP_MWR_UP);
	evict(r);
	now = ctx_tlp(r, TLP_MWR_UP);
	assert_int_equal(now.count, before.count);
	assert_int_equal(at[0], 1);
	assert_int_equal(at[1 * CTX_SECTOR], 0x11);
	assert_int_equal(at[2 * CTX_SECTOR], 0x12);
	assert_int_equal(at[4 * CTX_SECTOR], 0x14);
	/* Of a part, what is not there is not written. */
	ctx = ctx_get_part(dev, SKUA_ICM_RRC, RRC, 0x21);
	ctx[0] = 0x20;
	ctx[5 * CTX_SECTOR] = 0x25;
	ctx_dirty(dev, ctx);
	ctx_put(dev, ctx);
	before = ctx_tlp(r, TLP_MWR_UP);
	evict(r);
	now = ctx_tlp(r, TLP_MWR_UP);
	assert_int_equal(now.count - before.count, 2);
	assert_int_equal(now.bytes - before.bytes, 2 * CTX_SECTOR);
	assert_int_equal(at[0], 0x20);
	assert_int_equal(at[5 * CTX_SECTOR], 0x25);
	assert_int_equal(at[4 * CTX_SECTOR], 0x14);
}

/* The rest is asked for while a part is in use: it comes to the same place. */
static void need(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	struct tlp before, now;
	uint8_t *ctx;

	fill(r, RRC);
	ctx = ctx_get_part(dev, SKUA_ICM_RRC, RRC, 0x3);
	ctx[0] = 0x30;
	before = ctx_tlp(r, TLP_MRD_UP);
	assert_true(ctx_need(dev, ctx));
	assert_true(ctx_need(dev, ctx));
	now = ctx_tlp(r, TLP_MRD_UP);
	assert_int_equal(now.count - before.count, 1);
	assert_int_equal(now.bytes - before.bytes, (SECTORS(RRC) - 2) * CTX_SECTOR);
	assert_int_equal(ctx[0], 0x30);
	assert_int_equal(ctx[7 * CTX_SECTOR], 8);
	ctx_put(dev, ctx);
	ctx = ctx_get_part(dev, SKUA_ICM_RRC, RRC + 1, 0x3);
	fake_hole(&r->f, r->m.icm[SKUA_ICM_RRC] + (RRC + 1) * SKUA_ICM_RRC_SIZE, 1);
	assert_true(ctx_get_part(dev, SKUA_ICM_RRC, RRC + 1, 0x3) == ctx);
	fake_hole(&r->f, r->m.icm[SKUA_ICM_RRC] + (RRC + 1) * SKUA_ICM_RRC_SIZE + 300, 1);
	assert_false(ctx_need(dev, ctx));
	assert_int_equal(dev->fatal, SKUA_FATAL_ICM_DMA);
}

/*
 * Whatever is used, there never is more on the chip than there is room for; what is used
 * often stays, and only those sectors of it.
 */
static void bound(void **state)
{
	struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .onchip = 2 << 20 };
	struct skua_dev *dev;
	struct tlp before, now;
	unsigned int seed = 1;
	uint64_t reads;
	struct rig r;

	(void)state;
	fake_init(&r.f, &cfg);
	mini_up_qps(&r.m, &r.f, 4000);
	dev = r.f.dev;
	assert_int_equal(onchip_size(dev), 2 << 20);
	for (unsigned int k = 0; k < 20000; k++) {
		enum skua_icm_table table = rand_r(&seed) % 2 ? SKUA_ICM_RRC : SKUA_ICM_LRC;
		void *ctx = ctx_get_part(dev, table, rand_r(&seed) % 4000, 1 + rand_r(&seed) % 255);

		assert_non_null(ctx);
		if (k % 3)
			ctx_dirty(dev, ctx);
		ctx_put(dev, ctx);
		/* Used often: two of its eight sectors. */
		ctx_put(dev, ctx_get_part(dev, SKUA_ICM_RQC, 7, 1));
		assert_true(onchip_used(dev) <= onchip_size(dev));
	}
	assert_true(onchip_used(dev) > onchip_size(dev) - 1024);
	reads = r.f.reads;
	ctx_put(dev, ctx_get_part(dev, SKUA_ICM_RQC, 7, 1));
	assert_int_equal(r.f.reads, reads);
	/* Who makes room writes what was changed, one sector of eight of each. */
	evict(&r);
	before = ctx_tlp(&r, TLP_MWR_UP);
	for (uint32_t index = 0; index < 4000; index++) {
		void *ctx = ctx_get(dev, SKUA_ICM_RRC, index);

		ctx_dirty_part(dev, ctx, 1u << index % SECTORS(RRC));
		ctx_put(dev, ctx);
	}
	now = ctx_tlp(&r, TLP_MWR_UP);
	assert_in_range(now.bytes - before.bytes, 1, 4000 * CTX_SECTOR);
	evict(&r);
	now = ctx_tlp(&r, TLP_MWR_UP);
	assert_int_equal(now.bytes - before.bytes, 4000 * CTX_SECTOR);
	fake_exit(&r.f);
}

/* What the account says adds up. */
static void account(void **state)
{
	struct rig *r = *state;
	char answer[2048], *at;
	unsigned long long size, used, sum = 0, num, bytes;
	unsigned int rows = 0, tables = 0;
	struct mini_cq cq;
	int len;

	mini_cq_create(&r->m, &cq, 3);
	skua_dev_onchip(r->f.dev, answer, sizeof(answer));
	assert_int_equal(sscanf(answer, "size %llu used %llu%n", &size, &used, &len), 2);
	assert_int_equal(size, 4400 << 10);
	for (at = answer + len; *at; at += len, rows++) {
		char name[32];

		assert_memory_equal(at, "; ", 2);
		if (!strncmp(at, "; apart: ", 9))
			break;
		len = 0;
		assert_int_equal(sscanf(at, "; %31s %llu %llu%n", name, &num, &bytes, &len), 3);
		sum += bytes;
		tables += !strcmp(name, "CQC") && num == 1 && bytes == SKUA_ICM_CQC_SIZE + CTX_TAG;
	}
	assert_int_equal(sum, used);
	assert_int_equal(tables, 1);
	assert_in_range(rows, 10, 30);
	/* A short answer ends where it ends. */
	memset(answer, 0x5a, sizeof(answer));
	skua_dev_onchip(r->f.dev, answer, 40);
	assert_int_equal(strlen(answer), 39);
	assert_int_equal(answer[40], 0x5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(read_part),
		rig_test(write_part),
		rig_test(need),
		cmocka_unit_test(bound),
		rig_test(account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
