/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PCIe transactions by what they are for. Every transaction on a function's link is counted
 * once, by purpose, type and direction: struct tlp_acct has the function's, and, while that
 * is switched on, those of each QP. The device's own counters (SKUA_CNT_TLP_*) are sums of
 * them. Documentation/tlp.rst tells users of it.
 *
 * A new purpose is a row of TLP_PURPOSES; who reads or writes guest memory names it in the
 * call, who takes an MMIO write calls tlp_mmio().
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
 * X(name, type, direction): upstream is from the device to the host. Those of MRd are the
 * bytes asked for.
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

/* A QP's, and which QP that is: its index may have been another's before. */
struct tlp_qp {
	uint32_t qpn;
	struct tlp_table table;
};

/**
 * struct tlp_acct - a function's accounts
 * @fn: all transactions since the function was made
 * @from: @fn as it was when the accounts were reset last
 * @cnt_from: sums of @fn, by kind, when the device's counters were reset last
 * @qp: the QP being worked for, NULL: none, or QPs have no accounts
 * @qps: of each QP, by index; NULL: it has none yet. NULL while QPs have no accounts
 * @no_memory: there was none for a QP's account
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

/* @n transactions with @bytes of payload together. */
static inline void tlp_count(struct tlp_acct *a, enum tlp_purpose purpose, enum tlp_kind kind,
			     uint64_t n, uint64_t bytes)
{
	struct tlp *tlp = &a->fn.v[kind][purpose];

	tlp->count += n;
	tlp->bytes += bytes;
	if (a->qp)
		tlp_count_qp(a->qp, purpose, kind, n, bytes);
}

/* @reqs reads of @bytes together, which @cpls completions answer: by the device. */
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

/* One MMIO write, one MMIO read with its completion. */
void tlp_mmio(struct skua_dev *dev, enum tlp_purpose purpose, size_t len);
void tlp_mmio_read(struct skua_dev *dev, enum tlp_purpose purpose, size_t len);
/*
 * MMIO writes that tlp_mmio() has counted turn out to be for this QP: @n of @bytes together.
 * The QPN is as it came, and may be nobody's.
 */
void tlp_mmio_qp(struct skua_dev *dev, uint32_t qpn, enum tlp_purpose purpose, unsigned int n,
		 size_t bytes);

/*
 * While QPs have accounts: what follows is for the QP of this index, of which the caller
 * tells the QPN when it knows it, until he sets tlp_acct.qp to NULL.
 */
void tlp_qp_begin(struct skua_dev *dev, uint32_t index);
void tlp_qp_name(struct skua_dev *dev, uint32_t qpn);
/* A QP of this index begins its life: what was counted was for another one. */
void tlp_qp_new(struct skua_dev *dev, uint32_t index);

/* The device's counters SKUA_CNT_TLP_* begin anew. */
void tlp_counters_reset(struct skua_dev *dev);
/* Bring them up to date in dev->cnt. */
void tlp_counters(struct skua_dev *dev);

#endif /* SKUA_MODEL_TLP_H */
