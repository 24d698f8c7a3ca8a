// SPDX-License-Identifier: GPL-2.0
/* Registers, the command ring, and the device's states, resets and end. */
#include <stdio.h>
#include <linux/pci_regs.h>

#include "core_test.h"
#include "pci.h"

struct info {
	const char *name;
	uint32_t op;
	uint32_t in, out;
	uint32_t states;
};

static const struct info commands[] = {
#define X(name, op, in, out, states, class)						\
	{ #name, op, sizeof(struct skua_cmd_##in), sizeof(struct skua_cmd_##out),	\
	  SKUA_CMD_IN_##states },
	SKUA_CMD_TABLE(X)
#undef X
};

#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* --- registers --- */

static void regs_identity(void **state)
{
	struct fake f;

	(void)state;
	fake_init(&f, NULL);
	assert_int_equal(fake_rd32(&f, SKUA_REG_ID), SKUA_ID_MAGIC);
	assert_int_equal(fake_rd32(&f, SKUA_REG_VERSION), SKUA_HW_MAJOR << 16 | SKUA_HW_MINOR);
	assert_int_equal(fake_rd32(&f, SKUA_REG_STATUS), SKUA_STATUS_READY);
	assert_int_equal(fake_rd32(&f, SKUA_REG_UAR_PAGE_SHIFT), 12);
	assert_int_equal(fake_rd32(&f, 0x100), 0);
	assert_int_equal(fake_rd32(&f, SKUA_REG_END), 0);
	/* Memory space off: nobody answers. */
	fake_bus(&f, false, true);
	assert_int_equal(fake_rd32(&f, SKUA_REG_ID), 0xffffffff);
	fake_exit(&f);
}

static void regs_widths(void **state)
{
	struct rig *r = *state;
	uint8_t buf[64];
	uint64_t val;

	for (unsigned int len = 1; len <= 16; len++) {
		for (unsigned int off = 0; off < 16; off++) {
			if (len == 4 && off % 4 == 0)
				continue;
			memset(buf, 0, sizeof(buf));
			skua_dev_bar_read(r->f.dev, SKUA_BAR_REGS, off, buf, len);
			for (unsigned int i = 0; i < len; i++)
				assert_int_equal(buf[i], 0xff);
			assert_counts(&r->m, BAD_MMIO, 1,
				      skua_dev_bar_write(r->f.dev, SKUA_BAR_REGS, off, buf, len));
		}
	}
	r->f.now = 0x123456789abcdefull;
	skua_dev_bar_read(r->f.dev, SKUA_BAR_REGS, SKUA_REG_CLOCK, &val, 8);
	assert_int_equal(val, 0x123456789abcdefull);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_CLOCK), 0x89abcdef);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_CLOCK + 4), 0x1234567);
}

static void regs_read_only(void **state)
{
	static const unsigned int ro[] = { SKUA_REG_ID, SKUA_REG_VERSION, SKUA_REG_STATUS,
		SKUA_REG_HEARTBEAT, SKUA_REG_CLOCK, 0x100, 0xffc };
	struct rig *r = *state;

	for (unsigned int i = 0; i < sizeof(ro) / sizeof(ro[0]); i++)
		assert_counts(&r->m, BAD_MMIO, 1, fake_wr32(&r->f, ro[i], 0xffffffff));
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_ID), SKUA_ID_MAGIC);
	/* Set up once, the ring's registers are fixed, and it cannot be turned off. */
	assert_counts(&r->m, BAD_MMIO, 1, fake_wr32(&r->f, SKUA_REG_UAR_PAGE_SHIFT, 13));
	assert_counts(&r->m, BAD_MMIO, 1, fake_wr64(&r->f, SKUA_REG_CMDQ_BASE, 0x1000));
	assert_counts(&r->m, BAD_MMIO, 1, fake_wr32(&r->f, SKUA_REG_CMDQ_LOG_SIZE, 1));
	assert_counts(&r->m, BAD_MMIO, 1, fake_wr32(&r->f, SKUA_REG_CMDQ_CTRL, 0));
	assert_counts(&r->m, BAD_MMIO, 1, fake_wr32(&r->f, SKUA_REG_CTRL, 2));
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_CMDQ_CTRL), SKUA_CMDQ_CTRL_ENABLE);
	assert_status(mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0), OK);
}

static void regs_setup_ranges(void **state)
{
	struct fake f;

	(void)state;
	fake_init(&f, NULL);
	for (uint32_t v = 0; v < 40; v++) {
		fake_wr32(&f, SKUA_REG_UAR_PAGE_SHIFT, v);
		assert_int_equal(fake_rd32(&f, SKUA_REG_UAR_PAGE_SHIFT),
				 v < 12 ? 12 : v > 16 ? 16 : v);
	}
	fake_wr32(&f, SKUA_REG_CMDQ_LOG_SIZE, SKUA_CMDQ_LOG_SIZE_MAX + 1);
	assert_int_equal(fake_rd32(&f, SKUA_REG_CMDQ_LOG_SIZE), 0);
	fake_wr64(&f, SKUA_REG_CMDQ_BASE, 0x123456789abcdef0ull);
	assert_int_equal(fake_rd32(&f, SKUA_REG_CMDQ_BASE), 0);
	fake_wr32(&f, SKUA_REG_CMDQ_BASE, 0x9abcde40);
	fake_wr32(&f, SKUA_REG_CMDQ_BASE + 4, 0x12345678);
	assert_int_equal(fake_rd32(&f, SKUA_REG_CMDQ_BASE), 0x9abcde40);
	assert_int_equal(fake_rd32(&f, SKUA_REG_CMDQ_BASE + 4), 0x12345678);
	fake_exit(&f);
}

static void heartbeat(void **state)
{
	struct rig *r = *state;
	uint32_t last = fake_rd32(&r->f, SKUA_REG_HEARTBEAT);

	for (unsigned int i = 0; i < 100; i++) {
		fake_advance(&r->f, 1000000);
		assert_int_not_equal(fake_rd32(&r->f, SKUA_REG_HEARTBEAT), last);
		last = fake_rd32(&r->f, SKUA_REG_HEARTBEAT);
	}
	mini_ok(&r->m, SKUA_CMD_INJECT_FATAL, NULL, 0);
	last = fake_rd32(&r->f, SKUA_REG_HEARTBEAT);
	fake_advance(&r->f, 10000000);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_HEARTBEAT), last);
}

/* --- ring --- */

static struct skua_cmd_slot *slot_at(struct rig *r, unsigned int n)
{
	return (struct skua_cmd_slot *)fake_ptr(&r->f, r->m.cmdq) + n;
}

static void bad_tokens(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_slot *slot = slot_at(r, 3);

	assert_counts(&r->m, BAD_CMD_DB, 1, fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0));
	assert_counts(&r->m, BAD_CMD_DB, 1,
		      fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x10000 | 1 << MINI_CMDQ_LOG));
	assert_counts(&r->m, BAD_CMD_DB, 1, fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0xffffffff));

	/* A generation that is not the slot's. */
	memset(slot, 0, sizeof(*slot));
	slot->token = cpu_to_le32(0x70003);
	assert_counts(&r->m, BAD_CMD_DB, 1, {
		fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x60003);
		fake_run(&r->f);
	});
	assert_int_equal(slot->done, 0);

	/* Rung twice before it is executed: once is enough. */
	assert_counts(&r->m, BAD_CMD_DB, 1, {
		fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x70003);
		fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x70003);
	});
	assert_counts(&r->m, CMDS, 1, fake_run(&r->f));
	assert_int_equal(le32_to_cpu(slot->done), 0x70003);
	assert_int_equal(le32_to_cpu(slot->status), SKUA_CMD_ST_OK);
}

static void many_in_flight(void **state)
{
	struct rig *r = *state;

	for (unsigned int turn = 1; turn < 5; turn++) {
		for (unsigned int i = 0; i < 1u << MINI_CMDQ_LOG; i++) {
			struct skua_cmd_slot *slot = slot_at(r, i);

			memset(slot, 0, sizeof(*slot));
			slot->token = cpu_to_le32(turn << 16 | i);
			fake_wr32(&r->f, SKUA_REG_CMDQ_DB, turn << 16 | i);
		}
		fake_run(&r->f);
		for (unsigned int i = 0; i < 1u << MINI_CMDQ_LOG; i++)
			assert_int_equal(le32_to_cpu(slot_at(r, i)->done), turn << 16 | i);
	}
}

/* Commands that take long: a turn ends when its time is over, and the rest comes later. */
static void turn_time(void **state)
{
	const struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .turn_ns = 1000 };
	struct rig r;
	unsigned int turns = 1;

	(void)state;
	fake_init(&r.f, &cfg);
	mini_up(&r.m, &r.f);
	for (unsigned int n = 0; n < 12; n++) {
		memset(slot_at(&r, n), 0, sizeof(struct skua_cmd_slot));
		slot_at(&r, n)->opcode = cpu_to_le16(SKUA_CMD_NOP);
		slot_at(&r, n)->token = cpu_to_le32(0x10000 | n);
		fake_wr32(&r.f, SKUA_REG_CMDQ_DB, 0x10000 | n);
	}
	/* Looked at before the second command, the third and the fourth, which is too late. */
	r.f.step = 400;
	while (skua_dev_run(r.f.dev))
		turns++;
	r.f.step = 0;
	assert_int_equal(turns, 4);
	for (unsigned int n = 0; n < 12; n++)
		assert_int_equal(le32_to_cpu(slot_at(&r, n)->done), 0x10000 | n);
	fake_exit(&r.f);
}

static void lengths(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < NUM_COMMANDS; i++) {
		const struct info *c = &commands[i];
		size_t in = c->in, out = c->out;

		if (!(c->states & SKUA_CMD_IN_O)) {
			assert_status(mini_cmd(&r->m, c->op, NULL, in, NULL, out), BAD_DEV_STATE);
			continue;
		}
		memset(fake_ptr(&r->f, r->m.in), 0, SKUA_CMD_MBOX_SIZE);
		assert_status(mini_cmd(&r->m, c->op, NULL, in + 1, NULL, out), BAD_LEN);
		assert_status(mini_cmd(&r->m, c->op, NULL, 0xffffffff, NULL, out), BAD_LEN);
		if (in)
			assert_status(mini_cmd(&r->m, c->op, NULL, in - 1, NULL, out), BAD_LEN);
		if (out)
			assert_status(mini_cmd(&r->m, c->op, NULL, in, NULL, out - 1), BAD_LEN);
		assert_status(mini_cmd(&r->m, c->op, NULL, in, NULL, 4097), BAD_LEN);
	}
}

static void states(void **state)
{
	struct mini m;
	struct fake f;

	(void)state;
	fake_init(&f, NULL);
	mini_ring_up(&m, &f);
	for (unsigned int i = 0; i < NUM_COMMANDS; i++) {
		const struct info *c = &commands[i];

		if (c->states & SKUA_CMD_IN_R)
			continue;
		assert_int_equal(mini_cmd(&m, c->op, NULL, c->in, NULL, c->out),
				 SKUA_CMD_ST_BAD_DEV_STATE);
	}
	fake_exit(&f);
}

static void unknown_opcodes(void **state)
{
	struct rig *r = *state;

	for (uint32_t op = 0; op < 0x300; op++) {
		bool known = false;

		for (unsigned int i = 0; i < NUM_COMMANDS; i++)
			known |= commands[i].op == op;
		if (!known)
			assert_status(mini_cmd(&r->m, op, NULL, 0, NULL, 0), BAD_OPCODE);
	}
	assert_status(mini_cmd(&r->m, 0xffff, NULL, 0, NULL, 0), BAD_OPCODE);
}

/* Issue what is in slot 0 but for its token. */
static int issue(struct rig *r, struct skua_cmd_slot *slot)
{
	static uint16_t gen;
	uint32_t token = (uint32_t)(++gen ? gen : ++gen) << 16;

	slot->token = cpu_to_le32(token);
	slot->done = 0;
	fake_wr32(&r->f, SKUA_REG_CMDQ_DB, token);
	fake_run(&r->f);
	return le32_to_cpu(slot->done) == token ? (int)le32_to_cpu(slot->status) : -1;
}

static void slot_fields(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_slot *slot = slot_at(r, 0);
	const uint32_t size = sizeof(struct skua_cmd_query_device_out);

	memset(slot, 0, sizeof(*slot));
	slot->opcode = cpu_to_le16(SKUA_CMD_QUERY_DEVICE);
	slot->out = cpu_to_le64(r->m.out);
	slot->out_len = cpu_to_le32(size);
	assert_status(issue(r, slot), OK);
	for (unsigned int i = 0; i < 6; i++) {
		slot->reserved[i] = cpu_to_le32(1u << 31);
		assert_status(issue(r, slot), BAD_PARAM);
		slot->reserved[i] = 0;
	}
	slot->flags = cpu_to_le16(2);
	assert_status(issue(r, slot), BAD_PARAM);
	/* An event, and no command EQ. */
	slot->flags = cpu_to_le16(SKUA_CMD_F_EVENT);
	assert_status(issue(r, slot), BAD_PARAM);
	slot->flags = 0;
	slot->out = cpu_to_le64(r->m.out + 4);
	assert_status(issue(r, slot), BAD_PARAM);
	slot->out = cpu_to_le64(r->m.out + 4096 - size + 8);
	assert_status(issue(r, slot), BAD_PARAM);
	slot->out = cpu_to_le64(r->m.out + 4096 - size);
	assert_status(issue(r, slot), OK);
	/* A longer mailbox keeps what lies behind the output. */
	slot->out = cpu_to_le64(r->m.out);
	slot->out_len = cpu_to_le32(4096);
	memset(fake_ptr(&r->f, r->m.out), 0x5a, 4096);
	assert_status(issue(r, slot), OK);
	assert_int_equal(((uint8_t *)fake_ptr(&r->f, r->m.out))[size], 0x5a);
	assert_int_not_equal(((uint8_t *)fake_ptr(&r->f, r->m.out))[0], 0x5a);
}

static void mailbox_faults(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_index_in in = { .index = 0 };
	struct skua_eqc eqc;

	fake_hole(&r->f, r->m.in, 4096);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_EQ, &in, sizeof(in), NULL, sizeof(eqc)), DMA);
	fake_no_holes(&r->f);
	fake_hole(&r->f, r->m.out, 4096);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, NULL, 256), DMA);
	fake_no_holes(&r->f);
	assert_status(mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0), OK);
	assert_counts(&r->m, CMD_ERRS, 0, mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0));
}

static void assert_fatal(struct fake *f, enum skua_fatal why)
{
	uint32_t status = fake_rd32(f, SKUA_REG_STATUS);

	assert_true(status & SKUA_STATUS_FATAL);
	assert_false(status & SKUA_STATUS_OPERATIONAL);
	assert_int_equal(u32_get_bits(status, SKUA_STATUS_CODE), why);
}

static void ring_fetch_fault(void **state)
{
	struct rig *r = *state;
	uint64_t reads, writes;

	fake_hole(&r->f, r->m.cmdq, 64 << MINI_CMDQ_LOG);
	fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x10000);
	fake_run(&r->f);
	assert_fatal(&r->f, SKUA_FATAL_CMD_DMA);
	fake_no_holes(&r->f);
	/* It has stopped: no command, no DMA. */
	reads = r->f.reads;
	writes = r->f.writes;
	assert_int_equal(mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0), -1);
	fake_advance(&r->f, 1000000000);
	assert_int_equal(r->f.reads, reads);
	assert_int_equal(r->f.writes, writes);
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	mini_up(&r->m, &r->f);
}

static void ring_write_fault(void **state)
{
	struct rig *r = *state;

	/* A NOP writes only its completion. */
	r->f.fail_write = 1;
	assert_int_equal(mini_cmd(&r->m, SKUA_CMD_NOP, NULL, 0, NULL, 0), -1);
	assert_fatal(&r->f, SKUA_FATAL_CMD_DMA);
}

static void inject_fatal(void **state)
{
	struct rig *r = *state;
	const struct skua_cmd_modify_mod_in mod = {
		.index = cpu_to_le32(MINI_EQ_ASYNC),
		.moderation = le32_encode_bits(1000, SKUA_MOD_USEC),
	};
	unsigned int irqs = r->f.msix[MINI_EQ_ASYNC];
	struct skua_eqe eqe;

	/* Moderation does not hold the last event back. */
	mini_ok(&r->m, SKUA_CMD_MODIFY_EQ, &mod, sizeof(mod));
	assert_status(mini_cmd(&r->m, SKUA_CMD_INJECT_FATAL, NULL, 0, NULL, 0), OK);
	assert_fatal(&r->f, SKUA_FATAL_INJECTED);
	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_FATAL);
	assert_int_equal(le32_to_cpu(eqe.info[0]), SKUA_FATAL_INJECTED);
	assert_int_equal(r->f.msix[MINI_EQ_ASYNC], irqs + 1);
	fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_STATUS), SKUA_STATUS_READY);
	mini_up(&r->m, &r->f);
}

/* --- events of commands --- */

static void command_events(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_CMD_EQ),
		.cmd_eqn = cpu_to_le32(2),
	};
	struct mini_eq eq;
	struct skua_eqe eqe;
	uint32_t seen = 0;

	assert_status(mini_eq_create(&r->m, &eq, 2, 1, 0, 5), OK);
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	mini_eq_db(&r->m, &eq, true);
	/* Eight completions for an EQ of two entries: none is lost. */
	for (unsigned int i = 0; i < 8; i++) {
		struct skua_cmd_slot *slot = slot_at(r, i);

		memset(slot, 0, sizeof(*slot));
		slot->token = cpu_to_le32(0x990000 | i);
		slot->flags = cpu_to_le16(SKUA_CMD_F_EVENT);
		fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x990000 | i);
	}
	assert_counts(&r->m, EQ_FULL, 6, fake_run(&r->f));
	assert_int_equal(r->f.msix[5], 1);
	for (unsigned int i = 0; i < 8; i++) {
		assert_true(mini_eq_next(&r->m, &eq, &eqe));
		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_CMD);
		seen |= 1u << (le32_to_cpu(eqe.num) & 0xffff);
		mini_eq_db(&r->m, &eq, false);
	}
	assert_int_equal(seen, 0xff);
	assert_false(mini_eq_next(&r->m, &eq, &eqe));
	/* The device names it: it cannot go before that ends. */
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 2, NULL, 0), BUSY);
	mod.cmd_eqn = cpu_to_le32(SKUA_NO_EQ);
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 2, NULL, 0), OK);
}

/* Completions that wait for room in the EQ of commands go to that which takes its place. */
static void command_events_moved(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_CMD_EQ),
		.cmd_eqn = cpu_to_le32(2),
	};
	struct mini_eq eq[2];
	struct skua_eqe eqe;

	for (unsigned int i = 0; i < 2; i++)
		assert_status(mini_eq_create(&r->m, &eq[i], 2 + i, 1, 0, 5), OK);
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	for (unsigned int i = 0; i < 4; i++)
		mini_cmd_start(&r->m, SKUA_CMD_QUERY_PORT, NULL, 0, SKUA_CMD_MBOX_SIZE)->flags =
			cpu_to_le16(SKUA_CMD_F_EVENT);
	fake_run(&r->f);
	mod.cmd_eqn = cpu_to_le32(3);
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(mini_eq_next(&r->m, &eq[i / 2], &eqe));
		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_CMD);
	}
}

/* --- device commands --- */

static void query_device(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_query_device_out out;

	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &out, sizeof(out)), OK);
	assert_int_equal(le32_to_cpu(out.size), sizeof(out));
	assert_memory_equal(out.mac, r->f.dev->cfg.mac, 6);
	assert_int_equal(le32_to_cpu(out.icm[SKUA_ICM_SQC].entry_size), 512);
	assert_int_equal(1u << out.log_uars, SKUA_BAR_UAR_SIZE >> 12);
	assert_int_equal(be64toh(out.node_guid), r->f.dev->cfg.serial);
	for (unsigned int i = SKUA_ICM_TABLES; i < SKUA_ICM_TABLES_MAX; i++)
		assert_int_equal(out.icm[i].entry_size, 0);
}

static void modify_device(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_device_in in = { .mask = cpu_to_le32(1u << 8) };

	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in.mask = cpu_to_le32(SKUA_DEV_M_ROCE);
	in.roce = cpu_to_le32(2);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in.mask = cpu_to_le32(SKUA_DEV_M_ASYNC_EQ | SKUA_DEV_M_CMD_EQ);
	in.cmd_eqn = cpu_to_le32(100);
	in.async_eqn = cpu_to_le32(SKUA_NO_EQ);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0), BAD_INDEX);
	/* Refused whole: the asynchronous EQ is still named. */
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, MINI_EQ_ASYNC, NULL, 0), BUSY);
}

/* What send queues do in a turn: shown, set within its bounds, and as at first after a reset. */
static void turns(void **state)
{
	static const struct {
		uint32_t mask, wqes, bytes;
		bool ok;
	} t[] = {
		{ SKUA_DEV_M_TURN_WQES, 0, 0, false },
		{ SKUA_DEV_M_TURN_WQES, SKUA_TURN_WQES_MAX + 1, 0, false },
		{ SKUA_DEV_M_TURN_BYTES, 0, SKUA_TURN_BYTES_MIN - 1, false },
		{ SKUA_DEV_M_TURN_BYTES, 0, SKUA_TURN_BYTES_MAX + 1, false },
		{ SKUA_DEV_M_TURN_WQES | SKUA_DEV_M_TURN_BYTES, 5, 1, false },
		{ SKUA_DEV_M_TURN_WQES, SKUA_TURN_WQES_MAX, 1, true },
		{ SKUA_DEV_M_TURN_BYTES, 0, SKUA_TURN_BYTES_MAX, true },
		{ SKUA_DEV_M_TURN_WQES | SKUA_DEV_M_TURN_BYTES, SKUA_TURN_WQES_MIN,
		  SKUA_TURN_BYTES_MIN, true },
	};
	uint32_t wqes = MODEL_TURN_WQES, bytes = MODEL_TURN_BYTES;
	struct skua_cmd_query_device_out out;
	struct rig *r = *state;

	for (size_t k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
		struct skua_cmd_modify_device_in in = {
			.mask = cpu_to_le32(t[k].mask),
			.turn_wqes = cpu_to_le32(t[k].wqes),
			.turn_bytes = cpu_to_le32(t[k].bytes),
		};
		int st = mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0);

		assert_int_equal(st, t[k].ok ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_PARAM);
		if (t[k].ok && t[k].mask & SKUA_DEV_M_TURN_WQES)
			wqes = t[k].wqes;
		if (t[k].ok && t[k].mask & SKUA_DEV_M_TURN_BYTES)
			bytes = t[k].bytes;
		mini_ok(&r->m, SKUA_CMD_NOP, NULL, 0);
		assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &out, sizeof(out)), OK);
		assert_int_equal(le16_to_cpu(out.turn_wqes), wqes);
		assert_int_equal(le32_to_cpu(out.turn_bytes), bytes);
	}
	skua_dev_reset(r->f.dev, SKUA_RESET_FLR);
	assert_int_equal(r->f.dev->turn_wqes, MODEL_TURN_WQES);
	assert_int_equal(r->f.dev->turn_bytes, MODEL_TURN_BYTES);
}

/* Traffic classes and shares, each within its bounds, and not without the capability. */
static void classes(void **state)
{
	struct skua_cmd_modify_device_in in = { .mask = cpu_to_le32(SKUA_DEV_M_ETS) };
	struct rig *r = *state;

	for (unsigned int i = 0; i < 8; i++) {
		in.prio_tc[i] = SKUA_TC_NUM;
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
		in.prio_tc[i] = SKUA_TC_NUM - 1;
		in.tc_share[i] = SKUA_TC_SHARE_MAX + 1;
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
		in.tc_share[i] = SKUA_TC_SHARE_MAX;
		mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in));
	}
	r->f.dev->caps &= ~SKUA_CAP_ETS;
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0), BAD_PARAM);
}

/* A device without the capability knows nothing of it. */
static void no_turns(void **state)
{
	struct skua_cmd_modify_device_in in = {
		.mask = cpu_to_le32(SKUA_DEV_M_TURN_WQES),
		.turn_wqes = cpu_to_le32(8),
	};
	struct skua_cmd_query_device_out out;
	struct rig *r = *state;

	r->f.dev->caps &= ~SKUA_CAP_TURN;
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in), NULL, 0), BAD_PARAM);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &out, sizeof(out)), OK);
	assert_int_equal(out.turn_wqes, 0);
	assert_int_equal(out.turn_bytes, 0);
}

static void counters(void **state)
{
	struct rig *r = *state;
	__le64 out[1 + SKUA_CNT_COUNT] = { 0 };
	const struct skua_cmd_query_counters_out *head = (const void *)out;
	struct skua_cmd_index_in in = { .index = cpu_to_le32(1) };

	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_COUNTERS, 0, out, sizeof(out)), OK);
	assert_int_equal(le32_to_cpu(head->count), SKUA_CNT_COUNT);
	assert_true(le64_to_cpu(head->value[SKUA_CNT_CMDS]) > 10);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_COUNTERS, &in, sizeof(in), NULL, 8), BAD_INDEX);
	in.index = 0;
	in.reserved = cpu_to_le32(1);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_COUNTERS, &in, sizeof(in), NULL, 8), BAD_PARAM);
	/* Room for three values only. */
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_COUNTERS, 0, out, 8 + 24), OK);
	assert_int_equal(((uint8_t *)fake_ptr(&r->f, r->m.out))[8 + 24], 0xa5);
}

static void teardown(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_init_device_in init;
	struct mini_cq cq;
	uint8_t secret = 0x5a;

	mini_cq_create(&r->m, &cq, 3);
	skua_dev_bar_write(r->f.dev, SKUA_BAR_DM, 64, &secret, 1);
	mini_ok(&r->m, SKUA_CMD_TEARDOWN_DEVICE, NULL, 0);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_STATUS), SKUA_STATUS_READY);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, NULL, 128), BAD_DEV_STATE);
	/* Pages are still mapped: the device can begin anew on them, without its past. */
	mini_init_in(&r->m, &init);
	mini_ok(&r->m, SKUA_CMD_INIT_DEVICE, &init, sizeof(init));
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, NULL, 128), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 0, NULL, 0), BAD_INDEX);
	skua_dev_bar_read(r->f.dev, SKUA_BAR_DM, 64, &secret, 1);
	assert_int_equal(secret, 0);
}

/* --- resets --- */

static void reset_from_any_state(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 6; i++) {
		switch (i % 3) {
		case 1:
			mini_ring_up(&r->m, &r->f);
			break;
		case 2:
			mini_up(&r->m, &r->f);
			mini_ok(&r->m, SKUA_CMD_INJECT_FATAL, NULL, 0);
			break;
		}
		fake_wr32(&r->f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
		assert_int_equal(fake_rd32(&r->f, SKUA_REG_STATUS), SKUA_STATUS_READY);
		assert_int_equal(fake_rd32(&r->f, SKUA_REG_CMDQ_CTRL), 0);
		assert_int_equal(fake_rd32(&r->f, SKUA_REG_CMDQ_BASE), 0);
	}
	mini_up(&r->m, &r->f);
}

static void flr(void **state)
{
	struct rig *r = *state;
	const unsigned int devctl = SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL;
	uint16_t val;

	skua_dev_cfg_read(r->f.dev, devctl, &val, 2);
	val |= PCI_EXP_DEVCTL_BCR_FLR;
	skua_dev_cfg_write(r->f.dev, devctl, &val, 2);
	skua_dev_cfg_read(r->f.dev, PCI_COMMAND, &val, 2);
	assert_int_equal(val, 0);
	assert_int_equal(fake_rd32(&r->f, SKUA_REG_ID), 0xffffffff);
	fake_bus(&r->f, true, true);
	mini_up(&r->m, &r->f);
}

static void no_bus_master(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_slot *slot = slot_at(r, 0);
	uint64_t reads = r->f.reads;

	memset(slot, 0, sizeof(*slot));
	slot->token = cpu_to_le32(0x10000);
	fake_bus(&r->f, true, false);
	fake_wr32(&r->f, SKUA_REG_CMDQ_DB, 0x10000);
	fake_run(&r->f);
	assert_int_equal(r->f.reads, reads);
	assert_int_equal(slot->done, 0);
	fake_bus(&r->f, true, true);
	fake_run(&r->f);
	assert_int_equal(le32_to_cpu(slot->done), 0x10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regs_identity),
		rig_test(regs_widths),
		rig_test(regs_read_only),
		cmocka_unit_test(regs_setup_ranges),
		rig_test(heartbeat),
		rig_test(bad_tokens),
		rig_test(many_in_flight),
		cmocka_unit_test(turn_time),
		rig_test(lengths),
		cmocka_unit_test(states),
		rig_test(unknown_opcodes),
		rig_test(slot_fields),
		rig_test(mailbox_faults),
		rig_test(ring_fetch_fault),
		rig_test(ring_write_fault),
		rig_test(inject_fatal),
		rig_test(command_events),
		rig_test(command_events_moved),
		rig_test(query_device),
		rig_test(modify_device),
		rig_test(turns),
		rig_test(classes),
		rig_test(no_turns),
		rig_test(counters),
		rig_test(teardown),
		rig_test(reset_from_any_state),
		rig_test(flr),
		rig_test(no_bus_master),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
