// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: what a CQE becomes, by ibv_poll_cq() and by the extended calls; CQEs that
 * are not to be believed; the consumer index, and the order of looks and stores.
 */
#include <time.h>

#include "fake.h"

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int setup(void **state)
{
	return fake_setup_rc(state, 16, &cq, &qp);
}

static int teardown(void **state)
{
	return fake_teardown_rc(state, cq, qp);
}

static struct ibv_wc poll_one(void)
{
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof(wc));
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	return wc;
}

static void poll_none(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static uint32_t record(void)
{
	return le32_to_cpu(fake_cq_dbr(fake_cq(cq))->ci);
}

/* A CQE of this QP */
static struct skua_cqe make_cqe(unsigned int index, enum skua_cqe_op op, unsigned int status)
{
	return (struct skua_cqe){
		.qpn = cpu_to_le32(qp->qp_num),
		.what = fake_what(index, op, status),
	};
}

static void put(struct skua_cqe cqe)
{
	fake_cqe(fake_cq(cq), &cqe);
}

/* --- sends --------------------------------------------------------------------------- */

static void test_opcodes(void **state)
{
	static const struct {
		enum ibv_wr_opcode wr;
		enum ibv_wc_opcode wc;
	} t[] = {
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE },
		{ IBV_WR_SEND, IBV_WC_SEND },
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND },
		{ IBV_WR_SEND_WITH_INV, IBV_WC_SEND },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD },
		{ IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV },
		{ IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE },
	};
	struct ibv_send_wr wr = {}, *bad;
	struct skua_cqe cqe;
	struct ibv_wc wc;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		wr.wr_id = 0x1234567800000000ULL + i;
		wr.opcode = t[i].wr;
		assert_false(ibv_post_send(qp, &wr, &bad));
		cqe = make_cqe(i, SKUA_CQE_REQ, SKUA_CQE_OK);
		cqe.byte_len = cpu_to_le32(8 * i);
		put(cqe);
		fake_qp(qp)->sq_head++;
		wc = poll_one();
		assert_int_equal(wc.wr_id, wr.wr_id);
		assert_int_equal(wc.opcode, t[i].wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 8 * i);
		assert_int_equal(wc.qp_num, qp->qp_num);
		assert_int_equal(wc.vendor_err, 0);
		assert_int_equal(wc.wc_flags, 0);
		assert_int_equal(record(), i + 1);
	}
	poll_none();
}

static void test_statuses(void **state)
{
	struct skua_cqe cqe;
	unsigned int status;
	struct ibv_wc wc;

	(void)state;
	for (status = 0; status < 256; status++) {
		fake_post_writes(qp, 1, status);
		cqe = make_cqe(status, SKUA_CQE_REQ, status);
		cqe.own = cpu_to_le32(255 - status);
		put(cqe);
		fake_qp(qp)->sq_head++;
		wc = poll_one();
		assert_int_equal(wc.wr_id, status);
		/* It says more of an error, and is 0 without one. */
		assert_int_equal(wc.vendor_err, status ? 255 - status : 0);
		switch (status) {
#define X(name, value, verbs)	case value: assert_int_equal(wc.status, IBV_WC_##verbs); break;
		SKUA_CQE_STATUS_TABLE(X)
#undef X
		default:
			assert_int_equal(wc.status, IBV_WC_GENERAL_ERR);
		}
	}
}

/* One completion stands for what was posted unsignaled before it */
static void test_unsignaled(void **state)
{
	struct ibv_wc wc;

	(void)state;
	fake_post_writes(qp, 8, 100);
	fake_sent(qp, 5, SKUA_CQE_OK);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 105);
	fake_post_writes(qp, 6, 200);
	fake_sent(qp, 13, SKUA_CQE_OK);
	assert_int_equal(poll_one().wr_id, 205);
	poll_none();
}

/* --- receives ------------------------------------------------------------------------- */

static void test_receives(void **state)
{
	struct skua_cqe cqe;
	struct ibv_wc wc;

	(void)state;
	fake_post_recvs(qp, 4, 50);
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 48);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 50);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 48);
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(wc.qp_num, qp->qp_num);

	cqe = make_cqe(1, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_IMM | SKUA_CQE_F_SOLICITED);
	cqe.imm = htobe32(0x55667788);
	put(cqe);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 51);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htobe32(0x55667788));

	cqe = make_cqe(2, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_INV);
	cqe.inv_key = cpu_to_le32(0x99887766);
	put(cqe);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 52);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, 0x99887766);

	cqe = make_cqe(3, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_IMM);
	cqe.imm = htobe32(1);
	put(cqe);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 53);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
}

static void test_datagrams(void **state)
{
	struct skua_cqe cqe;
	struct ibv_wc wc;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_UD);
	fake_post_recvs(qp, 3, 10);
	cqe = make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_GRH | SKUA_CQE_F_IMM);
	cqe.imm = htobe32(9);
	cqe.ud.src_qpn = cpu_to_le32(0xabc);
	cqe.ud.pkey_index = cpu_to_le16(2);
	put(cqe);
	wc = poll_one();
	assert_int_equal(wc.src_qp, 0xabc);
	/* UDP over IPv6, no tag: where programs look for the kind of packet */
	assert_int_equal(wc.sl, 0x9);
	assert_int_equal(wc.pkey_index, 2);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.slid, 0);
	assert_int_equal(wc.dlid_path_bits, 0);

	cqe = make_cqe(1, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_GRH | SKUA_CQE_F_VLAN);
	cqe.ud.ipv4 = 1;
	cqe.ud.vlan_tci = cpu_to_le16(5 << 13 | 7);
	put(cqe);
	wc = poll_one();
	assert_int_equal(wc.sl, 0x5a);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);

	/* One that failed says nothing of a sender */
	put(make_cqe(2, SKUA_CQE_RECV, SKUA_CQE_LOC_LEN_ERR));
	wc = poll_one();
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
}

/* The bit says that all checksums of an IPv4 frame are right */
static void test_frames(void **state)
{
	static const uint16_t all = SKUA_CQE_CSUM_IPV4 | SKUA_CQE_CSUM_L3_OK |
				    SKUA_CQE_CSUM_L4_OK;
	struct ibv_qp_cap cap = { .max_recv_wr = 256, .max_recv_sge = 1, .max_send_wr = 1 };
	struct skua_cqe cqe;
	struct ibv_wc wc;
	unsigned int csum;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RAW_PACKET, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	fake_post_recvs(qp, 256, 0);
	for (csum = 0; csum < 256; csum++) {
		cqe = make_cqe(csum, SKUA_CQE_RECV_ETH, SKUA_CQE_OK);
		cqe.eth.csum = cpu_to_le16(csum);
		cqe.byte_len = cpu_to_le32(60 + csum);
		put(cqe);
		wc = poll_one();
		assert_int_equal(wc.wr_id, csum);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, 60 + csum);
		assert_int_equal(wc.wc_flags, (csum & all) == all ? IBV_WC_IP_CSUM_OK : 0);
	}
}

/* --- a device that is wrong -------------------------------------------------------------- */

/* Each is taken out of the ring, and nothing is told */
static void not_believed(struct skua_cqe cqe)
{
	uint32_t ci = record();

	put(cqe);
	poll_none();
	assert_int_equal(record(), ci + 1);
}

static void test_not_believed(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 5 };
	struct ibv_sge many[5] = {};
	struct ibv_send_wr wr = { .sg_list = many, .num_sge = 5, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr *bad;
	struct skua_cqe cqe;
	unsigned int i;

	(void)state;
	/* Nothing is outstanding */
	not_believed(make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK));
	not_believed(make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK));
	fake_post_writes(qp, 3, 1);
	fake_post_recvs(qp, 2, 1);
	not_believed(make_cqe(3, SKUA_CQE_REQ, SKUA_CQE_OK));
	not_believed(make_cqe(0xffff, SKUA_CQE_REQ, SKUA_CQE_OK));
	not_believed(make_cqe(2, SKUA_CQE_RECV, SKUA_CQE_OK));
	not_believed(make_cqe(2, SKUA_CQE_RECV_WRITE_IMM, SKUA_CQE_OK));
	not_believed(make_cqe(2, SKUA_CQE_RECV_ETH, SKUA_CQE_OK));
	for (i = 4; i < 256; i++)
		not_believed(make_cqe(0, i, SKUA_CQE_OK));
	cqe = make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK);
	cqe.qpn = cpu_to_le32(qp->qp_num + 16);
	not_believed(cqe);
	/* This QP has no SRQ */
	cqe = make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_SRQ);
	not_believed(cqe);
	/* What was believed once is not believed again */
	put(make_cqe(1, SKUA_CQE_REQ, SKUA_CQE_OK));
	assert_int_equal(poll_one().wr_id, 2);
	not_believed(make_cqe(1, SKUA_CQE_REQ, SKUA_CQE_OK));
	not_believed(make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK));
	put(make_cqe(2, SKUA_CQE_REQ, SKUA_CQE_OK));
	assert_int_equal(poll_one().wr_id, 3);
	/* The middle of a WQE */
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	wr.wr_id = 99;
	assert_false(ibv_post_send(qp, &wr, &bad));
	not_believed(make_cqe(1, SKUA_CQE_REQ, SKUA_CQE_OK));
	put(make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK));
	assert_int_equal(poll_one().wr_id, 99);
}

/* Of another CQ than that of the queue */
static void test_wrong_cq(void **state)
{
	struct ibv_cq *other = fake_make_cq(16);
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4 };
	struct skua_cqe cqe;
	struct ibv_wc wc;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, other, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	fake_post_writes(qp, 1, 1);
	fake_post_recvs(qp, 1, 2);
	not_believed(make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK));
	cqe = make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK);
	fake_cqe(fake_cq(other), &cqe);
	assert_int_equal(ibv_poll_cq(other, 1, &wc), 0);
	fake_sent(qp, 0, SKUA_CQE_OK);
	assert_int_equal(poll_one().wr_id, 1);
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	assert_int_equal(ibv_poll_cq(other, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 2);
	fake_destroy_qp(qp);
	qp = NULL;
	fake_destroy_cq(other);
}

/* --- the ring ------------------------------------------------------------------------------ */

/* Many turns, and batches of all sizes; more is asked for than there is */
static void test_turns(void **state)
{
	unsigned int sent = 0, polled = 0, n, i;
	struct ibv_wc wc[16];
	int got;

	(void)state;
	for (n = 0; n < 200; n++) {
		unsigned int batch = 1 + n % 8;

		fake_post_writes(qp, batch, sent);
		for (i = 0; i < batch; i++)
			fake_sent(qp, sent + i, SKUA_CQE_OK);
		sent += batch;
		while (polled < sent) {
			unsigned int ask = 1 + (n + polled) % 5;

			got = ibv_poll_cq(cq, ask, wc);
			assert_in_range(got, 1, ask);
			for (i = 0; i < (unsigned int)got; i++)
				assert_int_equal(wc[i].wr_id, polled++);
			assert_int_equal(record(), polled);
		}
		poll_none();
		assert_int_equal(ibv_poll_cq(cq, 0, NULL), 0);
	}
}

/* More than the table begins with: it grows, and chains are cut */
static void test_many_qps(void **state)
{
	struct ibv_qp *qps[100];
	struct ibv_wc wc;
	unsigned int i, j;

	(void)state;
	for (i = 0; i < 100; i++)
		qps[i] = fake_make_qp(cq, IBV_QPT_RC);
	for (j = 0; j < 3; j++) {
		for (i = 0; i < 100; i++) {
			fake_post_writes(qps[(i * 37) % 100], 1, i);
			fake_sent(qps[(i * 37) % 100], j, SKUA_CQE_OK);
			wc = poll_one();
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.qp_num, qps[(i * 37) % 100]->qp_num);
		}
	}
	/* From the middle of the chains */
	for (i = 0; i < 100; i += 2)
		fake_destroy_qp(qps[i]);
	for (i = 1; i < 100; i += 2) {
		fake_post_writes(qps[i], 1, i);
		fake_sent(qps[i], 3, SKUA_CQE_OK);
		assert_int_equal(poll_one().wr_id, i);
	}
	for (i = 1; i < 100; i += 2)
		fake_destroy_qp(qps[i]);
}

/* --- order ----------------------------------------------------------------------------------- */

static struct skua_cqe late;
static unsigned int nth_barrier;

/* What was read of the CQE before this barrier was read too early */
static void write_late(enum fake_barrier kind)
{
	struct fake_obj *o = fake_cq(cq);
	struct skua_cqe *at = &o->ring[(o->pi - 1) & ((1U << o->log) - 1)];
	__le32 own = at->own;

	if (kind != FAKE_FROM_DEVICE || --nth_barrier)
		return;
	*at = late;
	at->own = own;
}

static void test_phase_first(void **state)
{
	struct skua_cqe none = {};
	struct ibv_wc wc, two[2];
	unsigned int i;

	(void)state;
	fake_post_writes(qp, 1, 5);
	late = make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK);
	late.byte_len = cpu_to_le32(77);
	fake.on_barrier = write_late;
	nth_barrier = 1;
	put(none);
	wc = poll_one();
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, 77);

	/* And that of the second of two, behind a usual completion and behind a rare one */
	for (i = 0; i < 2; i++) {
		fake_post_writes(qp, 2, 10 * i);
		put(make_cqe(1 + 2 * i, SKUA_CQE_REQ, i ? SKUA_CQE_RNR_RETRY_EXC_ERR : SKUA_CQE_OK));
		late = make_cqe(2 + 2 * i, SKUA_CQE_REQ, SKUA_CQE_OK);
		late.byte_len = cpu_to_le32(88);
		nth_barrier = 2;
		put(none);
		assert_int_equal(ibv_poll_cq(cq, 2, two), 2);
		assert_int_equal(two[0].status, i ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS);
		assert_int_equal(two[1].wr_id, 10 * i + 1);
		assert_int_equal(two[1].byte_len, 88);
	}
	fake.on_barrier = NULL;
}

/* --- extended --------------------------------------------------------------------------------- */

static struct ibv_cq_ex *cqx;

static void use_ex(uint32_t clock_khz)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
			    IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};

	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	fake_close();
	fake.lim.clock_khz = clock_khz;
	fake_open();
	cqx = ibv_create_cq_ex(fake.ctx, &attr);
	assert_non_null(cqx);
	cq = ibv_cq_ex_to_cq(cqx);
	qp = fake_make_qp(cq, IBV_QPT_RC);
}

static struct ibv_poll_cq_attr no_attr;

static void test_ex(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	use_ex(1000000);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), ENOENT);
	assert_int_equal(ibv_start_poll(cqx, &(struct ibv_poll_cq_attr){ .comp_mask = 1 }),
			 EINVAL);
	fake_post_writes(qp, 2, 60);
	fake_post_recvs(qp, 2, 70);
	cqe = make_cqe(1, SKUA_CQE_REQ, SKUA_CQE_RETRY_EXC_ERR);
	cqe.own = cpu_to_le32(SKUA_VENDOR_TIMEOUT);
	cqe.timestamp = cpu_to_le64(123456789);
	put(cqe);
	cqe = make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_IMM);
	cqe.imm = htobe32(0xfeed);
	cqe.byte_len = cpu_to_le32(31);
	put(cqe);

	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	assert_int_equal(cqx->wr_id, 61);
	assert_int_equal(cqx->status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_wc_read_vendor_err(cqx), SKUA_VENDOR_TIMEOUT);
	assert_int_equal(ibv_wc_read_opcode(cqx), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(cqx), qp->qp_num);
	assert_int_equal(ibv_wc_read_completion_ts(cqx), 123456789);
	/* The device has the room, and may write there: it is read no more */
	assert_int_equal(record(), 1);
	memset(fake_cq(cq)->ring, 0xee, sizeof(struct skua_cqe));
	assert_int_equal(ibv_wc_read_completion_ts(cqx), 123456789);
	assert_int_equal(ibv_next_poll(cqx), 0);
	assert_int_equal(cqx->wr_id, 70);
	assert_int_equal(cqx->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cqx), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cqx), 31);
	assert_int_equal(ibv_wc_read_wc_flags(cqx), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_imm_data(cqx), htobe32(0xfeed));
	assert_int_equal(ibv_next_poll(cqx), ENOENT);
	assert_int_equal(record(), 2);
	ibv_end_poll(cqx);
	assert_int_equal(record(), 2);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), ENOENT);

	/* What is not believed is passed over */
	put(make_cqe(9, SKUA_CQE_REQ, SKUA_CQE_OK));
	put(make_cqe(1, SKUA_CQE_RECV, SKUA_CQE_OK));
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	assert_int_equal(cqx->wr_id, 71);
	ibv_end_poll(cqx);
	assert_int_equal(record(), 4);
	/* Both ways of polling go on from the same place */
	put(make_cqe(9, SKUA_CQE_REQ, SKUA_CQE_OK));
	assert_int_equal(ibv_start_poll(cqx, &no_attr), ENOENT);
	assert_int_equal(record(), 5);
	fake_post_recvs(qp, 1, 72);
	put(make_cqe(2, SKUA_CQE_RECV, SKUA_CQE_OK));
	assert_int_equal(poll_one().wr_id, 72);
}

static void test_ex_phase_first(void **state)
{
	struct skua_cqe none = {};

	(void)state;
	use_ex(1000000);
	fake_post_writes(qp, 1, 5);
	late = make_cqe(0, SKUA_CQE_REQ, SKUA_CQE_OK);
	late.byte_len = cpu_to_le32(77);
	nth_barrier = 1;
	fake.on_barrier = write_late;
	put(none);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	fake.on_barrier = NULL;
	assert_int_equal(cqx->wr_id, 5);
	assert_int_equal(ibv_wc_read_byte_len(cqx), 77);
	ibv_end_poll(cqx);
}

static void test_ex_dgram(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	use_ex(1000000);
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_UD);
	fake_post_recvs(qp, 2, 10);
	cqe = make_cqe(0, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_GRH | SKUA_CQE_F_VLAN);
	cqe.ud.src_qpn = cpu_to_le32(0xabc);
	memset(cqe.ud.smac, 0x66, sizeof(cqe.ud.smac));
	cqe.ud.vlan_tci = cpu_to_le16(0x6123);
	put(cqe);
	cqe = make_cqe(1, SKUA_CQE_RECV, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_GRH);
	cqe.ud.vlan_tci = cpu_to_le16(0x6123);
	put(cqe);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	assert_int_equal(ibv_wc_read_src_qp(cqx), 0xabc);
	assert_int_equal(ibv_wc_read_cvlan(cqx), 0x6123);
	assert_int_equal(ibv_wc_read_wc_flags(cqx), IBV_WC_GRH);
	assert_int_equal(ibv_wc_read_slid(cqx), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cqx), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cqx), 0);
	assert_int_equal(ibv_next_poll(cqx), 0);
	assert_int_equal(ibv_wc_read_cvlan(cqx), 0);
	ibv_end_poll(cqx);
}

static void test_ex_frame(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	use_ex(1000000);
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_RAW_PACKET);
	fake_post_recvs(qp, 1, 10);
	cqe = make_cqe(0, SKUA_CQE_RECV_ETH, SKUA_CQE_OK);
	cqe.own = cpu_to_le32(SKUA_CQE_F_VLAN);
	cqe.eth.flow_tag = cpu_to_le32(0x7777);
	cqe.eth.vlan_tci = cpu_to_le16(0x8001);
	put(cqe);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cqx), 0x7777);
	assert_int_equal(ibv_wc_read_cvlan(cqx), 0x8001);
	ibv_end_poll(cqx);
}

static uint64_t wallclock(unsigned int index, uint64_t ticks)
{
	struct skua_cqe cqe = make_cqe(index, SKUA_CQE_REQ, SKUA_CQE_OK);
	uint64_t ns;

	fake_post_writes(qp, 1, 0);
	fake_qp(qp)->sq_head++;
	cqe.timestamp = cpu_to_le64(ticks);
	put(cqe);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	ns = ibv_wc_read_completion_wallclock_ns(cqx);
	ibv_end_poll(cqx);
	return ns;
}

static void test_ex_wallclock(void **state)
{
	const uint64_t day = 24 * 3600 * 250000000ULL;

	(void)state;
	/* A tick is 4 ns */
	use_ex(250000);
	fake.clock.clock = 1000000;
	fake.clock.real_ns = 1700000000000000000ULL;
	assert_int_equal(wallclock(0, 1000000 + 250), fake.clock.real_ns + 1000);
	/* A stamp before the look */
	assert_int_equal(wallclock(1, 1000000 - 3), fake.clock.real_ns - 12);
	assert_int_equal(fake.clock_reads, 1);
	/* Up to a second the look counts */
	assert_int_equal(wallclock(2, 1000000 + 250000000), fake.clock.real_ns + 1000000000);
	assert_int_equal(fake.clock_reads, 1);
	fake.clock.clock += day;
	fake.clock.real_ns += 7;
	assert_int_equal(wallclock(3, 1000000 + day + 1), 1700000000000000007ULL + 4);
	assert_int_equal(fake.clock_reads, 2);
	assert_int_equal(wallclock(4, 0), 0);
}

/* --- room ------------------------------------------------------------------------------------- */

/*
 * A CQ as large as the queue that completes there is never too small: when the queue has room
 * again, to post what the device completes at once, the CQ has room as well.
 */

static unsigned int again;	/* barriers until there is more */
static struct ibv_srq *shared;

static void post_more(enum fake_barrier kind)
{
	struct ibv_recv_wr wr = { .wr_id = 99 }, *bad;

	if (kind != FAKE_FROM_DEVICE || --again)
		return;
	if (shared) {
		assert_false(ibv_post_srq_recv(shared, &wr, &bad));
		/* Fails the test if the CQ has no room */
		fake_rcvd_shared(qp, fake_srq_take(fake_srq(shared)), 5);
	} else {
		fake_post_writes(qp, 1, 99);
		fake_sent(qp, fake_qp(qp)->sq_tail - 1, SKUA_CQE_OK);
	}
}

static void poll_with_more(unsigned int n)
{
	struct ibv_wc wc[17];

	/* After the first one was taken, before the second */
	again = 2;
	fake.on_barrier = post_more;
	assert_int_equal(ibv_poll_cq(cq, n + 1, wc), n + 1);
	fake.on_barrier = NULL;
	assert_int_equal(wc[n].wr_id, 99);
}

static void test_room_sends(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 16, .max_send_sge = 1 };
	unsigned int i, turn;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	/* The usual completions, and with an error first that all go the long way */
	for (turn = 0; turn < 2; turn++) {
		fake_post_writes(qp, 16, 0);
		for (i = 0; i < 16; i++)
			fake_sent(qp, 17 * turn + i, turn && !i ? SKUA_CQE_RNR_RETRY_EXC_ERR :
								  SKUA_CQE_OK);
		poll_with_more(16);
	}
}

static void test_room_shared(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 15, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 8, .max_send_sge = 1 } };
	struct ibv_recv_wr wr = {}, *bad;
	unsigned int i;

	(void)state;
	fake_destroy_qp(qp);
	shared = ibv_create_srq(fake.pd, &attr);
	init.srq = shared;
	qp = ibv_create_qp(fake.pd, &init);
	assert_non_null(qp);
	fake_modify(qp, IBV_QPS_RTS);
	for (i = 0; i < 15; i++) {
		assert_false(ibv_post_srq_recv(shared, &wr, &bad));
		fake_rcvd_shared(qp, fake_srq_take(fake_srq(shared)), 5);
	}
	fake_post_writes(qp, 1, 0);
	fake_sent(qp, 0, SKUA_CQE_OK);
	poll_with_more(16);
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(shared));
	shared = NULL;
	qp = fake_make_qp(cq, IBV_QPT_RC);
}

/* A program may post for each completion that it comes to, before it ends the poll */
static void test_room_ex(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 16, .max_send_sge = 1 };
	unsigned int i;

	(void)state;
	use_ex(1000000);
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	fake_post_writes(qp, 16, 0);
	for (i = 0; i < 16; i++)
		fake_sent(qp, i, SKUA_CQE_OK);
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(cqx->wr_id, i);
		fake_post_writes(qp, 1, 16 + i);
		fake_sent(qp, 16 + i, SKUA_CQE_OK);
		assert_int_equal(ibv_next_poll(cqx), 0);
	}
	ibv_end_poll(cqx);
}

/* --- a lost device ---------------------------------------------------------------------------- */

static unsigned int dying;	/* barriers until the device has written its last CQE */

static void last_words(enum fake_barrier kind)
{
	if (kind == FAKE_FROM_DEVICE && !--dying)
		fake_sent(qp, 0, SKUA_CQE_OK);
}

/*
 * A poll finds no CQE, then the device writes its last one and is lost: that is not reported as
 * flushed. What is behind it is.
 */
static void test_last_cqe(void **state)
{
	struct ibv_wc wc[2];

	(void)state;
	fake_post_writes(qp, 2, 7);
	fake.status->alive = 0;
	dying = 1;
	fake.on_barrier = last_words;
	assert_int_equal(ibv_poll_cq(cq, 1, wc), 1);
	fake.on_barrier = NULL;
	assert_int_equal(wc[0].wr_id, 7);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(cq, 2, wc), 1);
	assert_int_equal(wc[0].wr_id, 8);
	assert_int_equal(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(cq, 0, wc), 0);
	poll_none();
}

static void test_last_cqe_ex(void **state)
{
	(void)state;
	use_ex(1000000);
	fake_post_writes(qp, 2, 7);
	fake.status->alive = 0;
	dying = 1;
	fake.on_barrier = last_words;
	assert_int_equal(ibv_start_poll(cqx, &no_attr), 0);
	fake.on_barrier = NULL;
	assert_int_equal(cqx->wr_id, 7);
	assert_int_equal(cqx->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_next_poll(cqx), 0);
	assert_int_equal(cqx->wr_id, 8);
	assert_int_equal(cqx->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_wc_read_completion_ts(cqx), 0);
	assert_int_equal(ibv_next_poll(cqx), ENOENT);
	ibv_end_poll(cqx);
}

/* --- events --------------------------------------------------------------------------------- */

static uint32_t record_at_barrier;

static void note_record(enum fake_barrier kind)
{
	if (kind == FAKE_TO_DEVICE)
		record_at_barrier = record();
}

static void check_record(const struct fake_db *db)
{
	if (db->reg == SKUA_UAR_CQ_ARM)
		assert_int_equal(record_at_barrier, db->lo);
}

/* The consumer index is in the record, then a barrier, then the doorbell */
static void test_arm_order(void **state)
{
	(void)state;
	fake_post_writes(qp, 1, 0);
	fake_sent(qp, 0, SKUA_CQE_OK);
	record_at_barrier = -1;
	poll_one();
	fake.on_barrier = note_record;
	fake.on_doorbell = check_record;
	assert_false(ibv_req_notify_cq(cq, 0));
	fake.on_barrier = NULL;
	fake.on_doorbell = NULL;
}

static void test_arm(void **state)
{
	struct fake_obj *o = fake_cq(cq);

	(void)state;
	assert_false(ibv_req_notify_cq(cq, 0));
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].reg, SKUA_UAR_CQ_ARM);
	assert_int_equal(fake.db[0].lo, 0);
	assert_int_equal(fake.db[0].hi & SKUA_UAR_CQ_ARM_CQN, o->num & SKUA_UAR_CQ_ARM_CQN);
	assert_false(fake.db[0].hi & SKUA_UAR_CQ_ARM_SOLICITED);

	fake_post_writes(qp, 2, 0);
	fake_sent(qp, 0, SKUA_CQE_OK);
	fake_sent(qp, 1, SKUA_CQE_OK);
	poll_one();
	fake_dbs_clear();
	assert_false(ibv_req_notify_cq(cq, 1));
	assert_int_equal(fake.db[0].lo, 1);
	assert_true(fake.db[0].hi & SKUA_UAR_CQ_ARM_SOLICITED);
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(opcodes), CASE(statuses), CASE(unsignaled), CASE(receives),
		CASE(datagrams), CASE(frames), CASE(not_believed), CASE(wrong_cq), CASE(turns),
		CASE(many_qps), CASE(phase_first), CASE(ex), CASE(ex_phase_first), CASE(ex_dgram), CASE(ex_frame),
		CASE(ex_wallclock), CASE(room_sends), CASE(room_shared), CASE(room_ex),
		CASE(last_cqe), CASE(last_cqe_ex), CASE(arm), CASE(arm_order),
	};

	return cmocka_run_group_tests_name("provider poll", tests, NULL, NULL);
}
