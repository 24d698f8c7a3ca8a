/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skua-neg: bad use, and what must come of it. One case is a function that
 * returns true; it says why not by fail().
 */
#ifndef PROGS_NEG_H
#define PROGS_NEG_H

#include "common.h"

#define BUF_SIZE	65536

/* Two connected QPs of one device, each with its CQs; the parts a case may bend. */
struct pair {
	struct dev *dev;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_qp_cap cap;
};

struct neg {
	struct dev dev;
	const char *name;
	bool is_skua;
	uint8_t *buf;
	struct ibv_mr *mr;	/* the whole of @buf, all rights */
	struct ibv_pd *pd2;	/* another domain, and a region in it */
	struct ibv_mr *mr2;
};

struct neg_case {
	const char *name;
	bool (*run)(struct neg *n);
	bool skua_only;
};

extern const struct neg_case cases_wr[], cases_size[], cases_raw[], cases_ring[],
			     cases_busy[];

/* access: rights of both QPs; connected to RTS unless @connect is false. */
void pair_make(struct pair *p, struct neg *n, unsigned int access, bool connect);
void pair_connect(struct pair *p, unsigned int access, enum ibv_mtu mtu0, enum ibv_mtu mtu1);
void pair_free(struct pair *p);

int post_recv(struct pair *p, int side, uint64_t id, void *addr, uint32_t len, uint32_t lkey);
int post_send(struct pair *p, int side, struct ibv_send_wr *wr, void *addr, uint32_t len,
	      uint32_t lkey);
/* The next completion of a side's CQ has this id and status. */
bool expect_wc(struct pair *p, int side, uint64_t id, enum ibv_wc_status status);

/* A counter of the device by name, or -1 if it has none. */
long long counter(struct neg *n, const char *name);

#endif /* PROGS_NEG_H */
