// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hello_send: one message each way over a reliable connection, with libibverbs alone.
 *
 *   server:  hello_send DEVICE GID_INDEX
 *   client:  hello_send DEVICE GID_INDEX SERVER
 *
 * "rdma link" lists the devices, "ibv_devinfo -v" the GIDs of each. On RoCE the address is a
 * GID; LIDs are those of InfiniBand. Each end tells the other one its address over TCP.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>

#define TCP_PORT "18515"

enum { RECV_ID, SEND_ID };		/* wr_id: what completed? */

/* What one end tells the other, in network byte order */
struct address {
	__be32 qpn;
	__be32 psn;	/* of the first packet it sends */
	__be32 mtu;	/* enum ibv_mtu */
	union ibv_gid gid;
};

/* What returns an error code does not always set errno, too */
static void check(int error, const char *what)
{
	errno = error;
	if (error)
		err(1, "%s", what);
}

static int tcp_accept(void)
{
	/* An IPv6 socket takes IPv4 connections as well */
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(TCP_PORT)) };
	int fd = socket(AF_INET6, SOCK_STREAM, 0), conn = -1, on = 1;

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&any, sizeof(any)) && !listen(fd, 1))
		conn = accept(fd, NULL, NULL);
	if (conn < 0)
		err(1, "TCP port %s", TCP_PORT);
	return conn;
}

static int tcp_connect(const char *server)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int fd, rc = getaddrinfo(server, TCP_PORT, &hints, &ai);

	if (rc)
		errx(1, "%s: %s", server, gai_strerror(rc));
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "%s, TCP port %s", server, TCP_PORT);
	freeaddrinfo(ai);
	return fd;
}

/* When this returns the other end has come to the same place */
static void exchange(int fd, const void *mine, void *others, size_t len)
{
	if (send(fd, mine, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(fd, others, len, MSG_WAITALL) != (ssize_t)len)
		errx(1, "the other end has closed the TCP connection");
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	int i = 0;

	while (list && list[i] && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	if (!list || !list[i])
		errx(1, "there is no RDMA device %s", name);
	ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!ctx)
		err(1, "%s", name);
	return ctx;
}

/* INIT takes receives, RTR receives, RTS sends */
static void connect_qp(struct ibv_qp *qp, int gid_index, const struct address *mine,
		       const struct address *others)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = MIN(ntohl(mine->mtu), ntohl(others->mtu)),
		.dest_qp_num = ntohl(others->qpn),
		.rq_psn = ntohl(others->psn),
		.min_rnr_timer = 12,	/* 0.64 ms */
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = others->gid, .sgid_index = gid_index, .hop_limit = 64 },
		},
	};

	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER), "QP to RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = ntohl(mine->psn),
		.timeout = 14,		/* 4.096 us * 2^14 = 67 ms for an acknowledgment */
		.retry_cnt = 7,
		.rnr_retry = 7,		/* the other end may take any time to post a receive */
	};
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	      "QP to RTS");
}

/* Of a SEND and a receive either may complete first */
static void await(struct ibv_cq *cq, int completions)
{
	struct ibv_wc wc;
	int n;

	for (; completions > 0; completions -= n) {
		n = ibv_poll_cq(cq, 1, &wc);
		check(n < 0 ? EIO : 0, "ibv_poll_cq");
		/* With an error only wr_id, status, qp_num and vendor_err are valid */
		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			errx(1, "%s: %s", wc.wr_id == SEND_ID ? "SEND" : "receive",
			     ibv_wc_status_str(wc.status));
	}
}

int main(int argc, char **argv)
{
	const char *server = argc > 3 ? argv[3] : NULL;
	static char buf[2][64];		/* to send, to receive */
	struct address mine, others;
	int fd, gid_index = argc > 2 ? atoi(argv[2]) : 0;
	struct ibv_port_attr port;

	if (argc < 3 || argc > 4)
		errx(2, "usage: hello_send DEVICE GID_INDEX [SERVER]");

	struct ibv_context *ctx = open_device(argv[1]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_cq *cq = ibv_create_cq(ctx, 2, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = mr && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	if (!qp)
		err(1, "PD, MR, CQ or QP");
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS), "QP to INIT");

	/* The receive is there before the other end learns of this QP, and sends to it */
	struct ibv_sge in = { (uintptr_t)buf[1], sizeof(buf[1]), mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = RECV_ID, .sg_list = &in, .num_sge = 1 }, *bad_recv;

	check(ibv_post_recv(qp, &recv, &bad_recv), "ibv_post_recv");
	check(ibv_query_port(ctx, 1, &port), "ibv_query_port");
	if (ibv_query_gid(ctx, 1, gid_index, &mine.gid))
		err(1, "GID %d of %s", gid_index, argv[1]);
	mine.qpn = htonl(qp->qp_num);
	mine.psn = htonl(random() & 0xffffff);
	mine.mtu = htonl(port.active_mtu);
	fd = server ? tcp_connect(server) : tcp_accept();
	exchange(fd, &mine, &others, sizeof(mine));
	connect_qp(qp, gid_index, &mine, &others);
	exchange(fd, "r", &(char){0}, 1);	/* both QPs are in RTS */

	snprintf(buf[0], sizeof(buf[0]), "hello from the %s", server ? "client" : "server");
	struct ibv_sge out = { (uintptr_t)buf[0], strlen(buf[0]) + 1, mr->lkey };
	struct ibv_send_wr send = { .wr_id = SEND_ID, .opcode = IBV_WR_SEND, .sg_list = &out,
				    .num_sge = 1 }, *bad_send;

	if (!server)
		await(cq, 1);			/* the client speaks first */
	check(ibv_post_send(qp, &send, &bad_send), "ibv_post_send");
	await(cq, server ? 2 : 1);
	printf("%.*s\n", (int)sizeof(buf[1]), buf[1]);

	exchange(fd, "e", &(char){0}, 1);	/* the other end needs this QP no longer */
	check(ibv_destroy_qp(qp) ?: ibv_destroy_cq(cq) ?: ibv_dereg_mr(mr) ?: ibv_dealloc_pd(pd) ?:
	      ibv_close_device(ctx), "destroying");
	return 0;
}
