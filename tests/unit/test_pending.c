// SPDX-License-Identifier: GPL-2.0
/*
 * ICRCs that are written only where somebody can see them: two devices and the model's
 * switch between them, once as in the daemon and once with each packet finished by its
 * sender. What can be seen is the same in both.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "rc.h"
#include "wire/wire.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define MESSAGES	24

struct seen {
	uint8_t *capture;
	size_t len;
	uint64_t cnt[2][SKUA_CNT_COUNT];
};

/* Message @k of side 0: all kinds, lengths with and without padding. */
static void message(struct rc *rc, unsigned int k)
{
	static const enum skua_wqe_op ops[] = { SKUA_WQE_WRITE, SKUA_WQE_SEND, SKUA_WQE_READ };
	struct rc_wr wr = { .op = ops[k % N(ops)], .len = 1 + k * 1237, .roff = k << 16 };

	wr.off = wr.op == SKUA_WQE_READ ? RC_BUF / 2 + wr.roff : wr.roff;
	if (wr.op == SKUA_WQE_SEND)
		rc_recv(rc, 1, wr.roff, wr.len);
	rc_post(rc, 0, &wr);
	rc_pump_for(rc, 60000000000ull);
	rc_expect(rc, 0, false, SKUA_CQE_OK);
	if (wr.op == SKUA_WQE_SEND)
		rc_expect(rc, 1, true, SKUA_CQE_OK);
	if (wr.op == SKUA_WQE_READ)
		assert_memory_equal(rc->s[0].buf + wr.off, rc->s[1].buf + wr.roff, wr.len);
	else
		assert_memory_equal(rc->s[1].buf + wr.roff, rc->s[0].buf + wr.off, wr.len);
}

/* The time of day when the capture began is in each packet's time. */
static void forget_times(struct seen *s)
{
	uint32_t type, len;
	size_t at;

	for (at = 0; at < s->len; at += len) {
		memcpy(&type, s->capture + at, 4);
		memcpy(&len, s->capture + at + 4, 4);
		assert_true(len >= 12 && len <= s->len - at);
		/* An enhanced packet block: interface, then the time. */
		if (type == 6)
			memset(s->capture + at + 12, 0, 8);
	}
}

static void slurp(struct seen *s, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	s->len = st.st_size;
	s->capture = malloc(s->len);
	assert_non_null(s->capture);
	assert_int_equal(read(fd, s->capture, s->len), s->len);
	close(fd);
	forget_times(s);
}

/* @from: message before which the capture and the @faults begin. */
static struct seen run(bool pending, bool ipv6, unsigned int from, bool pcap, const char *faults)
{
	struct rc_opt opt = { .mtu_code = 3, .ipv6 = ipv6, .retry_cnt = 8 };
	char dir[] = "/tmp/skua-pending-XXXXXX", path[64], err[200] = "";
	struct seen s = { NULL };
	struct wire *wire;
	struct rc rc;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pcap", dir);
	rc_open(&rc, &opt);
	wire = fake_switch(&rc.s[0].f, &rc.s[1].f);
	for (int i = 0; i < 2; i++) {
		rc.s[i].f.pending = pending;
		rc_fill(rc.s[i].buf, RC_BUF / 2, i);
	}
	for (unsigned int k = 0; k < MESSAGES; k++) {
		if (k == from && ((faults && wire_fault(wire, faults, err, sizeof(err))) ||
				  (pcap && wire_pcap(wire, path, err, sizeof(err)))))
			fail_msg("%s", err);
		message(&rc, k);
	}
	for (int i = 0; i < 2; i++)
		for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
			s.cnt[i][c] = rc_cnt(&rc, i, c);
	rc_close(&rc);
	if (pcap)
		slurp(&s, path);
	unlink(path);
	rmdir(dir);
	return s;
}

/* Both ways to run it; returns how many packets were found damaged. */
static uint64_t both(bool ipv6, unsigned int from, bool pcap, const char *faults)
{
	struct seen a = run(true, ipv6, from, pcap, faults);
	struct seen b = run(false, ipv6, from, pcap, faults);
	uint64_t damaged = a.cnt[0][SKUA_CNT_RX_ICRC] + a.cnt[1][SKUA_CNT_RX_ICRC];

	assert_memory_equal(a.cnt, b.cnt, sizeof(a.cnt));
	assert_int_equal(a.len, b.len);
	assert_true(!pcap || a.len > 10000);
	if (pcap)
		assert_memory_equal(a.capture, b.capture, a.len);
	free(a.capture);
	free(b.capture);
	return damaged;
}

static void test_capture(void **state)
{
	(void)state;
	for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++)
		assert_int_equal(both(ipv6, 0, true, NULL), 0);
}

static void test_capture_later(void **state)
{
	(void)state;
	for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++)
		assert_int_equal(both(ipv6, MESSAGES / 2, true, NULL), 0);
}

/* A packet that is damaged from now on is known by its ICRC. */
static void test_faults_later(void **state)
{
	(void)state;
	for (unsigned int pcap = 0; pcap < 2; pcap++) {
		assert_true(both(false, MESSAGES / 2, pcap, "corrupt=5%") > 0);
		assert_int_equal(both(true, MESSAGES / 2, pcap,
				      "loss=2%,dup=2%,reorder=2%:3,ecn=20%,ecn-force"), 0);
	}
}

/* The first packets go to all ports, since the switch knows nobody. */
static void test_outside(void **state)
{
	char dir[] = "/tmp/skua-pending-XXXXXX", local[64], err[200] = "";
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rc_opt opt = { .mtu_code = 3 };
	uint8_t frame[WIRE_FRAME_MAX];
	struct skua_pkt pkt;
	struct wire *wire;
	unsigned int n = 0;
	struct rc rc;
	ssize_t len;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(local, sizeof(local), "%s/local", dir);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/remote", dir);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	rc_open(&rc, &opt);
	wire = fake_switch(&rc.s[0].f, &rc.s[1].f);
	assert_true(wire_add_dgram(wire, local, sun.sun_path, err, sizeof(err)) >= 0);
	for (int i = 0; i < 2; i++)
		rc_fill(rc.s[i].buf, RC_BUF / 2, i);
	message(&rc, 3);
	while ((len = recv(fd, frame, sizeof(frame), 0)) > 0) {
		assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
		n++;
	}
	assert_true(n > 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rc_cnt(&rc, i, SKUA_CNT_RX_ICRC), 0);
	rc_close(&rc);
	close(fd);
	unlink(sun.sun_path);
	unlink(local);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_capture_later),
		cmocka_unit_test(test_faults_later),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
