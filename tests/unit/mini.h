/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A driver of a few hundred lines, for tests: brings a device up through its
 * registers and commands as the real one does, and makes queues and regions. What
 * fails here fails the test, except where a status is returned.
 */
#ifndef SKUA_TEST_MINI_H
#define SKUA_TEST_MINI_H

#include "fake.h"

/* ICM is laid out for so many; pages are mapped for the first MINI_MAPPED of each. */
#define MINI_LOG_QP	12
#define MINI_LOG_MPT	12
#define MINI_LOG_MTT	16
#define MINI_MAPPED	256	/* unless the test has more QPs */
#define MINI_CMDQ_LOG	4

/* EQs of a device that is up. */
enum { MINI_EQ_ASYNC, MINI_EQ_COMP, MINI_EQS };
#define MINI_EQ_LOG	6

#define MINI_PD		7
#define MINI_XRCD	9	/* of XRC_TGT QPs */
#define MINI_UAR	1	/* UAR page of the queues; the EQs' is 0 */
#define MINI_MTU	4200	/* of the port: path MTU 4096 */

struct mini_eq {
	uint32_t eqn;
	uint32_t log;
	uint32_t uar;
	uint32_t ci;
	uint64_t ring;
};

struct mini_cq {
	uint32_t cqn;
	uint32_t log;
	uint32_t size;		/* of a CQE */
	uint32_t ci;
	uint64_t ring;
	uint64_t dbr;
	unsigned int serial;
};

struct mini_qp {
	uint32_t qpn;
	enum skua_qp_type type;
	uint32_t log_sq, log_rq, log_stride;
	uint64_t sq, rq;
	uint64_t dbr;
	uint32_t sq_pi, rq_pi;
	uint32_t sq_told;	/* what the record has */
	bool suppress;
	bool shared;		/* receives come from an SRQ; of XRC_TGT they always do */
	struct mini_cq *scq, *rcq;
};

/**
 * struct mini - the driver's state
 * @f: the device's surroundings
 * @cmdq: bus address of the command ring
 * @in: input mailbox
 * @out: output mailbox
 * @caps: as told by QUERY_DEVICE
 * @base: where each ICM table begins
 * @icm: bus address of the memory mapped there
 * @qps: QPs that there is room for, if more than usual
 * @log_lrc: log2 of the number of loss recovery contexts; 0: as many as QPs
 * @gen: generation of command tokens
 * @slot: next slot of the ring
 * @qp_flags: SKUA_QP_F_* that QPs made from now on have besides
 * @rec_ring: recovery ring of the QP that was given one last
 * @ring_align: of rings of QPs
 * @next_cqn: numbers not used yet
 * @next_qpn: likewise
 * @next_mpt: likewise
 * @next_mtt: likewise
 * @eq: by number
 */
struct mini {
	struct fake *f;
	uint64_t cmdq, in, out;
	uint64_t caps;
	uint64_t base[SKUA_ICM_TABLES];
	uint64_t icm[SKUA_ICM_TABLES];
	uint32_t qps;
	uint32_t log_lrc;
	uint16_t gen;
	uint16_t slot;
	uint32_t qp_flags;
	uint32_t next_cqn, next_qpn, next_mpt, next_mtt;
	uint64_t rec_ring;
	uint32_t ring_align;
	struct mini_eq eq[MINI_EQS];
};

/* Ring on, nothing more. */
void mini_ring_up(struct mini *m, struct fake *f);
/* Everything: ICM mapped, device started, EQs made and armed, port on. */
void mini_up(struct mini *m, struct fake *f);
/* With room for @qps QPs, whose rings lie close together. */
void mini_up_qps(struct mini *m, struct fake *f, uint32_t qps);
/* And 2^@log_lrc loss recovery contexts; 0: as many as QPs. */
void mini_up_tables(struct mini *m, struct fake *f, uint32_t qps, uint32_t log_lrc);
/* The parts of it. */
void mini_init_in(struct mini *m, struct skua_cmd_init_device_in *in);
int mini_map(struct mini *m, uint64_t addr, uint64_t bus, unsigned int log_pages);
void mini_map_all(struct mini *m);
/* Where an entry of a table lies in guest memory. */
void *mini_icm(struct mini *m, enum skua_icm_table table, uint64_t index);

/* Ring for a command, which the device does not do yet; its slot. */
struct skua_cmd_slot *mini_cmd_start(struct mini *m, enum skua_cmd_op op, const void *in,
				     size_t in_len, size_t out_len);
/* Execute a command; its status. */
int mini_cmd(struct mini *m, enum skua_cmd_op op, const void *in, size_t in_len, void *out,
	     size_t out_len);
/* Commands whose input is an index. */
int mini_index(struct mini *m, enum skua_cmd_op op, uint32_t index, void *out, size_t out_len);
/* A command that must succeed. */
void mini_ok(struct mini *m, enum skua_cmd_op op, const void *in, size_t in_len);
uint64_t mini_counter(struct mini *m, enum skua_counter cnt);

struct skua_eqc mini_eqc(struct mini *m, struct mini_eq *eq, uint32_t eqn, uint32_t log,
			 uint32_t uar, uint32_t vector);
int mini_eq_create(struct mini *m, struct mini_eq *eq, uint32_t eqn, uint32_t log, uint32_t uar,
		   uint32_t vector);
/* Take the next event; false: there is none. The consumer index goes by doorbell. */
bool mini_eq_next(struct mini *m, struct mini_eq *eq, struct skua_eqe *eqe);
void mini_eq_db(struct mini *m, struct mini_eq *eq, bool arm);

struct skua_cqc mini_cqc(struct mini *m, struct mini_cq *cq, uint32_t log, uint32_t cqe_size);
void mini_cq_create(struct mini *m, struct mini_cq *cq, uint32_t log);
/* Take the next completion; the record follows. False: there is none. */
bool mini_cq_next(struct mini *m, struct mini_cq *cq, struct skua_cqe *cqe);
/* Is there one? */
bool mini_cq_peek(struct mini *m, const struct mini_cq *cq);
void mini_cq_arm(struct mini *m, struct mini_cq *cq, bool solicited);

/* A contiguous region; its key. */
uint32_t mini_mr(struct mini *m, uint64_t va, uint64_t bus, uint64_t len, uint32_t access);
/* One of @npages pages of 1 << @log_page bytes through the MTT. */
uint32_t mini_mr_mtt(struct mini *m, uint64_t va, const uint64_t *page, uint32_t npages,
		     uint32_t log_page, uint32_t offset, uint64_t len, uint32_t access);

/* A GID entry, IPv4 10.0.0.0 + @host or IPv6 fd00::@host, of the port's MAC address. */
int mini_gid(struct mini *m, uint32_t index, uint16_t host, bool ipv6, uint16_t vlan);
void mini_gid_addr(uint8_t gid[16], uint16_t host, bool ipv6);

struct skua_cmd_create_qp_in mini_qp_in(struct mini *m, struct mini_qp *qp,
					enum skua_qp_type type, struct mini_cq *scq,
					struct mini_cq *rcq, uint32_t log_sq, uint32_t log_rq,
					uint32_t log_stride);
void mini_qp_create(struct mini *m, struct mini_qp *qp, enum skua_qp_type type,
		    struct mini_cq *scq, struct mini_cq *rcq, uint32_t log_sq, uint32_t log_rq,
		    uint32_t log_stride);
/* Change state with the attributes in @attr and @mask; the command's status. */
int mini_qp_modify(struct mini *m, const struct mini_qp *qp, enum skua_qp_state state,
		   uint32_t mask, const struct skua_qp_attr *attr);
/* An RC QP on its way to RTS, to the QP @dest of the host mini_gid(@host). */
struct skua_qp_attr mini_rc_attr(uint32_t dest, uint16_t host, const uint8_t dmac[6], bool ipv6,
				 uint32_t sq_psn, uint32_t rq_psn, uint32_t mtu_code);
/* Of a UC or datagram QP too: what its type has no use for is left out. */
void mini_rc_to_rts(struct mini *m, const struct mini_qp *qp, const struct skua_qp_attr *attr);
/* A RAW_ETH QP to RTS. */
void mini_eth_to_rts(struct mini *m, const struct mini_qp *qp);

/*
 * Put a send WQE of @nseg segments into the ring: number of segments and index
 * are filled in. Visible to the device after mini_ring().
 */
void mini_post(struct mini *m, struct mini_qp *qp, const void *wqe, unsigned int nseg);
/* With SKUA_QP_F_DB_SUPPRESS: true if the device wanted a doorbell. */
bool mini_ring(struct mini *m, struct mini_qp *qp);
/* A receive WQE; the record follows. */
void mini_recv(struct mini *m, struct mini_qp *qp, const struct skua_wqe_data *sge,
	       unsigned int nsge);

#endif /* SKUA_TEST_MINI_H */
