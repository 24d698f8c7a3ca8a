// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hello_read_atomic: a server whose program does nothing while clients read its memory and
 * count in it, with READ, FETCH AND ADD, and COMPARE AND SWAP.
 *
 *   server:  hello_read_atomic -s ADDRESS      (its own, of a NIC with RDMA)
 *   client:  hello_read_atomic ADDRESS
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "18517"

/* What the server shows. Atomics need 8 bytes at an address that 8 divides; their values are
 * in the byte order of the host.
 */
struct shown {
	uint64_t visits;
	uint64_t lock;		/* 0: free */
	char text[48];
} __attribute__((aligned(8)));

/* Private data of the connection, in network byte order */
struct buffer {
	__be64 addr;
	__be32 rkey;
};

struct client {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct buffer buffer;
};

static struct shown shown = { .text = "read without the server's processor" };
static union {
	struct shown shown;
	uint64_t value;
} answer;

static struct rdma_cm_id *endpoint(const char *address, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *ai;
	struct ibv_qp_init_attr attr = {
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
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

static void serve(const char *address)
{
	struct rdma_cm_id *listener = endpoint(address, RAI_PASSIVE), *id;
	struct rdma_conn_param param = { .responder_resources = 1 };
	struct rdma_cm_event *event;
	struct buffer buffer;
	struct ibv_mr *mr;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		err(1, "listening at %s", address);
	mr = ibv_reg_mr(id->pd, &shown, sizeof(shown), IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		err(1, "memory region");
	buffer.addr = htobe64((uintptr_t)&shown);
	buffer.rkey = htonl(mr->rkey);
	param.private_data = &buffer;
	param.private_data_len = sizeof(buffer);
	if (rdma_accept(id, &param))
		err(1, "accepting");
	/* The next event of this connection is its end. rdma_accept() was told of that already
	 * if the client's last message of the handshake was lost.
	 */
	if (id->event->event == RDMA_CM_EVENT_ESTABLISHED) {
		if (rdma_get_cm_event(id->channel, &event))
			err(1, "rdma_get_cm_event");
		rdma_ack_cm_event(event);
	}
	printf("disconnected: %" PRIu64 " visits\n", shown.visits);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* One request, with what the server has at OFFSET; what it answers is in "answer" */
static void request(struct client *c, enum ibv_wr_opcode opcode, size_t offset, size_t len,
		    uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)&answer, len, c->mr->lkey };
	uint64_t remote = be64toh(c->buffer.addr) + offset;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;
	struct ibv_wc wc;

	if (opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = ntohl(c->buffer.rkey);
	} else {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = ntohl(c->buffer.rkey);
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = swap;
	}
	errno = ibv_post_send(c->id->qp, &wr, &bad);
	if (errno || rdma_get_send_comp(c->id, &wc) < 0)
		err(1, "request");
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "%s", ibv_wc_status_str(wc.status));
}

static void client(const char *address)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .retry_count = 7 };
	struct client c = { .id = endpoint(address, 0) };

	c.mr = rdma_reg_msgs(c.id, &answer, sizeof(answer));
	if (!c.mr)
		err(1, "memory region");
	if (rdma_connect(c.id, &param))
		err(1, "connecting to %s", address);
	if (c.id->event->param.conn.private_data_len < sizeof(c.buffer))
		errx(1, "%s sent no buffer address", address);
	memcpy(&c.buffer, c.id->event->param.conn.private_data, sizeof(c.buffer));

	request(&c, IBV_WR_RDMA_READ, 0, sizeof(answer.shown), 0, 0);
	printf("READ: \"%.*s\"\n", (int)sizeof(answer.shown.text), answer.shown.text);

	/* The value from before comes back, so that exactly one client sees each */
	request(&c, IBV_WR_ATOMIC_FETCH_AND_ADD, offsetof(struct shown, visits), 8, 1, 0);
	printf("FETCH AND ADD: %" PRIu64 " visits before this one\n", answer.value);

	/* 0 becomes 1 for whoever finds the 0 */
	request(&c, IBV_WR_ATOMIC_CMP_AND_SWP, offsetof(struct shown, lock), 8, 0, 1);
	printf("COMPARE AND SWAP: the lock was %s\n", answer.value ? "taken" : "free");
	request(&c, IBV_WR_ATOMIC_CMP_AND_SWP, offsetof(struct shown, lock), 8, 0, 1);
	printf("COMPARE AND SWAP: the lock was %s\n", answer.value ? "taken" : "free");

	request(&c, IBV_WR_RDMA_READ, offsetof(struct shown, visits), 8, 0, 0);
	printf("READ: %" PRIu64 " visits\n", answer.value);
	rdma_disconnect(c.id);
	rdma_dereg_mr(c.mr);
	rdma_destroy_ep(c.id);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "-s"))
		serve(argv[2]);
	else if (argc == 2)
		client(argv[1]);
	else
		errx(2, "usage: hello_read_atomic [-s] ADDRESS");
	return 0;
}
