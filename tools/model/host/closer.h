/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A helper thread that lets go of what clients gave us.
 *
 * close() may take as long as the owner of the file likes: a TCP socket with SO_LINGER
 * waits for its peer, a file on a user space file system for its server. The last
 * reference to a large memory file, or to a mapping of it, takes as long as the kernel
 * needs to free the pages. None of it may happen in the thread that serves all clients.
 *
 * Each client has a helper of its own, so that a client whose descriptors do not close
 * harms nobody else. How many descriptors wait is limited by those who receive them: they
 * ask closer_state() and take no more from that client.
 */
#ifndef SKUA_HOST_CLOSER_H
#define SKUA_HOST_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct closer;

/**
 * struct closer_job - work for the helper that needs no memory to be queued
 * @next: queue
 * @fn: called once by the helper thread, which does not touch the job afterwards
 * @bytes: of address space that it will let go
 */
struct closer_job {
	struct closer_job *next;
	void (*fn)(struct closer_job *job);
	size_t bytes;
};

/* Descriptors of one message, the kernel's limit: with room for them none is cut off. */
#define CLOSER_MSG_FDS		253
#define CLOSER_CONTROL_SIZE	CMSG_SPACE(sizeof(int) * CLOSER_MSG_FDS)

/* More descriptors than this must not wait when more can come. */
#define CLOSER_WAITING_MAX	64

/**
 * enum closer_state - whether more descriptors may come
 * @CLOSER_ROOM: yes
 * @CLOSER_BUSY: too many wait, but the helper is getting on with them: a little later
 * @CLOSER_STUCK: too many wait, and the one that is being closed has taken a tenth of a
 *	second already: part with the client
 */
enum closer_state { CLOSER_ROOM, CLOSER_BUSY, CLOSER_STUCK };

/* NULL with errno if there is no memory or no thread. */
struct closer *closer_create(void);
/*
 * Lets the helper finish, for at most a tenth of a second: a thread that cannot close
 * ends with the process.
 */
void closer_destroy(struct closer *c);

/* Close @fd; nothing happens if it is -1. @c NULL: here and now. */
void closer_fd(struct closer *c, int fd);
/* Close all that came with a message; returns how many. */
unsigned int closer_msg(struct closer *c, struct msghdr *mh);
void closer_run(struct closer *c, struct closer_job *job);
enum closer_state closer_state(struct closer *c);
/* Descriptors that are not closed yet. */
unsigned int closer_waiting(struct closer *c);
/* Jobs that are not done yet, and the address space that they will let go. */
unsigned int closer_jobs(struct closer *c, size_t *bytes);
/* What the helper is at has taken a tenth of a second already. */
bool closer_stuck(struct closer *c);
/* Wait until nothing is left to do. False: there is after @ms milliseconds. */
bool closer_settle(struct closer *c, unsigned int ms);

/*
 * Descriptors are of no use at @sock. A kernel that can (6.16) then refuses the sender;
 * others bring them along.
 */
void closer_refuse_fds(int sock);

#endif /* SKUA_HOST_CLOSER_H */
