// SPDX-License-Identifier: GPL-2.0
/*
 * What a message costs the model: two devices and the switch in one process, with memory
 * in place of guests. Run under callgrind by tests/bench/model, which counts what is spent
 * in bench_run() and leaves out posting and polling.
 *
 *   model OP LENGTH MTU QPS MESSAGES [finished|single] [plain]
 *
 * OP: write, send, read, ud. MTU: path MTU in bytes. `finished': each packet has its ICRC
 * when it is sent, as if somebody saw it; `single': packets are not sent as trains; `plain':
 * QPs have no selective repeat. Behind the nanoseconds of a message come the reads and writes
 * by DMA of both devices. Messages of 1 MiB are written from and to 16 MiB, one after the other, as if each QP had its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc.h"

#define WINDOW		32
#define QPS_MAX		200

static struct rc rc;
static struct mini_qp qp[2][QPS_MAX];

__attribute__((noinline)) void bench_run(void)
{
	rc_pump(&rc);
}

static enum skua_wqe_op op_of(const char *name)
{
	if (!strcmp(name, "write"))
		return SKUA_WQE_WRITE;
	return !strcmp(name, "read") ? SKUA_WQE_READ : SKUA_WQE_SEND;
}

static void make_qps(const struct rc_opt *opt, unsigned int num)
{
	for (unsigned int k = 0; k < num; k++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&rc, i, &qp[i][k], opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&rc, i, opt, qp[1 - i][k].qpn);

			mini_rc_to_rts(&rc.s[i].m, &qp[i][k], &a);
		}
	}
}

static unsigned int completions(int i, struct mini_cq *cq)
{
	struct skua_cqe cqe;
	unsigned int n = 0;

	while (mini_cq_next(&rc.s[i].m, cq, &cqe)) {
		if (skua_cqe_status(&cqe))
			abort();
		n++;
	}
	return n;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 6; i < argc; i++) {
		if (!strcmp(argv[i], word))
			return true;
	}
	return false;
}

static uint64_t transactions(unsigned int type)
{
	uint64_t n = 0;

	for (int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < TLP_PURPOSE_COUNT; k++)
			n += rc.s[i].f.dev->tlp.fn.v[type][k].count;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct rc_opt opt = { .log_sq = 7, .log_rq = 7, .log_cq = 13, .timeout = 20 };
	unsigned int len, qps, messages, done = 0, posted = 0;
	struct rc_wr wr = { 0 };
	bool recv, ud;
	uint64_t ns = 0, start, reads, writes;

	if (argc < 6)
		return 2;
	len = atoi(argv[2]);
	for (opt.mtu_code = 1; 128u << opt.mtu_code < (unsigned int)atoi(argv[3]); )
		opt.mtu_code++;
	qps = atoi(argv[4]);
	messages = atoi(argv[5]);
	if (!qps || qps > QPS_MAX)
		return 2;
	ud = !strcmp(argv[1], "ud");
	recv = ud || !strcmp(argv[1], "send");
	wr.op = op_of(argv[1]);
	wr.len = len;
	wr.roff = 1 << 20;
	opt.type = ud ? SKUA_QP_UD : SKUA_QP_RC;
	for (int i = 0; i < 2; i++)
		opt.ext[i] = ud || has(argc, argv, "plain") ? SKUA_EXT_PLAIN : SKUA_EXT_NEGOTIATE;
	rc_open(&rc, &opt);
	if (ud)
		qp[0][0] = rc.s[0].qp;
	else
		make_qps(&opt, qps);
	fake_switch(&rc.s[0].f, &rc.s[1].f);
	for (int i = 0; i < 2; i++) {
		rc.s[i].f.raw = true;
		rc.s[i].f.pending = !has(argc, argv, "finished");
		rc.s[i].f.no_trains = has(argc, argv, "finished") || has(argc, argv, "single");
	}
	reads = transactions(TLP_MRD_UP);
	writes = transactions(TLP_MWR_UP);
	while (done < messages) {
		for (; posted < messages && posted - done < WINDOW; posted++) {
			struct mini_qp *from = &qp[0][posted % qps];

			if (recv) {
				struct skua_wqe_data d;

				skua_wqe_data_set(&d, RC_VA, rc.s[1].key, len + SKUA_GRH_SIZE);
				mini_recv(&rc.s[1].m, ud ? &rc.s[1].qp : &qp[1][posted % qps], &d, 1);
			}
			if (len >= 1 << 20) {
				wr.off = (uint64_t)(posted % 16) << 20;
				wr.roff = wr.off;
			}
			rc_post_quiet(&rc, 0, from, &wr);
			mini_ring(&rc.s[0].m, from);
		}
		start = now();
		bench_run();
		ns += now() - start;
		done += completions(0, &rc.s[0].scq);
		if (recv)
			completions(1, &rc.s[1].rcq);
	}
	printf("%.1f %.3f %.3f\n", (double)ns / messages,
	       (double)(transactions(TLP_MRD_UP) - reads) / messages,
	       (double)(transactions(TLP_MWR_UP) - writes) / messages);
	rc_close(&rc);
	return 0;
}
