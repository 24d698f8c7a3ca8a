// SPDX-License-Identifier: GPL-2.0
/*
 * What people and scripts type: the command line, faults of the wire and of commands, and
 * datagrams at the control socket. The first byte says which; the rest is the text, of the
 * command line one argument a line.
 *
 * What is refused is refused whole and with a reason; what is taken is within its limits.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "control.h"
#include "digest.h"
#include "fake.h"
#include "host/event.h"
#include "options.h"
#include "wire/fault.h"

#define ARGS_MAX	40
#define ANSWER_MAX	300

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}
#define CHECK(cond)	check(cond, #cond)

static struct fake f;
static struct control *control;
static int epfd, client, null, err_fd;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static size_t heard;

static void on_line(void *priv, char *line, char *answer, size_t room)
{
	(void)priv;
	heard = strlen(line);
	digest_text(line);
	CHECK(heard < 2048 && !strchr(line, '\n'));
	snprintf(answer, room, "%s", line);
}

static void setup(void)
{
	char dir[] = "/tmp/skua-fuzz-XXXXXX", path[64];

	fake_init(&f, NULL);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	err_fd = dup(2);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	CHECK(mkdtemp(dir) && null >= 0 && epfd >= 0);
	snprintf(path, sizeof(path), "%s/control", dir);
	control = control_create(path, epfd, on_line, NULL);
	CHECK(control);
	strcpy(address.sun_path, path);
	client = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	/* It is connected: the names can go. */
	unlink(path);
	rmdir(dir);
}

static void fuzz_options(char *text)
{
	static struct options opt;
	char *argv[ARGS_MAX + 2] = { "skua-model" };
	int argc = 1, ret;

	while (text && argc <= ARGS_MAX)
		argv[argc++] = strsep(&text, "\n");
	optind = 0;
	fflush(stdout);
	dup2(null, 1);
	dup2(null, 2);
	ret = options_parse(&opt, argc, argv);
	fflush(stdout);
	dup2(err_fd, 1);
	dup2(err_fd, 2);
	CHECK(ret == -1 || ret == 0 || ret == 2);
	digest_num(ret);
	if (ret != -1)
		return;
	digest_num(opt.seed);
	digest_num(opt.caps_off);
	digest_num(opt.verbose);
	CHECK(opt.num_nics >= 1 && opt.num_nics <= OPT_MAX_NICS);
	CHECK(opt.num_links <= OPT_MAX_LINKS);
	CHECK(opt.num_faults <= OPT_MAX_FAULTS && opt.num_cmd_faults <= OPT_MAX_FAULTS);
	for (unsigned int i = 0; i < opt.num_nics; i++) {
		const struct opt_nic *nic = &opt.nics[i];

		CHECK(nic->socket && *nic->socket && !(nic->mac[0] & 1));
		CHECK(nic->vectors <= 64 && nic->onchip <= 1 << 30 && nic->bus < OPT_MAX_BUSES);
		digest_text(nic->socket);
		digest(nic->mac, sizeof(nic->mac));
		digest_num(nic->serial);
	}
	for (unsigned int i = 0; i < opt.num_links; i++)
		CHECK(opt.links[i].tap || (opt.links[i].local && opt.links[i].remote));
}

static void fuzz_wire_fault(const char *text)
{
	struct wire_faults *faults = wire_faults_create(1);
	uint8_t frame[200] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 0x08 };
	char err[ANSWER_MAX];
	struct wire_fate fate;

	CHECK(faults);
	memset(err, 0, sizeof(err));
	if (wire_faults_add(faults, text, err, sizeof(err))) {
		CHECK(*err && strlen(err) < sizeof(err));
		CHECK(!wire_faults_active(faults));
		digest_text(err);
	} else {
		for (unsigned int i = 0; i < 4; i++) {
			wire_faults_decide(faults, i, "nic0", frame, sizeof(frame), &fate);
			CHECK(!fate.corrupt || fate.corrupt_bit < 8 * sizeof(frame));
			digest_num(fate.drop | fate.dup << 1 | fate.ecn << 2 | fate.corrupt << 3);
			digest_num(fate.hold_ns + fate.delay_ns);
		}
	}
	wire_faults_destroy(faults);
}

static void fuzz_cmd_fault(const char *text)
{
	char err[ANSWER_MAX] = "", before[4096] = "", after[4096] = "";

	CHECK(!skua_dev_cmd_fault(f.dev, "off", err, sizeof(err)));
	CHECK(!skua_dev_cmd_fault(f.dev, "NOP@3:ignore", err, sizeof(err)));
	skua_dev_cmd_fault_show(f.dev, before, sizeof(before));
	*err = '\0';
	if (skua_dev_cmd_fault(f.dev, text, err, sizeof(err))) {
		CHECK(*err && strlen(err) < sizeof(err));
		skua_dev_cmd_fault_show(f.dev, after, sizeof(after));
		CHECK(!strcmp(before, after));
		digest_text(err);
	} else {
		skua_dev_cmd_fault_show(f.dev, after, sizeof(after));
		digest_text(after);
	}
}

static void fuzz_control(const uint8_t *data, size_t size)
{
	struct epoll_event ev;
	size_t want = strnlen((const char *)data, size < 2047 ? size : 2047);
	const uint8_t *end = memchr(data, '\n', want);

	heard = SIZE_MAX;
	CHECK(send(client, data, size, MSG_DONTWAIT) == (ssize_t)size);
	while (epoll_wait(epfd, &ev, 1, 0) == 1) {
		struct event_source *src = ev.data.ptr;

		src->ready(src, ev.events);
	}
	CHECK(heard == (end ? (size_t)(end - data) : want));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!control)
		setup();
	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (*data % 4) {
	case 0:
		fuzz_options(text);
		break;
	case 1:
		fuzz_wire_fault(text);
		break;
	case 2:
		fuzz_cmd_fault(text);
		break;
	case 3:
		fuzz_control(data + 1, size - 1);
		break;
	}
	free(text);
	digest_end();
	return 0;
}
