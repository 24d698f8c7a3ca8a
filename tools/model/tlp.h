/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accounts of PCIe transactions by purpose. Every transaction on a function's link is counted
 * once, by purpose, type and direction: struct tlp_acct has the accounts of the function, and,
 * while that is switched on, of each QP. The device's own counters (SKUA_CNT_TLP_*) are sums of
 * these. Documentation/tlp.rst describes them for users.
 *
 * A new purpose is a row of TLP_PURPOSES. The caller names the purpose when it reads or writes
 * guest memory, and calls tlp_mmio() for an MMIO write.
 */
#ifndef SKUA_MODEL_TLP_H
#define SKUA_MODEL_TLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct skua_dev;

/* X(name, text) */
#define TLP_PURPOSES(X)								\
	X(DOORBELL, "doorbell")		/* SQ and recovery register of a UAR page */ \
	X(PUSH, "push")			/* push slot of a UAR page */		\
	X(ARM, "arm")			/* CQ-arm and EQ register of a UAR page */ \
	X(WQE, "wqe")			/* send queue */			\
	X(RECV_WQE, "recv-wqe")		/* receive queue and SRQ */		\
	X(PAYLOAD, "payload")		/* what messages and frames carry */	\
	X(CTX, "context")		/* all tables of ICM but the next two */ \
	X(MPT, "mpt")								\
	X(MTT, "mtt")			/* and page lists of fast registrations */ \
	X(RECORD, "record")		/* doorbell records, event indices */	\
	X(SLOT, "slot")			/* packets before their turn */		\
	X(CQE, "cqe")								\
	X(EQE, "eqe")								\
	X(MSIX, "msix")								\
	X(CMD, "command")		/* ring, mailboxes, their doorbell */	\
	X(REG, "register")		/* registers of BAR 0 */		\
	X(DM, "dm")			/* device memory, BAR 4 */		\
	X(OTHER, "other")

enum tlp_purpose {
#define X(name, text) TLP_##name,
	TLP_PURPOSES(X)
#undef X
	TLP_PURPOSE_COUNT
};

/*
 * X(name, type, direction): upstream is from the device to the host. The bytes of MRd are those
 * requested.
 */
#define TLP_KINDS(X)								\
	X(MRD_UP, "MRd", "up")							\
	X(CPLD_DOWN, "CplD", "down")	/* the host's answers */		\
	X(MWR_UP, "MWr", "up")							\
	X(MWR_DOWN, "MWr", "down")						\
	X(MRD_DOWN, "MRd", "down")						\
	X(CPLD_UP, "CplD", "up")	/* the device's answers */

enum tlp_kind {
#define X(name, type, dir) TLP_##name,
	TLP_KINDS(X)
#undef X
	TLP_KIND_COUNT
};

struct tlp {
	uint64_t count;
	uint64_t bytes;
};

struct tlp_table {
	struct tlp v[TLP_KIND_COUNT][TLP_PURPOSE_COUNT];
};

/* Account of a QP, with its QPN: another QP may have had the same index before. */
struct tlp_qp {
	uint32_t qpn;
	struct tlp_table table;
};

/**
 * struct tlp_acct - a function's accounts
 * @fn: all transactions since the function was made
 * @from: @fn as it was when the accounts were reset last
 * @cnt_from: sums of @fn, by kind, when the device's counters were reset last
 * @qp: account of the QP whose work is being done; NULL: none, or QPs have no accounts
 * @qps: account of each QP, by index; NULL: the QP has none yet. @qps is NULL while QPs have no
 *	accounts
 * @no_memory: an account of a QP could not be allocated
 */
struct tlp_acct {
	struct tlp_table fn;
	struct tlp_table from;
	struct tlp cnt_from[TLP_KIND_COUNT];
	struct tlp_qp *qp;
	struct tlp_qp **qps;
	bool no_memory;
};

void tlp_count_qp(struct tlp_qp *qp, enum tlp_purpose purpose, enum tlp_kind kind, uint64_t n,
		  uint64_t bytes);

/* Count @n transactions with @bytes of payload in total. */
static inline void tlp_count(struct tlp_acct *a, enum tlp_purpose purpose, enum tlp_kind kind,
			     uint64_t n, uint64_t bytes)
{
	struct tlp *tlp = &a->fn.v[kind][purpose];

	tlp->count += n;
	tlp->bytes += bytes;
	if (a->qp)
		tlp_count_qp(a->qp, purpose, kind, n, bytes);
}

/* Count @reqs reads by the device of @bytes in total, and their @cpls completions. */
static inline void tlp_count_read(struct tlp_acct *a, enum tlp_purpose purpose, uint64_t reqs,
				  uint64_t cpls, uint64_t bytes)
{
	struct tlp *req = &a->fn.v[TLP_MRD_UP][purpose], *cpl = &a->fn.v[TLP_CPLD_DOWN][purpose];

	req->count += reqs;
	req->bytes += bytes;
	cpl->count += cpls;
	cpl->bytes += bytes;
	if (a->qp) {
		tlp_count_qp(a->qp, purpose, TLP_MRD_UP, reqs, bytes);
		tlp_count_qp(a->qp, purpose, TLP_CPLD_DOWN, cpls, bytes);
	}
}

/* Count an MMIO write; an MMIO read with its completion. */
void tlp_mmio(struct skua_dev *dev, enum tlp_purpose purpose, size_t len);
void tlp_mmio_read(struct skua_dev *dev, enum tlp_purpose purpose, size_t len);
/*
 * Add @n MMIO writes of @bytes in total, which tlp_mmio() has counted for the function, to the
 * account of a QP. The QPN is that of the doorbell, and need not exist.
 */
void tlp_mmio_qp(struct skua_dev *dev, uint32_t qpn, enum tlp_purpose purpose, unsigned int n,
		 size_t bytes);

/*
 * While QPs have accounts: count the following transactions for the QP of this index, until the
 * caller sets tlp_acct.qp to NULL. The caller sets the account's QPN when it knows that.
 */
void tlp_qp_begin(struct skua_dev *dev, uint32_t index);
void tlp_qp_name(struct skua_dev *dev, uint32_t qpn);
/* A QP of this index was created: drop the account of the previous one. */
void tlp_qp_new(struct skua_dev *dev, uint32_t index);

/* Reset the device's counters SKUA_CNT_TLP_*. */
void tlp_counters_reset(struct skua_dev *dev);
/* Update these counters in dev->cnt. */
void tlp_counters(struct skua_dev *dev);

#endif /* SKUA_MODEL_TLP_H */
