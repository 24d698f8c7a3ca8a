// SPDX-License-Identifier: GPL-2.0
/*
 * skua-dgram [-d DEV] [-g GID] [-D DEV2 -G GID2] [-l PRIORITY]; TAP. What the completion
 * of a datagram says of the packet, and the address handle that is made of it. With -l the
 * GIDs are those of a VLAN, and the datagrams have that priority.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define GRH	40
#define LEN	64
#define QKEY	0x5c0a

struct end {
	struct dev dev;
	struct ibv_cq *scq;
	struct ibv_cq_ex *rcq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;		/* what is sent, then what is received */
};

static struct end ends[2];
static unsigned int priority;
static bool vlan;

static void end_open(struct end *e, const char *name, int gid_index)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
	};

	dev_open(&e->dev, name, gid_index);
	e->buf = aligned_alloc(PAGE, PAGE);
	e->mr = ibv_reg_mr(e->dev.pd, e->buf, PAGE, IBV_ACCESS_LOCAL_WRITE);
	e->scq = ibv_create_cq(e->dev.ctx, 16, NULL, NULL, 0);
	e->rcq = ibv_create_cq_ex(e->dev.ctx, &cq);
	if (!e->mr || !e->scq || !e->rcq)
		die("memory or completion queue: %m");
	init.send_cq = e->scq;
	init.recv_cq = ibv_cq_ex_to_cq(e->rcq);
	e->qp = ibv_create_qp(e->dev.pd, &init);
	if (!e->qp)
		die("create_qp: %m");
	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_QKEY))
		die("to INIT: %m");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE))
		die("to RTR: %m");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("to RTS: %m");
}

static void end_close(struct end *e)
{
	ibv_destroy_qp(e->qp);
	ibv_destroy_cq(ibv_cq_ex_to_cq(e->rcq));
	ibv_destroy_cq(e->scq);
	ibv_dereg_mr(e->mr);
	free(e->buf);
	dev_close(&e->dev);
}

static struct ibv_ah *path(const struct end *from, const struct end *to, unsigned int sl)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .sl = sl,
		.grh = { .dgid = to->dev.gid, .sgid_index = from->dev.gid_index, .hop_limit = 64 },
	};

	return ibv_create_ah(from->dev.pd, &attr);
}

/* A datagram, which the receiver has a buffer for. It is then in the receiver's CQ. */
static bool send_one(struct end *from, struct end *to, struct ibv_ah *ah, uint8_t fill)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)to->buf + PAGE / 2, .length = GRH + LEN, .lkey = to->mr->lkey,
	};
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = fill, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = to->qp->qp_num, .remote_qkey = QKEY },
	};
	struct ibv_wc wc;

	if (ibv_post_recv(to->qp, &recv, &bad_recv))
		return fail("post_recv");
	memset(from->buf, fill, LEN);
	sge = (struct ibv_sge){ (uintptr_t)from->buf, LEN, from->mr->lkey };
	if (ibv_post_send(from->qp, &wr, &bad))
		return fail("post_send");
	if (!poll_one(from->scq, &wc, 20) || wc.status != IBV_WC_SUCCESS)
		return fail("the send did not complete");
	return true;
}

/* The kind of packet as IBTA A17.4.5.1 wants it told, and what the VLAN tag had. */
static unsigned int expected_sl(const struct end *to)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool ipv4 = !memcmp(to->dev.gid.raw, mapped, sizeof(mapped));

	return 8 | (ipv4 ? 2 : 1) | priority << 4;
}

static bool data_is(const struct end *to, uint8_t fill)
{
	const uint8_t *data = to->buf + PAGE / 2 + GRH;
	unsigned int i;

	for (i = 0; i < LEN; i++)
		if (data[i] != fill)
			return fail("byte %u is %#x", i, data[i]);
	return true;
}

static bool case_poll(void)
{
	struct ibv_ah *ah = path(&ends[0], &ends[1], priority);
	struct ibv_wc wc;
	bool ok;

	if (!ah)
		return fail("create_ah: %m");
	ok = send_one(&ends[0], &ends[1], ah, 0x11);
	if (ok && (!poll_one(ibv_cq_ex_to_cq(ends[1].rcq), &wc, 20) || wc.status != IBV_WC_SUCCESS))
		ok = fail("nothing received");
	if (ok && (wc.sl != expected_sl(&ends[1]) || !(wc.wc_flags & IBV_WC_GRH)))
		ok = fail("sl %#x instead of %#x, flags %#x", wc.sl, expected_sl(&ends[1]),
			  wc.wc_flags);
	ibv_destroy_ah(ah);
	return ok && data_is(&ends[1], 0x11);
}

/* The next completion in @cq, which is open then. */
static bool start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	double end = now() + 20;
	int ret;

	do {
		ret = ibv_start_poll(cq, &attr);
	} while (ret == ENOENT && now() < end);
	if (ret)
		return fail("nothing received: error %d", ret);
	if (cq->status == IBV_WC_SUCCESS)
		return true;
	ibv_end_poll(cq);
	return fail("received with status %d", cq->status);
}

static bool check_ex(struct end *to)
{
	unsigned int sl = ibv_wc_read_sl(to->rcq), want = expected_sl(to);
	unsigned int tag = ibv_wc_read_cvlan(to->rcq);

	if (sl != want)
		return fail("sl %#x instead of %#x", sl, want);
	return tag >> 13 == priority && !(tag & 0xfff) == !vlan ? true : fail("tag %#x", tag);
}

static bool case_extended(void)
{
	struct ibv_ah *ah = path(&ends[0], &ends[1], priority);
	bool ok;

	if (!ah)
		return fail("create_ah: %m");
	ok = send_one(&ends[0], &ends[1], ah, 0x22) && start(ends[1].rcq);
	if (ok) {
		ok = check_ex(&ends[1]);
		ibv_end_poll(ends[1].rcq);
	}
	ibv_destroy_ah(ah);
	return ok && data_is(&ends[1], 0x22);
}

/* An address handle of a completion leads back, with the priority that came. */
static bool case_reply(void)
{
	struct ibv_ah *ah = path(&ends[0], &ends[1], priority), *back = NULL;
	struct ibv_wc wc;
	bool ok;

	if (!ah)
		return fail("create_ah: %m");
	ok = send_one(&ends[0], &ends[1], ah, 0x33);
	if (ok && !poll_one(ibv_cq_ex_to_cq(ends[1].rcq), &wc, 20))
		ok = fail("nothing received");
	if (ok) {
		back = ibv_create_ah_from_wc(ends[1].dev.pd, &wc,
					     (struct ibv_grh *)(ends[1].buf + PAGE / 2), 1);
		if (!back)
			ok = fail("create_ah_from_wc: %m");
	}
	ok = ok && send_one(&ends[1], &ends[0], back, 0x44) && start(ends[0].rcq);
	if (ok) {
		ok = check_ex(&ends[0]);
		ibv_end_poll(ends[0].rcq);
	}
	if (back)
		ibv_destroy_ah(back);
	ibv_destroy_ah(ah);
	return ok && data_is(&ends[0], 0x44);
}

/* Priorities, and what a completion may have said; nothing else. */
static bool case_levels(void)
{
	unsigned int sl;

	for (sl = 0; sl < 256; sl++) {
		bool good = sl < 8 || (sl & 0x8f) == 9 || (sl & 0x8f) == 10;
		struct ibv_ah *ah = path(&ends[0], &ends[1], sl);
		int err = errno;

		if (ah)
			ibv_destroy_ah(ah);
		if (good ? !ah : (ah || err != EINVAL))
			return fail("service level %#x: %s", sl, ah ? "taken" : strerror(err));
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "poll", case_poll }, { "extended", case_extended }, { "reply", case_reply },
		{ "levels", case_levels },
	};
	const char *dev = NULL, *dev2 = NULL;
	unsigned int i;
	int gid = 0, gid2 = 0, opt, ret;

	while ((opt = getopt(argc, argv, "d:g:D:G:l:")) != -1) {
		switch (opt) {
		case 'd': dev = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'D': dev2 = optarg; break;
		case 'G': gid2 = atoi(optarg); break;
		case 'l': priority = atoi(optarg); vlan = true; break;
		default: die("usage: skua-dgram [-d DEV] [-g GID] [-D DEV2 -G GID2] [-l PRIORITY]");
		}
	}
	setlinebuf(stdout);
	end_open(&ends[0], dev, gid);
	end_open(&ends[1], dev2 ? dev2 : dev, dev2 ? gid2 : gid);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_case(cases[i].name, cases[i].run());
	ret = tap_end();
	end_close(&ends[0]);
	end_close(&ends[1]);
	return ret;
}
