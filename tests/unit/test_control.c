// SPDX-License-Identifier: GPL-2.0
/* The control socket: commands and answers, and where it may be. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "control.h"
#include "host/closer.h"
#include "host/event.h"
#include "linger.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

static char dir[32], path[48], other[48];
static int epfd;
static struct control *control;
static char heard[4096];
static unsigned int lines;

static void on_line(void *priv, char *line, char *answer, size_t room)
{
	assert_ptr_equal(priv, heard);
	lines++;
	snprintf(heard, sizeof(heard), "%s", line);
	snprintf(answer, room, "heard %zu", strlen(line));
}

static int setup(void **state)
{
	(void)state;
	alarm(60);
	umask(0);
	strcpy(dir, "/tmp/skua-control-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	control = NULL;
	lines = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_destroy(control);
	close(epfd);
	unlink(path);
	unlink(other);
	assert_int_equal(rmdir(dir), 0);
	alarm(0);
	return 0;
}

static void open_control(void)
{
	control = control_create(path, epfd, on_line, heard);
	assert_non_null(control);
}

static int refused(void)
{
	assert_null(control_create(path, epfd, on_line, heard));
	return errno;
}

static int bound(const char *at)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strcpy(sun.sun_path, at);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static ssize_t say(int fd, const void *text, size_t len, int pass)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char control_buf[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)text, .iov_len = len };
	struct msghdr mh = {
		.msg_name = &sun, .msg_namelen = sizeof(sun), .msg_iov = &iov, .msg_iovlen = 1,
	};
	struct cmsghdr *cm;

	strcpy(sun.sun_path, path);
	if (pass >= 0) {
		mh.msg_control = control_buf;
		mh.msg_controllen = sizeof(control_buf);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &pass, sizeof(pass));
	}
	return sendmsg(fd, &mh, MSG_DONTWAIT);
}

/* Serve what has come; how many commands. */
static unsigned int serve(void)
{
	struct epoll_event ev;
	unsigned int n = 0;

	while (epoll_wait(epfd, &ev, 1, 0) == 1) {
		struct event_source *src = ev.data.ptr;

		src->ready(src, ev.events);
		n++;
	}
	return n;
}

static void test_answers(void **state)
{
	char text[5000], answer[64] = "";
	int fd;

	(void)state;
	open_control();
	fd = bound(other);
	assert_int_equal(say(fd, "fault off\nrest", 14, -1), 14);
	assert_int_equal(serve(), 1);
	assert_string_equal(heard, "fault off");
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 7);
	assert_memory_equal(answer, "heard 9", 7);
	/* Empty, with a zero inside, and longer than any command: that one is refused. */
	assert_int_equal(say(fd, "", 0, -1), 0);
	assert_int_equal(say(fd, "a\0b", 3, -1), 3);
	memset(text, 'x', sizeof(text));
	assert_int_equal(say(fd, text, sizeof(text), -1), sizeof(text));
	assert_int_equal(serve(), 3);
	assert_string_equal(heard, "a");
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 7);
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 32);
	assert_memory_equal(answer, "a command has at most 2047 bytes", 32);
	/* The longest. */
	assert_int_equal(say(fd, text, 2047, -1), 2047);
	assert_int_equal(serve(), 1);
	assert_int_equal(strlen(heard), 2047);
	/* A sender without a name, and one that has gone. */
	close(fd);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(say(fd, "x", 1, -1), 1);
	close(fd);
	assert_int_equal(serve(), 1);
}

static void test_place(void **state)
{
	struct stat st, is;
	int fd;

	(void)state;
	open_control();
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Another model's, which lives. */
	assert_int_equal(refused(), EADDRINUSE);
	assert_int_equal(lstat(path, &is), 0);
	assert_int_equal(st.st_ino, is.st_ino);
	control_destroy(control);
	control = NULL;
	assert_int_equal(lstat(path, &st), -1);
	/* A file of the user's, a link to one, a link to nothing, a directory. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "diary", 5), 5);
	close(fd);
	assert_int_equal(refused(), EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(refused(), EEXIST);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(refused(), EEXIST);
	assert_int_equal(lstat(other, &st), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(refused(), EEXIST);
	assert_int_equal(rmdir(path), 0);
	/* A socket that a model left which was killed. */
	close(bound(path));
	open_control();
}

/* Descriptors that do not close: nobody waits for them. */
static void test_descriptors(void **state)
{
	struct linger_pair pair[70];
	unsigned int n;
	int fd, on = 1;

	(void)state;
	open_control();
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* The server's own is the only other datagram socket here. */
	for (int i = 0; i < 100; i++)
		setsockopt(i, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	for (n = 0; n < 70; n++) {
		pair[n] = linger_open();
		say(fd, "x", 1, pair[n].fd);
		close(pair[n].fd);
		assert_true(serve() == 1 || n > CLOSER_WAITING_MAX);
	}
	/* It hears nobody any more, and has taken no more: one is being closed, so many wait. */
	assert_int_equal(serve(), 0);
	assert_int_equal(lines, 1 + CLOSER_WAITING_MAX);
	control_destroy(control);
	control = NULL;
	while (n--)
		close(pair[n].peer);
	close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_answers), T(test_place), T(test_descriptors) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
