/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two device cores and the real switch between them, both as they are in the daemon, under
 * one virtual clock.
 */
#ifndef SKUA_TEST_NET_H
#define SKUA_TEST_NET_H

#include "rc.h"
#include "wire/wire.h"

#define NET_BATCH	64		/* messages under way: more than the window holds */
#define NET_LEN_MAX	(64u << 10)

/**
 * struct net - a connection of rc.h whose frames go through a switch
 * @came: a frame, since net_settle() looked last
 * @drive: software that works beside, or NULL: whether it did something now
 * @drive_priv: its own
 * @drive_at: when it has something to do next
 * @seen: each frame that side @i sends or receives, or NULL
 * @seen_priv: its first argument
 */
struct net {
	struct rc rc;
	struct wire *wire;
	struct wire_port *port[2];
	bool came;
	unsigned int ticks;	/* how often a timer of a device ended */
	bool (*drive)(struct net *n);
	void *drive_priv;
	uint64_t drive_at;
	void (*seen)(void *priv, int i, bool sent, const uint8_t *frame, size_t len);
	void *seen_priv;
};

/* @faults: of the wire, as --fault has them, or NULL. */
void net_open(struct net *n, const struct rc_opt *opt, const char *faults);
void net_close(struct net *n);
/* What can be done now. */
void net_settle(struct net *n);
/* Let time pass. */
void net_pass(struct net *n, uint64_t ns);

/* What connections of which all is verified are made to do: long and short messages. */
extern const struct net_kind {
	const char *name;
	enum skua_wqe_op op;
	uint32_t len;
} net_kinds[6];

/* @num messages of NET_LEN_MAX bytes from side 0, which are not looked at. */
void net_post(struct net *n, enum skua_wqe_op op, unsigned int num);
/* @batches of NET_BATCH messages from side 0, each in @ns, all verified. */
void net_run(struct net *n, const struct net_kind *kind, unsigned int batches, uint64_t ns);

#endif /* SKUA_TEST_NET_H */
