// SPDX-License-Identifier: GPL-2.0
/*
 * skua-bridge ADDRESS PORT SOCKET: a server of messages over RDMA for a server that has UNIX
 * sockets only. Each connection gets one of its own; a SEND is handed over as it is, and an
 * answer, which begins with its length (32 bits, little endian, as in 9P), becomes a SEND.
 *
 * It is the client that ends a connection. SIGTERM ends the bridge, as soon as no connection is
 * left: with 0, or with 1 if anything else has ended one.
 */
#include <endian.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common.h"

#define DEPTH 64
#define SIZE (1 << 17)

static volatile sig_atomic_t failed, connected, told_to_end;

/**
 * struct bridge - a connection
 * @id: of the client
 * @mr: @buf
 * @buf: DEPTH to receive into, and one to send from
 * @fd: the server's socket
 * @over: the connection has ended, and that is why @fd does
 */
struct bridge {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t (*buf)[SIZE];
	int fd;
	_Atomic bool over;
};

static void end(int sig)
{
	(void)sig;
	if (!connected)
		_exit(failed);
	told_to_end = 1;
}

static void failure(const char *why)
{
	fprintf(stderr, "skua-bridge: %s\n", why);
	failed = 1;
}

static void post_recv(struct bridge *b, uintptr_t i)
{
	if (rdma_post_recv(b->id, (void *)i, b->buf[i], SIZE, b->mr))
		die("rdma_post_recv: %m");
}

/* Until the connection ends. */
static void *to_socket(void *arg)
{
	struct bridge *b = arg;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	while (rdma_get_recv_comp(b->id, &wc) == 1 && !wc.status) {
		if (write(b->fd, b->buf[wc.wr_id], wc.byte_len) != wc.byte_len)
			die("write: %m");
		post_recv(b, wc.wr_id);
	}
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		failure(ibv_wc_status_str(wc.status));
	b->over = true;
	shutdown(b->fd, SHUT_RDWR);
	return NULL;
}

/* Until the other direction ends; if it is the server that does, the client is to notice. */
static void *to_rdma(void *arg)
{
	struct bridge *b = arg;
	uint8_t *buf = b->buf[DEPTH];
	struct ibv_wc wc;
	uint32_t len;

	while (recv(b->fd, buf, 4, MSG_WAITALL) == 4) {
		memcpy(&len, buf, 4);
		len = le32toh(len);
		if (len < 4 || len > SIZE)
			die("an answer of %u bytes", len);
		if (recv(b->fd, buf + 4, len - 4, MSG_WAITALL) != len - 4 ||
		    rdma_post_send(b->id, NULL, buf, len, b->mr, IBV_SEND_SIGNALED) ||
		    rdma_get_send_comp(b->id, &wc) != 1 || wc.status)
			break;
	}
	if (!b->over) {
		failure("the server has ended before the client");
		rdma_disconnect(b->id);
	}
	return NULL;
}

static int unix_socket(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("%s: %m", path);
	return fd;
}

/* One connection, until either end goes. */
static void serve(struct rdma_cm_id *id, const char *path)
{
	struct bridge b = { .id = id, .fd = unix_socket(path) };
	struct rdma_cm_event *event;
	pthread_t in, out;
	uintptr_t i;

	b.buf = calloc(DEPTH + 1, SIZE);
	b.mr = b.buf ? rdma_reg_msgs(id, b.buf, (DEPTH + 1) * SIZE) : NULL;
	if (!b.mr)
		die("no memory");
	for (i = 0; i < DEPTH; i++)
		post_recv(&b, i);
	if (rdma_accept(id, NULL))
		die("rdma_accept: %m");
	if (pthread_create(&in, NULL, to_socket, &b) || pthread_create(&out, NULL, to_rdma, &b))
		die("pthread_create");
	while (!rdma_get_cm_event(id->channel, &event)) {
		i = event->event;
		rdma_ack_cm_event(event);
		if (i == RDMA_CM_EVENT_DISCONNECTED)
			break;
	}
	/* What is posted is flushed, which ends one thread, and that the other */
	rdma_disconnect(id);
	pthread_join(in, NULL);
	pthread_join(out, NULL);
	close(b.fd);
	rdma_dereg_mr(b.mr);
	free(b.buf);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *ai;

	if (argc != 4)
		die("usage: skua-bridge ADDRESS PORT SOCKET");
	signal(SIGPIPE, SIG_IGN);
	/* It does not interrupt system calls */
	signal(SIGTERM, end);
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &ai) ||
	    rdma_create_ep(&listener, ai, NULL, &attr) || rdma_listen(listener, 4))
		die("%s:%s: %m", argv[1], argv[2]);
	while (!rdma_get_request(listener, &id)) {
		connected = 1;
		serve(id, argv[3]);
		connected = 0;
		if (told_to_end)
			return failed;
	}
	die("rdma_get_request: %m");
}
