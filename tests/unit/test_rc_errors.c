// SPDX-License-Identifier: GPL-2.0
/*
 * RC errors, one table for each side of the protocol. The names follow what the
 * IBTA's chapter 9 demands: which error is found first, what the peer is told,
 * what completes with which status, which event comes, and where both QPs end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull
#define NO_EVENT SKUA_QP_EV_COUNT
/* What a device may do without. */
#define OPTIONAL (SKUA_CAP_ATOMIC | SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_INVALIDATE | \
		  SKUA_CAP_FLUSH | SKUA_CAP_ATOMIC_WRITE | SKUA_CAP_MW | SKUA_CAP_FAST_REG)

/* A region of one page of the buffer of side @i. */
static uint32_t region(struct rc *rc, int i, uint32_t pd, uint32_t access)
{
	struct mini *m = &rc->s[i].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x77),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(access),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(4096),
		.xlat.base = cpu_to_le64(rc->s[i].bus),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* Which key a case uses. */
enum key { GOOD, NONE, WRONG_VARIANT, OTHER_PD, NO_RIGHTS, PAGE, LOCAL_KEY };

#define ALL_RIGHTS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
			 SKUA_ACCESS_REMOTE_READ)

static uint32_t key_of(struct rc *rc, int i, enum key key)
{
	switch (key) {
	case NONE:
		return 0x3ff00;
	case WRONG_VARIANT:
		return rc->s[i].key ^ 1;
	case OTHER_PD:
		return region(rc, i, MINI_PD + 1, ALL_RIGHTS);
	case NO_RIGHTS:
		return region(rc, i, MINI_PD, 0);
	case PAGE:
		return region(rc, i, MINI_PD, ALL_RIGHTS);
	case LOCAL_KEY:
		return SKUA_RESERVED_LKEY;
	default:
		return rc->s[i].key;
	}
}

/* --- requester: errors found before anything is sent --- */

static const struct {
	const char *name;
	enum skua_wqe_op op;
	enum key key;
	uint64_t off;
	uint32_t len;
	uint32_t flags;
	enum skua_cqe_status status;
	enum skua_vendor vendor;
} local_errors[] = {
	{ "lkey names no region", SKUA_WQE_SEND, NONE, 0, 8, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_INVALID },
	{ "lkey of an earlier life", SKUA_WQE_SEND, WRONG_VARIANT, 0, 8, 0,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_KEY_INVALID },
	{ "lkey of another PD", SKUA_WQE_WRITE, OTHER_PD, 0, 8, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_PD },
	{ "source beyond the region", SKUA_WQE_WRITE, PAGE, 1, 4096, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_BOUNDS },
	{ "READ into a region without local write", SKUA_WQE_READ, NO_RIGHTS, 0, 8, 0,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_KEY_ACCESS },
	{ "READ beyond the region", SKUA_WQE_READ, PAGE, 4090, 7, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_BOUNDS },
	{ "message longer than 2 GiB", SKUA_WQE_SEND, GOOD, 0, 0x80000001, 0,
	  SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_SGE_LEN },
	{ "atomic without the capability", SKUA_WQE_ATOMIC_WRITE, GOOD, 0, 8, 0,
	  SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_OPCODE },
	{ "Ethernet on an RC QP", SKUA_WQE_ETH, GOOD, 0, 8, 0, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_OPCODE },
	{ "opcode that nobody defines", 0x77, GOOD, 0, 8, 0, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_OPCODE },
	{ "inline READ", SKUA_WQE_READ, GOOD, 0, 8, SKUA_WQE_F_INLINE, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_FORMAT },
	{ "reserved flag", SKUA_WQE_SEND, GOOD, 0, 8, BIT(20), SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_FORMAT },
	{ "flag of Ethernet", SKUA_WQE_SEND, GOOD, 0, 8, SKUA_WQE_F_VLAN,
	  SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_FORMAT },
};

static void test_requester_local(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(local_errors); k++) {
		__typeof__(local_errors[0]) *c = &local_errors[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .no_caps = OPTIONAL });
		rc_recv(&rc, 1, 0, 100);
		rc_recv(&rc, 0, 0, 100);
		/* What is before it completes, what is behind it does not happen. */
		rc_fill(rc.s[0].buf, 9000, 9);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .len = 9000, .roff = 1000 });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = c->op, .flags = c->flags,
			      .nsge = !(c->flags & SKUA_WQE_F_INLINE), .len = c->len,
			      .sge[0] = { RC_VA + c->off, key_of(&rc, 0, c->key), c->len } });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .len = 8, .roff = 100000, .quiet = true });
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_check(rc.s[1].buf + 1000, 9000, 9);
		cqe = rc_expect(&rc, 0, false, c->status);
		assert_int_equal(skua_cqe_vendor(&cqe), c->vendor);
		assert_int_equal(skua_cqe_wqe_index(&cqe), 1);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 0, false);
		rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc.s[1].buf[100000], 0);
		rc_expect_no_event(&rc, 0);
		/* The peer does not notice. */
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		rc_expect_none(&rc, 1, true);
		rc_close(&rc);
	}
}

/* --- responder: what it finds, what it says, what happens on both sides --- */

static const struct {
	const char *name;
	enum skua_wqe_op op;
	enum key rkey;
	uint64_t roff;
	uint32_t len;
	uint32_t access;	/* of the QP, 0: all */
	enum skua_cqe_status status;
	enum skua_qp_event event;
} remote_errors[] = {
	{ "WRITE: R_Key names no region", SKUA_WQE_WRITE, NONE, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: R_Key of another PD", SKUA_WQE_WRITE, OTHER_PD, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: region without remote write", SKUA_WQE_WRITE, NO_RIGHTS, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: one byte too far", SKUA_WQE_WRITE, PAGE, 1, 4096, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: end beyond the region, several packets", SKUA_WQE_WRITE, PAGE, 0, 100000, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: the reserved local key is none for the peer", SKUA_WQE_WRITE, LOCAL_KEY, 0, 8,
	  0, SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE: QP not enabled", SKUA_WQE_WRITE, GOOD, 0, 8, SKUA_ACCESS_REMOTE_READ,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
	{ "READ: R_Key names no region", SKUA_WQE_READ, NONE, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "READ: R_Key of another PD", SKUA_WQE_READ, OTHER_PD, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "READ: region without remote read", SKUA_WQE_READ, NO_RIGHTS, 0, 8, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "READ: one byte too far", SKUA_WQE_READ, PAGE, 1, 4096, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "READ: QP not enabled", SKUA_WQE_READ, GOOD, 0, 8, SKUA_ACCESS_REMOTE_WRITE,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
};

static void test_responder_keys(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(remote_errors); k++) {
		__typeof__(remote_errors[0]) *c = &remote_errors[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .access = c->access });
		rc_recv(&rc, 1, 0, 100);
		rc_fill(rc.s[0].buf, c->len, 1);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = c->op, .len = c->len,
			      .roff = c->roff, .rkey = key_of(&rc, 1, c->rkey) });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND });
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, c->status);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 0, false);
		rc_expect_event(&rc, 1, c->event);
		rc_expect_no_event(&rc, 1);
		rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		/* Nothing of it was written. */
		for (uint32_t b = 0; b < 8192; b++)
			assert_int_equal(rc.s[1].buf[b], 0);
		rc_close(&rc);
	}
}

/* A zero length access needs no valid key. */
static void test_zero_length_key_c9_88(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .rkey = 0x12345678 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .rkey = 0x12345678 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

/* Errors that the receive WQE reports: then no event comes. */
static const struct {
	const char *name;
	enum key lkey;
	uint32_t room, len;
	enum skua_cqe_status recv, send;
} recv_errors[] = {
	{ "message one byte longer than the receive", GOOD, 99, 100, SKUA_CQE_LOC_LEN_ERR,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "longer in the third packet", GOOD, 2000, 3000, SKUA_CQE_LOC_LEN_ERR,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "receive of no length", GOOD, 0, 1, SKUA_CQE_LOC_LEN_ERR, SKUA_CQE_REM_INV_REQ_ERR },
	{ "lkey names no region", NONE, 100, 100, SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_REM_OP_ERR },
	{ "lkey without local write", NO_RIGHTS, 100, 100, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_CQE_REM_OP_ERR },
	{ "buffer beyond the region", PAGE, 5000, 5000, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_CQE_REM_OP_ERR },
	{ "element longer than 2 GiB", GOOD, 0xffffffff, 10, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_CQE_REM_OP_ERR },
};

static void test_responder_receive(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(recv_errors); k++) {
		__typeof__(recv_errors[0]) *c = &recv_errors[k];
		struct sge sge;

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 3 });
		sge = (struct sge){ RC_VA, key_of(&rc, 1, c->lkey), c->room };
		rc_recv(&rc, 1, 0, 8);
		rc_recv_sge(&rc, 1, &sge, 1);
		rc_recv(&rc, 1, 0, 100);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = c->len });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, c->send);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, c->recv);
		rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		rc_close(&rc);
	}
}

/* --- responder: sequences no requester of ours would send --- */

#define O(op)	IB_OPCODE(RC, op)

static const struct {
	const char *name;
	struct rc_forged pkt[3];
	unsigned int n;
	enum ib_nak_code nak;
	enum skua_qp_event event;
	enum skua_cqe_status recv;	/* of the receive, OK: it is flushed */
} sequences[] = {
	{ "SEND MIDDLE without FIRST", { { O(SEND_MIDDLE), 256, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "SEND LAST without FIRST", { { O(SEND_LAST), 1, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE MIDDLE without FIRST", { { O(WRITE_MIDDLE), 256, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "FIRST after FIRST", { { O(SEND_FIRST), 256, 0 }, { O(SEND_FIRST), 256, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "ONLY after FIRST", { { O(SEND_FIRST), 256, 0 }, { O(SEND_ONLY), 1, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "READ after FIRST", { { O(WRITE_FIRST), 256, 512 }, { O(READ_REQUEST), 0, 8 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE in a SEND", { { O(SEND_FIRST), 256, 0 }, { O(WRITE_LAST), 1, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "SEND in a WRITE", { { O(WRITE_FIRST), 256, 512 }, { O(SEND_LAST), 256, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "FIRST shorter than the MTU", { { O(SEND_FIRST), 255, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "FIRST longer than the MTU", { { O(SEND_FIRST), 257, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "ONLY longer than the MTU", { { O(SEND_ONLY), 257, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "LAST of no length", { { O(SEND_FIRST), 256, 0 }, { O(SEND_LAST), 0, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE ONLY with less than announced", { { O(WRITE_ONLY), 8, 9 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE ONLY with more than announced", { { O(WRITE_ONLY), 8, 7 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE FIRST with all that was announced", { { O(WRITE_FIRST), 256, 256 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE goes on behind its end", { { O(WRITE_FIRST), 256, 300 },
	  { O(WRITE_MIDDLE), 256, 0 } }, 2, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE LAST too early", { { O(WRITE_FIRST), 256, 600 }, { O(WRITE_LAST), 256, 0 } }, 2,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "WRITE longer than 2 GiB (C9-94)", { { O(WRITE_FIRST), 256, 0x80000001 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "READ longer than 2 GiB (C9-94)", { { O(READ_REQUEST), 0, 0x80000001 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "compare and swap without the capability", { { O(CMP_SWAP), 0, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "fetch and add without the capability", { { O(FETCH_ADD), 0, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "SEND with invalidate without the capability", { { O(SEND_ONLY_INV), 8, 0 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "FLUSH without the capability", { { O(FLUSH), 0, 8 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "ATOMIC WRITE without the capability", { { O(ATOMIC_WRITE), 8, 8 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "wrong length before wrong key", { { O(WRITE_ONLY), 8, 1u << 30 } }, 1,
	  IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR, 0 },
	{ "wrong length before missing receive", { { O(SEND_ONLY), 8, 0 },
	  { O(SEND_ONLY), 257, 0 } }, 2, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR,
	  SKUA_CQE_GENERAL_ERR },
	{ "SEND too long for the receive", { { O(SEND_FIRST), 256, 0 },
	  { O(SEND_MIDDLE), 256, 0 } }, 2, IB_NAK_INVALID_REQUEST, NO_EVENT,
	  SKUA_CQE_LOC_LEN_ERR },
};

/* The last response that side @i sent; its AETH's syndrome. */
static uint8_t last_syndrome(struct rc *rc, int i, uint32_t *psn)
{
	struct fake_frame *f;
	struct skua_pkt pkt;
	uint8_t syndrome = 0xff;

	while ((f = fake_tx(&rc->s[i].f))) {
		assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
		if (pkt.aeth)
			syndrome = pkt.aeth->syndrome;
		*psn = pkt.psn;
		free(f);
	}
	return syndrome;
}

static void test_responder_sequences(void **state)
{
	struct rc rc;
	uint32_t psn;

	(void)state;
	for (size_t k = 0; k < N(sequences); k++) {
		__typeof__(sequences[0]) *c = &sequences[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 0xfffffe },
					       .no_caps = OPTIONAL });
		rc_recv(&rc, 1, 0, 300);
		for (unsigned int i = 0; i < c->n; i++)
			rc_forge(&rc, &c->pkt[i], (0xfffffe + i) & IB_PSN_MASK);
		fake_run(&rc.s[1].f);
		assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_NAK | c->nak);
		assert_int_equal(psn, (0xfffffe + c->n - 1) & IB_PSN_MASK);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		if (c->recv == SKUA_CQE_GENERAL_ERR)
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
		else
			rc_expect(&rc, 1, true, c->recv ? c->recv : SKUA_CQE_WR_FLUSH_ERR);
		if (c->event != NO_EVENT)
			rc_expect_event(&rc, 1, c->event);
		rc_expect_no_event(&rc, 1);
		/* In ERR it hears nothing any more. */
		rc_forge(&rc, &c->pkt[0], (0xfffffe + c->n) & IB_PSN_MASK);
		fake_run(&rc.s[1].f);
		assert_null(fake_tx(&rc.s[1].f));
		assert_true(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE) >= 1);
		rc_close(&rc);
	}
}

/* More READs at once than agreed. */
static void test_responder_read_depth(void **state)
{
	struct rc rc;
	uint32_t psn;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .rd_atomic = 1 + 4 });
	for (uint32_t k = 0; k < 5; k++)
		rc_forge(&rc, &(struct rc_forged){ O(READ_REQUEST), 0, 256 }, k);
	fake_run(&rc.s[1].f);
	assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
	assert_int_equal(psn, 4);
	rc_expect_event(&rc, 1, SKUA_QP_EV_REQ_ERR);
	/* The four before it were answered first. */
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RDMA_TX_PKTS), 5);
	rc_close(&rc);
}

/* Sequence errors: one NAK for a gap, none after it until the gap is closed. */
static void test_responder_gap(void **state)
{
	struct rc rc;
	uint32_t psn;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	for (uint32_t k = 1; k < 10; k++) {
		rc_forge(&rc, &(struct rc_forged){ O(WRITE_ONLY), 8, 8 }, k);
		fake_run(&rc.s[1].f);
	}
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_NAK), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_SEQUENCE), 9);
	assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_NAK | IB_NAK_PSN_SEQUENCE);
	assert_int_equal(psn, 0);
	rc_forge(&rc, &(struct rc_forged){ O(WRITE_ONLY), 8, 8 }, 0);
	fake_run(&rc.s[1].f);
	assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_ACK);
	assert_int_equal(psn, 0);
	/* Another gap, another NAK. */
	rc_forge(&rc, &(struct rc_forged){ O(WRITE_ONLY), 8, 8 }, 5);
	fake_run(&rc.s[1].f);
	assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_NAK | IB_NAK_PSN_SEQUENCE);
	assert_int_equal(psn, 1);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	/* An old one is acknowledged again, with the newest PSN. */
	rc_forge(&rc, &(struct rc_forged){ O(WRITE_ONLY), 8, 8 }, 0);
	fake_run(&rc.s[1].f);
	assert_int_equal(last_syndrome(&rc, 1, &psn), IB_AETH_ACK);
	assert_int_equal(psn, 0);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), 1);
	rc_close(&rc);
}

/* --- receiver not ready --- */

static void test_rnr(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t count = 0; count < 7; count++) {
		rc_open(&rc, &(struct rc_opt){ .rnr_retry = 1 + count });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
		rc_pump_for(&rc, SEC);
		rc_expect(&rc, 0, false, SKUA_CQE_RNR_RETRY_EXC_ERR);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_RNR), count + 1);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		/* The receiver has nothing to be blamed for. */
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		rc_close(&rc);
	}
	/* 7 is for ever; the wait is the receiver's, here code 12: 640 us. */
	rc_open(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE_IMM, .len = 9000 });
	rc_pump_for(&rc, 640000 - 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_RNR), 1);
	rc_pump_for(&rc, 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_RNR), 2);
	rc_pump_for(&rc, SEC);
	assert_true(rc_cnt(&rc, 1, SKUA_CNT_TX_RNR) > 1000);
	rc_expect_none(&rc, 0, false);
	rc_recv(&rc, 1, 0, 8);
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc_recv(&rc, 1, 0, 0);
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	rc_close(&rc);
}

/* --- completer --- */

static void answer(struct rc *rc, uint8_t op, uint32_t psn, uint8_t syndrome, uint32_t payload)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), op, psn), 0);
	if (b.aeth)
		ib_aeth_put(b.aeth, syndrome, 1);
	memset(b.payload, 0x33, payload);
	rc_inject(rc, 0, &b, payload);
	fake_run(&rc->s[0].f);
}

static const struct {
	const char *name;
	uint8_t syndrome;
	uint32_t psn;
	enum skua_cqe_status status;	/* of the first WQE; OK: nothing happens */
	unsigned int done;		/* WQEs completed before the error */
} naks[] = {
	{ "NAK: invalid request", IB_AETH_NAK | IB_NAK_INVALID_REQUEST, 10,
	  SKUA_CQE_REM_INV_REQ_ERR, 0 },
	{ "NAK: remote access", IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 10,
	  SKUA_CQE_REM_ACCESS_ERR, 0 },
	{ "NAK: remote operation", IB_AETH_NAK | IB_NAK_REMOTE_OP, 10, SKUA_CQE_REM_OP_ERR, 0 },
	{ "NAK acknowledges what is before it", IB_AETH_NAK | IB_NAK_REMOTE_OP, 12,
	  SKUA_CQE_REM_OP_ERR, 2 },
	{ "NAK in the middle of a message", IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 14,
	  SKUA_CQE_REM_ACCESS_ERR, 2 },
	{ "NAK code that nobody defines", IB_AETH_NAK | 9, 10, SKUA_CQE_OK, 0 },
	{ "syndrome that nobody defines", 0x40, 10, SKUA_CQE_OK, 0 },
	{ "NAK of a PSN not sent", IB_AETH_NAK | IB_NAK_REMOTE_OP, 15, SKUA_CQE_OK, 0 },
	{ "NAK of a PSN long ago", IB_AETH_NAK | IB_NAK_REMOTE_OP, 9, SKUA_CQE_OK, 0 },
	{ "NAK half the PSN space away", IB_AETH_NAK | IB_NAK_REMOTE_OP, 0x80000a, SKUA_CQE_OK,
	  0 },
	{ "ACK of a PSN not sent", 0x1f, 15, SKUA_CQE_OK, 0 },
};

static void test_completer_naks(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(naks); k++) {
		__typeof__(naks[0]) *c = &naks[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 10 } });
		/* PSN 10; 11; 12 to 14. */
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 700 });
		fake_run(&rc.s[0].f);
		answer(&rc, O(ACK), c->psn, c->syndrome, 0);
		for (unsigned int i = 0; i < c->done; i++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		if (c->status) {
			rc_expect(&rc, 0, false, c->status);
			for (unsigned int i = c->done + 1; i < 3; i++)
				rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
			assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		} else {
			assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
			assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RX_BAD_RESP), c->psn != 9);
		}
		rc_expect_none(&rc, 0, false);
		rc_close(&rc);
	}
}

/*
 * Selective repeat: a NAK of a request behind a READ whose response is missing is kept until that
 * came. A peer that acknowledges the refused request afterwards, or refuses what it has executed,
 * fails no request that it did not refuse, and none that was never sent.
 */
static void test_nak_kept(void **state)
{
	static const struct {
		const char *name;
		uint8_t syndrome[2];	/* of two answers to PSN 11, 0: there is none */
		bool refused;
	} cases[] = {
		{ "NAK", { IB_AETH_NAK | IB_NAK_REMOTE_OP }, true },
		{ "NAK, then ACK", { IB_AETH_NAK | IB_NAK_REMOTE_OP, 0x1f }, false },
		{ "ACK, then NAK", { 0x1f, IB_AETH_NAK | IB_NAK_REMOTE_OP }, false },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		print_message("%s\n", cases[k].name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 10 },
					       .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		fake_run(&rc.s[0].f);
		for (unsigned int i = 0; i < 2 && cases[k].syndrome[i]; i++)
			answer(&rc, O(ACK), 11, cases[k].syndrome[i], 0);
		rc_expect_none(&rc, 0, false);
		answer(&rc, O(READ_RESP_ONLY), 10, 0x1f, 8);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, cases[k].refused ? SKUA_CQE_REM_OP_ERR : SKUA_CQE_OK);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(rc_state(&rc, 0), cases[k].refused ? SKUA_QP_ERR : SKUA_QP_RTS);
		rc_close(&rc);
	}
}

static const struct {
	const char *name;
	uint8_t op;
	uint32_t psn, payload;
	bool ends;		/* BAD_RESP_ERR; else dropped */
} responses[] = {
	{ "READ response shorter than its place", O(READ_RESP_FIRST), 10, 255, true },
	{ "READ response longer than the MTU", O(READ_RESP_FIRST), 10, 257, true },
	{ "READ response that ends too early", O(READ_RESP_ONLY), 10, 256, true },
	{ "READ response behind one that is missing", O(READ_RESP_MIDDLE), 11, 256, false },
	{ "READ response of a PSN not sent", O(READ_RESP_ONLY), 13, 8, false },
	{ "READ response of a PSN long ago", O(READ_RESP_ONLY), 9, 8, false },
	{ "atomic response without an atomic", O(ATOMIC_ACK), 10, 0, false },
	{ "XRC response for an RC QP", IB_OPCODE(XRC, READ_RESP_FIRST), 10, 256, false },
};

static void test_completer_responses(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(responses); k++) {
		__typeof__(responses[0]) *c = &responses[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 10 } });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 600 });
		fake_run(&rc.s[0].f);
		answer(&rc, c->op, c->psn, 0, c->payload);
		if (c->ends)
			rc_expect(&rc, 0, false, SKUA_CQE_BAD_RESP_ERR);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(rc_state(&rc, 0), c->ends ? SKUA_QP_ERR : SKUA_QP_RTS);
		for (uint32_t i = 0; i < 1000; i++)
			assert_int_equal(rc.s[0].buf[i], 0);
		rc_close(&rc);
	}
}

/* An ACK of a READ's PSNs says that its responses are lost. */
static void test_completer_implied_nak(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 10 } });
	rc_fill(rc.s[1].buf, 600, 5);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 600 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .roff = 1000 });
	fake_run(&rc.s[0].f);
	answer(&rc, O(ACK), 13, IB_AETH_CREDIT_INVALID, 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_IMPLIED_NAK_SEQ_ERR), 1);
	/* Once for each loss. */
	answer(&rc, O(ACK), 13, IB_AETH_CREDIT_INVALID, 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_IMPLIED_NAK_SEQ_ERR), 1);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[0].buf, 600, 5);
	rc_close(&rc);
}

/* --- completion queue --- */

/* A completion that cannot be written ends the QP, with an event. */
static void test_cq_overrun(void **state)
{
	struct rc rc;
	struct skua_eqe eqe;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .log_cq = 2 });
	for (unsigned int k = 0; k < 5; k++)
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	rc_pump(&rc);
	assert_true(mini_eq_next(&rc.s[0].m, &rc.s[0].m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_CQ_ERR);
	rc_expect_event(&rc, 0, SKUA_QP_EV_FATAL);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	for (unsigned int k = 0; k < 4; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);
}

/* A QP has a limit of its own for what lies in its WQEs. */
static void test_max_inline(void **state)
{
	struct skua_sqc *sqc;
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	sqc = ctx_get(rc.s[0].f.dev, SKUA_ICM_SQC, qp_index(rc.s[0].qp.qpn));
	sqc->cfg.max_inline = cpu_to_le32(16);
	ctx_put(rc.s[0].f.dev, sqc);
	for (uint32_t len = 16; len <= 17; len++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = len,
						 .flags = SKUA_WQE_F_INLINE });
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, len == 16 ? SKUA_CQE_OK : SKUA_CQE_LOC_LEN_ERR);
	}
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_SGE_LEN);
	rc_close(&rc);
}

/* What lies in a receive WQE behind its end mark is of an earlier one. */
static void test_recv_end(void **state)
{
	struct sge sge[4];
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .log_rq = 1 });
	for (unsigned int k = 0; k < 4; k++)
		sge[k] = (struct sge){ RC_VA + k * 1000, rc.s[1].key, 100 };
	for (unsigned int k = 0; k < 2; k++) {
		rc_recv_sge(&rc, 1, sge, 4);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 400 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
	}
	rc_recv_sge(&rc, 1, sge, 1);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 200 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_REM_INV_REQ_ERR);
	rc_expect(&rc, 1, true, SKUA_CQE_LOC_LEN_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recv_end),
		cmocka_unit_test(test_max_inline),
		cmocka_unit_test(test_requester_local),
		cmocka_unit_test(test_responder_keys),
		cmocka_unit_test(test_zero_length_key_c9_88),
		cmocka_unit_test(test_responder_receive),
		cmocka_unit_test(test_responder_sequences),
		cmocka_unit_test(test_responder_read_depth),
		cmocka_unit_test(test_responder_gap),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_completer_naks),
		cmocka_unit_test(test_nak_kept),
		cmocka_unit_test(test_completer_responses),
		cmocka_unit_test(test_completer_implied_nak),
		cmocka_unit_test(test_cq_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
