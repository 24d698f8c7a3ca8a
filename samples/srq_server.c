// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * srq_server: one thread, one shared receive queue and one CQ for all clients, asleep until
 * there is an event. What a client (srq_client) sends comes back in capital letters.
 *
 *   srq_server ADDRESS CLIENTS     (an address of its own; ends when so many have left)
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#define PORT "18519"
#define BUFFERS 64
#define BUF_LEN 64
#define DRAINED BUFFERS	/* a wr_id that is no buffer */

static struct rdma_event_channel *events;
static struct ibv_comp_channel *completions;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
/* Each waits in the SRQ for a message or carries an answer: so many answers at most */
static char buf[BUFFERS][BUF_LEN];
/* By QP number, of 24 bits. Pages that nobody touches take no memory. */
static struct rdma_cm_id *clients[1 << 24];
static int left;

/* Verbs return an error code; the connection manager's functions -1, and set errno */
static void check(int error, const char *what)
{
	errno = error > 0 ? error : errno;
	if (error)
		err(1, "%s", what);
}

static void receive(int i)
{
	struct ibv_sge sge = { (uintptr_t)buf[i], BUF_LEN, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

static void send_on(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	check(ibv_post_send(qp, wr, &(struct ibv_send_wr *){ NULL }), "ibv_post_send");
}

static void answer(const struct ibv_wc *wc)
{
	char *text = buf[wc->wr_id];
	struct ibv_sge sge = { (uintptr_t)text, wc->byte_len, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wc->wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	uint32_t i;

	for (i = 0; i < wc->byte_len; i++)
		text[i] = toupper((unsigned char)text[i]);
	send_on(clients[wc->qp_num]->qp, &wr);
}

/* A QP in the error state: a last request behind all others of the send queue */
static void drain(struct ibv_qp *qp)
{
	send_on(qp, &(struct ibv_send_wr){ .wr_id = DRAINED, .opcode = IBV_WR_SEND });
}

static void leave(struct rdma_cm_id *id)
{
	clients[id->qp->qp_num] = NULL;
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	left++;
}

static void on_completions(void)
{
	struct ibv_cq *same;
	struct ibv_wc wc;
	void *ctx;
	int n;

	check(ibv_get_cq_event(completions, &same, &ctx), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	/* Arm, then poll: completions in between make the next event */
	check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		/* With an error only wr_id, status, qp_num and vendor_err are valid */
		if (wc.wr_id == DRAINED)
			leave(clients[wc.qp_num]);
		else if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV)
			answer(&wc);
		else
			receive(wc.wr_id);	/* the answer has gone, or the client will */
	}
	check(n, "ibv_poll_cq");
}

static void on_connect_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .srq = srq, .send_cq = cq,
		.recv_cq = cq, .cap = { .max_send_wr = BUFFERS + 1, .max_send_sge = 1 },
	};

	if (!rdma_create_qp(id, pd, &attr)) {
		clients[id->qp->qp_num] = id;
		if (!rdma_accept(id, &param))
			return;
		clients[id->qp->qp_num] = NULL;
		rdma_destroy_qp(id);
	}
	warn("a client is refused");
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void on_cm_event(void)
{
	struct rdma_cm_event *event, e;

	check(rdma_get_cm_event(events, &event), "rdma_get_cm_event");
	e = *event;
	rdma_ack_cm_event(event);	/* an id with events to acknowledge cannot be destroyed */
	if (e.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_connect_request(e.id);
	else if (e.event != RDMA_CM_EVENT_ESTABLISHED && e.event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		rdma_disconnect(e.id);	/* brings the QP to the error state */
}

/* A QP in the error state may hold receives of the SRQ until it has reported the last one.
 * Its answers complete later, and no QP may go before.
 */
static void on_async_event(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	check(ibv_get_async_event(verbs, &event), "ibv_get_async_event");
	if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
		drain(event.element.qp);
	else if (event.event_type == IBV_EVENT_DEVICE_FATAL)
		errx(1, "the device has failed");
	ibv_ack_async_event(&event);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = BUFFERS, .max_sge = 1 } };
	struct rdma_cm_id *listener;
	struct rdma_addrinfo *ai;
	struct ibv_context *verbs;
	int i;

	if (argc != 3)
		errx(2, "usage: srq_server ADDRESS CLIENTS");
	events = rdma_create_event_channel();
	if (!events || rdma_getaddrinfo(argv[1], PORT, &hints, &ai) ||
	    rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, ai->ai_src_addr) || !listener->verbs)
		err(1, "%s is not the address of a NIC with RDMA", argv[1]);
	rdma_freeaddrinfo(ai);
	verbs = listener->verbs;
	pd = ibv_alloc_pd(verbs);
	completions = ibv_create_comp_channel(verbs);
	cq = ibv_create_cq(verbs, 4 * BUFFERS, NULL, completions, 0);
	srq = pd ? ibv_create_srq(pd, &attr) : NULL;
	mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!completions || !cq || !srq || !mr)
		err(1, "PD, completion channel, CQ, SRQ or MR");
	for (i = 0; i < BUFFERS; i++)
		receive(i);
	check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	check(rdma_listen(listener, 16), argv[1]);

	struct pollfd fds[] = { { events->fd, POLLIN, 0 }, { completions->fd, POLLIN, 0 },
				{ verbs->async_fd, POLLIN, 0 } };

	while (left < atoi(argv[2])) {
		check(poll(fds, 3, -1) < 0 ? -1 : 0, "poll");
		if (fds[0].revents)
			on_cm_event();
		if (fds[1].revents)
			on_completions();
		if (fds[2].revents)
			on_async_event(verbs);
	}
	printf("%d clients have left\n", left);
	rdma_destroy_id(listener);
	check(ibv_destroy_srq(srq) ?: ibv_destroy_cq(cq) ?: ibv_dereg_mr(mr) ?:
	      ibv_dealloc_pd(pd) ?: ibv_destroy_comp_channel(completions), "destroying");
	return 0;
}
