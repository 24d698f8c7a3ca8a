// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: completion queues: polling, and the QPs that complete there.
 *
 * A CQ has a table of the QPs that complete on it. So a poll finds the QP of a CQE without
 * a lock of the whole context, and can report all outstanding work as flushed once the device
 * is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skua.h"
#include "db.h"

/* The values of the device interface are those of libibverbs: the switch compiles to nothing. */
#define X(name, value, verbs) \
	_Static_assert((int)SKUA_CQE_##name == (int)IBV_WC_##verbs, #name);
SKUA_CQE_STATUS_TABLE(X)
#undef X

static enum ibv_wc_status wc_status(unsigned int status)
{
	switch (status) {
	SKUA_CQE_STATUS_TABLE(SKUA_CQE_CASE_IBV)
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

/* --- the table of QPs -------------------------------------------------- */

/*
 * In a CQ whose lock is off one thread at a time polls, and destroys QPs or takes them to
 * RESET. But any thread may create QPs there, while that one polls. So
 *
 * - all changes are made under a lock that is never off;
 * - polls search without that. Of two things that a search reads, as a QP and its link, one
 *   may be older. So it can come from one chain into another and miss a QP, but finds no
 *   wrong one;
 * - what finds nothing is done once more under the lock, before the CQE is given up.
 */

#define CQ_MIN_BUCKETS	16

static struct skua_cq_table *table_alloc(uint32_t size)
{
	struct skua_cq_table *t = calloc(1, sizeof(*t) + size * sizeof(t->bucket[0]));

	if (t)
		t->mask = size - 1;
	return t;
}

int skua_cq_table_init(struct skua_cq *cq)
{
	struct skua_cq_table *t = table_alloc(CQ_MIN_BUCKETS);

	skua_lock_init(&cq->table_lock, false);
	atomic_init(&cq->table, t);
	return t ? 0 : ENOMEM;
}

void skua_cq_table_free(struct skua_cq *cq)
{
	struct skua_cq_table *t, *old;

	for (t = atomic_load_explicit(&cq->table, memory_order_relaxed); t; t = old) {
		old = t->old;
		free(t);
	}
}

static enum skua_side cq_link(const struct skua_cq *cq, const struct skua_qp *qp)
{
	/* A QP with both queues on one CQ is in its table once, by the send side's link. */
	return qp->vqp.qp.send_cq == &cq->vcq.cq ? SKUA_SEND : SKUA_RECV;
}

static _Atomic(struct skua_qp *) *table_head(struct skua_cq_table *t, uint32_t qpn)
{
	return &t->bucket[qpn & t->mask];
}

/* A poll that sees the link sees what the QP has. */
static void cq_hash(struct skua_cq *cq, struct skua_cq_table *t, struct skua_qp *qp)
{
	_Atomic(struct skua_qp *) *head = table_head(t, qp->vqp.qp.qp_num);

	atomic_store_explicit(&qp->next[cq_link(cq, qp)],
			      atomic_load_explicit(head, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(head, qp, memory_order_release);
}

/*
 * It comes to an end though cq_grow() relinks the chain: a link that was changed leads to a
 * QP that was relinked before, so from there on the way does not turn back. And a table
 * grows some 20 times at most.
 */
static struct skua_qp *cq_lookup(struct skua_cq *cq, uint32_t qpn)
{
	struct skua_cq_table *t = atomic_load_explicit(&cq->table, memory_order_acquire);
	struct skua_qp *qp;

	for (qp = atomic_load_explicit(table_head(t, qpn), memory_order_acquire);
	     qp && qp->vqp.qp.qp_num != qpn;
	     qp = atomic_load_explicit(&qp->next[cq_link(cq, qp)], memory_order_acquire))
		;
	return qp;
}

static __attribute__((noinline)) struct skua_qp *cq_search(struct skua_cq *cq, uint32_t qpn)
{
	struct skua_qp *qp = cq_lookup(cq, qpn);

	if (qp)
		cq->last = qp;
	return qp;
}

/* cq->last points here while no QP was found yet: no QP can have this number. */
struct skua_qp skua_no_qp = { .vqp.qp.qp_num = UINT32_MAX };

/* Most often a CQE is of the same QP as the one before. */
static inline struct skua_qp *cq_find(struct skua_cq *cq, uint32_t qpn)
{
	struct skua_qp *qp = cq->last;

	return likely(qp->vqp.qp.qp_num == qpn) ? qp : cq_search(cq, qpn);
}

/* What cq_find() did not find. */
static struct skua_qp *cq_find_again(struct skua_cq *cq, uint32_t qpn)
{
	struct skua_qp *qp;

	skua_lock(&cq->table_lock);
	qp = cq_search(cq, qpn);
	skua_unlock(&cq->table_lock);
	return qp;
}

/* For what changes both the table and what the pollers have. */
static void cq_lock_all(struct skua_cq *cq)
{
	skua_lock(&cq->lock);
	skua_lock(&cq->table_lock);
}

/* Last the one that skua_destroy_cq() takes, as that may free the CQ from then on. */
static void cq_unlock_all(struct skua_cq *cq)
{
	skua_unlock(&cq->lock);
	skua_unlock(&cq->table_lock);
}

/* Move all QPs to a larger table. */
static void cq_rehash(struct skua_cq *cq, struct skua_cq_table *new, struct skua_cq_table *old)
{
	struct skua_qp *qp, *next;
	uint32_t i;

	for (i = 0; i <= old->mask; i++) {
		for (qp = atomic_load_explicit(&old->bucket[i], memory_order_relaxed); qp;
		     qp = next) {
			next = atomic_load_explicit(&qp->next[cq_link(cq, qp)],
						    memory_order_relaxed);
			cq_hash(cq, new, qp);
		}
	}
	/* A poll may still read it. All old ones together are smaller than the new one. */
	new->old = old;
	atomic_store_explicit(&cq->table, new, memory_order_release);
}

/*
 * Keep the chains short as QPs are added. The new table is allocated outside the
 * spinlock; without memory the chains grow, which is slower but right.
 */
static void cq_grow(struct skua_cq *cq)
{
	struct skua_cq_table *new, *old;
	uint32_t size;

	skua_lock(&cq->table_lock);
	old = atomic_load_explicit(&cq->table, memory_order_relaxed);
	size = cq->nqps > old->mask ? 2 * (old->mask + 1) : 0;
	skua_unlock(&cq->table_lock);
	if (!size)
		return;

	new = table_alloc(size);
	if (!new)
		return;

	cq_lock_all(cq);
	old = atomic_load_explicit(&cq->table, memory_order_relaxed);
	/* Another thread may have grown the table in between. */
	if (size > old->mask + 1) {
		cq_rehash(cq, new, old);
		new = NULL;
	}
	cq_unlock_all(cq);
	free(new);
}

static uint32_t cqe_is_shared(const struct skua_cqe *cqe)
{
	return skua_cqe_flags(cqe) & SKUA_CQE_F_SRQ;
}

/*
 * The QP through whose SRQ a CQE came; NULL if it came through an XRC SRQ. The QP number
 * does not decide this: a QP of this CQ may have the number that an XRC target had before
 * it was destroyed. So the SRQ number must match too.
 */
static struct skua_qp *cq_find_sharing(struct skua_cq *cq, const struct skua_cqe *cqe)
{
	struct skua_qp *qp = cq_find(cq, le32_to_cpu(cqe->qpn));

	return qp && qp->vqp.qp.srq && to_ssrq(qp->vqp.qp.srq)->srqn == le32_to_cpu(cqe->srqn) ?
	       qp : NULL;
}

/* Is a CQE one of the QP @qp, or if that is NULL of the XRC SRQ @srq? */
static bool cqe_is_of(struct skua_cq *cq, const struct skua_cqe *cqe, const struct skua_qp *qp,
		      const struct skua_srq *srq)
{
	const struct skua_qp *sharing;

	if (!cqe_is_shared(cqe))
		return qp && le32_to_cpu(cqe->qpn) == qp->vqp.qp.qp_num;
	sharing = cq_find_sharing(cq, cqe);
	return qp ? sharing == qp : !sharing && le32_to_cpu(cqe->srqn) == srq->srqn;
}

/* The SRQ of a QP, or NULL. */
static struct skua_srq *qp_srq(const struct skua_qp *qp)
{
	return qp && qp->vqp.qp.srq ? to_ssrq(qp->vqp.qp.srq) : NULL;
}

/*
 * Remove the CQEs of a QP or an SRQ from the ring. The others move towards the newest, and
 * the consumer index advances by the number removed. The phase belongs to the slot, not to
 * the CQE that is moved into it. WQEs of the QP's SRQ go back to its free list: it is locked,
 * so that nobody posts there before the device has the room for what that completes.
 */
static void cq_clean_locked(struct skua_cq *cq, const struct skua_qp *qp,
			    const struct skua_srq *srq)
{
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	struct skua_srq *shared = qp_srq(qp);
	uint32_t end = ci, gone = 0, i;

	while (end - ci <= cq->ring_mask && skua_cqe_is_new(cqe_at(cq, end), end, cq->log_size))
		end++;
	udma_from_device_barrier();

	if (shared)
		pthread_spin_lock(&shared->lock);
	for (i = end; i != ci; i--) {
		struct skua_cqe *cqe = cqe_at(cq, i - 1), *to;
		__le32 phase;

		if (cqe_is_of(cq, cqe, qp, srq)) {
			if (shared && cqe_is_shared(cqe))
				skua_srq_drop(shared, skua_cqe_wqe_index(cqe));
			gone++;
		} else if (gone) {
			to = cqe_at(cq, i - 1 + gone);
			phase = to->own & cpu_to_le32(SKUA_CQE_PHASE);
			cqe_copy(cq, to, cqe, phase);
		}
	}
	if (gone) {
		atomic_store_explicit(&cq->ci, ci + gone, memory_order_relaxed);
		skua_db_cq_ci(cq->dbr, ci + gone);
	}
	if (shared)
		pthread_spin_unlock(&shared->lock);
}

/* After the QP was reset: drop its CQEs that were not polled. */
void skua_cq_clean(struct skua_cq *cq, struct skua_qp *qp)
{
	cq_lock_all(cq);
	cq_clean_locked(cq, qp, NULL);
	cq_unlock_all(cq);
}

/* Remove a QP from the table, and its CQEs from the ring. */
static void cq_forget(struct skua_cq *cq, struct skua_qp *qp)
{
	_Atomic(struct skua_qp *) *p;
	struct skua_qp *at;

	cq_clean_locked(cq, qp, NULL);
	p = table_head(atomic_load_explicit(&cq->table, memory_order_relaxed),
		       qp->vqp.qp.qp_num);
	while (at = atomic_load_explicit(p, memory_order_relaxed), at != qp)
		p = &at->next[cq_link(cq, at)];
	at = atomic_load_explicit(&qp->next[cq_link(cq, qp)], memory_order_relaxed);
	atomic_store_explicit(p, at, memory_order_release);
	qp->known[cq_link(cq, qp)] = false;
	cq->nqps--;
	if (qp->vqp.qp.send_cq == &cq->vcq.cq)
		list_del(&qp->side[SKUA_SEND]);
	if (qp->vqp.qp.recv_cq == &cq->vcq.cq)
		list_del(&qp->side[SKUA_RECV]);
	if (cq->last == qp)
		cq->last = &skua_no_qp;
}

/*
 * Add a QP that has one or both of its queues here. If the table still has a QP of this
 * number, the kernel has destroyed that, and its thread has not come to
 * skua_cq_detach() yet: remove it now, or it would take CQEs of the new QP with it. If the
 * lock is off nobody polls then, as the program must not do that while it destroys a QP.
 */
void skua_cq_attach(struct skua_cq *cq, struct skua_qp *qp)
{
	struct skua_qp *old;

	cq_grow(cq);
	cq_lock_all(cq);
	cq->users++;
	/* Not cq_find(): cq->last is the poller's. */
	old = cq_lookup(cq, qp->vqp.qp.qp_num);
	if (old)
		cq_forget(cq, old);
	cq_hash(cq, atomic_load_explicit(&cq->table, memory_order_relaxed), qp);
	qp->known[cq_link(cq, qp)] = true;
	cq->nqps++;
	if (qp->vqp.qp.send_cq == &cq->vcq.cq)
		list_add_tail(&cq->sides[SKUA_SEND], &qp->side[SKUA_SEND]);
	if (qp->vqp.qp.recv_cq == &cq->vcq.cq)
		list_add_tail(&cq->sides[SKUA_RECV], &qp->side[SKUA_RECV]);
	cq_unlock_all(cq);
}

/* After the QP was destroyed. */
void skua_cq_detach(struct skua_cq *cq, struct skua_qp *qp)
{
	cq_lock_all(cq);
	if (qp->known[cq_link(cq, qp)])
		cq_forget(cq, qp);
	cq->users--;
	cq_unlock_all(cq);
}

static struct skua_srq *cq_find_srq(struct skua_cq *cq, uint32_t srqn)
{
	struct skua_srq *srq;

	for (srq = atomic_load_explicit(&cq->xsrqs, memory_order_acquire);
	     srq && srq->srqn != srqn;
	     srq = atomic_load_explicit(&srq->next, memory_order_acquire))
		;
	return srq;
}

/* Remove an XRC SRQ from the list, and its CQEs from the ring. */
static void cq_forget_srq(struct skua_cq *cq, struct skua_srq *srq)
{
	_Atomic(struct skua_srq *) *p = &cq->xsrqs;
	struct skua_srq *at;

	cq_clean_locked(cq, NULL, srq);
	while (at = atomic_load_explicit(p, memory_order_relaxed), at != srq)
		p = &at->next;
	at = atomic_load_explicit(&srq->next, memory_order_relaxed);
	atomic_store_explicit(p, at, memory_order_release);
	srq->known = false;
}

/* Add an XRC SRQ; one of the same number is removed as in skua_cq_attach(). */
void skua_cq_attach_srq(struct skua_cq *cq, struct skua_srq *srq)
{
	struct skua_srq *old;

	cq_lock_all(cq);
	cq->users++;
	old = cq_find_srq(cq, srq->srqn);
	if (old)
		cq_forget_srq(cq, old);
	old = atomic_load_explicit(&cq->xsrqs, memory_order_relaxed);
	atomic_store_explicit(&srq->next, old, memory_order_release);
	atomic_store_explicit(&cq->xsrqs, srq, memory_order_release);
	srq->known = true;
	cq_unlock_all(cq);
}

/* After the SRQ was destroyed. */
void skua_cq_detach_srq(struct skua_cq *cq, struct skua_srq *srq)
{
	cq_lock_all(cq);
	if (srq->known)
		cq_forget_srq(cq, srq);
	cq->users--;
	cq_unlock_all(cq);
}

/* --- polling ----------------------------------------------------------- */

/*
 * As soon as a queue has room again another thread may post there, and the device complete that:
 * the room in the CQ is the device's before. So what a CQE reports is read first, then the record
 * of the CQ is written, then the queue gets its room.
 */

/*
 * Extend the 16 bits of the WQE index in a CQE to the free-running index. Returns false if
 * no such WQE is outstanding: then the device is at fault, and the CQE is ignored.
 */
static inline bool outstanding(unsigned int index, uint32_t ci, uint32_t pi, uint32_t *out)
{
	uint32_t ahead = (uint16_t)(index - ci);

	*out = ci + ahead;
	return likely(ahead < pi - ci);
}

/* @ci: index of the CQE, of which all but the WQE index and the payload has been read. */
static ALWAYS_INLINE inline bool sent_to_wc(const struct skua_cq *cq, struct skua_sq *sq,
					    const struct skua_cqe *cqe, uint32_t ci, bool payload,
					    struct ibv_wc *wc)
{
	const struct skua_sent *sent;
	uint32_t at;

	if (unlikely(!outstanding(skua_cqe_wqe_index(cqe),
				  atomic_load_explicit(&sq->ci, memory_order_relaxed),
				  atomic_load_explicit(&sq->pi, memory_order_acquire), &at)))
		return false;

	sent = &sq->sent[at & sq->mask];
	/* No WQE begins at this block. */
	if (unlikely(sent->at != at))
		return false;
	wc->wr_id = sent->wr_id;
	wc->opcode = sent->opcode;
	wc->wc_flags = 0;
	if (payload)
		skua_scatter_sq(cq, cqe, sq, at);
	skua_db_cq_ci(cq->dbr, ci + 1);
	/* After sent[] was read: a poster may reuse the entry from now on. */
	atomic_store_explicit(&sq->ci, at + sent->blocks, memory_order_release);
	return true;
}

/* Opcode, flags and immediate data or key of a receive. */
static inline void rcvd_fill(const struct skua_cqe *cqe, unsigned int opcode, struct ibv_wc *wc)
{
	uint32_t flags = skua_cqe_flags(cqe);

	wc->opcode = opcode == SKUA_CQE_RECV_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	wc->wc_flags = 0;
	if (flags & SKUA_CQE_F_IMM) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = cqe->imm;
	} else if (flags & SKUA_CQE_F_INV) {
		wc->wc_flags = IBV_WC_WITH_INV;
		wc->invalidated_rkey = le32_to_cpu(cqe->inv_key);
	}
}

/* @ci: as for sent_to_wc(). */
static ALWAYS_INLINE inline bool rcvd_to_wc(const struct skua_cq *cq, struct skua_rq *rq,
					    const struct skua_cqe *cqe, uint32_t ci, bool payload,
					    struct ibv_wc *wc)
{
	uint32_t at;

	if (unlikely(!outstanding(skua_cqe_wqe_index(cqe),
				  atomic_load_explicit(&rq->ci, memory_order_relaxed),
				  atomic_load_explicit(&rq->pi, memory_order_acquire), &at)))
		return false;

	wc->wr_id = rq->wr_id[at & rq->ring.mask];
	if (payload)
		skua_scatter_rq(cq, cqe, rq, at);
	skua_db_cq_ci(cq->dbr, ci + 1);
	atomic_store_explicit(&rq->ci, at + 1, memory_order_release);
	return true;
}

/* IBV_WC_IP_CSUM_OK: an IPv4 frame, and both its checksums were verified. */
static inline bool eth_csum_ok(const struct skua_cqe *cqe)
{
	const uint16_t all = SKUA_CQE_CSUM_IPV4 | SKUA_CQE_CSUM_L3_OK | SKUA_CQE_CSUM_L4_OK;

	return (le16_to_cpu(cqe->eth.csum) & all) == all;
}

/* Who sent a datagram. */
static __attribute__((noinline)) void dgram_to_wc(const struct skua_cqe *cqe, struct ibv_wc *wc)
{
	wc->src_qp = le32_to_cpu(cqe->ud.src_qpn);
	wc->pkey_index = le16_to_cpu(cqe->ud.pkey_index);
	wc->slid = 0;
	wc->sl = skua_sl_received(cqe);
	wc->dlid_path_bits = 0;
	wc->wc_flags |= IBV_WC_GRH;
}

/*
 * Does an unsuccessful completion mean that the QP is in ERR? A failed send takes a UD or UC
 * QP to SQE only, where it goes on receiving.
 */
static bool cqe_is_fatal(const struct skua_qp *qp, unsigned int opcode)
{
	return opcode != SKUA_CQE_REQ ||
	       (qp->vqp.qp.qp_type != IBV_QPT_UD && qp->vqp.qp.qp_type != IBV_QPT_UC);
}

/*
 * A completion that may be one of an error is reported. @qp is NULL for an XRC target, which has
 * no state here.
 */
static inline void wc_done(struct skua_qp *qp, unsigned int opcode, const struct ibv_wc *wc)
{
	if (unlikely(wc->status != IBV_WC_SUCCESS) && qp && cqe_is_fatal(qp, opcode))
		skua_qp_in_error(qp);
}

/* What every successful completion reports. */
static inline void wc_ok(const struct skua_cqe *cqe, struct ibv_wc *wc)
{
	wc->qp_num = le32_to_cpu(cqe->qpn);
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	wc->status = IBV_WC_SUCCESS;
	wc->vendor_err = 0;
}

/* What every completion reports. Returns false if it is of an error. */
static inline bool wc_common(const struct skua_cqe *cqe, struct ibv_wc *wc)
{
	wc_ok(cqe, wc);
	if (likely(skua_cqe_status(cqe) == SKUA_CQE_OK))
		return true;
	wc->status = wc_status(skua_cqe_status(cqe));
	wc->vendor_err = skua_cqe_vendor(cqe);
	return false;
}

/*
 * What a receive reports, and if it succeeded more by the type of the QP; @qp is NULL for an XRC
 * target.
 */
static inline void rcvd_common(const struct skua_qp *qp, const struct skua_cqe *cqe,
			       unsigned int opcode, struct ibv_wc *wc)
{
	rcvd_fill(cqe, opcode, wc);
	if (unlikely(!wc_common(cqe, wc)))
		return;
	if (opcode == SKUA_CQE_RECV_ETH)
		wc->wc_flags = eth_csum_ok(cqe) ? IBV_WC_IP_CSUM_OK : 0;
	else if (opcode == SKUA_CQE_RECV && qp && qp->vqp.qp.qp_type == IBV_QPT_UD)
		dgram_to_wc(cqe, wc);
}

/* The SRQ that a CQE is of: that of the QP *@qp, or if that is NULL afterwards an XRC SRQ. */
static struct skua_srq *cq_find_shared(struct skua_cq *cq, const struct skua_cqe *cqe,
				       struct skua_qp **qp)
{
	*qp = cq_find_sharing(cq, cqe);
	return *qp ? to_ssrq((*qp)->vqp.qp.srq) : cq_find_srq(cq, le32_to_cpu(cqe->srqn));
}

/* A receive through an SRQ: that of the QP, or an XRC SRQ. */
static __attribute__((noinline)) bool shared_to_wc(struct skua_cq *cq, const struct skua_cqe *cqe,
						   uint32_t ci, struct ibv_wc *wc)
{
	unsigned int opcode = skua_cqe_opcode(cqe);
	struct skua_srq *srq;
	struct skua_qp *qp;

	srq = cq_find_shared(cq, cqe, &qp);
	if (unlikely(!srq)) {
		skua_lock(&cq->table_lock);
		srq = cq_find_shared(cq, cqe, &qp);
		skua_unlock(&cq->table_lock);
	}
	if (unlikely(!srq))
		return false;
	rcvd_common(qp, cqe, opcode, wc);
	if (unlikely(!skua_srq_take(srq, &wc->wr_id, cq, cqe, ci)))
		return false;
	wc_done(qp, opcode, wc);
	return true;
}

/*
 * The last eight bytes of a CQE, which the device stores by one write: @what is the low half,
 * @own the high one.
 */
static inline uint64_t cqe_last(const struct skua_cqe *cqe)
{
	__le64 last;

	memcpy(&last, (const uint8_t *)cqe + offsetof(struct skua_cqe, what), sizeof(last));
	return le64_to_cpu(last);
}

#define LAST_OWN(flags)		((uint64_t)(flags) << 32)

/* Of these bits a send that succeeded, without payload in the CQE, has none. */
#define NOT_PLAIN_SEND	(SKUA_CQE_OPCODE | SKUA_CQE_STATUS | LAST_OWN(SKUA_CQE_F_INLINE))
_Static_assert(!SKUA_CQE_REQ && !SKUA_CQE_OK, "NOT_PLAIN_SEND");

/* And of these a receive that succeeded, by a WQE of the QP itself. */
#define NOT_PLAIN_RECV	((SKUA_CQE_OPCODE & ~(3U << 16)) | SKUA_CQE_STATUS |		\
			 LAST_OWN(SKUA_CQE_F_INLINE | SKUA_CQE_F_SRQ))
_Static_assert(SKUA_CQE_OPCODE == 0xff << 16 && SKUA_CQE_RECV_ETH == 3, "NOT_PLAIN_RECV");

/*
 * The most frequent completions, with few instructions and no calls, if they are of the QP
 * @qp. Returns false, with nothing done but to *@wc, for any other and if anything is wrong:
 * cqe_any_to_wc() finds out.
 */
static ALWAYS_INLINE inline bool cqe_plain_to_wc(struct skua_cq *cq, struct skua_qp *qp,
						 const struct skua_cqe *cqe, uint32_t ci,
						 struct ibv_wc *wc)
{
	uint64_t last = cqe_last(cqe);
	unsigned int opcode;

	if (unlikely(qp->vqp.qp.qp_num != le32_to_cpu(cqe->qpn)))
		return false;
	/* A queue that completes on another CQ is protected by the lock of that. */
	if (likely(!(last & NOT_PLAIN_SEND))) {
		if (unlikely(qp->vqp.qp.send_cq != &cq->vcq.cq))
			return false;
		wc_ok(cqe, wc);
		return likely(sent_to_wc(cq, &qp->sq, cqe, ci, false, wc));
	}
	opcode = skua_cqe_opcode(cqe);
	if (unlikely(last & NOT_PLAIN_RECV || opcode == SKUA_CQE_RECV_ETH ||
		     qp->vqp.qp.qp_type == IBV_QPT_UD))
		return false;
	/* The opcode is not SKUA_CQE_REQ: such a CQE has passed the test for a send. */
	if (unlikely(qp->vqp.qp.recv_cq != &cq->vcq.cq))
		return false;
	wc_ok(cqe, wc);
	rcvd_fill(cqe, opcode, wc);
	return likely(rcvd_to_wc(cq, &qp->rq, cqe, ci, false, wc));
}

/* Any completion, as cqe_to_wc(). */
static __attribute__((noinline)) bool cqe_any_to_wc(struct skua_cq *cq, const struct skua_cqe *cqe,
						    uint32_t ci, struct ibv_wc *wc)
{
	unsigned int opcode = skua_cqe_opcode(cqe);
	struct skua_qp *qp;
	bool ok;

	if (opcode != SKUA_CQE_REQ && opcode != SKUA_CQE_RECV_ETH && cqe_is_shared(cqe))
		return opcode < SKUA_CQE_RECV_ETH && shared_to_wc(cq, cqe, ci, wc);
	qp = cq_find(cq, le32_to_cpu(cqe->qpn));
	if (unlikely(!qp))
		qp = cq_find_again(cq, le32_to_cpu(cqe->qpn));
	if (unlikely(!qp || opcode > SKUA_CQE_RECV_ETH))
		return false;
	/* A queue that completes on another CQ is protected by the lock of that. */
	if (opcode == SKUA_CQE_REQ) {
		wc_common(cqe, wc);
		ok = qp->vqp.qp.send_cq == &cq->vcq.cq &&
		     sent_to_wc(cq, &qp->sq, cqe, ci, cqe_has_payload(cqe), wc);
	} else {
		rcvd_common(qp, cqe, opcode, wc);
		ok = qp->vqp.qp.recv_cq == &cq->vcq.cq &&
		     rcvd_to_wc(cq, &qp->rq, cqe, ci, cqe_has_payload(cqe), wc);
	}
	if (likely(ok))
		wc_done(qp, opcode, wc);
	return ok;
}

/*
 * The CQE at @ci becomes a completion, and its place the device's. Returns false if it names no
 * QP of this CQ or no outstanding WQE: it is ignored.
 */
static ALWAYS_INLINE inline bool cqe_to_wc(struct skua_cq *cq, const struct skua_cqe *cqe,
					   uint32_t ci, struct ibv_wc *wc)
{
	struct skua_qp *qp = cq_find(cq, le32_to_cpu(cqe->qpn));

	if ((likely(qp) && likely(cqe_plain_to_wc(cq, qp, cqe, ci, wc))) ||
	    likely(cqe_any_to_wc(cq, cqe, ci, wc)))
		return true;
	skua_db_cq_ci(cq->dbr, ci + 1);
	return false;
}

static void wc_flushed(struct skua_qp *qp, uint64_t wr_id, enum ibv_wc_opcode opcode,
		       struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = opcode,
		.qp_num = qp->vqp.qp.qp_num,
	};
}

/*
 * The device is lost and no CQE is left: report all outstanding work requests of this CQ's
 * queues as flushed, those of each queue in the order in which they were posted.
 */
static int cq_flush_lost(struct skua_cq *cq, int num, struct ibv_wc *wc)
{
	struct skua_qp *qp;
	uint32_t ci, pi;
	int n = 0;

	skua_lock(&cq->table_lock);
	list_for_each(&cq->sides[SKUA_SEND], qp, side[SKUA_SEND]) {
		ci = atomic_load_explicit(&qp->sq.ci, memory_order_relaxed);
		pi = atomic_load_explicit(&qp->sq.pi, memory_order_acquire);
		while (n < num && ci != pi) {
			const struct skua_sent *sent = &qp->sq.sent[ci & qp->sq.mask];

			wc_flushed(qp, sent->wr_id, sent->opcode, &wc[n++]);
			ci += sent->blocks;
		}
		atomic_store_explicit(&qp->sq.ci, ci, memory_order_release);
	}
	list_for_each(&cq->sides[SKUA_RECV], qp, side[SKUA_RECV]) {
		ci = atomic_load_explicit(&qp->rq.ci, memory_order_relaxed);
		pi = atomic_load_explicit(&qp->rq.pi, memory_order_acquire);
		while (n < num && ci != pi)
			wc_flushed(qp, qp->rq.wr_id[ci++ & qp->rq.ring.mask], IBV_WC_RECV,
				   &wc[n++]);
		atomic_store_explicit(&qp->rq.ci, ci, memory_order_release);
	}
	skua_unlock(&cq->table_lock);
	return n;
}

/* The CQEs up to @ci are taken: give the lock back. */
static inline int cq_taken(struct skua_cq *cq, uint32_t ci, int n)
{
	atomic_store_explicit(&cq->ci, ci, memory_order_relaxed);
	skua_unlock(&cq->lock);
	return n;
}

/* Goes on for cq_take(), which has taken @n, at a CQE that is new but not a plain one. */
static __attribute__((noinline)) int cq_take_any(struct skua_cq *cq, uint32_t ci, int num,
						 struct ibv_wc *wc, int n)
{
	const struct skua_cqe *cqe = cqe_at(cq, ci);
	uint32_t log_size = cq->log_size;

	for (;;) {
		if (likely(cqe_to_wc(cq, cqe, ci, &wc[n])))
			n++;
		cqe = cqe_at(cq, ++ci);
		if (n == num || !skua_cqe_is_new(cqe, ci, log_size))
			return cq_taken(cq, ci, n);
		/* As in cq_take(). */
		udma_from_device_barrier();
	}
}

/* @cqe, at the consumer index @ci, is new. The queue is locked; it is not, afterwards. */
static ALWAYS_INLINE inline int cq_take(struct skua_cq *cq, int num, struct ibv_wc *wc,
					const struct skua_cqe *cqe, uint32_t ci)
{
	struct skua_qp *qp = cq->last;
	int n = 0;

	do {
		/* The phase before the rest of the CQE and what it reports. */
		udma_from_device_barrier();
		if (unlikely(!cqe_plain_to_wc(cq, qp, cqe, ci, &wc[n])))
			return cq_take_any(cq, ci, num, wc, n);
		n++;
		cqe = cqe_at(cq, ++ci);
	} while (n != num && skua_cqe_is_new(cqe, ci, cq->log_size));
	return cq_taken(cq, ci, n);
}

/*
 * The device was seen to be lost, and writes nothing any more: is the entry at @ci new, though it
 * was not when it was looked at before?
 */
static bool cq_has_last(const struct skua_cq *cq, uint32_t ci)
{
	/* That it is lost before the phase. */
	udma_from_device_barrier();
	return skua_cqe_is_new(cqe_at(cq, ci), ci, cq->log_size);
}

/* There was no CQE, and the device is lost. Locked and unlocked as in cq_take(). */
static __attribute__((noinline)) int cq_take_lost(struct skua_cq *cq, int num, struct ibv_wc *wc)
{
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	int n = 0;

	while (n < num && cq_has_last(cq, ci)) {
		/* The phase before the rest, as in cq_take(). */
		udma_from_device_barrier();
		n += cqe_to_wc(cq, cqe_at(cq, ci), ci, &wc[n]);
		ci++;
	}
	n += cq_flush_lost(cq, num - n, &wc[n]);
	return cq_taken(cq, ci, n);
}

/*
 * The queue is locked; it is not, afterwards. Functions are called as the last step only, so
 * that the compiler need not keep anything over a call.
 */
static ALWAYS_INLINE inline int cq_poll(struct skua_cq *cq, int num, struct ibv_wc *wc)
{
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	const struct skua_cqe *cqe = cqe_at(cq, ci);

	if (skua_cqe_is_new(cqe, ci, cq->log_size)) {
		if (likely(num > 0))
			return cq_take(cq, num, wc, cqe, ci);
	} else if (unlikely(!READ_ONCE(cq->status->alive))) {
		return cq_take_lost(cq, num, wc);
	}
	skua_unlock(&cq->lock);
	return 0;
}

static __attribute__((noinline)) int cq_wait_and_poll(struct skua_cq *cq, int num,
						      struct ibv_wc *wc)
{
	skua_lock_wait(&cq->lock);
	return cq_poll(cq, num, wc);
}

int skua_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct skua_cq *cq = to_scq(ibcq);

	if (unlikely(!skua_trylock(&cq->lock)))
		return cq_wait_and_poll(cq, num, wc);
	return cq_poll(cq, num, wc);
}

/**
 * skua_cq_next() - take one completion, for extended polling
 * @cq: the queue, locked
 * @wc: the completion
 *
 * cq->cqe becomes a copy of its entry, which is the device's afterwards.
 *
 * Return: false if there is none.
 */
bool skua_cq_next(struct skua_cq *cq, struct ibv_wc *wc)
{
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	const struct skua_cqe *cqe = cqe_at(cq, ci);
	bool lost = false;

	/* What is outstanding may be flushed only if it was lost before the last look. */
	while (likely(skua_cqe_is_new(cqe, ci, cq->log_size)) ||
	       ((lost = !READ_ONCE(cq->status->alive)) && cq_has_last(cq, ci))) {
		/* The phase before the rest of the CQE and what it reports. */
		udma_from_device_barrier();
		cq->cqe = *cqe;
		atomic_store_explicit(&cq->ci, ci + 1, memory_order_relaxed);
		if (likely(cqe_to_wc(cq, cqe, ci, wc)))
			return true;
		cqe = cqe_at(cq, ++ci);
	}
	memset(&cq->cqe, 0, sizeof(cq->cqe));
	return unlikely(lost) && cq_flush_lost(cq, 1, wc);
}

/* --- events ------------------------------------------------------------ */

int skua_arm_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct skua_cq *cq = to_scq(ibcq);

	skua_db_arm(cq->uar, cq->cqn, atomic_load_explicit(&cq->ci, memory_order_relaxed),
		    atomic_load_explicit(&cq->arm_serial, memory_order_relaxed), solicited_only);
	return 0;
}

/* Each event consumes an arm: the next arm has another serial. */
void skua_cq_event(struct ibv_cq *ibcq)
{
	atomic_fetch_add_explicit(&to_scq(ibcq)->arm_serial, 1, memory_order_relaxed);
}
