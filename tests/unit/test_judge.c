// SPDX-License-Identifier: GPL-2.0
/*
 * The judge of traces: each rule kept, and broken once. Frames are made by hand, or by
 * the device's own builder for the addresses around what matters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "roce/pkt.h"

#define O(op)	IB_OPCODE(RC, op)
#define OWN	0x111
#define PEER	0x222
#define MTU	256
#define GOOD	(IB_AETH_ACK | IB_AETH_CREDIT_INVALID)
#define BAD	IB_AETH_NAK
#define LATER	IB_AETH_RNR_NAK

/* One packet: @out: the device sends it. @arg: payload, a READ's length, syndrome. */
struct step {
	bool out;
	uint8_t op;
	uint32_t psn;
	uint32_t arg;
	uint64_t at;
	uint32_t msn;
	bool se;
	enum { HERE, MAC, GID, VLAN } stray;	/* to another address than the device's */
};

static const char *play(struct judge *j, const struct step *s)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_addr a = { .sport = 0xc000, .hop_limit = 64, .sgid = { [15] = s->out },
				   .dgid = { [15] = !s->out } };
	struct skua_pkt_bth bth = { .opcode = s->op, .pkey = IB_PKEY_DEFAULT, .psn = s->psn,
				    .dqpn = s->out ? PEER : OWN, .se = s->se };
	/* Of XRC it is the same operation. */
	uint8_t op = s->op & 0x1f;
	struct skua_pkt_build b;
	size_t len;

	a.sgid[0] = 0xfd;
	a.dgid[0] = 0xfd;
	a.dmac[5] = s->stray == MAC;
	a.dgid[14] = s->stray == GID;
	a.vlan = s->stray == VLAN;
	a.tci = a.vlan ? 5 : 0;
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	if (b.reth)
		ib_reth_put(b.reth, 0, 7, op == O(READ_REQUEST) ? s->arg : 8);
	if (b.aeth)
		ib_aeth_put(b.aeth, op == O(ACK) ? (uint8_t)s->arg : GOOD, s->msn);
	len = op == O(READ_REQUEST) || op == O(ACK) || op == O(FETCH_ADD) ||
	      op == O(ATOMIC_ACK) ? 0 : s->arg;
	memset(b.payload, 0, len);
	len = skua_pkt_build_finish(&b, len);
	assert_true(len);
	if (s->out)
		return judge_sent(j, frame, len, s->at);
	judge_received(j, frame, len, s->at);
	return NULL;
}

#define STEPS	12

/* A trace whose last packet breaks a rule: @why is in what the judge says; NULL: none. */
struct trace {
	const char *why;
	struct step step[STEPS];
};

#define SEND1(psn)	{ 1, O(SEND_ONLY), psn, 8 }
#define ASK(psn, len)	{ 1, O(READ_REQUEST), psn, len }
#define GET(psn)	{ 0, O(SEND_ONLY), psn, 8 }
#define GETREAD(psn, len) { 0, O(READ_REQUEST), psn, len }

/* A READ and a WRITE of three packets; the READ again, since an ACK has passed its answer. */
#define WROTE	ASK(0, 8), { 1, O(WRITE_FIRST), 1, MTU }, { 1, O(WRITE_MIDDLE), 2, MTU }, \
		{ 1, O(WRITE_LAST), 3, 8 }
#define AGAIN	{ 0, O(ACK), 1, GOOD }, ASK(0, 8)

static const struct trace traces[] = {
	/* requester */
	{ NULL, { SEND1(0), SEND1(1), { 0, O(ACK), 1, GOOD }, SEND1(2) } },
	{ NULL, { { 1, O(SEND_FIRST), 0, MTU }, { 1, O(SEND_MIDDLE), 1, MTU },
		  { 1, O(SEND_LAST), 2, 1, .se = true } } },
	{ "PSNs left out", { SEND1(0), SEND1(2) } },
	{ "PSNs left out", { ASK(0, 2 * MTU), SEND1(3) } },
	{ NULL, { ASK(0, 2 * MTU), SEND1(2) } },
	{ "acknowledged packet", { SEND1(0), { 0, O(ACK), 0, GOOD }, SEND1(0) } },
	{ "nothing has happened", { SEND1(0), SEND1(0), SEND1(0) } },
	{ NULL, { SEND1(0), SEND1(1), { 0, O(ACK), 1, BAD | 0 }, SEND1(1) } },
	{ NULL, { SEND1(0), { 1, O(SEND_ONLY), 0, 8, 1000000 } } },
	{ "not under way", { SEND1(0), { 1, O(SEND_LAST), 1, 8 } } },
	{ "not under way", { { 1, O(WRITE_FIRST), 0, MTU }, { 1, O(SEND_MIDDLE), 1, MTU } } },
	{ "within another", { { 1, O(SEND_FIRST), 0, MTU }, SEND1(1) } },
	{ "payload", { { 1, O(SEND_FIRST), 0, MTU - 4 } } },
	{ "payload", { { 1, O(SEND_ONLY), 0, MTU + 4 } } },
	{ "SE", { { 1, O(SEND_FIRST), 0, MTU, .se = true } } },
	{ "SE", { { 1, O(WRITE_ONLY), 0, 8, .se = true } } },
	{ "more READs", { ASK(0, 8), ASK(1, 8), ASK(2, 8) } },
	{ NULL, { ASK(0, 8), ASK(1, 8), { 0, O(READ_RESP_ONLY), 0, 8 }, ASK(2, 8) } },
	{ "RNR", { SEND1(0), { 0, O(ACK), 0, LATER | 1 }, { 1, O(SEND_ONLY), 0, 8, 9999 } } },
	{ NULL, { SEND1(0), { 0, O(ACK), 0, LATER | 1 }, { 1, O(SEND_ONLY), 0, 8, 10000 } } },
	{ "RNR", { SEND1(0), { 0, O(ACK), 0, LATER | 31 }, { 1, O(SEND_ONLY), 0, 8, 491519999 } } },
	{ NULL, { SEND1(0), { 0, O(ACK), 0, LATER | 31 }, { 1, O(SEND_ONLY), 0, 8, 491520000 } } },
	{ "ended", { SEND1(0), { 0, O(ACK), 0, BAD | 2 }, SEND1(1) } },
	/*
	 * A requester that went back for a lost answer: when that comes, what came after it the
	 * first time is acknowledged by an ACK that was sent for that or for a repetition.
	 */
	{ NULL, { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 }, { 0, O(ACK), 1, GOOD },
		  { 1, O(WRITE_MIDDLE), 2, MTU } } },
	{ NULL, { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 }, { 1, O(WRITE_FIRST), 1, MTU },
		  { 0, O(ACK), 2, GOOD }, { 1, O(WRITE_LAST), 3, 8 } } },
	{ "left out", { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 }, { 0, O(ACK), 1, GOOD },
			{ 1, O(WRITE_LAST), 3, 8 } } },
	{ "left out", { WROTE, AGAIN, { 0, O(ACK), 1, GOOD }, { 1, O(WRITE_MIDDLE), 2, MTU } } },
	{ "left out", { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 },
			{ 0, O(ACK), 2, BAD | 0 }, { 1, O(WRITE_LAST), 3, 8 } } },
	{ NULL, { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 },
		  { 0, O(ACK), 2, BAD | 0 }, { 1, O(WRITE_MIDDLE), 2, MTU } } },
	{ "than the first time", { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 },
				   { 0, O(ACK), 1, GOOD }, { 1, O(WRITE_ONLY), 2, 8 } } },
	{ NULL, { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 }, { 0, O(ACK), 3, GOOD }, SEND1(4) } },
	{ "not under way", { WROTE, AGAIN, { 0, O(READ_RESP_ONLY), 0, 8 }, { 0, O(ACK), 3, GOOD },
			     { 1, O(WRITE_LAST), 4, 8 } } },
	/* An ACK that passes a READ's answer is none for what follows. */
	{ "left out", { ASK(0, 8), SEND1(1), SEND1(2), { 0, O(ACK), 2, GOOD }, ASK(0, 8),
			SEND1(2) } },
	{ "than the first time", { SEND1(0), { 1, O(WRITE_ONLY), 0, 8, 1 } } },
	{ "than the first time", { SEND1(0), ASK(1, 8), { 1, O(READ_REQUEST), 0, 2 * MTU, 1 } } },
	{ NULL, { ASK(0, 3 * MTU), { 0, O(READ_RESP_FIRST), 0, MTU },
		  { 1, O(READ_REQUEST), 1, 2 * MTU, 1 } } },
	/* responder */
	{ NULL, { GET(100), { 1, O(ACK), 100, GOOD, .msn = 1 }, GET(101),
		  { 1, O(ACK), 101, GOOD, .msn = 2 } } },
	{ "did not come", { GET(100), { 1, O(ACK), 101, GOOD, .msn = 1 } } },
	{ "did not come", { GET(101), { 1, O(ACK), 101, GOOD, .msn = 1 } } },
	{ "less than", { GET(100), GET(101), { 1, O(ACK), 101, GOOD }, { 1, O(ACK), 100, GOOD } } },
	{ "counts messages", { GET(100), { 1, O(ACK), 100, GOOD, .msn = 2 } } },
	{ "goes back", { GET(100), { 1, O(ACK), 100, GOOD, .msn = 1 }, { 1, O(ACK), 100, GOOD } } },
	{ "before the answer", { GETREAD(100, 8), GET(101), { 1, O(ACK), 101, GOOD } } },
	{ NULL, { GETREAD(100, 8), GET(101), { 1, O(READ_RESP_ONLY), 100, 8 },
		  { 1, O(ACK), 101, GOOD } } },
	{ "before that", { GETREAD(100, 8), GETREAD(101, 8), { 1, O(READ_RESP_ONLY), 101, 8 } } },
	{ "did not come", { GET(100), { 1, O(READ_RESP_ONLY), 100, 8 } } },
	{ "did not come", { GETREAD(100, 8), { 1, O(ATOMIC_ACK), 100 } } },
	{ NULL, { GETREAD(100, 2 * MTU), { 1, O(READ_RESP_FIRST), 100, MTU },
		  { 1, O(READ_RESP_LAST), 101, MTU } } },
	{ "before that", { GETREAD(100, 3 * MTU), { 1, O(READ_RESP_MIDDLE), 101, MTU } } },
	{ "not under way", { GETREAD(100, 8), GETREAD(101, 2 * MTU), { 1, O(READ_RESP_ONLY), 100, 8 },
			     { 1, O(READ_RESP_MIDDLE), 101, MTU } } },
	{ NULL, { GET(102), { 1, O(ACK), 100, BAD | 0 } } },
	{ "no gap", { GET(100), { 1, O(ACK), 101, BAD | 0 } } },
	{ "beyond", { GET(103), { 1, O(ACK), 101, BAD | 0 } } },
	{ "second NAK", { GET(102), { 1, O(ACK), 100, BAD | 0 }, GET(103),
			  { 1, O(ACK), 100, BAD | 0 } } },
	{ NULL, { GET(102), { 1, O(ACK), 100, BAD | 0 }, GET(100), GET(102),
		  { 1, O(ACK), 101, BAD | 0 } } },
	{ NULL, { GET(100), { 1, O(ACK), 100, LATER | 5 } } },
	{ "RNR NAK for", { { 1, O(ACK), 100, LATER | 5 } } },
	/* What a NAK asked for must come again, and may be another request then. */
	{ "ACK of a request", { GET(100), { 1, O(ACK), 100, LATER | 5 },
				{ 1, O(ACK), 100, GOOD, .msn = 1 } } },
	{ NULL, { GET(100), { 1, O(ACK), 100, LATER | 5 }, GET(100),
		  { 1, O(ACK), 100, GOOD, .msn = 1 } } },
	{ "counts messages", { GET(100), { 1, O(ACK), 100, LATER | 5 }, GET(100),
			       { 1, O(ACK), 100, GOOD, .msn = 2 } } },
	{ NULL, { GETREAD(100, 8), { 1, O(ACK), 100, LATER | 5 }, GET(100),
		  { 1, O(ACK), 100, GOOD, .msn = 1 } } },
	{ "did not come", { GETREAD(100, 8), { 1, O(ACK), 100, LATER | 5 }, GET(100),
			    { 1, O(READ_RESP_ONLY), 100, 8 } } },
	{ NULL, { GETREAD(100, 8), GET(100), { 1, O(ACK), 100, GOOD, .msn = 1 } } },
	{ "after the NAK", { GET(100), { 1, O(ACK), 100, BAD | 1 }, { 1, O(ACK), 100, GOOD } } },
};

static struct judge_path path = {
	.own = OWN, .peer = PEER, .mtu = MTU, .depth = 2, .rq_psn = 100,
	.sgid = { 0xfd },
};

static void rules(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(traces) / sizeof(traces[0]); k++) {
		const struct step *s = traces[k].step;
		const char *got = NULL;
		struct judge j = { 0 };
		unsigned int n = 0;

		judge_hears(&j, &path);
		judge_sends(&j, &path);
		for (; n < STEPS && s[n].op + s[n].psn + s[n].arg && !got; n++)
			got = play(&j, &s[n]);
		if (!got != !traces[k].why || (got && !strstr(got, traces[k].why)))
			fail_msg("trace %zu: \"%s\", not \"%s\"", k, got ? got : "nothing",
				 traces[k].why ? traces[k].why : "nothing");
		/* It is the last one that breaks it. */
		if (got && n < STEPS)
			assert_int_equal(s[n].op + s[n].psn + s[n].arg, 0);
		judge_reset(&j);
	}
}

/* Who has not been let to send or hear, and packets that are damaged. */
static void states(void **state)
{
	const struct step send = SEND1(0);
	uint8_t frame[128] = { 0 };
	struct judge j = { 0 };

	(void)state;
	judge_hears(&j, &path);
	assert_non_null(strstr(play(&j, &send), "before RTS"));
	judge_sends(&j, &path);
	assert_null(play(&j, &send));
	judge_stops(&j, OWN);
	assert_null(play(&j, &send));
	assert_null(judge_sent(&j, frame, sizeof(frame), 0));
	judge_reset(&j);
}

/* What is not for the device tells it nothing: it goes on as if it had not come. */
static void strays(void **state)
{
	const struct judge_addr own = { .vlan = JUDGE_NO_VLAN, .gid = { 0xfd, [15] = 1 } };
	const struct step send = SEND1(0);
	struct step again = SEND1(0), nak = { 0, O(ACK), 0, BAD | 2 };
	struct judge j = { 0 };

	(void)state;
	judge_address(&j, 0, &own);
	judge_hears(&j, &path);
	judge_sends(&j, &path);
	assert_null(play(&j, &send));
	for (nak.stray = MAC; nak.stray <= VLAN; nak.stray++) {
		again.at += 1000;
		assert_null(play(&j, &nak));
		assert_null(play(&j, &again));
	}
	nak.stray = HERE;
	again.at += 1000;
	assert_null(play(&j, &nak));
	assert_non_null(strstr(play(&j, &again), "ended"));
	judge_reset(&j);
}

/* A response of RC to an XRC queue pair, and the other way round, is none: it goes on waiting. */
static void transports(void **state)
{
	const struct step acks[] = { { 0, O(ACK), 0, GOOD }, { 0, IB_OPCODE(XRC, ACK), 0, GOOD } };
	const struct step sends[] = { SEND1(0), { 1, IB_OPCODE(XRC, SEND_ONLY), 0, 8 } };

	(void)state;
	for (unsigned int xrc = 0; xrc < 2; xrc++) {
		struct step again = sends[xrc];
		struct judge j = { 0 };

		if (xrc)
			judge_makes_xrc(&j, OWN);
		judge_hears(&j, &path);
		judge_sends(&j, &path);
		assert_non_null(strstr(play(&j, &sends[!xrc]), "another transport"));
		assert_null(play(&j, &sends[xrc]));
		assert_null(play(&j, &acks[!xrc]));
		again.at += 1000;
		assert_null(play(&j, &again));
		assert_null(play(&j, &acks[xrc]));
		again.at += 1000;
		assert_non_null(strstr(play(&j, &again), "acknowledged packet"));
		/* A number that is used again has forgotten what it was. */
		judge_destroys(&j, OWN);
		judge_hears(&j, &path);
		judge_sends(&j, &path);
		assert_null(play(&j, &sends[0]));
		judge_reset(&j);
	}
}

/* It remembers all that are of XRC, however many there are. */
static void many(void **state)
{
	const uint32_t num = 3 * JUDGE_QPS;
	struct judge j = { 0 };

	(void)state;
	for (uint32_t i = 0; i < num; i++)
		judge_makes_xrc(&j, OWN + i);
	for (uint32_t i = 0; i < num; i++) {
		struct judge_path one = path;

		one.own = OWN + i;
		judge_hears(&j, &one);
		assert_non_null(j.qp[0]);
		assert_true(j.qp[0]->xrc);
		judge_destroys(&j, one.own);
		judge_hears(&j, &one);
		assert_false(j.qp[0]->xrc);
		judge_stops(&j, one.own);
	}
	judge_reset(&j);
}

/* A bit of the ICRC wrong: the packet is reported, not followed. */
static void icrc(void **state)
{
	const struct step send = SEND1(0);
	struct judge j = { 0 };
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_addr a = { .sport = 0xc000, .hop_limit = 64, .sgid = { 0xfd, [15] = 1 },
				   .dgid = { 0xfd } };
	struct skua_pkt_bth bth = { .opcode = O(SEND_ONLY), .pkey = IB_PKEY_DEFAULT,
				    .dqpn = PEER };
	struct skua_pkt_build b;
	size_t len;

	(void)state;
	judge_hears(&j, &path);
	judge_sends(&j, &path);
	assert_null(play(&j, &send));
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	memset(b.payload, 0, 8);
	len = skua_pkt_build_finish(&b, 8);
	for (size_t i = 0; i < 4; i++) {
		frame[len - 1 - i] ^= 1;
		assert_non_null(strstr(judge_sent(&j, frame, len, 0), "ICRC"));
		frame[len - 1 - i] ^= 1;
	}
	judge_reset(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(states),
		cmocka_unit_test(strays),
		cmocka_unit_test(transports),
		cmocka_unit_test(many),
		cmocka_unit_test(icrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
