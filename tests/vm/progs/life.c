// SPDX-License-Identifier: GPL-2.0
/*
 * skua-life: make one object of each kind on a device, let two QPs of it talk, and
 * take all down again. Prints the steps that fail with their error, and exits with 1
 * if there was one: for tests in which something is made to fail.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

#define BUF		(64 * 4096)
#define DEPTH		16

static const union ibv_gid GROUP = { .raw = {
	[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 77, [14] = 1, [15] = 9 } };

/* What there is so far. */
struct life {
	struct dev dev;
	uint8_t *buf;
	struct ibv_mr *mr;	/* one page */
	struct ibv_mr *big;	/* many, scattered */
	uint8_t *absent;	/* BUF bytes, none of which has a page yet */
	struct ibv_mr *odp;	/* of that, on demand */
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];
	struct ibv_qp *ud;	/* member of GROUP */
	bool joined;
	unsigned int failed;
};

static bool step(struct life *l, const char *name, int err)
{
	if (!err)
		return true;
	/* Some calls return an errno, some -1 with errno set. */
	if (err < 0)
		err = errno;
	printf("%s: %s\n", name, strerror(err));
	l->failed++;
	return false;
}

static bool step_ptr(struct life *l, const char *name, const void *p)
{
	return step(l, name, p ? 0 : errno ? errno : EIO);
}

static bool open_device(struct life *l, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned int i = 0; list && list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			l->dev.ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return step_ptr(l, "open", l->dev.ctx) &&
	       step(l, "query_device", ibv_query_device(l->dev.ctx, &l->dev.attr)) &&
	       step(l, "query_port", ibv_query_port(l->dev.ctx, 1, &l->dev.port)) &&
	       step(l, "query_gid", ibv_query_gid(l->dev.ctx, 1, l->dev.gid_index, &l->dev.gid));
}

/* Memory of which no two pages need follow each other. */
static bool make_memory(struct life *l)
{
	l->buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->buf == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	for (unsigned int i = 0; i < BUF / 4096; i++)
		l->buf[4096 * (i * 29 % (BUF / 4096))] = i;
	l->dev.pd = ibv_alloc_pd(l->dev.ctx);
	if (!step_ptr(l, "alloc_pd", l->dev.pd))
		return false;
	l->mr = ibv_reg_mr(l->dev.pd, l->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (!step_ptr(l, "reg_mr", l->mr))
		return false;
	if (!step(l, "rereg_mr", ibv_rereg_mr(l->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)))
		return false;
	l->big = ibv_reg_mr(l->dev.pd, l->buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	return step_ptr(l, "reg_mr of many pages", l->big);
}

static bool make_on_demand(struct life *l)
{
	struct ibv_device_attr_ex attr;

	if (!step(l, "query_device_ex", ibv_query_device_ex(l->dev.ctx, NULL, &attr)))
		return false;
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		return true;
	l->absent = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->absent == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	l->odp = ibv_reg_mr(l->dev.pd, l->absent, BUF,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	return step_ptr(l, "reg_mr on demand", l->odp);
}

static bool make_cq(struct life *l)
{
	l->ch = ibv_create_comp_channel(l->dev.ctx);
	if (!step_ptr(l, "create_comp_channel", l->ch))
		return false;
	l->cq = ibv_create_cq(l->dev.ctx, DEPTH, NULL, l->ch, 0);
	if (!step_ptr(l, "create_cq", l->cq))
		return false;
	return step(l, "resize_cq", ibv_resize_cq(l->cq, 4 * DEPTH));
}

static bool make_srq(struct life *l)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	if (!l->dev.attr.max_srq)
		return true;
	l->srq = ibv_create_srq(l->dev.pd, &init);
	if (!step_ptr(l, "create_srq", l->srq))
		return false;
	if (!step(l, "modify_srq", ibv_modify_srq(l->srq, &attr, IBV_SRQ_LIMIT)) ||
	    !step(l, "query_srq", ibv_query_srq(l->srq, &attr)))
		return false;
	attr.max_wr = 4 * DEPTH;
	return !(l->dev.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) ||
	       step(l, "resize_srq", ibv_modify_srq(l->srq, &attr, IBV_SRQ_MAX_WR));
}

static bool join_group(struct life *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};

	if (!l->dev.attr.max_mcast_grp)
		return true;
	l->ud = ibv_create_qp(l->dev.pd, &init);
	if (!step_ptr(l, "create_qp UD", l->ud))
		return false;
	l->joined = step(l, "attach_mcast", ibv_attach_mcast(l->ud, &GROUP, 0));
	return l->joined;
}

static bool make_qps(struct life *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr;

	for (unsigned int i = 0; i < 2; i++) {
		l->qp[i] = ibv_create_qp(l->dev.pd, &init);
		if (!step_ptr(l, "create_qp", l->qp[i]))
			return false;
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct addr peer = qp_addr(&l->dev, l->qp[!i], 0);

		if (!step(l, "INIT", qp_to_init(l->qp[i], &link_default)) ||
		    !step(l, "RTR", qp_to_rtr(&l->dev, l->qp[i], &peer, &link_default)) ||
		    !step(l, "RTS", qp_to_rts(l->qp[i], 0, &link_default)))
			return false;
	}
	return step(l, "query_qp", ibv_query_qp(l->qp[0], &attr, IBV_QP_STATE, &init));
}

/* A message from the one QP to the other, out of many pages. */
static bool talk(struct life *l, uint8_t *buf, struct ibv_mr *mr)
{
	struct ibv_sge from = { (uintptr_t)buf + 4096, 8 * 4096, mr->lkey };
	struct ibv_sge to = { (uintptr_t)l->buf + 32 * 4096, 8 * 4096, l->big->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &to, .num_sge = 1 }, *rbad;
	struct ibv_send_wr swr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED }, *sbad;
	struct ibv_wc wc;

	if (!step(l, "post_recv", ibv_post_recv(l->qp[1], &rwr, &rbad)) ||
	    !step(l, "post_send", ibv_post_send(l->qp[0], &swr, &sbad)))
		return false;
	for (unsigned int i = 0; i < 2; i++) {
		if (!poll_one(l->cq, &wc, 10))
			return step(l, "poll_cq", ETIMEDOUT);
		if (!step(l, ibv_wc_status_str(wc.status), wc.status ? EIO : 0))
			return false;
	}
	return step(l, "data", memcmp((void *)(uintptr_t)from.addr, (void *)(uintptr_t)to.addr,
				      to.length) ? EBADMSG : 0);
}

/* Until the input ends, or the device is lost: then with an error. */
static void wait_end(struct life *l)
{
	struct pollfd fd[] = {
		{ .fd = 0, .events = POLLIN },
		{ .fd = l->dev.ctx->async_fd, .events = POLLIN },
	};
	struct ibv_async_event ev;

	puts("waiting");
	fflush(stdout);
	for (;;) {
		poll(fd, 2, -1);
		if (fd[0].revents)
			return;
		if (ibv_get_async_event(l->dev.ctx, &ev))
			return (void)step(l, "get_async_event", EIO);
		ibv_ack_async_event(&ev);
		if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
			return (void)step(l, "DEVICE_FATAL", EIO);
	}
}

/* Whatever was made goes, also when one step fails. */
static void end(struct life *l)
{
	if (l->joined)
		step(l, "detach_mcast", ibv_detach_mcast(l->ud, &GROUP, 0));
	if (l->ud)
		step(l, "destroy_qp UD", ibv_destroy_qp(l->ud));
	for (unsigned int i = 0; i < 2; i++)
		if (l->qp[i])
			step(l, "destroy_qp", ibv_destroy_qp(l->qp[i]));
	if (l->srq)
		step(l, "destroy_srq", ibv_destroy_srq(l->srq));
	if (l->cq)
		step(l, "destroy_cq", ibv_destroy_cq(l->cq));
	if (l->ch)
		step(l, "destroy_comp_channel", ibv_destroy_comp_channel(l->ch));
	if (l->big)
		step(l, "dereg_mr of many pages", ibv_dereg_mr(l->big));
	if (l->odp)
		step(l, "dereg_mr on demand", ibv_dereg_mr(l->odp));
	if (l->mr)
		step(l, "dereg_mr", ibv_dereg_mr(l->mr));
	if (l->dev.pd)
		step(l, "dealloc_pd", ibv_dealloc_pd(l->dev.pd));
	if (l->dev.ctx)
		step(l, "close", ibv_close_device(l->dev.ctx));
}

int main(int argc, char **argv)
{
	struct life l = { .dev.gid_index = 0 };
	const char *name = "";
	bool hold = false;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:w")) != -1) {
		switch (opt) {
		case 'd':
			name = optarg;
			break;
		case 'g':
			l.dev.gid_index = atoi(optarg);
			break;
		case 'w':
			hold = true;
			break;
		default:
			die("usage: -d DEVICE [-g GID_INDEX] [-w: wait for the input's end]");
		}
	}
	if (open_device(&l, name) && make_memory(&l) && make_on_demand(&l) && make_cq(&l) &&
	    make_srq(&l) && make_qps(&l) && talk(&l, l.buf, l.big) &&
	    (!l.odp || talk(&l, l.absent, l.odp)) && join_group(&l) && hold)
		wait_end(&l);
	end(&l);
	return l.failed ? 1 : 0;
}
