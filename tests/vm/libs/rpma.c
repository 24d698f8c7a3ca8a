// SPDX-License-Identifier: GPL-2.0
/*
 * rpma: librpma between two programs. The client WRITEs, flushes, publishes what it has written by
 * an ATOMIC WRITE of 8 bytes, and reads it back; the server waits for those and looks at every byte.
 * Either ends with an error as soon as the other one has ended before its time.
 *
 *   server:  rpma -s ADDRESS ROUNDS	(its own)
 *   client:  rpma ADDRESS ROUNDS
 */
#include <err.h>
#include <librpma.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORT "18519"
#define SIZE 65536
#define TIMEOUT 30

/* The server's memory: data, and the number of the round that is complete */
struct shared {
	unsigned char data[SIZE];
	uint64_t round, seen;
};

static struct shared *mem;		/* the server's, or what the client sends and gets */
static unsigned char *back;
static struct rpma_peer *peer;

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, rpma_err_2str(ret));
}

static void fill(unsigned char *p, uint64_t round)
{
	uint32_t v = round * 2654435761u;

	for (int i = 0; i < SIZE; i++) {
		v = v * 1664525 + 1013904223;
		p[i] = v >> 24;
	}
}

static void *pages(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	if (!p)
		err(1, "memory");
	memset(p, 0, size);
	return p;
}

static struct rpma_mr_local *registered(void *p, size_t size, int usage)
{
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(peer, p, size, usage, &mr), "rpma_mr_reg");
	return mr;
}

static void expect(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event != want)
		errx(1, "%s instead of %s", rpma_utils_conn_event_2str(event),
		     rpma_utils_conn_event_2str(want));
}

/* The one completion that is under way */
static void complete(struct rpma_conn *conn, const char *what)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	must(rpma_cq_wait(cq), "rpma_cq_wait");
	must(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "%s: %s", what, ibv_wc_status_str(wc.status));
}

/* The peer, or the connection to it, has ended before it should: the next event says so. */
static void must_be_there(struct rpma_conn *conn, uint64_t round)
{
	struct pollfd p = { .events = POLLIN };
	enum rpma_conn_event event;

	must(rpma_conn_get_event_fd(conn, &p.fd), "rpma_conn_get_event_fd");
	if (!poll(&p, 1, 0))
		return;
	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	errx(1, "%s before round %lu", rpma_utils_conn_event_2str(event), (unsigned long)round);
}

static void server(const char *addr, uint64_t rounds)
{
	unsigned char *want = pages(SIZE);
	struct rpma_conn_private_data pdata;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	time_t end = time(NULL) + TIMEOUT;
	unsigned char desc[64];
	size_t len;

	struct rpma_mr_local *mr = registered(mem, sizeof(*mem), RPMA_MR_USAGE_WRITE_DST |
		RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);

	must(rpma_mr_get_descriptor_size(mr, &len), "rpma_mr_get_descriptor_size");
	if (len > sizeof(desc))
		errx(1, "a descriptor of %zu bytes", len);
	must(rpma_mr_get_descriptor(mr, desc), "rpma_mr_get_descriptor");
	pdata.ptr = desc;
	pdata.len = len;
	must(rpma_ep_listen(peer, addr, PORT, &ep), "rpma_ep_listen");
	must(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
	must(rpma_conn_req_connect(&req, &pdata, &conn), "rpma_conn_req_connect");
	expect(conn, RPMA_CONN_ESTABLISHED);
	for (uint64_t round = 1; round <= rounds; round++) {
		while (__atomic_load_n(&mem->round, __ATOMIC_ACQUIRE) < round) {
			must_be_there(conn, round);
			if (time(NULL) > end)
				errx(1, "round %lu does not come", (unsigned long)round);
		}
		fill(want, round);
		if (memcmp(mem->data, want, SIZE))
			errx(1, "round %lu: data", (unsigned long)round);
		/* The client reads it, and goes on */
		__atomic_store_n(&mem->seen, round, __ATOMIC_RELEASE);
	}
	expect(conn, RPMA_CONN_CLOSED);
	must(rpma_conn_delete(&conn), "rpma_conn_delete");
	must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
	must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	printf("rpma: %lu rounds seen\n", (unsigned long)rounds);
}

/* Until the server has looked at the round */
static void seen(struct rpma_conn *conn, struct rpma_mr_local *back_mr,
		 struct rpma_mr_remote *remote, uint64_t round)
{
	time_t end = time(NULL) + TIMEOUT;
	uint64_t value;

	do {
		must(rpma_read(conn, back_mr, 0, remote, offsetof(struct shared, seen), 8,
			       RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
		complete(conn, "READ");
		memcpy(&value, back, 8);
		if (time(NULL) > end)
			errx(1, "round %lu is not seen", (unsigned long)round);
	} while (value < round);
}

static void client(const char *addr, uint64_t rounds)
{
	struct rpma_conn_private_data pdata;
	struct rpma_mr_remote *remote;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	struct rpma_mr_local *mr = registered(mem, sizeof(*mem), RPMA_MR_USAGE_WRITE_SRC);
	struct rpma_mr_local *back_mr = registered(back, SIZE, RPMA_MR_USAGE_READ_DST);

	must(rpma_conn_req_new(peer, addr, PORT, NULL, &req), "rpma_conn_req_new");
	must(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
	expect(conn, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_private_data(conn, &pdata), "rpma_conn_get_private_data");
	must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote), "descriptor");
	for (uint64_t round = 1; round <= rounds; round++) {
		fill(mem->data, round);
		must(rpma_write(conn, remote, 0, mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL),
		     "rpma_write");
		must(rpma_flush(conn, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
				RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_flush");
		complete(conn, "FLUSH");
		must(rpma_atomic_write(conn, remote, offsetof(struct shared, round),
				       (const char *)&round, RPMA_F_COMPLETION_ALWAYS, NULL),
		     "rpma_atomic_write");
		complete(conn, "ATOMIC WRITE");
		seen(conn, back_mr, remote, round);
		memset(back, 0, SIZE);
		must(rpma_read(conn, back_mr, 0, remote, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL),
		     "rpma_read");
		complete(conn, "READ");
		if (memcmp(back, mem->data, SIZE))
			errx(1, "round %lu: what is read back", (unsigned long)round);
	}
	must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	expect(conn, RPMA_CONN_CLOSED);
	must(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	must(rpma_conn_delete(&conn), "rpma_conn_delete");
	must(rpma_mr_dereg(&back_mr), "rpma_mr_dereg");
	must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	printf("rpma: %lu rounds\n", (unsigned long)rounds);
}

int main(int argc, char **argv)
{
	int serves = argc > 1 && !strcmp(argv[1], "-s");
	struct ibv_context *ctx;

	if (argc != 3 + serves)
		errx(2, "usage: rpma [-s] ADDRESS ROUNDS");
	argv += serves;
	must(rpma_utils_get_ibv_context(argv[1], serves ? RPMA_UTIL_IBV_CONTEXT_LOCAL :
					RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx), "no device");
	must(rpma_peer_new(ctx, &peer), "rpma_peer_new");
	mem = pages(sizeof(*mem));
	back = pages(SIZE);
	(serves ? server : client)(argv[1], strtoul(argv[2], NULL, 0));
	must(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}
