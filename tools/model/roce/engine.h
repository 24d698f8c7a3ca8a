/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal to the RoCEv2 engine: functions that its files share.
 *
 *   engine.c    turns, states, timers, building packets
 *   rx.c        checks of a received packet up to its QP
 *   req.c       requester: sending the WQEs of the send queue
 *   req_done.c  requester: completing messages, going back
 *   local.c     WQEs that change keys and send nothing
 *   atomic.c    atomics, FLUSH, ATOMIC_WRITE: requests of one packet
 *   resp.c      responder: executing requests, acknowledgments
 *   rres.c      responder resources: requests that have responses of their own
 *   sr*.c       selective repeat, see sr.h
 *   cc*.c       congestion control, see cc.h
 *   recv.c      receive WQEs, the QP's own and those of SRQs
 *   uc.c        responder of unreliable connections
 *   ud.c        datagrams: sending and receiving
 *   comp.c      completer: responses to completions
 *   flush.c     queues of a QP in error
 *   fault.c     requesters and responders that wait for a page
 *   train.c     trains: several packets of a message as one, within this process
 *   inflight.c  shared caches of messages in flight and of scatter lists
 *
 * All state of a QP is in its contexts. PSNs are compared by ib_psn_diff() and added by psn_add(),
 * psn_sub(). Outstanding PSNs span at most ENGINE_WINDOW + ENGINE_READ_PSNS, so that their order
 * is always defined.
 */
#ifndef SKUA_ROCE_ENGINE_H
#define SKUA_ROCE_ENGINE_H

#include "../core.h"
#include "hdr.h"
#include "opcode.h"
#include "pkt.h"

/* Window: maximum number of PSNs that are not acknowledged. */
#define ENGINE_WINDOW		128
/* Maximum number of packets without a request for an acknowledgment. */
#define ENGINE_ACK_EVERY	16
/*
 * A READ is requested in parts of so many response packets. That limits the responses in flight
 * and keeps PSN arithmetic valid for the longest READ with the smallest MTU.
 */
#define ENGINE_READ_PSNS	64

#define ENGINE_MTU_MAX		4096

/*
 * Cache of scatter lists for the packets of a message: sets, selected by the QPN, and places in a
 * set. A list of more elements than a receive can have is not cached.
 */
#define ENGINE_LOG_LIST_SETS	6
#define ENGINE_LIST_WAYS	4

/* Position of the last access in a gather or scatter list. */
struct sge_pos {
	uint64_t base;		/* offset in the message of the element's first byte */
	uint32_t i;
};

/**
 * struct rlist - a receive WQE, or the scatter list of a READ, in use
 * @qpn: QP, with @valid; LIST_READ: the list is that of a READ
 * @incarnation: incarnation of the QP
 * @index: position in the receive queue, block index in the send queue
 * @srqn: receives: the SRQ, if the WQE is from one
 * @valid: the place is in use
 * @used: number of the last use; a greater one is later
 * @pos: position of the last packet
 * @who: receives: identity for the check of the keys
 * @rwqe: the list
 * @sge: READ: the list, which may be in another place than here
 * @nsge: READ: number of elements
 */
struct rlist {
	uint32_t qpn;
	uint32_t incarnation;
	uint32_t index;
	uint32_t srqn;
	__le32 srq_life;
	bool valid;
	uint64_t used;
	struct sge_pos pos;
	struct mr_who who;
	struct rwqe rwqe;
	const struct sge *sge;
	uint32_t nsge;
};

#define LIST_READ	BIT(31)

/* Cached lists; a QP has at most one receive and one READ there. */
struct rlists {
	struct rlist list[1 << ENGINE_LOG_LIST_SETS][ENGINE_LIST_WAYS];
	uint64_t uses;
};

/* Properties of a message that are needed for its completion. */
struct flight {
	uint32_t qpn;
	uint32_t incarnation;
	uint32_t index;
	uint32_t blocks;
	uint32_t psns;
	uint32_t len;
	uint32_t op;
	bool signaled;
	bool kept;		/* where the response goes: a list of one element */
};

/* How it is kept: the opcode above the QPN, and FLIGHT_*. 2^31 bytes are 2^23 PSNs at most. */
struct flight_place {
	uint32_t qpn;
	uint32_t incarnation;
	uint32_t index;
	uint32_t len;
	uint32_t what;
};

#define FLIGHT_OP		GENMASK(31, 24)	/* in qpn */
#define FLIGHT_PSNS		GENMASK(23, 0)
#define FLIGHT_BLOCKS		GENMASK(28, 24)
#define FLIGHT_SIGNALED		BIT(29)
#define FLIGHT_KEPT		BIT(30)

#define ENGINE_LOG_FLIGHTS	12

/* QPs of which it is remembered where the last walks along their messages ended (sr_walk.c). */
#define ENGINE_LOG_WALKS	6

/* A message of a walk: block index of its WQE, first PSN, numbers; see struct sr_walk. */
struct walk_place {
	uint32_t index;
	uint32_t psn;
	uint32_t ssn;
	uint32_t recv_seq;
	uint32_t rr_seq;
};

/**
 * struct walk_end - a message where a walk ended
 * @at: where it is
 * @f: what it is
 */
struct walk_end {
	struct walk_place at;
	struct flight f;
};

/**
 * struct walks - where walks of a QP ended
 * @qpn: QP
 * @incarnation: incarnation of the QP; 0: none
 * @far: the message that was farthest from ci; it may be complete by now
 * @near: where @far was before, or where a walk ended since that did not come as far
 */
struct walks {
	uint32_t qpn;
	uint32_t incarnation;
	struct walk_end far;
	struct walk_end near;
};

/* Maximum number of datagrams to groups whose delivery is not finished. */
#define ENGINE_GROUPS		16
/* Number of these that are reserved for datagrams of the device itself. */
#define ENGINE_GROUPS_OWN	4

/**
 * struct group_rx - a datagram to a group that is being delivered to the members
 * @pos: the last member that got it, for port_mcg_next(); 0: none yet
 * @own: sent by the device itself
 * @dgid: the group
 * @len: length of the frame
 * @frame: the frame
 */
struct group_rx {
	uint32_t pos;
	bool own;
	uint8_t dgid[16];
	uint32_t len;
	uint8_t frame[MODEL_MAX_FRAME];
};

/* Number of QPs that can have trains in flight; others send single packets. */
#define ENGINE_TRAIN_QPS	1024

/**
 * struct train_qp - trains of a QP that were not delivered yet
 * @qpn: the QP
 * @num: number of these trains, 0: the place is free
 * @psn: PSN of the first packet of the first train
 */
struct train_qp {
	uint32_t qpn;
	uint32_t num;
	uint32_t psn;
};

/**
 * struct engine - the engine's state besides the contexts
 * @incarnations: number of the last incarnation of a QP
 * @faults: number of page faults, for their tokens
 * @recoveries: number of losses reported, for their serials
 * @flight: cache of messages in flight, direct mapped
 * @scatter: scatter element of those that have a response and one element, likewise
 * @lists: cache of receive WQEs in use, and of scatter lists of READs
 * @walks: ends of walks along messages, direct mapped by QPN
 * @win: part of a send ring
 * @wqe: the WQE that is being sent
 * @frame: the packet that is being built
 * @train: the train that is being built
 * @trains: number of trains in flight
 * @train_qp: their QPs
 * @inl: payload of a message for the next CQE, see scatter_cqe()
 * @inl_len: its length, 0: none
 * @group: ring of datagrams to groups, oldest first
 * @group_head: number of the oldest
 * @group_tail: number of the next one
 */
struct engine {
	uint32_t incarnations;
	uint32_t faults;
	uint32_t recoveries;
	struct flight_place flight[1 << ENGINE_LOG_FLIGHTS];
	struct sge scatter[1 << ENGINE_LOG_FLIGHTS];
	struct rlists lists;
	struct walks walks[1 << ENGINE_LOG_WALKS];
	struct wqe_win win;
	struct wqe wqe;
	struct skua_train train;
	uint32_t trains;
	struct train_qp train_qp[ENGINE_TRAIN_QPS];
	uint8_t inl[64];
	uint32_t inl_len;
	uint8_t frame[SKUA_PKT_OVERHEAD + ENGINE_MTU_MAX] __attribute__((aligned(64)));
	struct group_rx group[ENGINE_GROUPS];
	uint32_t group_head, group_tail;
};

/**
 * struct turn - state of the engine while it works for one QP
 * @dev: device
 * @qp: pinned
 * @sqc: the QP's
 * @rqc: the QP's; NULL: not pinned
 * @now: device time
 * @transport: of its packets, as in their opcodes
 * @reliable: its requests are acknowledged, else they are complete when sent
 * @mtu: path MTU
 * @budget: bytes that may still be sent
 * @ack_mask: requests whose PSN has all these bits ask for an acknowledgment
 * @addr_state: 0: @addr was not looked up, 1: it is valid, -1: there is no path
 * @addr: path to the peer
 * @ack_bytes: bytes of the acknowledgment that resp_run() has sent, if it has sent one
 * @full: the wire had no room for the next frame, to @full_dmac
 * @full_dmac: destination of that frame
 * @pd: PD of the keys in requests: that of the QP, or for XRC that of the SRQ named
 * @first_known: @first_index and @first_op are valid
 * @first_index: the WQE at ci when req_first_is_read() was last asked
 * @first_op: its opcode
 */
struct turn {
	struct skua_dev *dev;
	struct qp *qp;
	struct skua_sqc *sqc;
	struct skua_rqc *rqc;
	uint64_t now;
	uint8_t transport;
	bool reliable;
	uint32_t mtu;
	int32_t budget;
	uint32_t ack_mask;
	int addr_state;
	struct skua_pkt_addr addr;
	uint64_t ack_bytes;
	bool full;
	uint8_t full_dmac[6];
	uint32_t pd;
	bool first_known;
	uint32_t first_index;
	uint32_t first_op;
};

/* The place of a QP in a table of 2^@log: most of those with numbers near each other differ. */
static inline uint32_t qp_place(uint32_t qpn, unsigned int log)
{
	return qp_index(qpn) * 0x9e3779b1u >> (32 - log);
}

/* Is one of these SKUA_RQC_* set? The receive queue's half is pinned. */
static inline bool rqc_is(const struct turn *t, uint32_t flags)
{
	return le32_to_cpu(t->rqc->flags) & flags;
}

static inline bool sqc_is(const struct turn *t, uint32_t flags)
{
	return le32_to_cpu(t->sqc->valid) & flags;
}

static inline void sqc_set(struct turn *t, uint32_t flag, bool on)
{
	if (on)
		t->sqc->valid |= cpu_to_le32(flag);
	else
		t->sqc->valid &= ~cpu_to_le32(flag);
}

/* It happened once, to this QP. */
static inline void turn_count(struct turn *t, enum skua_counter counter)
{
	qp_count(t->dev, t->sqc, counter, 1);
}

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & IB_PSN_MASK;
}

/* Distance from @b to @a, which must not be behind it. */
static inline uint32_t psn_sub(uint32_t a, uint32_t b)
{
	return (a - b) & IB_PSN_MASK;
}

/* Likewise for numbers of messages. */
static inline uint32_t msn_add(uint32_t msn, uint32_t n)
{
	return (msn + n) & IB_MSN_MASK;
}

/* Number of packets of a message of @len bytes. */
static inline uint32_t psns_of(uint64_t len, uint32_t mtu)
{
	return len ? (uint32_t)((len + mtu - 1) / mtu) : 1;
}

/* Messages that take a receive at the peer. */
static inline bool op_takes_recv(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_SEND_INV ||
	       op == SKUA_WQE_WRITE_IMM;
}

/* WQEs without packets. */
static inline bool op_is_local(enum skua_wqe_op op)
{
	return op == SKUA_WQE_NOP || op == SKUA_WQE_BIND_MW || op == SKUA_WQE_LOCAL_INV ||
	       op == SKUA_WQE_REG_MR;
}

static inline bool op_is_atomic(enum skua_wqe_op op)
{
	return op == SKUA_WQE_CAS || op == SKUA_WQE_FAA || op == SKUA_WQE_MASKED_CAS ||
	       op == SKUA_WQE_MASKED_FAA;
}

/*
 * Requests that end with a response of their own, not with any acknowledgment, and
 * of which both sides have agreed on a number.
 */
static inline bool op_is_answered(enum skua_wqe_op op)
{
	return op == SKUA_WQE_READ || op_is_atomic(op) || op == SKUA_WQE_FLUSH ||
	       op == SKUA_WQE_ATOMIC_WRITE;
}

/* Responder resources that such a request takes, which has @psns PSNs. */
static inline uint32_t rrs_of(enum skua_wqe_op op, uint32_t psns)
{
	if (op == SKUA_WQE_FLUSH)
		return 0;
	return (psns + ENGINE_READ_PSNS - 1) / ENGINE_READ_PSNS;
}

/* The number of the next message as the peer's MSN counts them: each request of a READ is one. */
static inline uint32_t ssn_after(uint32_t ssn, enum skua_wqe_op op, uint32_t psns)
{
	return msn_add(ssn, op == SKUA_WQE_READ ? rrs_of(op, psns) : 1);
}

/* What selective repeat numbers, behind a message: those that take a receive ... */
static inline uint32_t recv_seq_after(uint32_t seq, enum skua_wqe_op op)
{
	return op_takes_recv(op) ? msn_add(seq, 1) : seq;
}

/* ... and requests that take a responder resource. */
static inline uint32_t rr_seq_after(uint32_t seq, enum skua_wqe_op op, uint32_t psns)
{
	return op_is_answered(op) ? msn_add(seq, rrs_of(op, psns)) : seq;
}

/* Packets of them. */
#define IB_F_ANSWERED	(IB_F_READ | IB_F_ATOMIC | IB_F_FLUSH | IB_F_ATOMIC_WRITE)

/* --- engine.c --- */
/* Each type of QP speaks one transport: bits of the opcode; -1: none. */
int transport_of(enum skua_qp_type type);
void turn_begin(struct turn *t, struct skua_dev *dev, struct qp *qp);
/* Pin @rqc. False: it cannot be read, the device is FATAL. */
bool turn_need_rq(struct turn *t);
/*
 * Pin all words of @sqc and @rqc, not only the hot ones (SKUA_SQC_HOT, SKUA_RQC_HOT). False:
 * likewise.
 */
bool turn_need_sq_rest(struct turn *t);
bool turn_need_rq_rest(struct turn *t);
/* After work of the requester, that of the responder: the half that it is in was changed. */
void turn_end_req(struct turn *t);
void turn_end_resp(struct turn *t);

/* Buffer for a packet: room for a path MTU and all headers. */
uint8_t *tx_frame(const struct turn *t);
/*
 * Start a packet to the QP's peer in that buffer. False: there is no path (the GID entry was
 * removed): the packet counts as sent and lost.
 */
bool tx_start(struct turn *t, struct skua_pkt_build *b, uint8_t opcode, uint32_t psn,
	      bool ackreq, bool se);
void tx_finish(struct turn *t, struct skua_pkt_build *b, uint32_t payload);
/* Must the next packet on the path @av wait for room in the wire? */
bool tx_waits(struct turn *t, const struct skua_av *av);
/* A packet to the QP's peer. */
static inline bool tx_peer_waits(struct turn *t)
{
	return tx_waits(t, &t->sqc->attr.av);
}
/* Addresses of packets to the QP @dest on the path @av. False: there is no path. */
bool tx_path(const struct turn *t, const struct skua_av *av, uint32_t dest,
	     struct skua_pkt_addr *addr);
/* Put the payload [@off, @off + @n) of the WQE at @to. */
enum skua_vendor tx_payload(struct turn *t, const struct wqe *w, struct sge_pos *pos,
			    uint64_t off, uint8_t *to, uint32_t n);

/* Who the QP is for its own keys, and for those that its peer names. */
struct mr_who who_local(const struct turn *t, uint32_t access);
struct mr_who who_remote(const struct turn *t, uint32_t access);
/*
 * Copy @len bytes at offset @off of a message from or to the list; the caller
 * knows that the list is long enough. SKUA_VENDOR_NONE or SKUA_VENDOR_KEY_*.
 */
enum skua_vendor sge_copy(struct turn *t, const struct sge *sge, uint32_t nsge,
			  struct sge_pos *pos, uint64_t off, void *buf, uint32_t len, bool write);
/* The same for keys that are not the QP's. */
enum skua_vendor sge_copy_as(struct turn *t, const struct mr_who *who, const struct sge *sge,
			     uint32_t nsge, struct sge_pos *pos, uint64_t off, void *buf,
			     uint32_t len, bool write);
/*
 * A whole message of @len bytes for @nsge elements is to be reported to this CQ at once:
 * keep it for the CQE, if it may come there; t->dev->engine->inl_len then is not 0.
 * SKUA_VENDOR_KEY_* if it may not be written to the elements.
 */
#define SCATTER_MAX	64
enum skua_vendor scatter_cqe(struct turn *t, const struct mr_who *who, const struct sge *sge,
			     uint32_t nsge, uint32_t cqn, const void *buf, uint32_t len);
/* Write a completion; failing that the QP goes to ERR, and false is returned. */
bool post_cqe(struct turn *t, uint32_t cqn, struct skua_cqe *cqe, bool solicited);

/* --- req.c --- */
/* Send what may be sent now; true: the budget ended first. */
bool req_run(struct turn *t);
/* Is there anything that it could send, were there budget? A guess. */
bool req_wants(const struct turn *t);
/* Has it anything to look at, whether it may send or not? */
bool req_has_work(const struct turn *t);
/* While it waits after an RNR NAK; 0: it does not. */
static inline uint64_t req_rnr_deadline(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_RNR_WAIT ?
	       le64_to_cpu(t->sqc->rnr_deadline) : 0;
}
/* Did the READ part that ends at byte @end, of a message of @len bytes, end there? */
bool req_read_part_ends(const struct turn *t, uint64_t end, uint64_t len);
/* So many PSNs more may be outstanding. */
uint32_t req_room(const struct turn *t);
/* A packet of @psns PSNs with @bytes of the message went out. */
void req_note_sent(struct turn *t, uint32_t psns, uint32_t bytes);
/* Is message @ssn one for which the peer has no receive, by the credits that it has reported? */
bool req_limited(const struct turn *t, enum skua_wqe_op op, uint32_t ssn);

/**
 * struct piece - a part of a message that is sent as one packet
 * @psn: its (first) PSN
 * @off: offset in the message
 * @len: bytes of payload; for a READ the bytes requested
 * @seq: selective repeat: number of the message, of the READ request
 * @run: XRC: so many messages before it that take a receive go to the same SRQ
 * @ackreq: ask for an acknowledgment
 * @again: it was sent before
 */
struct piece {
	uint32_t psn;
	uint64_t off;
	uint32_t len;
	uint32_t seq;
	uint8_t run;
	bool ackreq;
	bool again;
};

/* Send a packet of a SEND or WRITE. */
enum skua_vendor req_put_data(struct turn *t, const struct wqe *w, struct sge_pos *pos,
			      const struct piece *p);
/* Send a READ request. */
void req_put_read(struct turn *t, const struct wqe *w, const struct piece *p);

/* --- req_done.c --- */
/*
 * Report the WQE at ci with an error, and take the QP to ERR, or to SQE if its peer
 * does not wait for anything. @blocks: of that WQE.
 */
void req_fail(struct turn *t, uint32_t blocks, enum skua_cqe_status status,
	      enum skua_vendor vendor);
/* The message at ci, from the cache or from the ring; or SKUA_VENDOR_*. */
enum skua_vendor req_flight(struct turn *t, struct flight *f);
/* The same of the message at @index. */
enum skua_vendor req_flight_at(struct turn *t, uint32_t index, struct flight *f);
/* Is the message at ci known, and a READ? */
bool req_first_is_read(struct turn *t);
/* What a WQE that is being sent will need for that. */
struct flight req_flight_of(const struct turn *t, const struct wqe *w);
/*
 * It is the oldest message: the context itself knows it, so that QPs of which each has one under
 * way do not depend on the size of the cache that they share.
 */
void req_first_put(struct turn *t, const struct flight *f);
/* PSNs of its message. */
static inline uint32_t req_psns(const struct turn *t, const struct wqe *w)
{
	return op_is_local(w->op) ? 0 : psns_of(w->len, t->mtu);
}
/* Its last packet is acknowledged: report it if that is wanted. False: QP in error. */
bool req_complete(struct turn *t, const struct flight *f);
/* WQEs without packets at ci that wait for nobody any more. */
void req_complete_local(struct turn *t);
/* una_psn moved: give back what it held. */
void req_progress(struct turn *t);
/* Something that sending waited for has come: a turn, if there is anything to send. */
void req_kick(struct turn *t);
/* Send again from una_psn on. */
void req_go_back(struct turn *t);
/* At hi again: what was begun there is still bound to what it was. */
void req_restore_pin(struct turn *t);
/* RTR to RTS. */
void req_start(struct turn *t);
/* Something is on its way that an acknowledgment is expected of. */
void req_arm_ack(struct turn *t);
/* It waited for a page; it goes on. */
void req_unblock(struct turn *t);
/* SQE to RTS: go on with what is posted from now on. */
void req_resume(struct turn *t);

/* --- local.c --- */
enum skua_vendor local_run(struct turn *t, const struct wqe *w);

/* --- atomic.c --- */
/* Send the request of an atomic, a FLUSH or an ATOMIC_WRITE. */
enum skua_vendor atomic_send(struct turn *t, const struct wqe *w);
/* The packet alone. */
enum skua_vendor atomic_put(struct turn *t, const struct wqe *w, uint32_t psn);
/* What a request to a responder does to the value that it finds. */
struct atomic {
	enum skua_wqe_op op;
	uint64_t swap_add, compare, swap_add_mask, compare_mask;
};
uint64_t atomic_change(uint64_t val, const void *atomic);
/* Take a request apart; false: it is none. */
bool atomic_parse(const struct skua_pkt *pkt, struct atomic *a, uint64_t *va, uint32_t *rkey);

/* --- resp.c --- */
void resp_rx(struct turn *t, const struct skua_pkt *pkt);
/* Send READ responses, ACK, NAK; true: the budget ended first. */
bool resp_run(struct turn *t);
void resp_farewell(struct turn *t, enum skua_qp_state from);
/* INIT to RTR. */
void resp_start(struct turn *t);
/* A request of the expected PSN, of an earlier one. */
void resp_expected(struct turn *t, const struct skua_pkt *pkt);
void resp_duplicate(struct turn *t, const struct skua_pkt *pkt);
/* An acknowledgment is due. */
void resp_want_ack(struct turn *t);
/* Does the opcode follow the one before it? */
bool resp_sequence_ok(const struct turn *t, const struct skua_pkt *pkt);
/* Bytes of the message that are before those of this packet, whose turn it is. */
uint32_t resp_got(const struct turn *t, const struct skua_pkt *pkt);
/* RC, XRC: as resp_have_recv(); without one the peer gets an RNR NAK, or the QP fails. */
bool resp_take_recv(struct turn *t);
/* The payload of the expected packet is where it belongs: all that is left to do. */
void resp_send_done(struct turn *t, const struct skua_pkt *pkt);
void resp_write_done(struct turn *t, const struct skua_pkt *pkt);
/* An error that ends the QP: NAK @psn, and the event if it is one. */
void resp_fail_at(struct turn *t, uint32_t psn, enum ib_nak_code nak, enum skua_qp_event ev);
/* Likewise of a key that the peer named, or of the memory behind it. */
void resp_fail_key(struct turn *t, uint32_t psn, enum skua_vendor err);
/* The request of the expected PSN waits for a page: the peer shall come again. */
void resp_wait_page(struct turn *t);
/* A packet was executed, which takes up @psns PSNs. */
void resp_advance(struct turn *t, const struct skua_pkt *pkt, uint32_t psns);
/* Of an acknowledgment or a response of a message up to and with @msn. */
void resp_put_ack(struct turn *t, struct skua_pkt_build *b, uint32_t msn);
/* Can the device do what the request asks for, and does the QP allow it now? */
bool resp_supported(const struct turn *t, const struct skua_pkt *pkt);
/* The first packet for a QP that is not in RTS yet. */
void resp_comm_est(struct turn *t);
/* Report the receive WQE with @byte_len bytes and what the message's last packet says. */
bool resp_recv_ok(struct turn *t, const struct skua_pkt *pkt, struct skua_cqe *cqe,
		  enum skua_cqe_op op, uint32_t byte_len);
/* Report it as one that could not take the message; the QP stays as it is. */
void resp_recv_error(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor);
/* Are there so many bytes in the packet as its place in the message demands? */
bool resp_payload_ok(const struct turn *t, const struct skua_pkt *pkt);
/* The first packet of a WRITE says where all of them go, or each does. */
void resp_write_begin(struct turn *t, const struct skua_pkt *pkt);
/* Is the announced length that of the packets? */
bool resp_write_len_ok(const struct turn *t, const struct skua_pkt *pkt);
/* Write a packet's part; the whole is checked before the first byte is written. */
enum skua_vendor resp_write(struct turn *t, const struct skua_pkt *pkt);

/*
 * Unreliable services: is there a receive WQE? Without one the message is lost, or
 * the QP in error if the SRQ is.
 */
bool resp_have_recv(struct turn *t);
/*
 * Unreliable services: a message that has a receive WQE is dropped. A queue's own
 * WQE takes the next one, an SRQ's, which others wait for, is reported.
 */
void resp_drop_recv(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor);

/* --- uc.c --- */
void uc_rx(struct turn *t, const struct skua_pkt *pkt);

/* --- ud.c --- */
/* May the datagram be sent? */
enum skua_vendor ud_check(const struct turn *t, const struct wqe *w);
/* May it be sent in this turn? False: it is of another traffic class, whose turn it is not. */
bool ud_has_turn(struct turn *t, const struct wqe *w);
enum skua_vendor ud_send(struct turn *t, const struct wqe *w, bool solicited);
/* Does the packet have the QP's Q_Key? */
bool ud_qkey_ok(const struct qp *qp, const struct skua_pkt *pkt);
void ud_rx(struct turn *t, const struct skua_pkt *pkt);

/* --- rres.c --- */
/* A READ, atomic, FLUSH or ATOMIC_WRITE of the expected PSN, or of an earlier one. */
void rres_request(struct turn *t, const struct skua_pkt *pkt);
void rres_duplicate(struct turn *t, const struct skua_pkt *pkt);
/* A READ request before its turn takes its place. False: it cannot. */
bool rres_early(struct turn *t, const struct skua_pkt *pkt);
/* Its turn has come: as rres_request(). It has no place any more, or a PSN of its own. */
void rres_turn(struct turn *t, uint32_t psn);
/*
 * Send what answers are due: all are gone, the budget ended before them, or the next
 * one waits for a page.
 */
enum rres { RRES_DONE, RRES_BUDGET, RRES_STALLED };
enum rres rres_run(struct turn *t);
/* None of them will be sent any more. */
void rres_forget(struct turn *t);

/* --- recv.c --- */
/* Is there a receive WQE for the message: yes, not now, or never (SRQ in error)? */
enum recv { RECV_READY, RECV_NONE, RECV_DEAD };
enum recv recv_ready(struct turn *t);
/*
 * For the message that takes a receive after @ahead others, too, of which @pkt is a packet? One
 * of an SRQ is taken for it.
 */
bool recv_have(struct turn *t, const struct skua_pkt *pkt, uint32_t ahead);
/*
 * After RECV_READY, with @ahead 0, or after recv_have(): its list, as first fetched if it
 * still is there.
 */
enum skua_vendor recv_fetch(struct turn *t, uint32_t ahead, struct rlist **out);
/* A packet's payload at offset @off of the message: into the list, or kept for the CQE. */
enum skua_vendor recv_place_pkt(struct turn *t, struct rlist *l, uint64_t off,
				const struct skua_pkt *pkt);
/* That of a train likewise. */
enum skua_vendor recv_place_train(struct turn *t, struct rlist *l, uint64_t off,
				  const struct skua_train *train);
/* Payload into it at offset @off. */
enum skua_vendor recv_place(struct turn *t, struct rlist *l, uint64_t off, const void *buf,
			    uint32_t len);
/* Report it. False: the QP is in error. */
bool recv_done(struct turn *t, struct skua_cqe *cqe, bool solicited);
/* The QP ends: flush WQEs of SRQs that it has taken, *@budget at most. True: there are more. */
bool recv_give_up(struct turn *t, unsigned int *budget);
/* Do receives come from an SRQ? */
bool recv_is_shared(const struct qp *qp);
/* Has the message that is next to take a receive of an SRQ one already? */
static inline bool recv_is_taken(const struct turn *t)
{
	return rqc_is(t, SKUA_RQC_WQE_TAKEN | SKUA_RQC_RECVS);
}
/* XRC: from now on the peer's keys are of this SRQ's PD. False: not of the QP's domain. */
bool recv_use_srq(struct turn *t, uint32_t srqn);
/* XRC: the same for the SRQ that a request of the expected PSN names. */
bool recv_xrc_ok(struct turn *t, const struct skua_pkt *pkt);
/* Likewise before its turn; nothing is changed but whose keys the peer's are. */
bool recv_xrc_early_ok(struct turn *t, const struct skua_pkt *pkt);

/* --- train.c --- */
/*
 * Send what may go of a SEND or WRITE as a train. @op: opcodes by first packet, last packet.
 * False: nothing was done, the next packet is to be sent by itself.
 */
bool train_send(struct turn *t, const struct wqe *w, struct sge_pos *pos,
		const uint8_t op[2][2]);
/*
 * The QP's packets before @psn are about to be completed: their payload is not needed any
 * more even if they were not delivered, which is so if somebody else has acknowledged them.
 */
void train_completed(struct turn *t, uint32_t psn);
/* Requests of the responder in a train. False: nothing was done. */
bool resp_rx_train(struct turn *t, const struct skua_pkt *pkt, const struct skua_train *train);

/* --- comp.c --- */
void comp_rx(struct turn *t, const struct skua_pkt *pkt);
/* The ack timer expired. */
void comp_timeout(struct turn *t);
/* A message of those that have their own response is complete or a part of it is. */
void comp_answered(struct turn *t);
/* A NAK that is no RNR NAK, of the request at una_psn. */
void comp_nak(struct turn *t, uint32_t code);
/*
 * One with selective repeat, of a later request: what is missing before is a response. If the NAK
 * ends the peer's QP, responses that are on their way are waited for, and no others.
 */
void comp_nak_ahead(struct turn *t, uint32_t code);

/* The code of such a NAK, 0: there was none. */
static inline uint32_t comp_peer_nak(const struct turn *t)
{
	return le32_get_bits(t->sqc->valid, SKUA_SQC_PEER_NAK);
}

/*
 * If no answer is missing any more before what the peer expects, its NAK ends the QP. False: it
 * does not, or there is none.
 */
bool comp_nak_kept(struct turn *t, uint32_t expected);

/* An RNR NAK for it, of a peer that has completed @msn messages. */
void comp_rnr_nak(struct turn *t, uint32_t code, uint32_t msn);
/* Receives that an acknowledgment reports. */
void comp_credits(struct turn *t, const struct ib_aeth *aeth);
/*
 * All before @psn is acknowledged, which is not behind una_psn: complete what that completes,
 * up to a request that is not answered. False: the QP is in error.
 */
bool comp_upto(struct turn *t, uint32_t psn);
/* Something is lost, and the QP goes back: once for each loss, and if retries are left. */
void comp_lost(struct turn *t);
/* The response of the expected PSN; false: it is not one of the message at ci. */
void comp_expected(struct turn *t, const struct skua_pkt *pkt);
/*
 * The response of a later one, of the message @f whose first PSN is @start: into memory.
 * False: it was dropped.
 */
bool comp_early(struct turn *t, const struct skua_pkt *pkt, const struct flight *f,
		uint32_t start);

/* --- flush.c --- */
/* True: there is more to flush: of the send queue only, in SQE. */
bool flush_run(struct turn *t);

/* --- fault.c --- */
/*
 * An access of this side failed with SKUA_VENDOR_MISS: it waits, whether for this page
 * or for another, and MISS is returned; or KEY_FAULT: the page cannot be had. Any
 * other @err is returned as it is.
 */
enum skua_vendor fault_req(struct turn *t, enum skua_vendor err);
enum skua_vendor fault_resp(struct turn *t, enum skua_vendor err);
/* Does the side wait? */
static inline bool fault_waits(const struct skua_fault *f)
{
	return le32_to_cpu(f->flags) & SKUA_FAULT_WAITS;
}
static inline bool fault_req_waits(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_FAULT && fault_waits(&t->sqc->fault);
}
static inline bool fault_resp_waits(const struct turn *t)
{
	return le32_to_cpu(t->rqc->flags) & SKUA_RQC_FAULT && fault_waits(&t->rqc->fault);
}
/* The side ends. */
void fault_forget_req(struct turn *t);
void fault_forget_resp(struct turn *t);
/* Code of the RNR NAK timer to send for the responder's fault. */
uint8_t fault_rnr_code(struct turn *t);

/* --- inflight.c --- */
/*
 * The QP's list, if it is there and for this @index of the QP's present life; else a place
 * for it, not valid, which is that of the list in the set that was not used for longest.
 */
struct rlist *rlist_get(struct rlists *all, uint32_t qpn, uint32_t incarnation, uint32_t index);
/* It is done with. */
void rlist_drop(struct rlists *all, uint32_t qpn);
void rlist_drop_all(struct rlists *all);
/* @w: its WQE. */
void flight_put(struct engine *e, const struct flight *f, const struct wqe *w);
/* Of one that flight_get() has found, with kept. */
const struct sge *flight_sge(const struct engine *e, const struct flight *f);
/* False: it was overwritten. */
bool flight_get(const struct engine *e, uint32_t qpn, uint32_t incarnation, uint32_t index,
		struct flight *f);

#endif /* SKUA_ROCE_ENGINE_H */
