// SPDX-License-Identifier: GPL-2.0
/*
 * skua-queues: extended reliable connections. Initiator and target are on one device,
 * where a domain is this process's own unless it is said to be a file's.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "queues.h"

#define IMM 0x12345678

/* A domain with two SRQs, each with a CQ of its own, and one connection to it. */
struct xrc {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[2];
	uint32_t srqn[2];
	struct ibv_cq *rcq[2], *scq;
	struct ibv_qp *ini, *tgt;
};

static struct ibv_xrcd *open_domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(dev.ctx, &attr);
}

static struct ibv_srq *make_xsrq(struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 15, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | (cq ? IBV_SRQ_INIT_ATTR_CQ : 0),
		.srq_type = IBV_SRQT_XRC,
		.srq_context = xrcd,
		.pd = dev.pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(dev.ctx, &attr);
}

static struct ibv_qp *make_ini(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .qp_type = IBV_QPT_XRC_SEND,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
	};

	return ibv_create_qp(dev.pd, &attr);
}

static struct ibv_qp *make_tgt(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
		/* Nobody heeds this. */
		.cap = { .max_send_wr = 7, .max_recv_wr = 7, .max_send_sge = 1 },
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static struct ibv_qp *open_tgt(struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(dev.ctx, &attr);
}

/* Each end has some of an RC QP's attributes. */
static bool to_rts(struct ibv_qp *qp, uint32_t peer, bool ini)
{
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
	struct link_attr l = link_default;
	struct ibv_qp_attr attr = {
		.path_mtu = l.mtu, .dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .timeout = l.timeout, .retry_cnt = 2, .rnr_retry = 2,
		.max_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = dev.gid_index, .hop_limit = 64,
				      .dgid = dev.gid } },
	};

	rtr |= ini ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rts |= ini ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
	must(!qp_to_init(qp, &l));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, rtr));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, rts));
	return true;
}

static bool join(struct xrc *x)
{
	return to_rts(x->tgt, x->ini->qp_num, false) && to_rts(x->ini, x->tgt->qp_num, true);
}

static bool setup(struct xrc *x, int fd)
{
	int i;

	memset(x, 0, sizeof(*x));
	must(x->xrcd = open_domain(fd));
	x->scq = make_cq(16);
	for (i = 0; i < 2; i++) {
		x->rcq[i] = make_cq(16);
		must(x->srq[i] = make_xsrq(x->xrcd, x->rcq[i]));
		must(!ibv_get_srq_num(x->srq[i], &x->srqn[i]));
	}
	must(x->ini = make_ini(x->scq));
	must(x->tgt = make_tgt(x->xrcd));
	return join(x);
}

static bool cleanup(struct xrc *x)
{
	int i;

	must(!ibv_destroy_qp(x->ini));
	must(!x->tgt || !ibv_destroy_qp(x->tgt));
	for (i = 0; i < 2; i++) {
		must(!ibv_destroy_srq(x->srq[i]));
		must(!ibv_destroy_cq(x->rcq[i]));
	}
	must(!ibv_destroy_cq(x->scq));
	must(!ibv_close_xrcd(x->xrcd));
	return true;
}

static int post(struct xrc *x, enum ibv_wr_opcode op, uint64_t id, uint32_t srqn)
{
	struct ibv_sge sg = { (uintptr_t)buf, 64, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sg, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(IMM),
		.wr.rdma = { (uintptr_t)buf + 2048, mr->rkey },
		.qp_type.xrc.remote_srqn = srqn,
	}, *bad;

	return ibv_post_send(x->ini, &wr, &bad);
}

/* A receive of SRQ number @k, which says that the target got it. */
static bool received(struct xrc *x, int k, uint64_t id, enum ibv_wc_opcode op)
{
	struct ibv_wc wc;

	must(poll_one(x->rcq[k], &wc, 20));
	must(wc.status == IBV_WC_SUCCESS && wc.wr_id == id && wc.opcode == op);
	must(wc.wc_flags & IBV_WC_WITH_IMM && be32toh(wc.imm_data) == IMM);
	must(wc.byte_len == 64);
	return true;
}

bool case_xrc_objects(void)
{
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_attr attr;
	struct ibv_srq *srq;
	uint32_t num;
	struct xrc x;

	must(setup(&x, -1));
	must(x.srqn[0] != x.srqn[1]);
	must(!make_xsrq(x.xrcd, NULL) && errno == EINVAL);
	/* A target is of a domain, and this call has no place for one. */
	must(!ibv_create_qp(dev.pd, &init) && errno == EINVAL);
	must(!open_tgt(x.xrcd, x.ini->qp_num) && errno == EINVAL);
	must(srq = ibv_create_srq(dev.pd, &basic));
	must(ibv_get_srq_num(srq, &num) == EINVAL);
	init = (struct ibv_qp_init_attr) {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = x.scq, .srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	must(!ibv_create_qp(dev.pd, &init) && errno == EINVAL);
	must(!ibv_destroy_srq(srq));

	must(ibv_post_recv(x.ini, &recv, &bad_recv) && bad_recv == &recv);
	must(ibv_post_recv(x.tgt, &recv, &bad_recv) && bad_recv == &recv);
	must(ibv_post_send(x.tgt, &send, &bad_send) && bad_send == &send);
	must(!ibv_query_qp(x.tgt, &attr, IBV_QP_STATE, &init));
	must(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == x.ini->qp_num);
	must(!init.cap.max_send_wr && !init.cap.max_recv_wr && !init.cap.max_send_sge);

	must(ibv_close_xrcd(x.xrcd) == EBUSY);
	must(ibv_destroy_cq(x.rcq[0]) == EBUSY);
	return cleanup(&x);
}

/* The initiator names the SRQ; its CQ tells what came, and of which target. */
bool case_xrc_traffic(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_wc wc;
	struct xrc x;
	int i, k;

	must(setup(&x, -1));
	for (i = 0; i < 40; i++) {
		k = i * 7 % 3 & 1;
		must(!srq_post(x.srq[k], i));
		if (i % 4) {
			must(!post(&x, IBV_WR_SEND_WITH_IMM, i, x.srqn[k]));
			must(received(&x, k, i, IBV_WC_RECV));
		} else {
			must(!post(&x, IBV_WR_RDMA_WRITE_WITH_IMM, i, x.srqn[k]));
			must(received(&x, k, i, IBV_WC_RECV_RDMA_WITH_IMM));
		}
		must(done(x.scq, i, IBV_WC_SUCCESS));
	}
	for (i = 0; i < 3; i++)
		must(!srq_post(x.srq[1], i));
	must(!ibv_modify_srq(x.srq[1], &limit, IBV_SRQ_LIMIT));
	for (i = 0; i < 2; i++) {
		must(!post(&x, IBV_WR_SEND, i, x.srqn[1]));
		must(done(x.scq, i, IBV_WC_SUCCESS));
		must(poll_one(x.rcq[1], &wc, 20) && wc.wr_id == (unsigned int)i);
		must(wc.qp_num == x.tgt->qp_num);
	}
	must(event(IBV_EVENT_SRQ_LIMIT_REACHED));
	/* What is posted waits for nobody in particular. */
	must(!ibv_destroy_qp(x.tgt));
	must(x.tgt = make_tgt(x.xrcd));
	must(!ibv_destroy_qp(x.ini));
	must(x.ini = make_ini(x.scq));
	must(join(&x));
	must(!post(&x, IBV_WR_SEND_WITH_IMM, 7, x.srqn[1]));
	must(received(&x, 1, 2, IBV_WC_RECV));
	must(done(x.scq, 7, IBV_WC_SUCCESS));
	/* Without a receive it is tried again, as often as was said. */
	must(!post(&x, IBV_WR_SEND, 8, x.srqn[1]));
	must(done(x.scq, 8, IBV_WC_RNR_RETRY_EXC_ERR));
	must(quiet());
	return cleanup(&x);
}

/* Who opens a target keeps it, when its maker goes. */
bool case_xrc_shared(void)
{
	int fd = open("/tmp/skua-queues", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	struct ibv_qp_init_attr init;
	struct ibv_xrcd *again;
	struct ibv_qp *second;
	struct ibv_qp_attr attr;
	uint32_t qpn;
	struct xrc x;

	must(fd >= 0);
	must(setup(&x, fd));
	must(again = open_domain(fd));
	qpn = x.tgt->qp_num;
	must(second = open_tgt(again, qpn));
	must(second->qp_num == qpn);
	must(!ibv_destroy_qp(x.tgt));
	x.tgt = NULL;
	must(!srq_post(x.srq[0], 1));
	must(!post(&x, IBV_WR_SEND_WITH_IMM, 1, x.srqn[0]));
	must(received(&x, 0, 1, IBV_WC_RECV));
	must(done(x.scq, 1, IBV_WC_SUCCESS));
	must(!ibv_query_qp(second, &attr, IBV_QP_STATE, &init));
	must(attr.qp_state == IBV_QPS_RTS);

	/* The last one closes: nobody answers any more. */
	must(!ibv_destroy_qp(second));
	must(!open_tgt(again, qpn) && errno == EINVAL);
	must(!post(&x, IBV_WR_SEND, 2, x.srqn[0]));
	must(done(x.scq, 2, IBV_WC_RETRY_EXC_ERR));
	must(!ibv_close_xrcd(again));
	must(cleanup(&x));
	must(!close(fd) && !unlink("/tmp/skua-queues"));
	return true;
}

bool case_xrc_errors(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		bool wrong_srq;
		enum ibv_wc_status status;
		enum ibv_event_type event;
	} cases[] = {
		{ IBV_WR_SEND, true, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ IBV_WR_RDMA_WRITE, true, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ IBV_WR_RDMA_READ, true, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	};
	struct xrc x;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t rkey = mr->rkey;

		must(setup(&x, -1));
		must(!srq_post(x.srq[0], 1));
		/* No SRQ has this number; no region this key. */
		if (!cases[i].wrong_srq)
			mr->rkey ^= 0x55;
		must(!post(&x, cases[i].op, 1, cases[i].wrong_srq ? 0xfffff0 : x.srqn[0]));
		mr->rkey = rkey;
		must(done(x.scq, 1, cases[i].status));
		/* The target's event, to the one that has it open. */
		must(event(cases[i].event));
		must(event(IBV_EVENT_QP_LAST_WQE_REACHED));
		must(quiet());
		/* The SRQ serves the next one. */
		must(!ibv_destroy_qp(x.tgt) && !ibv_destroy_qp(x.ini));
		must(x.tgt = make_tgt(x.xrcd));
		must(x.ini = make_ini(x.scq));
		must(join(&x));
		must(!post(&x, IBV_WR_SEND_WITH_IMM, 2, x.srqn[0]));
		must(received(&x, 0, 1, IBV_WC_RECV));
		must(done(x.scq, 2, IBV_WC_SUCCESS));
		must(cleanup(&x));
	}
	return true;
}

static void *destroy_first(void *arg)
{
	struct xrc *x = arg;
	int ret;

	/* It is busy while it is queried. */
	do
		ret = ibv_destroy_srq(x->srq[0]);
	while (ret == EBUSY);
	return (void *)(uintptr_t)ret;
}

static void *make_xrc(void *arg)
{
	struct xrc *x = arg;

	return make_xsrq(x->xrcd, x->rcq[0]);
}

static void *make_basic(void *arg)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 15, .max_sge = 1 } };

	(void)arg;
	return ibv_create_srq(dev.pd, &attr);
}

/*
 * An SRQ that goes waits until its event is acknowledged. Who will do that may first make
 * another SRQ, which may get the number of the one that goes.
 */
static bool made_meanwhile(struct xrc *x, void *(*make)(void *), pthread_t *destroyer,
			   struct ibv_srq **srq)
{
	struct ibv_srq_attr attr;
	struct timespec until;
	int n = 0, ret;
	pthread_t maker;
	void *made;

	if (pthread_create(destroyer, NULL, destroy_first, x))
		die("pthread_create");
	/* The kernel knows it no more: it is neither there nor busy with going. */
	while (ret = ibv_query_srq(x->srq[0], &attr), (!ret || ret == EBUSY) && n++ < 10000)
		usleep(1000);
	/* It will look for its completions there. */
	must(ibv_destroy_cq(x->rcq[0]) == EBUSY);
	must(!pthread_create(&maker, NULL, make, x));
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	must(!pthread_timedjoin_np(maker, &made, &until));
	must(*srq = made);
	return true;
}

/* Its completion is not looked at: it goes with the SRQ. */
static bool limit_reached(struct xrc *x, struct ibv_async_event *ev)
{
	struct pollfd pfd = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_srq_attr limit = { .srq_limit = 1 };

	must(setup(x, -1));
	must(!srq_post(x->srq[0], 1));
	must(!ibv_modify_srq(x->srq[0], &limit, IBV_SRQ_LIMIT));
	must(!post(x, IBV_WR_SEND_WITH_IMM, 2, x->srqn[0]));
	must(done(x->scq, 2, IBV_WC_SUCCESS));
	must(poll(&pfd, 1, 10000) == 1 && !ibv_get_async_event(dev.ctx, ev));
	must(ev->event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
	must(ev->element.srq == x->srq[0] && ev->element.srq->srq_context == x->xrcd);
	return true;
}

bool case_xrc_event(void)
{
	static struct xrc x;	/* threads may have it when the case has failed */
	struct ibv_async_event ev;
	struct ibv_srq *srq;
	pthread_t destroyer;
	uint32_t num;
	void *ret;
	bool ok;

	must(limit_reached(&x, &ev));
	ok = made_meanwhile(&x, make_xrc, &destroyer, &srq);
	ibv_ack_async_event(&ev);
	must(!pthread_join(destroyer, &ret));
	if (!ok)
		return false;
	must(!ret);

	must(!ibv_get_srq_num(srq, &num) && num == x.srqn[0]);
	x.srq[0] = srq;
	must(!srq_post(srq, 3));
	must(!post(&x, IBV_WR_SEND_WITH_IMM, 4, num));
	must(done(x.scq, 4, IBV_WC_SUCCESS));
	must(received(&x, 0, 3, IBV_WC_RECV));
	return cleanup(&x);
}

/* The other one is a plain SRQ, and what came for it stays when the first one goes. */
bool case_xrc_basic(void)
{
	static struct xrc x;
	struct ibv_qp *qp = NULL, *peer = NULL;
	struct ibv_async_event ev;
	struct ibv_srq *srq;
	pthread_t destroyer;
	void *ret;
	bool ok;

	must(limit_reached(&x, &ev));
	ok = made_meanwhile(&x, make_basic, &destroyer, &srq);
	if (ok) {
		qp = make_qp(x.rcq[0], srq);
		peer = make_qp(x.scq, NULL);
		join_qps(peer, qp);
		ok = !srq_post(srq, 3) && !send_post(peer, 4, true) &&
		     done(x.scq, 4, IBV_WC_SUCCESS);
	}
	ibv_ack_async_event(&ev);
	must(!pthread_join(destroyer, &ret));
	if (!ok)
		return false;
	must(!ret);
	must(done(x.rcq[0], 3, IBV_WC_SUCCESS));
	must(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer) && !ibv_destroy_srq(srq));
	must(x.srq[0] = make_xsrq(x.xrcd, x.rcq[0]));
	return cleanup(&x);
}
