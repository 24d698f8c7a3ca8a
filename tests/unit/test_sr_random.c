// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: random messages over a network that loses, repeats and
 * reorders their packets, until all is acknowledged. After each packet the responder must
 * be where a reference is that knows nothing of it: PSN and MSN expected, completions and
 * their order, bytes in memory, what is acknowledged and answered.
 *
 * SKUA_TRACES: so many traces, one at least; 100000 if nothing is said.
 */
#include "odp.h"

#include "sr_forge.h"

#define MTU		256u
#define RECVS		16u		/* of the receive queue */
#define RECV_LEN	1024u
#define PLACES		64u		/* of messages, behind the receives */
#define PLACE(n)	(RECVS * RECV_LEN + (n) % PLACES * 1024)
#define MEM		(RECVS * RECV_LEN + PLACES * 1024)
#define TRACES		100000u
#define RUNS		20u		/* connections that they are shared out to */

/* What a network carries: a packet of a message, numbers not yet cut to 24 bits. */
enum kind { SEND, WRITE, IMM, READ, FAA };

struct packet {
	enum kind kind;
	uint32_t psn, psns;	/* as one request takes them up */
	uint32_t seq, off;
	uint32_t len, total;
	uint64_t at;		/* in memory, of the whole message */
	uint32_t imm;
	bool first, last;
	bool ask;		/* for an acknowledgment */
	uint8_t data[MTU];
};

/* --- the reference --- */

#define REF_PSNS	2048u

/**
 * struct ref - a receiver
 * @epsn: PSN expected
 * @msn: messages done
 * @window: PSNs from epsn on that it takes
 * @posted: receives posted since the beginning
 * @recvs: receives completed
 * @reads: requests with responses done
 * @psn0: the PSN that stands for 0 here
 * @top: one after the last that came before its turn, while any is held
 * @dropped: one after the packet that came just now, and was dropped, or 0
 * @held: packets that came before their turn, by PSN
 * @mem: memory
 * @writer: for each byte of it one after the PSN of the packet of a WRITE that it is of; 0: of none
 * @cqe: completions since it was asked last: message and bytes
 * @cqes: their number
 * @answered: requests that were done, and have responses
 * @answers: their number
 * @ack: an acknowledgment is due
 * @rnr: instead, it says that there is no receive
 */
struct ref {
	uint32_t epsn, msn, window, posted, recvs, reads, psn0, top, dropped;
	const struct packet *held[REF_PSNS];
	uint8_t mem[MEM];
	uint32_t writer[MEM];
	struct {
		uint32_t len, imm;
	} cqe[64];
	unsigned int cqes;
	const struct packet *answered[64];
	unsigned int answers;
	bool ack, rnr;
};

static bool needs_recv(const struct packet *p)
{
	return p->kind == SEND || (p->kind == IMM && p->last);
}

static void ref_place(struct ref *r, const struct packet *p)
{
	uint64_t at = p->kind == SEND ? p->seq % RECVS * RECV_LEN : p->at;

	if (p->kind == SEND)
		memcpy(r->mem + at + p->off * MTU, p->data, p->len);
	if (p->kind != WRITE && p->kind != IMM)
		return;
	at += p->off * MTU;
	for (uint32_t k = 0; k < p->len; k++) {
		/* Its own are written again where it was let go and comes again. */
		if (r->writer[at + k] > p->psn + 1)
			continue;
		r->mem[at + k] = p->data[k];
		r->writer[at + k] = p->psn + 1;
	}
}

/* Its turn has come, and it can go on. */
static void ref_do(struct ref *r, const struct packet *p)
{
	uint64_t val;

	r->held[p->psn % REF_PSNS] = NULL;
	r->epsn += p->psns;
	r->msn += p->last;
	if (p->last && (p->kind == SEND || p->kind == IMM)) {
		r->cqe[r->cqes].len = p->off * MTU + p->len;
		r->cqe[r->cqes++].imm = p->imm;
		r->recvs++;
	}
	if (p->kind == FAA) {
		memcpy(&val, r->mem + p->at, sizeof(val));
		val = htole64(le64toh(val) + p->imm);
		memcpy(r->mem + p->at, &val, sizeof(val));
	}
	if (p->kind == READ || p->kind == FAA) {
		r->reads++;
		r->answered[r->answers++] = p;
	}
}

static bool ref_early(const struct ref *r, const struct packet *p)
{
	if (p->kind == FAA || p->psn - r->epsn >= r->window)
		return false;
	if (p->kind == READ)
		return p->seq - r->reads < 16;
	return p->kind != SEND || p->seq - r->recvs < r->posted - r->recvs;
}

static bool ref_holds(const struct ref *r)
{
	for (uint32_t k = 0; k < r->window; k++) {
		if (r->held[(r->epsn + k) % REF_PSNS])
			return true;
	}
	return false;
}

/* Of those that follow each other, only each 32nd is told of at once. */
static void ref_take(struct ref *r, const struct packet *p)
{
	bool holds = ref_holds(r);

	r->ack = p->ask || p->kind == READ || (r->psn0 + p->psn) % 32 == 0 || !holds ||
		 p->psn != r->top;
	if (!holds || p->psn >= r->top)
		r->top = p->psn + 1;
	ref_place(r, p);
	r->held[p->psn % REF_PSNS] = p;
}

static void ref_rx(struct ref *r, const struct packet *p)
{
	bool data = p->kind != READ && p->kind != FAA;

	r->ack = data ? p->psn != r->epsn || p->ask : p->psn > r->epsn;
	r->rnr = false;
	r->dropped = 0;
	if (p->psn < r->epsn)
		return;
	if (p->psn > r->epsn) {
		if (r->held[p->psn % REF_PSNS])
			return;
		if (ref_early(r, p))
			ref_take(r, p);
		else if (p->psn - r->epsn < r->window && p->kind != FAA)
			r->dropped = p->psn + 1;
		return;
	}
	if (needs_recv(p) && r->recvs == r->posted) {
		r->rnr = true;
		return;
	}
	r->ack |= ref_holds(r);
	ref_place(r, p);
	ref_do(r, p);
	while ((p = r->held[r->epsn % REF_PSNS])) {
		if (needs_recv(p) && r->recvs == r->posted) {
			r->held[p->psn % REF_PSNS] = NULL;
			r->rnr = true;
			return;
		}
		ref_do(r, p);
	}
}

/* --- messages --- */

static uint64_t rnd;

static uint32_t draw(uint32_t below)
{
	rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rnd >> 33) * below >> 31);
}

/**
 * struct net - a run
 * @rc: the responder is its side 1
 * @ref: the reference
 * @next: of the message to come: PSN, number of its receive, of its response
 * @msgs: messages so far
 * @p: packets of the trace
 * @n: their number
 */
struct net {
	struct rc rc;
	struct ref ref;
	struct {
		uint32_t psn, recv, read;
	} next;
	uint32_t msgs;
	struct packet p[128];
	unsigned int n;
};

static void one_packet(struct net *net, enum kind kind, uint32_t off, uint32_t total, uint64_t at)
{
	struct packet *p = &net->p[net->n++];
	bool data = kind != READ && kind != FAA;

	*p = (struct packet){
		.kind = kind,
		.psn = net->next.psn,
		.psns = kind == READ && total ? (total + MTU - 1) / MTU : 1,
		.seq = data ? net->next.recv : net->next.read,
		.off = off,
		.total = total,
		.at = at,
		.first = !off,
		.last = !data || off * MTU + MTU >= total,
		.ask = draw(2),
	};
	p->len = !data ? 0 : p->last ? total - off * MTU : MTU;
	p->imm = kind == FAA ? 1 + draw(9) : (kind == SEND && total & 1) || kind == IMM ?
		 net->msgs + 1 : 0;
	for (uint32_t k = 0; k < p->len; k += 8)
		memcpy(p->data + k, (uint64_t []){ rnd += 0x9e3779b97f4a7c15ull }, 8);
	net->next.psn += p->psns;
}

static void message(struct net *net)
{
	static const enum kind kinds[] = { SEND, SEND, SEND, WRITE, WRITE, IMM, READ, FAA };
	enum kind kind = kinds[draw(N(kinds))];
	uint32_t total = draw(3) ? draw(MTU + 1) : draw(3 * MTU + 1);
	bool before = kind == READ || (draw(2) && (kind == WRITE || kind == IMM));
	/* Half of the WRITEs go to the places of messages before, over what these wrote. */
	uint64_t at = PLACE(before ? net->msgs - draw(4) : net->msgs);

	if (kind == FAA)
		total = 8;
	if (kind == WRITE || kind == IMM)
		at += draw(1024 - total + 1);
	for (uint32_t off = 0; !off || (off * MTU < total && kind != READ); off++)
		one_packet(net, kind, off, total, at);
	net->next.recv += kind == SEND || kind == IMM;
	net->next.read += kind == READ || kind == FAA;
	net->msgs++;
}

/* --- comparing --- */

static void send_packet(struct net *net, const struct packet *p)
{
	static const uint8_t op[5][2][2] = {
		[SEND] = { { IB_OP_SEND_MIDDLE, IB_OP_SEND_LAST },
			   { IB_OP_SEND_FIRST, IB_OP_SEND_ONLY } },
		[WRITE] = { { IB_OP_WRITE_MIDDLE, IB_OP_WRITE_LAST },
			    { IB_OP_WRITE_FIRST, IB_OP_WRITE_ONLY } },
		[IMM] = { { IB_OP_WRITE_MIDDLE, IB_OP_WRITE_LAST_IMM },
			  { IB_OP_WRITE_FIRST, IB_OP_WRITE_ONLY_IMM } },
		[READ] = { { 0, 0 }, { 0, IB_OP_READ_REQUEST } },
		[FAA] = { { 0, 0 }, { 0, IB_OP_FETCH_ADD } },
	};
	struct sr_pkt s = {
		.op = op[p->kind][p->first][p->last],
		.psn = net->ref.psn0 + p->psn,
		.seq = p->seq,
		.off = p->off,
		.len = p->len,
		.data = p->data,
		.roff = p->at,
		.total = p->total,
		.imm = p->imm,
		.quiet = !p->ask,
		.plain = p->kind == FAA,
	};

	if (p->kind == SEND && p->last && p->imm)
		s.op = p->first ? IB_OP_SEND_ONLY_IMM : IB_OP_SEND_LAST_IMM;
	sr_send(&net->rc, &s);
	fake_run(&net->rc.s[1].f);
}

static void check_ack(struct net *net, const struct sr_answer *a)
{
	const struct ref *r = &net->ref;
	/* Of what was dropped it says so only if nothing behind it is held. */
	uint32_t came = r->dropped && (!ref_holds(r) || r->dropped > r->top) ? r->dropped : 0;
	uint8_t type = a->syndrome & IB_AETH_TYPE_MASK;

	assert_true(r->ack || r->rnr);
	assert_int_equal(type, r->rnr ? IB_AETH_RNR_NAK : IB_AETH_ACK);
	assert_int_equal(a->psn, (net->ref.psn0 + r->epsn - !r->rnr) & IB_PSN_MASK);
	assert_int_equal(a->msn, r->msn & IB_MSN_MASK);
	assert_int_equal(a->se, !!came);
	for (uint32_t k = 0; !r->rnr && k < r->window; k++)
		assert_int_equal(sr_bit(a, k), r->held[(r->epsn + k) % REF_PSNS] ||
				 r->epsn + k + 1 == came);
}

/* Responses of @answers requests that were done; then what is said of the rest. */
static void check_answers(struct net *net, const struct packet *const *req, unsigned int answers)
{
	struct sr_answer a;

	for (unsigned int k = 0; k < answers; k++) {
		for (uint32_t n = 0; n < req[k]->psns; n++) {
			uint32_t left = req[k]->total - n * MTU;

			assert_true(sr_next(&net->rc, &a));
			assert_int_equal(a.psn, (net->ref.psn0 + req[k]->psn + n) & IB_PSN_MASK);
			assert_int_equal(a.opcode == IB_OPCODE(RC, ATOMIC_ACK),
					 req[k]->kind == FAA);
			if (req[k]->kind == FAA)
				continue;
			assert_int_equal(a.len, left < MTU ? left : MTU);
			assert_memory_equal(a.payload, net->ref.mem + req[k]->at + n * MTU,
					    a.len);
		}
	}
	if (net->ref.ack || net->ref.rnr) {
		assert_true(sr_next(&net->rc, &a));
		assert_int_equal(a.opcode & 0x1f, IB_OP_ACK);
		check_ack(net, &a);
	}
	assert_false(sr_next(&net->rc, &a));
}

static void check_cqes(struct net *net)
{
	struct ref *r = &net->ref;

	for (unsigned int k = 0; k < r->cqes; k++) {
		struct skua_cqe cqe = rc_expect(&net->rc, 1, true, SKUA_CQE_OK);

		assert_int_equal(skua_cqe_wqe_index(&cqe),
				 (r->recvs - r->cqes + k) & 0xffff);
		assert_int_equal(le32_to_cpu(cqe.byte_len), r->cqe[k].len);
		if (r->cqe[k].imm)
			assert_int_equal(be32_get((const uint8_t *)&cqe.imm), r->cqe[k].imm);
	}
	rc_expect_none(&net->rc, 1, true);
}

static void deliver(struct net *net, const struct packet *p)
{
	struct ref *r = &net->ref;
	const struct packet *again = p;
	bool repeat = p->psn < r->epsn && (p->kind == READ || p->kind == FAA);
	/* The whole place. */
	uint64_t at = p->kind == SEND ? p->seq % RECVS * RECV_LEN : p->at & ~1023ull;
	struct skua_rqc *rqc;

	/* It would not be asked for again, as 16 others after it were. */
	if (repeat && net->next.read - p->seq > 16)
		return;
	r->cqes = 0;
	r->answers = 0;
	ref_rx(r, p);
	send_packet(net, p);
	rqc = sr_rqc(&net->rc);
	assert_int_equal(le32_to_cpu(rqc->epsn), (net->ref.psn0 + r->epsn) & IB_PSN_MASK);
	assert_int_equal(le32_to_cpu(rqc->recv_seq), r->recvs);
	assert_int_equal(le32_to_cpu(rqc->rr_tail), r->reads);
	assert_memory_equal(net->rc.s[1].buf + at, r->mem + at, 1024);
	check_answers(net, repeat ? &again : r->answered, repeat ? 1 : r->answers);
	check_cqes(net);
}

/* --- the network --- */

static void post_recv(struct net *net)
{
	struct ref *r = &net->ref;

	if (r->posted - r->recvs == RECVS)
		return;
	rc_recv(&net->rc, 1, r->posted % RECVS * RECV_LEN, RECV_LEN);
	r->posted++;
}

/* Which packet arrives next: one that is missing, near the oldest or anywhere, or any. */
static const struct packet *arrives(struct net *net, unsigned int reorder)
{
	const struct ref *r = &net->ref;
	unsigned int missing[N(net->p)], n = 0;

	for (unsigned int k = 0; k < net->n; k++) {
		if (net->p[k].psn >= r->epsn && !r->held[net->p[k].psn % REF_PSNS])
			missing[n++] = k;
	}
	if (!draw(8))
		return &net->p[draw(net->n)];
	return &net->p[missing[draw(n < reorder ? n : reorder)]];
}

static void trace(struct net *net)
{
	unsigned int messages = draw(200) ? 1 + draw(4) : 40, reorder = 1 + draw(16);
	unsigned int stuck = 0;

	net->n = 0;
	while (messages-- && net->n < N(net->p) - 4)
		message(net);
	while (net->ref.epsn != net->next.psn) {
		if (!draw(4) || !(++stuck % 64))
			post_recv(net);
		/* All that waits is the first one's turn at times. */
		deliver(net, stuck % 16 ? arrives(net, reorder) : arrives(net, 1));
		assert_true(stuck < 100000);
	}
	assert_false(sr_held(&net->rc));
}

/* Adds to @early what came before its turn and was taken, or dropped. */
static void run_traces(uint32_t seed, uint32_t psn0, uint32_t log_window, uint32_t traces,
		       uint64_t early[2])
{
	struct rc_opt opt = {
		.mtu_code = 1,
		.log_rq = 4,
		.ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
		.psn = { psn0, 0 },
		.log_window = log_window,
		/* At times contexts do not stay on the chip from one packet to the next. */
		.onchip = seed % 3 ? 0 : 8,
	};
	struct net *net = calloc(1, sizeof(*net));
	struct sr_answer a;

	assert_non_null(net);
	rnd = seed;
	rc_open(&net->rc, &opt);
	net->ref.psn0 = psn0;
	net->ref.window = 1u << log_window;
	net->msgs = 4;
	/* From now on the peer is known to speak the extension. */
	sr_send(&net->rc, &(struct sr_pkt){ .op = IB_OP_WRITE_ONLY, .psn = psn0 - 1 });
	fake_run(&net->rc.s[1].f);
	assert_true(sr_next(&net->rc, &a));
	for (uint32_t k = 0; k < traces; k++)
		trace(net);
	assert_memory_equal(net->rc.s[1].buf, net->ref.mem, MEM);
	assert_int_equal(rc_state(&net->rc, 1), SKUA_QP_RTS);
	assert_int_equal(rc_cnt(&net->rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	early[0] += rc_cnt(&net->rc, 1, SKUA_CNT_RX_EARLY);
	early[1] += rc_cnt(&net->rc, 1, SKUA_CNT_RX_EARLY_DROP);
	rc_close(&net->rc);
	free(net);
}

static void test_random(void **state)
{
	static const uint32_t psn0[] = { 0, 0xffffc0, 0x7fffff, 0xfff000 };
	const char *text = getenv("SKUA_TRACES");
	uint32_t traces = text ? (uint32_t)strtoul(text, NULL, 0) : TRACES;
	uint64_t early[2] = { 0 };

	(void)state;
	if (!traces)
		fail_msg("SKUA_TRACES=%s: it is to be a number from 1 on", text);
	for (uint32_t k = 0; k < RUNS && k < traces; k++)
		run_traces(k + 1, psn0[k % N(psn0)], SKUA_EXT_LOG_WINDOW_MIN + k % 5,
			   traces / RUNS + (k < traces % RUNS), early);
	/* A few need not have any. */
	assert_true(traces < 100 * RUNS || (early[0] && early[1]));
	print_message("%u traces, early %llu, dropped %llu\n", traces,
		      (unsigned long long)early[0], (unsigned long long)early[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
