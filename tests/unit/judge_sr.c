// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "judge.h"
#include "judge_sr.h"

#define PSN_MASK	0xffffffu
#define BTH		(14 + 20 + 8)	/* where it begins */

enum { SEND = 1, WRITE, READ, OTHER, RESP, ACK };

/* Opcodes of RC without their transport: what, which part, with immediate, headers behind it. */
#define FIRST	1
#define LAST	2
static const struct op {
	uint8_t kind, part, imm, reth, ext;
} ops[32] = {
	[0x00] = { SEND, FIRST, 0, 0, 0 }, [0x01] = { SEND, 0, 0, 0, 0 },
	[0x02] = { SEND, LAST, 0, 0, 0 }, [0x03] = { SEND, LAST, 1, 0, 4 },
	[0x04] = { SEND, FIRST | LAST, 0, 0, 0 }, [0x05] = { SEND, FIRST | LAST, 1, 0, 4 },
	[0x16] = { SEND, LAST, 0, 0, 4 }, [0x17] = { SEND, FIRST | LAST, 0, 0, 4 },
	[0x06] = { WRITE, FIRST, 0, 16, 0 }, [0x07] = { WRITE, 0, 0, 0, 0 },
	[0x08] = { WRITE, LAST, 0, 0, 0 }, [0x09] = { WRITE, LAST, 1, 0, 4 },
	[0x0a] = { WRITE, FIRST | LAST, 0, 16, 0 }, [0x0b] = { WRITE, FIRST | LAST, 1, 16, 4 },
	[0x0c] = { READ, FIRST | LAST, 0, 16, 0 },
	[0x0d] = { RESP, FIRST, 0, 0, 4 }, [0x0e] = { RESP, 0, 0, 0, 0 },
	[0x0f] = { RESP, LAST, 0, 0, 4 }, [0x10] = { RESP, FIRST | LAST, 0, 0, 4 },
	[0x11] = { ACK, 0, 0, 0, 4 }, [0x12] = { RESP, FIRST | LAST, 0, 0, 12 },
	[0x13] = { OTHER, FIRST | LAST, 0, 0, 28 }, [0x14] = { OTHER, FIRST | LAST, 0, 0, 28 },
	[0x1c] = { OTHER, FIRST | LAST, 0, 0, 20 }, [0x1d] = { OTHER, FIRST | LAST, 0, 0, 16 },
};

struct packet {
	const struct op *op;
	bool sr;		/* in the form of the extension */
	bool rtx, takes_recv, takes_rr;
	uint8_t resv7, syndrome;
	uint32_t dqpn, psn, seq, off, len, key, left;
	uint64_t va;
	const uint8_t *bitmap;	/* of an acknowledgment, @left bytes */
};

static uint64_t be(const uint8_t *p, unsigned int bytes)
{
	uint64_t val = 0;

	while (bytes--)
		val = val << 8 | *p++;
	return val;
}

static int32_t ahead(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* --- packets --- */

/* False: no packet of RC. */
static bool parse(const uint8_t *f, size_t len, struct packet *p)
{
	const uint8_t *b = f + BTH, *at = b + 12, *end;

	memset(p, 0, sizeof(*p));
	if (len < BTH + 16 || be(f + 12, 2) != 0x0800 || be(f + 36, 2) != 4791)
		return false;
	end = f + 14 + be(f + 16, 2) - 4 - (b[1] >> 4 & 3);
	p->sr = (b[0] & 0xe0) == 0xc0;
	if (!p->sr && b[0] & 0xe0)
		return false;
	p->op = &ops[b[0] & 0x1f];
	if (!p->op->kind)
		return false;
	p->dqpn = (uint32_t)be(b + 5, 3);
	p->resv7 = b[8] & 0x7f;
	p->psn = (uint32_t)be(b + 9, 3);
	p->takes_recv = p->op->kind == SEND || p->op->imm;
	p->takes_rr = p->op->kind == READ || (p->op->kind == OTHER && (b[0] & 0x1f) != 0x1c);
	if (p->sr && p->op->kind != ACK) {
		p->rtx = at[0] & 0x80;
		p->seq = (uint32_t)be(at + 1, 3);
		p->off = (uint32_t)be(at + 5, 3);
		at += 8;
	}
	if (p->op->reth || (p->sr && p->op->kind == WRITE)) {
		p->va = be(at, 8);
		p->key = (uint32_t)be(at + 8, 4);
		p->len = (uint32_t)be(at + 12, 4);
		at += 16;
	}
	if (p->op->kind == ACK || (p->op->kind == RESP && p->op->ext))
		p->syndrome = at[0];
	at += p->op->ext;
	p->left = end > at ? (uint32_t)(end - at) : 0;
	p->bitmap = p->sr && p->op->kind == ACK ? at : NULL;
	return true;
}

static uint32_t psns_of(const struct judge_sr *j, const struct packet *p)
{
	uint32_t n = p->op->kind == READ ? (p->len + j->mtu - 1) / j->mtu : 1;

	return n ? n : 1;
}

static struct judge_sr_psn *sq_at(struct judge_sr *j, uint32_t psn)
{
	return &j->sq.psn[psn % JUDGE_SR_PSNS];
}

static struct judge_sr_psn *rq_at(struct judge_sr *j, uint32_t psn)
{
	return &j->rq.psn[psn % JUDGE_SR_PSNS];
}

void judge_sr_start(struct judge_sr *j, uint32_t own, uint32_t peer, uint32_t mtu, uint32_t sq_psn,
		    uint32_t rq_psn, uint32_t log, bool always)
{
	memset(j, 0, sizeof(*j));
	j->own = own;
	j->peer = peer;
	j->mtu = mtu;
	j->log = log;
	j->always = always;
	j->sq.log = always ? log : 0;
	j->sq.una = sq_psn;
	j->sq.top = sq_psn;
	j->sq.far = sq_psn;
	j->rq.cont = rq_psn;
}

/* May the packet be one that the peer has under way, or the answer to one that this side has? */
static bool is_near(const struct judge_sr *j, const struct packet *p)
{
	if (p->op->kind <= OTHER)
		return ahead(p->psn, j->rq.cont) >= -512 &&
		       ahead(p->psn, j->rq.cont) < 1 << j->log;
	return ahead(p->psn, j->sq.una) >= -512 && ahead(p->psn, j->sq.top) < 0;
}

/* --- requester --- */

/* Of a WRITE only the last packet shows that it has an immediate. */
static bool seq_ok(const struct judge_sr *j, const struct packet *p)
{
	if (p->takes_rr)
		return p->seq == (j->sq.rrs & PSN_MASK);
	return p->seq == (j->sq.recvs & PSN_MASK) || (!p->takes_recv && !p->seq);
}

static const char *new_request(struct judge_sr *j, const struct packet *p, uint64_t now)
{
	const struct judge_sr_psn *first;
	uint32_t n = psns_of(j, p), off;

	if (p->rtx)
		return "RTX on a packet that was not sent before";
	if (p->op->part & FIRST) {
		if (j->sq.open)
			return "a message begins within another";
		j->sq.begin = p->psn;
	} else if (!j->sq.open || sq_at(j, j->sq.begin)->kind != p->op->kind) {
		return "a packet goes on with a message that is not under way";
	}
	off = p->op->kind == READ ? 0 : (p->psn - j->sq.begin) & PSN_MASK;
	first = sq_at(j, j->sq.begin);
	if (p->sr && p->off != off)
		return "OFFSET is not the packet's number in its message";
	if (p->sr && !seq_ok(j, p))
		return "SEQ is not how many came before";
	if (p->sr && p->op->kind == WRITE && off &&
	    (p->va != first->va || p->len != first->len || p->key != first->key))
		return "the RETH is not that of the message";
	for (uint32_t i = 0; i < n; i++)
		*sq_at(j, p->psn + i) = (struct judge_sr_psn){
			.kind = p->op->kind, .times = 1, .off = off, .seq = p->seq, .len = p->len,
			.key = p->key, .va = p->va, .at = now,
		};
	j->sq.open = !(p->op->part & LAST);
	if (!j->sq.open) {
		j->sq.recvs += p->takes_recv;
		j->sq.rrs += p->takes_rr;
	}
	j->sq.top = (p->psn + n) & PSN_MASK;
	return NULL;
}

/* A quarter of the window behind it, or long ago: else it does not count as lost. */
static bool counts_as_lost(const struct judge_sr *j, uint32_t psn, uint64_t at, uint64_t now)
{
	return ahead(j->sq.far, psn) > (int32_t)(1u << j->sq.log) / 4 || now - at >= 2 * j->sq.rtt;
}

static const char *again(struct judge_sr *j, const struct packet *p, uint64_t now)
{
	uint32_t n = psns_of(j, p);

	/* Who goes back sends again what has arrived, too. */
	if (!j->sq.log) {
		j->cnt.again++;
		return NULL;
	}
	if (p->sr && !p->rtx)
		return "no RTX on a packet that was sent before";
	if (ahead(p->psn + n, j->sq.top) > 0)
		return "a READ for more than was asked for before";
	for (uint32_t i = 0; i < n; i++) {
		struct judge_sr_psn *s = sq_at(j, p->psn + i);

		if (s->kind != p->op->kind || (p->sr && (s->seq != p->seq || s->off != p->off)))
			return "another packet than the first time";
		if (s->arrived || ahead(p->psn + i, j->sq.una) < 0)
			return "sent again although it has arrived";
		if (!j->sq.asked && !counts_as_lost(j, p->psn + i, s->at, now))
			return "sent again before it counts as lost";
		if (p->op->kind == WRITE && p->sr && (s->va != p->va || s->len != p->len))
			return "another RETH than the first time";
		s->times++;
		s->at = now;
	}
	j->cnt.again++;
	return NULL;
}

static const char *request_sent(struct judge_sr *j, const struct packet *p, uint64_t now)
{
	if (p->sr && !j->sq.log)
		return "the extension to a peer that has not said that it knows it";
	if (!p->sr && j->sq.log && p->op->kind != OTHER)
		return "the standard's form to a peer that knows the extension";
	if (ahead(p->psn, j->sq.top) > 0)
		return "PSNs left out";
	if (ahead(p->psn, j->sq.top) < 0)
		return again(j, p, now);
	if (j->sq.log && ahead(p->psn, j->sq.una) >= 1 << j->sq.log)
		return "more outstanding than the window";
	return new_request(j, p, now);
}

static void has_arrived(struct judge_sr *j, uint32_t psn, uint64_t now)
{
	struct judge_sr_psn *s = sq_at(j, psn);

	if (ahead(psn, j->sq.una) < 0 || ahead(psn, j->sq.top) >= 0)
		return;
	if (s->times == 1 && !s->arrived && (!j->sq.rtt || now - s->at < j->sq.rtt))
		j->sq.rtt = now - s->at;
	s->arrived = true;
	if (ahead(psn + 1, j->sq.far) > 0)
		j->sq.far = (psn + 1) & PSN_MASK;
	while (ahead(j->sq.una, j->sq.top) < 0 && sq_at(j, j->sq.una)->arrived)
		j->sq.una = (j->sq.una + 1) & PSN_MASK;
}

static bool is_answered(uint8_t kind)
{
	return kind == READ || kind == OTHER;
}

/* The responder expects @epsn: all requests before it are there, though not their answers. */
static void expects(struct judge_sr *j, uint32_t epsn, uint64_t now)
{
	for (uint32_t psn = j->sq.una; ahead(psn, epsn) < 0 && ahead(psn, j->sq.top) < 0; psn++) {
		if (!is_answered(sq_at(j, psn)->kind))
			has_arrived(j, psn & PSN_MASK, now);
	}
}

static void response_received(struct judge_sr *j, const struct packet *p, uint64_t now)
{
	uint8_t type = p->syndrome & 0x60;
	uint32_t epsn;

	if (p->op->kind == RESP) {
		expects(j, p->psn, now);
		has_arrived(j, p->psn, now);
		return;
	}
	j->cnt.naks += type == 0x60 && !(p->syndrome & 0x1f);
	j->cnt.rx_sack += !!p->bitmap;
	j->sq.asked |= !!type;
	epsn = type ? p->psn : (p->psn + 1) & PSN_MASK;
	expects(j, epsn, now);
	for (uint32_t i = 0; p->bitmap && i < 8 * p->left; i++) {
		if (p->bitmap[i / 8] >> i % 8 & 1 && !is_answered(sq_at(j, epsn + i)->kind))
			has_arrived(j, (epsn + i) & PSN_MASK, now);
	}
}

/* --- responder --- */

static void request_received(struct judge_sr *j, const struct packet *p)
{
	uint32_t n = psns_of(j, p);

	j->rq.spoken |= p->sr && is_near(j, p);
	if (ahead(p->psn, j->rq.cont) < 0 || rq_at(j, p->psn)->arrived) {
		j->cnt.twice++;
		return;
	}
	if (ahead(p->psn, j->rq.cont) > 0) {
		j->cnt.ahead++;
		/* The standard's form is taken when it is its turn. */
		if (!p->sr)
			return;
	}
	for (uint32_t i = 0; i < n; i++)
		*rq_at(j, p->psn + i) = (struct judge_sr_psn){ .arrived = true, .kind = p->op->kind,
							       .off = i };
	while (rq_at(j, j->rq.cont)->arrived) {
		/* The place is used again for a PSN that comes much later. */
		rq_at(j, j->rq.cont + JUDGE_SR_PSNS / 2)->arrived = false;
		j->rq.cont = (j->rq.cont + 1) & PSN_MASK;
	}
}

static const char *sack_sent(struct judge_sr *j, const struct packet *p)
{
	uint32_t epsn = (p->psn + 1) & PSN_MASK;

	j->cnt.tx_sack++;
	if (!j->rq.spoken)
		return "a bitmap to a peer that does not speak the extension";
	if (p->left < 4 || p->left > 64 || p->left % 4)
		return "a bitmap of a wrong length";
	if (p->bitmap[0] & 1)
		return "bit 0 of a bitmap";
	for (uint32_t i = 1; i < 8 * p->left; i++) {
		const struct judge_sr_psn *r = rq_at(j, epsn + i);

		if (!(p->bitmap[i / 8] >> i % 8 & 1))
			continue;
		if (!r->arrived || ahead(epsn + i, j->rq.cont) < 0 || (r->kind == READ && r->off))
			return "a bit for a packet that did not come";
	}
	return NULL;
}

static const char *response_sent(struct judge_sr *j, const struct packet *p)
{
	if (p->op->kind == RESP)
		return ahead(p->psn, j->rq.cont) < 0 && is_answered(rq_at(j, p->psn)->kind) ?
		       NULL : "an answer to a request whose turn has not come";
	if (p->syndrome == 0x60 && j->rq.spoken)
		return "NAK of a sequence error to a peer that speaks the extension";
	if (ahead(p->psn, j->rq.cont) > (p->syndrome & 0x60 ? 0 : -1))
		return "an acknowledgment of what did not come";
	return p->bitmap ? sack_sent(j, p) : NULL;
}

/* --- frames --- */

const char *judge_sr_sent(struct judge_sr *j, const uint8_t *frame, size_t len, uint64_t now)
{
	struct packet p;

	if (!parse(frame, len, &p) || p.dqpn != j->peer)
		return NULL;
	if (!judge_intact(frame, len))
		return "a packet whose ICRC is wrong";
	if (p.resv7 != j->log)
		return "the window that the packet tells is not the QP's";
	return p.op->kind <= OTHER ? request_sent(j, &p, now) : response_sent(j, &p);
}

void judge_sr_received(struct judge_sr *j, const uint8_t *frame, size_t len, uint64_t now)
{
	struct packet p;

	if (!judge_intact(frame, len)) {
		j->cnt.damaged++;
		return;
	}
	if (!parse(frame, len, &p) || p.dqpn != j->own)
		return;
	j->cnt.marked += (frame[15] & 3) == 3;
	if (j->log && p.resv7 >= 5 && is_near(j, &p)) {
		uint32_t log = p.resv7 < j->log ? p.resv7 : j->log;

		if (!j->sq.log || log < j->sq.log)
			j->sq.log = log;
	}
	if (p.op->kind <= OTHER)
		request_received(j, &p);
	else
		response_received(j, &p, now);
}
