// SPDX-License-Identifier: GPL-2.0
/* RAW_ETH queues that suffer what rules say: failed DMA, completions that do not tell the truth. */
#include <stdio.h>

#include "eth_test.h"

static void rule(struct eth *e, const char *spec)
{
	char err[128] = "";

	assert_int_equal(skua_dev_cmd_fault(e->r->f.dev, spec, err, sizeof(err)), 0);
	assert_string_equal(err, "");
}

static void refused(struct eth *e, const char *spec)
{
	char err[128] = "";

	assert_int_not_equal(skua_dev_cmd_fault(e->r->f.dev, spec, err, sizeof(err)), 0);
	assert_string_not_equal(err, "");
}

static void assert_show(struct eth *e, const char *want)
{
	char text[256];

	skua_dev_cmd_fault_show(e->r->f.dev, text, sizeof(text));
	assert_string_equal(text, want);
}

static void up(struct eth *e, struct rig *r)
{
	eth_up(e, r);
	eth_header(fake_ptr(&r->f, e->tx), 0x88b5);
}

static unsigned int frames(struct eth *e)
{
	struct fake_frame *out;
	unsigned int n = 0;

	while ((out = fake_tx(&e->r->f))) {
		free(out);
		n++;
	}
	return n;
}

/* The n-th gather fails: that WQE has an error, and what is behind it is flushed. */
static void send_dma(void **state)
{
	struct rig *r = *state;
	struct skua_wqe_data rx;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_SIGNALED),
	};
	static const enum skua_cqe_status want[] = {
		SKUA_CQE_OK, SKUA_CQE_OK, SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_WR_FLUSH_ERR,
	};
	struct skua_cqe cqe;
	struct eth e;

	up(&e, r);
	sge(&rx, e.rx, SKUA_RESERVED_LKEY, 2048);
	mini_recv(&r->m, &e.qp, &rx, 1);
	rule(&e, "ETH_SEND@3:dma");
	sge(&w.sge[0], e.tx, SKUA_RESERVED_LKEY, 100);
	for (unsigned int i = 0; i < 4; i++)
		mini_post(&r->m, &e.qp, &w, 2);
	mini_ring(&r->m, &e.qp);
	assert_counts(&r->m, DMA_ERR, 1, fake_run(&r->f));
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), want[i]);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), i);
	}
	assert_int_equal(frames(&e), 2);
	assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_WR_FLUSH_ERR);
	assert_show(&e, "ETH_SEND:dma seen 3 hit 1");
}

/* Sent, but nobody hears of it; or twice. */
static void send_completions(void **state)
{
	struct rig *r = *state;
	struct skua_cqe cqe;
	struct eth e;

	up(&e, r);
	rule(&e, "ETH_SEND@2:lose;ETH_SEND@3:twice");
	assert_int_equal(send(&e, 100, 0, 0), SKUA_CQE_OK);
	assert_int_equal(send(&e, 100, 0, 0), -1);
	assert_int_equal(send(&e, 100, 0, 0), SKUA_CQE_OK);
	assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), 2);
	assert_int_equal(send(&e, 100, 0, 0), SKUA_CQE_OK);
	assert_int_equal(frames(&e), 4);
}

/* A WQE that waits for the wire, and is looked at more than once, is one. */
static void send_waits(void **state)
{
	static const uint8_t slow[6] = { 2, 0, 0, 0, 7, 7 };
	struct rig *r = *state;
	struct eth e;

	up(&e, r);
	memcpy(fake_ptr(&r->f, e.tx), slow, sizeof(slow));
	rule(&e, "ETH_SEND@1-2:twice;ETH_SEND@2:lose");
	r->f.full = slow;
	assert_int_equal(send(&e, 100, 0, 0), -1);
	skua_dev_room(r->f.dev);
	fake_run(&r->f);
	assert_int_equal(frames(&e), 0);
	assert_show(&e, "ETH_SEND:twice seen 0 hit 0; ETH_SEND:lose seen 0 hit 0");
	r->f.full = NULL;
	skua_dev_room(r->f.dev);
	fake_run(&r->f);
	assert_int_equal(frames(&e), 1);
	assert_show(&e, "ETH_SEND:twice seen 1 hit 1; ETH_SEND:lose seen 1 hit 0");
}

static void receive(void **state)
{
	struct rig *r = *state;
	uint8_t frame[64] = { 0 };
	struct skua_wqe_data rx;
	struct skua_cqe cqe;
	struct eth e;

	up(&e, r);
	memcpy(frame, own, 6);
	sge(&rx, e.rx, SKUA_RESERVED_LKEY, 2048);
	for (unsigned int i = 0; i < 4; i++)
		mini_recv(&r->m, &e.qp, &rx, 1);
	rule(&e, "ETH_RECV@1:lose;ETH_RECV@2:twice;ETH_RECV@3:long;ETH_RECV@4:dma");
	for (unsigned int i = 0; i < 3; i++)
		fake_rx(&r->f, frame, 60);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), i == 2 ? 2 : 1);
		assert_int_equal(le32_to_cpu(cqe.byte_len), i == 2 ? 2049 : 60);
	}
	assert_counts(&r->m, DMA_ERR, 1, fake_rx(&r->f, frame, 60));
	assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_LOC_PROT_ERR);
	assert_false(mini_cq_next(&r->m, &e.rcq, &cqe));
}

/* Commands have other faults than queues, and "any" is any command. */
static void names(void **state)
{
	static const char *const bad[] = {
		"ETH_SEND:fail=BUSY", "ETH_SEND:ignore", "ETH_SEND:noevent", "ETH_SEND:late=1ms",
		"ETH_SEND:long", "ETH_RECV:fail=BUSY", "ETH_RECV:ignore", "NOP:dma", "NOP:twice",
		"NOP:long", "any:dma", "any:twice", "any:long", "ETH_SEND:dma=1", "ETH_RECV:long=9",
		"HEARTBEAT:lose", "HEARTBEAT:fail=BUSY", "HEARTBEAT:dma", "HEARTBEAT:ignore=1",
	};
	struct rig *r = *state;
	struct eth e;

	up(&e, r);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(&e, bad[i]);
	rule(&e, "any:lose");
	assert_int_equal(send(&e, 100, 0, 0), SKUA_CQE_OK);
	assert_show(&e, "any:lose seen 0 hit 0");
	rule(&e, "off");
	assert_int_equal(frames(&e), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(send_dma),
		rig_test(send_completions),
		rig_test(send_waits),
		rig_test(receive),
		rig_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
