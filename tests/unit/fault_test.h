/* SPDX-License-Identifier: GPL-2.0 */
/* A wire with faults between two stations, which note what comes. */
#ifndef SKUA_TEST_FAULT_TEST_H
#define SKUA_TEST_FAULT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/pkt.h"
#include "wire/fault.h"
#include "wire/wire.h"

#define LOG_MAX	80000

/* What came out at the other end. */
struct log {
	unsigned int n;
	unsigned int other;
	struct entry {
		uint32_t qpn;
		uint32_t psn;
		enum skua_pkt_status status;
		uint8_t opcode;
		uint8_t tclass;
		uint64_t time;
	} e[LOG_MAX];
};

struct fixture {
	struct wire *w;
	struct wire_port *a;
	struct wire_port *b;
	uint64_t now;
	unsigned int rooms;
	struct log *at_b;
	struct log *at_a;
};

static inline void note(struct log *log, uint64_t now, const void *frame, size_t len)
{
	struct skua_pkt p;
	enum skua_pkt_status status = skua_pkt_parse(frame, len, &p);
	struct entry *e;

	if (status == SKUA_PKT_NOT_ROCE) {
		log->other++;
		return;
	}
	assert_true(log->n < LOG_MAX);
	e = &log->e[log->n++];
	*e = (struct entry){ .status = status, .tclass = p.tclass, .time = now };
	if (p.bth) {
		e->qpn = p.dqpn;
		e->psn = p.psn;
		e->opcode = p.opcode;
	}
}

static inline void rx_a(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct fixture *f = priv;

	assert_false(icrc_pending);
	note(f->at_a, f->now, frame, len);
}

static inline void rx_b(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct fixture *f = priv;

	assert_false(icrc_pending);
	note(f->at_b, f->now, frame, len);
}

static inline struct fixture *open_wire(uint64_t seed, const char *spec)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char err[200] = "";

	assert_non_null(f);
	f->at_a = calloc(1, sizeof(*f->at_a));
	f->at_b = calloc(1, sizeof(*f->at_b));
	assert_true(f->at_a && f->at_b);
	f->w = wire_create(seed);
	assert_non_null(f->w);
	f->a = wire_add_dev(f->w, "a", rx_a, f);
	f->b = wire_add_dev(f->w, "b", rx_b, f);
	if (spec && wire_fault(f->w, spec, err, sizeof(err)))
		fail_msg("%s: %s", spec, err);
	return f;
}

static inline void close_wire(struct fixture *f)
{
	wire_destroy(f->w);
	free(f->at_a);
	free(f->at_b);
	free(f);
}

static inline void drain(struct fixture *f)
{
	while (wire_poll(f->w, f->now))
		;
}

/* Let time pass until nothing is under way. */
static inline void finish(struct fixture *f)
{
	drain(f);
	while (wire_deadline(f->w) != UINT64_MAX) {
		f->now = wire_deadline(f->w);
		drain(f);
	}
}

struct what {
	uint8_t opcode;
	uint32_t qpn;
	uint32_t psn;
	uint8_t tclass;
	bool ipv6;
	uint32_t sqpn;
};

static inline size_t make(uint8_t *frame, size_t size, const struct what *what)
{
	static const uint8_t ip[4] = { 10, 0, 0, 1 };
	struct skua_pkt_addr addr = { .dmac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
				      .smac = { 2, 0, 0, 0, 0, 1 }, .tclass = what->tclass,
				      .hop_limit = 64 };
	struct skua_pkt_bth bth = { .opcode = what->opcode, .pkey = 0xffff, .dqpn = what->qpn,
				    .psn = what->psn & IB_PSN_MASK };
	struct skua_pkt_build b;
	size_t payload;

	if (!what->ipv6) {
		ib_gid_from_v4(addr.sgid, ip);
		ib_gid_from_v4(addr.dgid, ip);
	}
	assert_int_equal(skua_pkt_build_start(&b, frame, size, &addr, &bth), 0);
	if (b.deth)
		ib_deth_put(b.deth, 0, what->sqpn);
	payload = ib_opcode_info(what->opcode)->flags & IB_F_PAYLOAD ? 16 : 0;
	memset(b.payload, 0x5a, payload);
	return skua_pkt_build_finish(&b, payload);
}

static inline void send_what(struct wire_port *port, const struct what *what)
{
	uint8_t frame[256];
	size_t len = make(frame, sizeof(frame), what);

	wire_port_send(port, frame, len);
}

static inline void send_psn(struct fixture *f, uint32_t qpn, uint32_t psn)
{
	send_what(f->a, &(struct what){ .opcode = IB_OPCODE(RC, SEND_MIDDLE), .qpn = qpn,
					.psn = psn });
}

static inline const struct wire_stats *stats(struct fixture *f)
{
	return wire_port_stats(f->a);
}

#endif /* SKUA_TEST_FAULT_TEST_H */
