// SPDX-License-Identifier: GPL-2.0
/*
 * Statements (c, o, ca) and sections (s) of the IBTA's volume 1 that no table elsewhere
 * is about, one case each, named after its number. Documentation/ibta.rst has them all, with the rule and where it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rc.h"

#define O(op)	IB_OPCODE(RC, op)
#define FIRST	0xfffffeu	/* PSNs go over the end */

/* A request of 8 bytes at @off, or a READ of @len. */
static void forge_flags(struct rc *rc, uint8_t op, uint32_t psn, uint64_t off, uint32_t len,
			uint32_t rkey, uint8_t resv8a)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 256];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op, psn & IB_PSN_MASK), 0);
	b.bth->resv8a = resv8a;
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + off, rkey, len);
	if (b.immdt)
		memset(b.immdt->data, 0, sizeof(b.immdt->data));
	memset(b.payload, 0x77, 8);
	rc_inject(rc, 1, &b, op == O(READ_REQUEST) ? 0 : 8);
}

static void forge(struct rc *rc, uint8_t op, uint32_t psn, uint64_t off, uint32_t len)
{
	forge_flags(rc, op, psn, off, len, rc->s[1].key, 0);
}

/* What side 1 sends next; false: nothing. */
static bool answer(struct rc *rc, uint8_t *op, uint32_t *psn, uint8_t *syndrome, uint32_t *msn)
{
	struct fake_frame *f = fake_tx(&rc->s[1].f);
	struct skua_pkt pkt;

	if (!f)
		return false;
	assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
	*op = pkt.opcode;
	*psn = (pkt.psn - FIRST) & IB_PSN_MASK;
	*syndrome = pkt.aeth ? pkt.aeth->syndrome : 0xff;
	*msn = pkt.aeth ? be24_get(pkt.aeth->msn) : 0;
	free(f);
	return true;
}

static void open_rc(struct rc *rc)
{
	rc_open(rc, &(struct rc_opt){ .mtu_code = 1, .psn = { FIRST } });
}

/* A SEND or WRITE that comes again is acknowledged again, and not executed. */
static void c9_105_duplicate_acknowledged_not_executed(void **state)
{
	static const uint8_t ops[] = { O(WRITE_ONLY), O(SEND_ONLY) };
	uint32_t psn, msn, msn_before;
	uint8_t op, syndrome;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		open_rc(&rc);
		rc_recv(&rc, 1, 64, 8);
		rc_recv(&rc, 1, 64, 8);
		for (uint32_t i = 0; i < 2; i++) {
			forge(&rc, ops[k], FIRST + i, 0, 8);
			fake_run(&rc.s[1].f);
			assert_true(answer(&rc, &op, &psn, &syndrome, &msn_before));
		}
		memset(rc.s[1].buf, 0, 128);
		forge(&rc, ops[k], FIRST, 0, 8);
		fake_run(&rc.s[1].f);
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
		assert_int_equal(op, O(ACK));
		assert_int_equal(syndrome & IB_AETH_TYPE_MASK, IB_AETH_ACK);
		/* Of the last that was executed, not of the one that came. */
		assert_int_equal(psn, 1);
		assert_int_equal(msn, msn_before);
		assert_false(answer(&rc, &op, &psn, &syndrome, &msn));
		for (unsigned int i = 0; i < 128; i++)
			assert_int_equal(rc.s[1].buf[i], 0);
		rc_close(&rc);
	}
}

/*
 * Duplicates are answered in the order of PSNs: one that is earlier stops the answer to
 * a later one, new or repeated, and is answered first.
 */
static void c9_110_earliest_duplicate_first(void **state)
{
	uint32_t psn, msn, last = 0, firsts = 0;
	uint8_t op, syndrome;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	/* Two READs of four packets each: PSNs 0 to 3 and 4 to 7. */
	forge(&rc, O(READ_REQUEST), FIRST, 0, 1024);
	forge(&rc, O(READ_REQUEST), FIRST + 4, 4096, 1024);
	fake_run(&rc.s[1].f);
	for (uint32_t k = 0; k < 8; k++) {
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
		assert_int_equal(psn, k);
	}
	/* Both again, the later one first. */
	forge(&rc, O(READ_REQUEST), FIRST + 4, 4096, 1024);
	forge(&rc, O(READ_REQUEST), FIRST, 0, 1024);
	fake_run(&rc.s[1].f);
	for (uint32_t k = 0; answer(&rc, &op, &psn, &syndrome, &msn); k++) {
		firsts += op == O(READ_RESP_FIRST);
		if (!k)
			assert_int_equal(psn, 0);
		else
			assert_int_equal(psn, last + 1);
		last = psn;
	}
	/* What was asked for is answered to its end. */
	assert_int_equal(last, 7);
	assert_int_equal(firsts, 2);
	rc_close(&rc);
}

/* The ack timer: not before 4.096 us times two to the code, nor after four times that. */
static void c9_140_local_ack_timeout(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t code = 1; code < 24; code += 3) {
		uint64_t t = 4096ull << code;

		rc_open(&rc, &(struct rc_opt){ .timeout = code });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		fake_run(&rc.s[0].f);
		free(fake_tx(&rc.s[0].f));
		fake_advance(&rc.s[0].f, t - 1);
		assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		fake_advance(&rc.s[0].f, 3 * t + 1);
		assert_true(rc_cnt(&rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR) >= 1);
		rc_close(&rc);
	}
}

/* A READ counts as a message when it was taken: each of its responses tells so. */
static void c9_148_read_counts_when_taken(void **state)
{
	uint8_t op, syndrome;
	uint32_t psn, msn;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	forge(&rc, O(WRITE_ONLY), FIRST, 0, 8);
	fake_run(&rc.s[1].f);
	assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
	assert_int_equal(msn, 1);
	forge(&rc, O(READ_REQUEST), FIRST + 1, 0, 1024);
	fake_run(&rc.s[1].f);
	for (unsigned int k = 0; k < 4; k++) {
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
		/* Those in the middle have no AETH. */
		if (k == 0 || k == 3)
			assert_int_equal(msn, 2);
	}
	rc_close(&rc);
}

/* A violation of the R_Key is an event of the responder's QP, if no receive tells it. */
static void c9_222_1_rkey_violation_is_an_event(void **state)
{
	struct rc rc;

	(void)state;
	open_rc(&rc);
	rc_recv(&rc, 1, 0, 64);
	forge_flags(&rc, O(WRITE_ONLY), FIRST, 0, 8, 0x3ff00, 0);
	fake_run(&rc.s[1].f);
	rc_expect_event(&rc, 1, SKUA_QP_EV_ACCESS_ERR);
	rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&rc);
}

/*
 * A WRITE without immediate data takes no receive, nor one with it that fails: the
 * receive is there still, and flushed with the QP.
 */
static void c10_87_failed_write_takes_no_receive(void **state)
{
	uint8_t op, syndrome;
	uint32_t psn, msn;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	rc_recv(&rc, 1, 0, 64);
	forge(&rc, O(WRITE_ONLY), FIRST, 0, 8);
	fake_run(&rc.s[1].f);
	rc_expect_none(&rc, 1, true);
	assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
	forge_flags(&rc, O(WRITE_ONLY_IMM), FIRST + 1, 0, 8, 0x3ff00, 0);
	fake_run(&rc.s[1].f);
	assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
	assert_int_equal(syndrome, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS);
	rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&rc, 1, true);
	rc_close(&rc);
}

/* Work that is posted to a QP in ERR completes as flushed. */
static void c10_96_posted_in_error_is_flushed(void **state)
{
	struct rc rc;

	(void)state;
	open_rc(&rc);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	fake_run(&rc.s[0].f);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	assert_null(fake_tx(&rc.s[0].f));
	rc_close(&rc);
}

/* What fails is reported, whether or not its success would have been. */
static void s10_7_3_1_unsignaled_error_is_reported(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .quiet = true });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .quiet = true,
					 .rkey = 0x3ff00 });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), 1);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);
}

/* A READ may be repeated in part, from within: the answers are as those of the whole. */
static void s9_4_4_read_repeated_in_part(void **state)
{
	uint8_t op, syndrome;
	uint32_t psn, msn;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	forge(&rc, O(READ_REQUEST), FIRST, 0, 1024);
	fake_run(&rc.s[1].f);
	for (uint32_t k = 0; k < 4; k++)
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
	forge(&rc, O(READ_REQUEST), FIRST + 2, 512, 512);
	fake_run(&rc.s[1].f);
	for (uint32_t k = 2; k < 4; k++) {
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
		assert_int_equal(psn, k);
		assert_int_equal(op, k == 2 ? O(READ_RESP_FIRST) : O(READ_RESP_LAST));
	}
	assert_false(answer(&rc, &op, &psn, &syndrome, &msn));
	rc_close(&rc);
}

/* The bits of InfiniBand's congestion control mean nothing here. */
static void ca17_29_becn_fecn_ignored(void **state)
{
	static const uint8_t bits[] = { IB_BTH_FECN, IB_BTH_BECN, IB_BTH_FECN | IB_BTH_BECN };
	uint8_t op, syndrome;
	uint32_t psn, msn;
	struct rc rc;

	(void)state;
	open_rc(&rc);
	for (uint32_t k = 0; k < 3; k++) {
		memset(rc.s[1].buf, 0, 8);
		forge_flags(&rc, O(WRITE_ONLY), FIRST + k, 0, 8, rc.s[1].key, bits[k]);
		fake_run(&rc.s[1].f);
		assert_true(answer(&rc, &op, &psn, &syndrome, &msn));
		assert_int_equal(psn, k);
		assert_int_equal(syndrome & IB_AETH_TYPE_MASK, IB_AETH_ACK);
		assert_int_equal(rc.s[1].buf[0], 0x77);
		assert_false(answer(&rc, &op, &psn, &syndrome, &msn));
	}
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c9_105_duplicate_acknowledged_not_executed),
		cmocka_unit_test(c9_110_earliest_duplicate_first),
		cmocka_unit_test(c9_140_local_ack_timeout),
		cmocka_unit_test(c9_148_read_counts_when_taken),
		cmocka_unit_test(c9_222_1_rkey_violation_is_an_event),
		cmocka_unit_test(c10_87_failed_write_takes_no_receive),
		cmocka_unit_test(c10_96_posted_in_error_is_flushed),
		cmocka_unit_test(s10_7_3_1_unsignaled_error_is_reported),
		cmocka_unit_test(s9_4_4_read_repeated_in_part),
		cmocka_unit_test(ca17_29_becn_fecn_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
