// SPDX-License-Identifier: GPL-2.0
/*
 * What a hostile guest can do to a device that is up, short of commands: accesses
 * of the BARs and of configuration space of any width, offset and value, changes
 * of all memory that the device reads (rings, records, contexts in ICM), frames,
 * time. The input is a list of actions; an action is a byte that names it, and
 * its operands.
 *
 * The device may refuse, ignore or die in a fatal error. It must not read or write
 * what is not its own, it must come to rest, and a reset must bring it back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mini.h"

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		abort();							\
	}									\
} while (0)

/* Rounds in which whatever a single action starts must be over. */
#define ROUNDS	20000

static struct fake f;
static struct mini m;
static struct mini_cq cq;
static struct mini_qp eth, rc;

/* The rest of the input. */
struct input {
	const uint8_t *p;
	size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t val = 0;

	while (bytes-- && in->left) {
		val = val << 8 | *in->p++;
		in->left--;
	}
	return val;
}

static void setup(void)
{
	static const struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .onchip = 8 };

	fake_init(&f, &cfg);
}

/* A device with an Ethernet and an RC queue that both run. */
static void start(void)
{
	struct skua_cmd_modify_port_in port = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_qp_attr attr;

	mini_up(&m, &f);
	mini_cq_create(&m, &cq, 4);
	mini_qp_create(&m, &eth, SKUA_QP_RAW_ETH, &cq, &cq, 4, 4, 1);
	mini_eth_to_rts(&m, &eth);
	port.dflt = cpu_to_le32(eth.qpn);
	mini_ok(&m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
	CHECK(!mini_gid(&m, 0, 1, false, SKUA_GID_NO_VLAN));
	mini_qp_create(&m, &rc, SKUA_QP_RC, &cq, &cq, 4, 4, 1);
	attr = mini_rc_attr(rc.qpn, 1, f.dev->cfg.mac, false, 1, 1, 1);
	mini_rc_to_rts(&m, &rc, &attr);
}

static void settle(void)
{
	for (unsigned int i = 0; skua_dev_run(f.dev); i++)
		CHECK(i < ROUNDS);
}

/* Memory: a place near something that the device looks at, and what goes there. */
static void poke(struct input *in)
{
	const uint64_t near[] = { m.cmdq, cq.ring, cq.dbr, eth.sq, eth.rq, eth.dbr, rc.sq, rc.rq,
				  rc.dbr, m.eq[0].ring, m.icm[SKUA_ICM_SQC], m.icm[SKUA_ICM_RQC],
				  m.icm[SKUA_ICM_CQC], m.icm[SKUA_ICM_EQC], m.icm[SKUA_ICM_MTT],
				  m.icm[SKUA_ICM_RRC] };
	uint64_t at = near[take(in, 1) % 16] + take(in, 2) % 2048;
	uint8_t len = take(in, 1) % 65;

	while (len-- && in->left)
		*(uint8_t *)fake_ptr(&f, at++) = take(in, 1);
}

/* A doorbell whose words are near to good ones. */
static void doorbell(struct input *in)
{
	static const unsigned int regs[] = { SKUA_UAR_SQ, SKUA_UAR_CQ_ARM, SKUA_UAR_EQ };
	const uint32_t nums[] = { eth.qpn, rc.qpn, cq.cqn, 0, 1 };
	uint8_t how = take(in, 1);
	uint32_t hi = nums[(how >> 2) % 5] ^ (uint32_t)take(in, 1) << 24;

	fake_db(&f, how & 0x80 ? 0 : MINI_UAR, regs[how % 3], take(in, 1) - 8, hi);
}

static void frame(struct input *in)
{
	uint8_t buf[2048];
	size_t len = take(in, 2) % sizeof(buf);
	size_t have = len < in->left ? len : in->left;

	memset(buf, 0, sizeof(buf));
	memcpy(buf, in->p, have);
	in->p += have;
	in->left -= have;
	memcpy(buf, f.dev->cfg.mac, 6);
	fake_rx(&f, buf, len);
}

static void action(struct input *in)
{
	uint8_t buf[64];
	unsigned int bar;
	uint64_t off, val;
	size_t len;

	switch (take(in, 1) % 9) {
	case 0:
		bar = take(in, 1) % 6;
		off = take(in, 1) & 1 ? take(in, 4) : take(in, 2) % 0x80;
		len = 1 + take(in, 1) % 64;
		val = take(in, 8);
		memset(buf, 0x5a, sizeof(buf));
		memcpy(buf, &val, sizeof(val));
		skua_dev_bar_write(f.dev, bar, off, buf, len);
		break;
	case 1:
		bar = take(in, 1) % 6;
		off = take(in, 4);
		skua_dev_bar_read(f.dev, bar, off, buf, 1 + take(in, 1) % 64);
		break;
	case 2:
		off = take(in, 2) % 4200;
		val = take(in, 4);
		skua_dev_cfg_write(f.dev, off, &val, 1 + take(in, 1) % 8);
		skua_dev_cfg_read(f.dev, off, buf, 1 + off % 8);
		break;
	case 3:
		poke(in);
		break;
	case 4:
		doorbell(in);
		break;
	case 5:
		frame(in);
		break;
	case 6:
		f.now += take(in, 3) * 1000;
		if (f.deadline <= f.now) {
			f.deadline = SKUA_TIME_NEVER;
			skua_dev_tick(f.dev);
		}
		break;
	case 7:
		skua_dev_link(f.dev, take(in, 1) & 1);
		break;
	case 8:
		settle();
		break;
	}
}

static void finish(void)
{
	struct fake_frame *out;

	settle();
	while ((out = fake_tx(&f)))
		free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .p = data, .left = size };

	fake_pool();
	setup();
	start();
	while (in.left)
		action(&in);
	finish();
	fake_exit(&f);
	return 0;
}
