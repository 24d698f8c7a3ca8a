/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two devices with a cable between them and an RC connection over it, for tests
 * of the RoCE engine.
 */
#ifndef SKUA_TEST_RC_H
#define SKUA_TEST_RC_H

#include "mini.h"
#include "roce/pkt.h"

#define RC_BUF		(20u << 20)	/* of each side's region */
#define RC_VA		0x7f1200340000ull
#define RC_KEY_NONE	0
#define RC_QKEY		0x1ee7c0de	/* of datagram QPs */

/**
 * struct rc_opt - what a connection is like; zero: the default
 * @mtu_code: path MTU, default 5 (4096)
 * @ipv6: addresses
 * @vlan: VLAN id
 * @psn: first PSN that each side sends
 * @log_sq: send ring, default 6
 * @log_rq: receive ring, default 6
 * @log_stride: segments of a receive WQE, default 2 (4)
 * @log_cq: CQEs, default 10
 * @retry_cnt: one more than the count; default 8
 * @rnr_retry: likewise
 * @timeout: ACK timeout code, default 14
 * @rd_atomic: depth as requester and responder, one more; default 17
 * @access: SKUA_ACCESS_REMOTE_* of the QPs; default all
 * @onchip: of the devices
 * @caps: capabilities that the devices have besides
 * @no_caps: those that they do without
 * @type: of the QPs: RC, UC or UD
 * @vendor_off: SKUA_VENDOR_*: what each side's QP does without
 * @ext: SKUA_EXT_* of each side's QP; the devices then have SKUA_CAP_SR
 * @onload: the devices have SKUA_CAP_RECOVERY, and the QPs use it
 * @log_window: log2 of the window with it, default the largest
 * @peer_log_window: of side 1, default as @log_window
 * @qp_flags: SKUA_QP_F_* that the QPs have besides
 * @hot_looks: of the devices
 * @whole: of the devices
 * @qps: of each side, if more than the usual number is to be made
 * @down: leave the QPs in RESET
 */
struct rc_opt {
	uint32_t mtu_code;
	bool ipv6;
	uint16_t vlan;
	uint32_t psn[2];
	uint32_t log_sq, log_rq, log_stride, log_cq;
	uint32_t retry_cnt, rnr_retry;
	uint32_t timeout;
	uint32_t rd_atomic;
	uint32_t access;
	uint32_t onchip;
	uint64_t caps, no_caps;
	enum skua_qp_type type;
	uint32_t vendor_off[2];
	uint32_t ext[2];
	bool onload;
	uint32_t log_window, peer_log_window;
	uint32_t qp_flags;
	uint32_t hot_looks;
	bool whole;
	uint32_t qps;
	bool down;
};

struct rc_side {
	struct fake f;
	struct mini m;
	struct mini_cq scq, rcq;
	struct mini_qp qp;
	struct skua_qp_attr attr;
	uint64_t bus;		/* of the buffer */
	uint32_t key;		/* lkey and rkey of it, with all rights */
	uint8_t *buf;
	uint8_t mac[6];
	bool ipv6;
};

struct rc {
	struct rc_side s[2];
	uint32_t mtu;
	uint16_t vlan;
};

void rc_open(struct rc *rc, const struct rc_opt *opt);
void rc_close(struct rc *rc);
/* Both QPs are in RESET, and their rings empty. */
void rc_reset(struct rc *rc);
/* What the device of side 0 knows of losses: a look between two of its turns. */
struct skua_lrc *rc_lrc(struct rc *rc);
/* The attributes of side @i's QP to the QP @dest of the other side. */
struct skua_qp_attr rc_attr(struct rc *rc, int i, const struct rc_opt *opt, uint32_t dest);
/* Another QP on side @i, in RESET. */
void rc_qp(struct rc *rc, int i, struct mini_qp *qp, const struct rc_opt *opt);
/* With .onchip = 1: so many other QPs are looked at that the contexts of ours leave the cache. */
void rc_evict(struct rc *rc, int i, const struct rc_opt *opt);

/**
 * struct rc_wr - a send work request of side @i in segments of its buffer
 * @op: opcode
 * @flags: SKUA_WQE_F_*, SIGNALED is added unless @quiet
 * @quiet: not signaled
 * @imm: for the IMM opcodes; key of SEND_INV and LOCAL_INV; length of FLUSH
 * @nsge: elements; 0: one of @len bytes at offset @off of the buffer
 * @off: see @nsge; of an inline payload too
 * @len: see @nsge
 * @sge: elements in full, with keys
 * @roff: offset in the peer's buffer
 * @rkey: 0: the peer's buffer's
 * @atomic: operands, then masks
 * @flush: placement type and selectivity
 * @bind: BIND_MW
 * @reg: REG_MR
 * @av: UD: path and addressee, NULL: the first QP of the other side
 * @srqn: XRC: where it goes
 */
struct rc_wr {
	enum skua_wqe_op op;
	uint32_t flags;
	bool quiet;
	uint32_t imm;
	uint32_t nsge;
	uint64_t off;
	uint32_t len;
	struct sge sge[16];
	uint64_t roff;
	uint32_t rkey;
	struct {
		uint64_t swap_add, compare;
	} atomic[2];
	uint32_t flush;
	struct skua_wqe_bind bind;
	struct skua_wqe_reg reg;
	const struct skua_wqe_av *av;
	uint32_t srqn;
};

/* The way from side @i to the first QP of the other side. */
struct skua_wqe_av rc_av(struct rc *rc, int i);
/* Into the ring; not yet visible to the device. */
void rc_post_quiet(struct rc *rc, int i, struct mini_qp *qp, const struct rc_wr *wr);
/* On side @i's first QP, with doorbell. */
void rc_post(struct rc *rc, int i, const struct rc_wr *wr);
/* A receive of @len bytes at offset @off. */
void rc_recv(struct rc *rc, int i, uint64_t off, uint32_t len);
void rc_recv_sge(struct rc *rc, int i, const struct sge *sge, uint32_t nsge);
void rc_pump(struct rc *rc);
void rc_pump_for(struct rc *rc, uint64_t ns);

/* Take a completion, which must be there and be of this kind. */
struct skua_cqe rc_expect(struct rc *rc, int i, bool recv, enum skua_cqe_status status);
/* No completion is there. */
void rc_expect_none(struct rc *rc, int i, bool recv);
/* The asynchronous event, which must be there. */
void rc_expect_event(struct rc *rc, int i, enum skua_qp_event ev);
void rc_expect_no_event(struct rc *rc, int i);
enum skua_qp_state rc_state(struct rc *rc, int i);
/* From RTS to SQD, with an event when the send queue is drained. */
void rc_drain(struct rc *rc, int i);
struct skua_cmd_query_qp_out rc_query(struct rc *rc, int i);
uint64_t rc_cnt(struct rc *rc, int i, enum skua_counter cnt);

/* Data that depends on offset and seed. */
void rc_fill(uint8_t *p, size_t len, uint32_t seed);
void rc_check(const uint8_t *p, size_t len, uint32_t seed);

/*
 * A packet as side @from's QP would send it to side 1 - @from; the caller may
 * change the address, fills headers and payload, and gives it to the peer.
 */
struct skua_pkt_addr rc_addr(struct rc *rc, int from);
int rc_build(struct rc *rc, int from, struct skua_pkt_build *b, uint8_t *frame, size_t size,
	     uint8_t opcode, uint32_t psn);
void rc_inject(struct rc *rc, int to, struct skua_pkt_build *b, size_t payload);

/**
 * struct rc_forged - a request of side 0 that its device did not make
 * @op: opcode
 * @payload: bytes of 0x77
 * @reth_len: length that its RETH announces, if it has one
 */
struct rc_forged {
	uint8_t op;
	uint32_t payload;
	uint32_t reth_len;
};

/* Give it to side 1; a RETH points to the beginning of the buffer there. */
void rc_forge(struct rc *rc, const struct rc_forged *p, uint32_t psn);

#endif /* SKUA_TEST_RC_H */
