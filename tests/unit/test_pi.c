// SPDX-License-Identifier: GPL-2.0
/*
 * Integrity regions: what is made, taken away, checked and passed on, between all pairs of
 * kinds of protection information, by each operation, whatever packets a block comes in.
 * The expected bytes are computed here, bit by bit.
 */
#include "net.h"
#include "rc_keys.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull
#define PLAIN	(8u << 20)	/* offset of the plain buffer: what the wire has */
#define DATA	(1u << 20)	/* of the data's pages */
#define META	(4u << 20)	/* of the tuples' pages */
#define PAGES	40
#define LAST	16		/* pages of tuples */
#define MAX	128		/* blocks */
#define RI	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)

enum kind { NONE, CRC, CSUM };

/* A region of side @i. */
struct integ {
	struct rc *rc;
	int i;
	uint32_t key;
	uint64_t area;
	enum kind mem, wire;
	uint32_t interval, blocks;
	uint32_t data_off, meta_off;
	uint8_t check, copy;
	struct skua_pi_domain m, w;
};

static struct skua_pi_domain domain(enum kind kind, uint32_t ref, uint16_t extra)
{
	if (kind == NONE)
		return (struct skua_pi_domain){ 0 };
	return (struct skua_pi_domain){
		.flags = cpu_to_le16(SKUA_PI_F_T10 | (kind == CSUM ? SKUA_PI_F_CSUM : 0) |
				     SKUA_PI_F_REF_INC | extra),
		.app_tag = cpu_to_le16(0x1234),
		.app_mask = cpu_to_le16(0xffff),
		.ref_tag = cpu_to_le32(ref),
	};
}

/* --- reference --- */

static uint16_t crc(const uint8_t *p, uint32_t len, uint16_t seed)
{
	uint16_t c = seed;

	for (uint32_t i = 0; i < len * 8; i++) {
		uint16_t bit = p[i / 8] >> (7 - i % 8) & 1;

		c = (uint16_t)(c << 1) ^ (((c >> 15) ^ bit) ? 0x8bb7 : 0);
	}
	return c;
}

static uint16_t csum(const uint8_t *p, uint32_t len, uint16_t seed)
{
	uint64_t sum = seed;

	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : p[i] * 256u;
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return (uint16_t)(0xffff - sum);
}

static void ref_tuple(const struct skua_pi_domain *d, uint32_t block, const uint8_t *data,
		      uint32_t len, uint8_t t[8])
{
	uint16_t flags = le16_to_cpu(d->flags), app = le16_to_cpu(d->app_tag), guard;
	uint32_t ref = le32_to_cpu(d->ref_tag) + (flags & SKUA_PI_F_REF_INC ? block : 0);

	guard = flags & SKUA_PI_F_CSUM ? csum(data, len, le16_to_cpu(d->seed)) :
					 crc(data, len, le16_to_cpu(d->seed));
	t[0] = guard >> 8;
	t[1] = (uint8_t)guard;
	t[2] = app >> 8;
	t[3] = (uint8_t)app;
	for (int k = 0; k < 4; k++)
		t[4 + k] = (uint8_t)(ref >> (24 - 8 * k));
}

/* --- memory of the region: pages backwards, a hole between two --- */

static uint8_t *at(const struct integ *g, uint32_t from, uint32_t n, uint32_t off)
{
	uint8_t *buf = g->rc->s[g->i].buf + first_page(g->rc, g->i, 12) + from;

	return buf + (uint64_t)(n - 1 - off / 4096) * 2 * 4096 + off % 4096;
}

/* Copy to or from the region's data or tuples. */
static void move(const struct integ *g, bool meta, uint32_t off, uint8_t *p, uint32_t len,
		 bool write)
{
	off += meta ? g->meta_off : g->data_off;
	for (; len; len--, off++, p++) {
		uint8_t *mem = meta ? at(g, META, LAST, off) : at(g, DATA, PAGES, off);

		if (write)
			*mem = *p;
		else
			*p = *mem;
	}
}

static uint64_t list_of(const struct integ *g, uint32_t from, uint32_t n)
{
	struct rc_side *s = &g->rc->s[g->i];
	uint64_t list = fake_alloc(&s->f, n * 8, 64);
	__le64 *p = fake_ptr(&s->f, list);

	for (uint32_t k = 0; k < n; k++)
		p[k] = cpu_to_le64(s->bus + (uint64_t)(at(g, from, n, k * 4096) - s->buf));
	return list;
}

static struct skua_pi_area *area_of(const struct integ *g)
{
	return fake_ptr(&g->rc->s[g->i].f, g->area);
}

static struct skua_pi_status *status_of(const struct integ *g)
{
	return &area_of(g)->status;
}

static struct skua_mpt free_entry(struct integ *g)
{
	struct mini *m = &g->rc->s[g->i].m;
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 cpu_to_le32(SKUA_MPT_FAST_REG | SKUA_MPT_PI),
		.pd = cpu_to_le32(MINI_PD),
		.xlat.base = cpu_to_le64(m->next_mtt),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE),
		.npages = cpu_to_le32(PAGES),
		.pi.area = cpu_to_le64(g->area),
		.pi.base = cpu_to_le64(m->next_mtt + PAGES),
		.pi.npages = cpu_to_le32(LAST),
		.pi.max_blocks = cpu_to_le32(MAX),
	};

	m->next_mtt += PAGES + LAST;
	return mpt;
}

static void integ_make(struct integ *g, struct rc *rc, int i)
{
	struct skua_mpt mpt;

	g->rc = rc;
	g->i = i;
	g->area = fake_alloc(&rc->s[i].f, sizeof(struct skua_pi_area) +
			     MAX * sizeof(struct skua_pi_tuple), 64);
	mpt = free_entry(g);
	g->key = create(rc, i, &mpt);
}

static uint32_t unit(const struct integ *g)
{
	return g->interval + (g->wire ? 8 : 0);
}

static uint32_t wire_len(const struct integ *g)
{
	return unit(g) * g->blocks;
}

static void describe(struct integ *g)
{
	area_of(g)->desc = (struct skua_pi_desc){
		.page_list = cpu_to_le64(g->mem ? list_of(g, META, LAST) : 0),
		.npages = cpu_to_le32(g->mem ? LAST : 0),
		.attr.offset = cpu_to_le32(g->mem ? g->meta_off : 0),
		.attr.interval = cpu_to_le16(g->interval),
		.attr.check = g->mem || g->wire ? g->check : 0,
		.attr.copy = g->mem && g->wire ? g->copy : 0,
		.attr.mem = g->m,
		.attr.wire = g->w,
	};
}

static void integ_register(struct integ *g)
{
	describe(g);
	memset(status_of(g), 0x77, sizeof(struct skua_pi_status));
	post_reg(g->rc, g->i, &(struct reg){ g->key, RI, RC_VA, wire_len(g),
					     list_of(g, DATA, PAGES), PAGES, 12, g->data_off });
	rc_pump(g->rc);
	rc_expect(g->rc, g->i, false, SKUA_CQE_OK);
	assert_int_equal(status_of(g)->errors, 0);
	assert_int_equal(le32_to_cpu(status_of(g)->key), g->key);
}

/* What the wire has, if memory has @data, and tuples as they should be. */
static void wire_form(const struct integ *g, const uint8_t *data, uint8_t *wire)
{
	for (uint32_t b = 0; b < g->blocks; b++, data += g->interval) {
		memcpy(wire, data, g->interval);
		wire += g->interval;
		if (!g->wire)
			continue;
		ref_tuple(&g->w, b, data, g->interval, wire);
		wire += 8;
	}
}

static void mem_tuple(const struct integ *g, const uint8_t *data, uint32_t b, uint8_t t[8])
{
	ref_tuple(&g->m, b, data + b * g->interval, g->interval, t);
}

/* --- operations --- */

/* All that a region is used for; the region is side 0's where it is an lkey, else side 1's. */
static const struct use {
	const char *name;
	enum skua_wqe_op op;
	bool remote, place;
} uses[] = {
	{ "WRITE from", SKUA_WQE_WRITE, false, false },
	{ "SEND from", SKUA_WQE_SEND, false, false },
	{ "READ of the peer", SKUA_WQE_READ, true, false },
	{ "WRITE of the peer", SKUA_WQE_WRITE, true, true },
	{ "READ to", SKUA_WQE_READ, false, true },
};

/* Offset in the sge list, if there is more than one. */
static void post_use(struct rc *rc, const struct integ *g, const struct use *u, uint32_t pieces)
{
	uint32_t len = wire_len(g), done = 0;
	struct rc_wr wr = { .op = u->op };

	if (u->op == SKUA_WQE_SEND)
		rc_recv(rc, 1, PLAIN, len);
	if (u->remote) {
		wr.off = PLAIN;
		wr.len = len;
		wr.rkey = g->key;
	} else {
		wr.roff = PLAIN;
		wr.nsge = pieces;
		for (uint32_t k = 0; k < pieces; k++) {
			uint32_t n = k + 1 == pieces ? len - done : len / pieces + 3 - k;

			wr.sge[k] = (struct sge){ RC_VA + done, g->key, n };
			done += n;
		}
	}
	rc_post(rc, 0, &wr);
}

static void use_done(struct rc *rc, const struct use *u)
{
	rc_expect(rc, 0, false, SKUA_CQE_OK);
	if (u->op == SKUA_WQE_SEND)
		rc_expect(rc, 1, true, SKUA_CQE_OK);
}

static uint8_t *plain(const struct integ *g)
{
	return g->rc->s[1 - g->i].buf + PLAIN;
}

/* Before: the source has what it should have, the target nothing. */
static void prepare(struct integ *g, const struct use *u, uint8_t *data, uint32_t seed)
{
	uint8_t t[8];

	rc_fill(data, g->interval * g->blocks, seed);
	if (u->place) {
		wire_form(g, data, plain(g));
		return;
	}
	memset(plain(g), 0x5a, wire_len(g) + 1);
	move(g, false, 0, data, g->interval * g->blocks, true);
	for (uint32_t b = 0; g->mem && b < g->blocks; b++) {
		mem_tuple(g, data, b, t);
		move(g, true, b * 8, t, 8, true);
	}
}

static void verify(struct integ *g, const struct use *u, const uint8_t *data)
{
	uint32_t bytes = g->interval * g->blocks;
	uint8_t *got = malloc(wire_len(g) + bytes), t[8], want[8];

	if (u->place) {
		move(g, false, 0, got, bytes, false);
		assert_memory_equal(got, data, bytes);
		for (uint32_t b = 0; g->mem && b < g->blocks; b++) {
			mem_tuple(g, data, b, want);
			move(g, true, b * 8, t, 8, false);
			assert_memory_equal(t, want, 8);
		}
	} else {
		wire_form(g, data, got);
		assert_memory_equal(plain(g), got, wire_len(g));
		assert_int_equal(plain(g)[wire_len(g)], 0x5a);
	}
	free(got);
}

static const char *const kind_name[] = { "none", "crc", "csum" };

static uint64_t errors(const struct integ *g)
{
	return rc_cnt(g->rc, g->i, SKUA_CNT_PI_ERRORS);
}

/* Every pair of kinds, operation, and many ways to lie and to be cut. */
static void all_uses(const struct rc_opt *opt, uint32_t interval, uint32_t blocks, uint32_t off,
		     uint32_t pieces)
{
	static uint8_t data[MAX * 4096];

	for (uint32_t k = 0; k < 9 * N(uses); k++) {
		const struct use *u = &uses[k / 9];
		struct integ g = {
			.mem = k % 3, .wire = k / 3 % 3, .interval = interval, .blocks = blocks,
			.data_off = off, .meta_off = off ? 4096 - 11 : 0, .check = 0xff,
		};
		struct rc rc;

		/* With the same guard all is passed on as it is. */
		g.copy = g.mem == g.wire ? 0xff : SKUA_PI_APP;
		g.m = domain(g.mem, 100, 0);
		g.w = domain(g.wire, g.mem == g.wire ? 100 : 7000, 0);
		rc_open(&rc, opt);
		integ_make(&g, &rc, u->remote);
		for (uint32_t again = 0; again < 2; again++) {
			uint64_t looked = rc_cnt(&rc, g.i, SKUA_CNT_PI_BLOCKS);

			integ_register(&g);
			prepare(&g, u, data, k + again);
			post_use(&rc, &g, u, pieces);
			rc_pump(&rc);
			use_done(&rc, u);
			verify(&g, u, data);
			if (status_of(&g)->errors)
				print_message("%s: %s to %s\n", u->name, kind_name[g.mem],
					      kind_name[g.wire]);
			assert_int_equal(status_of(&g)->errors, 0);
			assert_int_equal(rc_cnt(&rc, g.i, SKUA_CNT_PI_BLOCKS) - looked,
					 (u->place ? g.wire : g.mem) ? blocks : 0);
			post_inv(&rc, g.i, g.key, SKUA_WQE_F_LOCAL_FENCE);
			rc_pump(&rc);
			rc_expect(&rc, g.i, false, SKUA_CQE_OK);
		}
		assert_int_equal(errors(&g), 0);
		assert_int_equal(destroy(&rc, g.i, g.key), 0);
		rc_close(&rc);
	}
}

static void test_uses(void **state)
{
	static const uint32_t mtu[] = { 1, 3, 5 };

	(void)state;
	for (size_t k = 0; k < N(mtu); k++) {
		const struct rc_opt opt = { .mtu_code = mtu[k], .caps = SKUA_CAP_PI };

		all_uses(&opt, 512, 20, 0, 1);
		all_uses(&opt, 520, 37, 1001, 3);
		all_uses(&opt, 4096, 3, 4000, 1);
	}
}

static void test_uses_sr(void **state)
{
	(void)state;
	all_uses(&(struct rc_opt){ .mtu_code = 3, .caps = SKUA_CAP_PI,
				   .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } }, 512, 40, 100, 2);
}

/* --- packets that do not come --- */

static void bad_wire(const struct rc_opt *opt, const char *faults)
{
	static uint8_t data[MAX * 4096];

	for (size_t k = 0; k < N(uses) * 2; k++) {
		const struct use *u = &uses[k / 2];
		struct integ g = {
			.mem = k & 1 ? CRC : NONE, .wire = CSUM, .interval = 512,
			.blocks = 100, .data_off = 8, .check = 0xff,
		};
		struct net n;

		g.m = domain(g.mem, 5, 0);
		g.w = domain(g.wire, 9, 0);
		net_open(&n, opt, faults);
		integ_make(&g, &n.rc, u->remote);
		integ_register(&g);
		for (uint32_t run = 0; run < 6; run++) {
			prepare(&g, u, data, run + 1000);
			post_use(&n.rc, &g, u, 1);
			net_pass(&n, 5 * SEC);
			use_done(&n.rc, u);
			verify(&g, u, data);
			assert_int_equal(status_of(&g)->errors, 0);
		}
		assert_int_equal(errors(&g), 0);
		net_close(&n);
	}
}

#define BAD "loss=3%,dup=3%,reorder=5%:4,delay=20us+20us,seed=7"

static void test_bad_wire(void **state)
{
	(void)state;
	bad_wire(&(struct rc_opt){ .mtu_code = 2, .caps = SKUA_CAP_PI }, BAD);
}

static void test_bad_wire_sr(void **state)
{
	(void)state;
	bad_wire(&(struct rc_opt){ .mtu_code = 2, .caps = SKUA_CAP_PI,
				   .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } }, BAD);
}

/* --- checks --- */

static const struct fault {
	const char *name;
	uint32_t byte;		/* of the tuple, 8: of the data */
	uint8_t check;
	uint16_t app_mask;
	uint32_t what;		/* found, 0: not */
	uint8_t xor;
} faults[] = {
	{ "data", 8, 0xff, 0xffff, SKUA_PI_GUARD, 1 },
	{ "data, guard not looked at", 8, 0x3f, 0xffff, 0, 1 },
	{ "guard, first byte", 0, 0xff, 0xffff, SKUA_PI_GUARD, 0x80 },
	{ "guard, second byte", 1, SKUA_PI_GUARD, 0xffff, SKUA_PI_GUARD, 1 },
	{ "guard not looked at", 1, SKUA_PI_APP | SKUA_PI_REF, 0xffff, 0, 1 },
	{ "application tag", 2, 0xff, 0xffff, SKUA_PI_APP, 0x40 },
	{ "application tag, second byte", 3, SKUA_PI_APP, 0xffff, SKUA_PI_APP, 1 },
	{ "application tag not looked at", 3, SKUA_PI_GUARD | SKUA_PI_REF, 0xffff, 0, 1 },
	{ "application tag, bit not in the mask", 3, 0xff, 0xfffe, 0, 1 },
	{ "application tag, bit in the mask", 3, 0xff, 0x0001, SKUA_PI_APP, 0xf1 },
	{ "reference tag", 4, 0xff, 0xffff, SKUA_PI_REF, 1 },
	{ "reference tag, last byte", 7, SKUA_PI_REF, 0xffff, SKUA_PI_REF, 0x80 },
	{ "reference tag, byte not looked at", 4, 0xf7, 0xffff, 0, 1 },
	{ "reference tag not looked at", 7, SKUA_PI_GUARD | SKUA_PI_APP, 0xffff, 0, 1 },
	{ "nothing looked at", 0, 0, 0xffff, 0, 0xff },
};

/* Change block @b on the side it comes from. Its tuple before and after. */
static void spoil(struct integ *g, const struct use *u, const uint8_t *data, uint32_t b,
		  const struct fault *f, uint8_t want[8], uint8_t got[8])
{
	uint8_t block[4096];
	uint32_t meta = f->byte < 8;

	memcpy(block, data + b * g->interval, g->interval);
	ref_tuple(u->place ? &g->w : &g->m, b, block, g->interval, got);
	memcpy(want, got, 8);
	if (meta)
		got[f->byte] ^= f->xor;
	else
		block[7] ^= f->xor;
	if (u->place) {
		uint8_t *p = plain(g) + b * unit(g);

		memcpy(p, block, g->interval);
		memcpy(p + g->interval, got, 8);
	} else {
		move(g, false, b * g->interval, block, g->interval, true);
		move(g, true, b * 8, got, 8, true);
	}
	ref_tuple(u->place ? &g->w : &g->m, b, block, g->interval, want);
}

static uint32_t field(const uint8_t t[8], uint32_t what)
{
	if (what == SKUA_PI_GUARD)
		return t[0] << 8 | t[1];
	if (what == SKUA_PI_APP)
		return t[2] << 8 | t[3];
	return (uint32_t)t[4] << 24 | t[5] << 16 | t[6] << 8 | t[7];
}

static void one_fault(const struct fault *f, const struct use *u, enum kind kind, uint32_t b)
{
	static uint8_t data[MAX * 512];
	struct integ g = { .interval = 512, .blocks = 9, .check = f->check, .copy = 0xff };
	uint8_t want[8], got[8], after[8], *wire;
	struct skua_pi_status *s;
	uint32_t mask;
	struct rc rc;

	g.mem = g.wire = kind;
	g.m = domain(kind, 0xfffffffc, 0);
	g.m.app_mask = cpu_to_le16(f->app_mask);
	g.w = g.m;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 3, .caps = SKUA_CAP_PI });
	integ_make(&g, &rc, u->remote);
	integ_register(&g);
	s = status_of(&g);
	for (uint32_t run = 1; run < 3; run++) {
		prepare(&g, u, data, run);
		spoil(&g, u, data, b, f, want, got);
		post_use(&rc, &g, u, 1);
		rc_pump(&rc);
		use_done(&rc, u);
		assert_int_equal(le32_to_cpu(s->errors), f->what ? run : 0);
		/* All of it goes on as it is. */
		wire = plain(&g) + b * unit(&g);
		if (u->place)
			move(&g, true, b * 8, after, 8, false);
		else
			memcpy(after, wire + 512, 8);
		assert_memory_equal(after, got, 8);
		if (!f->what || run > 1)
			continue;
		mask = f->what == SKUA_PI_APP ? f->app_mask : UINT32_MAX;
		assert_int_equal(le32_to_cpu(s->what), f->what);
		assert_int_equal(le32_to_cpu(s->expected), field(want, f->what) & mask);
		assert_int_equal(le32_to_cpu(s->actual), field(got, f->what) & mask);
		assert_int_equal(le64_to_cpu(s->offset), b * 520);
		assert_int_equal(le32_to_cpu(s->key), g.key);
	}
	assert_int_equal(errors(&g), f->what ? 2 : 0);
	/* It is forgotten. */
	post_inv(&rc, g.i, g.key, SKUA_WQE_F_LOCAL_FENCE);
	rc_pump(&rc);
	rc_expect(&rc, g.i, false, SKUA_CQE_OK);
	integ_register(&g);
	rc_close(&rc);
}

static void test_faults(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(faults); k++) {
		for (size_t j = 0; j < N(uses); j++) {
			one_fault(&faults[k], &uses[j], CRC, 0);
			one_fault(&faults[k], &uses[j], CSUM, 8);
		}
	}
}

/* The first error stays, those behind it are counted. */
static void test_first_stays(void **state)
{
	static uint8_t data[MAX * 512];
	const struct use *u = &uses[0];
	struct integ g = { .mem = CRC, .wire = NONE, .interval = 512, .blocks = 9, .check = 0xff };
	uint8_t want[8], got[8];
	struct rc rc;

	(void)state;
	g.m = domain(CRC, 1, 0);
	rc_open(&rc, &(struct rc_opt){ .caps = SKUA_CAP_PI });
	integ_make(&g, &rc, 0);
	integ_register(&g);
	prepare(&g, u, data, 1);
	spoil(&g, u, data, 5, &faults[10], want, got);
	spoil(&g, u, data, 4, &faults[5], want, got);
	spoil(&g, u, data, 7, &faults[2], want, got);
	post_use(&rc, &g, u, 1);
	rc_pump(&rc);
	use_done(&rc, u);
	assert_int_equal(le32_to_cpu(status_of(&g)->errors), 3);
	assert_int_equal(le32_to_cpu(status_of(&g)->what), SKUA_PI_APP);
	assert_int_equal(le64_to_cpu(status_of(&g)->offset), 4 * 520);
	rc_close(&rc);
}

static void test_escapes(void **state)
{
	static const struct {
		uint16_t flags;
		uint16_t app;
		uint32_t ref;
		bool skipped;
	} escapes[] = {
		{ 0, 0xffff, 0xffffffff, false },
		{ SKUA_PI_F_APP_ESCAPE, 0xffff, 3, true },
		{ SKUA_PI_F_APP_ESCAPE, 0xfffe, 0xffffffff, false },
		{ SKUA_PI_F_REF_ESCAPE, 1, 0xffffffff, true },
		{ SKUA_PI_F_REF_ESCAPE, 0xffff, 0xfffffffe, false },
		{ SKUA_PI_F_APP_ESCAPE | SKUA_PI_F_REF_ESCAPE, 0xffff, 0xffffffff, true },
		{ SKUA_PI_F_APP_ESCAPE | SKUA_PI_F_REF_ESCAPE, 0xffff, 3, false },
		{ SKUA_PI_F_APP_ESCAPE | SKUA_PI_F_REF_ESCAPE, 3, 0xffffffff, false },
	};
	static uint8_t data[MAX * 512];

	(void)state;
	for (size_t k = 0; k < N(escapes) * 2; k++) {
		__typeof__(escapes[0]) *e = &escapes[k / 2];
		/* Guards differ, so a tuple is made unless it is passed on for its escape. */
		struct integ g = { .mem = CRC, .wire = CSUM, .interval = 512, .blocks = 4,
				   .check = 0xff };
		const struct use *u = &uses[k & 1 ? 3 : 0];
		uint8_t t[8] = { 0xde, 0xad, e->app >> 8, (uint8_t)e->app }, after[8], want[8];
		struct rc rc;

		for (int j = 0; j < 4; j++)
			t[4 + j] = (uint8_t)(e->ref >> (24 - 8 * j));
		g.m = domain(CRC, 1, e->flags);
		g.w = domain(CSUM, 50, e->flags);
		rc_open(&rc, &(struct rc_opt){ .caps = SKUA_CAP_PI });
		integ_make(&g, &rc, u->remote);
		integ_register(&g);
		prepare(&g, u, data, 1);
		if (u->place)
			memcpy(plain(&g) + 2 * 520 + 512, t, 8);
		else
			move(&g, true, 2 * 8, t, 8, true);
		post_use(&rc, &g, u, 1);
		rc_pump(&rc);
		use_done(&rc, u);
		assert_int_equal(le32_to_cpu(status_of(&g)->errors), !e->skipped);
		if (u->place)
			move(&g, true, 2 * 8, after, 8, false);
		else
			memcpy(after, plain(&g) + 2 * 520 + 512, 8);
		ref_tuple(u->place ? &g.m : &g.w, 2, data + 2 * 512, 512, want);
		assert_memory_equal(after, e->skipped ? t : want, 8);
		rc_close(&rc);
	}
}

/* What is passed on and what is made, byte by byte; seeds; a reference tag that stays. */
static void test_copy(void **state)
{
	static const uint8_t masks[] = { 0, SKUA_PI_GUARD, SKUA_PI_APP, SKUA_PI_REF, 0xff, 0x81 };
	static uint8_t data[MAX * 512];

	(void)state;
	for (size_t k = 0; k < N(masks) * 2; k++) {
		struct integ g = { .mem = CSUM, .wire = CRC, .interval = 512, .blocks = 3,
				   .check = 0xff, .copy = masks[k / 2] };
		const struct use *u = &uses[k & 1 ? 4 : 0];
		uint8_t in[8], out[8], after[8];
		struct rc rc;

		g.m = domain(CSUM, 1, 0);
		g.m.seed = cpu_to_le16(0xffff);
		g.w = domain(CRC, 90, 0);
		g.w.flags &= ~cpu_to_le16(SKUA_PI_F_REF_INC);
		g.w.seed = cpu_to_le16(0xffff);
		g.w.app_tag = cpu_to_le16(0xfe01);
		rc_open(&rc, &(struct rc_opt){ .caps = SKUA_CAP_PI });
		integ_make(&g, &rc, 0);
		integ_register(&g);
		prepare(&g, u, data, 1);
		post_use(&rc, &g, u, 1);
		rc_pump(&rc);
		use_done(&rc, u);
		assert_int_equal(status_of(&g)->errors, 0);
		for (uint32_t b = 0; b < 3; b++) {
			ref_tuple(u->place ? &g.w : &g.m, b, data + b * 512, 512, in);
			ref_tuple(u->place ? &g.m : &g.w, b, data + b * 512, 512, out);
			if (u->place)
				move(&g, true, b * 8, after, 8, false);
			else
				memcpy(after, plain(&g) + b * 520 + 512, 8);
			for (int i = 0; i < 8; i++)
				assert_int_equal(after[i], g.copy & 0x80 >> i ? in[i] : out[i]);
		}
		rc_close(&rc);
	}
}

/* --- what may not be --- */

/* A block in two requests. */
static void test_parts(void **state)
{
	static uint8_t data[MAX * 512];
	struct integ g = { .mem = CRC, .wire = CRC, .interval = 512, .blocks = 4, .check = 0xff,
			   .copy = 0xff };
	static const uint32_t cut[] = { 0, 100, 512, 515, 520, 1100, 2080 };
	const struct use *u = &uses[3];
	struct rc rc;

	(void)state;
	g.m = domain(CRC, 1, 0);
	g.w = g.m;
	rc_open(&rc, &(struct rc_opt){ .caps = SKUA_CAP_PI });
	integ_make(&g, &rc, 1);
	integ_register(&g);
	prepare(&g, u, data, 1);
	for (size_t k = 0; k + 1 < N(cut); k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .off = PLAIN + cut[k],
						 .len = cut[k + 1] - cut[k], .rkey = g.key,
						 .roff = cut[k] });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	}
	verify(&g, u, data);
	assert_int_equal(status_of(&g)->errors, 0);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_PI_BLOCKS), 4);
	rc_close(&rc);
}

static void integ_open(struct integ *g, struct rc *rc)
{
	*g = (struct integ){ .mem = CRC, .wire = CRC, .interval = 512, .blocks = 4, .check = 0xff,
			     .copy = 0xff };
	g->m = domain(CRC, 1, 0);
	g->w = g->m;
	rc_open(rc, &(struct rc_opt){ .caps = SKUA_CAP_PI });
	integ_make(g, rc, 0);
}

static void test_uses_refused(void **state)
{
	struct skua_cqe cqe;
	struct integ g;
	struct rc rc;

	(void)state;
	/* Receives. */
	integ_open(&g, &rc);
	integ_register(&g);
	rc_recv_sge(&rc, 0, &(struct sge){ RC_VA, g.key, 520 }, 1);
	rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 520 });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, true, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_KEY_STATE);
	rc_close(&rc);
	/* The result of an atomic. */
	integ_open(&g, &rc);
	integ_register(&g);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .nsge = 1,
					 .sge = { { RC_VA, g.key, 8 } } });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_KEY_STATE);
	rc_close(&rc);
	/* Beyond its end, as the wire counts. */
	integ_open(&g, &rc);
	integ_register(&g);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .nsge = 1,
					 .sge = { { RC_VA, g.key, 4 * 520 + 1 } } });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_KEY_BOUNDS);
	rc_close(&rc);
}

/* Each changes one thing of a registration that is valid. */
static const struct bad {
	const char *name;
	uint32_t blocks, interval, len;
	int copy, check;
	uint16_t flags;
	uint32_t npages, offset, access;
	int64_t list;
	bool mem_none, reserved;
	enum skua_vendor vendor;
} bads[] = {
	{ .name = "nothing wrong" },
	{ .name = "blocks too small", .interval = 504, .len = 4 * (504 + 8),
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "blocks too large", .interval = 4104, .len = 4 * (4104 + 8),
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "block no multiple of 8", .interval = 516, .len = 4 * (516 + 8),
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "no block at all", .interval = 0x10000, .len = 4 * 8,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "part of a block", .len = 521, .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "more blocks than it can have", .blocks = MAX + 1,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "unknown flag", .flags = 1 << 9, .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "tags of tuples that there are not", .mem_none = true,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "no pages of tuples", .npages = 1 << 20, .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "more pages than it can have", .npages = LAST + 1,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "first tuple beyond the first page", .offset = 4096,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "too few pages for the tuples", .npages = 1, .offset = 4090,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "list not aligned", .list = 8, .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "list not reachable", .list = 1ll << 40, .vendor = SKUA_VENDOR_KEY_DMA },
	{ .name = "reserved field", .reserved = true, .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "atomics", .access = SKUA_ACCESS_REMOTE_ATOMIC,
	  .vendor = SKUA_VENDOR_KEY_PAGES },
	{ .name = "windows", .access = SKUA_ACCESS_MW_BIND, .vendor = SKUA_VENDOR_KEY_PAGES },
};

static void test_register_refused(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(bads); k++) {
		const struct bad *b = &bads[k];
		struct skua_pi_desc *d;
		struct skua_cqe cqe;
		struct integ g;
		struct rc rc;

		print_message("%s\n", b->name);
		integ_open(&g, &rc);
		g.blocks = b->blocks ? b->blocks : 4;
		describe(&g);
		d = &area_of(&g)->desc;
		d->attr.interval = cpu_to_le16(b->interval ? (uint16_t)b->interval : 512);
		d->attr.mem.flags |= cpu_to_le16(b->flags);
		if (b->mem_none)
			d->attr.mem.flags = 0;
		if (b->npages)
			d->npages = cpu_to_le32(b->npages == 1 << 20 ? 0 : b->npages);
		d->attr.offset = cpu_to_le32(b->offset);
		d->page_list = cpu_to_le64(le64_to_cpu(d->page_list) + b->list);
		d->reserved[4] = cpu_to_le32(b->reserved);
		post_reg(&rc, 0, &(struct reg){ g.key, RI | b->access, RC_VA,
						b->len ? b->len : wire_len(&g),
						list_of(&g, DATA, PAGES), PAGES, 12, 0 });
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, b->vendor ? SKUA_CQE_MW_BIND_ERR : SKUA_CQE_OK);
		assert_int_equal(skua_cqe_vendor(&cqe), b->vendor);
		assert_int_equal(state_of(&rc, 0, g.key), b->vendor ? SKUA_MPT_FREE : SKUA_MPT_VALID);
		rc_close(&rc);
	}
}

/* Entries that CREATE_MPT refuses. */
static void test_create_refused(void **state)
{
	(void)state;
	for (int k = 0; k < 9; k++) {
		struct skua_mpt mpt;
		struct integ g = { 0 };
		struct rc rc;

		rc_open(&rc, &(struct rc_opt){ .caps = k == 1 ? 0 : SKUA_CAP_PI,
					       .no_caps = k == 1 ? SKUA_CAP_PI : 0 });
		g.rc = &rc;
		g.area = fake_alloc(&rc.s[0].f, 4096, 64);
		mpt = free_entry(&g);
		mpt.key = cpu_to_le32(rc.s[0].m.next_mpt << 8);
		if (k == 2)
			mpt.flags &= ~cpu_to_le32(SKUA_MPT_FAST_REG);
		if (k == 3)
			mpt.pi.area = cpu_to_le64(g.area + 8);
		if (k == 4)
			mpt.pi.base = cpu_to_le64(1ull << 40);
		if (k == 5)
			mpt.pi.npages = cpu_to_le32(1 << 20);
		if (k == 6)
			mpt.pi.max_blocks = cpu_to_le32((1 << 20) + 1);
		if (k == 7)
			mpt.pi.attr.interval = cpu_to_le16(512);
		if (k == 8)
			mpt.pi.reserved = cpu_to_le64(1);
		assert_int_equal(mini_cmd(&rc.s[0].m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt), NULL, 0),
				 k ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uses),
		cmocka_unit_test(test_uses_sr),
		cmocka_unit_test(test_bad_wire),
		cmocka_unit_test(test_bad_wire_sr),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_first_stays),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_uses_refused),
		cmocka_unit_test(test_register_refused),
		cmocka_unit_test(test_create_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
