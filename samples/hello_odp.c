// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hello_odp: on-demand paging. The server registers 64 MiB of which no page exists yet, and
 * the client writes a line to each of three places. Only those pages come into memory, and
 * the server gives them back while the region is still registered.
 *
 *   server:  hello_odp -s ADDRESS      (its own, of a NIC with RDMA)
 *   client:  hello_odp ADDRESS
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT "18520"
#define SIZE (64UL << 20)
#define PLACES 3
#define LINE_LEN 40

/* Private data of the connection, in network byte order */
struct buffer {
	__be64 addr;
	__be32 rkey;
};

static struct rdma_cm_id *endpoint(const char *address, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *ai;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = PLACES, .max_recv_wr = 1, .max_send_sge = 1,
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

/* Place I of the memory at START: far from the others */
static uint64_t place(uint64_t start, int i)
{
	return start + SIZE / PLACES * i;
}

static void tell_pages(char *memory, const char *when)
{
	unsigned long i, here = 0, num = SIZE / sysconf(_SC_PAGESIZE);
	unsigned char *vec = calloc(num, 1);

	if (!vec || mincore(memory, SIZE, vec))
		err(1, "mincore");
	for (i = 0; i < num; i++)
		here += vec[i] & 1;
	free(vec);
	printf("%s: %lu of %lu pages in memory\n", when, here, num);
}

/* Of the connection type that the manager makes (RC), writing is enough here */
static void need_odp(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	errno = ibv_query_device_ex(context, NULL, &attr);
	if (errno)
		err(1, "ibv_query_device_ex");
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT) ||
	    !(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE))
		errx(1, "%s has no on-demand paging", ibv_get_device_name(context->device));
}

static void serve(const char *address)
{
	struct rdma_cm_id *listener = endpoint(address, RAI_PASSIVE), *id;
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct buffer buffer;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char *memory;
	int i;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		err(1, "listening at %s", address);
	need_odp(id->verbs);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	/* Else the kernel may bring 2 MiB at once; if it has no such pages, all is well */
	madvise(memory, SIZE, MADV_NOHUGEPAGE);
	mr = ibv_reg_mr(id->pd, memory, SIZE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		err(1, "on-demand region");
	tell_pages(memory, "registered");

	if (rdma_post_recvv(id, NULL, NULL, 0))
		err(1, "receive");
	buffer.addr = htobe64((uintptr_t)memory);
	buffer.rkey = htonl(mr->rkey);
	param.private_data = &buffer;
	param.private_data_len = sizeof(buffer);
	if (rdma_accept(id, &param))
		err(1, "accepting");
	succeeded(rdma_get_recv_comp(id, &wc), &wc, "receive");
	for (i = 0; i < PLACES; i++)
		printf("%.*s\n", LINE_LEN, (char *)place((uintptr_t)memory, i));
	tell_pages(memory, "written");
	/* The NIC forgets the pages before the kernel takes them. A pinned region would keep its
	 * pages, and the NIC would go on with those and the program with others.
	 */
	if (madvise(memory, SIZE, MADV_DONTNEED))
		err(1, "madvise");
	tell_pages(memory, "given back");
	/* Until the client has gone, as hello_write explains */
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
	/* While a page comes the NIC answers "not ready": 7 is to try again as long as it takes */
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	static char lines[PLACES][LINE_LEN];
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

	for (i = 0; i < PLACES; i++) {
		int last = i == PLACES - 1;
		struct ibv_sge sge = { (uintptr_t)lines[i], LINE_LEN, mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge, .num_sge = 1,
			.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.wr.rdma = { place(be64toh(buffer.addr), i), ntohl(buffer.rkey) },
		};

		snprintf(lines[i], LINE_LEN, "line %d, written by the client", i);
		errno = ibv_post_send(id->qp, &wr, &bad);
		if (errno)
			err(1, "ibv_post_send");
	}
	succeeded(rdma_get_send_comp(id, &wc), &wc, "write");
	printf("%d lines written\n", PLACES);
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
		errx(2, "usage: hello_odp [-s] ADDRESS");
	return 0;
}
