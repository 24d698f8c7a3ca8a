// SPDX-License-Identifier: GPL-2.0
/* Commands that suffer what rules say, and capabilities that are switched off. */
#include <errno.h>
#include <stdio.h>

#include "core_test.h"

#define MSEC	1000000ull

static const struct {
	const char *name;
	int value;
} statuses[] = {
#define X(name, value, err, text) { #name, value },
	SKUA_CMD_STATUS_TABLE(X)
#undef X
};

static const struct {
	const char *name;
	uint32_t op;
} ops[] = {
#define X(name, op, in, out, states, class) { #name, op },
	SKUA_CMD_TABLE(X)
#undef X
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

static int rule(struct rig *r, const char *spec)
{
	char err[128] = "";
	int ret = skua_dev_cmd_fault(r->f.dev, spec, err, sizeof(err));

	/* A reason if and only if it is refused. */
	assert_int_equal(!!*err, !!ret);
	return ret;
}

static void assert_show(struct rig *r, const char *want)
{
	char text[512];

	skua_dev_cmd_fault_show(r->f.dev, text, sizeof(text));
	assert_string_equal(text, want);
}

static int nop(struct rig *r)
{
	return mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0);
}

static struct skua_cmd_slot *slot_at(struct rig *r, unsigned int n)
{
	return (struct skua_cmd_slot *)fake_ptr(&r->f, r->m.cmdq) + n;
}

/* Any command by its name, with any status by its name; the others are left alone. */
static void each_opcode_fails(void **state)
{
	struct rig *r = *state;
	char spec[64];

	for (unsigned int i = 0; i < N(ops); i++) {
		snprintf(spec, sizeof(spec), "%s:fail=BUSY", ops[i].name);
		assert_int_equal(rule(r, spec), 0);
		/* Not executed: neither capability, nor state, nor length matters. */
		assert_status(mini_cmd(&r->m, ops[i].op, NULL, 0, NULL, 0), BUSY);
		assert_int_equal(rule(r, "off"), 0);
		assert_status(nop(r), OK);
	}
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_STATUS),
			 SKUA_STATUS_READY | SKUA_STATUS_OPERATIONAL);
}

static void each_status(void **state)
{
	struct rig *r = *state;
	char spec[64];

	for (unsigned int i = 0; i < N(statuses); i++) {
		snprintf(spec, sizeof(spec), "NOP:fail=%s", statuses[i].name);
		if (!statuses[i].value) {
			assert_int_equal(rule(r, spec), -EINVAL);
			continue;
		}
		assert_int_equal(rule(r, spec), 0);
		assert_counts(&r->m, CMD_ERRS, 1, assert_int_equal(nop(r), statuses[i].value));
		assert_int_equal(rule(r, "off"), 0);
	}
}

static void ranges(void **state)
{
	struct rig *r = *state;
	static const struct {
		const char *range;
		const char *fails;	/* of eight */
	} t[] = {
		{ "", "11111111" },
		{ "@1", "10000000" },
		{ "@3", "00100000" },
		{ "@2-4", "01110000" },
		{ "@6+", "00000111" },
		{ "@1-1", "10000000" },
	};
	char spec[64];

	for (unsigned int i = 0; i < N(t); i++) {
		snprintf(spec, sizeof(spec), "NOP%s:fail=INTERNAL", t[i].range);
		assert_int_equal(rule(r, spec), 0);
		for (unsigned int n = 0; n < 8; n++)
			assert_int_equal(nop(r), t[i].fails[n] == '1' ? SKUA_CMD_ST_INTERNAL :
									SKUA_CMD_ST_OK);
		assert_int_equal(rule(r, "off"), 0);
	}
}

static void several_rules(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rule(r, "NOP@2:fail=BUSY; NOP@2-3:fail=LIMIT  any@5:fail=DMA"), 0);
	assert_status(nop(r), OK);
	assert_status(nop(r), BUSY);
	assert_status(nop(r), LIMIT);
	assert_status(nop(r), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, 1, NULL, 0), DMA);
	assert_show(r, "NOP:fail seen 4 hit 1; NOP:fail seen 4 hit 1; any:fail seen 5 hit 1");
	/* What is bad is refused as a whole. */
	assert_int_equal(rule(r, "NOP:fail=BUSY;NOP:fail=NICE"), -EINVAL);
	assert_status(nop(r), OK);
	/* In one: the old ones go, a new one comes. */
	assert_int_equal(rule(r, "off;NOP:fail=BUSY"), 0);
	assert_show(r, "NOP:fail seen 0 hit 0");
	assert_int_equal(rule(r, "off;NOP:fail=NICE"), -EINVAL);
	assert_show(r, "NOP:fail seen 0 hit 0");
	assert_int_equal(rule(r, "off"), 0);
	assert_show(r, "");
}

static void bad_rules(void **state)
{
	static const char *const t[] = {
		"", ";", "NOP", "NOP:", ":lose", "nop:lose", "NOP:lost", "NOP@:lose", "NOP@0:lose",
		"NOP@-1:lose", "NOP@2-1:lose", "NOP@1-:lose", "NOP@1+2:lose", "NOP@x:lose",
		"NOP@99999999999999999999:lose", "NOP:lose=1", "NOP:ignore=1", "NOP:noevent=OK",
		"NOP:fail", "NOP:fail=", "NOP:fail=busy", "NOP:fail=6", "NOP:late", "NOP:late=5",
		"NOP:late=ms", "NOP:late=-1ms", "NOP:late=3601s", "NOP:late=1h", "any", "offs",
	};
	struct rig *r = *state;
	char text[4096];

	for (unsigned int i = 0; i < N(t); i++)
		assert_int_equal(rule(r, t[i]), -EINVAL);
	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rule(r, text), -EINVAL);
	for (unsigned int i = 0; i < 32; i++)
		assert_int_equal(rule(r, "NOP@9:lose"), 0);
	assert_int_equal(rule(r, "NOP@9:lose"), -EINVAL);
	/* However little room there is. */
	for (size_t room = 0; room < 64; room++) {
		text[room] = 0x5a;
		skua_dev_cmd_fault_show(r->f.dev, text, room);
		assert_int_equal(text[room], 0x5a);
	}
	assert_status(nop(r), OK);
}

/* Executed, or not, by what it would have done: a CQ is there, or is not. */
static bool cq_exists(struct rig *r, uint32_t cqn)
{
	return mini_index(&r->m, SKUA_CMD_QUERY_CQ, cqn, NULL,
			  sizeof(struct skua_cmd_query_cq_out)) == SKUA_CMD_ST_OK;
}

static int create_cq(struct rig *r)
{
	struct mini_cq cq;
	struct skua_cmd_create_cq_in in = { .cqc = mini_cqc(&r->m, &cq, 4, 64) };

	return mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &in, sizeof(in), NULL, 0);
}

static void no_end(void **state)
{
	struct rig *r = *state;
	uint32_t slot = r->m.slot, cqn = r->m.next_cqn;

	assert_int_equal(rule(r, "CREATE_CQ@1:ignore;CREATE_CQ@2:lose"), 0);
	assert_int_equal(create_cq(r), -1);
	assert_int_equal(create_cq(r), -1);
	assert_false(cq_exists(r, cqn));
	assert_true(cq_exists(r, cqn + 1));
	fake_advance(&r->f, 100000 * MSEC);
	assert_int_equal(slot_at(r, slot)->done, 0);
	assert_int_equal(slot_at(r, slot + 1)->done, 0);
	/* The device is well, and the slot its own until a reset. */
	assert_counts(&r->m, BAD_CMD_DB, 1,
		      fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x70000 | slot));
	assert_int_equal(create_cq(r), SKUA_CMD_ST_OK);
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	mini_up(&r->m, &r->f);
	assert_show(r, "CREATE_CQ:ignore seen 3 hit 1; CREATE_CQ:lose seen 3 hit 1");
	assert_status(nop(r), OK);
}

static void late(void **state)
{
	struct rig *r = *state;
	uint32_t slot = r->m.slot, cqn = r->m.next_cqn;

	assert_int_equal(rule(r, "CREATE_CQ@1:late=250ms"), 0);
	assert_int_equal(create_cq(r), -1);
	assert_true(cq_exists(r, cqn));
	fake_advance(&r->f, 249 * MSEC);
	assert_int_equal(slot_at(r, slot)->done, 0);
	assert_status(nop(r), OK);
	assert_counts(&r->m, CMDS, 1, fake_advance(&r->f, MSEC));
	assert_int_equal(slot_at(r, slot)->done, slot_at(r, slot)->token);
	assert_int_equal(slot_at(r, slot)->status, SKUA_CMD_ST_OK);

	/* A reset in between: nothing is written any more. */
	slot = r->m.slot;
	assert_int_equal(rule(r, "NOP@1:late=250ms"), 0);
	assert_int_equal(nop(r), -1);
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	fake_advance(&r->f, 1000 * MSEC);
	assert_int_equal(slot_at(r, slot)->done, 0);
	mini_up(&r->m, &r->f);

	/* The end that INJECT_FATAL brings is late too. */
	assert_int_equal(rule(r, "INJECT_FATAL:late=10ms"), 0);
	assert_int_equal(mini_cmd(&r->m, SKUA_CMD_INJECT_FATAL, NULL, 0, NULL, 0), -1);
	assert_false(fake_rd32(&r->f, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
	fake_advance(&r->f, 10 * MSEC);
	assert_true(fake_rd32(&r->f, SKUA_REG_STATUS) & SKUA_STATUS_FATAL);
}

static void no_event(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_CMD_EQ),
		.cmd_eqn = cpu_to_le32(2),
	};
	struct mini_eq eq;
	struct skua_eqe eqe;

	assert_status(mini_eq_create(&r->m, &eq, 2, 4, 0, 5), OK);
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	mini_eq_db(&r->m, &eq, true);
	assert_int_equal(rule(r, "NOP@2:noevent;NOP@3:late=1ms"), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct skua_cmd_slot *slot = slot_at(r, i);

		memset(slot, 0, sizeof(*slot));
		slot->token = cpu_to_le32(0x440000 | i);
		slot->flags = cpu_to_le16(SKUA_CMD_F_EVENT);
		fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x440000 | i);
	}
	fake_run(&r->f);
	assert_int_equal(slot_at(r, 0)->done, slot_at(r, 0)->token);
	assert_int_equal(slot_at(r, 1)->done, slot_at(r, 1)->token);
	assert_int_equal(slot_at(r, 2)->done, 0);
	assert_int_equal(r->f.msix[5], 1);
	assert_true(mini_eq_next(&r->m, &eq, &eqe));
	assert_int_equal(le32_to_cpu(eqe.num), 0x440000);
	assert_false(mini_eq_next(&r->m, &eq, &eqe));
	mini_eq_db(&r->m, &eq, true);
	fake_advance(&r->f, MSEC);
	assert_int_equal(r->f.msix[5], 2);
	assert_true(mini_eq_next(&r->m, &eq, &eqe));
	assert_int_equal(le32_to_cpu(eqe.num), 0x440002);
}

/* The heartbeat stands still for as many reads as the rule says; commands do not notice. */
static void heartbeat_stops(void **state)
{
	struct rig *r = *state;
	uint32_t last = fake_rd32(&r->f, SKUA_REG_HEARTBEAT);

	assert_int_equal(rule(r, "any:fail=BUSY;off;HEARTBEAT@2-4:ignore"), 0);
	for (unsigned int i = 1; i <= 6; i++) {
		uint32_t now;

		fake_advance(&r->f, MSEC);
		now = fake_rd32(&r->f, SKUA_REG_HEARTBEAT);
		if (i >= 2 && i <= 4)
			assert_int_equal(now, last);
		else
			assert_int_not_equal(now, last);
		last = now;
	}
	assert_status(nop(r), OK);
	assert_show(r, "HEARTBEAT:ignore seen 6 hit 3");
	assert_int_equal(rule(r, "off;any:fail=BUSY"), 0);
	fake_rd32(&r->f, SKUA_REG_HEARTBEAT);
	assert_show(r, "any:fail seen 0 hit 0");
}

static void caps_off(void **state)
{
	const struct skua_dev_cfg cfg = {
		.mac = { 2, 0, 0, 0, 0, 1 },
		.caps_off = SKUA_CAP_RSS | SKUA_CAP_CSUM,
	};
	struct skua_cmd_query_device_out out;
	struct mini m;
	struct fake f;

	(void)state;
	fake_init(&f, &cfg);
	mini_up(&m, &f);
	assert_status(mini_cmd(&m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &out, sizeof(out)), OK);
	assert_false(le64_to_cpu(out.caps) & cfg.caps_off);
	assert_true(le64_to_cpu(out.caps) & SKUA_CAP_ETH);
	assert_status(mini_cmd(&m, SKUA_CMD_CREATE_RSS, NULL, sizeof(struct skua_cmd_create_rss_in),
			       NULL, 0), BAD_OPCODE);
	fake_exit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(each_opcode_fails),
		rig_test(each_status),
		rig_test(ranges),
		rig_test(several_rules),
		rig_test(bad_rules),
		rig_test(no_end),
		rig_test(late),
		rig_test(no_event),
		rig_test(heartbeat_stops),
		cmocka_unit_test(caps_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
