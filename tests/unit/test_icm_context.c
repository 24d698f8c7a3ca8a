// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts that come back from ICM other than the device wrote them. Of each field that
 * was checked when the object was made, a value that cannot be is found when the context
 * is read again, and the device says so and stops: SKUA_FATAL_ICM_CORRUPT.
 */
#include "eth_test.h"
#include "icm.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))

enum {
	SRQN = 3,
	RSS = 1,
	CACHED = 32,	/* more CQ contexts than fit into the least memory */
};

/* One object of each kind. */
struct objects {
	struct eth e;
	struct mini_qp qp;
	uint32_t key, key_inline, key_mtt;
};

static uint32_t create_mpt(struct mini *m, struct skua_mpt *mpt)
{
	mpt->key = cpu_to_le32(m->next_mpt++ << 8 | 0x31);
	mpt->flags = cpu_to_le32(SKUA_MPT_VALID);
	mpt->access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE);
	mpt->pd = cpu_to_le32(MINI_PD);
	mini_ok(m, SKUA_CMD_CREATE_MPT, mpt, sizeof(*mpt));
	return le32_to_cpu(mpt->key);
}

/* The loss recovery context of the RC QP, which speaks selective repeat. */
static void make_lrc(struct objects *o, struct rig *r)
{
	static const uint8_t peer[] = { 2, 0, 0, 0, 0, 9 };
	struct skua_qp_attr attr = mini_rc_attr(1, 2, peer, false, 0, 0, 1);

	attr.ext = le32_encode_bits(SKUA_EXT_ALWAYS, SKUA_ATTR_EXT_MODE) |
		   le32_encode_bits(SKUA_EXT_LOG_WINDOW_MAX, SKUA_ATTR_EXT_LOG_WINDOW);
	r->f.dev->caps |= SKUA_CAP_SR;
	assert_int_equal(mini_gid(&r->m, 0, 1, false, SKUA_GID_NO_VLAN), 0);
	mini_rc_to_rts(&r->m, &o->qp, &attr);
}

static void make(struct objects *o, struct rig *r)
{
	struct skua_srqc srqc = {
		.flags = le32_encode_bits(4, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.srqn = cpu_to_le32(SRQN),
		.ring.base = cpu_to_le64(fake_alloc(&r->f, 64 << 4, 4096)),
		.dbr = cpu_to_le64(fake_alloc(&r->f, 16, 16)),
	};
	struct skua_cmd_create_rss_in rss = {
		.index = cpu_to_le32(RSS),
		.rss.flags = le32_encode_bits(1, SKUA_RSS_LOG_SIZE),
	};
	uint64_t bus = fake_alloc(&r->f, 16384, 4096);
	struct skua_mpt list = {
		.len = cpu_to_le64(8192),
		.npages = cpu_to_le32(2),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_INLINE, SKUA_XLAT_MODE) |
			     le32_encode_bits(12, SKUA_XLAT_LOG_PAGE),
		.page = { cpu_to_le64(bus | SKUA_MTT_PRESENT),
			  cpu_to_le64((bus + 4096) | SKUA_MTT_PRESENT) },
	};

	eth_up(&o->e, r);
	mini_qp_create(&r->m, &o->qp, SKUA_QP_RC, &o->e.scq, &o->e.rcq, 4, 4, 2);
	make_lrc(o, r);
	mini_ok(&r->m, SKUA_CMD_CREATE_SRQ, &srqc, sizeof(srqc));
	rss.rss.qpn[0] = cpu_to_le32(o->e.qp.qpn);
	rss.rss.qpn[1] = cpu_to_le32(o->e.qp.qpn);
	mini_ok(&r->m, SKUA_CMD_CREATE_RSS, &rss, sizeof(rss));
	/* Up to the last address there is. */
	o->key = mini_mr(&r->m, -16384ull, bus, 16384, SKUA_ACCESS_LOCAL_WRITE);
	o->key_mtt = mini_mr_mtt(&r->m, 0x10000, (uint64_t []){ bus, bus + 8192 }, 2, 12, 0, 8192,
				 SKUA_ACCESS_LOCAL_WRITE);
	o->key_inline = create_mpt(&r->m, &list);
}

/* Which object a row is about. */
enum object { SQC, RQC, SRQC, CQC, EQC, MR, MR_INLINE, MR_MTT, RSSC, LRC, OBJECTS };

static uint32_t index_of(const struct objects *o, enum object obj)
{
	switch (obj) {
	case SQC:
	case RQC:
	case LRC:
		return qp_index(o->qp.qpn);
	case SRQC:
		return SRQN;
	case CQC:
		return o->e.scq.cqn;
	case EQC:
		return MINI_EQ_COMP;
	case MR:
		return o->key >> 8;
	case MR_INLINE:
		return o->key_inline >> 8;
	case MR_MTT:
		return o->key_mtt >> 8;
	default:
		return RSS;
	}
}

static const enum skua_icm_table table_of[OBJECTS] = {
	[SQC] = SKUA_ICM_SQC, [RQC] = SKUA_ICM_RQC, [SRQC] = SKUA_ICM_SRQC,
	[CQC] = SKUA_ICM_CQC, [EQC] = SKUA_ICM_EQC, [MR] = SKUA_ICM_MPT,
	[MR_INLINE] = SKUA_ICM_MPT, [MR_MTT] = SKUA_ICM_MPT, [RSSC] = SKUA_ICM_RSS,
	[LRC] = SKUA_ICM_LRC,
};

/* A 32-bit word of the context: bits of @clear are replaced by @set. */
struct row {
	const char *what;
	enum object obj;
	size_t at;
	uint32_t clear, set;
};

#define ALL	UINT32_MAX
#define S(f)	offsetof(struct skua_sqc, f)
#define R(f)	offsetof(struct skua_rqc, f)
#define Q(f)	offsetof(struct skua_srqc, f)
#define C(f)	offsetof(struct skua_cqc, f)
#define E(f)	offsetof(struct skua_eqc, f)
#define M(f)	offsetof(struct skua_mpt, f)
#define F(f)	offsetof(struct skua_rss, f)
#define L(f)	offsetof(struct skua_lrc, f)

static const struct row bad[] = {
	{ "SQ: not valid", SQC, S(valid), SKUA_SQC_VALID, 0 },
	{ "SQ: another number", SQC, S(cfg.qpn), 1, 0 },
	{ "SQ: a number of 25 bits", SQC, S(cfg.qpn), 0, 1u << 24 },
	{ "SQ: no such type", SQC, S(cfg.flags), SKUA_QP_TYPE, 7 },
	{ "SQ: ring too long", SQC, S(cfg.flags), SKUA_QP_LOG_SQ, (MODEL_LOG_SQ_MAX + 1) << 16 },
	{ "SQ: no such UAR page", SQC, S(cfg.uar), ALL, 0x10000 },
	{ "SQ: ring not aligned", SQC, S(cfg.ring.base), 0, 8 },
	{ "SQ: no such translation", SQC, S(cfg.ring.mode), ALL, 3 },
	{ "SQ: no such state", SQC, S(attr.state), SKUA_ATTR_STATE, SKUA_QP_ERR + 1 },
	{ "SQ: no such counter set", SQC, S(counter), ALL, 5 },
	{ "SQ: a window in force that is too large", SQC, S(retry_left), 0, 0xfu << 24 },
	{ "SQ: a window that is too large", SQC, S(retry_left), 0, 0xfu << 28 },
	{ "SQ: more posted than the ring holds", SQC, S(pi), ALL, 17 },
	{ "SQ: more WQEs done and not reported than there can be", SQC, S(first), 0xffff0000,
	  513u << 16 },
	{ "SQ: more commands than the recovery ring holds", SQC, S(rec_pi), ALL,
	  SKUA_RECOVERY_RING + 1 },
	{ "SQ: recovery ring read before it was written", SQC, S(rec_pi), ALL, 0xffffffff },
	{ "SQ: paced without a rate", SQC, S(valid), 0, SKUA_SQC_PACED },
	{ "RQ: unknown flag", RQC, R(cfg.flags), 0, 1u << 31 },
	{ "RQ: ring too long", RQC, R(cfg.flags), SKUA_RQ_LOG_SIZE, MODEL_LOG_RQ_MAX + 1 },
	{ "RQ: WQE too long", RQC, R(cfg.flags), SKUA_RQ_LOG_STRIDE,
	  (MODEL_LOG_RQ_STRIDE_MAX + 1) << 8 },
	{ "RQ: ring not aligned", RQC, R(cfg.ring.base), 0, 8 },
	{ "RQ: no such state", RQC, R(state), ALL, SKUA_QP_ERR + 1 },
	{ "SRQ: not valid", SRQC, Q(flags), SKUA_SRQC_VALID, 0 },
	{ "SRQ: another number", SRQC, Q(srqn), ALL, SRQN + 1 },
	{ "SRQ: ring too long", SRQC, Q(flags), SKUA_SRQC_LOG_SIZE, (MODEL_LOG_RQ_MAX + 1) << 8 },
	{ "SRQ: WQE without room for its link", SRQC, Q(flags), SKUA_SRQC_LOG_STRIDE, 0 },
	{ "SRQ: WQE too long", SRQC, Q(flags), SKUA_SRQC_LOG_STRIDE,
	  (MODEL_LOG_RQ_STRIDE_MAX + 2) << 16 },
	{ "SRQ: ring not aligned", SRQC, Q(ring.base), 0, 8 },
	{ "SRQ: head outside of the ring", SRQC, Q(head), ALL, 16 },
	{ "CQ: not valid", CQC, C(flags), SKUA_CQC_VALID, 0 },
	{ "CQ: another number", CQC, C(cqn), ALL, 77 },
	{ "CQ: ring too long", CQC, C(flags), SKUA_CQC_LOG_SIZE, (MODEL_LOG_CQ_MAX + 1) << 8 },
	{ "CQ: no such EQ", CQC, C(eqn), ALL, MINI_EQS },
	{ "CQ: an EQ outside of the table", CQC, C(eqn), ALL, 1u << 31 },
	{ "CQ: no such UAR page", CQC, C(uar), ALL, 0x10000 },
	{ "CQ: ring not aligned", CQC, C(ring.base), 0, 8 },
	{ "EQ: not valid", EQC, E(flags), SKUA_EQC_VALID, 0 },
	{ "EQ: another number", EQC, E(eqn), ALL, 0 },
	{ "EQ: ring too long", EQC, E(flags), SKUA_EQC_LOG_SIZE, (MODEL_LOG_EQ_MAX + 1) << 8 },
	{ "EQ: no such vector", EQC, E(flags), SKUA_EQC_VECTOR, 0xffffu << 16 },
	{ "EQ: no such UAR page", EQC, E(uar), ALL, 0x10000 },
	{ "EQ: more there than the ring holds", EQC, E(ci), ALL, 1 },
	{ "MR: another key", MR, M(key), 0x100, 0 },
	{ "MR: no such state", MR, M(flags), SKUA_MPT_STATE, 3 },
	{ "MR: no such type", MR, M(flags), SKUA_MPT_TYPE, SKUA_MPT_TYPE },
	{ "MR: unknown right", MR, M(access), 0, 1u << 31 },
	{ "MR: unknown flag", MR, M(flags), 0, 1u << 31 },
	{ "MR: range wraps round", MR, M(len), 0, 1 },
	{ "MR: no such translation", MR, M(xlat.mode), SKUA_XLAT_MODE, 3 },
	{ "MR, inline list: more pages than fit", MR_INLINE, M(npages), ALL,
	  SKUA_MPT_INLINE_PAGES + 1 },
	{ "MR, inline list: a base in the MTT", MR_INLINE, M(xlat.base), 0, 64 },
	{ "MR, inline list: fewer pages than its length", MR_INLINE, M(npages), ALL, 1 },
	{ "MR, MTT: fewer pages than its length", MR_MTT, M(npages), ALL, 1 },
	{ "MR, MTT: list outside of the table", MR_MTT, M(xlat.base) + 4, 0, 1 },
	{ "MR, MTT: offset outside of the page", MR_MTT, M(xlat.offset), 0, 4096 },
	{ "MR, MTT: no such page size", MR_MTT, M(xlat.mode), SKUA_XLAT_LOG_PAGE,
	  SKUA_XLAT_LOG_PAGE },
	{ "RSS: not valid", RSSC, F(flags), SKUA_RSS_VALID, 0 },
	{ "RSS: more queues than there can be", RSSC, F(flags), SKUA_RSS_LOG_SIZE, 8 << 8 },
	{ "LRC: window too small", LRC, L(log_window), ALL, SKUA_EXT_LOG_WINDOW_MIN - 1 },
	{ "LRC: window too large", LRC, L(log_window), ALL, SKUA_EXT_LOG_WINDOW_MAX + 1 },
};

/* All contexts go back to ICM; those of the objects are read again when used. */
static void evict(struct rig *r)
{
	cache_evict_range(r->f.dev, 0, UINT64_MAX);
}

static void change_at(uint8_t *at, const struct row *row)
{
	__le32 word;

	memcpy(&word, at + row->at, sizeof(word));
	word = cpu_to_le32((le32_to_cpu(word) & ~row->clear) | row->set);
	memcpy(at + row->at, &word, sizeof(word));
}

static void change(struct rig *r, const struct objects *o, const struct row *row)
{
	change_at(mini_icm(&r->m, table_of[row->obj], index_of(o, row->obj)), row);
}

/* As they were, all are taken; and the rows are about what they say. */
static void unchanged(void **state)
{
	struct rig *r = *state;
	struct objects o;

	make(&o, r);
	evict(r);
	for (unsigned int obj = 0; obj < OBJECTS; obj++) {
		void *ctx = ctx_get(r->f.dev, table_of[obj], index_of(&o, obj));

		assert_non_null(ctx);
		ctx_put(r->f.dev, ctx);
	}
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

static void changed(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(bad); k++) {
		struct objects o;
		struct rig *r;

		rig_setup((void **)&r);
		make(&o, r);
		evict(r);
		change(r, &o, &bad[k]);
		if (ctx_get(r->f.dev, table_of[bad[k].obj], index_of(&o, bad[k].obj)))
			fail_msg("%s: taken", bad[k].what);
		assert_int_equal(r->f.dev->state, DEV_FATAL);
		assert_int_equal(fake_rd32(&r->f, SKUA_REG_STATUS) & SKUA_STATUS_FATAL,
				 SKUA_STATUS_FATAL);
		assert_int_equal(r->f.dev->fatal, SKUA_FATAL_ICM_CORRUPT);
		rig_teardown((void **)&r);
	}
}

/*
 * Contexts of QPs come in parts: whatever the order in which the sectors come, by the time
 * that those are there which a value lies in, and goes with, it was found.
 */
static void in_parts(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(bad) && bad[k].obj <= RQC; k++) {
		const uint32_t all = (bad[k].obj == SQC ? SKUA_ICM_SQC_SIZE : SKUA_ICM_RQC_SIZE) /
				     CTX_SECTOR;

		for (uint32_t first = 0; first < all; first++) {
			struct objects o;
			struct rig *r;
			void *ctx = NULL;

			rig_setup((void **)&r);
			make(&o, r);
			evict(r);
			change(r, &o, &bad[k]);
			for (uint32_t n = 0; n < all; n++) {
				ctx = ctx_get_part(r->f.dev, table_of[bad[k].obj],
						   index_of(&o, bad[k].obj), BIT((first + n) % all));
				if (!ctx)
					break;
				ctx_put(r->f.dev, ctx);
			}
			if (ctx)
				fail_msg("%s: taken, from sector %u on", bad[k].what, first);
			assert_int_equal(r->f.dev->fatal, SKUA_FATAL_ICM_CORRUPT);
			rig_teardown((void **)&r);
		}
	}
}

/* The way there in real life: a doorbell, a frame, a command. */
static void touched(void **state)
{
	static const struct row rows[] = {
		{ "CQ", CQC, C(eqn), ALL, MINI_EQS },
		{ "EQ", EQC, E(ci), ALL, 1 },
		{ "SQ", SQC, S(pi), ALL, 17 },
		{ "RSS", RSSC, F(flags), SKUA_RSS_LOG_SIZE, 8 << 8 },
		{ "MR", MR, M(flags), SKUA_MPT_TYPE, SKUA_MPT_TYPE },
		{ "SRQ", SRQC, Q(head), ALL, 16 },
	};

	(void)state;
	for (size_t k = 0; k < N(rows); k++) {
		struct objects o;
		struct rig *r;

		rig_setup((void **)&r);
		make(&o, r);
		evict(r);
		change(r, &o, &rows[k]);
		switch (rows[k].obj) {
		case CQC:
			mini_cq_arm(&r->m, &o.e.scq, false);
			break;
		case EQC:
			mini_eq_db(&r->m, &r->m.eq[MINI_EQ_COMP], true);
			break;
		case SQC:
			fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 1, o.qp.qpn);
			break;
		case RSSC:
			mini_index(&r->m, SKUA_CMD_DESTROY_RSS, RSS, NULL, 0);
			break;
		case MR:
			mini_index(&r->m, SKUA_CMD_DESTROY_MPT, o.key, NULL, 0);
			break;
		default:
			mini_index(&r->m, SKUA_CMD_DESTROY_SRQ, SRQN, NULL, 0);
			break;
		}
		fake_run(&r->f);
		if (r->f.dev->fatal != SKUA_FATAL_ICM_CORRUPT)
			fail_msg("%s: not noticed", rows[k].what);
		rig_teardown((void **)&r);
	}
}

/* Everything that the device did to its host so far. */
static uint64_t done_to_host(const struct rig *r)
{
	uint64_t sum = r->f.writes;

	for (unsigned int v = 0; v < SKUA_MSIX_VECTORS_MAX; v++)
		sum += r->f.msix[v];
	return sum;
}

/*
 * The EQ that would tell of it is itself what came back wrong, or did not come: its words
 * are not used, not even for that. The registers say that the device has stopped.
 */
static void no_eq_to_tell(void **state)
{
	unsigned int tried = 0;

	(void)state;
	for (size_t k = 0; k < N(bad) + 1; k++) {
		uint8_t *at, was[SKUA_ICM_EQC_SIZE];
		uint64_t done;
		struct objects o;
		struct rig *r;

		if (k < N(bad) && bad[k].obj != EQC)
			continue;
		rig_setup((void **)&r);
		make(&o, r);
		evict(r);
		at = mini_icm(&r->m, SKUA_ICM_EQC, MINI_EQ_ASYNC);
		memcpy(was, at, sizeof(was));
		if (k < N(bad))
			change_at(at, &bad[k]);
		else
			fake_hole(&r->f, r->m.icm[SKUA_ICM_EQC], 1);
		done = done_to_host(r);
		if (k == N(bad) || memcmp(was, at, sizeof(was))) {
			skua_dev_link(r->f.dev, false);
			fake_run(&r->f);
			assert_int_equal(r->f.dev->fatal, k < N(bad) ? SKUA_FATAL_ICM_CORRUPT :
								       SKUA_FATAL_ICM_DMA);
			if (done_to_host(r) != done)
				fail_msg("%s: an event was written",
					 k < N(bad) ? bad[k].what : "EQ: does not come");
			tried++;
		}
		rig_teardown((void **)&r);
	}
	assert_in_range(tried, 5, N(bad));
}

/* What is no object may be anything: it is not looked at. */
static void no_object(void **state)
{
	struct rig *r = *state;
	void *ctx;

	memset(mini_icm(&r->m, SKUA_ICM_CQC, 9), 0xff, SKUA_ICM_CQC_SIZE);
	ctx = ctx_get(r->f.dev, SKUA_ICM_CQC, 9);
	assert_non_null(ctx);
	ctx_put(r->f.dev, ctx);
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

/* Eviction takes the contexts of its range, none before and none behind. */
static int little_lrc_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	fake_init(&r->f, NULL);
	mini_up_tables(&r->m, &r->f, 0, 1);
	*state = r;
	return 0;
}

/* Fewer loss recovery contexts than QPs; that of a QP beyond is not touched, whatever it says. */
static void little_lrc(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct mini_qp qp[70];
	struct skua_sqc *ctx;

	assert_int_equal(icm_num(r->f.dev, SKUA_ICM_LRC), 2);
	mini_cq_create(&r->m, &cq, 4);
	for (unsigned int i = 0; i < N(qp); i++)
		mini_qp_create(&r->m, &qp[i], SKUA_QP_RC, &cq, &cq, 4, 4, 2);
	evict(r);
	for (unsigned int i = 0; i < N(qp); i++) {
		ctx = (void *)mini_icm(&r->m, SKUA_ICM_SQC, qp_index(qp[i].qpn));
		ctx->attr.ext = le32_encode_bits(SKUA_EXT_ALWAYS, SKUA_ATTR_EXT_MODE);
		assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp[i].qpn, NULL, 0), OK);
	}
	assert_int_equal(r->f.dev->icm->table[SKUA_ICM_LRC].objects, 0);
}

static void evict_range(void **state)
{
	struct rig *r = *state;
	struct icm_table *t = &r->f.dev->icm->table[SKUA_ICM_CQC];
	uint64_t misses;

	for (uint32_t i = 10; i < 13; i++)
		ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_CQC, i));
	cache_evict_range(r->f.dev, t->base + 11ull * t->size, t->size);
	misses = t->cache.misses;
	ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_CQC, 10));
	ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_CQC, 12));
	assert_int_equal(t->cache.misses, misses);
	ctx_put(r->f.dev, ctx_get(r->f.dev, SKUA_ICM_CQC, 11));
	assert_int_equal(t->cache.misses, misses + 1);
}

/* A context in use stays where it is, whatever else is wanted. */
static void pinned(void **state)
{
	struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .onchip = 1 };
	struct skua_cqc *held, *again;
	struct rig r;

	(void)state;
	fake_init(&r.f, &cfg);
	mini_up(&r.m, &r.f);
	held = ctx_new(r.f.dev, SKUA_ICM_CQC, 20);
	assert_non_null(held);
	for (unsigned int round = 0; round < 4; round++) {
		for (uint32_t i = 30; i < 30 + 2 * CACHED; i++) {
			struct skua_cqc *other = ctx_new(r.f.dev, SKUA_ICM_CQC, i);

			assert_non_null(other);
			assert_ptr_not_equal(other, held);
			memset(other, 0xee, sizeof(*other));
			ctx_put(r.f.dev, other);
		}
	}
	for (size_t i = 0; i < sizeof(*held); i++)
		assert_int_equal(((uint8_t *)held)[i], 0);
	again = ctx_get(r.f.dev, SKUA_ICM_CQC, 20);
	assert_ptr_equal(again, held);
	ctx_put(r.f.dev, again);
	ctx_put(r.f.dev, held);
	fake_exit(&r.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(unchanged),
		cmocka_unit_test(changed),
		cmocka_unit_test(in_parts),
		cmocka_unit_test(touched),
		cmocka_unit_test(no_eq_to_tell),
		rig_test(no_object),
		rig_test(evict_range),
		cmocka_unit_test_setup_teardown(little_lrc, little_lrc_setup, rig_teardown),
		cmocka_unit_test(pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
