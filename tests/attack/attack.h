/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the attacks and their victim share: the model under attack, and its clients.
 */
#ifndef SKUA_ATTACK_H
#define SKUA_ATTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/proto.h"

/* After so many seconds without an answer the model counts as blocked. */
#define BLOCKED_S	10

#define RW		(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

/* A client of a NIC. */
struct conn {
	int fd;
	uint16_t id;
};

extern char dir[], nic[2][64], control[64], dgram[64], peer[64];
extern pid_t model, echo;
extern atomic_bool stop, begun;
extern atomic_ulong acts;

struct attack {
	const char *name;
	void (*fn)(struct conn *c);
	bool begins;	/* sets "begun" itself, when it has made ready */
};

extern const struct attack attacks[];
extern const unsigned int num_attacks;

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
uint64_t now_ns(void);

bool dial(struct conn *c, const char *path);
bool put(struct conn *c, uint16_t cmd, uint32_t flags, const void *a, size_t alen,
	 const void *b, size_t blen, const int *fds, unsigned int nfds);
int get(struct conn *c);
int ask(struct conn *c, uint16_t cmd, const void *a, size_t alen, const void *b, size_t blen,
	const int *fds, unsigned int nfds);
bool hello(struct conn *c, const char *path);
void hello_again(struct conn *c);
int map(struct conn *c, uint64_t iova, uint64_t size, int fd);
int unmap(struct conn *c, uint64_t iova, uint64_t size, uint32_t flags);
int memory(uint64_t size);

#endif /* SKUA_ATTACK_H */
