/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skua-queues: what its cases share.
 */
#ifndef PROGS_QUEUES_H
#define PROGS_QUEUES_H

#include <errno.h>

#include "common.h"

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define LEN	4096

extern struct dev dev;
extern struct ibv_mr *mr;
extern uint8_t buf[LEN];
extern uint8_t mac[6];	/* the port's; all zero: not told */

#define must(cond)	do { if (!(cond))						\
	return fail("line %d: %s (errno %d)", __LINE__, #cond, errno); } while (0)

struct ibv_cq *make_cq(int n);
/* An RC QP with both queues on one CQ. */
struct ibv_qp *make_qp(struct ibv_cq *cq, struct ibv_srq *srq);
void join_qps(struct ibv_qp *a, struct ibv_qp *b);
int srq_post(struct ibv_srq *srq, uint64_t id);
int send_post(struct ibv_qp *qp, uint64_t id, bool signaled);
/* These bytes of buf, signaled. */
int send_from(struct ibv_qp *qp, void *p, uint32_t len, uint64_t id);
/* The next asynchronous event is of this type. */
bool event(enum ibv_event_type type);
/* None comes. */
bool quiet(void);
/* The next completion is this one. */
bool done(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);

/* queues_xrc.c */
bool case_xrc_objects(void);
bool case_xrc_traffic(void);
bool case_xrc_shared(void);
bool case_xrc_errors(void);
bool case_xrc_event(void);
bool case_xrc_basic(void);

/* queues_wq.c */
bool case_wq_error(void);
bool case_wq_fatal(void);

/* queues_short.c */
bool case_short_rings(void);

/* queues_room.c */
bool case_room_extended(void);
bool case_room_threads(void);

#endif /* PROGS_QUEUES_H */
