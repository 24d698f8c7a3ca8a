/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A helper thread that releases the file descriptors and memory of clients.
 *
 * The owner of a file can make close() take any time: a TCP socket with SO_LINGER
 * waits for its peer, a file on a user space file system for its server. The last
 * reference to a large memory file, or to a mapping of it, takes as long as the kernel
 * needs to free the pages. None of it may happen in the thread that serves all clients.
 *
 * Each client has a helper of its own, so that a client whose descriptors do not close does not
 * affect others. The receivers of descriptors limit the number of those that wait: they call
 * closer_state() and take no more from that client.
 */
#ifndef SKUA_HOST_CLOSER_H
#define SKUA_HOST_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct closer;

/**
 * struct closer_job - work for the helper; to queue it needs no memory
 * @next: next in the queue
 * @fn: called once by the helper thread, which does not access the job afterwards
 * @bytes: address space that the job will release
 */
struct closer_job {
	struct closer_job *next;
	void (*fn)(struct closer_job *job);
	size_t bytes;
};

/* The kernel's limit of descriptors in a message: with so much room none is discarded. */
#define CLOSER_MSG_FDS		253
#define CLOSER_CONTROL_SIZE	CMSG_SPACE(sizeof(int) * CLOSER_MSG_FDS)

/* Number of waiting descriptors from which on no more are received. */
#define CLOSER_WAITING_MAX	64

/**
 * enum closer_state - whether more descriptors may be received
 * @CLOSER_ROOM: they may
 * @CLOSER_BUSY: too many wait, but the helper makes progress: try again later
 * @CLOSER_STUCK: too many wait, and the one that is being closed has taken a tenth of a
 *	second already: disconnect the client
 */
enum closer_state { CLOSER_ROOM, CLOSER_BUSY, CLOSER_STUCK };

/* NULL with errno if there is no memory or no thread. */
struct closer *closer_create(void);
/*
 * Wait for the helper to finish, for at most a tenth of a second. A helper that hangs in close()
 * ends with the process.
 */
void closer_destroy(struct closer *c);

/* Have @fd closed, unless it is -1. Without a helper (@c is NULL) it is closed at once. */
void closer_fd(struct closer *c, int fd);
/* Have all descriptors of a message closed. Returns their number. */
unsigned int closer_msg(struct closer *c, struct msghdr *mh);
void closer_run(struct closer *c, struct closer_job *job);
enum closer_state closer_state(struct closer *c);
/* Number of descriptors that are not closed yet. */
unsigned int closer_waiting(struct closer *c);
/* Number of jobs that are not done yet, and the address space that they will release. */
unsigned int closer_jobs(struct closer *c, size_t *bytes);
/* Has the present work of the helper taken a tenth of a second already? */
bool closer_stuck(struct closer *c);
/* Wait until there is no work left. False: there is still some after @ms milliseconds. */
bool closer_settle(struct closer *c, unsigned int ms);

/*
 * Refuse descriptors at @sock (SO_PASSRIGHTS). Kernels before 6.16 cannot do that: there the
 * descriptors are received and closed.
 */
void closer_refuse_fds(int sock);

#endif /* SKUA_HOST_CLOSER_H */
