// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that come again and have answers of their own (READ, atomics, FLUSH,
 * ATOMIC_WRITE): what of them is repeated, what is refused, and what the answers say.
 * Side 1 is the responder; its peer is forged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rc.h"
#include "roce/engine.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define O(op)	IB_OPCODE(RC, op)
#define MTU	256
#define SECRET	(1u << 20)	/* offset of what the peer must not see */
#define RIGHTS	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | \
		 SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL)

/* A request that addresses @len bytes at offset @off. */
struct req {
	uint8_t op;
	uint32_t psn;
	uint64_t off;
	uint32_t len;
	uint32_t rkey;		/* 0: that of side 1's region */
};

static void forge(struct rc *rc, const struct req *r)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	uint32_t rkey = r->rkey ? r->rkey : rc->s[1].key;
	struct skua_pkt_build b;
	size_t payload = 0;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), r->op,
				  r->psn & IB_PSN_MASK), 0);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + r->off, rkey, r->len);
	if (b.feth)
		be32_put(b.feth->word, SKUA_WQE_FLUSH_GLOBAL);
	if (b.atomiceth)
		ib_atomiceth_put(b.atomiceth, RC_VA + r->off, rkey, 1, 0);
	if (r->op == O(WRITE_ONLY) || r->op == O(ATOMIC_WRITE)) {
		memset(b.payload, 0x77, r->len);
		payload = r->len;
	}
	rc_inject(rc, 1, &b, payload);
}

struct answer {
	uint8_t op, syndrome;
	uint32_t psn, msn, len;
	uint64_t orig;
	uint8_t payload[4096];
};

/* The next packet that side 1 sent. */
static bool next_answer(struct rc *rc, struct answer *a)
{
	struct fake_frame *f;
	struct skua_pkt pkt;

	fake_run(&rc->s[1].f);
	f = fake_tx(&rc->s[1].f);
	if (!f)
		return false;
	assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
	*a = (struct answer){ .op = pkt.opcode, .psn = pkt.psn, .len = pkt.payload_len };
	a->syndrome = pkt.aeth ? pkt.aeth->syndrome : 0xff;
	a->msn = pkt.aeth ? be24_get(pkt.aeth->msn) : 0;
	a->orig = pkt.atomicacketh ? be64_get(pkt.atomicacketh->orig) : 0;
	memcpy(a->payload, pkt.payload, pkt.payload_len);
	free(f);
	return true;
}

static void drain(struct rc *rc)
{
	struct answer a;

	while (next_answer(rc, &a))
		;
}

static void set_rights(struct rc *rc, uint32_t rights)
{
	struct skua_qp_attr a = { .rights = le32_encode_bits(rights, SKUA_ATTR_ACCESS) };

	assert_int_equal(mini_qp_modify(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_RTS,
					SKUA_QP_M_ACCESS, &a), 0);
}

/* --- a repeated READ --- */

/* The READ was of 5 packets from PSN 0xfffffe and offset 4096 on, the last of 10 bytes. */
#define FIRST	0xfffffe
#define LEN	(4 * MTU + 10)

static const struct {
	const char *name;
	uint32_t in;		/* packets from its start */
	int32_t off;		/* bytes from where that packet's are */
	uint32_t len;
	bool ok;
} repeats[] = {
	{ "the whole", 0, 0, LEN, true },
	{ "its end", 2, 0, LEN - 2 * MTU, true },
	{ "its last packet", 4, 0, 10, true },
	{ "its start only", 0, 0, MTU, true },
	{ "a part of its middle", 1, 0, MTU + 1, true },
	{ "nothing", 0, 0, 0, true },
	{ "a byte too many", 0, 0, LEN + 1, false },
	{ "a byte too many at the end", 4, 0, 11, false },
	{ "a byte later", 0, 1, LEN - 1, false },
	{ "a byte earlier", 0, -1, LEN, false },
	{ "a packet later, from its start", 1, -MTU, MTU, false },
	{ "far away", 0, SECRET, LEN, false },
};

static void test_read_part(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(repeats); k++) {
		uint32_t psn = psn_add(FIRST, repeats[k].in), got = 0;
		uint64_t at = 4096 + repeats[k].in * MTU + repeats[k].off;
		struct answer a;
		struct rc rc;

		print_message("%s\n", repeats[k].name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { FIRST } });
		rc_fill(rc.s[1].buf, 2 * SECRET, 1);
		forge(&rc, &(struct req){ O(READ_REQUEST), FIRST, 4096, LEN });
		drain(&rc);
		forge(&rc, &(struct req){ O(READ_REQUEST), psn, at, repeats[k].len });
		while (next_answer(&rc, &a)) {
			assert_true(repeats[k].ok);
			assert_int_equal(a.psn, psn_add(psn, got / MTU));
			assert_memory_equal(a.payload, rc.s[1].buf + at + got, a.len);
			got += a.len;
		}
		assert_int_equal(got, repeats[k].ok ? repeats[k].len : 0);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), !repeats[k].ok);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		rc_close(&rc);
	}
}

/* Another key, though it is valid for the very same memory, is another request. */
static void test_read_key(void **state)
{
	struct answer a;
	struct rc rc;
	uint32_t key;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	key = mini_mr(&rc.s[1].m, RC_VA, rc.s[1].bus, 4096, SKUA_ACCESS_REMOTE_READ);
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU });
	drain(&rc);
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU, key });
	assert_false(next_answer(&rc, &a));
	/* It changed nothing: the true one is still answered. */
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU });
	assert_true(next_answer(&rc, &a));
	assert_int_equal(a.len, MTU);
	rc_close(&rc);
}

/* The right that there was when it came first is gone. */
static void test_read_revoked(void **state)
{
	struct answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .access = RIGHTS });
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU });
	drain(&rc);
	set_rights(&rc, RIGHTS & ~SKUA_ACCESS_REMOTE_READ);
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU });
	assert_false(next_answer(&rc, &a));
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	set_rights(&rc, RIGHTS);
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, MTU });
	assert_true(next_answer(&rc, &a));
	assert_int_equal(a.len, MTU);
	rc_close(&rc);
}

/* So it is when it goes before the answer has left, or amid the answer. */
static void test_read_revoked_before_answer(void **state)
{
	struct answer a;
	struct rc rc;

	(void)state;
	for (unsigned int runs = 0; runs < 2; runs++) {
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .access = RIGHTS });
		forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, 1000 * MTU });
		for (unsigned int i = 0; i < runs; i++)
			skua_dev_run(rc.s[1].f.dev);
		assert_int_equal(rc.s[1].f.sent > 0, runs > 0);
		assert_true(rc.s[1].f.sent < 900);
		while (rc.s[1].f.tx_head != rc.s[1].f.tx_tail)
			free(fake_tx(&rc.s[1].f));
		set_rights(&rc, RIGHTS & ~SKUA_ACCESS_REMOTE_READ);
		assert_true(next_answer(&rc, &a));
		/* The command itself gave the device time for some more. */
		while (a.len)
			assert_true(next_answer(&rc, &a));
		assert_int_equal(a.op, O(ACK));
		assert_int_equal(a.syndrome, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS);
		assert_true(a.psn < 900);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		rc_close(&rc);
	}
}

/* --- FLUSH --- */

/*
 * FLUSHes, of which a peer may send as many as it likes, leave alone what is kept for
 * the requests of which a number was agreed on.
 */
static void test_flush_evicts_nothing(void **state)
{
	static const uint8_t kinds[] = { O(FETCH_ADD), O(READ_REQUEST), O(ATOMIC_WRITE) };
	struct answer a;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(kinds); k++) {
		struct req r = { kinds[k], 0, 0, 8 };

		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .rd_atomic = 1 + 1,
					       .access = RIGHTS });
		rc.s[1].buf[0] = 5;
		forge(&rc, &r);
		drain(&rc);
		for (uint32_t psn = 1; psn <= 100; psn++) {
			forge(&rc, &(struct req){ O(FLUSH), psn, 0, 8 });
			drain(&rc);
		}
		forge(&rc, &r);
		assert_true(next_answer(&rc, &a));
		assert_int_equal(a.psn, 0);
		if (kinds[k] == O(FETCH_ADD))
			assert_int_equal(a.orig, 5);
		assert_false(next_answer(&rc, &a));
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
		rc_close(&rc);
	}
}

/*
 * What is repeated is answered in the order of PSNs, whatever order it comes in, and
 * once for each.
 */
static void test_flush_order(void **state)
{
	static const uint32_t again[] = { 20, 6, 7, 6, 0, 20, 21 };
	static const struct { uint8_t op; uint32_t psn; } want[] = {
		{ O(READ_RESP_FIRST), 0 }, { O(READ_RESP_MIDDLE), 1 }, { O(READ_RESP_MIDDLE), 2 },
		{ O(READ_RESP_MIDDLE), 3 }, { O(READ_RESP_LAST), 4 }, { O(READ_RESP_ONLY), 6 },
		{ O(ATOMIC_ACK), 7 }, { O(READ_RESP_ONLY), 20 }, { O(ATOMIC_ACK), 21 },
	};
	struct answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { FIRST }, .access = RIGHTS });
	forge(&rc, &(struct req){ O(READ_REQUEST), FIRST, 0, 5 * MTU });
	for (uint32_t n = 5; n <= 21; n++) {
		forge(&rc, &(struct req){ n == 7 || n == 21 ? O(FETCH_ADD) : O(FLUSH), FIRST + n,
					  0, 8 });
		drain(&rc);
	}
	for (size_t k = 0; k < N(again); k++) {
		uint32_t n = again[k];

		forge(&rc, &(struct req){ !n ? O(READ_REQUEST) :
					  n == 7 || n == 21 ? O(FETCH_ADD) : O(FLUSH),
					  FIRST + n, 0, n ? 8 : 5 * MTU });
	}
	for (size_t k = 0; k < N(want); k++) {
		assert_true(next_answer(&rc, &a));
		assert_int_equal(a.op, want[k].op);
		assert_int_equal(a.psn, psn_add(FIRST, want[k].psn));
	}
	assert_false(next_answer(&rc, &a));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	rc_close(&rc);
}

/* A FLUSH whose PSN is that of something else, or that the QP does not allow any more. */
static void test_flush_refused(void **state)
{
	struct answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .access = RIGHTS });
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, 5 * MTU });
	forge(&rc, &(struct req){ O(FLUSH), 5, 0, 8 });
	drain(&rc);
	forge(&rc, &(struct req){ O(FLUSH), 3, 0, 8 });
	assert_false(next_answer(&rc, &a));
	set_rights(&rc, RIGHTS & ~SKUA_ACCESS_FLUSH_GLOBAL);
	forge(&rc, &(struct req){ O(FLUSH), 5, 0, 8 });
	assert_false(next_answer(&rc, &a));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 2);
	rc_close(&rc);
}

/* --- MSN --- */

/*
 * An answer speaks for its own request and those before it, even if later ones were
 * executed before it leaves, and when it is given again.
 */
static void test_msn(void **state)
{
	static const uint8_t kinds[] = {
		O(READ_REQUEST), O(FETCH_ADD), O(FLUSH), O(ATOMIC_WRITE),
	};
	struct answer a;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(kinds); k++) {
		struct req r = { kinds[k], 1, 0, 8 };

		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .access = RIGHTS });
		forge(&rc, &(struct req){ O(WRITE_ONLY), 0, 64, 8 });
		forge(&rc, &r);
		for (uint32_t psn = 2; psn < 202; psn++)
			forge(&rc, &(struct req){ O(WRITE_ONLY), psn, 64, 8 });
		assert_true(next_answer(&rc, &a));
		assert_int_equal(a.psn, 1);
		assert_int_equal(a.msn, 2);
		assert_true(next_answer(&rc, &a));
		assert_int_equal(a.op, O(ACK));
		assert_int_equal(a.psn, 201);
		assert_int_equal(a.msn, 202);
		if (kinds[k] != O(FLUSH)) {
			forge(&rc, &r);
			assert_true(next_answer(&rc, &a));
			assert_int_equal(a.psn, 1);
			assert_int_equal(a.msn, 2);
		}
		assert_false(next_answer(&rc, &a));
		rc_close(&rc);
	}
}

/* All packets of an answer say the same. */
static void test_msn_of_long_read(void **state)
{
	struct answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	forge(&rc, &(struct req){ O(READ_REQUEST), 0, 0, 1000 * MTU });
	skua_dev_run(rc.s[1].f.dev);
	forge(&rc, &(struct req){ O(WRITE_ONLY), 1000, 64, 8 });
	for (uint32_t psn = 0; psn < 1000; psn++) {
		assert_true(next_answer(&rc, &a));
		assert_int_equal(a.psn, psn);
		/* Those amid it have no AETH. */
		assert_int_equal(a.msn, psn == 0 || psn == 999);
	}
	assert_true(next_answer(&rc, &a));
	assert_int_equal(a.msn, 2);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_part),
		cmocka_unit_test(test_read_key),
		cmocka_unit_test(test_read_revoked),
		cmocka_unit_test(test_read_revoked_before_answer),
		cmocka_unit_test(test_flush_evicts_nothing),
		cmocka_unit_test(test_flush_order),
		cmocka_unit_test(test_flush_refused),
		cmocka_unit_test(test_msn),
		cmocka_unit_test(test_msn_of_long_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
