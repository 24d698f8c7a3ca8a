// SPDX-License-Identifier: GPL-2.0
/*
 * ICRC: against itself, against known values, and against packets whose ICRC
 * an independent implementation (scapy 2.6.1, IPv4 and IPv6) agrees with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/icrc.h"
#include "roce/pkt.h"

static const struct golden {
	const char *name;
	const char *hex;
} goldens[] = {
	{ "RC_SEND_ONLY over IPv4",
		  "02000000000202000000000108004569003000004000401126520a0000010a00"
		  "0002c12312b7001c00000430ffff0012345600abcdef040000003215920a" },
	{ "RC_SEND_ONLY over IPv6",
		  "02000000000202000000000186dd669abcde001c114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b7001c00000430"
		  "ffff0012345600abcdef04000000e5f26803" },
	{ "RC_READ_REQUEST over IPv4",
		  "02000000000202000000000108004569003c00004000401126460a0000010a00"
		  "0002c12312b7002800000c00ffff0012345600abcdef1122334455667788dead"
		  "beef0000100004e70f67" },
	{ "RC_READ_REQUEST over IPv6",
		  "02000000000202000000000186dd669abcde0028114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b7002800000c00"
		  "ffff0012345600abcdef1122334455667788deadbeef00001000fa6fb0dc" },
	{ "RC_ACK over IPv4",
		  "02000000000202000000000108004569003000004000401126520a0000010a00"
		  "0002c12312b7001c00001100ffff0012345600abcdef1f00010298d7462a" },
	{ "RC_ACK over IPv6",
		  "02000000000202000000000186dd669abcde001c114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b7001c00001100"
		  "ffff0012345600abcdef1f0001024f30bc23" },
	{ "UD_SEND_ONLY over IPv4",
		  "020000000002020000000001080045690038000040004011264a0a0000010a00"
		  "0002c12312b7002400006430ffff0012345600abcdef80010000000000016400"
		  "0000f617abff" },
	{ "UD_SEND_ONLY over IPv6",
		  "02000000000202000000000186dd669abcde0024114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b7002400006430"
		  "ffff0012345600abcdef8001000000000001640000002a4db78c" },
	{ "XRC_SEND_ONLY over IPv4",
		  "020000000002020000000001080045690034000040004011264e0a0000010a00"
		  "0002c12312b700200000a430ffff0012345600abcdef00000000a400000036dc"
		  "de15" },
	{ "XRC_SEND_ONLY over IPv6",
		  "02000000000202000000000186dd669abcde0020114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b700200000a430"
		  "ffff0012345600abcdef00000000a400000048b2a21a" },
	{ "RC_CMP_SWAP over IPv4",
		  "020000000002020000000001080045690048000040004011263a0a0000010a00"
		  "0002c12312b7003400001300ffff0012345600abcdef00000000000000000000"
		  "00000000000000000000000000000000000083b732c3" },
	{ "RC_CMP_SWAP over IPv6",
		  "02000000000202000000000186dd669abcde0034114020010000000000000000"
		  "00000000000120010000000000000000000000000002c12312b7003400001300"
		  "ffff0012345600abcdef00000000000000000000000000000000000000000000"
		  "00000000000096251fc4" },
	{ "RC_WRITE_ONLY tagged, over IPv4",
		  "0200000000020200000000018100600508004569007c00004000401126060a00"
		  "00010a000002c12312b7006800000a00ffff0012345680abcdef112233445566"
		  "7788deadbeef000010000a11181f262d343b424950575e656c737a81888f969d"
		  "a4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d"
		  "848b9299a0a7aeb5bcc39321792f" },
	{ "RC_WRITE_ONLY tagged, over IPv6",
		  "0200000000020200000000018100600586dd669abcde00681140200100000000"
		  "0000000000000000000120010000000000000000000000000002c12312b70068"
		  "00000a00ffff0012345680abcdef1122334455667788deadbeef000010000a11"
		  "181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1"
		  "f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3811d"
		  "aaa0" },
};

#define N_GOLDENS (sizeof(goldens) / sizeof(goldens[0]))

/* A frame in a buffer of exactly its size, so that a sanitizer sees each byte too far. */
static uint8_t *from_hex(const char *hex, size_t *len)
{
	uint8_t *frame;
	size_t i;

	*len = strlen(hex) / 2;
	frame = malloc(*len);
	assert_non_null(frame);
	for (i = 0; i < *len; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		frame[i] = (uint8_t)byte;
	}
	return frame;
}

static void test_crc32_known(void **state)
{
	static const char digits[] = "123456789";
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };

	(void)state;
	assert_int_equal(~skua_crc32(~0u, digits, 9), 0xcbf43926);
	assert_int_equal(~skua_crc32_table(~0u, digits, 9), 0xcbf43926);
	/* What the missing LRH leaves behind. */
	assert_int_equal(skua_crc32(~0u, ones, sizeof(ones)), 0xdebb20e3);
	assert_int_equal(skua_crc32(0x12345678, digits, 0), 0x12345678);
}

static void test_crc32_fold(void **state)
{
	static uint8_t data[9300];
	size_t len, off, i;
	uint32_t x = 1;

	(void)state;
	for (i = 0; i < sizeof(data); i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
	for (len = 0; len < 700; len++)
		for (off = 0; off < 17; off += 1 + len % 3)
			assert_int_equal(skua_crc32(x ^ (uint32_t)len, data + off, len),
					 skua_crc32_table(x ^ (uint32_t)len, data + off, len));
	assert_int_equal(skua_crc32(0, data, sizeof(data)),
			 skua_crc32_table(0, data, sizeof(data)));
	/* In pieces as in one. */
	for (i = 0; i < sizeof(data); i += 311)
		assert_int_equal(skua_crc32(skua_crc32(~0u, data, i), data + i, sizeof(data) - i),
				 skua_crc32(~0u, data, sizeof(data)));
}

static void test_golden(void **state)
{
	size_t i, len;

	(void)state;
	for (i = 0; i < N_GOLDENS; i++) {
		uint8_t *frame = from_hex(goldens[i].hex, &len);
		struct skua_pkt pkt;
		enum skua_pkt_status status = skua_pkt_parse(frame, len, &pkt);

		if (status)
			fail_msg("%s: %s", goldens[i].name, skua_pkt_status_name(status));
		assert_memory_equal(goldens[i].name, pkt.op->name, strlen(pkt.op->name));
		free(frame);
	}
}

/* Is bit @bit of byte @i one that may change on the way? @i counts from the IP header. */
static bool masked(bool ipv6, size_t i, unsigned int bit)
{
	size_t udp = ipv6 ? 40 : 20;

	if (i == udp + 6 || i == udp + 7 || i == udp + 8 + 4)
		return true;
	if (!ipv6)
		return i == 1 || i == 8 || i == 10 || i == 11;
	return (i == 0 && bit < 4) || (i >= 1 && i <= 3) || i == 7;
}

static void test_mask_ca17_22(void **state)
{
	size_t g, i, len;
	unsigned int bit;

	(void)state;
	for (g = 0; g < N_GOLDENS; g++) {
		uint8_t *frame = from_hex(goldens[g].hex, &len);
		struct skua_pkt pkt;
		uint32_t icrc;
		uint8_t *l3;

		assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
		l3 = frame + (pkt.l3 - frame);
		icrc = skua_icrc(l3, pkt.ipv6, pkt.len - IB_ICRC_LEN);
		assert_int_equal(icrc, skua_icrc_get(l3 + pkt.len - IB_ICRC_LEN));
		for (i = 0; i < pkt.len - IB_ICRC_LEN; i++)
			for (bit = 0; bit < 8; bit++) {
				uint32_t now;

				l3[i] ^= (uint8_t)(1 << bit);
				now = skua_icrc(l3, pkt.ipv6, pkt.len - IB_ICRC_LEN);
				l3[i] ^= (uint8_t)(1 << bit);
				if ((now == icrc) != masked(pkt.ipv6, i, bit))
					fail_msg("%s: byte %zu bit %u", goldens[g].name, i, bit);
			}
		free(frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32_known),
		cmocka_unit_test(test_crc32_fold),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_mask_ca17_22),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
