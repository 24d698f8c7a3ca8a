// SPDX-License-Identifier: GPL-2.0
/* ICM: mapping, layout, context caches and their write-back, the MTT's lines. */
#include "core_test.h"
#include "icm.h"

#define PAGE	SKUA_ICM_PAGE_SIZE
#define FAR	(1ull << 40)	/* ICM that no table uses */

static int unmap(struct mini *m, uint64_t addr, uint32_t npages)
{
	struct skua_cmd_unmap_icm_in in = {
		.addr = cpu_to_le64(addr),
		.npages = cpu_to_le32(npages),
	};

	return mini_cmd(m, SKUA_CMD_UNMAP_ICM, &in, sizeof(in), NULL, 0);
}

/* struct skua_cmd_map_icm_in with room for pages. */
struct map {
	struct {
		__le64 addr;
		__le32 count;
		__le32 reserved;
	} in;
	__le64 page[8];
};
_Static_assert(offsetof(struct map, page) == sizeof(struct skua_cmd_map_icm_in), "struct map");

static int map(struct mini *m, struct map *map, uint32_t count)
{
	map->in.count = cpu_to_le32(count);
	return mini_cmd(m, SKUA_CMD_MAP_ICM, map, sizeof(map->in) + 8 * count, NULL, 0);
}

static void map_checks(void **state)
{
	struct rig *r = *state;
	struct map in = { .in.addr = cpu_to_le64(FAR), .page[0] = cpu_to_le64(0x10000) };

	in.in.count = cpu_to_le32(2);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MAP_ICM, &in, sizeof(in.in) + 8, NULL, 0), BAD_LEN);
	in.in.count = cpu_to_le32(0xffffffff);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MAP_ICM, &in, sizeof(in.in) + 8, NULL, 0), BAD_LEN);
	assert_status(map(&r->m, &in, 0), BAD_PARAM);
	in.in.reserved = cpu_to_le32(1);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.in.reserved = 0;
	in.in.addr = cpu_to_le64(FAR + 8);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.in.addr = cpu_to_le64(1ull << SKUA_ICM_ADDR_BITS);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	/* The last page, and one page too many. */
	in.in.addr = cpu_to_le64((1ull << SKUA_ICM_ADDR_BITS) - PAGE);
	in.page[0] = cpu_to_le64(0x10000 | 1);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.page[0] = cpu_to_le64(0x10000);
	assert_status(map(&r->m, &in, 1), OK);
	in.in.addr = cpu_to_le64(FAR);
	/* Bits between log and address; runs that wrap round or are beyond reason. */
	in.page[0] = cpu_to_le64(0x10000 | 0x40);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.page[0] = cpu_to_le64(0xfffffffffffff000ull | 1);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.page[0] = cpu_to_le64(63);
	assert_status(map(&r->m, &in, 1), BAD_PARAM);
	in.page[0] = cpu_to_le64(40);
	assert_status(map(&r->m, &in, 1), LIMIT);
	assert_status(unmap(&r->m, FAR, 1), BAD_INDEX);
}

/* What the runs of one command come to together is limited, not only each. */
static void map_sum(void **state)
{
	struct rig *r = *state;
	struct icm *icm = r->f.dev->icm;
	struct map in = { .in.addr = cpu_to_le64(FAR) };
	uint64_t room = icm->limit - icm->mapped;
	unsigned int log = 63 - __builtin_clzll(room);

	in.page[0] = cpu_to_le64(0x10000 | log);
	in.page[1] = in.page[0];
	assert_true(2ull << log > room);
	assert_status(map(&r->m, &in, 2), LIMIT);
	assert_int_equal(icm->limit - icm->mapped, room);
}

static void map_overlap(void **state)
{
	struct rig *r = *state;
	struct map in = { .in.addr = cpu_to_le64(FAR + 3 * PAGE), .page[0] = cpu_to_le64(0x10000) };

	assert_status(map(&r->m, &in, 1), OK);
	assert_status(map(&r->m, &in, 1), BUSY);
	/* A range that ends on the mapped page: nothing of it is mapped. */
	in.in.addr = cpu_to_le64(FAR);
	in.page[0] = cpu_to_le64(0x20000 | 1);
	in.page[1] = cpu_to_le64(0x30000 | 1);
	assert_status(map(&r->m, &in, 2), BUSY);
	assert_status(unmap(&r->m, FAR, 1), BAD_INDEX);
	/* Up to it. */
	in.page[1] = cpu_to_le64(0x30000);
	assert_status(map(&r->m, &in, 2), OK);
	assert_status(unmap(&r->m, FAR, 5), BAD_INDEX);
	assert_status(unmap(&r->m, FAR, 0), BAD_PARAM);
	assert_status(unmap(&r->m, FAR + 1, 4), BAD_PARAM);
	assert_status(unmap(&r->m, FAR, 0xffffffff), BAD_INDEX);
	assert_status(unmap(&r->m, FAR, 4), OK);
	assert_status(unmap(&r->m, FAR, 1), BAD_INDEX);
}

/* Any sequence of maps and unmaps against a plain array. */
/* Pages far from each other: what they cost the process is limited too, and given back. */
static void map_strewn(void **state)
{
	struct rig *r = *state;
	struct icm *icm = r->f.dev->icm;
	uint32_t before = icm->nodes, num = 0;
	struct map in = { .page[0] = cpu_to_le64(0x10000) };
	int status;

	for (;; num++) {
		in.in.addr = cpu_to_le64(FAR + ((uint64_t)num << 32));
		status = map(&r->m, &in, 1);
		if (status)
			break;
		assert_true(num < 10000);
	}
	assert_status(status, LIMIT);
	assert_true(icm->nodes <= ICM_NODES_MAX);
	/* Next to one that is there, there is room. */
	in.in.addr = cpu_to_le64(FAR + PAGE);
	assert_status(map(&r->m, &in, 1), OK);
	assert_status(unmap(&r->m, FAR, 2), OK);
	while (--num)
		assert_status(unmap(&r->m, FAR + ((uint64_t)num << 32), 1), OK);
	assert_int_equal(icm->nodes, before);
}

/* The lives of caches begin anew: nothing of the first is found in the last. */
static void many_lives(void **state)
{
	struct rig *r = *state;
	struct ctx_cache *c = &r->f.dev->icm->table[SKUA_ICM_GID].cache;

	assert_true(c->num > 0);
	c->life = UINT32_MAX;
	r->f.dev->icm->mtt.life = UINT32_MAX;
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	assert_int_equal(c->life, 1);
	assert_int_equal(r->f.dev->icm->mtt.life, 1);
	for (uint32_t i = 0; i < c->num; i++)
		assert_int_not_equal(((struct ctx_ent *)(c->mem + i * c->stride))->life, 1);
	mini_up(&r->m, &r->f);
}

static void map_random(void **state)
{
	struct rig *r = *state;
	static uint64_t want[2048];
	uint32_t rng = 1;

	memset(want, 0, sizeof(want));
	for (unsigned int i = 0; i < 6000; i++) {
		uint32_t page, log, n;
		bool busy = false, gone = false;

		rng = rng * 1664525 + 1013904223;
		page = rng >> 8 & 2047;
		log = rng >> 20 & 3;
		n = 1u << log;
		if (page + n > 2048)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			busy |= want[page + k];
			gone |= !want[page + k];
		}
		if (rng >> 31) {
			uint64_t bus = (uint64_t)(i + 1) << 20;

			assert_int_equal(mini_map(&r->m, FAR + page * PAGE, bus, log),
					 busy ? SKUA_CMD_ST_BUSY : 0);
			for (uint32_t k = 0; k < n && !busy; k++)
				want[page + k] = bus + k * PAGE;
		} else {
			assert_int_equal(unmap(&r->m, FAR + page * PAGE, n),
					 gone ? SKUA_CMD_ST_BAD_INDEX : 0);
			for (uint32_t k = 0; k < n && !gone; k++)
				want[page + k] = 0;
		}
	}
	for (unsigned int i = 0; i < 2048; i++) {
		uint64_t bus = 0;

		assert_int_equal(icm_translate(r->f.dev->icm, FAR + i * PAGE + 8, &bus), !!want[i]);
		if (want[i])
			assert_int_equal(bus, want[i] + 8);
	}
}

/* --- layout --- */

static int init_with(uint64_t base, uint32_t log, unsigned int table)
{
	struct skua_cmd_init_device_in in;
	struct mini m;
	struct fake f;
	int status;

	fake_init(&f, NULL);
	mini_ring_up(&m, &f);
	mini_init_in(&m, &in);
	in.icm[table].base = cpu_to_le64(base);
	in.icm[table].log_num = cpu_to_le32(log);
	status = mini_cmd(&m, SKUA_CMD_INIT_DEVICE, &in, sizeof(in), NULL, 0);
	assert_int_equal(fake_rd32(&f, SKUA_REG_STATUS) & SKUA_STATUS_OPERATIONAL,
			 status ? 0 : SKUA_STATUS_OPERATIONAL);
	fake_exit(&f);
	return status;
}

static void layout_checks(void **state)
{
	const uint64_t top = 1ull << SKUA_ICM_ADDR_BITS;

	(void)state;
	for (unsigned int t = 0; t < SKUA_ICM_TABLES; t++) {
		uint32_t max = icm_kind[t].log_max;
		uint64_t bytes = (uint64_t)icm_kind[t].size << max;

		bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
		assert_status(init_with(FAR, max, t), OK);
		assert_status(init_with(FAR, 0, t), OK);
		assert_status(init_with(FAR, max + 1, t), BAD_PARAM);
		assert_status(init_with(FAR, 0xffffffff, t), BAD_PARAM);
		assert_status(init_with(FAR + 64, max, t), BAD_PARAM);
		assert_status(init_with(top - bytes, max, t), OK);
		assert_status(init_with(top - bytes + PAGE, max, t), BAD_PARAM);
		assert_status(init_with(top, 0, t), BAD_PARAM);
		assert_status(init_with(0xfffffffffffff000ull, 0, t), BAD_PARAM);
		/* On top of the first table, or of the second. */
		assert_status(init_with(t ? 0x10000 : 0x10000 + (512 << MINI_LOG_QP), 4, t),
			      BAD_PARAM);
	}
	/* Tables that nobody knows. */
	assert_status(init_with(FAR, 0, SKUA_ICM_TABLES), BAD_PARAM);
	assert_status(init_with(0, 1, SKUA_ICM_TABLES_MAX - 1), BAD_PARAM);
}

/* A device that is told to offer few objects offers them, and has no larger tables. */
static void few_objects(void **state)
{
	const struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 9 }, .log_objects = 10 };
	struct skua_cmd_query_device_out out;
	struct skua_cmd_init_device_in in;
	struct mini m;
	struct fake f;

	(void)state;
	fake_init(&f, &cfg);
	mini_ring_up(&m, &f);
	assert_status(mini_cmd(&m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &out, sizeof(out)), OK);
	mini_init_in(&m, &in);
	for (unsigned int t = 0; t < SKUA_ICM_TABLES; t++) {
		uint32_t max = icm_kind[t].log_max;

		if (t == SKUA_ICM_MTT)
			max = 14;
		else if (max > 10)
			max = 10;
		assert_int_equal(le32_to_cpu(out.icm[t].log_max), max);
		in.icm[t].base = cpu_to_le64((uint64_t)(t + 1) << 36);
		in.icm[t].log_num = cpu_to_le32(max);
	}
	in.icm[SKUA_ICM_CQC].log_num = cpu_to_le32(11);
	assert_status(mini_cmd(&m, SKUA_CMD_INIT_DEVICE, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in.icm[SKUA_ICM_CQC].log_num = cpu_to_le32(10);
	assert_status(mini_cmd(&m, SKUA_CMD_INIT_DEVICE, &in, sizeof(in), NULL, 0), OK);
	fake_exit(&f);
}

/* --- contexts --- */

static int small_setup(void **state)
{
	struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 9 }, .onchip = 8 };
	struct rig *r = calloc(1, sizeof(*r));

	fake_init(&r->f, &cfg);
	mini_up(&r->m, &r->f);
	*state = r;
	return 0;
}

static struct skua_cmd_query_icm_cache_out cache_of(struct rig *r, uint32_t table)
{
	struct skua_cmd_query_icm_cache_out out;

	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_ICM_CACHE, table, &out, sizeof(out)), OK);
	return out;
}

static void eviction(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_query_icm_cache_out c;
	struct mini_cq cq[64];
	struct skua_cqc cqc;
	uint32_t used;

	for (unsigned int i = 0; i < 64; i++)
		mini_cq_create(&r->m, &cq[i], i % 5);
	c = cache_of(r, SKUA_ICM_CQC);
	/* The least memory that there is for contexts. */
	used = le32_to_cpu(c.used);
	assert_in_range(used, 8, 4096 / (SKUA_ICM_CQC_SIZE + CTX_TAG));
	assert_int_equal(le32_to_cpu(c.sectors), used * SKUA_ICM_CQC_SIZE / CTX_SECTOR);
	assert_int_equal(le64_to_cpu(c.writebacks), 64 - used);
	assert_int_equal(le64_to_cpu(c.misses), 0);
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (unsigned int i = 0; i < 64; i++) {
			uint32_t n = i * 37 % 64;

			assert_status(mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq[n].cqn, &cqc,
						 sizeof(cqc)), OK);
			assert_int_equal(le32_to_cpu(cqc.cqn), cq[n].cqn);
			assert_int_equal(le64_to_cpu(cqc.ring.base), cq[n].ring);
			assert_int_equal(le32_get_bits(cqc.flags, SKUA_CQC_LOG_SIZE), n % 5);
			/* The query wrote it to ICM. */
			assert_memory_equal(mini_icm(&r->m, SKUA_ICM_CQC, cq[n].cqn), &cqc,
					    sizeof(cqc));
		}
	}
	c = cache_of(r, SKUA_ICM_CQC);
	assert_true(le64_to_cpu(c.misses) >= 3 * (64 - 27));
	/* Each was written once: what has not changed since is just dropped. */
	assert_int_equal(le64_to_cpu(c.writebacks), 64);
	mini_ok(&r->m, SKUA_CMD_MODIFY_CQ, &(struct skua_cmd_modify_mod_in){
		.index = cpu_to_le32(cq[3].cqn), .moderation = cpu_to_le32(7) },
		sizeof(struct skua_cmd_modify_mod_in));
	mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq[3].cqn, &cqc, sizeof(cqc));
	for (unsigned int i = 10; i < 50; i++)
		mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq[i].cqn, &cqc, sizeof(cqc));
	c = cache_of(r, SKUA_ICM_CQC);
	assert_int_equal(le64_to_cpu(c.writebacks), 65);
	assert_int_equal(le64_to_cpu(c.mapped_pages), MINI_MAPPED * 128 / PAGE);
	/* One that stays hot is not evicted by a walk over the others. */
	for (unsigned int i = 0; i < 64; i++) {
		struct skua_cqc *ctx = ctx_get(r->f.dev, SKUA_ICM_CQC, cq[5].cqn);

		ctx_put(r->f.dev, ctx);
		mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq[6 + i % 50].cqn, &cqc, sizeof(cqc));
		assert_ptr_equal(ctx_get(r->f.dev, SKUA_ICM_CQC, cq[5].cqn), ctx);
		ctx_put(r->f.dev, ctx);
	}
}

static void not_mapped(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqc cqc = mini_cqc(&r->m, &cq, 3, 64);

	cqc.cqn = cpu_to_le32(MINI_MAPPED);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc), NULL, 0), NO_ICM);
	cqc.cqn = cpu_to_le32(1u << MINI_LOG_QP);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc), NULL, 0), BAD_INDEX);
	cqc.cqn = cpu_to_le32(0xffffffff);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc), NULL, 0), BAD_INDEX);
	cqc.cqn = cpu_to_le32(MINI_MAPPED - 1);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc), NULL, 0), OK);
	assert_null(ctx_get(r->f.dev, SKUA_ICM_CQC, MINI_MAPPED));
	assert_null(ctx_get(r->f.dev, SKUA_ICM_CQC, 0xffffffff));
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

static void unmap_in_use(void **state)
{
	struct rig *r = *state;
	uint64_t base = r->m.base[SKUA_ICM_CQC];
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 3);
	assert_status(unmap(&r->m, base, 1), BUSY);
	assert_status(unmap(&r->m, base - PAGE, 3), BAD_INDEX);
	assert_status(unmap(&r->m, base + PAGE, 1), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, cq.cqn, NULL, 0), OK);
	assert_status(unmap(&r->m, base, 1), OK);
	/* Whatever was cached of it was written before the page went. */
	assert_true(*(uint8_t *)mini_icm(&r->m, SKUA_ICM_CQC, cq.cqn) == 0);
	assert_null(ctx_get(r->f.dev, SKUA_ICM_CQC, cq.cqn));
	assert_status(mini_map(&r->m, base, r->m.icm[SKUA_ICM_CQC], 0), OK);
}

/* Evict everything of the CQC table from the small cache. */
static void sweep(struct rig *r)
{
	for (uint32_t i = 100; i < 140; i++)
		ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_CQC, i));
}

static void read_fault(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 3);
	sweep(r);
	fake_hole(&r->f, r->m.icm[SKUA_ICM_CQC], PAGE);
	mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, NULL, 128);
	assert_int_equal(r->f.dev->fatal, SKUA_FATAL_ICM_DMA);
	assert_true(fake_rd32(&r->f, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
}

static void write_back_fault(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_eqe eqe;

	mini_cq_create(&r->m, &cq, 3);
	fake_hole(&r->f, r->m.icm[SKUA_ICM_CQC], 128);
	for (uint32_t i = 100; i < 140 && r->f.dev->state == DEV_OPERATIONAL; i++) {
		void *ctx = ctx_get(r->f.dev, SKUA_ICM_CQC, i);

		if (ctx)
			ctx_put(r->f.dev, ctx);
	}
	assert_int_equal(r->f.dev->fatal, SKUA_FATAL_ICM_DMA);
	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_FATAL);
}

static void corrupt(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqc *cqc;

	mini_cq_create(&r->m, &cq, 3);
	sweep(r);
	cqc = mini_icm(&r->m, SKUA_ICM_CQC, cq.cqn);
	assert_int_equal(le32_to_cpu(cqc->cqn), cq.cqn);
	le32p_replace_bits(&cqc->flags, 31, SKUA_CQC_LOG_SIZE);
	mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, NULL, 128);
	assert_int_equal(r->f.dev->fatal, SKUA_FATAL_ICM_CORRUPT);
}

/* Memory of the host alone makes no object. */
static void forged(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqc *cqc = mini_icm(&r->m, SKUA_ICM_CQC, 50);

	mini_cq_create(&r->m, &cq, 3);
	mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, cqc, sizeof(*cqc));
	cqc->cqn = cpu_to_le32(50);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_CQ, 50, NULL, 128), BAD_INDEX);
	assert_counts(&r->m, BAD_DB_QP, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 0, 50));
}

static void pins(void **state)
{
	struct rig *r = *state;
	uint8_t *ctx[5];

	for (uint32_t i = 0; i < 5; i++) {
		ctx[i] = ctx_new(r->f.dev, SKUA_ICM_RRC, i);
		ctx[i][0] = i + 1;
	}
	/* Most of the memory is pinned: the rest goes through what is left. */
	for (uint32_t i = 5; i < 100; i++) {
		uint8_t *other = ctx_get(r->f.dev, SKUA_ICM_RRC, i);

		assert_non_null(other);
		assert_int_equal(other[0], 0);
		ctx_put(r->f.dev, other);
	}
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(ctx[i][0], i + 1);
		ctx_put(r->f.dev, ctx[i]);
	}
	sweep(r);
	for (uint32_t i = 5; i < 100; i++)
		ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_RRC, i));
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(*(uint8_t *)mini_icm(&r->m, SKUA_ICM_RRC, i), i + 1);
}

/* --- MTT --- */

static void mtt_lines(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_sync_mtt_in sync = { .index = cpu_to_le64(8), .count = cpu_to_le32(8) };
	__le64 *mtt = mini_icm(&r->m, SKUA_ICM_MTT, 0);
	struct skua_cmd_query_icm_cache_out c;
	uint64_t entry, reads;

	for (unsigned int i = 0; i < 64; i++)
		mtt[i] = cpu_to_le64(i * 0x1000 + 1);
	reads = r->f.reads;
	for (unsigned int i = 0; i < 64; i++) {
		assert_int_equal(mtt_get(r->f.dev, i, &entry), 0);
		assert_int_equal(entry, i * 0x1000 + 1);
	}
	assert_int_equal(r->f.reads - reads, 64 / SKUA_MTT_GROUP);
	/* What is cached stays so until it is synchronised. */
	mtt[9] = cpu_to_le64(0xabc001);
	mtt[17] = cpu_to_le64(0xdef001);
	mtt_get(r->f.dev, 9, &entry);
	assert_int_equal(entry, 9 * 0x1000 + 1);
	mini_ok(&r->m, SKUA_CMD_SYNC_MTT, &sync, sizeof(sync));
	mtt_get(r->f.dev, 9, &entry);
	assert_int_equal(entry, 0xabc001);
	mtt_get(r->f.dev, 17, &entry);
	assert_int_equal(entry, 17 * 0x1000 + 1);
	sync.index = 0;
	sync.count = cpu_to_le32(1u << MINI_LOG_MTT);
	mini_ok(&r->m, SKUA_CMD_SYNC_MTT, &sync, sizeof(sync));
	mtt_get(r->f.dev, 17, &entry);
	assert_int_equal(entry, 0xdef001);
	c = cache_of(r, SKUA_ICM_MTT);
	assert_int_equal(le64_to_cpu(c.misses), 64 / SKUA_MTT_GROUP + 2);
	assert_int_equal(le32_to_cpu(c.used), 1);

	sync.count = cpu_to_le32((1u << MINI_LOG_MTT) + 1);
	assert_status(mini_cmd(&r->m, SKUA_CMD_SYNC_MTT, &sync, sizeof(sync), NULL, 0), BAD_INDEX);
	sync.count = cpu_to_le32(0xffffffff);
	sync.index = cpu_to_le64(0xfffffffffffffff0ull);
	assert_status(mini_cmd(&r->m, SKUA_CMD_SYNC_MTT, &sync, sizeof(sync), NULL, 0), BAD_INDEX);
	assert_int_not_equal(mtt_get(r->f.dev, 1ull << MINI_LOG_MTT, &entry), 0);
	/* In the table, but not mapped: an error of the access, not of the device. */
	assert_int_not_equal(mtt_get(r->f.dev, 8 * MINI_MAPPED, &entry), 0);
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

#define small_test(fn)	cmocka_unit_test_setup_teardown(fn, small_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(map_checks),
		rig_test(map_sum),
		rig_test(map_overlap),
		rig_test(map_strewn),
		rig_test(many_lives),
		rig_test(map_random),
		cmocka_unit_test(layout_checks),
		cmocka_unit_test(few_objects),
		small_test(eviction),
		rig_test(not_mapped),
		rig_test(unmap_in_use),
		small_test(read_fault),
		small_test(write_back_fault),
		small_test(corrupt),
		small_test(forged),
		small_test(pins),
		rig_test(mtt_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
