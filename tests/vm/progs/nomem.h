/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skua-nomem: what its verbs share.
 */
#ifndef PROGS_NOMEM_H
#define PROGS_NOMEM_H

#include "common.h"

/* A verb, and what it needs: each of these functions returns false and errno if it fails. */
struct verb {
	const char *name;
	bool (*before)(void);	/* each time, with all the memory it wants */
	bool (*run)(void);
	/* If it went well; with all the memory, unless it is what is tried. */
	bool (*undo)(void);
	bool (*after)(void);	/* each time */
	bool undo_tried;	/* undo is what runs out of memory, not run */
	bool any_errno;		/* it may fail with */
	int other;		/* errno that Linux has for this, too */
	const char *skip;	/* why it is not tried */
};

/* What the case has made */
extern struct made {
	void *made, *again;
	int fd;
} it;

extern struct dev dev;
extern struct ibv_cq *cq;

/* Each ends with one that has no name. */
extern const struct verb verbs_of_memory[];	/* nomem_mem.c */
extern const struct verb verbs_of_queues[];	/* nomem_queues.c */
extern const struct verb verbs_of_counters[];	/* nomem_count.c */

/* It is what was made, or NULL. */
bool made(void *p);
/* What returns an errno, not -1 */
bool done(int err);
bool nothing(void);

/* What was made becomes it.again: what the verb is tried on. */
bool kept(bool ok);

struct ibv_qp *new_qp(enum ibv_qp_type type);
/* it.again: a RAW_PACKET QP that rules can lead to */
bool create_raw_init(void);
/* it.again, a QP */
bool destroy_it(void);
/* it.made */
bool dereg_mr(void);
bool destroy_flow(void);
bool destroy_qp(void);
bool destroy_srq(void);

#endif /* PROGS_NOMEM_H */
