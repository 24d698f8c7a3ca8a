// SPDX-License-Identifier: GPL-2.0
/* Deadlines: their order, moving and dropping them, and the host's one timer. */
#include "core_test.h"
#include "rc.h"

#define CALLS	200

static uint64_t rung_at[CALLS];
static unsigned int rung, order[1024];

static void ring(struct skua_dev *dev, uint32_t arg)
{
	rung_at[arg] = dev->host->now(dev->host_priv);
	order[rung++ % 1024] = arg;
}

static void in_order(void **state)
{
	struct rig *r = *state;
	uint64_t due[CALLS], start = r->f.now;
	uint32_t rng = 3;

	rung = 0;
	for (unsigned int i = 0; i < CALLS; i++) {
		rng = rng * 1664525 + 1013904223;
		due[i] = start + rng % 100000;
		assert_int_equal(timer_call(r->f.dev, due[i], ring, i), 0);
		timer_sync(r->f.dev);
	}
	fake_advance(&r->f, 100000);
	assert_int_equal(rung, CALLS);
	for (unsigned int i = 0; i < CALLS; i++) {
		assert_int_equal(rung_at[i], due[i]);
		assert_true(!i || due[order[i - 1]] <= due[order[i]]);
	}
}

/* There is an end to calls; each that rang makes room for another. */
static void bounded(void **state)
{
	struct rig *r = *state;
	unsigned int n = 0;

	rung = 0;
	while (!timer_call(r->f.dev, r->f.now + 1000, ring, 0) && n < 10000)
		n++;
	assert_true(n >= CALLS && n < 10000);
	assert_int_not_equal(timer_call(r->f.dev, r->f.now, ring, 0), 0);
	timer_sync(r->f.dev);
	fake_advance(&r->f, 1000);
	assert_int_equal(rung, n);
	/* A reset drops them. */
	rung = 0;
	timer_call(r->f.dev, r->f.now + 1000, ring, 0);
	timer_sync(r->f.dev);
	skua_dev_reset(r->f.dev, SKUA_RESET_POWER);
	fake_advance(&r->f, 10000);
	assert_int_equal(rung, 0);
	fake_bus(&r->f, true, true);
	assert_int_equal(timer_call(r->f.dev, r->f.now + 5, ring, 0), 0);
	timer_sync(r->f.dev);
	fake_advance(&r->f, 10);
	assert_int_equal(rung, 1);
}

/* One deadline for each EQ: it is moved in both directions, and dropped. */
static void moved(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_mod_in mod = {
		.index = cpu_to_le32(MINI_EQ_ASYNC),
		.moderation = le32_encode_bits(1000, SKUA_MOD_USEC),
	};
	unsigned int *irqs = &r->f.msix[MINI_EQ_ASYNC], n = *irqs;

	mini_ok(&r->m, SKUA_CMD_MODIFY_EQ, &mod, sizeof(mod));
	skua_dev_link(r->f.dev, false);
	timer_set_eq(r->f.dev, MINI_EQ_ASYNC, r->f.now + 5000000);
	fake_advance(&r->f, 4999999);
	assert_int_equal(*irqs, n);
	timer_set_eq(r->f.dev, MINI_EQ_ASYNC, SKUA_TIME_NEVER);
	fake_advance(&r->f, 5000000);
	assert_int_equal(*irqs, n);
	timer_set_eq(r->f.dev, MINI_EQ_ASYNC, r->f.now + 5000);
	timer_set_eq(r->f.dev, MINI_EQ_ASYNC, r->f.now + 50);
	timer_sync(r->f.dev);
	fake_advance(&r->f, 50);
	assert_int_equal(*irqs, n + 1);
	fake_advance(&r->f, 100000);
	assert_int_equal(*irqs, n + 1);
}

/* The host's timer is told of an earlier deadline, and not of later ones. */
static void host_timer(void **state)
{
	struct rig *r = *state;
	uint64_t now = r->f.now;

	timer_call(r->f.dev, now + 500, ring, 0);
	timer_sync(r->f.dev);
	assert_int_equal(r->f.deadline, now + 500);
	timer_call(r->f.dev, now + 900, ring, 1);
	timer_sync(r->f.dev);
	assert_int_equal(r->f.deadline, now + 500);
	timer_call(r->f.dev, now + 100, ring, 2);
	timer_sync(r->f.dev);
	assert_int_equal(r->f.deadline, now + 100);
	rung = 0;
	fake_advance(&r->f, 600);
	assert_int_equal(rung, 2);
	assert_int_equal(r->f.deadline, now + 900);
}

/* Something else rings at @at; then the device has no deadline any more. */
static void rings_last(struct fake *f, uint64_t at)
{
	assert_true(f->deadline > at && f->deadline != SKUA_TIME_NEVER);
	rung = 0;
	timer_call(f->dev, at, ring, 0);
	timer_sync(f->dev);
	fake_advance(f, at - f->now);
	assert_int_equal(rung, 1);
	assert_int_equal(f->deadline, SKUA_TIME_NEVER);
}

/* With an object goes its deadline, which the next one of its number would take for its own. */
static void destroyed(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_mod_in mod = {
		.moderation = le32_encode_bits(1000, SKUA_MOD_USEC),
	};
	struct skua_cqe cqe = { .qpn = 0 };
	struct mini_cq cq;
	struct rc rc;

	mini_cq_create(&r->m, &cq, 6);
	mod.index = cpu_to_le32(cq.cqn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_CQ, &mod, sizeof(mod));
	mini_cq_arm(&r->m, &cq, false);
	assert_int_equal(cq_post(r->f.dev, cq.cqn, &cqe, false), 0);
	timer_sync(r->f.dev);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, cq.cqn, NULL, 0), OK);
	rings_last(&r->f, r->f.now + 500);

	/* A QP that waits for an ACK */
	rc_open(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 100 });
	fake_run(&rc.s[0].f);
	assert_status(mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_QP, rc.s[0].qp.qpn, NULL, 0), OK);
	rings_last(&rc.s[0].f, rc.s[0].f.now + 500);
	rc_close(&rc);
}

/*
 * A deadline that passes while the function may not master the bus: nothing is done,
 * and the host is left in peace, until it may again.
 */
static void bus_master_off(void **state)
{
	struct rig *r = *state;

	rung = 0;
	timer_call(r->f.dev, r->f.now + 500, ring, 0);
	timer_call(r->f.dev, r->f.now + 900, ring, 1);
	timer_sync(r->f.dev);
	fake_bus(&r->f, true, false);
	fake_advance(&r->f, 600);
	assert_int_equal(rung, 0);
	assert_int_equal(r->f.deadline, SKUA_TIME_NEVER);
	fake_bus(&r->f, true, true);
	fake_advance(&r->f, 0);
	assert_int_equal(rung, 1);
	fake_advance(&r->f, 300);
	assert_int_equal(rung, 2);
}

/* Random settings for many QPs' places against a plain list. (No QP: nothing rings.) */
static void random_heap(void **state)
{
	struct rig *r = *state;
	static uint64_t want[64];
	uint32_t rng = 9;

	memset(want, 0xff, sizeof(want));
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t eqn;
		uint64_t least = SKUA_TIME_NEVER;

		rng = rng * 1664525 + 1013904223;
		eqn = 40 + (rng >> 8) % 64;
		want[eqn - 40] = rng >> 29 ? r->f.now + 1 + (rng >> 5) % 100000 : SKUA_TIME_NEVER;
		timer_set_eq(r->f.dev, eqn, want[eqn - 40]);
		for (unsigned int k = 0; k < 64; k++)
			least = want[k] < least ? want[k] : least;
		/* A tick that comes early tells the host the next deadline. */
		r->f.deadline = SKUA_TIME_NEVER;
		skua_dev_tick(r->f.dev);
		assert_int_equal(r->f.deadline, least);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(in_order),
		rig_test(bounded),
		rig_test(moved),
		rig_test(host_timer),
		rig_test(destroyed),
		rig_test(bus_master_off),
		rig_test(random_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
