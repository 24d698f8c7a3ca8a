// SPDX-License-Identifier: GPL-2.0
/*
 * Capture files: read back block by block.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/pcapng.h"
#include "wire/wire.h"

#define FILE_MAX	(8u << 20)

struct packet {
	uint32_t interface;
	uint64_t time;
	uint32_t len;
	const uint8_t *data;
	char comment[200];
	uint32_t flags;
};

struct capture {
	uint8_t *file;
	size_t len;
	unsigned int sections;
	unsigned int interfaces;
	char name[8][40];
	uint8_t resolution[8];
	unsigned int n;
	struct packet packet[5000];
};

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Walk the options between @p and @end, which must end with opt_endofopt. */
static void options(const uint8_t *p, const uint8_t *end,
		    void (*option)(void *priv, uint16_t code, const uint8_t *v, uint16_t len),
		    void *priv)
{
	for (;;) {
		uint16_t code, len;

		assert_true(end - p >= 4);
		code = get16(p);
		len = get16(p + 2);
		p += 4;
		assert_true(end - p >= ((len + 3) & ~3));
		if (!code) {
			assert_int_equal(len, 0);
			assert_ptr_equal(p, end);
			return;
		}
		option(priv, code, p, len);
		p += (len + 3) & ~3;
	}
}

static void shb_option(void *priv, uint16_t code, const uint8_t *v, uint16_t len)
{
	(void)priv;
	assert_int_equal(code, 4);
	assert_memory_equal(v, "skua-model", len);
}

static void idb_option(void *priv, uint16_t code, const uint8_t *v, uint16_t len)
{
	struct capture *c = priv;

	assert_true(len < sizeof(c->name[0]));
	if (code == 2)
		memcpy(c->name[c->interfaces], v, len);
	if (code == 9)
		c->resolution[c->interfaces] = *v;
}

static void epb_option(void *priv, uint16_t code, const uint8_t *v, uint16_t len)
{
	struct packet *p = priv;

	assert_true(len < sizeof(p->comment));
	if (code == 1)
		memcpy(p->comment, v, len);
	if (code == 2)
		p->flags = get32(v);
}

static void read_block(struct capture *c, uint32_t type, const uint8_t *b, const uint8_t *end)
{
	struct packet *p = &c->packet[c->n];

	switch (type) {
	case 0x0a0d0d0a:
		assert_int_equal(get32(b), 0x1a2b3c4d);
		assert_int_equal(get16(b + 4), 1);
		assert_int_equal(get16(b + 6), 0);
		options(b + 16, end, shb_option, NULL);
		c->sections++;
		break;
	case 1:
		assert_int_equal(get16(b), 1);
		options(b + 8, end, idb_option, c);
		c->interfaces++;
		break;
	case 6:
		p->interface = get32(b);
		/* Described before it is used. */
		assert_true(p->interface < c->interfaces);
		p->time = (uint64_t)get32(b + 4) << 32 | get32(b + 8);
		p->len = get32(b + 12);
		assert_int_equal(get32(b + 16), p->len);
		p->data = b + 20;
		options(b + 20 + ((p->len + 3) & ~3u), end, epb_option, p);
		c->n++;
		break;
	default:
		fail_msg("block type %#x", type);
	}
}

static struct capture *read_file(const char *path)
{
	struct capture *c = calloc(1, sizeof(*c));
	size_t off;
	FILE *f = fopen(path, "r");

	assert_non_null(c);
	assert_non_null(f);
	c->file = malloc(FILE_MAX);
	assert_non_null(c->file);
	c->len = fread(c->file, 1, FILE_MAX, f);
	fclose(f);
	for (off = 0; off < c->len; ) {
		uint32_t len;

		assert_true(c->len - off >= 12);
		len = get32(c->file + off + 4);
		assert_true(len >= 12 && !(len & 3) && len <= c->len - off);
		assert_int_equal(get32(c->file + off + len - 4), len);
		read_block(c, get32(c->file + off), c->file + off + 8, c->file + off + len - 4);
		off += len;
	}
	assert_int_equal(c->sections, 1);
	return c;
}

static void free_capture(struct capture *c)
{
	free(c->file);
	free(c);
}

static void temp(char path[40])
{
	int fd;

	strcpy(path, "/tmp/skua-pcapng-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static void test_file(void **state)
{
	uint8_t frame[9018];
	char path[40];
	struct wire_pcap *p;
	struct capture *c;
	unsigned int i;

	(void)state;
	temp(path);
	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7);
	p = wire_pcap_open(path);
	assert_non_null(p);
	wire_pcap_add_interface(p, "nic0");
	wire_pcap_packet(p, 0, 1000, frame, 60, NULL);
	wire_pcap_add_interface(p, "tap-x");
	for (i = 0; i < 300; i++)
		wire_pcap_packet(p, i % 2, 2000 + i, frame, 14 + i * 30, i % 3 ? NULL : "why");
	assert_int_equal(wire_pcap_flush(p), 0);
	c = read_file(path);
	wire_pcap_close(p);
	assert_int_equal(c->interfaces, 2);
	assert_string_equal(c->name[0], "nic0");
	assert_string_equal(c->name[1], "tap-x");
	assert_int_equal(c->resolution[0], 9);
	assert_int_equal(c->n, 301);
	for (i = 0; i < 300; i++) {
		const struct packet *pk = &c->packet[i + 1];

		assert_int_equal(pk->interface, i % 2);
		assert_int_equal(pk->len, 14 + i * 30);
		assert_memory_equal(pk->data, frame, pk->len);
		assert_string_equal(pk->comment, i % 3 ? "" : "why");
		assert_int_equal(pk->flags & 3, 1);
		assert_int_equal(pk->time - c->packet[0].time, 1000 + i);
	}
	free_capture(c);
	unlink(path);
}

static void test_errors(void **state)
{
	struct rlimit all, small;
	struct wire_pcap *p;
	char path[40];

	(void)state;
	assert_null(wire_pcap_open("/nonexistent/file"));
	assert_int_equal(errno, ENOENT);
	wire_pcap_close(NULL);
	temp(path);
	/* A full disk ends the capture and nothing else. */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	small = (struct rlimit){ .rlim_cur = 10, .rlim_max = all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	p = wire_pcap_open(path);
	assert_null(p);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	unlink(path);
}

/* Whose frames are captured need not be everybody's business, nor where to. */
static void test_place(void **state)
{
	char path[40], other[48];
	struct wire_pcap *p;
	struct stat st;
	int fd;

	(void)state;
	temp(path);
	unlink(path);
	snprintf(other, sizeof(other), "%s.x", path);
	umask(0);
	p = wire_pcap_open(path);
	assert_non_null(p);
	wire_pcap_close(p);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* What is there already is written anew and keeps its mode. */
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(truncate(path, 1 << 20), 0);
	wire_pcap_close(wire_pcap_open(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_true(st.st_size < 1000);
	/* A link leads elsewhere: to what is there, or would be. */
	assert_int_equal(symlink(path, other), 0);
	assert_null(wire_pcap_open(other));
	assert_int_equal(errno, ELOOP);
	unlink(path);
	assert_null(wire_pcap_open(other));
	assert_int_equal(errno, ELOOP);
	assert_int_equal(lstat(path, &st), -1);
	unlink(other);
	/* Not a file: a FIFO would wait for its reader, now or later. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(wire_pcap_open(path));
	assert_int_equal(errno, EEXIST);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_null(wire_pcap_open(path));
	assert_int_equal(errno, EEXIST);
	close(fd);
	unlink(path);
	assert_null(wire_pcap_open("/dev/null"));
	assert_int_equal(errno, EEXIST);
}

static void ignore(void *priv, void *frame, size_t len, bool icrc_pending)
{
	(void)priv;
	(void)frame;
	(void)len;
	(void)icrc_pending;
}

/* What the wire says about frames, and what a killed process leaves behind. */
static void test_killed(void **state)
{
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6 };
	char path[40], err[100] = "";
	struct capture *c;
	int status;
	pid_t pid;

	(void)state;
	temp(path);
	pid = fork();
	if (!pid) {
		struct wire *w = wire_create(0);
		struct wire_port *a = wire_add_dev(w, "a", ignore, NULL);
		unsigned int i;

		if (wire_pcap(w, path, err, sizeof(err)) ||
		    wire_fault(w, "rule=drop:frame=1;rule=dup:frame=2;rule=corrupt:frame=3;"
				  "rule=reorder/1ms:frame=4;rule=delay/5us:frame=5",
			       err, sizeof(err)))
			_exit(1);
		wire_add_dev(w, "b", ignore, NULL);
		for (i = 0; i < 7; i++)
			wire_port_send(a, frame, sizeof(frame));
		/* A daemon asks this before it sleeps. */
		while (wire_deadline(w) <= 1)
			wire_poll(w, 1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	c = read_file(path);
	assert_int_equal(c->n, 7);
	assert_int_equal(c->interfaces, 2);
	assert_string_equal(c->packet[0].comment, "");
	assert_string_equal(c->packet[1].comment, "skua: dropped by fault");
	assert_string_equal(c->packet[2].comment, "skua: duplicated");
	assert_non_null(strstr(c->packet[3].comment, "skua: corrupted (bit "));
	assert_string_equal(c->packet[4].comment, "skua: held back by 1000000 ns");
	assert_string_equal(c->packet[5].comment, "skua: delayed by 5000 ns");
	/* As sent, not as damaged. */
	assert_memory_equal(c->packet[3].data, frame, sizeof(frame));
	free_capture(c);
	unlink(path);
}

static void test_one_capture(void **state)
{
	struct wire *w = wire_create(0);
	char path[40], err[100] = "";

	(void)state;
	temp(path);
	assert_int_equal(wire_pcap(w, "/nonexistent/x", err, sizeof(err)), -1);
	assert_non_null(strstr(err, "/nonexistent/x"));
	assert_int_equal(wire_pcap(w, path, err, sizeof(err)), 0);
	assert_int_equal(wire_pcap(w, path, err, sizeof(err)), -1);
	wire_destroy(w);
	unlink(path);
}

/* Of two threads the one that looked at its clock first may come second. */
static void test_times(void **state)
{
	static const uint64_t when[] = { 5000, 4000, 6000 };
	uint8_t frame[60] = { 0 };
	char path[40];
	struct wire_pcap *p;
	struct capture *c;

	(void)state;
	temp(path);
	p = wire_pcap_open(path);
	assert_non_null(p);
	wire_pcap_add_interface(p, "nic0");
	for (unsigned int i = 0; i < 3; i++)
		wire_pcap_packet(p, 0, when[i], frame, sizeof(frame), NULL);
	wire_pcap_close(p);
	c = read_file(path);
	assert_int_equal(c->n, 3);
	assert_int_equal(c->packet[1].time, c->packet[0].time);
	assert_int_equal(c->packet[2].time, c->packet[0].time + 1000);
	free_capture(c);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_one_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
