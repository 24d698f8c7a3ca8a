// SPDX-License-Identifier: GPL-2.0
/*
 * Clients that try to stop the thread that serves all of them: descriptors that do not
 * close, event descriptors that block. A call of the server that does not return ends
 * the program by its alarm.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "vfu_client.h"
#include "linger.h"

#define ALARM_S		60

/* Not more than the server bears, and one message that is too much for it. */
#define MSG_FDS		8
#define MSGS		8

static const struct vfu_hdr nonsense = { .id = 1, .cmd = 99, .size = sizeof(nonsense) };

/* One message with descriptors of which the server gets the last reference. */
static void send_lingering(const struct vfu_hdr *hdr, struct linger_pair *pair, unsigned int num)
{
	int fds[MSG_FDS] = { 0 };

	for (unsigned int i = 0; i < num; i++) {
		pair[i] = linger_open();
		fds[i] = pair[i].fd;
	}
	send_raw(hdr, sizeof(*hdr), fds, num);
	for (unsigned int i = 0; i < num; i++)
		close(pair[i].fd);
}

static void close_peers(struct linger_pair *pair, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		close(pair[i].peer);
	assert_true(vfu_settle(vfu, SETTLE_MS));
}

/* Unexpected descriptors, and those of a connection that ends before they are read. */
static void test_lingering(void **state)
{
	struct linger_pair pair[MSG_FDS];

	(void)state;
	send_lingering(&nonsense, pair, 2);
	run();
	assert_int_equal(get_reply(1, 99, NULL, 0, NULL), EOPNOTSUPP);
	send_lingering(&nonsense, pair + 2, 2);
	vfu_shutdown(vfu);
	assert_false(vfu_connected(vfu));
	assert_false(vfu_settle(vfu, 1));
	close_peers(pair, 4);
}

/* They are let go one after the other, and a client that has too many of them goes. */
static void test_lingering_many(void **state)
{
	struct linger_pair pair[MSGS * MSG_FDS], more[1];
	unsigned int msgs = 0;
	int spare[2];

	(void)state;
	for (; msgs < MSGS && vfu_connected(vfu); msgs++) {
		send_lingering(&nonsense, pair + msgs * MSG_FDS, MSG_FDS);
		run();
	}
	assert_int_equal(msgs, MSGS);
	assert_true(vfu_connected(vfu));
	send_lingering(&nonsense, more, 1);
	run();
	/* It takes a moment until the server believes that they do not close. */
	while (vfu_connected(vfu))
		run();
	assert_non_null(strstr(last_log, "file descriptors has not returned"));
	/* Nor is another client of this function taken, whose descriptors would come on top. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, spare), 0);
	assert_int_equal(vfu_attach(vfu, spare[0]), -EMFILE);
	close(more[0].peer);
	close_peers(pair, MSGS * MSG_FDS);
	assert_int_equal(vfu_attach(vfu, spare[0]), 0);
	close(sock);
	sock = spare[1];
	negotiate();
}

/* Of a descriptor that was of use the helper does the close as well, which may take long. */
static void test_closed_by_helper(void **state)
{
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct linger_pair pair;
	unsigned int before;

	(void)state;
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &efd, 1), 0);
	before = open_fds();
	send_lingering(&nonsense, &pair, 1);
	run();
	assert_int_equal(get_reply(1, 99, NULL, 0, NULL), EOPNOTSUPP);
	/* The helper is in close(), which has taken the number away, and stays there. */
	while (open_fds() != before + 1)
		sched_yield();
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, NULL, 0), 0);
	assert_int_equal(open_fds(), before + 1);
	assert_int_equal(dma_map_msg(1ull << 40, PG, 0, RW, ram), 0);
	assert_int_equal(open_fds(), before + 2);
	/* The peer, and what has waited. */
	close_peers(&pair, 1);
	assert_int_equal(open_fds(), before - 1);
	close(efd);
}

/* All that a message can carry arrives, so that the kernel closes none of it here. */
static void test_more_than_announced(void **state)
{
	struct linger_pair pair = linger_open();
	int fds[253];

	(void)state;
	for (unsigned int i = 0; i < 253; i++)
		fds[i] = ram;
	fds[252] = pair.fd;
	send_raw(&nonsense, sizeof(nonsense), fds, 253);
	close(pair.fd);
	run();
	assert_false(vfu_connected(vfu));
	close_peers(&pair, 1);
}

static atomic_uint rounds;
static atomic_bool stop, filling, gone;

/*
 * Empties the counter and fills it at once: in between the server may have seen room.
 * Then nobody reads it until the server has gone on.
 */
static void *fill(void *arg)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd = *(int *)arg;
	unsigned int seen;
	uint64_t was;

	while (!stop) {
		assert_int_equal(read(fd, &was, sizeof(was)), sizeof(was));
		filling = true;
		assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
		filling = false;
		for (seen = rounds; !stop && rounds - seen < 3; )
			sched_yield();
	}
	gone = true;
	return NULL;
}

static void test_eventfd(void **state)
{
	const uint64_t most = UINT64_MAX - 1;
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint8_t ones[VECTORS];
	pthread_t thread;
	int fds[16];

	(void)state;
	memset(ones, 1, sizeof(ones));
	for (unsigned int i = 0; i < 16; i++)
		fds[i] = efd;
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 16, NULL, 0, fds, 16), 0);
	/* Full, and blocking: what is under way stays under way. */
	fcntl(efd, F_SETFL, 0);
	assert_int_equal(write(efd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 16, ones, 16, NULL, 0), 0);
	assert_true(fired(efd) >= most);
	/* At any moment, also between a look and a write. */
	assert_int_equal(pthread_create(&thread, NULL, fill, &efd), 0);
	for (unsigned int i = 0; i < 50000; i++) {
		assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 16, ones, 16, NULL, 0), 0);
		rounds++;
		/* One of ours came first, and the other side waits itself. */
		if (filling && i % 64 == 0)
			fired(efd);
	}
	/* Its last read() waits for a count, and its last write() for room, if it came later. */
	for (stop = true; !gone; sched_yield()) {
		assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 16, ones, 16, NULL, 0), 0);
		if (filling)
			fired(efd);
	}
	pthread_join(thread, NULL);
	close(efd);
}

/* One message with very many writes: others have their turn in between. */
static void test_write_multi_flood(void **state)
{
	enum { WRITES = 5000 };
	struct vfu_write_one *wr = calloc(WRITES, sizeof(*wr));
	uint64_t count = WRITES;
	unsigned int before = 0, turns = 0;
	bool more;

	(void)state;
	for (unsigned int i = 0; i < WRITES; i++)
		wr[i].rw = (struct vfu_region_rw){ .region = SKUA_BAR_UAR, .count = 8 };
	post(VFU_REGION_WRITE_MULTI, VFU_F_NO_REPLY, &count, sizeof(count), wr,
	     WRITES * sizeof(*wr), NULL, 0);
	do {
		more = vfu_run(vfu);
		assert_int_equal(vfu_pending(vfu), more);
		assert_in_range(dev->writes - before, 0, 64);
		before = dev->writes;
		turns++;
	} while (more);
	assert_int_equal(dev->writes, WRITES);
	assert_true(turns >= WRITES / 64);
	/* The client goes in the middle: nothing of it is left. */
	post(VFU_REGION_WRITE_MULTI, VFU_F_NO_REPLY, &count, sizeof(count), wr,
	     WRITES * sizeof(*wr), &ram, 1);
	vfu_run(vfu);
	vfu_shutdown(vfu);
	assert_in_range(dev->writes - before, 0, 64);
	free(wr);
}

/* A turn ends when its time is over, after one message at least. */
static void test_turn_time(void **state)
{
	struct vfu_cfg cfg = { .epfd = -1, .turn_ns = 1 };
	struct skua_dev_cfg dcfg = { .msix_vectors = VECTORS };
	struct vfu *was = vfu, *hasty = vfu_create(&cfg);
	struct skua_dev *core = skua_dev_create(&dcfg, &vfu_host_ops, hasty, NULL, NULL);
	int old = sock, pair[2];

	(void)state;
	vfu_set_dev(hasty, core);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vfu_attach(hasty, pair[0]), 0);
	vfu = hasty;
	sock = pair[1];
	negotiate();
	for (unsigned int i = 0; i < 10; i++)
		post_write(SKUA_BAR_UAR, 0, i);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(core->writes, i);
		assert_true(vfu_run(vfu));
	}
	assert_int_equal(core->writes, 10);
	assert_false(vfu_run(vfu));
	vfu_shutdown(hasty);
	assert_true(vfu_settle(hasty, SETTLE_MS));
	skua_dev_destroy(core);
	vfu_destroy(hasty);
	close(sock);
	vfu = was;
	sock = old;
}

static int setup_alarm(void **state)
{
	alarm(ALARM_S);
	return setup(state);
}

static int teardown_alarm(void **state)
{
	int ret = teardown(state);

	alarm(0);
	return ret;
}

#define T_ALARM(name) cmocka_unit_test_setup_teardown(name, setup_alarm, teardown_alarm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_ALARM(test_lingering), T_ALARM(test_lingering_many),
		T_ALARM(test_closed_by_helper),
		T_ALARM(test_more_than_announced), T_ALARM(test_eventfd),
		T_ALARM(test_write_multi_flood), T_ALARM(test_turn_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
