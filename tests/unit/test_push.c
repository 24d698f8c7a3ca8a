// SPDX-License-Identifier: GPL-2.0
/*
 * Push slots: when a slot is complete, when its WQE is used instead of the ring's, and
 * that neither a torn slot nor a hostile one does more than a doorbell.
 */
#include "core_test.h"
#include "rc.h"

#define SLOT(n)		(SKUA_UAR_PUSH + (n) * SKUA_UAR_PUSH_SLOT_SIZE)
#define LEN		16u

static struct rc rc;

static void open_with(const struct rc_opt *opt)
{
	rc_open(&rc, opt);
	rc_fill(rc.s[0].buf, 4096, 1);
}

static int setup(void **state)
{
	(void)state;
	open_with(&(struct rc_opt){ 0 });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rc_close(&rc);
	return 0;
}

static void bar(int i, uint32_t page, uint32_t in, const void *buf, size_t len)
{
	skua_dev_bar_write(rc.s[i].f.dev, SKUA_BAR_UAR,
			   ((uint64_t)page << rc.s[i].f.dev->uar_shift) + in, buf, len);
}

/* An inline WRITE of LEN bytes from offset @off to the same of the peer, in the ring. */
static void write_wqe(uint64_t off)
{
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){
		.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .off = off, .roff = off,
		.len = 8 });
}

static uint8_t *ring_block(uint32_t index)
{
	struct rc_side *s = &rc.s[0];

	return fake_ptr(&s->f, s->qp.sq + (uint64_t)(index & ((1u << s->qp.log_sq) - 1)) *
			SKUA_WQE_BLOCK);
}

/* What software puts into a slot for the last WQE of the ring. */
static void slot_of(__le64 slot[8])
{
	memcpy(slot, ring_block(rc.s[0].qp.sq_pi - 1), 48);
	slot[6] = 0;
	slot[7] = cpu_to_le64(rc.s[0].qp.sq_pi | (uint64_t)rc.s[0].qp.qpn << 32);
}

static void store(unsigned int n, const __le64 slot[8])
{
	for (unsigned int i = 0; i < 8; i++)
		bar(0, MINI_UAR, SLOT(n) + 8 * i, &slot[i], 8);
}

static void push(unsigned int n)
{
	__le64 slot[8];

	slot_of(slot);
	store(n, slot);
}

static uint64_t counter(enum skua_counter cnt)
{
	tlp_counters(rc.s[0].f.dev);
	return rc.s[0].f.dev->cnt[cnt];
}

#define counts(what, by, ...)							\
	do {									\
		uint64_t before_ = counter(SKUA_CNT_##what);			\
		__VA_ARGS__;							\
		assert_int_equal(counter(SKUA_CNT_##what) - before_, by);	\
	} while (0)

static void arrived(uint64_t off)
{
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_memory_equal(rc.s[1].buf + off, rc.s[0].buf + off, 8);
	memset(rc.s[1].buf + off, 0, 8);
}

/* A complete slot is one write of 64 bytes, and spares the read of the ring. */
static void complete(void **state)
{
	(void)state;
	for (unsigned int n = 0; n < 2 * SKUA_UAR_PUSH_SLOTS; n++) {
		write_wqe(64 * n);
		counts(WQE_PUSH, 1, counts(WQE_FETCH, 0, {
			counts(TLP_MWR_RX, 1, counts(TLP_MWR_RX_BYTES, 64,
						     push(n % SKUA_UAR_PUSH_SLOTS)));
			arrived(64 * n);
		}));
	}
}

/* What write combining may make of the stores, one message for each part. */
static void parts(void **state)
{
	static const uint8_t cut[][8] = {
		{ 64 }, { 32, 32 }, { 16, 48 }, { 48, 16 }, { 8, 56 }, { 24, 8, 24, 8 },
		{ 56, 8 }, { 40, 24 },
	};

	(void)state;
	for (unsigned int k = 0; k < sizeof(cut) / sizeof(cut[0]); k++) {
		__le64 slot[8];
		unsigned int at = 0;

		write_wqe(64 * k);
		slot_of(slot);
		counts(TLP_MWR_RX, 1, counts(WQE_PUSH, 1, {
			for (unsigned int i = 0; at < 64; at += cut[k][i++])
				bar(0, MINI_UAR, SLOT(k) + at, (uint8_t *)slot + at, cut[k][i]);
			arrived(64 * k);
		}));
	}
}

/* The last word without one of the others is a doorbell, and so is one that comes early. */
static void torn(void **state)
{
	__le64 slot[8];

	(void)state;
	for (unsigned int miss = 0; miss < 7; miss++) {
		write_wqe(64 * miss);
		slot_of(slot);
		counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, counts(TLP_MWR_RX, 7, {
			for (unsigned int i = 0; i < 8; i++)
				if (i != miss)
					bar(0, MINI_UAR, SLOT(3) + 8 * i, &slot[i], 8);
			arrived(64 * miss);
		})));
	}
	/* The last word first; the others come too late for it, and are of no WQE then. */
	write_wqe(512);
	slot_of(slot);
	counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, {
		bar(0, MINI_UAR, SLOT(3) + 56, &slot[7], 8);
		arrived(512);
		bar(0, MINI_UAR, SLOT(3), slot, 56);
	}));
	write_wqe(576);
	slot_of(slot);
	counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, {
		bar(0, MINI_UAR, SLOT(3) + 56, &slot[7], 8);
		arrived(576);
	}));
	/* Another slot, or the same of another page, has its own words. */
	write_wqe(640);
	slot_of(slot);
	counts(WQE_PUSH, 0, {
		bar(0, MINI_UAR, SLOT(4), slot, 56);
		bar(0, MINI_UAR + 1, SLOT(5), slot, 56);
		bar(0, MINI_UAR, SLOT(5) + 56, &slot[7], 8);
		arrived(640);
	});
}

/* Widths and offsets that are no store to a slot. */
static void widths(void **state)
{
	uint8_t buf[128] = { 0 };

	(void)state;
	for (unsigned int off = 0; off < 64; off++) {
		for (unsigned int len = 1; len <= 72; len++) {
			if (off % 8 == 0 && len % 8 == 0 && off + len <= 64)
				continue;
			counts(BAD_DB, 1, bar(0, MINI_UAR, SLOT(2) + off, buf, len));
		}
	}
	counts(BAD_DB, 1, bar(0, MINI_UAR, SLOT(16), buf, 8));
	counts(BAD_DB, 1, bar(0, MINI_UAR, SLOT(0) - 8, buf, 8));
	/* A slot is no doorbell of CQs or EQs, and none of a QP that is not there. */
	counts(BAD_DB_QP, 1, bar(0, MINI_UAR, SLOT(0), buf, 64));
	rc.s[0].f.dev->caps &= ~SKUA_CAP_PUSH;
	counts(BAD_DB, 1, bar(0, MINI_UAR, SLOT(0), buf, 64));
}

/* Only of the page that the QP names, as any doorbell. */
static void owner(void **state)
{
	__le64 slot[8];

	(void)state;
	write_wqe(0);
	slot_of(slot);
	counts(BAD_DB_UAR, 1, bar(0, MINI_UAR + 1, SLOT(0), slot, 64));
	/* A WQE that was refused so is not kept. */
	*ring_block(0) = SKUA_WQE_NOP;
	((struct skua_wqe_ctrl *)ring_block(0))->op = le32_encode_bits(SKUA_WQE_NOP, SKUA_WQE_OPCODE) |
						      le32_encode_bits(1, SKUA_WQE_NSEG);
	((struct skua_wqe_ctrl *)ring_block(0))->flags = cpu_to_le32(SKUA_WQE_F_SIGNALED);
	memset(rc.s[1].buf, 0xee, 8);
	counts(WQE_PUSH, 0, mini_ring(&rc.s[0].m, &rc.s[0].qp));
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc.s[1].buf[0], 0xee);
}

/* WQEs before it have not been read: the ring is, for all of them. */
static void not_next(void **state)
{
	(void)state;
	/* One that no doorbell told of. */
	write_wqe(0);
	write_wqe(64);
	counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, {
		push(0);
		arrived(0);
		arrived(64);
	}));
	/* One that the device has been told of and has not come to. */
	write_wqe(128);
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	write_wqe(192);
	counts(WQE_PUSH, 0, {
		push(0);
		arrived(128);
		arrived(192);
	});
	/* The same index again, and one that goes back. */
	counts(WQE_PUSH, 0, counts(SQ_DB, 0, push(0)));
	counts(BAD_DB_INDEX, 1, {
		__le64 slot[8];

		slot_of(slot);
		slot[7] = cpu_to_le64((rc.s[0].qp.sq_pi - 1) | (uint64_t)rc.s[0].qp.qpn << 32);
		store(0, slot);
	});
	rc_pump(&rc);
	rc_expect_none(&rc, 0, false);
}

/* Two WQEs with one slot each before the device has had a turn: the first is used. */
static void two(void **state)
{
	(void)state;
	write_wqe(0);
	push(0);
	write_wqe(64);
	counts(WQE_PUSH, 1, counts(WQE_FETCH, 1, {
		push(1);
		arrived(0);
		arrived(64);
	}));
}

/* A slot that holds anything but a good WQE: what the ring says is done, nothing else. */
static void hostile(void **state)
{
	static const struct {
		unsigned int byte;
		uint8_t val;
	} bad[] = {
		{ 0, 0 },		/* NOP with segments */
		{ 0, 0x3f },		/* no opcode */
		{ 0, SKUA_WQE_ETH },	/* of another type of queue */
		{ 0, SKUA_WQE_REG_MR },
		{ 0, SKUA_WQE_READ },	/* not inline */
		{ 1, 0 },		/* segments */
		{ 1, 1 },
		{ 1, 2 },
		{ 1, 4 },
		{ 1, 64 },
		{ 1, 255 },
		{ 2, 0x55 },		/* index */
		{ 3, 0x55 },
		{ 5, 0xff },		/* flags */
		{ 7, 0x80 },
		{ 8, 1 },		/* immediate data of an opcode without */
		{ 12, 1 },		/* Ethernet word */
		{ 28, 1 },		/* reserved word of the remote address */
		{ 32, 13 },		/* inline length */
		{ 33, 1 },
		{ 35, 0xff },
	};

	(void)state;
	for (unsigned int k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		__le64 slot[8];

		write_wqe(64 * k);
		slot_of(slot);
		((uint8_t *)slot)[bad[k].byte] = bad[k].val;
		counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, {
			store(k % 16, slot);
			arrived(64 * k);
		}));
	}
}

/* A good WQE of more segments than a slot has room for. */
static void longer(void **state)
{
	__le64 slot[8];

	(void)state;
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){
		.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .len = 24 });
	slot_of(slot);
	counts(WQE_PUSH, 0, counts(WQE_FETCH, 1, {
		store(0, slot);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	}));
	assert_memory_equal(rc.s[1].buf, rc.s[0].buf, 24);
}

/* A key out of a slot is checked as one out of the ring: the QP ends, with this status. */
static void keys(void **state)
{
	struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = 8 };
	struct skua_wqe_data *d;
	__le64 slot[8];

	(void)state;
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
	slot_of(slot);
	d = (void *)&slot[4];
	d->lkey = cpu_to_le32(SKUA_RESERVED_LKEY);
	counts(WQE_PUSH, 1, {
		store(0, slot);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	});
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
}

/* Sent again it is read from the ring, and what has changed meanwhile ends the QP. */
static void again(void **state)
{
	struct skua_wqe_raddr *r;

	(void)state;
	for (int change = 0; change < 2; change++) {
		struct fake_frame *lost;

		write_wqe(64);
		push(0);
		fake_run(&rc.s[0].f);
		while ((lost = fake_tx(&rc.s[0].f)))
			free(lost);
		r = (void *)(ring_block(rc.s[0].qp.sq_pi - 1) + SKUA_WQE_SEG);
		if (change)
			r->rkey = 0;
		rc_pump_for(&rc, 1000000000);
		rc_expect(&rc, 0, false, change ? SKUA_CQE_REM_ACCESS_ERR : SKUA_CQE_OK);
	}
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_WQE_REFETCH));
}

/* What a QP left here is not its successor's, and not that of its next life. */
static void reset(void **state)
{
	struct rc_side *s = &rc.s[0];

	(void)state;
	for (int i = 0; i < 3; i++) {
		/* In SQD nothing new begins: it stays where it is. */
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_SQD, 0, NULL), 0);
		write_wqe(0);
		push(0);
		rc_pump(&rc);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RESET, 0, NULL), 0);
		s->qp.sq_pi = 0;
		mini_rc_to_rts(&s->m, &s->qp, &s->attr);
		assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL), 0);
		mini_rc_to_rts(&rc.s[1].m, &rc.s[1].qp, &rc.s[1].attr);
		write_wqe(64);
		memset(rc.s[1].buf, 0xee, 8);
		counts(WQE_PUSH, 0, {
			mini_ring(&s->m, &s->qp);
			arrived(64);
		});
		assert_int_equal(rc.s[1].buf[0], 0xee);
	}
	/* The device's reset clears slots too. */
	{
		__le64 slot[8];

		slot_of(slot);
		bar(0, MINI_UAR, SLOT(0), slot, 56);
		push_reset(s->f.dev);
		write_wqe(128);
		slot_of(slot);
		counts(WQE_PUSH, 0, {
			bar(0, MINI_UAR, SLOT(0) + 56, &slot[7], 8);
			arrived(128);
		});
	}
}

/* A WQE that waits does not outlive its QP where all end at once. */
static void gone(void **state)
{
	struct rc_side *s = &rc.s[0];
	size_t n;

	(void)state;
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_SQD, 0, NULL), 0);
	write_wqe(0);
	push(0);
	mini_ok(&s->m, SKUA_CMD_TEARDOWN_DEVICE, NULL, 0);
	assert_null(push_take(s->f.dev, s->qp.qpn, 0, &n));
}

/* Slots of a page take on-chip memory from the first store on, once, until the device's reset. */
static void pages(void **state)
{
	struct skua_dev *dev = rc.s[0].f.dev;
	const struct onchip none = push_onchip(dev);
	const __le64 slot[8] = {};
	uint64_t each = 0;

	(void)state;
	assert_int_equal(none.num, 0);
	for (unsigned int i = 0; i < 6; i++) {
		struct onchip use;

		bar(0, MINI_UAR + i / 2, SLOT(i % 2), slot, 8);
		use = push_onchip(dev);
		each = i ? each : use.bytes - none.bytes;
		assert_int_equal(use.num, i / 2 + 1);
		assert_int_equal(use.bytes, none.bytes + use.num * each);
	}
	assert_true(each >= 64);
	push_reset(dev);
	assert_int_equal(push_onchip(dev).num, 0);
	assert_int_equal(push_onchip(dev).bytes, none.bytes);
}

/* Any words in any order: the device stays up, and what it did was the ring's. */
static void random_words(void **state)
{
	uint32_t seed = 12345;

	(void)state;
	for (unsigned int k = 0; k < 3000; k++) {
		__le64 slot[8];
		unsigned int n;

		write_wqe(64 * (k % 32));
		slot_of(slot);
		seed = seed * 1664525 + 1013904223;
		n = seed >> 28;
		for (unsigned int i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			/* Of the control segment alone: what follows may be somebody's wish. */
			if (seed & 1u << 12)
				((uint8_t *)slot)[seed >> 29] ^= 1u << (seed >> 24 & 3);
			bar(0, MINI_UAR, SLOT(seed >> 13 & 1) + (seed >> 16 & 7) * 8,
			    &slot[seed >> 16 & 7], 8);
		}
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		if (rc_state(&rc, 0) == SKUA_QP_RTS)
			continue;
		assert_int_equal(rc.s[0].f.dev->state, DEV_OPERATIONAL);
		rc_close(&rc);
		setup(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(complete, setup, teardown),
		cmocka_unit_test_setup_teardown(parts, setup, teardown),
		cmocka_unit_test_setup_teardown(torn, setup, teardown),
		cmocka_unit_test_setup_teardown(widths, setup, teardown),
		cmocka_unit_test_setup_teardown(owner, setup, teardown),
		cmocka_unit_test_setup_teardown(not_next, setup, teardown),
		cmocka_unit_test_setup_teardown(two, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(longer, setup, teardown),
		cmocka_unit_test_setup_teardown(keys, setup, teardown),
		cmocka_unit_test_setup_teardown(again, setup, teardown),
		cmocka_unit_test_setup_teardown(reset, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(pages, setup, teardown),
		cmocka_unit_test_setup_teardown(random_words, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
