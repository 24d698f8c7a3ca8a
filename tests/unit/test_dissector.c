// SPDX-License-Identifier: GPL-2.0
/*
 * tools/dissector/skua.lua: a capture of packets of every opcode of Skua's own, with fields
 * that differ, as tshark shows it; and packets that are too short.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "roce/pkt.h"
#include "wire/pcapng.h"

#define LINE		2048

/* Columns that tshark prints, one packet a line. */
static const char *const fields[] = {
	"skua.op", "skua.xrc", "skua.dqpn", "skua.psn", "skua.ackreq", "skua.window",
	"skua.xrceth.srqn", "skua.seth.rtx", "skua.seth.seq", "skua.seth.run", "skua.seth.off",
	"skua.reth.va", "skua.reth.rkey", "skua.reth.len", "skua.immdt", "skua.ieth.rkey",
	"skua.aeth.syndrome", "skua.aeth.msn", "skua.bitmap", "skua.taken", "skua.taken.count",
	"skua.atomic.va", "skua.atomic.rkey", "skua.atomic.swap_add", "skua.atomic.compare",
	"skua.atomic.swap_add_mask", "skua.atomic.compare_mask", "skua.payload.len",
	"infiniband.bth.opcode", "skua.short", "skua.bitmap.bad", "skua.unknown",
};

#define NFIELDS	(sizeof(fields) / sizeof(fields[0]))

/* What people call operations; which the standard has, too, as it has them. */
static const struct {
	uint8_t op;
	const char *name;
} names[] = {
	{ IB_OP_SEND_FIRST, "SEND First" }, { IB_OP_SEND_MIDDLE, "SEND Middle" },
	{ IB_OP_SEND_LAST, "SEND Last" }, { IB_OP_SEND_LAST_IMM, "SEND Last with Immediate" },
	{ IB_OP_SEND_ONLY, "SEND Only" }, { IB_OP_SEND_ONLY_IMM, "SEND Only with Immediate" },
	{ IB_OP_WRITE_FIRST, "RDMA WRITE First" }, { IB_OP_WRITE_MIDDLE, "RDMA WRITE Middle" },
	{ IB_OP_WRITE_LAST, "RDMA WRITE Last" },
	{ IB_OP_WRITE_LAST_IMM, "RDMA WRITE Last with Immediate" },
	{ IB_OP_WRITE_ONLY, "RDMA WRITE Only" },
	{ IB_OP_WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate" },
	{ IB_OP_READ_REQUEST, "RDMA READ Request" }, { IB_OP_ACK, "Acknowledge with Bitmap" },
	{ IB_OP_SEND_LAST_INV, "SEND Last with Invalidate" },
	{ IB_OP_SEND_ONLY_INV, "SEND Only with Invalidate" },
	{ IB_OP_MASKED_CMP_SWAP, "Masked CmpSwap" },
	{ IB_OP_MASKED_FETCH_ADD, "Masked FetchAdd" },
};

#define TEMPLATE "/tmp/skua-dissector-XXXXXX"
static char dir[] = TEMPLATE;
static char path[sizeof(dir) + 16];
static char script[sizeof(dir) + 16];

/* --- the capture --- */

static void sender(struct skua_pkt_addr *a, bool ipv6)
{
	static const uint8_t src[4] = { 192, 0, 2, 1 }, dst[4] = { 192, 0, 2, 2 };

	*a = (struct skua_pkt_addr) {
		.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 }, .sport = 0xd123,
		.hop_limit = 63, .vlan = ipv6, .tci = 5,
	};
	ib_gid_from_v4(a->sgid, src);
	ib_gid_from_v4(a->dgid, dst);
	if (ipv6) {
		memset(a->sgid, 0x20, 16);
		memset(a->dgid, 0x21, 16);
	}
}

/**
 * struct shown - a packet, and what is to be shown of it
 * @value: by fields[]; empty: nothing
 * @bitmap: of an acknowledgment
 * @bitmap_len: its bytes
 * @payload: bytes, if there is no bitmap
 */
struct shown {
	char value[NFIELDS][200];
	uint8_t bitmap[68];
	size_t bitmap_len;
	size_t payload;
};

__attribute__((format(printf, 3, 4)))
static void show(struct shown *s, const char *field, const char *format, ...)
{
	va_list args;
	size_t i;

	for (i = 0; strcmp(fields[i], field); i++)
		assert_true(i + 1 < NFIELDS);
	va_start(args, format);
	vsnprintf(s->value[i], sizeof(s->value[i]), format, args);
	va_end(args);
}

/* Values that no two packets or headers share. */
static void fill(const struct skua_pkt_build *b, uint32_t n, struct shown *s)
{
	uint64_t wide = 0x0102030405060000 + n;

	if (b->xrceth) {
		ib_xrceth_put(b->xrceth, 0xa00000 + n);
		show(s, "skua.xrceth.srqn", "0x%06x", 0xa00000 + n);
	}
	if (b->seth) {
		ib_seth_put(b->seth, n % 2 ? IB_SETH_RTX : 0, 0xb00000 + n, 0xc00000 + n);
		b->seth->run = (uint8_t)(n + 3);
		show(s, "skua.seth.run", "%u", (uint8_t)(n + 3));
		show(s, "skua.seth.rtx", "%s", n % 2 ? "True" : "False");
		show(s, "skua.seth.seq", "%u", 0xb00000 + n);
		show(s, "skua.seth.off", "%u", 0xc00000 + n);
	}
	if (b->reth) {
		ib_reth_put(b->reth, wide, 0xd0000000 + n, 0x7f000000 + n);
		show(s, "skua.reth.va", "0x%016llx", (unsigned long long)wide);
		show(s, "skua.reth.rkey", "0x%08x", 0xd0000000 + n);
		show(s, "skua.reth.len", "%u", 0x7f000000 + n);
	}
	if (b->immdt) {
		be32_put(b->immdt->data, 0xe0000000 + n);
		show(s, "skua.immdt", "0x%08x", 0xe0000000 + n);
	}
	if (b->ieth) {
		be32_put(b->ieth->rkey, 0xf0000000 + n);
		show(s, "skua.ieth.rkey", "0x%08x", 0xf0000000 + n);
	}
	if (b->aeth) {
		ib_aeth_put(b->aeth, 0x1f, 0x900000 + n);
		show(s, "skua.aeth.syndrome", "0x1f");
		show(s, "skua.aeth.msn", "%u", 0x900000 + n);
	}
	if (b->maskedeth) {
		ib_atomiceth_put(&b->maskedeth->atomic, wide, n, wide + 1, wide + 2);
		ib_maskedeth_put(b->maskedeth, wide + 3, wide + 4);
		show(s, "skua.atomic.va", "0x%016llx", (unsigned long long)wide);
		show(s, "skua.atomic.rkey", "0x%08x", n);
		show(s, "skua.atomic.swap_add", "0x%016llx", (unsigned long long)wide + 1);
		show(s, "skua.atomic.compare", "0x%016llx", (unsigned long long)wide + 2);
		show(s, "skua.atomic.swap_add_mask", "0x%016llx", (unsigned long long)wide + 3);
		show(s, "skua.atomic.compare_mask", "0x%016llx", (unsigned long long)wide + 4);
	}
}

/* The bitmap, and what the caller has found to be in it. */
static void sack(struct shown *s, const char *bits, size_t len, const char *taken, uint32_t count)
{
	char hex[2 * sizeof(s->bitmap) + 1] = "";
	size_t i;

	memset(s->bitmap, 0, sizeof(s->bitmap));
	memcpy(s->bitmap, bits, len);
	s->bitmap_len = len;
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", s->bitmap[i]);
	show(s, "skua.bitmap", "%s", hex);
	show(s, "skua.taken", "%s", taken);
	show(s, "skua.taken.count", "%u", count);
}

static const char *operation(uint8_t opcode)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].op == (opcode & 0x1f))
			return names[i].name;
	fail_msg("opcode %#x has no name", opcode);
	return NULL;
}

/* A packet; what is expected of it, up to what the caller says. */
static size_t packet(uint8_t *frame, size_t room, uint8_t opcode, uint8_t resv7, uint32_t psn,
		     uint32_t n, struct shown *s)
{
	struct skua_pkt_bth bth = {
		.opcode = opcode, .resv7 = resv7, .pkey = 0xffff, .dqpn = 0x120000 + n,
		.psn = psn, .ackreq = n % 2,
	};
	unsigned int log = resv7 & IB_RESV7_LOG_WINDOW;
	struct skua_pkt_build b;
	struct skua_pkt_addr a;
	size_t len = s->payload;

	sender(&a, n % 3 == 1);
	assert_int_equal(skua_pkt_build_start(&b, frame, room, &a, &bth), 0);
	fill(&b, n, s);
	memset(b.payload, 0x5a, s->payload);
	if (s->bitmap_len) {
		memcpy(b.payload, s->bitmap, s->bitmap_len);
		len = s->bitmap_len;
	}
	/* Of others the window alone is ours. */
	if (opcode < IB_OPCODE_VENDOR_MIN)
		memset(s->value, 0, sizeof(s->value));
	if (log >= 5)
		show(s, "skua.window", "%u", 1u << (log > 9 ? 9 : log));
	if (opcode < IB_OPCODE_VENDOR_MIN) {
		show(s, "infiniband.bth.opcode", "%u", opcode);
		return skua_pkt_build_finish(&b, len);
	}
	show(s, "skua.op", "%s", operation(opcode));
	show(s, "skua.xrc", "%s", opcode >= IB_TRANSPORT_SKUA_XRC ? "True" : "False");
	show(s, "skua.dqpn", "0x%06x", 0x120000 + n);
	show(s, "skua.psn", "%u", psn);
	show(s, "skua.ackreq", "%s", n % 2 ? "True" : "False");
	if (!s->bitmap_len)
		show(s, "skua.payload.len", "%zu", s->payload);
	return skua_pkt_build_finish(&b, len);
}

/* --- tshark --- */

/* Whoever may run tshark can read it there. */
static int setup(void **state)
{
	char cmd[1024];

	(void)state;
	memcpy(dir, TEMPLATE, sizeof(dir));
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/pcapng", dir);
	snprintf(script, sizeof(script), "%s/skua.lua", dir);
	snprintf(cmd, sizeof(cmd),
		 "cp '%s' %s && mkdir -p %s/profiles && cp -r \"$(dirname '%s')/profile\" %s/profiles/skua && chmod -R a+rX %s",
		 DISSECTOR, script, dir, DISSECTOR, dir, dir);
	return system(cmd);
}

static int teardown(void **state)
{
	char cmd[sizeof(dir) + 16];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

/* Root's tshark loads no scripts. */
static const char *who(void)
{
	return getuid() ? "" : "setpriv --reuid=65534 --regid=65534 --clear-groups";
}

static FILE *tshark(void)
{
	char cmd[4096];
	size_t i, len;
	FILE *f;

	len = (size_t)snprintf(cmd, sizeof(cmd),
			       "HOME=%s exec timeout 60 %s tshark -n -X lua_script:%s -r - -T fields -E separator='|' -E occurrence=f",
			       dir, who(), script);
	for (i = 0; i < NFIELDS; i++)
		len += (size_t)snprintf(cmd + len, sizeof(cmd) - len, " -e %s", fields[i]);
	snprintf(cmd + len, sizeof(cmd) - len, " <%s 2>&1", path);
	f = popen(cmd, "r");
	assert_non_null(f);
	return f;
}

/* A line of the packets; others (who runs tshark) are passed over. */
static bool next(FILE *f, char *line)
{
	while (fgets(line, LINE, f)) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "Lua") || strstr(line, "rror"))
			fail_msg("tshark: %s", line);
		if (strchr(line, '|'))
			return true;
	}
	return false;
}

static void compare(char *line, const struct shown *s, uint8_t opcode)
{
	char *at = line;
	size_t i;

	for (i = 0; i < NFIELDS; i++) {
		char *value = strsep(&at, "|");
		bool same;

		assert_non_null(value);
		/* Hexadecimal numbers with as many digits as this tshark likes */
		same = strncmp(s->value[i], "0x", 2) ? !strcmp(value, s->value[i]) :
		       !strncmp(value, "0x", 2) &&
		       strtoull(value, NULL, 0) == strtoull(s->value[i], NULL, 0);
		if (!same)
			fail_msg("opcode %#x, %s: \"%s\" instead of \"%s\"", opcode, fields[i],
				 value, s->value[i]);
	}
	assert_null(at);
}

/* Is there anything? */
static bool column(char *line, const char *field)
{
	char *at = line, *value = NULL;
	size_t i;

	for (i = 0; i < NFIELDS; i++) {
		value = strsep(&at, "|");
		assert_non_null(value);
		if (!strcmp(fields[i], field))
			break;
	}
	return value && *value;
}

/* --- cases --- */

/* Every opcode of the manufacturers' range that the model knows, and some of the standard. */
static void test_every_opcode(void **state)
{
	static const char bits[8] = "\x06\x00\x01\x80\xff";
	static const uint8_t standard[] = { IB_OP_SEND_ONLY, IB_OP_ACK, IB_OP_READ_REQUEST };
	static uint8_t frame[SKUA_PKT_OVERHEAD + 128];
	static struct shown shown[64];
	struct wire_pcap *cap = wire_pcap_open(path);
	static uint8_t opcodes[64];
	unsigned int opcode, n = 0, i;
	char line[LINE];
	FILE *f;

	(void)state;
	assert_non_null(cap);
	wire_pcap_add_interface(cap, "nic0");
	memset(shown, 0, sizeof(shown));
	for (opcode = IB_OPCODE_VENDOR_MIN; opcode < 256; opcode++)
		if (ib_opcode_table[opcode].name)
			opcodes[n++] = (uint8_t)opcode;
	assert_in_range(n, 36, 60);
	for (i = 0; i < sizeof(standard); i++)
		opcodes[n++] = standard[i];
	for (i = 0; i < n; i++) {
		struct shown *s = &shown[i];
		bool ack = opcodes[i] >= IB_OPCODE_VENDOR_MIN && (opcodes[i] & 0x1f) == IB_OP_ACK;
		size_t len;

		if (ack)
			sack(s, bits, 8, "16777214-16777215 13 28-36", 12);
		else if (ib_opcode_table[opcodes[i]].flags & IB_F_PAYLOAD)
			s->payload = i % 7;
		len = packet(frame, sizeof(frame), opcodes[i], i % 5 ? (uint8_t)(5 + i % 10) : 0,
			     ack ? 0xfffffc : 1000 + i, i, s);
		assert_true(len);
		wire_pcap_packet(cap, 0, i * 1000, frame, len, NULL);
	}
	assert_int_equal(wire_pcap_flush(cap), 0);
	wire_pcap_close(cap);
	f = tshark();
	for (i = 0; i < n; i++) {
		assert_true(next(f, line));
		compare(line, &shown[i], opcodes[i]);
	}
	assert_false(next(f, line));
	assert_int_equal(pclose(f), 0);
}

/*
 * A packet of each opcode, cut at every length from nothing behind its BTH to one byte before
 * the end, padding bits included: it is said to be too short, or shows what is there; the script
 * never fails.
 */
static void test_short(void **state)
{
	static uint8_t frame[SKUA_PKT_OVERHEAD + 128];
	struct wire_pcap *cap = wire_pcap_open(path);
	unsigned int opcode, n = 0, pad, hdr, want = 0, told = 0;
	char line[LINE];
	size_t len, cut;
	FILE *f;

	(void)state;
	assert_non_null(cap);
	wire_pcap_add_interface(cap, "nic0");
	for (opcode = IB_OPCODE_VENDOR_MIN; opcode < 256; opcode++) {
		const struct ib_opcode_info *op = &ib_opcode_table[opcode];
		struct shown s = { .payload = op->name && op->flags & IB_F_PAYLOAD ? 8 : 0 };

		if (!op->name)
			continue;
		len = packet(frame, sizeof(frame), (uint8_t)opcode, 9, 5, 0, &s);
		hdr = ETH_HDR_LEN + sizeof(struct ipv4_hdr) + sizeof(struct udp_hdr);
		assert_int_equal(len, hdr + sizeof(struct ib_bth) + op->ext_len + s.payload +
				 IB_ICRC_LEN);
		for (cut = hdr; cut < len; cut++)
			for (pad = 0; pad < 4; pad += 3) {
				/* As a sender might have it, with lengths that fit */
				be16_put(frame + ETH_HDR_LEN + 2, (uint16_t)(cut - ETH_HDR_LEN));
				be16_put(frame + hdr - 4, (uint16_t)(cut - hdr + 8));
				frame[hdr + 1] = (uint8_t)(pad << 4);
				wire_pcap_packet(cap, 0, n++, frame, cut, NULL);
				want += cut - hdr >= sizeof(struct ib_bth) + IB_ICRC_LEN &&
					cut - hdr < sizeof(struct ib_bth) + op->ext_len + pad +
						    IB_ICRC_LEN;
			}
	}
	assert_int_equal(wire_pcap_flush(cap), 0);
	wire_pcap_close(cap);
	f = tshark();
	while (next(f, line)) {
		assert_int_not_equal(n--, 0);
		told += column(line, "skua.short");
	}
	assert_int_equal(n, 0);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(told, want);
	assert_true(want > 1000);
}

/* The columns of the profile, for a packet of the standard and one of ours. */
static void test_profile(void **state)
{
	static const char *const want[] = {
		"\tReliable Connection (RC) - SEND Only\t0x120000\t1000\tFalse\t\t\t\t\t\t",
		"\tSEND Only\t0x120001\t1001\tTrue\t",
	};
	static uint8_t frame[SKUA_PKT_OVERHEAD + 128];
	struct wire_pcap *cap = wire_pcap_open(path);
	char line[LINE], cmd[1024];
	unsigned int i, n = 0;
	FILE *f;

	(void)state;
	assert_non_null(cap);
	wire_pcap_add_interface(cap, "nic0");
	for (i = 0; i < 2; i++) {
		struct shown s = { .payload = 8 };
		uint8_t opcode = (uint8_t)(i ? IB_OPCODE_VENDOR_MIN + IB_OP_SEND_ONLY :
					   IB_OP_SEND_ONLY);
		size_t len = packet(frame, sizeof(frame), opcode, 0, 1000 + i, i, &s);

		wire_pcap_packet(cap, 0, i * 1000, frame, len, NULL);
	}
	assert_int_equal(wire_pcap_flush(cap), 0);
	wire_pcap_close(cap);
	snprintf(cmd, sizeof(cmd),
		 "HOME=%s WIRESHARK_CONFIG_DIR=%s exec timeout 60 %s tshark -n -C skua -X lua_script:%s -T tabs -r - <%s 2>&1",
		 dir, dir, who(), script, path);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strchr(line, '\t'))
			continue;
		assert_in_range(n, 0, 1);
		if (!strstr(line, want[n]))
			fail_msg("\"%s\" lacks \"%s\"", line, want[n]);
		n++;
	}
	assert_int_equal(n, 2);
	assert_int_equal(pclose(f), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(test_every_opcode, setup, teardown),
	cmocka_unit_test_setup_teardown(test_short, setup, teardown),
	cmocka_unit_test_setup_teardown(test_profile, setup, teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("dissector", tests, NULL, NULL);
}
