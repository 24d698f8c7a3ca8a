// SPDX-License-Identifier: GPL-2.0
/*
 * Commands with bodies that are almost right. The input is a list of actions; most
 * are commands: number, then changes to an input that would have been good, made
 * from whatever objects there are. In between doorbells, frames and time, so that
 * what the commands left behind is used.
 *
 * Each command must complete, with a status that the interface knows, unless the
 * device died in a fatal error; a reset must bring it back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fuzz_input.h"
#include "mini.h"

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		abort();							\
	}									\
} while (0)

#define ROUNDS	20000
#define OBJECTS	8

static const struct info {
	uint32_t op;
	uint32_t in, out;
} commands[] = {
#define X(name, op, in, out, states, class)					\
	{ op, sizeof(struct skua_cmd_##in), sizeof(struct skua_cmd_##out) },
	SKUA_CMD_TABLE(X)
#undef X
};

#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static struct fake f;
static struct mini m;
static struct mini_cq cqs[OBJECTS];
static struct mini_qp qps[OBJECTS];
static unsigned int made;

static struct fuzz_race race;

static void start(void)
{
	memset(cqs, 0, sizeof(cqs));
	memset(qps, 0, sizeof(qps));
	/* All that is written, so that the fuzzer gets at it. */
	f.dev->caps |= SKUA_CAP_SRQ | SKUA_CAP_MCAST | SKUA_CAP_UD | SKUA_CAP_UC |
		       SKUA_CAP_XRC | SKUA_CAP_ODP | SKUA_CAP_COUNTER_SET | SKUA_CAP_FLOW;
	mini_up(&m, &f);
	race = (struct fuzz_race){ 0 };
	fuzz_race_at(&race, m.in, SKUA_CMD_MBOX_SIZE);
	for (made = 0; made < 2; made++) {
		mini_cq_create(&m, &cqs[made], 3);
		mini_qp_create(&m, &qps[made], made ? SKUA_QP_RC : SKUA_QP_RAW_ETH, &cqs[made],
			       &cqs[made], 2, 2, 1);
	}
}

static const enum skua_qp_type types[] = {
	SKUA_QP_RAW_ETH, SKUA_QP_RC, SKUA_QP_UD, SKUA_QP_UC, SKUA_QP_XRC_TGT, SKUA_QP_XRC_INI,
	SKUA_QP_RC, SKUA_QP_RAW_ETH,
};

/* From any state to the one asked for, with what a QP of that type must give. */
static void good_modify(unsigned int n, const struct mini_qp *qp,
			struct skua_cmd_modify_qp_in *mod)
{
	bool eth = qp->type == SKUA_QP_RAW_ETH, ud = qp->type == SKUA_QP_UD;
	bool tgt = qp->type == SKUA_QP_XRC_TGT || qp->type == SKUA_QP_RC;
	bool ini = qp->type == SKUA_QP_XRC_INI || qp->type == SKUA_QP_RC;
	const uint32_t conn[] = {
		[SKUA_QP_INIT] = SKUA_QP_M_PKEY | SKUA_QP_M_PORT | SKUA_QP_M_ACCESS,
		[SKUA_QP_RTR] = SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
				SKUA_QP_M_RQ_PSN |
				(tgt ? SKUA_QP_M_MAX_DEST_RD_ATOMIC | SKUA_QP_M_MIN_RNR_TIMER : 0),
		[SKUA_QP_RTS] = SKUA_QP_M_SQ_PSN | (tgt || ini ? SKUA_QP_M_ACK_TIMEOUT : 0) |
				(ini ? SKUA_QP_M_RETRY_CNT | SKUA_QP_M_RNR_RETRY |
				       SKUA_QP_M_MAX_RD_ATOMIC : 0),
		[SKUA_QP_ERR] = 0,
	};
	const uint32_t dgram[] = {
		[SKUA_QP_INIT] = SKUA_QP_M_PKEY | SKUA_QP_M_PORT | SKUA_QP_M_QKEY,
		[SKUA_QP_RTS] = SKUA_QP_M_SQ_PSN,
		[SKUA_QP_ERR] = 0,
	};

	mod->qpn = cpu_to_le32(qp->qpn);
	mod->cur_state = cpu_to_le32(SKUA_QP_ANY_STATE);
	mod->attr.state = cpu_to_le32(n % 7);
	mod->mask = cpu_to_le32(SKUA_QP_M_STATE | (eth ? n == 1 ? SKUA_QP_M_PORT : 0 :
						   ud ? dgram[n % 7] : conn[n % 7]));
	if (eth || ud)
		return;
	if (n % 7 == SKUA_QP_RTR) {
		struct skua_qp_attr a = mini_rc_attr(qp->qpn, 0, f.dev->cfg.mac, false, 0, 0, 1);

		mod->attr.av = a.av;
		mod->attr.dest_qpn = a.dest_qpn;
		mod->attr.retry = le32_encode_bits(1, SKUA_ATTR_PATH_MTU);
	}
}

/* An input that is good or nearly so, for the object @n. */
static void good_input(uint32_t op, unsigned int n, void *in)
{
	struct mini_eq eq;
	unsigned int old = n % made;

	switch (op) {
	case SKUA_CMD_CREATE_EQ:
		*(struct skua_eqc *)in = mini_eqc(&m, &eq, 2 + n, 2, 0, n);
		break;
	case SKUA_CMD_CREATE_CQ:
		*(struct skua_cqc *)in = mini_cqc(&m, &cqs[n], 2, n & 1 ? 128 : 64);
		break;
	case SKUA_CMD_CREATE_QP:
		*(struct skua_cmd_create_qp_in *)in =
			mini_qp_in(&m, &qps[n], types[n], &cqs[old], &cqs[old], 2, 2, 1);
		if (made < OBJECTS)
			made += n == made;
		break;
	case SKUA_CMD_MODIFY_QP:
		good_modify(n, &qps[old], in);
		break;
	case SKUA_CMD_RESIZE_CQ: {
		struct skua_cqc *cqc = in;

		cqc->cqn = cpu_to_le32(cqs[old].cqn);
		cqc->flags = le32_encode_bits(n, SKUA_CQC_LOG_SIZE);
		cqc->ring.base = cpu_to_le64(FAKE_MEM_BASE + (n << 16));
		break;
	}
	case SKUA_CMD_ATTACH_MCG: {
		struct skua_cmd_mcg_in *mcg = in;

		mcg->index = cpu_to_le32(n);
		mcg->mcg.gid[0] = 0xff;
		mcg->mcg.gid[15] = n & 1;
		mcg->mcg.qpn = cpu_to_le32(qps[old].qpn);
		break;
	}
	case SKUA_CMD_MODIFY_DEVICE: {
		struct skua_cmd_modify_device_in *mod = in;

		mod->mask = cpu_to_le32(n & 1 ? SKUA_DEV_M_FAULT_EQ : SKUA_DEV_M_ASYNC_EQ);
		mod->fault_eqn = cpu_to_le32(n & 1 ? n / 2 : 0);
		mod->async_eqn = cpu_to_le32(n & 1 ? 0 : n / 2);
		break;
	}
	case SKUA_CMD_CREATE_MPT:
	case SKUA_CMD_MODIFY_MPT:
		*(struct skua_mpt *)in = (struct skua_mpt){
			.key = cpu_to_le32((n + 1) << 8),
			.flags = cpu_to_le32(SKUA_MPT_VALID),
			.pd = cpu_to_le32(MINI_PD),
			.access = cpu_to_le32(0xf),
			.len = cpu_to_le64(4096),
			.xlat.base = cpu_to_le64(FAKE_MEM_BASE),
		};
		/* Windows, and regions to be registered. */
		if (n & 2)
			*(struct skua_mpt *)in = (struct skua_mpt){
				.key = cpu_to_le32((n + 1) << 8),
				.flags = cpu_to_le32(SKUA_MPT_FREE | (n & 1 ? SKUA_MPT_FAST_REG :
								      SKUA_MPT_MW2 << 4)),
				.pd = cpu_to_le32(MINI_PD),
				.xlat.mode = cpu_to_le32(n & 1 ? SKUA_XLAT_MTT : 0),
				.npages = cpu_to_le32(n & 1 ? 8 : 0),
			};
		if (n == 5) {
			struct skua_mpt *odp = in;

			odp->flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_ODP);
			odp->xlat.base = cpu_to_le64(8);
			odp->xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
					 le32_encode_bits(12, SKUA_XLAT_LOG_PAGE);
			odp->npages = cpu_to_le32(1);
		}
		break;
	case SKUA_CMD_MAP_ICM: {
		struct skua_cmd_map_icm_in *map = in;

		map->addr = cpu_to_le64(m.base[n] + MINI_MAPPED * 4096ull);
		map->count = cpu_to_le32(1);
		map->page[0] = cpu_to_le64(FAKE_MEM_BASE + (n << 16));
		break;
	}
	case SKUA_CMD_RESUME_PAGE_FAULT: {
		struct skua_cmd_resume_fault_in *resume = in;

		/* Of the QP, if it had a fault. */
		resume->token = cpu_to_le32(1u << 18 | qps[old].qpn);
		resume->error = cpu_to_le32(n & 1);
		break;
	}
	case SKUA_CMD_UNMAP_ICM: {
		struct skua_cmd_unmap_icm_in *unmap = in;

		unmap->addr = cpu_to_le64(m.base[n]);
		unmap->npages = cpu_to_le32(1);
		break;
	}
	case SKUA_CMD_SET_GID: {
		struct skua_cmd_set_gid_in *set = in;

		set->index = cpu_to_le32(n);
		mini_gid_addr(set->gid.gid, n, n & 1);
		memcpy(set->gid.mac, f.dev->cfg.mac, 6);
		set->gid.vlan = cpu_to_le16(SKUA_GID_NO_VLAN);
		set->gid.flags = cpu_to_le32(SKUA_GID_VALID | (n & 1 ? 0 : SKUA_GID_IPV4));
		break;
	}
	case SKUA_CMD_CREATE_FLOW: {
		struct skua_cmd_create_flow_in *flow = in;

		flow->index = cpu_to_le32(n);
		flow->flow.dest = cpu_to_le32(qps[0].qpn);
		flow->flow.flags = cpu_to_le32(n & 4 ? SKUA_FLOW_SNIFFER : 0);
		flow->flow.counter = cpu_to_le32(n & 2 ? n : 0);
		if (n & 1)
			memset(&flow->flow.mask, 0xff, sizeof(flow->flow.mask.dmac));
		break;
	}
	case SKUA_CMD_CREATE_RSS:
	case SKUA_CMD_MODIFY_RSS: {
		struct skua_cmd_create_rss_in *rss = in;

		rss->index = cpu_to_le32(n);
		rss->rss.qpn[0] = cpu_to_le32(qps[0].qpn);
		break;
	}
	case SKUA_CMD_CREATE_SRQ: {
		struct skua_srqc *srqc = in;

		srqc->srqn = cpu_to_le32(n);
		srqc->xrcd = cpu_to_le32(n & 1 ? MINI_XRCD : 0);
		srqc->cqn = cpu_to_le32(n & 1 ? cqs[old].cqn : 0);
		srqc->flags = le32_encode_bits(1, SKUA_SRQC_LOG_STRIDE);
		srqc->ring.base = cpu_to_le64(FAKE_MEM_BASE);
		srqc->dbr = cpu_to_le64(FAKE_MEM_BASE);
		break;
	}
	case SKUA_CMD_MODIFY_PORT: {
		struct skua_cmd_modify_port_in *port = in;

		port->mask = cpu_to_le32(n & 1 ? SKUA_PORT_M_DFLT : SKUA_PORT_M_ENABLE);
		port->enable = cpu_to_le32(1);
		port->dflt = cpu_to_le32(qps[0].qpn);
		break;
	}
	case SKUA_CMD_DESTROY_QP:
	case SKUA_CMD_QUERY_QP:
		((struct skua_cmd_index_in *)in)->index = cpu_to_le32(qps[old].qpn);
		break;
	case SKUA_CMD_DESTROY_MPT:
	case SKUA_CMD_QUERY_MPT:
		((struct skua_cmd_index_in *)in)->index = cpu_to_le32((n + 1) << 8);
		break;
	default:
		((struct skua_cmd_index_in *)in)->index = cpu_to_le32(n);
		break;
	}
}

static bool known(int status)
{
	switch (status) {
#define X(name, value, err, text) case value:
	SKUA_CMD_STATUS_TABLE(X)
#undef X
		return true;
	}
	return false;
}

static void command(struct input *in)
{
	const struct info *c = &commands[take(in, 1) % NUM_COMMANDS];
	unsigned int n = take(in, 1) % OBJECTS;
	uint8_t pick = (uint8_t)take(in, 1), changes = pick % 4;
	_Alignas(8) uint8_t body[SKUA_CMD_MBOX_SIZE + 64] = { 0 };
	size_t len = c->in, out = c->out;
	int status;

	/* Memory for rings is not given back: begin anew before it is used up. */
	if (f.next > FAKE_MEM_BASE + FAKE_MEM_SIZE / 2)
		f.next = FAKE_MEM_BASE + FAKE_MEM_SIZE / 4;
	if (c->op == SKUA_CMD_MAP_ICM)
		len += 8;
	if (c->op == SKUA_CMD_QUERY_COUNTERS)
		out = 1024;
	good_input(c->op, n, body);
	while (changes-- && len) {
		size_t at = take(in, 2) % len;

		body[at] ^= take(in, 1);
	}
	/* It may change while the device reads it. */
	if (pick >= 0xe0)
		fuzz_race(&race, &f, in);
	status = mini_cmd(&m, c->op, body, len, NULL, out);
	CHECK(f.dev->state == DEV_FATAL || known(status));
}

static void other(struct input *in)
{
	uint8_t buf[256];
	size_t len;

	switch (take(in, 1) % 5) {
	case 0:
		fake_db(&f, take(in, 1) % 3, take(in, 1) % 3 * 8, take(in, 1),
			qps[take(in, 1) % made].qpn);
		break;
	case 1:
		fake_db(&f, take(in, 1) % 3, SKUA_UAR_CQ_ARM, take(in, 1), take(in, 1) % 8);
		break;
	case 2:
		len = 14 + take(in, 1) % 200;
		for (size_t i = 0; i < len; i++)
			buf[i] = i < 6 ? f.dev->cfg.mac[i] : take(in, 1);
		fake_rx(&f, buf, len);
		break;
	case 3:
		f.now += take(in, 2) * 1000;
		f.deadline = SKUA_TIME_NEVER;
		skua_dev_tick(f.dev);
		break;
	case 4:
		fake_hole(&f, FAKE_MEM_BASE + take(in, 2) * 64, 64);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .onchip = 8 };
	struct input in = { .p = data, .left = size };

	fake_pool();
	fake_init(&f, &cfg);
	start();
	while (in.left) {
		if (take(&in, 1) & 7)
			command(&in);
		else
			other(&in);
		for (unsigned int i = 0; skua_dev_run(f.dev); i++)
			CHECK(i < ROUNDS);
		/* Holes are few. */
		if (f.hole[FAKE_HOLES - 1].to)
			fake_no_holes(&f);
	}
	fake_no_holes(&f);
	fake_exit(&f);
	return 0;
}
