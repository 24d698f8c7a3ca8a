// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cm_hello: how the connection manager connects two programs, event by event, and one message
 * each way.
 *
 *   server:  cm_hello -s ADDRESS      (its own, of a NIC with RDMA)
 *   client:  cm_hello ADDRESS
 */
#include <err.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "18518"
#define TIMEOUT_MS 2000

static struct rdma_event_channel *channel;
static char buf[2][64];		/* to send, to receive */

/* The next event has to be this one. Of a request to connect, the id is a new one. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &event))
		err(1, "rdma_get_cm_event");
	printf("event: %s\n", rdma_event_str(event->event));
	if (event->event != type)
		/* status is a negative errno, or the reason in a REJECT of the other end */
		errx(1, "instead of %s (status %d)", rdma_event_str(type), event->status);
	id = event->id;
	/* The event and its private data are gone after this */
	rdma_ack_cm_event(event);
	return id;
}

/* Once the id has a device: its memory, QP, and a receive, before the other end can send */
static struct ibv_mr *prepare(struct rdma_cm_id *id)
{
	/* Without a CQ here librdmacm makes one for sends and one for receives */
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_mr *mr;

	printf("device: %s, port %d\n", ibv_get_device_name(id->verbs->device), id->port_num);
	if (rdma_create_qp(id, NULL, &attr))
		err(1, "rdma_create_qp");
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	if (!mr)
		err(1, "memory region");
	if (rdma_post_recv(id, NULL, buf[1], sizeof(buf[1]), mr))
		err(1, "rdma_post_recv");
	return mr;
}

/* Without a completion: what the other end does next shows that it has the message */
static void say(struct rdma_cm_id *id, struct ibv_mr *mr, const char *text)
{
	snprintf(buf[0], sizeof(buf[0]), "%s", text);
	if (rdma_post_send(id, NULL, buf[0], strlen(buf[0]) + 1, mr, 0))
		err(1, "rdma_post_send");
}

static void hear(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(id, &wc) < 0)
		err(1, "receive");
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "receive: %s", ibv_wc_status_str(wc.status));
	printf("%.*s\n", (int)wc.byte_len, buf[1]);
}

static void finish(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	rdma_destroy_qp(id);
	rdma_dereg_mr(mr);
	rdma_destroy_id(id);
}

static struct addrinfo *lookup(const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int rc = getaddrinfo(address, PORT, &hints, &ai);

	if (rc)
		errx(1, "%s: %s", address, gai_strerror(rc));
	return ai;
}

static void serve(struct rdma_cm_id *listener, const char *address)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct addrinfo *ai = lookup(address);
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	if (rdma_bind_addr(listener, ai->ai_addr) || rdma_listen(listener, 1))
		err(1, "listening at %s", address);
	freeaddrinfo(ai);
	id = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	mr = prepare(id);
	if (rdma_accept(id, &param))
		err(1, "rdma_accept");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	hear(id);
	say(id, mr, "hello from the server");
	/* The client disconnects when it has the answer */
	expect(RDMA_CM_EVENT_DISCONNECTED);
	/* Answers the other end's disconnecting */
	rdma_disconnect(id);
	finish(id, mr);
	rdma_destroy_id(listener);
}

static void client(struct rdma_cm_id *id, const char *address)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct addrinfo *ai = lookup(address);
	struct ibv_mr *mr;

	/* From the IP address to a device and the GID of the other end */
	if (rdma_resolve_addr(id, NULL, ai->ai_addr, TIMEOUT_MS))
		err(1, "%s: rdma_resolve_addr", address);
	freeaddrinfo(ai);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, TIMEOUT_MS))
		err(1, "%s: rdma_resolve_route", address);
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	mr = prepare(id);
	if (rdma_connect(id, &param))
		err(1, "rdma_connect");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	say(id, mr, "hello from the client");
	hear(id);
	if (rdma_disconnect(id))
		err(1, "rdma_disconnect");
	expect(RDMA_CM_EVENT_DISCONNECTED);
	finish(id, mr);
}

int main(int argc, char **argv)
{
	int server = argc == 3 && !strcmp(argv[1], "-s");
	struct rdma_cm_id *id;

	if (!server && argc != 2)
		errx(2, "usage: cm_hello [-s] ADDRESS");
	setvbuf(stdout, NULL, _IOLBF, 0);
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		err(1, "connection manager");
	if (server)
		serve(id, argv[2]);
	else
		client(id, argv[1]);
	rdma_destroy_event_channel(channel);
	return 0;
}
