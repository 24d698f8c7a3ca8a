// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hello_write: the client writes into the memory of the server, which only learns of it by
 * the last write's immediate data.
 *
 *   server:  hello_write -s ADDRESS      (its own, of a NIC with RDMA)
 *   client:  hello_write ADDRESS
 *
 * The connection manager finds the device by the IP address, connects the QPs and carries
 * the server's buffer address and key in its private data.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "18516"
#define LINES 4
#define LINE_LEN 32

/* Where the server may be written; in network byte order */
struct buffer {
	__be64 addr;
	__be32 rkey;
	__be32 len;
};

static char lines[LINES][LINE_LEN];

/* An endpoint is an id with device, PD, CQs and QP */
static struct rdma_cm_id *endpoint(const char *address, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *ai;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = LINES, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, PORT, &hints, &ai))
		err(1, "%s: no device with RDMA leads there", address);
	if (rdma_create_ep(&id, ai, NULL, &attr))
		err(1, "%s: endpoint", address);
	rdma_freeaddrinfo(ai);
	return id;
}

static void succeeded(int n, const struct ibv_wc *wc, const char *what)
{
	if (n < 0)
		err(1, "%s", what);
	if (wc->status != IBV_WC_SUCCESS)
		errx(1, "%s: %s", what, ibv_wc_status_str(wc->status));
}

static void serve(const char *address)
{
	struct rdma_cm_id *listener = endpoint(address, RAI_PASSIVE), *id;
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct buffer buffer;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int i;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		err(1, "listening at %s", address);
	mr = rdma_reg_write(id, lines, sizeof(lines));
	if (!mr)
		err(1, "memory region");
	/* A write with immediate data takes a receive; the data go where the write says */
	if (rdma_post_recvv(id, NULL, NULL, 0))
		err(1, "receive");
	buffer.addr = htobe64((uintptr_t)lines);
	buffer.rkey = htonl(mr->rkey);
	buffer.len = htonl(sizeof(lines));
	param.private_data = &buffer;
	param.private_data_len = sizeof(buffer);
	if (rdma_accept(id, &param))
		err(1, "accepting");

	succeeded(rdma_get_recv_comp(id, &wc), &wc, "receive");
	/* What the earlier writes of this connection brought is there as well */
	for (i = 0; i < (int)ntohl(wc.imm_data); i++)
		printf("%.*s\n", LINE_LEN, lines[i]);
	/* If the acknowledgment of the write is lost, the client sends it again: this end stays
	 * until the client has gone. rdma_accept() was told of that already if the client's last
	 * message of the handshake was lost.
	 */
	if (id->event->event == RDMA_CM_EVENT_ESTABLISHED) {
		if (rdma_get_cm_event(id->channel, &event))
			err(1, "rdma_get_cm_event");
		rdma_ack_cm_event(event);
	}
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void client(const char *address)
{
	struct rdma_cm_id *id = endpoint(address, 0);
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ibv_send_wr *bad;
	struct buffer buffer;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int i;

	mr = rdma_reg_msgs(id, lines, sizeof(lines));
	if (!mr)
		err(1, "memory region");
	if (rdma_connect(id, &param))
		err(1, "connecting to %s", address);
	if (id->event->param.conn.private_data_len < sizeof(buffer))
		errx(1, "%s sent no buffer address", address);
	memcpy(&buffer, id->event->param.conn.private_data, sizeof(buffer));
	if (ntohl(buffer.len) < sizeof(lines))
		errx(1, "the server's buffer has %u bytes, not %zu", ntohl(buffer.len),
		     sizeof(lines));

	for (i = 0; i < LINES; i++) {
		int last = i == LINES - 1;
		struct ibv_sge sge = { (uintptr_t)lines[i], LINE_LEN, mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1,
			.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			/* A completion tells of all requests before it, too */
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.imm_data = htonl(LINES),
			.wr.rdma = {
				.remote_addr = be64toh(buffer.addr) + i * LINE_LEN,
				.rkey = ntohl(buffer.rkey),
			},
		};

		snprintf(lines[i], LINE_LEN, "line %d, written by the client", i);
		errno = ibv_post_send(id->qp, &wr, &bad);
		if (errno)
			err(1, "ibv_post_send");
	}
	succeeded(rdma_get_send_comp(id, &wc), &wc, "write");
	printf("%d lines written\n", LINES);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "-s"))
		serve(argv[2]);
	else if (argc == 2)
		client(argv[1]);
	else
		errx(2, "usage: hello_write [-s] ADDRESS");
	return 0;
}
