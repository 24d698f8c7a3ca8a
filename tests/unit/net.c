// SPDX-License-Identifier: GPL-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net.h"

#define ROUNDS_MAX	10000000

static void take(struct net *n, int i, void *frame, size_t len, bool icrc_pending)
{
	assert_false(icrc_pending);
	n->came = true;
	if (n->seen)
		n->seen(n->seen_priv, i, false, frame, len);
	fake_rx(&n->rc.s[i].f, frame, len);
}

static void station0(void *priv, void *frame, size_t len, bool icrc_pending)
{
	take(priv, 0, frame, len, icrc_pending);
}

static void station1(void *priv, void *frame, size_t len, bool icrc_pending)
{
	take(priv, 1, frame, len, icrc_pending);
}

static uint64_t clock_of(void *priv)
{
	return ((struct fake *)priv)->now;
}

void net_open(struct net *n, const struct rc_opt *opt, const char *faults)
{
	static const char *const name[] = { "nic0", "nic1" };
	void (*const station[])(void *, void *, size_t, bool) = { station0, station1 };
	char err[200] = "";

	rc_open(&n->rc, opt);
	n->drive = NULL;
	n->seen = NULL;
	n->ticks = 0;
	n->drive_at = SKUA_TIME_NEVER;
	n->wire = wire_create(7);
	assert_non_null(n->wire);
	for (int i = 0; i < 2; i++) {
		n->port[i] = wire_add_dev(n->wire, name[i], station[i], n);
		assert_non_null(n->port[i]);
	}
	wire_set_clock(n->wire, clock_of, &n->rc.s[0].f);
	if (faults && wire_fault(n->wire, faults, err, sizeof(err)))
		fail_msg("%s: %s", faults, err);
}

void net_close(struct net *n)
{
	wire_destroy(n->wire);
	rc_close(&n->rc);
}

/* What can be done now. */
void net_settle(struct net *n)
{
	bool more = true;

	for (unsigned int round = 0; more; round++) {
		assert_true(round < ROUNDS_MAX);
		more = false;
		for (int i = 0; i < 2; i++) {
			struct fake *f = &n->rc.s[i].f;
			struct fake_frame *frame;

			more |= skua_dev_run(f->dev);
			while ((frame = fake_tx(f))) {
				if (n->seen)
					n->seen(n->seen_priv, i, true, frame->data, frame->len);
				wire_port_send(n->port[i], frame->data, frame->len);
				free(frame);
				more = true;
			}
		}
		n->came = false;
		more |= wire_poll(n->wire, n->rc.s[0].f.now);
		more |= n->came;
		if (n->drive)
			more |= n->drive(n);
	}
}

static uint64_t next_deadline(struct net *n)
{
	uint64_t next = wire_deadline(n->wire);

	if (n->drive && n->drive_at < next)
		next = n->drive_at;
	for (int i = 0; i < 2; i++) {
		if (n->rc.s[i].f.deadline < next)
			next = n->rc.s[i].f.deadline;
	}
	return next;
}

/* Let time pass. */
void net_pass(struct net *n, uint64_t ns)
{
	struct fake *f[2] = { &n->rc.s[0].f, &n->rc.s[1].f };
	uint64_t end = f[0]->now + ns;

	net_settle(n);
	for (unsigned int round = 0; next_deadline(n) <= end; round++) {
		uint64_t next = next_deadline(n);

		assert_true(round < ROUNDS_MAX);
		for (int i = 0; i < 2; i++) {
			if (next > f[i]->now)
				f[i]->now = next;
		}
		for (int i = 0; i < 2; i++) {
			if (f[i]->deadline > f[i]->now)
				continue;
			f[i]->deadline = SKUA_TIME_NEVER;
			n->ticks++;
			skua_dev_tick(f[i]->dev);
		}
		net_settle(n);
	}
	f[0]->now = end;
	f[1]->now = end;
}

const struct net_kind net_kinds[] = {
	{ "WRITE 64 KiB", SKUA_WQE_WRITE, NET_LEN_MAX },
	{ "SEND 64 KiB", SKUA_WQE_SEND, NET_LEN_MAX },
	{ "READ 64 KiB", SKUA_WQE_READ, NET_LEN_MAX },
	{ "WRITE 64 B", SKUA_WQE_WRITE, 64 },
	{ "SEND 64 B", SKUA_WQE_SEND, 64 },
	{ "READ 64 B", SKUA_WQE_READ, 64 },
};

static void run_batch(struct net *n, const struct net_kind *kind, uint32_t seed, uint64_t ns)
{
	int to = kind->op == SKUA_WQE_READ ? 0 : 1;
	struct rc *rc = &n->rc;

	for (uint32_t k = 0; k < NET_BATCH; k++) {
		uint64_t at = (uint64_t)k * NET_LEN_MAX;

		memset(rc->s[to].buf + at, 0x5a, kind->len);
		rc_fill(rc->s[1 - to].buf + at, kind->len, seed + k);
		if (kind->op == SKUA_WQE_SEND)
			rc_recv(rc, 1, at, kind->len);
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = kind->op, .len = kind->len, .off = at, .roff = at });
	}
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	net_pass(n, ns);
	for (uint32_t k = 0; k < NET_BATCH; k++) {
		rc_expect(rc, 0, false, SKUA_CQE_OK);
		if (kind->op == SKUA_WQE_SEND)
			rc_expect(rc, 1, true, SKUA_CQE_OK);
		rc_check(rc->s[to].buf + (uint64_t)k * NET_LEN_MAX, kind->len, seed + k);
	}
}

void net_post(struct net *n, enum skua_wqe_op op, unsigned int num)
{
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){
			.op = op, .len = NET_LEN_MAX });
	mini_ring(&n->rc.s[0].m, &n->rc.s[0].qp);
}

void net_run(struct net *n, const struct net_kind *kind, unsigned int batches, uint64_t ns)
{
	for (unsigned int b = 0; b < batches; b++)
		run_batch(n, kind, b * NET_BATCH, ns);
	rc_expect_none(&n->rc, 0, false);
	rc_expect_none(&n->rc, 1, true);
}
