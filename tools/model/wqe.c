// SPDX-License-Identifier: GPL-2.0
/*
 * Work queue elements: decoding the bytes of a ring into a consistent description. The guest can
 * change the ring at any time, so a WQE is read once for each use, and checked completely each
 * time.
 */
#include <string.h>

#include "core.h"

#define T(type)		(1u << SKUA_QP_##type)
#define CONN		(T(RC) | T(UC) | T(XRC_INI))
#define RELIABLE	(T(RC) | T(XRC_INI))
#define DGRAM		(T(UD) | T(GSI))
#define RDMA		(CONN | DGRAM)

/* Segments of an opcode. */
#define L_RADDR		BIT(0)
#define L_ATOMIC	BIT(1)	/* one atomic segment */
#define L_MASKED	BIT(2)	/* and one with masks */
#define L_DATA		BIT(3)	/* data segments */
#define L_INLINE	BIT(4)	/* or an inline one */
#define L_IMM		BIT(5)	/* the control segment has immediate data, a key or a length */
#define L_EIGHT		BIT(6)	/* the payload is 8 bytes */
#define L_BIND		BIT(7)
#define L_REG		BIT(8)
#define L_FLUSH		BIT(9)
#define L_ADD		BIT(10)	/* an atomic without compare operand */
#define L_LOCAL		BIT(11)	/* works on a key, sends nothing */

/**
 * struct layout - an opcode
 * @types: of QPs that may use it
 * @parts: L_*
 * @caps: capability that the opcode needs besides that of the QP's type
 */
struct layout {
	uint32_t types;
	uint32_t parts;
	uint64_t caps;
};

static const struct layout layouts[] = {
	[SKUA_WQE_NOP] = { RDMA | T(RAW_ETH), 0, 0 },
	[SKUA_WQE_SEND] = { RDMA, L_DATA | L_INLINE, 0 },
	[SKUA_WQE_SEND_IMM] = { RDMA, L_DATA | L_INLINE | L_IMM, 0 },
	[SKUA_WQE_SEND_INV] = { RELIABLE, L_DATA | L_INLINE | L_IMM, SKUA_CAP_INVALIDATE },
	[SKUA_WQE_WRITE] = { CONN, L_RADDR | L_DATA | L_INLINE, 0 },
	[SKUA_WQE_WRITE_IMM] = { CONN, L_RADDR | L_DATA | L_INLINE | L_IMM, 0 },
	[SKUA_WQE_READ] = { RELIABLE, L_RADDR | L_DATA, 0 },
	[SKUA_WQE_CAS] = { RELIABLE, L_RADDR | L_ATOMIC | L_DATA | L_EIGHT, SKUA_CAP_ATOMIC },
	[SKUA_WQE_FAA] = { RELIABLE, L_RADDR | L_ATOMIC | L_ADD | L_DATA | L_EIGHT,
			   SKUA_CAP_ATOMIC },
	[SKUA_WQE_MASKED_CAS] = { RELIABLE, L_RADDR | L_ATOMIC | L_MASKED | L_DATA | L_EIGHT,
				  SKUA_CAP_MASKED_ATOMIC },
	[SKUA_WQE_MASKED_FAA] = { RELIABLE, L_RADDR | L_ATOMIC | L_MASKED | L_ADD | L_DATA |
				  L_EIGHT, SKUA_CAP_MASKED_ATOMIC },
	[SKUA_WQE_FLUSH] = { T(RC), L_RADDR | L_FLUSH | L_IMM, SKUA_CAP_FLUSH },
	[SKUA_WQE_ATOMIC_WRITE] = { T(RC), L_RADDR | L_DATA | L_INLINE | L_EIGHT,
				    SKUA_CAP_ATOMIC_WRITE },
	[SKUA_WQE_BIND_MW] = { CONN, L_LOCAL | L_BIND, SKUA_CAP_MW },
	[SKUA_WQE_LOCAL_INV] = { CONN, L_LOCAL | L_IMM, SKUA_CAP_INVALIDATE },
	[SKUA_WQE_REG_MR] = { CONN, L_LOCAL | L_REG, SKUA_CAP_FAST_REG },
	[SKUA_WQE_ETH] = { T(RAW_ETH), L_DATA | L_INLINE, 0 },
};

static const struct layout *layout_of(uint32_t op)
{
	const struct layout *l = op < sizeof(layouts) / sizeof(layouts[0]) ? &layouts[op] : NULL;

	return l && l->types ? l : NULL;
}

/* Segments being taken apart. */
struct cursor {
	const uint8_t *p;
	uint32_t left;		/* segments */
};

/* The next @n segments; NULL if the WQE has not as many. */
static const void *take(struct cursor *c, uint32_t n)
{
	const void *seg = c->p;

	if (c->left < n)
		return NULL;
	c->p += n * SKUA_WQE_SEG;
	c->left -= n;
	return seg;
}

static bool take_raddr(struct cursor *c, const struct layout *l, struct wqe *out)
{
	const void *p = take(c, 1);
	struct skua_wqe_raddr seg;

	if (!p)
		return false;
	memcpy(&seg, p, sizeof(seg));
	out->va = le64_to_cpu(seg.va);
	out->rkey = le32_to_cpu(seg.rkey);
	out->flush = le32_to_cpu(seg.flush);
	return !(out->flush & ~(l->parts & L_FLUSH ? SKUA_WQE_FLUSH_PLT | SKUA_WQE_FLUSH_SEL : 0));
}

static bool take_atomic(struct cursor *c, const struct layout *l, struct wqe *out)
{
	struct skua_wqe_atomic seg[2] = { 0 };
	uint32_t n = l->parts & L_MASKED ? 2 : 1;
	const void *p = take(c, n);

	if (!p)
		return false;
	memcpy(seg, p, n * sizeof(seg[0]));
	out->swap_add = le64_to_cpu(seg[0].swap_add);
	out->compare = le64_to_cpu(seg[0].compare);
	out->swap_add_mask = le64_to_cpu(seg[1].swap_add);
	out->compare_mask = le64_to_cpu(seg[1].compare);
	/* Fetch and add has no compare operand. */
	return !(l->parts & L_ADD) || (!out->compare && !out->compare_mask);
}

static bool take_av(struct cursor *c, struct wqe *out)
{
	const void *p = take(c, sizeof(struct skua_wqe_av) / SKUA_WQE_SEG);
	struct skua_wqe_av seg;

	if (!p)
		return false;
	memcpy(&seg, p, sizeof(seg));
	out->av = seg.av;
	out->dest_qpn = le32_to_cpu(seg.dest_qpn);
	out->qkey = le32_to_cpu(seg.qkey);
	/* The P_Key table has one entry: the index must be zero for GSI, as it is for UD. */
	_Static_assert(MODEL_PKEYS == 1, "a P_Key index to look up");
	return !seg.pkey_index && !seg.reserved2 && !seg.reserved;
}

/* The segments of BIND_MW and REG_MR, which key.c checks. */
static bool take_key(struct cursor *c, const struct layout *l, struct wqe *out)
{
	size_t size = l->parts & L_BIND ? sizeof(out->bind) : sizeof(out->reg);
	const void *p = take(c, size / SKUA_WQE_SEG);

	if (!p)
		return false;
	if (l->parts & L_BIND)
		memcpy(&out->bind, p, size);
	else
		memcpy(&out->reg, p, size);
	return l->parts & L_BIND || le64_to_cpu(out->reg.page_list) % SKUA_WQE_BLOCK == 0;
}

/* XRC: the number of the SRQ travels in @dest_qpn. */
static bool take_xrc(struct cursor *c, struct wqe *out)
{
	const void *p = take(c, 1);
	struct skua_wqe_xrc seg;

	if (!p)
		return false;
	memcpy(&seg, p, sizeof(seg));
	out->dest_qpn = le32_to_cpu(seg.srqn);
	return !seg.reserved[0] && !seg.reserved[1] && !seg.reserved[2];
}

static enum skua_vendor take_inline(struct cursor *c, struct wqe *out)
{
	const uint8_t *p = c->p;
	struct skua_wqe_inline seg;
	uint32_t len;

	if (!c->left)
		return SKUA_VENDOR_WQE_FORMAT;
	memcpy(&seg, p, sizeof(seg));
	len = le32_to_cpu(seg.len);
	if (len > MODEL_MAX_INLINE)
		return SKUA_VENDOR_SGE_LEN;
	if ((sizeof(seg) + len + SKUA_WQE_SEG - 1) / SKUA_WQE_SEG != c->left)
		return SKUA_VENDOR_WQE_FORMAT;
	memcpy(out->inl, p + sizeof(seg), len);
	out->inl_len = len;
	out->len = len;
	return SKUA_VENDOR_NONE;
}

/* Add one element. False: the message exceeds the maximum length. */
static bool take_sge(const void *p, struct sge *sge)
{
	struct skua_wqe_data seg;

	memcpy(&seg, p, sizeof(seg));
	sge->addr = le64_to_cpu(seg.addr);
	sge->lkey = le32_to_cpu(seg.lkey);
	sge->len = le32_to_cpu(seg.len);
	return sge->len <= 1u << MODEL_LOG_MSG;
}

static enum skua_vendor take_data(struct cursor *c, struct wqe *out)
{
	const void *p;

	while ((p = take(c, 1))) {
		struct sge *sge = &out->sge[out->nsge++];

		if (!take_sge(p, sge))
			return SKUA_VENDOR_SGE_LEN;
		out->len += sge->len;
	}
	return out->len > 1u << MODEL_LOG_MSG ? SKUA_VENDOR_SGE_LEN : SKUA_VENDOR_NONE;
}

static enum skua_vendor take_payload(struct cursor *c, const struct layout *l, struct wqe *out)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;

	if (out->flags & SKUA_WQE_F_INLINE) {
		if (!(l->parts & L_INLINE))
			return SKUA_VENDOR_WQE_FORMAT;
		err = take_inline(c, out);
	} else if (l->parts & L_DATA) {
		err = take_data(c, out);
	} else if (c->left) {
		return SKUA_VENDOR_WQE_FORMAT;
	}
	if (!err && l->parts & L_EIGHT && out->len != 8)
		return SKUA_VENDOR_SGE_LEN;
	return err;
}

/* Flags and words of the control segment that the opcode has no use for. */
static bool ctrl_ok(const struct layout *l, const struct wqe *w, bool eth)
{
	uint32_t eth_flags = SKUA_WQE_F_L3_CSUM | SKUA_WQE_F_L4_CSUM | SKUA_WQE_F_VLAN |
			     SKUA_WQE_F_LSO;

	if (w->flags & ~(uint32_t)SKUA_WQE_F_ALL || (!(l->parts & L_IMM) && w->imm) ||
	    (w->flags & SKUA_WQE_F_LOCAL_FENCE && !(l->parts & L_LOCAL)))
		return false;
	return eth || (!(w->flags & eth_flags) && !w->eth);
}

enum skua_vendor wqe_decode(const void *raw, size_t nbytes, uint32_t index,
			    enum skua_qp_type type, struct wqe *out)
{
	struct skua_wqe_ctrl ctrl;
	const struct layout *l;
	struct cursor c;
	uint32_t nseg;

	memset(out, 0, offsetof(struct wqe, sge));
	out->len = 0;
	out->inl_len = 0;
	out->index = index;
	if (nbytes < sizeof(ctrl))
		return SKUA_VENDOR_WQE_FORMAT;
	memcpy(&ctrl, raw, sizeof(ctrl));
	nseg = le32_get_bits(ctrl.op, SKUA_WQE_NSEG);
	out->blocks = (nseg * SKUA_WQE_SEG + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK;
	if (le32_get_bits(ctrl.op, SKUA_WQE_INDEX) != (index & 0xffff))
		return SKUA_VENDOR_WQE_INDEX;
	if (!nseg || nseg > SKUA_WQE_MAX_SEGS || nseg * SKUA_WQE_SEG > nbytes)
		return SKUA_VENDOR_WQE_FORMAT;
	out->op = le32_get_bits(ctrl.op, SKUA_WQE_OPCODE);
	out->flags = le32_to_cpu(ctrl.flags);
	out->imm = le32_to_cpu(ctrl.inv_key);
	out->eth = le32_to_cpu(ctrl.eth);
	l = layout_of(out->op);
	if (!l || !(l->types & 1u << type))
		return SKUA_VENDOR_WQE_OPCODE;
	if (!ctrl_ok(l, out, out->op == SKUA_WQE_ETH))
		return SKUA_VENDOR_WQE_FORMAT;
	c = (struct cursor){ .p = (const uint8_t *)raw + sizeof(ctrl), .left = nseg - 1 };
	if ((BIT(type) & DGRAM && l->parts & L_DATA && !take_av(&c, out)) ||
	    (type == SKUA_QP_XRC_INI && l->parts & (L_DATA | L_FLUSH) && !take_xrc(&c, out)) ||
	    (l->parts & L_RADDR && !take_raddr(&c, l, out)) ||
	    (l->parts & L_ATOMIC && !take_atomic(&c, l, out)) ||
	    (l->parts & (L_BIND | L_REG) && !take_key(&c, l, out)))
		return SKUA_VENDOR_WQE_FORMAT;
	return take_payload(&c, l, out);
}

/* --- send ring --- */

static uint32_t ring_blocks(const struct qp *qp)
{
	return 1u << le32_get_bits(qp->sqc->cfg.flags, SKUA_QP_LOG_SQ);
}

/* Number of blocks from @index up to the producer index. */
static uint32_t blocks_there(const struct qp *qp, uint32_t index)
{
	uint32_t there = le32_to_cpu(qp->sqc->pi) - index;

	return there > ring_blocks(qp) ? 0 : there;
}

static enum skua_vendor win_read(struct skua_dev *dev, struct qp *qp, struct wqe_win *win,
				 uint32_t index, uint32_t blocks)
{
	uint64_t size = (uint64_t)ring_blocks(qp) * SKUA_WQE_BLOCK;
	uint64_t off = (uint64_t)(index & (ring_blocks(qp) - 1)) * SKUA_WQE_BLOCK;

	win->blocks = 0;
	if (!blocks)
		return SKUA_VENDOR_WQE_FORMAT;
	dev->cnt[SKUA_CNT_WQE_FETCH]++;
	if (ring_read(dev, TLP_WQE, &qp->sqc->cfg.ring, size, off, win->raw,
		      (size_t)blocks * SKUA_WQE_BLOCK))
		return SKUA_VENDOR_WQE_DMA;
	win->start = index;
	win->blocks = blocks;
	return SKUA_VENDOR_NONE;
}

/* Number of blocks to read, if there are as many. */
static uint32_t win_blocks(const struct wqe_win *win, uint32_t there)
{
	uint32_t most = win->most ? win->most : WQE_WIN_BLOCKS;

	return there < most ? there : most;
}

/* Have the window contain the WQE at @index. Returns the number of bytes from there on. */
static enum skua_vendor win_at(struct skua_dev *dev, struct qp *qp, struct wqe_win *win,
			       uint32_t index, const uint8_t **raw, size_t *nbytes)
{
	uint32_t there = blocks_there(qp, index);
	struct skua_wqe_ctrl ctrl;
	uint32_t blocks, in = index - win->start;
	enum skua_vendor err;

	if (in >= win->blocks) {
		err = win_read(dev, qp, win, index, win_blocks(win, there));
		if (err)
			return err;
		in = 0;
	}
	memcpy(&ctrl, win->raw + in * SKUA_WQE_BLOCK, sizeof(ctrl));
	blocks = (le32_get_bits(ctrl.op, SKUA_WQE_NSEG) * SKUA_WQE_SEG + SKUA_WQE_BLOCK - 1) /
		 SKUA_WQE_BLOCK;
	if (blocks > win->blocks - in && blocks <= SKUA_WQE_MAX_BLOCKS && blocks <= there) {
		err = win_read(dev, qp, win, index, blocks);
		if (err)
			return err;
		in = 0;
	}
	*raw = win->raw + in * SKUA_WQE_BLOCK;
	*nbytes = (size_t)(win->blocks - in) * SKUA_WQE_BLOCK;
	return SKUA_VENDOR_NONE;
}

/* Decode a WQE, and check it against the QP and the device's capabilities. */
static enum skua_vendor decode_for(struct skua_dev *dev, const struct qp *qp, const void *raw,
				   size_t nbytes, uint32_t index, struct wqe *out)
{
	enum skua_vendor err = wqe_decode(raw, nbytes, index, qp_type(qp), out);

	/* A WQE of invalid length counts as one block, so that the queue can advance. */
	if (err && (err == SKUA_VENDOR_WQE_INDEX || !out->blocks ||
		    (size_t)out->blocks * SKUA_WQE_BLOCK > nbytes))
		out->blocks = 1;
	if (err)
		return err;
	if (!dev_has(dev, layouts[out->op].caps))
		return SKUA_VENDOR_WQE_OPCODE;
	if (layouts[out->op].parts & L_MASKED && qp_without(dev, qp->sqc, SKUA_VENDOR_MASKED_ATOMIC))
		return SKUA_VENDOR_WQE_OPCODE;
	/* REG_MR has bus addresses: the QP needs the permission for the reserved L_Key. */
	if (out->op == SKUA_WQE_REG_MR &&
	    !(le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_RESERVED_LKEY))
		return SKUA_VENDOR_WQE_OPCODE;
	if (out->inl_len > le32_to_cpu(qp->sqc->cfg.max_inline))
		return SKUA_VENDOR_SGE_LEN;
	return SKUA_VENDOR_NONE;
}

/* Decode the WQE from a push slot, if there is one and it is valid. */
static bool fetch_pushed(struct skua_dev *dev, const struct qp *qp, uint32_t index,
			 struct wqe *out)
{
	size_t nbytes;
	const void *raw = push_take(dev, qp->qpn, index, &nbytes);

	if (!raw || decode_for(dev, qp, raw, nbytes, index, out))
		return false;
	qp_count(dev, qp->sqc, SKUA_CNT_WQE_PUSH, 1);
	return true;
}

enum skua_vendor wqe_fetch_win(struct skua_dev *dev, struct qp *qp, struct wqe_win *win,
			       uint32_t index, struct wqe *out)
{
	enum skua_vendor err;
	const uint8_t *raw;
	size_t nbytes;

	if (index - win->start >= win->blocks && blocks_there(qp, index) &&
	    fetch_pushed(dev, qp, index, out))
		return SKUA_VENDOR_NONE;
	out->blocks = 1;
	err = win_at(dev, qp, win, index, &raw, &nbytes);
	return err ? err : decode_for(dev, qp, raw, nbytes, index, out);
}

enum skua_vendor wqe_fetch(struct skua_dev *dev, struct qp *qp, uint32_t index, struct wqe *out)
{
	struct wqe_win win = { .blocks = 0 };

	return wqe_fetch_win(dev, qp, &win, index, out);
}

uint32_t wqe_blocks(struct skua_dev *dev, struct qp *qp, struct wqe_win *win, uint32_t index)
{
	uint32_t there = blocks_there(qp, index);
	uint32_t in = index - win->start;
	struct skua_wqe_ctrl ctrl;
	uint32_t blocks;

	if (in >= win->blocks) {
		if (win_read(dev, qp, win, index, win_blocks(win, there)))
			return 0;
		in = 0;
	}
	memcpy(&ctrl, win->raw + in * SKUA_WQE_BLOCK, sizeof(ctrl));
	if (le32_get_bits(ctrl.op, SKUA_WQE_INDEX) != (index & 0xffff))
		return 0;
	blocks = (le32_get_bits(ctrl.op, SKUA_WQE_NSEG) * SKUA_WQE_SEG + SKUA_WQE_BLOCK - 1) /
		 SKUA_WQE_BLOCK;
	return blocks <= there && blocks <= SKUA_WQE_MAX_BLOCKS ? blocks : 0;
}

/* --- receive ring --- */

static uint32_t rq_size(const struct qp *qp)
{
	return 1u << le32_get_bits(qp->rqc->cfg.flags, SKUA_RQ_LOG_SIZE);
}

/* Number of receive WQEs by the producer index known. */
static uint32_t rq_known(const struct qp *qp)
{
	uint32_t there = le32_to_cpu(qp->rqc->pi) - le32_to_cpu(qp->rqc->ci);

	return there <= rq_size(qp) ? there : 0;
}

/* Read the doorbell record. Returns the number of receive WQEs. */
static uint32_t rq_look(struct skua_dev *dev, struct qp *qp)
{
	struct skua_qp_dbr dbr;
	uint32_t pi;

	if (dma_read(dev, TLP_RECORD, le64_to_cpu(qp->sqc->cfg.dbr) + offsetof(struct skua_qp_dbr, rq_pi),
		     &dbr.rq_pi, sizeof(dbr.rq_pi)))
		return rq_known(qp);
	pi = le32_to_cpu(dbr.rq_pi);
	/* An index beyond the size of the ring is ignored. */
	if (pi - le32_to_cpu(qp->rqc->ci) <= rq_size(qp))
		qp->rqc->pi = cpu_to_le32(pi);
	qp->rqc->rq_seen = cpu_to_le32(le32_to_cpu(qp->rqc->ci) + 1);
	ctx_dirty(dev, qp->rqc);
	return rq_known(qp);
}

static bool has_own_rq(const struct qp *qp)
{
	return !(le32_to_cpu(qp->sqc->cfg.flags) & (SKUA_QP_F_NO_RQ | SKUA_QP_F_SRQ));
}

bool rq_has(struct skua_dev *dev, struct qp *qp, uint32_t n)
{
	return has_own_rq(qp) && (rq_known(qp) > n || rq_look(dev, qp) > n);
}

bool rq_avail(struct skua_dev *dev, struct qp *qp)
{
	return rq_has(dev, qp, 0);
}

uint32_t rq_count(struct skua_dev *dev, struct qp *qp)
{
	uint32_t there = rq_known(qp);

	if (!has_own_rq(qp))
		return 0;
	/* Without SENDs the record must not be read for each acknowledgment. */
	if (there >= rq_size(qp) / 4 ||
	    qp->rqc->rq_seen == cpu_to_le32(le32_to_cpu(qp->rqc->ci) + 1))
		return there;
	return rq_look(dev, qp);
}

enum skua_vendor rwqe_decode(const void *raw, uint32_t nseg, struct rwqe *out)
{
	out->nsge = 0;
	out->len = 0;
	for (uint32_t i = 0; i < nseg; i++) {
		struct sge sge;

		if (!take_sge((const uint8_t *)raw + i * SKUA_WQE_SEG, &sge))
			return SKUA_VENDOR_SGE_LEN;
		if (sge.lkey == SKUA_INVALID_LKEY)
			break;
		if (out->nsge == 1u << MODEL_LOG_RQ_STRIDE_MAX)
			return SKUA_VENDOR_SGE_LEN;
		out->sge[out->nsge++] = sge;
		out->len += sge.len;
	}
	return SKUA_VENDOR_NONE;
}

enum skua_vendor rq_fetch(struct skua_dev *dev, struct qp *qp, uint32_t pos, struct rwqe *out)
{
	uint32_t nseg = 1u << le32_get_bits(qp->rqc->cfg.flags, SKUA_RQ_LOG_STRIDE);
	size_t stride = (size_t)nseg * SKUA_WQE_SEG;
	uint8_t raw[SKUA_WQE_SEG << MODEL_LOG_RQ_STRIDE_MAX];

	out->index = pos;
	if (ring_read(dev, TLP_RECV_WQE, &qp->rqc->cfg.ring, (uint64_t)rq_size(qp) * stride,
		      (uint64_t)(pos & (rq_size(qp) - 1)) * stride, raw, stride))
		return SKUA_VENDOR_WQE_DMA;
	return rwqe_decode(raw, nseg, out);
}
