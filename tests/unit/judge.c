// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

#define PSN_MASK	0xffffffu

/* Serial arithmetic of 24 bits: how far is @a ahead of @b? */
static int32_t ahead(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* --- packets --- */

enum kind { SEND = 1, WRITE, READ, ATOMIC, OTHER, READ_RESP, ATOMIC_ACK, ACK };

#define FIRST	1
#define LAST	2
#define ONLY	(FIRST | LAST)

/* RC's opcodes of the IBTA, table 38 and annexes: what, which part, extension headers. */
static const struct opcode {
	uint8_t kind, part, ext;
	bool imm;
} opcodes[32] = {
	[0x00] = { SEND, FIRST, 0, 0 }, [0x01] = { SEND, 0, 0, 0 }, [0x02] = { SEND, LAST, 0, 0 },
	[0x03] = { SEND, LAST, 4, 1 }, [0x04] = { SEND, ONLY, 0, 0 }, [0x05] = { SEND, ONLY, 4, 1 },
	[0x06] = { WRITE, FIRST, 16, 0 }, [0x07] = { WRITE, 0, 0, 0 },
	[0x08] = { WRITE, LAST, 0, 0 }, [0x09] = { WRITE, LAST, 4, 1 },
	[0x0a] = { WRITE, ONLY, 16, 0 }, [0x0b] = { WRITE, ONLY, 20, 1 },
	[0x0c] = { READ, ONLY, 16, 0 },
	[0x0d] = { READ_RESP, FIRST, 4, 0 }, [0x0e] = { READ_RESP, 0, 0, 0 },
	[0x0f] = { READ_RESP, LAST, 4, 0 }, [0x10] = { READ_RESP, ONLY, 4, 0 },
	[0x11] = { ACK, ONLY, 4, 0 }, [0x12] = { ATOMIC_ACK, ONLY, 12, 0 },
	[0x13] = { ATOMIC, ONLY, 28, 0 }, [0x14] = { ATOMIC, ONLY, 28, 0 },
	[0x16] = { SEND, LAST, 4, 1 }, [0x17] = { SEND, ONLY, 4, 1 },
	[0x1c] = { OTHER, ONLY, 20, 0 }, [0x1d] = { OTHER, ONLY, 16, 0 },
};

/* Documentation/wire: a masked atomic, of the manufacturers' range. */
static const struct opcode masked = { ATOMIC, ONLY, 44, 0 };

struct packet {
	const struct opcode *op;
	uint32_t dqpn, psn, msn, read_len;
	uint32_t payload;
	uint8_t syndrome;
	bool se, xrc;
	uint8_t dmac[6], sgid[16], dgid[16];
	uint16_t vlan;
};

static uint32_t be(const uint8_t *p, unsigned int bytes)
{
	uint32_t val = 0;

	while (bytes--)
		val = val << 8 | *p++;
	return val;
}

static uint32_t crc_table[256];

/* Before there is a second thread. */
__attribute__((constructor))
static void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (unsigned int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		crc_table[i] = c;
	}
}

static uint32_t crc(uint32_t sum, uint8_t byte)
{
	return sum >> 8 ^ crc_table[(sum ^ byte) & 0xff];
}

/* ICRC of RoCEv2 (IBTA A17.3.3): fields that change on the way count as all ones. */
static uint32_t icrc(const uint8_t *ip, bool v6, size_t len)
{
	size_t udp = v6 ? 40 : 20;
	uint32_t sum = UINT32_MAX;

	for (unsigned int i = 0; i < 8; i++)
		sum = crc(sum, 0xff);
	for (size_t i = 0; i < len; i++) {
		bool ones = i == udp + 6 || i == udp + 7 || i == udp + 8 + 4 ||
			    (v6 ? i == 1 || i == 2 || i == 3 || i == 7 :
				  i == 1 || i == 8 || i == 10 || i == 11);
		uint8_t byte = ones ? 0xff : ip[i];

		if (v6 && !i)
			byte |= 0x0f;
		sum = crc(sum, byte);
	}
	return ~sum;
}

bool judge_intact(const uint8_t *f, size_t len)
{
	size_t total = len >= 14 + 20 ? be(f + 16, 2) : 0;
	const uint8_t *end = f + 14 + total;

	return total >= 24 && total <= len - 14 &&
	       icrc(f + 14, false, total - 4) == (be(end - 4, 1) | be(end - 3, 1) << 8 |
						  be(end - 2, 1) << 16 | be(end - 1, 1) << 24);
}

static void gid(uint8_t to[16], const uint8_t *addr, bool v6)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(to, v4, sizeof(v4));
	memcpy(v6 ? to : to + sizeof(v4), addr, v6 ? 16 : 4);
}

/* The ICRC leaves out fields of the IPv4 header that its own checksum covers (RFC 791). */
static bool ipv4_intact(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 20; i += 2)
		sum += be(ip + i, 2);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

enum parsed { FOREIGN, DAMAGED, GOOD };

/* From the Ethernet header to the payload. FOREIGN: no RC packet. */
static enum parsed parse(const uint8_t *f, size_t len, struct packet *p)
{
	const uint8_t *ip = f + 14, *bth, *ext;
	uint32_t type = len >= 14 + 20 ? be(f + 12, 2) : 0;
	size_t l3, total, pad;
	bool v6, aeth;

	p->vlan = JUDGE_NO_VLAN;
	if (type == 0x8100 && len >= 18 + 20) {
		if (be(f + 14, 2) & 0xfff)
			p->vlan = be(f + 14, 2) & 0xfff;
		type = be(f + 16, 2);
		ip += 4;
	}
	v6 = type == 0x86dd;
	l3 = v6 ? 40 : 20;
	if ((!v6 && (type != 0x0800 || ip[0] != 0x45)) || (size_t)(f + len - ip) < l3 + 8 + 12 + 4 ||
	    ip[v6 ? 6 : 9] != 17 || be(ip + l3 + 2, 2) != 4791)
		return FOREIGN;
	total = v6 ? 40 + be(ip + 4, 2) : be(ip + 2, 2);
	bth = ip + l3 + 8;
	/* 0x00: RC, 0xa0: XRC; with 0xc0 set they are of the manufacturers' range. */
	p->xrc = (bth[0] & 0xa0) == 0xa0;
	if (!(bth[0] & 0xe0) || (bth[0] & 0xe0) == 0xa0)
		p->op = &opcodes[bth[0] & 0x1f];
	else if ((bth[0] & 0xde) == 0xd8)
		p->op = &masked;
	else
		return FOREIGN;
	if (!p->op->kind)
		return FOREIGN;
	if (total > (size_t)(f + len - ip) || total < l3 + 8 + 12 + 4 ||
	    be(ip + l3 + 4, 2) + l3 != total || (!v6 && !ipv4_intact(ip)) ||
	    icrc(ip, v6, total - 4) != (be(ip + total - 4, 1) | be(ip + total - 3, 1) << 8 |
					be(ip + total - 2, 1) << 16 | be(ip + total - 1, 1) << 24))
		return DAMAGED;
	memcpy(p->dmac, f, sizeof(p->dmac));
	gid(p->sgid, ip + (v6 ? 8 : 12), v6);
	gid(p->dgid, ip + (v6 ? 24 : 16), v6);
	p->dqpn = be(bth + 5, 3);
	p->psn = be(bth + 9, 3);
	p->se = bth[1] & 0x80;
	/* What is behind the BTH, but the ICRC and the pad; XRC's requests name an SRQ. */
	len = total - l3 - 8 - 12 - 4;
	pad = bth[1] >> 4 & 3;
	ext = bth + 12;
	if (p->xrc && p->op->kind <= OTHER) {
		if (len < 4)
			return DAMAGED;
		ext += 4;
		len -= 4;
	}
	if (len < (size_t)p->op->ext + pad)
		return DAMAGED;
	aeth = p->op->kind >= READ_RESP && p->op->ext;
	p->syndrome = aeth ? ext[0] : 0;
	p->msn = aeth ? be(ext + 1, 3) : 0;
	p->read_len = p->op->kind == READ ? be(ext + 12, 4) : 0;
	/* Between SRQs too they have no payload. */
	p->payload = p->op == &masked ? 0 : (uint32_t)(len - p->op->ext - pad);
	return GOOD;
}

/* --- queue pairs --- */

void judge_reset(struct judge *j)
{
	for (unsigned int i = 0; i < JUDGE_QPS; i++)
		free(j->qp[i]);
	free(j->xrc);
	memset(j, 0, sizeof(*j));
}

static struct judge_qp **find(struct judge *j, uint32_t own)
{
	for (unsigned int i = 0; i < JUDGE_QPS; i++) {
		if (j->qp[i] && j->qp[i]->own == own)
			return &j->qp[i];
	}
	return NULL;
}

/* Whose packets go there. Of two queue pairs with one peer none can be told. */
static struct judge_qp *find_peer(struct judge *j, uint32_t peer)
{
	struct judge_qp *qp = NULL;

	for (unsigned int i = 0; i < JUDGE_QPS; i++) {
		if (!j->qp[i] || j->qp[i]->peer != peer)
			continue;
		if (qp)
			return NULL;
		qp = j->qp[i];
	}
	return qp;
}

void judge_stops(struct judge *j, uint32_t own)
{
	struct judge_qp **qp = find(j, own);

	if (!qp)
		return;
	free(*qp);
	*qp = NULL;
}

static uint32_t *xrc_place(struct judge *j, uint32_t qpn)
{
	for (unsigned int i = 0; i < j->num_xrc; i++) {
		if (j->xrc[i] == qpn)
			return &j->xrc[i];
	}
	return NULL;
}

void judge_makes_xrc(struct judge *j, uint32_t own)
{
	uint32_t *place = xrc_place(j, 0);
	unsigned int num = j->num_xrc;

	if (!place) {
		j->num_xrc = num ? 2 * num : JUDGE_QPS;
		j->xrc = realloc(j->xrc, j->num_xrc * sizeof(*j->xrc));
		if (!j->xrc)
			abort();
		memset(j->xrc + num, 0, (j->num_xrc - num) * sizeof(*j->xrc));
		place = &j->xrc[num];
	}
	*place = own;
}

void judge_destroys(struct judge *j, uint32_t own)
{
	uint32_t *place = xrc_place(j, own);

	if (place)
		*place = 0;
	judge_stops(j, own);
}

void judge_address(struct judge *j, uint32_t index, const struct judge_addr *addr)
{
	if (index >= JUDGE_GIDS)
		return;
	j->addr[index] = *addr;
	j->addr[index].known = true;
}

void judge_hears(struct judge *j, const struct judge_path *path)
{
	struct judge_qp *qp = NULL;

	judge_stops(j, path->own);
	for (unsigned int i = 0; i < JUDGE_QPS && !qp; i++) {
		if (!j->qp[i])
			qp = j->qp[i] = calloc(1, sizeof(*qp));
	}
	if (!qp)
		return;
	qp->own = path->own;
	qp->peer = path->peer;
	qp->mtu = path->mtu;
	qp->sgid_index = path->sgid_index;
	memcpy(qp->sgid, path->sgid, sizeof(qp->sgid));
	qp->xrc = xrc_place(j, path->own);
	qp->hears = true;
	qp->rq.cont = path->rq_psn;
	qp->rq.answered = path->rq_psn;
	qp->rq.far = (path->rq_psn - 1) & PSN_MASK;
	qp->rq.acked = (path->rq_psn - 1) & PSN_MASK;
}

void judge_sends(struct judge *j, const struct judge_path *path)
{
	struct judge_qp **qp = find(j, path->own);

	if (!qp || (*qp)->sends)
		return;
	(*qp)->depth = path->depth;
	(*qp)->sends = true;
	(*qp)->sq.una = path->sq_psn;
	(*qp)->sq.got = path->sq_psn;
	(*qp)->sq.next = path->sq_psn;
	(*qp)->sq.may = path->sq_psn;
	(*qp)->sq.top = path->sq_psn;
	(*qp)->sq.cause = true;
}

/* PSNs that a packet stands for: of a READ those of its answer (9.7.2). */
static uint32_t psns(const struct judge_qp *qp, const struct packet *p)
{
	uint64_t n = p->op->kind == READ ? ((uint64_t)p->read_len + qp->mtu - 1) / qp->mtu : 1;

	return n ? (uint32_t)n : 1;
}

static uint8_t marks(const struct packet *p)
{
	uint8_t end = p->op->part & LAST ? JUDGE_END : 0;

	switch (p->op->kind) {
	case SEND:
		return JUDGE_SEND | end;
	case WRITE:
		return JUDGE_WRITE | end;
	case READ:
		return JUDGE_READ | end;
	case ATOMIC:
		return JUDGE_ATOMIC | end;
	case OTHER:
		return JUDGE_OTHER | end;
	default:
		return end;
	}
}

static bool is_answered(uint8_t mark)
{
	return mark & (JUDGE_READ | JUDGE_ATOMIC | JUDGE_OTHER);
}

static uint8_t *sq_at(struct judge_qp *qp, uint32_t psn)
{
	return &qp->sq.psn[psn % JUDGE_PSNS];
}

static uint8_t *rq_at(struct judge_qp *qp, uint32_t psn)
{
	return &qp->rq.psn[psn % JUDGE_PSNS];
}

/* Length by part of the message (9.6, table of payload lengths). */
static bool payload_ok(const struct judge_qp *qp, const struct packet *p)
{
	bool data = p->op->kind == SEND || p->op->kind == WRITE || p->op->kind == READ_RESP;

	if (!data)
		return p->payload == (p->op == &opcodes[0x1d] ? 8 : 0);
	if (!(p->op->part & LAST))
		return p->payload == qp->mtu;
	if (!(p->op->part & FIRST))
		return p->payload >= 1 && p->payload <= qp->mtu;
	return p->payload <= qp->mtu;
}

/* --- requester --- */

/* READs and the like that are sent and not answered, by their first PSNs that are open. */
static uint32_t outstanding(struct judge_qp *qp)
{
	uint32_t n = 0, from = ahead(qp->sq.got, qp->sq.una) > 0 ? qp->sq.got : qp->sq.una;

	for (uint32_t psn = from; ahead(psn, qp->sq.next) < 0; psn = (psn + 1) & PSN_MASK) {
		uint8_t mark = *sq_at(qp, psn);

		n += is_answered(mark) && (mark & JUDGE_BEGIN || psn == from);
	}
	return n;
}

/* The kind of message that is under way before @psn, which was sent before or is next. */
static uint8_t open_at(struct judge_qp *qp, uint32_t psn)
{
	uint8_t before = *sq_at(qp, psn - 1);

	return before & JUDGE_END ? 0 : before & (JUDGE_SEND | JUDGE_WRITE);
}

/* Does @p take up PSNs that were sent as something else? A READ may be asked for in parts. */
static bool differs(struct judge_qp *qp, const struct packet *p, uint32_t n)
{
	const uint8_t same = JUDGE_SEND | JUDGE_WRITE | JUDGE_READ | JUDGE_ATOMIC | JUDGE_OTHER |
			     JUDGE_END;

	for (uint32_t i = 0; i < n && i < JUDGE_PSNS; i++) {
		uint32_t psn = (p->psn + i) & PSN_MASK;

		if (ahead(psn, qp->sq.top) >= 0)
			break;
		if ((*sq_at(qp, psn) ^ marks(p)) & same)
			return true;
	}
	return false;
}

static const char *order(struct judge_qp *qp, const struct packet *p, uint32_t n, bool fickle)
{
	uint8_t open = open_at(qp, p->psn);

	if (fickle && ahead(p->psn, qp->sq.top) < 0)
		return NULL;
	if (differs(qp, p, n))
		return "another packet than the first time";
	if (p->op->kind <= WRITE && !(p->op->part & FIRST))
		return open & marks(p) ? NULL :
		       "a packet goes on with a message that is not under way (9.7.4.1.2)";
	return open ? "a message begins within another (9.7.4.1.2)" : NULL;
}

static const char *request_sent(struct judge_qp *qp, const struct packet *p, uint64_t now,
				bool fickle)
{
	uint32_t n = psns(qp, p);
	const char *why;
	bool back;

	/*
	 * What was sent once more after going back, and what is still to come of that, may have
	 * arrived the first time: the requester goes on behind what is acknowledged now.
	 */
	if (ahead(p->psn, qp->sq.next) > 0 && ahead(p->psn, qp->sq.may) <= 0)
		qp->sq.next = p->psn;
	back = p->psn != qp->sq.next;
	if (!qp->sends)
		return "a request before RTS";
	if (qp->sq.dead)
		return "a request after the NAK that ended the queue (9.7.5.2.4)";
	if (now < qp->sq.rnr_until)
		return "a request before the RNR NAK's time is over (9.7.5.2.8)";
	if (ahead(p->psn, qp->sq.next) > 0)
		return "PSNs left out (9.7.2)";
	if (ahead(p->psn, qp->sq.una) < 0)
		return "an acknowledged packet comes again (9.7.5.1.2)";
	if (back && !qp->sq.cause && now == qp->sq.now)
		return "packets come again and nothing has happened";
	why = order(qp, p, n, fickle);
	if (why)
		return why;
	if (p->se && !((p->op->part & LAST) && (p->op->kind == SEND || p->op->imm)))
		return "SE in another packet than the last that a receive hears of (C9-9)";
	if (back && ahead(qp->sq.got, p->psn) > 0)
		qp->sq.got = p->psn;
	if (back && ahead(qp->sq.may, p->psn) > 0)
		qp->sq.may = p->psn;
	for (uint32_t i = 0; i < n && i < JUDGE_PSNS; i++)
		*sq_at(qp, p->psn + i) = marks(p) | (i ? 0 : JUDGE_BEGIN);
	qp->sq.next = (p->psn + n) & PSN_MASK;
	if (ahead(qp->sq.next, qp->sq.top) > 0)
		qp->sq.top = qp->sq.next;
	if (is_answered(marks(p)) && outstanding(qp) > qp->depth)
		return "more READs and atomics outstanding than agreed (9.7.4.1.2, C9-88)";
	if (back)
		qp->sq.cause = false;
	qp->sq.now = now;
	return NULL;
}

/* Table 45 of the IBTA, in units of 10 us. */
static uint64_t rnr_ns(uint8_t code)
{
	static const uint32_t first[4] = { 65536, 1, 2, 3 };

	if (code < 4)
		return first[code] * 10000ull;
	/* From there on each two steps are twice as long: 4, 6, 8, 12, 16, 24, ... */
	return (code % 2 ? 6ull : 4ull) * 10000 << (code - 4) / 2;
}

/*
 * An answer acknowledges the requests before its own, and an ACK those before the first
 * that wants an answer which has not come: so far the requester may go on, if the answers
 * could be placed.
 */
static void may_go_on(struct judge_qp *qp, uint32_t upto)
{
	if (ahead(qp->sq.got, qp->sq.may) > 0)
		qp->sq.may = qp->sq.got;
	if (ahead(qp->sq.una, qp->sq.may) > 0)
		qp->sq.may = qp->sq.una;
	while (ahead(qp->sq.may, upto) < 0 && !is_answered(*sq_at(qp, qp->sq.may)))
		qp->sq.may = (qp->sq.may + 1) & PSN_MASK;
}

/* What an ACK or NAK says of the requests before it; false: it says nothing certain. */
static bool acknowledge(struct judge_qp *qp, uint32_t upto)
{
	for (uint32_t psn = qp->sq.una; ahead(psn, upto) < 0; psn = (psn + 1) & PSN_MASK) {
		if (is_answered(*sq_at(qp, psn)))
			return false;
		qp->sq.una = (psn + 1) & PSN_MASK;
	}
	if (ahead(qp->sq.una, qp->sq.next) > 0)
		qp->sq.next = qp->sq.una;
	return true;
}

/*
 * The next answer that is due. Whether it could be placed is not seen from here: it may
 * be asked for again.
 */
static void answer_received(struct judge_qp *qp, const struct packet *p)
{
	uint32_t psn = ahead(qp->sq.got, qp->sq.una) > 0 ? qp->sq.got : qp->sq.una;

	while (ahead(psn, p->psn) < 0 && !is_answered(*sq_at(qp, psn)))
		psn = (psn + 1) & PSN_MASK;
	if (psn == p->psn)
		qp->sq.got = (psn + 1) & PSN_MASK;
}

static void response_received(struct judge_qp *qp, const struct packet *p, uint64_t now)
{
	uint8_t type = p->syndrome & 0x60, code = p->syndrome & 0x1f;

	qp->sq.cause = true;
	if (ahead(p->psn, qp->sq.una) < 0 || ahead(p->psn, qp->sq.top) >= 0)
		return;
	if (p->op->kind != ACK) {
		answer_received(qp, p);
		may_go_on(qp, qp->sq.got);
		return;
	}
	may_go_on(qp, type ? p->psn : (p->psn + 1) & PSN_MASK);
	if (!acknowledge(qp, type ? p->psn : (p->psn + 1) & PSN_MASK))
		return;
	if (type == 0x20 && now >= qp->sq.rnr_until)
		qp->sq.rnr_until = now + rnr_ns(code);
	if (type == 0x60 && code >= 1 && code <= 3)
		qp->sq.dead = true;
}

/* --- responder --- */

static void request_received(struct judge_qp *qp, const struct packet *p)
{
	int32_t d = ahead(p->psn, qp->rq.cont);
	uint32_t n = psns(qp, p);

	if (n > JUDGE_PSNS / 2) {
		qp->lax = true;
		return;
	}
	if (d > ahead(qp->rq.far, qp->rq.cont))
		qp->rq.far = p->psn;
	if (qp->rq.nak && p->psn == qp->rq.nak_psn)
		qp->rq.nak = false;
	if (d > 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t psn = (p->psn + i) & PSN_MASK;
		uint8_t *at = rq_at(qp, psn), mark = marks(p);

		if (ahead(psn, qp->rq.cont) >= 0) {
			*at = i ? 0 : JUDGE_BEGIN;
			qp->rq.cont = (psn + 1) & PSN_MASK;
		}
		/* What ends a message counts once, whoever sent it. */
		qp->rq.ends += i + 1 == n && mark & JUDGE_END && !(*at & JUDGE_END);
		*at |= (mark & ~JUDGE_END) | (i + 1 == n ? mark & JUDGE_END : 0);
	}
}

/*
 * Is all before @psn answered that is to be? Answers are given in order (9.7.5.1.1). Of
 * different requests of one PSN it is not known which one was taken.
 */
static bool in_order(struct judge_qp *qp, uint32_t psn)
{
	while (ahead(qp->rq.answered, psn) < 0) {
		uint8_t mark = *rq_at(qp, qp->rq.answered);
		bool plain = mark & (JUDGE_SEND | JUDGE_WRITE);

		if (is_answered(mark) && !plain && !(mark & JUDGE_ANSWERED))
			return false;
		qp->rq.answered = (qp->rq.answered + 1) & PSN_MASK;
	}
	return true;
}

static const char *msn_ok(struct judge_qp *qp, const struct packet *p, bool grows)
{
	if (ahead(p->msn, qp->rq.ends & PSN_MASK) > 0)
		return "the MSN counts messages that did not come (9.7.7.2)";
	if (!grows)
		return NULL;
	if (ahead(p->msn, qp->rq.msn) < 0)
		return "the MSN goes back (9.7.7.2)";
	qp->rq.msn = p->msn;
	return NULL;
}

static const char *ack_sent(struct judge_qp *qp, const struct packet *p)
{
	if (ahead(p->psn, qp->rq.cont) >= 0)
		return "an ACK of a request that did not come (9.7.5.1.2)";
	if (ahead(p->psn, qp->rq.acked) < 0)
		return "an ACK of less than the one before it (9.7.5.1.2)";
	if (!in_order(qp, (p->psn + 1) & PSN_MASK))
		return "an ACK before the answer to an earlier request (9.7.5.1.1)";
	qp->rq.acked = p->psn;
	return msn_ok(qp, p, true);
}

/* What a NAK asks for, and all behind it, was not taken: it has to come again. */
static void ask_again(struct judge_qp *qp, uint32_t psn)
{
	while (ahead(qp->rq.cont, psn) > 0) {
		qp->rq.cont = (qp->rq.cont - 1) & PSN_MASK;
		qp->rq.ends -= !!(*rq_at(qp, qp->rq.cont) & JUDGE_END);
		*rq_at(qp, qp->rq.cont) = 0;
	}
}

static const char *nak_sent(struct judge_qp *qp, const struct packet *p)
{
	uint8_t code = p->syndrome & 0x1f;

	if ((p->syndrome & 0x60) == 0x20) {
		if (ahead(p->psn, qp->rq.cont) >= 0)
			return "an RNR NAK for a request that did not come (9.7.5.2.8)";
		ask_again(qp, p->psn);
		return NULL;
	}
	if (code) {
		qp->rq.dead = true;
		return ahead(p->psn, qp->rq.cont) >= 0 ?
		       "a NAK for a request that did not come (9.7.5.2)" : NULL;
	}
	if (ahead(p->psn, qp->rq.cont) > 0)
		return "a NAK beyond the expected PSN (9.7.5.1.3)";
	if (ahead(qp->rq.far, p->psn) < 0)
		return "a NAK and no gap (9.7.5.1.3)";
	if (qp->rq.nak && qp->rq.nak_psn == p->psn)
		return "a second NAK for one gap (9.7.5.1.3, C9-114)";
	qp->rq.nak = true;
	qp->rq.nak_psn = p->psn;
	ask_again(qp, p->psn);
	return NULL;
}

static const char *answer_sent(struct judge_qp *qp, const struct packet *p)
{
	uint8_t mark = *rq_at(qp, p->psn), want = JUDGE_READ;

	if (p->op->kind == ATOMIC_ACK)
		want = JUDGE_ATOMIC;
	else if (p->op->part == ONLY && !p->payload)
		want = JUDGE_READ | JUDGE_OTHER;
	if (ahead(p->psn, qp->rq.cont) >= 0 || !(mark & want))
		return "an answer to a request that did not come (9.7.5.1.1)";
	if (!in_order(qp, p->psn))
		return "an answer before that to an earlier request (9.7.5.1.1)";
	/* The answer to one that comes again may go before the rest of another's. */
	if (!(p->op->part & FIRST) &&
	    (mark & JUDGE_BEGIN || !(*rq_at(qp, p->psn - 1) & JUDGE_ANSWERED)))
		return "an answer goes on with a READ that is not under way (9.7.5.1.4)";
	*rq_at(qp, p->psn) |= JUDGE_ANSWERED;
	return p->op->ext ? msn_ok(qp, p, false) : NULL;
}

static const char *response_sent(struct judge_qp *qp, const struct packet *p)
{
	if (qp->lax)
		return NULL;
	if (qp->rq.dead)
		return "an answer after the NAK that ended the queue (9.7.5.2.4)";
	if (p->op->kind != ACK)
		return answer_sent(qp, p);
	return p->syndrome & 0x60 ? nak_sent(qp, p) : ack_sent(qp, p);
}

/* --- frames --- */

const char *judge_sent(struct judge *j, const uint8_t *frame, size_t len, uint64_t now)
{
	struct judge_qp *qp;
	struct packet p;

	switch (parse(frame, len, &p)) {
	case FOREIGN:
		return NULL;
	case DAMAGED:
		return "a packet whose lengths or ICRC are wrong";
	case GOOD:
		break;
	}
	qp = find_peer(j, p.dqpn);
	if (!qp)
		return NULL;
	j->num++;
	if (p.xrc != qp->xrc)
		return "a packet of another transport than the queue pair's (9.2.1)";
	if (!payload_ok(qp, &p))
		return "a payload that the packet may not have (9.6)";
	return p.op->kind <= OTHER ? request_sent(qp, &p, now, j->fickle) : response_sent(qp, &p);
}

/*
 * Is it for the queue pair? Of another's, for another address, or of another transport, it hears
 * nothing (9.6.1).
 */
static bool is_for(const struct judge *j, const struct judge_qp *qp, const struct packet *p)
{
	const struct judge_addr *a;

	if (memcmp(qp->sgid, p->sgid, sizeof(p->sgid)) || p->xrc != qp->xrc)
		return false;
	if (qp->sgid_index >= JUDGE_GIDS || !j->addr[qp->sgid_index].known)
		return true;
	a = &j->addr[qp->sgid_index];
	return !memcmp(a->mac, p->dmac, sizeof(a->mac)) &&
	       !memcmp(a->gid, p->dgid, sizeof(a->gid)) && a->vlan == p->vlan;
}

void judge_received(struct judge *j, const uint8_t *frame, size_t len, uint64_t now)
{
	struct judge_qp **qp;
	struct packet p;

	if (parse(frame, len, &p) != GOOD)
		return;
	qp = find(j, p.dqpn);
	if (!qp || !is_for(j, *qp, &p))
		return;
	if (p.op->kind <= OTHER)
		request_received(*qp, &p);
	else
		response_received(*qp, &p, now);
}
