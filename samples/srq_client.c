// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * srq_client: sends messages to srq_server, one after the other, and prints the last answer.
 *
 *   srq_client ADDRESS MESSAGES
 */
#include <err.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "18519"

static char text[] = "hello from the client";
static char answer[sizeof(text)];

static void completed(int n, const struct ibv_wc *wc, const char *what)
{
	if (n < 0)
		err(1, "%s", what);
	if (wc->status != IBV_WC_SUCCESS)
		errx(1, "%s: %s", what, ibv_wc_status_str(wc->status));
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct ibv_qp_init_attr attr = {
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	/* The server has as many receives as all clients together may have messages under way,
	 * or it says "receiver not ready": 7 retries that without end
	 */
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct rdma_cm_id *id;
	struct ibv_mr *in, *out;
	struct ibv_wc wc;
	int i;

	if (argc != 3)
		errx(2, "usage: srq_client ADDRESS MESSAGES");
	if (rdma_getaddrinfo(argv[1], PORT, &hints, &ai) || rdma_create_ep(&id, ai, NULL, &attr))
		err(1, "%s: no device with RDMA leads there", argv[1]);
	rdma_freeaddrinfo(ai);
	in = rdma_reg_msgs(id, answer, sizeof(answer));
	out = rdma_reg_msgs(id, text, sizeof(text));
	if (!in || !out)
		err(1, "memory regions");
	if (rdma_connect(id, &param))
		err(1, "connecting to %s", argv[1]);
	for (i = 0; i < atoi(argv[2]); i++) {
		memset(answer, 0, sizeof(answer));
		if (rdma_post_recv(id, NULL, answer, sizeof(answer), in) ||
		    rdma_post_send(id, NULL, text, sizeof(text), out, 0))
			err(1, "posting");
		completed(rdma_get_send_comp(id, &wc), &wc, "send");
		completed(rdma_get_recv_comp(id, &wc), &wc, "receive");
	}
	printf("%s\n", answer);
	rdma_disconnect(id);
	rdma_dereg_mr(in);
	rdma_dereg_mr(out);
	rdma_destroy_ep(id);
	return 0;
}
