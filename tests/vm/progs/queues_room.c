// SPDX-License-Identifier: GPL-2.0
/*
 * skua-queues: a CQ that has as many entries as the send queue that completes there has room for
 * all its completions, whoever posts, and when.
 */
#include <pthread.h>
#include <sched.h>

#include "queues.h"

#define ROOM	16
#define WRITES	4000

/* A QP whose send queue alone completes on @cq, which has as many entries; and its peer. */
static struct ibv_qp *make_full(struct ibv_cq *cq, struct ibv_cq *other, struct ibv_qp **peer)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = other, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = ROOM, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &attr);

	*peer = make_qp(other, NULL);
	if (!qp || attr.cap.max_send_wr != ROOM)
		return NULL;
	join_qps(qp, *peer);
	return qp;
}

/* The n-th WRITE has its number as payload. */
static int write_number(struct ibv_qp *qp, uint32_t n)
{
	uint32_t *from = (uint32_t *)buf + n % ROOM;
	struct ibv_sge sg = { (uintptr_t)from, sizeof(*from), mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = n, .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)buf + LEN / 2, mr->rkey },
	}, *bad;

	*from = n;
	return ibv_post_send(qp, &wr, &bad);
}

static bool arrived(uint32_t n)
{
	const volatile uint32_t *at = (const volatile uint32_t *)(buf + LEN / 2);
	double end = now() + 5;

	while (*at != n && now() < end)
		sched_yield();
	return *at == n;
}

/*
 * All completions that there are, up to the next end of the poll: for each a WRITE is posted, and
 * it arrives before the next completion is taken.
 */
static bool poll_and_post(struct ibv_cq_ex *cqx, struct ibv_qp *qp, uint32_t *got, uint32_t *posted)
{
	int ret;

	do {
		must(cqx->status == IBV_WC_SUCCESS && cqx->wr_id == *got);
		++*got;
		if (*posted < WRITES) {
			must(!write_number(qp, *posted) && arrived(*posted));
			++*posted;
		}
		ret = ibv_next_poll(cqx);
	} while (!ret);
	must(ret == ENOENT);
	return true;
}

bool case_room_extended(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = ROOM, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cqx = ibv_create_cq_ex(dev.ctx, &attr);
	uint32_t posted, got = 0, from, longest = 0;
	struct ibv_poll_cq_attr none = {};
	struct ibv_cq *other = make_cq(16);
	struct ibv_qp *qp, *peer;
	double end = now() + 60;

	must(cqx && ibv_cq_ex_to_cq(cqx)->cqe == ROOM);
	qp = make_full(ibv_cq_ex_to_cq(cqx), other, &peer);
	must(qp);
	for (posted = 0; posted < ROOM; posted++)
		must(!write_number(qp, posted));
	must(write_number(qp, posted) == ENOMEM);
	must(arrived(posted - 1));
	while (got < WRITES) {
		must(now() < end);
		if (ibv_start_poll(cqx, &none))
			continue;
		from = got;
		must(poll_and_post(cqx, qp, &got, &posted));
		ibv_end_poll(cqx);
		if (got - from > longest)
			longest = got - from;
	}
	/* More than the CQ has entries, or the program has shown nothing. */
	must(longest > 2 * ROOM);
	must(quiet());
	must(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
	must(!ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)) && !ibv_destroy_cq(other));
	return true;
}

/* Posts until there is no room, again and again. */
static void *poster(void *arg)
{
	double end = now() + 60;
	struct ibv_qp *qp = arg;
	uint32_t n = 0;
	int ret;

	while (n < WRITES && now() < end) {
		ret = write_number(qp, n);
		if (!ret)
			n++;
		else if (ret != ENOMEM)
			break;
	}
	return n == WRITES ? NULL : arg;
}

bool case_room_threads(void)
{
	struct ibv_cq *cq = make_cq(ROOM), *other = make_cq(16);
	double end = now() + 60;
	struct ibv_qp *qp, *peer;
	struct ibv_wc wc[ROOM];
	uint32_t got = 0;
	pthread_t thread;
	void *failed;

	qp = make_full(cq, other, &peer);
	must(qp);
	must(!pthread_create(&thread, NULL, poster, qp));
	while (got < WRITES && now() < end) {
		int n = ibv_poll_cq(cq, ROOM, wc);

		for (int i = 0; i < n && wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == got; i++)
			got++;
		if (!n)
			sched_yield();
	}
	pthread_join(thread, &failed);
	must(!failed && got == WRITES && quiet());
	must(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer));
	must(!ibv_destroy_cq(cq) && !ibv_destroy_cq(other));
	return true;
}
