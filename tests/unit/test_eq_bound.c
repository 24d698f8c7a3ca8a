// SPDX-License-Identifier: GPL-2.0
/*
 * However many events wait for an EQ: when it gets room the device writes a limited number of them
 * at once, and the others in later turns, in order. None is lost, whatever happens meanwhile.
 */
#include "core_test.h"
#include "icm.h"

/* The EQ of most cases, and the logarithm of its size. */
#define EQN		6
#define LOG		8
#define SIZE		(1u << LOG)
#define VECTOR		3
/* Most events that are to be written at once, and number of objects that have some. */
#define BATCH		64
#define OBJECTS		200

static struct mini_cq cq[OBJECTS];
static struct mini_qp qp[OBJECTS];

/* Read all events there are, without a doorbell. @num: their objects, NULL: no matter. */
static unsigned int take(struct rig *r, struct mini_eq *eq, enum skua_eqe_type type, uint32_t *num)
{
	struct skua_eqe eqe;
	unsigned int n = 0;

	while (mini_eq_next(&r->m, eq, &eqe)) {
		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), type);
		if (num)
			num[n] = le32_to_cpu(eqe.num);
		n++;
	}
	return n;
}

static uint64_t full(struct rig *r)
{
	return mini_counter(&r->m, SKUA_CNT_EQ_FULL);
}

static struct skua_cmd_modify_device_in eqs_to(uint32_t mask, uint32_t eqn)
{
	return (struct skua_cmd_modify_device_in){
		.mask = cpu_to_le32(mask),
		.cmd_eqn = cpu_to_le32(eqn),
		.async_eqn = cpu_to_le32(eqn),
		.fault_eqn = cpu_to_le32(eqn),
	};
}

static void set_eqs(struct rig *r, uint32_t mask, uint32_t eqn)
{
	const struct skua_cmd_modify_device_in mod = eqs_to(mask, eqn);

	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
}

/* Make an EQ that is full of events of the port, which have been read, but not released. */
static void eq_make_full(struct rig *r, struct mini_eq *eq, uint32_t eqn)
{
	assert_status(mini_eq_create(&r->m, eq, eqn, LOG, 0, VECTOR), OK);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, eqn);
	for (unsigned int i = 0; i < SIZE; i++)
		skua_dev_link(r->f.dev, i & 1);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, MINI_EQ_ASYNC);
	assert_int_equal(take(r, eq, SKUA_EQE_PORT, NULL), SIZE);
}

/* The doorbell of an EQ whose events were all read: now there is room for so many. */
static void make_room(struct rig *r, const struct mini_eq *eq, unsigned int room, bool arm)
{
	fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci - SIZE + room,
		eq->eqn | (arm ? SKUA_UAR_EQ_ARM : 0));
}

/* Armed CQs @from up to @to, whose EQ this is. */
static void cqs_make(struct rig *r, unsigned int from, unsigned int to, uint32_t eqn)
{
	for (unsigned int i = from; i < to; i++) {
		struct skua_cqc cqc = mini_cqc(&r->m, &cq[i], 2, 64);

		cqc.eqn = cpu_to_le32(eqn);
		mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
		mini_cq_arm(&r->m, &cq[i], false);
	}
}

static void cqs_fire(struct rig *r, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		struct skua_cqe cqe = { 0 };

		assert_int_equal(cq_post(r->f.dev, cq[i].cqn, &cqe, false), 0);
	}
}

static void qps_make(struct rig *r)
{
	mini_cq_create(&r->m, &cq[0], 4);
	for (unsigned int i = 0; i < OBJECTS; i++)
		mini_qp_create(&r->m, &qp[i], SKUA_QP_RC, &cq[0], &cq[0], 2, 2, 0);
}

static void qps_event(struct rig *r, unsigned int from, unsigned int to, enum skua_qp_event ev)
{
	for (unsigned int i = from; i < to; i++) {
		struct qp q;

		assert_int_equal(qp_get(r->f.dev, qp[i].qpn, &q), 0);
		qp_event(r->f.dev, q.sqc, ev);
		qp_put(r->f.dev, &q);
	}
}

/* A page fault of a QP's requester or responder that waits to be reported. */
static void qp_fault(struct rig *r, unsigned int i, bool responder)
{
	struct skua_fault *f;
	struct qp q;

	assert_int_equal(qp_get(r->f.dev, qp[i].qpn, &q), 0);
	f = responder ? &q.rqc->fault : &q.sqc->fault;
	f->flags = cpu_to_le32(SKUA_FAULT_PENDING);
	qp_dirty(r->f.dev, &q);
	qp_put(r->f.dev, &q);
	fault_event(r->f.dev, qp[i].qpn, responder);
}

/* From now on a turn is over as soon as the device looks. */
static void short_turns(struct rig *r)
{
	r->f.dev->cfg.turn_ns = 1;
	r->f.step = 1;
}

/*
 * Run until the device rests, in turns that bring no more events than are written at once.
 * The number of them.
 */
static unsigned int run(struct rig *r, struct mini_eq *eq, enum skua_eqe_type type, uint32_t *num)
{
	unsigned int n = 0, got;
	bool more = true;

	for (unsigned int turns = 0; more; turns++) {
		assert_true(turns < OBJECTS);
		more = skua_dev_run(r->f.dev);
		got = take(r, eq, type, num + n);
		assert_true(got <= BATCH);
		n += got;
	}
	return n;
}

/* CQs from @from on, in order. */
static void in_order(const uint32_t *num, unsigned int n, unsigned int from)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(num[i], cq[from + i].cqn);
}

static void comp_room(void **state)
{
	struct rig *r = *state;
	uint32_t num[OBJECTS];
	struct mini_eq eq;
	unsigned int irqs, n;

	eq_make_full(r, &eq, EQN);
	cqs_make(r, 0, OBJECTS, EQN);
	cqs_fire(r, 0, OBJECTS - 1);
	assert_int_equal(full(r), OBJECTS - 1);
	/* One link each, on the chip: there are no QPs. */
	assert_in_range(eq_onchip(r->f.dev).num, OBJECTS, OBJECTS + 2);
	assert_false(skua_dev_run(r->f.dev));
	short_turns(r);
	irqs = r->f.msix[VECTOR];
	make_room(r, &eq, SIZE, true);
	n = take(r, &eq, SKUA_EQE_COMP, num);
	assert_in_range(n, 1, BATCH);
	assert_int_equal(r->f.msix[VECTOR], irqs + 1);
	/* It has room for this one, too, but others come first. */
	cqs_fire(r, OBJECTS - 1, OBJECTS);
	assert_int_equal(take(r, &eq, SKUA_EQE_COMP, NULL), 0);
	assert_int_equal(full(r), OBJECTS - 1);
	n += run(r, &eq, SKUA_EQE_COMP, num + n);
	assert_int_equal(n, OBJECTS);
	in_order(num, n, 0);
	assert_int_equal(full(r), OBJECTS - 1);
}

/* The EQ is full again before all of them are written: the others wait for the next doorbell. */
static void comp_little_room(void **state)
{
	struct rig *r = *state;
	const unsigned int room = BATCH + 10;
	uint32_t num[OBJECTS];
	struct mini_eq eq;
	unsigned int n;

	eq_make_full(r, &eq, EQN);
	cqs_make(r, 0, OBJECTS, EQN);
	cqs_fire(r, 0, OBJECTS - 1);
	short_turns(r);
	make_room(r, &eq, room, false);
	n = take(r, &eq, SKUA_EQE_COMP, num);
	n += run(r, &eq, SKUA_EQE_COMP, num + n);
	assert_int_equal(n, room);
	assert_false(skua_dev_run(r->f.dev));
	cqs_fire(r, OBJECTS - 1, OBJECTS);
	assert_int_equal(full(r), OBJECTS);
	make_room(r, &eq, SIZE, false);
	n += take(r, &eq, SKUA_EQE_COMP, num + n);
	n += run(r, &eq, SKUA_EQE_COMP, num + n);
	assert_int_equal(n, OBJECTS);
	in_order(num, n, 0);
}

/* Full at the very end of a batch: what comes then finds no room. */
static void comp_just_full(void **state)
{
	struct rig *r = *state;
	uint32_t num[OBJECTS];
	struct mini_eq eq;

	eq_make_full(r, &eq, EQN);
	cqs_make(r, 0, OBJECTS, EQN);
	cqs_fire(r, 0, OBJECTS - 1);
	make_room(r, &eq, BATCH, false);
	assert_int_equal(take(r, &eq, SKUA_EQE_COMP, num), BATCH);
	cqs_fire(r, OBJECTS - 1, OBJECTS);
	assert_int_equal(full(r), OBJECTS);
	assert_int_equal(run(r, &eq, SKUA_EQE_COMP, num), 0);
}

/* EQs that have much to go on with take turns. */
static void comp_two(void **state)
{
	struct rig *r = *state;
	const unsigned int many = 2 * BATCH + 2, few = OBJECTS - many;
	uint32_t num[2][OBJECTS];
	struct mini_eq eq[2];
	unsigned int n[2];

	for (unsigned int i = 0; i < 2; i++)
		eq_make_full(r, &eq[i], EQN + i);
	cqs_make(r, 0, many, EQN);
	cqs_make(r, many, OBJECTS, EQN + 1);
	cqs_fire(r, 0, OBJECTS);
	short_turns(r);
	for (unsigned int i = 0; i < 2; i++) {
		make_room(r, &eq[i], SIZE, false);
		n[i] = take(r, &eq[i], SKUA_EQE_COMP, num[i]);
		assert_int_equal(n[i], BATCH);
	}
	assert_true(skua_dev_run(r->f.dev));
	n[0] += take(r, &eq[0], SKUA_EQE_COMP, num[0] + n[0]);
	assert_int_equal(n[0], 2 * BATCH);
	assert_true(skua_dev_run(r->f.dev));
	n[1] += take(r, &eq[1], SKUA_EQE_COMP, num[1] + n[1]);
	assert_int_equal(n[1], few);
	n[0] += run(r, &eq[0], SKUA_EQE_COMP, num[0] + n[0]);
	assert_int_equal(n[0], many);
	in_order(num[0], many, 0);
	in_order(num[1], few, many);
}

/* MODIFY_DEVICE brings an EQ with room for all, and does not write all of them at once either. */
static void async_eq(void **state)
{
	const struct skua_cmd_modify_device_in mod = eqs_to(SKUA_DEV_M_ASYNC_EQ, EQN);
	struct rig *r = *state;
	uint32_t num[2 * OBJECTS];
	struct skua_eqe eqe;
	struct mini_eq eq;
	unsigned int n, got;

	qps_make(r);
	assert_status(mini_eq_create(&r->m, &eq, EQN, LOG + 1, 0, VECTOR), OK);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, SKUA_NO_EQ);
	qps_event(r, 0, OBJECTS - 10, SKUA_QP_EV_FATAL);
	short_turns(r);
	mini_cmd_start(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod), 0);
	assert_true(skua_dev_run(r->f.dev));
	/* One batch of the command, and one of the turn. */
	n = take(r, &eq, SKUA_EQE_QP, num);
	assert_in_range(n, 1, 2 * BATCH);
	/* New events are not a reason to go on at once. */
	qps_event(r, OBJECTS - 10, OBJECTS, SKUA_QP_EV_FATAL);
	skua_dev_link(r->f.dev, false);
	assert_int_equal(take(r, &eq, SKUA_EQE_QP, NULL), 0);
	assert_int_equal(full(r), OBJECTS - 10);
	skua_dev_run(r->f.dev);
	assert_true(mini_eq_next(&r->m, &eq, &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_PORT);
	got = take(r, &eq, SKUA_EQE_QP, num + n);
	assert_in_range(got, 1, BATCH - 1);
	n += got;
	n += run(r, &eq, SKUA_EQE_QP, num + n);
	assert_int_equal(n, OBJECTS);
	for (unsigned int i = 0; i < OBJECTS; i++)
		assert_int_equal(num[i], qp[i].qpn);
}

/* Where the time of a turn is not limited the number of events is. */
static void async_turn(void **state)
{
	const struct skua_cmd_modify_device_in mod = eqs_to(SKUA_DEV_M_ASYNC_EQ, EQN);
	struct rig *r = *state;
	struct mini_eq eq;
	unsigned int n;

	qps_make(r);
	assert_status(mini_eq_create(&r->m, &eq, EQN, LOG + 2, 0, VECTOR), OK);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, SKUA_NO_EQ);
	for (enum skua_qp_event ev = 0; ev < 4; ev++)
		qps_event(r, 0, OBJECTS, ev);
	mini_cmd_start(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod), 0);
	assert_true(skua_dev_run(r->f.dev));
	n = take(r, &eq, SKUA_EQE_QP, NULL);
	assert_in_range(n, 2 * BATCH + 1, 9 * BATCH);
	fake_run(&r->f);
	assert_int_equal(n + take(r, &eq, SKUA_EQE_QP, NULL), 4 * OBJECTS);
}

static void async_room(void **state)
{
	struct rig *r = *state;
	uint32_t num[2 * OBJECTS];
	struct mini_eq eq;
	unsigned int n;

	qps_make(r);
	eq_make_full(r, &eq, EQN);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, EQN);
	qps_event(r, 0, OBJECTS, SKUA_QP_EV_FATAL);
	short_turns(r);
	make_room(r, &eq, SIZE, false);
	n = take(r, &eq, SKUA_EQE_QP, num);
	assert_in_range(n, 1, BATCH);
	n += run(r, &eq, SKUA_EQE_QP, num + n);
	assert_int_equal(n, OBJECTS);
	for (unsigned int i = 0; i < OBJECTS; i++)
		assert_int_equal(num[i], qp[i].qpn);
}

static void fault_eq(void **state)
{
	const struct skua_cmd_modify_device_in mod = eqs_to(SKUA_DEV_M_FAULT_EQ, EQN);
	struct rig *r = *state;
	struct mini_eq eq;
	unsigned int n;
	uint32_t num[2 * OBJECTS];

	qps_make(r);
	assert_status(mini_eq_create(&r->m, &eq, EQN, LOG + 1, 0, VECTOR), OK);
	for (unsigned int i = 0; i < OBJECTS - 1; i++) {
		qp_fault(r, i, false);
		qp_fault(r, i, true);
	}
	assert_int_equal(full(r), 2 * OBJECTS - 2);
	short_turns(r);
	mini_cmd_start(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod), 0);
	assert_true(skua_dev_run(r->f.dev));
	n = take(r, &eq, SKUA_EQE_PAGE_FAULT, num);
	assert_in_range(n, 1, 2 * BATCH);
	qp_fault(r, OBJECTS - 1, false);
	qp_fault(r, OBJECTS - 1, true);
	assert_int_equal(take(r, &eq, SKUA_EQE_PAGE_FAULT, NULL), 0);
	assert_int_equal(full(r), 2 * OBJECTS - 2);
	n += run(r, &eq, SKUA_EQE_PAGE_FAULT, num + n);
	assert_int_equal(n, 2 * OBJECTS);
}

/* All kinds of events in one EQ: a batch is of all of them, commands first. */
static void all_kinds(void **state)
{
	static const enum skua_eqe_type order[] = {
		SKUA_EQE_CMD, SKUA_EQE_QP, SKUA_EQE_PAGE_FAULT, SKUA_EQE_COMP,
	};
	const unsigned int each = 30, cmds = 10;
	unsigned int got[SKUA_EQE_RECOVERY] = { 0 }, last = 0, n;
	struct rig *r = *state;
	struct skua_eqe eqe;
	struct mini_eq eq;

	qps_make(r);
	eq_make_full(r, &eq, EQN);
	cqs_make(r, 1, 1 + each, EQN);
	set_eqs(r, SKUA_DEV_M_CMD_EQ | SKUA_DEV_M_ASYNC_EQ | SKUA_DEV_M_FAULT_EQ, EQN);
	cqs_fire(r, 1, 1 + each);
	qps_event(r, 0, each, SKUA_QP_EV_FATAL);
	for (unsigned int i = 0; i < each; i++)
		qp_fault(r, i, i & 1);
	for (unsigned int i = 0; i < cmds; i++)
		mini_cmd_start(&r->m, SKUA_CMD_QUERY_PORT, NULL, 0, SKUA_CMD_MBOX_SIZE)->flags =
			cpu_to_le16(SKUA_CMD_F_EVENT);
	assert_false(skua_dev_run(r->f.dev));
	assert_int_equal(full(r), 3 * each + cmds);
	short_turns(r);
	make_room(r, &eq, SIZE, false);
	do {
		for (n = 0; mini_eq_next(&r->m, &eq, &eqe); n++) {
			uint32_t type = le32_get_bits(eqe.what, SKUA_EQE_TYPE);

			while (order[last] != type)
				assert_true(++last < sizeof(order) / sizeof(order[0]));
			got[type]++;
		}
		assert_true(n <= BATCH);
		skua_dev_run(r->f.dev);
	} while (n);
	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_int_equal(got[order[i]], i ? each : cmds);
}

/* A command with an input of its own, so that several can wait for the same turn. */
static struct skua_cmd_slot *start(struct rig *r, enum skua_cmd_op op, const void *in, size_t len)
{
	struct skua_cmd_slot *slot = mini_cmd_start(&r->m, op, NULL, len, 0);
	uint64_t mbox = fake_alloc(&r->f, SKUA_CMD_MBOX_SIZE, SKUA_CMD_MBOX_SIZE);

	memcpy(fake_ptr(&r->f, mbox), in, len);
	slot->in = cpu_to_le64(mbox);
	return slot;
}

static struct skua_cmd_slot *start_index(struct rig *r, enum skua_cmd_op op, uint32_t index)
{
	const struct skua_cmd_index_in in = { .index = cpu_to_le32(index) };

	return start(r, op, &in, sizeof(in));
}

/* CQs go before their events are written. */
static void destroy_cqs(void **state)
{
	static const unsigned int gone[] = { BATCH, BATCH + 1, 150, OBJECTS - 1 };
	struct skua_cmd_slot *slot[4];
	struct rig *r = *state;
	uint32_t num[OBJECTS];
	struct mini_eq eq;
	unsigned int n, k = 0;

	eq_make_full(r, &eq, EQN);
	cqs_make(r, 0, OBJECTS, EQN);
	cqs_fire(r, 0, OBJECTS);
	make_room(r, &eq, SIZE, false);
	assert_int_equal(take(r, &eq, SKUA_EQE_COMP, num), BATCH);
	for (unsigned int i = 0; i < 4; i++)
		slot[i] = start_index(r, SKUA_CMD_DESTROY_CQ, cq[gone[i]].cqn);
	fake_run(&r->f);
	for (unsigned int i = 0; i < 4; i++)
		assert_true(slot[i]->done == slot[i]->token && !slot[i]->status);
	n = take(r, &eq, SKUA_EQE_COMP, num);
	assert_int_equal(n, OBJECTS - BATCH - 4);
	for (unsigned int i = BATCH; i < OBJECTS; i++) {
		if (i != gone[0] && i != gone[1] && i != gone[2] && i != gone[3])
			assert_int_equal(num[k++], cq[i].cqn);
	}
}

/* The EQ goes, with some of the QPs, before their events are written, and there is a new one. */
static void destroy_eq(void **state)
{
	const struct skua_cmd_modify_device_in none = eqs_to(SKUA_DEV_M_ASYNC_EQ, SKUA_NO_EQ);
	struct skua_cmd_slot *slot[6];
	struct rig *r = *state;
	uint32_t num[OBJECTS];
	struct mini_eq eq, other;
	struct skua_eqc eqc;

	qps_make(r);
	eq_make_full(r, &eq, EQN);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, EQN);
	qps_event(r, 0, OBJECTS, SKUA_QP_EV_FATAL);
	make_room(r, &eq, SIZE, false);
	assert_int_equal(take(r, &eq, SKUA_EQE_QP, num), BATCH);
	slot[0] = start_index(r, SKUA_CMD_DESTROY_QP, qp[BATCH].qpn);
	slot[1] = start_index(r, SKUA_CMD_DESTROY_QP, qp[BATCH + 7].qpn);
	slot[2] = start_index(r, SKUA_CMD_DESTROY_QP, qp[OBJECTS - 1].qpn);
	slot[3] = start(r, SKUA_CMD_MODIFY_DEVICE, &none, sizeof(none));
	slot[4] = start_index(r, SKUA_CMD_DESTROY_EQ, EQN);
	eqc = mini_eqc(&r->m, &other, EQN, LOG, 0, VECTOR);
	slot[5] = start(r, SKUA_CMD_CREATE_EQ, &eqc, sizeof(eqc));
	fake_run(&r->f);
	for (unsigned int i = 0; i < 6; i++)
		assert_true(slot[i]->done == slot[i]->token && !slot[i]->status);
	assert_int_equal(take(r, &eq, SKUA_EQE_QP, NULL), 0);
	assert_int_equal(take(r, &other, SKUA_EQE_QP, NULL), 0);
	set_eqs(r, SKUA_DEV_M_ASYNC_EQ, EQN);
	assert_int_equal(take(r, &other, SKUA_EQE_QP, num), OBJECTS - BATCH - 3);
	assert_int_equal(num[0], qp[BATCH + 1].qpn);
	assert_int_equal(num[OBJECTS - BATCH - 4], qp[OBJECTS - 2].qpn);
}

/* One batch is written, and the others are to follow. */
static void half_way(struct rig *r, struct mini_eq *eq)
{
	uint32_t num[OBJECTS];

	eq_make_full(r, eq, EQN);
	cqs_make(r, 0, OBJECTS, EQN);
	cqs_fire(r, 0, OBJECTS);
	make_room(r, eq, SIZE, false);
	assert_int_equal(take(r, eq, SKUA_EQE_COMP, num), BATCH);
}

static void reset(void **state)
{
	struct rig *r = *state;
	struct mini_eq eq;

	half_way(r, &eq);
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	assert_false(skua_dev_run(r->f.dev));
	mini_up(&r->m, &r->f);
	assert_false(skua_dev_run(r->f.dev));
	assert_int_equal(take(r, &eq, SKUA_EQE_COMP, NULL), 0);
}

static void fatal(void **state)
{
	struct rig *r = *state;
	struct mini_eq eq;
	unsigned int writes;

	half_way(r, &eq);
	fake_hole(&r->f, eq.ring, sizeof(struct skua_eqe) << LOG);
	writes = r->f.writes;
	assert_false(skua_dev_run(r->f.dev));
	assert_int_equal(r->f.dev->fatal, SKUA_FATAL_EQ_DMA);
	assert_int_equal(r->f.writes, writes + 1);
	assert_false(skua_dev_run(r->f.dev));
	assert_int_equal(r->f.writes, writes + 1);
}

static void bus_master(void **state)
{
	struct rig *r = *state;
	uint32_t num[OBJECTS];
	struct mini_eq eq;

	half_way(r, &eq);
	fake_bus(&r->f, true, false);
	assert_false(skua_dev_run(r->f.dev));
	assert_int_equal(take(r, &eq, SKUA_EQE_COMP, NULL), 0);
	fake_bus(&r->f, true, true);
	short_turns(r);
	assert_int_equal(run(r, &eq, SKUA_EQE_COMP, num), OBJECTS - BATCH);
	in_order(num, OBJECTS - BATCH, BATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(comp_room),
		rig_test(comp_little_room),
		rig_test(comp_just_full),
		rig_test(comp_two),
		rig_test(async_eq),
		rig_test(async_turn),
		rig_test(async_room),
		rig_test(fault_eq),
		rig_test(all_kinds),
		rig_test(destroy_cqs),
		rig_test(destroy_eq),
		rig_test(reset),
		rig_test(fatal),
		rig_test(bus_master),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
