// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "closer.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

#define STACK_SIZE	(64u << 10)
#define DESTROY_MS	100
#define STUCK_NS	100000000ull

/**
 * struct closer - a helper thread and its work
 * @lock: protects all members below
 * @wake: signalled when there is work, or @stop is set
 * @idle: signalled when there is no work left
 * @thread: the helper thread
 * @fds: ring of descriptors to close; @room places, a power of two
 * @head: next descriptor to close, free running
 * @tail: next place to fill, free running
 * @jobs: queue of other work
 * @jobs_end: end of that queue
 * @num_jobs: number of jobs that are not done yet
 * @bytes: address space that these jobs will release
 * @busy: the helper works on something that was removed from its queue
 * @busy_fd: this is a descriptor
 * @since: time at which it began with that
 * @stop: the helper is to end when there is no work left
 * @lost: nobody waits for the helper any more: it frees this structure itself
 */
struct closer {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t idle;
	pthread_t thread;
	int *fds;
	unsigned int room, head, tail;
	struct closer_job *jobs, **jobs_end;
	unsigned int num_jobs;
	size_t bytes;
	bool busy, busy_fd, stop, lost;
	uint64_t since;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool has_work(const struct closer *c)
{
	return c->head != c->tail || c->jobs;
}

/* Called and returns with the lock held. */
static void work(struct closer *c)
{
	struct closer_job *job = c->jobs;
	size_t bytes = 0;
	int fd = -1;

	if (job) {
		bytes = job->bytes;
		c->jobs = job->next;
		if (!c->jobs)
			c->jobs_end = &c->jobs;
	} else {
		fd = c->fds[c->head++ % c->room];
		c->busy_fd = true;
	}
	c->busy = true;
	c->since = now_ns();
	pthread_mutex_unlock(&c->lock);
	if (job)
		job->fn(job);
	else
		close(fd);
	pthread_mutex_lock(&c->lock);
	if (job)
		c->num_jobs--;
	c->bytes -= bytes;
	c->busy = false;
	c->busy_fd = false;
}

static void closer_free(struct closer *c)
{
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->wake);
	pthread_cond_destroy(&c->idle);
	free(c->fds);
	free(c);
}

static void *closer_main(void *arg)
{
	struct closer *c = arg;
	bool lost;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (has_work(c))
			work(c);
		pthread_cond_broadcast(&c->idle);
		if (c->stop)
			break;
		pthread_cond_wait(&c->wake, &c->lock);
	}
	lost = c->lost;
	pthread_mutex_unlock(&c->lock);
	if (lost)
		closer_free(c);
	return NULL;
}

/* All signals are blocked in this thread: the main loop handles those of the process. */
static int start_thread(struct closer *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	err = pthread_create(&c->thread, &attr, closer_main, c);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

struct closer *closer_create(void)
{
	struct closer *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int err;

	if (!c)
		return NULL;
	c->room = 512;
	c->fds = calloc(c->room, sizeof(*c->fds));
	c->jobs_end = &c->jobs;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, NULL);
	pthread_cond_init(&c->idle, &attr);
	pthread_condattr_destroy(&attr);
	err = c->fds ? start_thread(c) : ENOMEM;
	if (err) {
		closer_free(c);
		errno = err;
		return NULL;
	}
	return c;
}

/* Wait until there is no work left. The lock is held. False: the time is over. */
static bool wait_idle(struct closer *c, unsigned int ms)
{
	struct timespec end;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000l;
	if (end.tv_nsec >= 1000000000l) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000l;
	}
	while ((has_work(c) || c->busy) && !err)
		err = pthread_cond_timedwait(&c->idle, &c->lock, &end);
	return !has_work(c) && !c->busy;
}

bool closer_settle(struct closer *c, unsigned int ms)
{
	bool done;

	pthread_mutex_lock(&c->lock);
	done = wait_idle(c, ms);
	pthread_mutex_unlock(&c->lock);
	return done;
}

void closer_destroy(struct closer *c)
{
	bool done;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	done = wait_idle(c, DESTROY_MS);
	if (!done) {
		c->lost = true;
		pthread_detach(c->thread);
	}
	pthread_mutex_unlock(&c->lock);
	if (done) {
		pthread_join(c->thread, NULL);
		closer_free(c);
	}
}

/* Double the ring. The lock is held. */
static bool grow(struct closer *c)
{
	unsigned int num = c->tail - c->head;
	int *fds = malloc(2 * c->room * sizeof(*fds));

	if (!fds)
		return false;
	for (unsigned int i = 0; i < num; i++)
		fds[i] = c->fds[(c->head + i) % c->room];
	free(c->fds);
	c->fds = fds;
	c->room *= 2;
	c->head = 0;
	c->tail = num;
	return true;
}

void closer_fd(struct closer *c, int fd)
{
	bool taken;

	if (fd < 0)
		return;
	if (!c) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&c->lock);
	taken = c->tail - c->head < c->room || grow(c);
	if (taken) {
		c->fds[c->tail++ % c->room] = fd;
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	if (!taken)
		close(fd);
}

unsigned int closer_msg(struct closer *c, struct msghdr *mh)
{
	unsigned int num = 0;

	if (!mh->msg_controllen)
		return 0;
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(fd), sizeof(fd));
			closer_fd(c, fd);
			num++;
		}
	}
	return num;
}

void closer_run(struct closer *c, struct closer_job *job)
{
	job->next = NULL;
	if (!c) {
		job->fn(job);
		return;
	}
	pthread_mutex_lock(&c->lock);
	*c->jobs_end = job;
	c->num_jobs++;
	c->bytes += job->bytes;
	c->jobs_end = &job->next;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

/* With the lock held. */
static unsigned int waiting(const struct closer *c)
{
	return c->tail - c->head + c->busy_fd;
}

static bool stuck(const struct closer *c)
{
	return c->busy && now_ns() - c->since > STUCK_NS;
}

enum closer_state closer_state(struct closer *c)
{
	enum closer_state state = CLOSER_ROOM;

	pthread_mutex_lock(&c->lock);
	if (waiting(c) > CLOSER_WAITING_MAX)
		state = stuck(c) ? CLOSER_STUCK : CLOSER_BUSY;
	pthread_mutex_unlock(&c->lock);
	return state;
}

bool closer_stuck(struct closer *c)
{
	bool ret;

	if (!c)
		return false;
	pthread_mutex_lock(&c->lock);
	ret = stuck(c);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

unsigned int closer_jobs(struct closer *c, size_t *bytes)
{
	unsigned int num;

	*bytes = 0;
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	num = c->num_jobs;
	*bytes = c->bytes;
	pthread_mutex_unlock(&c->lock);
	return num;
}

unsigned int closer_waiting(struct closer *c)
{
	unsigned int num;

	pthread_mutex_lock(&c->lock);
	num = waiting(c);
	pthread_mutex_unlock(&c->lock);
	return num;
}

void closer_refuse_fds(int sock)
{
	int off = 0;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}
