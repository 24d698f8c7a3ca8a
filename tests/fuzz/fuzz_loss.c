// SPDX-License-Identifier: GPL-2.0
/*
 * Two honest guests and a wire that is not: work of all kinds in both directions, while the
 * input says which frames are lost, kept back, doubled, spoiled or marked. Go-back-N,
 * selective repeat, and between the two; over a cable, or over the model's own switch, where
 * payload goes in trains; by doorbell, record or push slot. All arrives as it was sent, once
 * and in order, or the connection is given up for a reason; and all comes to an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc_fuzz.h"
#include "wire/fault.h"
#include "wire/wire.h"

/* A message's own places in both buffers: what it sends, writes or reads, receives. */
#define PLACES		64u
#define PLACE		32768u
#define SRC(n)		((n) % PLACES * PLACE)
#define DST(n)		((PLACES + (n) % PLACES) * PLACE)
#define RECV(n)		((2 * PLACES + (n) % PLACES) * PLACE)
#define COUNTER		(3ull * PLACES * PLACE)
#define FAA_RESULT(n)	(COUNTER + 64 + (n) % PLACES * 8)
#define FLAG		(COUNTER + 8)
#define UNDER_WAY	24u

_Static_assert(FAA_RESULT(63) + 8 <= RC_BUF, "the buffer");

struct msg {
	uint8_t op;
	uint32_t len;
	uint32_t head;		/* index of its WQE */
	uint32_t of;		/* READ: message whose bytes it asks for */
	uint64_t sum;		/* FAA: what it is to find */
};

/* A frame that is to be dealt with. */
enum fate { LOSE, KEEP, DOUBLE, SPOIL, MARK, FATES };

#define PENDING		8
#define KEPT		32

static struct side {
	struct msg msg[PLACES];
	uint32_t posted, done;	/* messages sent */
	uint32_t recvs, recvd;	/* receives posted, completed */
	uint32_t came;		/* the peer's messages up to here were received */
	uint64_t sum;		/* of what was posted to be added to the peer's counter */
	bool down;
	struct {
		uint32_t at;	/* frames to pass before */
		uint8_t what;
		uint8_t how;
	} fate[PENDING];
	unsigned int fates;
	struct {
		uint32_t at;
		struct fake_frame *frame;
	} kept[KEPT];
	uint32_t frames;
} side[2];

/* How often the wire did what may cost a retry. */
static unsigned int harm;

/* --- the wire --- */

static void arrives(int from, const struct fake_frame *frame)
{
	fake_rx(&rc.s[1 - from].f, frame->data, frame->len);
}

/* Those kept back whose time has come, or all. */
static void release(int from, bool all)
{
	struct side *s = &side[from];

	for (unsigned int k = 0; k < KEPT; k++) {
		struct fake_frame *frame = s->kept[k].frame;

		if (!frame || (!all && s->kept[k].at > s->frames))
			continue;
		s->kept[k].frame = NULL;
		arrives(from, frame);
		free(frame);
	}
}

static void keep(struct side *s, const struct fake_frame *frame, uint8_t how)
{
	for (unsigned int k = 0; k < KEPT; k++) {
		if (s->kept[k].frame)
			continue;
		s->kept[k].frame = malloc(sizeof(*frame));
		must(s->kept[k].frame, "no memory");
		*s->kept[k].frame = *frame;
		s->kept[k].at = s->frames + 1 + how % 64;
		return;
	}
}

static bool filter(void *priv, struct fake_frame *frame)
{
	int from = priv != &rc.s[0];
	struct side *s = &side[from];
	bool pass = true;

	s->frames++;
	release(from, false);
	for (unsigned int k = 0; k < s->fates; k++) {
		if (s->fate[k].at-- > 0)
			continue;
		switch (s->fate[k].what) {
		case KEEP:
			keep(s, frame, s->fate[k].how);
			/* fallthrough */
		case LOSE:
			pass = false;
			harm++;
			break;
		case DOUBLE:
			keep(s, frame, s->fate[k].how);
			break;
		case SPOIL:
			frame->data[14 + s->fate[k].how % (frame->len - 14)] ^= 0x40;
			harm++;
			break;
		default:
			/*
			 * Congestion experienced, as a switch says it: if the checksum of the IP
			 * header did not fit, this would be a loss that is not counted as harm.
			 */
			wire_mark_ce(frame->data, frame->len, true);
			break;
		}
		s->fate[k--] = s->fate[--s->fates];
	}
	return pass;
}

static void choose_fate(int from, struct input *in)
{
	struct side *s = &side[from];
	uint8_t what = (uint8_t)take(in, 1);

	if (s->fates == PENDING)
		return;
	s->fate[s->fates].at = what >> 3;
	s->fate[s->fates].what = what % 8 % FATES;
	s->fate[s->fates++].how = (uint8_t)take(in, 1);
}

/* The switch deals with frames itself. */
static void wire_faults(struct input *in)
{
	static const char *const spec[] = {
		"loss=10%", "reorder=20%:3", "dup=10%", "corrupt=10%", "delay=20us", "ecn=20%",
		"loss=2%,reorder=5%:9,dup=2%",
	};
	uint8_t pick = (uint8_t)take(in, 1);
	char err[80];

	wire_fault_clear(rc.s[0].f.wire);
	if (pick & 8)
		return;
	must(!wire_fault(rc.s[0].f.wire, spec[pick % 8 % 7], err, sizeof(err)), "no fault");
	harm += 100;
}

/* --- work --- */

static bool takes_recv(uint8_t op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_WRITE_IMM;
}

static uint32_t seed_of(int i, uint32_t n)
{
	return 2 * n + (uint32_t)i;
}

/* The last WQE fits into a push slot. */
static bool pushable(int i)
{
	const struct mini_qp *qp = &rc.s[i].qp;
	uint32_t at = (qp->sq_pi - 1) & ((1u << qp->log_sq) - 1);
	const struct skua_wqe_ctrl *ctrl = fake_ptr(&rc.s[i].f, qp->sq + at * SKUA_WQE_BLOCK);

	return side[i].posted && side[i].msg[(side[i].posted - 1) % PLACES].head == qp->sq_pi - 1 &&
	       le32_get_bits(ctrl->op, SKUA_WQE_NSEG) <= SKUA_PUSH_SEGS;
}

static void ring(int i, uint8_t how)
{
	if (how & 1 && pushable(i))
		rc_fuzz_push(i, &rc.s[i].qp, 0, NULL);
	else
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
}

/* Up to four elements. */
static void split(int i, struct rc_wr *wr, uint8_t pick)
{
	uint64_t at = RC_VA + wr->off;
	uint32_t left = wr->len;

	if (wr->flags & SKUA_WQE_F_INLINE || wr->op == SKUA_WQE_NOP || wr->op >= SKUA_WQE_CAS ||
	    !(pick & 0x80))
		return;
	while (wr->nsge < 4) {
		uint32_t len = wr->nsge == 3 ? left : left / 3;

		wr->sge[wr->nsge++] = (struct sge){ at, rc.s[i].key, len };
		at += len;
		left -= len;
	}
}

static void post(int i, struct input *in)
{
	static const uint8_t ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_SEND_IMM,
		SKUA_WQE_WRITE_IMM, SKUA_WQE_FAA, SKUA_WQE_FLUSH, SKUA_WQE_ATOMIC_WRITE,
		SKUA_WQE_NOP, SKUA_WQE_WRITE, SKUA_WQE_READ,
	};
	uint8_t pick = (uint8_t)take(in, 1), how = (uint8_t)take(in, 1);
	struct side *s = &side[i];
	uint32_t n = s->posted;
	struct msg *m = &s->msg[n % PLACES], *last = &s->msg[(n - 1) % PLACES];
	struct rc_wr wr = { .op = ops[pick % sizeof(ops)] };

	if (s->posted - s->done >= UNDER_WAY || s->down)
		return;
	*m = (struct msg){ .op = wr.op, .head = rc.s[i].qp.sq_pi, .of = n, .sum = s->sum };
	m->len = (uint32_t)take(in, 2) % (how & 0x80 ? PLACE : 4 * rc.mtu);
	wr.quiet = how & 2;
	wr.flags = (how & 4 ? SKUA_WQE_F_FENCE : 0) | (how & 8 ? SKUA_WQE_F_SOLICITED : 0);
	wr.imm = n;
	wr.off = wr.op == SKUA_WQE_READ ? DST(n) : SRC(n);
	wr.roff = wr.op == SKUA_WQE_READ ? SRC(n) : DST(n);
	switch (wr.op) {
	case SKUA_WQE_READ:
		/* What was written just before, or what nobody writes to. */
		if (how & 0x10 && n && last->op == SKUA_WQE_WRITE) {
			m->of = n - 1;
			m->len = last->len;
			wr.roff = DST(n - 1);
		} else {
			rc_fill(rc.s[1 - i].buf + SRC(n) + PLACE / 2, PLACE / 2, seed_of(i, n));
			m->len %= PLACE / 2;
			wr.roff += PLACE / 2;
		}
		wr.off = DST(n) + PLACE / 2 * (m->len <= PLACE / 2);
		break;
	case SKUA_WQE_FAA:
		m->len = 8;
		wr.off = FAA_RESULT(n);
		wr.roff = COUNTER;
		wr.atomic[0].swap_add = pick;
		s->sum += pick;
		break;
	case SKUA_WQE_ATOMIC_WRITE:
		m->len = 8;
		wr.roff = FLAG;
		break;
	case SKUA_WQE_FLUSH:
		wr.flush = SKUA_WQE_FLUSH_GLOBAL;
		wr.imm = m->len;
		m->len = 0;
		break;
	case SKUA_WQE_NOP:
		m->len = 0;
		break;
	default:
		m->len %= PLACE / 2;
		rc_fill(rc.s[i].buf + SRC(n), m->len, seed_of(i, n));
		if (how & 0x20 && m->len <= 200)
			wr.flags |= SKUA_WQE_F_INLINE;
		break;
	}
	wr.len = m->len;
	split(i, &wr, pick);
	rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
	s->posted++;
	if (how & 0x40)
		ring(i, how);
}

static void receive(int i)
{
	struct side *s = &side[i];
	struct sge sge[2] = {
		{ RC_VA + RECV(s->recvs), rc.s[i].key, s->recvs % 3 * 700 },
	};

	if (s->recvs - s->recvd >= UNDER_WAY)
		return;
	sge[1] = (struct sge){ sge[0].addr + sge[0].len, sge[0].lkey, PLACE - sge[0].len };
	rc_recv_sge(&rc, i, sge, 2);
	s->recvs++;
}

/* --- what came of it --- */

static bool is_there(const uint8_t *p, uint32_t len, uint32_t seed)
{
	static uint8_t want[PLACE];

	rc_fill(want, len, seed);
	return !memcmp(p, want, len);
}

/* A message that is complete at its sender. */
static void sent(int i, uint32_t n)
{
	const struct msg *m = &side[i].msg[n % PLACES];
	const uint8_t *own = rc.s[i].buf, *far = rc.s[1 - i].buf;
	uint64_t sum;

	switch (m->op) {
	case SKUA_WQE_WRITE:
	case SKUA_WQE_WRITE_IMM:
		must(is_there(far + DST(n), m->len, seed_of(i, n)), "WRITE: other bytes");
		break;
	case SKUA_WQE_READ:
		must(is_there(own + DST(n) + PLACE / 2 * (m->len <= PLACE / 2), m->len,
			      seed_of(i, m->of)), "READ: other bytes");
		break;
	case SKUA_WQE_FAA:
		memcpy(&sum, own + FAA_RESULT(n), sizeof(sum));
		must(le64_to_cpu(sum) == m->sum, "FETCH_ADD: not once, or not in order");
		break;
	}
}

static void take_sent(int i)
{
	struct side *s = &side[i];
	struct skua_cqe cqe;

	while (mini_cq_next(&rc.s[i].m, &rc.s[i].scq, &cqe)) {
		uint8_t status = skua_cqe_status(&cqe);

		if (status == SKUA_CQE_WR_FLUSH_ERR || status == SKUA_CQE_RETRY_EXC_ERR) {
			must(harm > 6, "given up without reason");
			s->down = true;
			continue;
		}
		must(status == SKUA_CQE_OK && !s->down, "failed");
		for (bool found = false; !found; s->done++) {
			must(s->done != s->posted, "completion of no message");
			found = s->msg[s->done % PLACES].head % 65536 == skua_cqe_wqe_index(&cqe);
			sent(i, s->done);
		}
	}
}

static void take_received(int i)
{
	const struct side *far = &side[1 - i];
	struct side *s = &side[i];
	struct skua_cqe cqe;

	while (mini_cq_next(&rc.s[i].m, &rc.s[i].rcq, &cqe)) {
		const struct msg *m;

		if (skua_cqe_status(&cqe) == SKUA_CQE_WR_FLUSH_ERR) {
			must(harm > 6, "flushed without reason");
			s->down = true;
			continue;
		}
		must(skua_cqe_status(&cqe) == SKUA_CQE_OK, "receive failed");
		do {
			must(s->came != far->posted, "received what nobody sent");
			m = &far->msg[s->came++ % PLACES];
		} while (!takes_recv(m->op));
		must(skua_cqe_wqe_index(&cqe) == (s->recvd & 0xffff), "receive out of order");
		must(le32_to_cpu(cqe.byte_len) == m->len, "received another length");
		must(m->op == SKUA_WQE_SEND || be32toh(cqe.imm) == s->came - 1,
		     "another immediate");
		must(m->op == SKUA_WQE_WRITE_IMM ||
		     is_there(rc.s[i].buf + RECV(s->recvd), m->len, seed_of(1 - i, s->came - 1)),
		     "SEND: other bytes");
		s->recvd++;
	}
}

static void reap(void)
{
	/* Receives first: of what is complete at the sender the place is used again. */
	for (int i = 0; i < 2; i++)
		take_received(i);
	for (int i = 0; i < 2; i++)
		take_sent(i);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	int i = act >> 7;

	switch (act & 0x0f) {
	case 0 ... 3:
		post(i, in);
		break;
	case 4 ... 5:
		if (rc.s[0].f.wire)
			wire_faults(in);
		else
			choose_fate(i, in);
		break;
	case 6:
		for (unsigned int k = 0; k <= (act >> 4 & 7); k++)
			receive(i);
		break;
	case 7:
		ring(i, act >> 4);
		break;
	case 8:
		skua_dev_run(rc.s[i].f.dev);
		break;
	case 9:
		release(i, act & 0x10);
		break;
	case 10:
		mini_cq_arm(&rc.s[i].m, act & 0x10 ? &rc.s[i].scq : &rc.s[i].rcq, act & 0x20);
		break;
	case 11:
		rc_pump_for(&rc, 1 + take(in, 3));
		break;
	case 12:
		mini_qp_modify(&rc.s[i].m, &rc.s[i].qp, act & 0x10 ? SKUA_QP_SQD : SKUA_QP_RTS, 0,
			       NULL);
		break;
	case 13:
		/* Mostly not, or little else would be seen. */
		if ((act & 0x70) == 0x70) {
			mini_qp_modify(&rc.s[i].m, &rc.s[i].qp, SKUA_QP_ERR, 0, NULL);
			side[i].down = true;
			harm += 100;
		} else {
			rc_pump(&rc);
		}
		break;
	default:
		rc_pump(&rc);
		break;
	}
	reap();
}

/* The wire is whole again, and there are receives: all ends. */
static void finish(void)
{
	for (int i = 0; i < 2; i++) {
		side[i].fates = 0;
		release(i, true);
		mini_qp_modify(&rc.s[i].m, &rc.s[i].qp, SKUA_QP_RTS, 0, NULL);
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	}
	if (rc.s[0].f.wire)
		wire_fault_clear(rc.s[0].f.wire);
	for (unsigned int k = 0; k < 40; k++) {
		for (unsigned int n = 0; n < UNDER_WAY; n++) {
			receive(0);
			receive(1);
		}
		rc_pump_for(&rc, 1000000ull << (k / 4));
		reap();
	}
	for (int i = 0; i < 2; i++) {
		struct side *s = &side[i], *far = &side[1 - i];
		uint64_t sum;

		/* What was not to be reported is complete nevertheless. */
		if (s->down || far->down)
			continue;
		must(le32_to_cpu(rc_query(&rc, i).sqc.ci) == rc.s[i].qp.sq_pi, "work is left");
		for (; s->done != s->posted; s->done++)
			sent(i, s->done);
		memcpy(&sum, rc.s[1 - i].buf + COUNTER, sizeof(sum));
		must(le64_to_cpu(sum) == s->sum, "the counter is another");
		for (; far->came != s->posted; far->came++)
			must(!takes_recv(s->msg[far->came % PLACES].op), "not received");
	}
}

static void open_all(struct input *in)
{
	static const uint8_t modes[][2] = {
		{ SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS }, { SKUA_EXT_NEGOTIATE, SKUA_EXT_NEGOTIATE },
		{ SKUA_EXT_PLAIN, SKUA_EXT_PLAIN }, { SKUA_EXT_ALWAYS, SKUA_EXT_NEGOTIATE },
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_PLAIN },
	};
	uint8_t mode = (uint8_t)take(in, 1), cfg = (uint8_t)take(in, 1);
	struct rc_opt opt = {
		.mtu_code = 1 + (mode >> 4) % 5,
		.ext = { modes[mode % 5][0], modes[mode % 5][1] },
		.log_window = SKUA_EXT_LOG_WINDOW_MIN + cfg % 5,
		.psn = { cfg & 0x08 ? 0xfffff8 : 0x7ffffc, cfg & 0x08 ? 0xfffff0 : 0 },
		.rd_atomic = 2 + (cfg >> 4) % 16,
		.qp_flags = mode & 0x08 ? SKUA_QP_F_DB_SUPPRESS : 0,
		.access = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			  SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
		/* Less, and more, than the time after which selective repeat asks. */
		.timeout = cfg & 0x04 ? 5 : 10,
		.log_sq = 7,
		.log_rq = 5,
		.onchip = 8,
		.caps = SKUA_CAP_SR,
	};

	fake_pool();
	memset(side, 0, sizeof(side));
	harm = 0;
	rc_open(&rc, &opt);
	rc.mtu = 128u << opt.mtu_code;
	for (int i = 0; i < 2; i++) {
		rc.s[i].f.filter = filter;
		rc.s[i].f.filter_priv = &rc.s[i];
	}
	if (mode & 0x80)
		fake_switch(&rc.s[0].f, &rc.s[1].f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all(&in);
	while (in.left)
		step(&in);
	finish();
	rc_fuzz_close();
	return 0;
}
