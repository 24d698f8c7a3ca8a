/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Building work queue elements and doorbell words: the one encoder that the
 * kernel's post_send/post_recv and the user-space provider share.
 *
 * Plain integers and device structures only; nothing here allocates, locks,
 * orders memory or knows what a work request is. The caller checks opcodes,
 * room and limits, and orders its stores before the doorbell record and those
 * before the doorbell.
 */
#ifndef SKUA_WQE_BUILD_H
#define SKUA_WQE_BUILD_H

#include <skua/bits.h>
#include <skua/hw/wqe.h>
#include <skua/hw/doorbell.h>

#define SKUA_WQE_SEGS_PER_BLOCK	(SKUA_WQE_BLOCK / SKUA_WQE_SEG)
#define SKUA_WQE_AV_SEGS	(sizeof(struct skua_wqe_av) / SKUA_WQE_SEG)

/**
 * SKUA_WQE_OP_SEGS() - segments of an operation before its payload
 * @op: enum skua_wqe_op
 *
 * Those between the control segment, or the destination's segments behind that, and the
 * data segments or the inline segment. A constant if @op is one.
 */
#define SKUA_WQE_OP_SEGS(op)							\
	((op) == SKUA_WQE_WRITE || (op) == SKUA_WQE_WRITE_IMM ||		\
	 (op) == SKUA_WQE_READ || (op) == SKUA_WQE_FLUSH ||			\
	 (op) == SKUA_WQE_ATOMIC_WRITE ? 1 :					\
	 (op) == SKUA_WQE_CAS || (op) == SKUA_WQE_FAA ||			\
	 (op) == SKUA_WQE_BIND_MW ? 2 :						\
	 (op) == SKUA_WQE_MASKED_CAS || (op) == SKUA_WQE_MASKED_FAA ||		\
	 (op) == SKUA_WQE_REG_MR ? 3 : 0)

/**
 * struct skua_sq_ring - a send ring as software sees it
 * @buf: first byte; virtually contiguous
 * @log_blocks: log2 of its size in blocks of SKUA_WQE_BLOCK bytes
 * @byte_mask: its size in bytes less one
 */
struct skua_sq_ring {
	void *buf;
	__u32 log_blocks;
	__u32 byte_mask;
};

/**
 * skua_sq_ring_init() - describe a send ring
 * @ring: to fill
 * @buf: first byte
 * @log_blocks: log2 of its size in blocks, at most 25
 */
static inline void skua_sq_ring_init(struct skua_sq_ring *ring, void *buf, __u32 log_blocks)
{
	ring->buf = buf;
	ring->log_blocks = log_blocks;
	ring->byte_mask = ((__u32)SKUA_WQE_BLOCK << log_blocks) - 1;
}

/**
 * skua_sq_seg() - where a segment lies
 * @ring: send ring
 * @index: free-running index of the block at which the WQE starts
 * @seg: segment of that WQE
 *
 * A WQE may run over the ring's end, so that only the segment's own
 * SKUA_WQE_SEG bytes are contiguous. The four segments of one block always
 * are, which covers the structures of more than one segment: the device
 * interface has them all within the first block.
 *
 * Return: the segment.
 */
static inline void *skua_sq_seg(const struct skua_sq_ring *ring, __u32 index, unsigned int seg)
{
	__u32 byte = index * SKUA_WQE_BLOCK + seg * SKUA_WQE_SEG;

	return (__u8 *)ring->buf + (byte & ring->byte_mask);
}

/**
 * skua_wqe_blocks() - blocks that a WQE takes up
 * @nseg: its segments, the control segment included
 *
 * Return: blocks.
 */
static inline unsigned int skua_wqe_blocks(unsigned int nseg)
{
	return (nseg + SKUA_WQE_SEGS_PER_BLOCK - 1) / SKUA_WQE_SEGS_PER_BLOCK;
}

/**
 * skua_wqe_max_sge() - gather elements that a queue of any type can have in a WQE
 * @blocks: blocks of the largest WQE
 *
 * The control segment is before them, and the longest of what may be: the address vector of a
 * datagram.
 *
 * Return: elements.
 */
static inline unsigned int skua_wqe_max_sge(unsigned int blocks)
{
	return blocks * SKUA_WQE_SEGS_PER_BLOCK - 1 - SKUA_WQE_AV_SEGS;
}

/**
 * skua_wqe_inline_segs() - segments that an inline payload takes up
 * @len: bytes of payload
 *
 * Return: segments, the length word included.
 */
static inline unsigned int skua_wqe_inline_segs(__u32 len)
{
	return (sizeof(struct skua_wqe_inline) + len + SKUA_WQE_SEG - 1) / SKUA_WQE_SEG;
}

/**
 * skua_wqe_ctrl_set() - fill the control segment
 * @c: first segment of the WQE
 * @op: opcode
 * @nseg: segments of the WQE, this one included
 * @index: free-running index of the block at which the WQE starts
 * @flags: SKUA_WQE_F_*
 *
 * The immediate or key and the Ethernet word become zero: set them after.
 */
static inline void skua_wqe_ctrl_set(struct skua_wqe_ctrl *c, enum skua_wqe_op op,
				     unsigned int nseg, __u32 index, __u32 flags)
{
	c->op = cpu_to_le32(u32_encode_bits(op, SKUA_WQE_OPCODE) |
			    u32_encode_bits(nseg, SKUA_WQE_NSEG) |
			    u32_encode_bits(index, SKUA_WQE_INDEX));
	c->flags = cpu_to_le32(flags);
	c->inv_key = 0;
	c->eth = 0;
}

/**
 * skua_wqe_imm_set() - give the control segment immediate data
 * @c: control segment
 * @imm: immediate data as on the wire
 */
static inline void skua_wqe_imm_set(struct skua_wqe_ctrl *c, __be32 imm)
{
	c->imm = imm;
}

/**
 * skua_wqe_inv_set() - give the control segment the key to invalidate
 * @c: control segment of SEND_INV or LOCAL_INV
 * @key: key
 */
static inline void skua_wqe_inv_set(struct skua_wqe_ctrl *c, __u32 key)
{
	c->inv_key = cpu_to_le32(key);
}

/**
 * skua_wqe_flush_len_set() - give the control segment the length of a FLUSH
 * @c: control segment of FLUSH
 * @len: bytes, 0 for a whole region
 */
static inline void skua_wqe_flush_len_set(struct skua_wqe_ctrl *c, __u32 len)
{
	c->flush_len = cpu_to_le32(len);
}

/**
 * skua_wqe_eth_set() - fill the control segment's Ethernet word
 * @c: control segment of ETH
 * @vlan_tci: tag to insert, with SKUA_WQE_F_VLAN, else 0
 * @mss: payload bytes of a segment, with SKUA_WQE_F_LSO, else 0
 */
static inline void skua_wqe_eth_set(struct skua_wqe_ctrl *c, __u32 vlan_tci, __u32 mss)
{
	c->eth = cpu_to_le32(u32_encode_bits(vlan_tci, SKUA_WQE_ETH_VLAN_TCI) |
			     u32_encode_bits(mss, SKUA_WQE_ETH_MSS));
}

/**
 * skua_wqe_raddr_set() - fill a remote address segment
 * @r: segment
 * @va: remote virtual address
 * @rkey: remote key
 * @flush: SKUA_WQE_FLUSH_* for FLUSH, else 0
 */
static inline void skua_wqe_raddr_set(struct skua_wqe_raddr *r, __u64 va, __u32 rkey, __u32 flush)
{
	r->va = cpu_to_le64(va);
	r->rkey = cpu_to_le32(rkey);
	r->flush = cpu_to_le32(flush);
}

/**
 * skua_wqe_atomic_set() - fill an atomic segment
 * @a: segment
 * @swap_add: swap or add operand, or its mask
 * @compare: compare operand, or its mask; 0 for the FAA forms
 */
static inline void skua_wqe_atomic_set(struct skua_wqe_atomic *a, __u64 swap_add, __u64 compare)
{
	a->swap_add = cpu_to_le64(swap_add);
	a->compare = cpu_to_le64(compare);
}

/**
 * skua_wqe_data_set() - fill a data segment
 * @d: segment
 * @addr: virtual address in the region of @lkey
 * @lkey: local key
 * @len: bytes
 */
static inline void skua_wqe_data_set(struct skua_wqe_data *d, __u64 addr, __u32 lkey, __u32 len)
{
	d->addr = cpu_to_le64(addr);
	d->lkey = cpu_to_le32(lkey);
	d->len = cpu_to_le32(len);
}

/**
 * skua_av_set() - name the other end of a path
 * @av: address vector
 * @dgid: its GID
 * @dmac: the next hop's MAC address
 * @sgid_index: own entry of the GID table
 *
 * skua_av_ip_set() fills in the rest.
 */
static inline void skua_av_set(struct skua_av *av, const __u8 *dgid, const __u8 *dmac,
			       __u32 sgid_index)
{
	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, dgid, sizeof(av->dgid));
	memcpy(av->dmac, dmac, sizeof(av->dmac));
	av->sgid_index = cpu_to_le16(sgid_index);
}

/**
 * skua_av_ip_set() - fill in how packets of a path are marked
 * @av: address vector
 * @label: flow label
 * @pcp: priority
 * @tclass: traffic class
 * @hop_limit: hop limit
 * @udp_sport: UDP source port, 0: the device's choice
 */
static inline void skua_av_ip_set(struct skua_av *av, __u32 label, __u32 pcp, __u8 tclass,
				  __u8 hop_limit, __u32 udp_sport)
{
	av->flow = cpu_to_le32(u32_encode_bits(label, SKUA_AV_FLOW_LABEL) |
			       u32_encode_bits(pcp, SKUA_AV_PCP));
	av->tclass = tclass;
	av->hop_limit = hop_limit;
	av->udp_sport = cpu_to_le16(udp_sport);
}

/**
 * skua_wqe_av_set() - fill the address vector segments of a UD WQE
 * @w: segments 1 to 3 of the WQE
 * @av: the path
 * @dest_qpn: destination QP
 * @qkey: Q_Key to send
 *
 * GSI with a P_Key index other than 0 fills that in afterwards.
 */
static inline void skua_wqe_av_set(struct skua_wqe_av *w, const struct skua_av *av,
				   __u32 dest_qpn, __u32 qkey)
{
	w->av = *av;
	w->dest_qpn = cpu_to_le32(dest_qpn);
	w->qkey = cpu_to_le32(qkey);
	w->pkey_index = 0;
	w->reserved2 = 0;
	w->reserved = 0;
}

/**
 * skua_wqe_xrc_set() - fill an XRC segment
 * @x: segment
 * @srqn: the remote SRQ
 */
static inline void skua_wqe_xrc_set(struct skua_wqe_xrc *x, __u32 srqn)
{
	memset(x, 0, sizeof(*x));
	x->srqn = cpu_to_le32(srqn);
}

/**
 * skua_wqe_bind_set() - fill the bind segments of a BIND_MW
 * @b: segments 1 and 2 of the WQE
 * @mw_key: key of the window
 * @new_key: its key after the bind
 * @mr_key: region to bind to, 0: none
 * @access: SKUA_ACCESS_* of the window
 * @va: first byte, an address of the region
 * @len: bytes
 */
static inline void skua_wqe_bind_set(struct skua_wqe_bind *b, __u32 mw_key, __u32 new_key,
				     __u32 mr_key, __u32 access, __u64 va, __u64 len)
{
	b->mw_key = cpu_to_le32(mw_key);
	b->new_key = cpu_to_le32(new_key);
	b->mr_key = cpu_to_le32(mr_key);
	b->access = cpu_to_le32(access);
	b->va = cpu_to_le64(va);
	b->len = cpu_to_le64(len);
}

/**
 * skua_wqe_reg_set() - fill the registration segments of a REG_MR
 * @r: segments 1 to 3 of the WQE
 * @key: key after registration
 * @access: SKUA_ACCESS_*
 * @va: first byte as used in WQEs and on the wire
 * @len: bytes
 *
 * The page list is skua_wqe_reg_pages()'s to fill.
 */
static inline void skua_wqe_reg_set(struct skua_wqe_reg *r, __u32 key, __u32 access, __u64 va,
				    __u64 len)
{
	r->key = cpu_to_le32(key);
	r->access = cpu_to_le32(access);
	r->va = cpu_to_le64(va);
	r->len = cpu_to_le64(len);
}

/**
 * skua_wqe_reg_pages() - name the page list of a REG_MR
 * @r: segments 1 to 3 of the WQE
 * @page_list: bus address of the array
 * @npages: its entries
 * @log_page: log2 of the page size
 * @offset: of the first byte in the first page
 */
static inline void skua_wqe_reg_pages(struct skua_wqe_reg *r, __u64 page_list, __u32 npages,
				      __u32 log_page, __u64 offset)
{
	r->page_list = cpu_to_le64(page_list);
	r->npages = cpu_to_le32(npages);
	r->log_page = cpu_to_le32(log_page);
	r->offset = cpu_to_le64(offset);
}

/**
 * skua_wqe_inline_set() - store the length of an inline segment
 * @head: its first segment
 * @len: bytes of payload
 */
static inline void skua_wqe_inline_set(struct skua_wqe_inline *head, __u32 len)
{
	head->len = cpu_to_le32(len);
}

/**
 * struct skua_inline_cursor - an inline payload being gathered
 * @ring: send ring
 * @start: free-running byte of the ring at which the inline segment starts
 * @len: bytes of payload so far
 */
struct skua_inline_cursor {
	const struct skua_sq_ring *ring;
	__u32 start;
	__u32 len;
};

/**
 * skua_inline_begin() - start an inline segment
 * @cur: cursor to set up
 * @ring: send ring
 * @index: free-running index of the block at which the WQE starts
 * @seg: segment of that WQE at which the inline segment starts
 */
static inline void skua_inline_begin(struct skua_inline_cursor *cur,
				     const struct skua_sq_ring *ring, __u32 index,
				     unsigned int seg)
{
	cur->ring = ring;
	cur->start = index * SKUA_WQE_BLOCK + seg * SKUA_WQE_SEG;
	cur->len = 0;
}

/**
 * skua_inline_put() - append bytes to an inline segment
 * @cur: cursor
 * @src: bytes
 * @len: how many; the caller has checked the sum against its limit
 *
 * Splits the copy where the ring ends.
 */
static inline void skua_inline_put(struct skua_inline_cursor *cur, const void *src, __u32 len)
{
	const struct skua_sq_ring *ring = cur->ring;
	__u32 pos = (cur->start + (__u32)sizeof(struct skua_wqe_inline) + cur->len) &
		    ring->byte_mask;
	__u32 room = ring->byte_mask + 1 - pos;

	cur->len += len;
	if (unlikely(len > room)) {
		memcpy((__u8 *)ring->buf + pos, src, room);
		src = (const __u8 *)src + room;
		len -= room;
		pos = 0;
	}
	memcpy((__u8 *)ring->buf + pos, src, len);
}

/**
 * skua_inline_end() - finish an inline segment
 * @cur: cursor
 *
 * Stores the length. The rest of the last segment keeps what it had: the device does not
 * look at it.
 *
 * Return: segments that the payload took up.
 */
static inline unsigned int skua_inline_end(const struct skua_inline_cursor *cur)
{
	const struct skua_sq_ring *ring = cur->ring;
	__u32 head = cur->start & ring->byte_mask;

	skua_wqe_inline_set((struct skua_wqe_inline *)((__u8 *)ring->buf + head), cur->len);
	return skua_wqe_inline_segs(cur->len);
}

/**
 * struct skua_rq_ring - a receive ring (RQ, SRQ, Ethernet) as software sees it
 * @buf: first byte; virtually contiguous
 * @mask: number of WQEs less one
 * @log_stride: log2 of the bytes of a WQE
 */
struct skua_rq_ring {
	void *buf;
	__u32 mask;
	__u32 log_stride;
};

/**
 * skua_rq_ring_init() - describe a receive ring
 * @ring: to fill
 * @buf: first byte
 * @log_wqes: log2 of its WQEs
 * @log_segs: log2 of the segments of a WQE (SKUA_RQ_LOG_STRIDE of the context)
 */
static inline void skua_rq_ring_init(struct skua_rq_ring *ring, void *buf, __u32 log_wqes,
				     __u32 log_segs)
{
	ring->buf = buf;
	ring->mask = ((__u32)1 << log_wqes) - 1;
	ring->log_stride = log_segs + 4;
}

_Static_assert(SKUA_WQE_SEG == 1 << 4, "skua_rq_ring_init counts segments by shifts");

/**
 * skua_rq_wqe() - where a receive WQE lies
 * @ring: receive ring
 * @index: free-running index of the WQE, or position in an SRQ's ring
 *
 * Return: its first segment.
 */
static inline void *skua_rq_wqe(const struct skua_rq_ring *ring, __u32 index)
{
	return (__u8 *)ring->buf + ((unsigned long)(index & ring->mask) << ring->log_stride);
}

/**
 * skua_rq_wqe_end() - end the scatter list of a receive WQE
 * @d: first data segment of the WQE
 * @n: data segments filled
 * @max: data segments that the stride has room for
 */
static inline void skua_rq_wqe_end(struct skua_wqe_data *d, unsigned int n, unsigned int max)
{
	if (n < max)
		skua_wqe_data_set(&d[n], 0, SKUA_INVALID_LKEY, 0);
}

/**
 * skua_srq_next_set() - chain an SRQ's WQE
 * @n: first segment of the WQE
 * @next: position in the ring of the WQE to use after it
 */
static inline void skua_srq_next_set(struct skua_wqe_next *n, __u32 next)
{
	memset(n, 0, sizeof(*n));
	n->next = cpu_to_le32(next);
}

/**
 * skua_db_cq_arm() - high half of a CQ arm doorbell
 * @cqn: completion queue
 * @serial: of this arm; its low two bits come back in the event
 * @solicited: solicited and error completions only
 *
 * The low half is the consumer index. (SQ: low half producer index, high half
 * QPN.)
 *
 * Return: the high half, in host order.
 */
static inline __u32 skua_db_cq_arm(__u32 cqn, __u32 serial, int solicited)
{
	return u32_encode_bits(cqn, SKUA_UAR_CQ_ARM_CQN) |
	       u32_encode_bits(serial, SKUA_UAR_CQ_ARM_SERIAL) |
	       (solicited ? (__u32)SKUA_UAR_CQ_ARM_SOLICITED : 0);
}

/**
 * skua_db_eq() - high half of an EQ doorbell
 * @eqn: event queue
 * @arm: ask for an interrupt
 *
 * The low half is the consumer index.
 *
 * Return: the high half, in host order.
 */
static inline __u32 skua_db_eq(__u32 eqn, int arm)
{
	return u32_encode_bits(eqn, SKUA_UAR_EQ_EQN) | (arm ? (__u32)SKUA_UAR_EQ_ARM : 0);
}

/**
 * skua_db_word() - both halves of a doorbell as one number
 * @lo: low half: an index
 * @hi: high half: queue and flags
 *
 * Return: what to store, little-endian, by one 8-byte access.
 */
static inline __u64 skua_db_word(__u32 lo, __u32 hi)
{
	return (__u64)hi << 32 | lo;
}

#endif /* SKUA_WQE_BUILD_H */
