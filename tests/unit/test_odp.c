// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions: what they may look like, sparse ones, the events and the tokens
 * of their faults, and the other kinds of queues that use them.
 */
#include <skua/wqe_build.h>

#include "odp.h"
#include "roce/engine.h"

static int create(struct odp *o, int i, const struct skua_mpt *mpt)
{
	return mini_cmd(odp_m(o, i), SKUA_CMD_CREATE_MPT, mpt, sizeof(*mpt), NULL, 0);
}

/* A WRITE of side 0 from its region at @off to @rkey, at @roff. */
static void post_write(struct odp *o, uint32_t lkey, uint64_t off, uint32_t rkey, uint64_t roff,
		       uint32_t len)
{
	rc_post(&o->rc, 0, &(struct rc_wr){
		.op = SKUA_WQE_WRITE, .nsge = 1, .roff = roff, .rkey = rkey,
		.sge[0] = { .addr = RC_VA + off, .lkey = lkey, .len = len },
	});
	rc_pump(&o->rc);
}

static uint64_t cnt(struct odp *o, int i, enum skua_counter c)
{
	return rc_cnt(&o->rc, i, c);
}

/* --- regions --- */

#define SUB(mpt, n)	le32p_replace_bits(&(mpt).xlat.mode, n, SKUA_XLAT_LOG_SUB)
#define MID(mpt, n)	le32p_replace_bits(&(mpt).xlat.mode, n, SKUA_XLAT_LOG_MID)
#define LOG(mpt, n)	le32p_replace_bits(&(mpt).xlat.mode, n, SKUA_XLAT_LOG_PAGE)
#define MODE(mpt, n)	le32p_replace_bits(&(mpt).xlat.mode, n, SKUA_XLAT_MODE)

static void what_a_region_may_be(void **state)
{
	struct skua_mpt good, in;
	struct odp o;

	(void)state;
	odp_open(&o, NULL, 4);
	good = odp_mpt(&o, 0, odp_mtts(&o, 0, 8), 8);
#define refuse(change) do { in = good; change; assert_status(create(&o, 0, &in), BAD_PARAM); } while (0)
#define assert_status(call, status)	assert_int_equal(call, SKUA_CMD_ST_##status)
	refuse(MODE(in, SKUA_XLAT_CONTIG));
	refuse(MODE(in, SKUA_XLAT_INLINE));
	refuse(in.flags |= cpu_to_le32(SKUA_MPT_DM));
	refuse(in.flags |= cpu_to_le32(SKUA_MPT_NULL));
	refuse(in.flags |= cpu_to_le32(SKUA_MPT_FAST_REG));
	refuse(in.flags |= cpu_to_le32(SKUA_MPT_MW2 << 4));
	refuse(SUB(in, 12));
	refuse(LOG(in, 11));
	refuse(in.xlat.offset = cpu_to_le32(1));
	refuse(in.npages = cpu_to_le32(7));
	refuse(in.npages = cpu_to_le32(1u << MINI_LOG_MTT));
	refuse(in.page[0] = cpu_to_le64(1));
	/* A directory is one of an on-demand region only. */
	refuse(MODE(in, SKUA_XLAT_DIR); SUB(in, 12); in.flags &= ~cpu_to_le32(SKUA_MPT_ODP));
	refuse(MODE(in, SKUA_XLAT_DIR); SUB(in, 11));
	refuse(MODE(in, SKUA_XLAT_DIR); SUB(in, 13));
	refuse(MODE(in, SKUA_XLAT_DIR));
	/* A second level covers no less than a page, and no more than the first. */
	refuse(MID(in, 12));
	refuse(MODE(in, SKUA_XLAT_DIR); LOG(in, 20); SUB(in, 12); MID(in, 11));
	refuse(MODE(in, SKUA_XLAT_DIR); LOG(in, 20); SUB(in, 13); MID(in, 12));
	refuse(MODE(in, SKUA_XLAT_DIR); LOG(in, 20); SUB(in, 12); MID(in, 21));
	refuse(MODE(in, SKUA_XLAT_DIR); LOG(in, 49); SUB(in, 12));
	refuse(MODE(in, SKUA_XLAT_DIR); LOG(in, 40); SUB(in, 32));
	MODE(good, SKUA_XLAT_DIR);
	LOG(good, 31);
	SUB(good, 31);
	assert_status(create(&o, 0, &good), OK);
	good.key = cpu_to_le32((o.rc.s[0].m.next_mpt++ << 8) | 0x0d);
	LOG(good, 48);
	MID(good, 48);
	SUB(good, 12);
	assert_status(create(&o, 0, &good), OK);
	odp_close(&o);
}

static void not_without_the_capability(void **state)
{
	struct skua_cmd_resume_fault_in in = { .token = cpu_to_le32(1) };
	struct skua_mpt mpt;
	struct odp o = { 0 };

	(void)state;
	rc_open(&o.rc, &(struct rc_opt){ .no_caps = SKUA_CAP_ODP });
	mpt = odp_mpt(&o, 0, odp_mtts(&o, 0, 8), 8);
	assert_status(create(&o, 0, &mpt), BAD_PARAM);
	assert_int_equal(mini_cmd(odp_m(&o, 0), SKUA_CMD_RESUME_PAGE_FAULT, &in, sizeof(in), NULL,
				  0), SKUA_CMD_ST_BAD_OPCODE);
	odp_close(&o);
}

/**
 * struct sparse - a sparse region of side 1: 64 blocks of 64 KiB
 * @dir: first entry of the directory, in ICM that is not mapped but for the first page
 * @list: of one block, in ICM that is mapped
 */
struct sparse {
	struct odp o;
	uint32_t key;
	uint32_t dir, list;
};

#define BLOCK		(64u << 10)
#define BLOCK_PAGES	(BLOCK / PAGE)
/* Entries of the MTT that mini maps, and that it lays out. */
#define MTT_MAPPED	(8 * MINI_MAPPED)
#define MTT_ALL		(1u << MINI_LOG_MTT)

static void sparse_open(struct sparse *s, uint32_t dir)
{
	struct skua_mpt mpt;

	odp_open(&s->o, NULL, 4);
	s->list = odp_mtts(&s->o, 1, BLOCK_PAGES);
	s->dir = dir ? dir : odp_mtts(&s->o, 1, 64);
	mpt = odp_mpt(&s->o, 1, s->dir, 64);
	MODE(mpt, SKUA_XLAT_DIR);
	LOG(mpt, 16);
	SUB(mpt, 12);
	mpt.len = cpu_to_le64(64ull * BLOCK);
	s->key = le32_to_cpu(mpt.key);
	assert_status(create(&s->o, 1, &mpt), OK);
}

/* A block's list is there from now on. */
static void sparse_link(struct sparse *s, unsigned int block, uint64_t list)
{
	mtt_set(&s->o, 1, s->dir + block, list << 12 | SKUA_MTT_PRESENT);
}

static void sparse_region(void **state)
{
	struct skua_eqe_fault f;
	struct sparse s;
	uint64_t off = 5 * BLOCK - 100;

	(void)state;
	sparse_open(&s, 0);
	rc_fill(s.o.rc.s[0].buf, 8192, 1);
	/* Neither block nor page: the rest of the message is wanted, in what block ever. */
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, off, 4000);
	assert_true(odp_fault(&s.o, 1, &f));
	assert_int_equal(le32_to_cpu(f.key), s.key);
	assert_int_equal(le64_to_cpu(f.va), RC_VA + off);
	assert_int_equal(le32_to_cpu(f.len), 4000);
	/* A list with one page of two. */
	mtt_set(&s.o, 1, s.list + BLOCK_PAGES - 1, s.o.s[1].page[3] | RW);
	sparse_link(&s, 4, s.list);
	assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
	rc_pump_for(&s.o.rc, 2 * MS);
	assert_true(odp_fault(&s.o, 1, &f));
	assert_int_equal(le64_to_cpu(f.va), RC_VA + 5 * BLOCK);
	assert_int_equal(le32_to_cpu(f.len), 3900);
	/* Of a packet that misses nothing is placed. */
	for (unsigned int k = 0; k < PAGE; k++)
		assert_int_equal(((uint8_t *)fake_ptr(&s.o.rc.s[1].f, s.o.s[1].page[3]))[k], 0);
	mtt_set(&s.o, 1, s.list, s.o.s[1].page[5] | RW);
	sparse_link(&s, 5, s.list);
	assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
	rc_pump_for(&s.o.rc, 2 * MS);
	rc_expect(&s.o.rc, 0, false, SKUA_CQE_OK);
	assert_memory_equal(fake_ptr(&s.o.rc.s[1].f, s.o.s[1].page[3] + PAGE - 100),
			    s.o.rc.s[0].buf, 100);
	assert_memory_equal(fake_ptr(&s.o.rc.s[1].f, s.o.s[1].page[5]), s.o.rc.s[0].buf + 100,
			    3900);
	odp_close(&s.o);
}

/*
 * Two levels: each entry of the first covers four blocks by a directory of its own, which
 * is named when it has an entry.
 */
static void sparse_in_two_levels(void **state)
{
	struct skua_eqe_fault f;
	struct skua_mpt mpt;
	struct sparse s;
	uint32_t mid[2];
	uint64_t off = 8 * BLOCK - 100;

	(void)state;
	sparse_open(&s, 0);
	for (unsigned int k = 0; k < N(mid); k++)
		mid[k] = odp_mtts(&s.o, 1, 8);
	mpt = odp_mpt(&s.o, 1, s.dir, 16);
	MODE(mpt, SKUA_XLAT_DIR);
	LOG(mpt, 18);
	MID(mpt, 16);
	SUB(mpt, 12);
	mpt.len = cpu_to_le64(64ull * BLOCK);
	s.key = le32_to_cpu(mpt.key);
	assert_status(create(&s.o, 1, &mpt), OK);
	rc_fill(s.o.rc.s[0].buf, 8192, 2);
	/* Nothing; then what has no list; then what has no page; from block 7 to block 8. */
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, off, 4000);
	assert_true(odp_fault(&s.o, 1, &f));
	assert_int_equal(le64_to_cpu(f.va), RC_VA + off);
	assert_int_equal(le32_to_cpu(f.len), 4000);
	sparse_link(&s, 1, mid[0]);
	assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
	rc_pump_for(&s.o.rc, 50 * MS);
	assert_true(odp_fault(&s.o, 1, &f));
	assert_int_equal(le64_to_cpu(f.va), RC_VA + off);
	mtt_set(&s.o, 1, s.list + BLOCK_PAGES - 1, s.o.s[1].page[3] | RW);
	mtt_set(&s.o, 1, mid[0] + 3, (uint64_t)s.list << 12 | SKUA_MTT_PRESENT);
	assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
	rc_pump_for(&s.o.rc, 50 * MS);
	assert_true(odp_fault(&s.o, 1, &f));
	assert_int_equal(le64_to_cpu(f.va), RC_VA + 8 * BLOCK);
	assert_int_equal(le32_to_cpu(f.len), 3900);
	mtt_set(&s.o, 1, s.list, s.o.s[1].page[5] | RW);
	mtt_set(&s.o, 1, mid[1], (uint64_t)s.list << 12 | SKUA_MTT_PRESENT);
	sparse_link(&s, 2, mid[1]);
	assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
	rc_pump_for(&s.o.rc, 50 * MS);
	rc_expect(&s.o.rc, 0, false, SKUA_CQE_OK);
	assert_memory_equal(fake_ptr(&s.o.rc.s[1].f, s.o.s[1].page[3] + PAGE - 100),
			    s.o.rc.s[0].buf, 100);
	assert_memory_equal(fake_ptr(&s.o.rc.s[1].f, s.o.s[1].page[5]), s.o.rc.s[0].buf + 100,
			    3900);
	/* A directory of the second level that lies behind the table's end. */
	sparse_link(&s, 5, MTT_ALL);
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, 20 * BLOCK, 8);
	rc_expect(&s.o.rc, 0, false, SKUA_CQE_REM_OP_ERR);
	odp_close(&s.o);
}

/* A list goes to another block: what was known of it is forgotten with SYNC_MTT. */
static void list_used_again(void **state)
{
	struct skua_eqe_fault f;
	struct sparse s;

	(void)state;
	sparse_open(&s, 0);
	mtt_set(&s.o, 1, s.list, s.o.s[1].page[0] | RW);
	sparse_link(&s, 1, s.list);
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, BLOCK, 8);
	rc_expect(&s.o.rc, 0, false, SKUA_CQE_OK);
	mtt_set(&s.o, 1, s.dir + 1, 0);
	mtt_sync(&s.o, 1, s.dir + 1, 1);
	mtt_set(&s.o, 1, s.list, 0);
	mtt_sync(&s.o, 1, s.list, BLOCK_PAGES);
	sparse_link(&s, 2, s.list);
	for (unsigned int block = 1; block < 3; block++) {
		post_write(&s.o, s.o.rc.s[0].key, 0, s.key, block * BLOCK, 8);
		assert_true(odp_fault(&s.o, 1, &f));
		assert_int_equal(le64_to_cpu(f.va), RC_VA + block * BLOCK);
		mtt_set(&s.o, 1, s.list + (block == 1), s.o.s[1].page[block] | RW);
		if (block == 1)
			sparse_link(&s, 1, s.list + 1);
		assert_int_equal(odp_resume(&s.o, 1, &f, 0), 0);
		rc_pump_for(&s.o.rc, 2 * MS);
		rc_expect(&s.o.rc, 0, false, SKUA_CQE_OK);
	}
	odp_close(&s.o);
}

/* ICM of a directory, and of a list, that nobody mapped: nothing is there. */
static void icm_not_mapped(void **state)
{
	struct skua_eqe_fault f;
	struct sparse s;

	(void)state;
	sparse_open(&s, MTT_ALL - 64);
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, 0, 8);
	assert_true(odp_fault(&s.o, 1, &f));
	/* SYNC_MTT of it is no error either. */
	mtt_sync(&s.o, 1, MTT_ALL - 64, 64);
	assert_int_equal(odp_resume(&s.o, 1, &f, 1), 0);
	rc_pump_for(&s.o.rc, 2 * MS);
	rc_expect(&s.o.rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
	odp_close(&s.o);
	sparse_open(&s, 0);
	sparse_link(&s, 0, MTT_MAPPED);
	post_write(&s.o, s.o.rc.s[0].key, 0, s.key, 0, 8);
	assert_true(odp_fault(&s.o, 1, &f));
	odp_close(&s.o);
}

/* Entries that software must not write: an error, at once, of that QP. */
static void entries_of_nonsense(void **state)
{
	static const struct {
		uint64_t dir, page;
	} cases[] = {
		/* Lists behind the table's end. */
		{ (uint64_t)MTT_ALL << 12 | SKUA_MTT_PRESENT, 0 },
		{ ~0ull, 0 },
		/* No such bus address. */
		{ 0, ~0ull },
		{ 0, 0x7ffffffffffff000 | RW },
	};

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		struct sparse s;

		sparse_open(&s, 0);
		mtt_set(&s.o, 1, s.list, cases[k].page);
		mtt_set(&s.o, 1, s.dir, cases[k].dir ? cases[k].dir :
			(uint64_t)s.list << 12 | SKUA_MTT_PRESENT);
		post_write(&s.o, s.o.rc.s[0].key, 0, s.key, 0, 8);
		rc_expect(&s.o.rc, 0, false, SKUA_CQE_REM_OP_ERR);
		rc_expect_event(&s.o.rc, 1, SKUA_QP_EV_FATAL);
		odp_close(&s.o);
	}
}

/* Rights and bounds come first: who may not have the page does not fault it in. */
static void rights_before_pages(void **state)
{
	static const struct {
		uint64_t roff;
		uint32_t len;
		bool other;
	} cases[] = { { ODP_LEN, 1, false }, { ODP_LEN - 4, 8, false }, { 0, 8, true } };

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		struct skua_eqe_fault f;
		struct odp o;

		odp_open(&o, NULL, 4);
		post_write(&o, o.rc.s[0].key, 0, o.s[1].key ^ (cases[k].other ? 1 : 0),
			   cases[k].roff, cases[k].len);
		rc_expect(&o.rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
		assert_false(odp_fault(&o, 1, &f));
		odp_close(&o);
	}
}

/* A window's fault is its region's: software knows no windows. */
static void window_over_a_region(void **state)
{
	struct skua_mpt mw;
	struct skua_eqe_fault f;
	struct odp o;
	uint32_t key;

	(void)state;
	odp_open(&o, NULL, 4);
	key = odp_m(&o, 1)->next_mpt++ << 8;
	mw = (struct skua_mpt){
		.key = cpu_to_le32(key),
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 le32_encode_bits(SKUA_MPT_MW1, SKUA_MPT_TYPE),
		.pd = cpu_to_le32(MINI_PD),
	};
	assert_status(create(&o, 1, &mw), OK);
	rc_post(&o.rc, 1, &(struct rc_wr){ .op = SKUA_WQE_BIND_MW, .bind = {
		.mw_key = cpu_to_le32(key), .new_key = cpu_to_le32(key | 1),
		.mr_key = cpu_to_le32(o.s[1].key),
		.access = cpu_to_le32(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_ZERO_BASED),
		.va = cpu_to_le64(RC_VA + 2 * PAGE), .len = cpu_to_le64(3 * PAGE),
	} });
	rc_pump(&o.rc);
	rc_expect(&o.rc, 1, false, SKUA_CQE_OK);
	/* Byte 5000 of the window; rc_post() counts from RC_VA. */
	post_write(&o, o.rc.s[0].key, 0, key | 1, 5000 - RC_VA, 100);
	assert_true(odp_fault(&o, 1, &f));
	odp_fault_ok(&o, 1, &f);
	assert_int_equal(le64_to_cpu(f.va), RC_VA + 2 * PAGE + 5000);
	odp_serve(&o, 1, &f, 1);
	rc_pump_for(&o.rc, 2 * MS);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	odp_close(&o);
}

/* --- tokens and events --- */

static void tokens_that_are_none(void **state)
{
	struct skua_cmd_resume_fault_in in = { 0 };
	struct skua_eqe_fault f;
	uint32_t token, tried = 0;
	struct odp o;

	(void)state;
	odp_open(&o, NULL, 4);
#define resume(t, e) (in.token = cpu_to_le32(t), in.error = cpu_to_le32(e),		\
	mini_cmd(odp_m(&o, 1), SKUA_CMD_RESUME_PAGE_FAULT, &in, sizeof(in), NULL, 0))
	post_write(&o, o.rc.s[0].key, 0, o.s[1].key, 0, 8);
	assert_true(odp_fault(&o, 1, &f));
	token = le32_get_bits(f.token, SKUA_EQE_FAULT_TOKEN);
	assert_status(resume(token | SKUA_EQE_FAULT_WRITE, 0), BAD_PARAM);
	assert_status(resume(token, 2), BAD_PARAM);
	assert_status(resume(token, ~0u), BAD_PARAM);
	assert_status(resume(0, 0), BAD_INDEX);
	for (unsigned int bit = 0; bit < 31; bit++, tried++)
		assert_status(resume(token ^ 1u << bit, tried % 2), BAD_INDEX);
	assert_int_equal(cnt(&o, 1, SKUA_CNT_PAGE_FAULT_RESUMED), 0);
	odp_give_all(&o, 1);
	assert_status(resume(token, 0), OK);
	assert_status(resume(token, 1), BAD_INDEX);
	rc_pump_for(&o.rc, 2 * MS);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	odp_close(&o);
}

/* @num QPs of side 0 besides the first, each with a WRITE from the page of its number. */
static void many_faults(struct odp *o, struct mini_qp *qp, unsigned int num,
			const struct rc_opt *opt)
{
	struct rc *rc = &o->rc;

	for (unsigned int k = 0; k < num; k++) {
		struct skua_qp_attr attr = rc_attr(rc, 0, opt, rc->s[1].qp.qpn);

		rc_qp(rc, 0, &qp[k], opt);
		mini_rc_to_rts(&rc->s[0].m, &qp[k], &attr);
		rc_post_quiet(rc, 0, &qp[k], &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .nsge = 1,
			.sge[0] = { .addr = RC_VA + k * PAGE, .lkey = o->s[0].key, .len = 8 },
		});
		mini_ring(&rc->s[0].m, &qp[k]);
	}
	rc_pump(rc);
}

/* One place in the EQ, nine QPs: each is told of, in its turn, and none twice. */
static void full_eq(void **state)
{
	const struct rc_opt opt = { 0 };
	struct mini_qp qp[9];
	struct skua_eqe eqe;
	struct skua_eqe_fault f;
	bool seen[9] = { 0 };
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 0);
	many_faults(&o, qp, 9, &opt);
	assert_true(cnt(&o, 0, SKUA_CNT_EQ_FULL) == 8);
	/* One that waits for room goes, another is reset. */
	assert_int_equal(mini_index(odp_m(&o, 0), SKUA_CMD_DESTROY_QP, qp[4].qpn, NULL, 0), 0);
	assert_int_equal(mini_qp_modify(odp_m(&o, 0), &qp[6], SKUA_QP_RESET, 0, &o.rc.s[0].attr),
			 0);
	for (unsigned int n = 0; n < 7; n++) {
		unsigned int k;

		assert_true(mini_eq_next(odp_m(&o, 0), &o.s[0].eq, &eqe));
		memcpy(&f, &eqe, sizeof(f));
		k = (unsigned int)((le64_to_cpu(f.va) - RC_VA) / PAGE);
		assert_int_equal(le32_to_cpu(f.qpn), qp[k].qpn);
		assert_false(seen[k]);
		seen[k] = true;
		mini_eq_db(odp_m(&o, 0), &o.s[0].eq, true);
		fake_run(&o.rc.s[0].f);
	}
	assert_false(seen[4]);
	assert_false(seen[6]);
	assert_false(mini_eq_next(odp_m(&o, 0), &o.s[0].eq, &eqe));
	odp_close(&o);
}

/* A fault is settled while its event waits: then there is none to come. */
static void settled_before_it_was_told(void **state)
{
	const struct rc_opt opt = { 0 };
	struct skua_eqe_fault first, f;
	struct mini_qp qp[2];
	struct skua_cmd_query_qp_out out;
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 0);
	many_faults(&o, qp, 2, &opt);
	assert_int_equal(mini_index(odp_m(&o, 0), SKUA_CMD_QUERY_QP, qp[1].qpn, &out, sizeof(out)),
			 0);
	assert_true(le32_to_cpu(out.sqc.fault.flags) & SKUA_FAULT_PENDING);
	f.token = out.sqc.fault.token;
	odp_give_all(&o, 0);
	assert_int_equal(odp_resume(&o, 0, &f, 0), 0);
	assert_true(odp_fault(&o, 0, &first));
	assert_int_equal(le32_to_cpu(first.qpn), qp[0].qpn);
	fake_run(&o.rc.s[0].f);
	assert_false(odp_fault(&o, 0, &f));
	odp_close(&o);
}

/* Another EQ takes what waits. */
static void other_fault_eq(void **state)
{
	const struct rc_opt opt = { 0 };
	struct skua_eqe_fault f;
	struct mini_qp qp[3];
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 0);
	many_faults(&o, qp, 3, &opt);
	assert_true(odp_fault(&o, 0, &f));
	fake_run(&o.rc.s[0].f);
	odp_fault_eq(&o, 0, SKUA_NO_EQ);
	assert_true(odp_fault(&o, 0, &f));
	assert_false(odp_fault(&o, 0, &f));
	assert_int_equal(mini_eq_create(odp_m(&o, 0), &o.s[0].eq, MINI_EQS + 1, 3, 0, 0), 0);
	odp_fault_eq(&o, 0, MINI_EQS + 1);
	assert_true(odp_fault(&o, 0, &f));
	odp_close(&o);
}

/* --- what waits and what does not --- */

/* Both sides of a QP wait at once, for what each of them lacks. */
static void both_sides_wait(void **state)
{
	struct skua_eqe_fault f, g;
	struct odp o;

	(void)state;
	odp_open(&o, NULL, 4);
	post_write(&o, o.s[0].key, 0, o.rc.s[1].key, 0, 8);
	rc_post(&o.rc, 1, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .rkey = o.s[0].key,
					   .roff = PAGE });
	rc_pump(&o.rc);
	assert_true(odp_fault(&o, 0, &f));
	assert_true(odp_fault(&o, 0, &g));
	assert_int_not_equal(f.token, g.token);
	odp_serve(&o, 0, &g, 1);
	rc_pump_for(&o.rc, 2 * MS);
	if (le64_to_cpu(g.va) == RC_VA) {
		rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
		rc_expect_none(&o.rc, 1, false);
	} else {
		rc_expect(&o.rc, 1, false, SKUA_CQE_OK);
		rc_expect_none(&o.rc, 0, false);
	}
	odp_serve(&o, 0, &f, 1);
	rc_pump_for(&o.rc, 2 * MS);
	rc_expect(&o.rc, le64_to_cpu(f.va) == RC_VA ? 0 : 1, false, SKUA_CQE_OK);
	odp_close(&o);
}

/* What was sent before completes, what comes behind waits; drained is what is done. */
static void order_is_kept(void **state)
{
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	odp_open(&o, NULL, 4);
	for (unsigned int k = 0; k < 3; k++) {
		uint32_t key = k == 1 ? o.s[0].key : o.rc.s[0].key;

		rc_post(&o.rc, 0, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .nsge = 1, .roff = k * 64,
			.sge[0] = { .addr = RC_VA, .lkey = key, .len = 8 },
		});
	}
	rc_pump_for(&o.rc, 100 * MS);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&o.rc, 0, false);
	assert_int_equal(mini_qp_modify(odp_m(&o, 0), &o.rc.s[0].qp, SKUA_QP_SQD,
					SKUA_QP_M_SQD_NOTIFY, &o.rc.s[0].attr), 0);
	rc_pump(&o.rc);
	rc_expect_no_event(&o.rc, 0);
	assert_true(odp_fault(&o, 0, &f));
	odp_serve(&o, 0, &f, 1);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect_event(&o.rc, 0, SKUA_QP_EV_SQ_DRAINED);
	rc_expect_none(&o.rc, 0, false);
	assert_int_equal(mini_qp_modify(odp_m(&o, 0), &o.rc.s[0].qp, SKUA_QP_RTS, 0,
					&o.rc.s[0].attr), 0);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	odp_close(&o);
}

/* Before a WQE that fails for want of a page others are under way: they are done first. */
static void earlier_ones_complete_first(void **state)
{
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	odp_open(&o, NULL, 4);
	rc_post(&o.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 200000 });
	rc_post(&o.rc, 0, &(struct rc_wr){
		.op = SKUA_WQE_WRITE, .nsge = 1,
		.sge[0] = { .addr = RC_VA, .lkey = o.s[0].key, .len = 8 },
	});
	fake_run(&o.rc.s[0].f);
	assert_true(odp_fault(&o, 0, &f));
	assert_int_equal(odp_resume(&o, 0, &f, 1), 0);
	fake_run(&o.rc.s[0].f);
	rc_expect_none(&o.rc, 0, false);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect(&o.rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_false(odp_fault(&o, 0, &f));
	odp_close(&o);
}

/* What the device wrote was seen when its page went: a FLUSH has nothing to wait for. */
static void flush_does_not_wait(void **state)
{
	const struct rc_opt opt = { .access = SKUA_ACCESS_FLUSH_GLOBAL };
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 4);
	for (uint32_t sel = SKUA_WQE_FLUSH_RANGE; sel <= SKUA_WQE_FLUSH_MR; sel++) {
		rc_post(&o.rc, 0, &(struct rc_wr){
			.op = SKUA_WQE_FLUSH, .rkey = o.s[1].key, .imm = 100,
			.flush = SKUA_WQE_FLUSH_GLOBAL | u32_encode_bits(sel, IB_FETH_SELECT_MASK),
		});
		rc_pump(&o.rc);
		rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	}
	assert_false(odp_fault(&o, 1, &f));
	odp_close(&o);
}

/* --- other services --- */

/* A datagram waits at its sender; at its receiver it is lost, and the page comes. */
static void datagrams(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UD };
	struct skua_eqe_fault f;
	struct rc_wr wr = { .op = SKUA_WQE_SEND, .nsge = 1 };
	struct sge to = { .addr = RC_VA + 100, .len = 200 };
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 4);
	to.lkey = o.s[1].key;
	wr.sge[0] = (struct sge){ .addr = RC_VA, .lkey = o.s[0].key, .len = 40 };
	rc_recv_sge(&o.rc, 1, &to, 1);
	rc_post(&o.rc, 0, &wr);
	rc_pump_for(&o.rc, 10 * MS);
	rc_expect_none(&o.rc, 0, false);
	assert_true(odp_fault(&o, 0, &f));
	odp_serve(&o, 0, &f, 1);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&o.rc, 1, true);
	assert_true(odp_fault(&o, 1, &f));
	/* Lost as well, and no second fault. */
	rc_post(&o.rc, 0, &wr);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&o.rc, 1, true);
	odp_serve(&o, 1, &f, 1);
	rc_post(&o.rc, 0, &wr);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
	rc_expect(&o.rc, 1, true, SKUA_CQE_OK);
	assert_false(odp_fault(&o, 1, &f));
	/* Neither end of a datagram's way that has no page goes on. */
	odp_take_all(&o, 0);
	rc_post(&o.rc, 0, &wr);
	rc_pump(&o.rc);
	assert_true(odp_fault(&o, 0, &f));
	assert_int_equal(odp_resume(&o, 0, &f, 1), 0);
	rc_pump(&o.rc);
	rc_expect(&o.rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(rc_state(&o.rc, 0), SKUA_QP_SQE);
	odp_close(&o);
}

static void datagram_receive_fails(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UD };
	struct skua_eqe_fault f;
	struct sge to = { .addr = RC_VA, .len = 200 };
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 4);
	to.lkey = o.s[1].key;
	rc_recv_sge(&o.rc, 1, &to, 1);
	for (unsigned int k = 0; k < 2; k++) {
		rc_post(&o.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 40 });
		rc_pump(&o.rc);
		rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
		if (!k) {
			assert_true(odp_fault(&o, 1, &f));
			assert_int_equal(odp_resume(&o, 1, &f, 1), 0);
		}
	}
	rc_expect(&o.rc, 1, true, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(rc_state(&o.rc, 1), SKUA_QP_ERR);
	odp_close(&o);
}

/* UC: a message without its page is lost, the next one is not. */
static void unreliable_connections(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UC, .mtu_code = 3 };
	struct sge to = { .addr = RC_VA, .len = 3 * PAGE };
	struct odp o;

	(void)state;
	for (unsigned int send = 0; send < 2; send++) {
		odp_open(&o, &opt, 4);
		to.lkey = o.s[1].key;
		rc_fill(o.rc.s[0].buf, 3 * PAGE, 1);
		if (send)
			rc_recv_sge(&o.rc, 1, &to, 1);
		for (unsigned int k = 0; k < 4; k++) {
			struct rc_wr wr = {
				.op = send ? SKUA_WQE_SEND : SKUA_WQE_WRITE,
				.rkey = o.s[1].key, .len = 3 * PAGE,
			};

			rc_post(&o.rc, 0, &wr);
			rc_pump(&o.rc);
			rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
			if (send && k == 3)
				rc_expect(&o.rc, 1, true, SKUA_CQE_OK);
			else
				rc_expect_none(&o.rc, 1, true);
			odp_run(&o, 1, 1);
		}
		assert_int_equal(o.s[1].faults, 3);
		for (unsigned int n = 0; n < 3; n++)
			assert_memory_equal(fake_ptr(&o.rc.s[1].f, o.s[1].page[n]),
					    o.rc.s[0].buf + n * PAGE, PAGE);
		assert_int_equal(rc_state(&o.rc, 1), SKUA_QP_RTS);
		odp_close(&o);
	}
}

/* UC: that a page cannot be had once does not mean that it never can. */
static void unreliable_write_tries_again(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UC };
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	odp_open(&o, &opt, 4);
	for (unsigned int k = 0; k < 4; k++) {
		post_write(&o, o.rc.s[0].key, 0, o.s[1].key, 0, 8);
		rc_expect(&o.rc, 0, false, SKUA_CQE_OK);
		/* Every other one only finds that the last was in vain. */
		assert_int_equal(odp_fault(&o, 1, &f), k % 2 == 0);
		if (k % 2 == 0)
			assert_int_equal(odp_resume(&o, 1, &f, 1), 0);
	}
	assert_int_equal(rc_state(&o.rc, 1), SKUA_QP_RTS);
	assert_int_equal(cnt(&o, 1, SKUA_CNT_RESP_REMOTE_ACCESS), 2);
	odp_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_region_may_be),
		cmocka_unit_test(not_without_the_capability),
		cmocka_unit_test(sparse_region),
		cmocka_unit_test(sparse_in_two_levels),
		cmocka_unit_test(list_used_again),
		cmocka_unit_test(icm_not_mapped),
		cmocka_unit_test(entries_of_nonsense),
		cmocka_unit_test(rights_before_pages),
		cmocka_unit_test(window_over_a_region),
		cmocka_unit_test(tokens_that_are_none),
		cmocka_unit_test(full_eq),
		cmocka_unit_test(settled_before_it_was_told),
		cmocka_unit_test(other_fault_eq),
		cmocka_unit_test(both_sides_wait),
		cmocka_unit_test(order_is_kept),
		cmocka_unit_test(earlier_ones_complete_first),
		cmocka_unit_test(flush_does_not_wait),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(datagram_receive_fails),
		cmocka_unit_test(unreliable_connections),
		cmocka_unit_test(unreliable_write_tries_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
