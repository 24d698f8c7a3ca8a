/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the verbs test programs share: devices, connected QPs, waiting for
 * completions, a TCP connection beside, a random generator.
 */
#ifndef PROGS_COMMON_H
#define PROGS_COMMON_H

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Print a message with the program's name and exit with 1. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* --- cases, told as TAP ----------------------------------------------------- */

/* Why the case that runs fails, as fail() has it. */
extern char why[512];

/* All of them false; the last one if the errno is another than it should be. */
bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool skip(const char *text);
bool expect_err(const char *what, int got, int want);

/* A case has ended. */
void tap_case(const char *name, bool ok);
unsigned int tap_cases(void);
/* After the last one: what the program ends with. */
int tap_end(void);

/* --- time ----------------------------------------------------------------- */

double now(void);
/* In order, the smallest first. */
void sort_values(double *v, unsigned int n);

/* --- random numbers: a hash of a counter, so that any place can be reached ------ */

static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

struct rng {
	uint64_t key, n;
};

static inline struct rng rng_make(uint64_t seed, uint64_t stream)
{
	return (struct rng){ .key = mix(mix(seed) ^ stream) };
}

static inline uint64_t rng_next(struct rng *r)
{
	return mix(r->key + r->n++);
}

/* 0..n-1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return n ? rng_next(r) % n : 0;
}

/* --- another process beside this one --------------------------------------- */

struct beside {
	pid_t pid;
	int ready[2], hold[2];
};

/* As fork(): true in the new process. */
bool beside_start(struct beside *b);
/* In the new process: it is where it stays, and returns when it may end. */
bool beside_stay(struct beside *b);
/* Is the other process where it stays? False: it has ended. */
bool beside_ready(struct beside *b);
/* Let it end; it is waited for by the caller. */
void beside_end(struct beside *b);

/* --- devices and QPs ------------------------------------------------------ */

struct dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

/* Where the other end of a QP is; the same bytes on both sides of a socket. */
struct addr {
	uint32_t qpn;
	uint32_t psn;
	uint8_t gid[16];
};

struct link_attr {
	enum ibv_mtu mtu;
	unsigned int access;	/* remote rights of the QP */
	int rnr_retry;
	int retry_cnt;
	int timeout;
	int rd_atomic;
};

extern const struct link_attr link_default;

void dev_open(struct dev *dev, const char *name, int gid_index);
void dev_close(struct dev *dev);

struct addr qp_addr(const struct dev *dev, const struct ibv_qp *qp, uint32_t psn);
int qp_to_init(struct ibv_qp *qp, const struct link_attr *l);
int qp_to_rtr(const struct dev *dev, struct ibv_qp *qp, const struct addr *peer,
	      const struct link_attr *l);
int qp_to_rts(struct ibv_qp *qp, uint32_t psn, const struct link_attr *l);
/* All three; dies on error. */
void qp_connect(const struct dev *dev, struct ibv_qp *qp, uint32_t psn, const struct addr *peer,
		const struct link_attr *l);

unsigned int mtu_bytes(enum ibv_mtu mtu);

/* --- memory --------------------------------------------------------------- */

#define PAGE	4096

/*
 * So many pages of which few follow each other, as far as that can be had; as many
 * behind them are theirs to be unmapped with.
 */
uint8_t *scattered(size_t pages);

/* --- methods of uverbs that libibverbs does not call ------------------------- */

struct uverbs_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[16];
	unsigned int num;	/* attributes, 0: two */
};

/* 0 or errno. */
int uverbs_call(struct ibv_context *ctx, struct uverbs_call *c, uint16_t object, uint16_t method);

#define ATTR(id, n, what)	{ .attr_id = (id), .flags = UVERBS_ATTR_F_MANDATORY,	\
				  .len = (n), .data = (uintptr_t)(what) }

/* Attributes of UVERBS_METHOD_QP_CREATE that rdma-core does not know yet, and their value */
enum {
	ATTR_CREATE_QP_BUF_UMEM = UVERBS_ATTR_CREATE_QP_RESP_QP_NUM + 1,
	ATTR_CREATE_QP_RQ_BUF_UMEM, ATTR_CREATE_QP_SQ_BUF_UMEM
};

enum { BUFFER_DMABUF, BUFFER_VA };

struct buffer_desc {
	uint32_t type;
	int32_t fd;
	uint32_t flags, optional_flags;
	uint64_t addr, length;
};

struct ib_uverbs_qp_cap;
struct skua_create_qp_req;

/*
 * An RC QP whose rings are where @desc says, by attribute @attr. @req has all but the doorbell
 * record. 0 and the handle, or errno.
 */
int qp_by_desc(const struct dev *dev, uint32_t cq, const struct ib_uverbs_qp_cap *cap,
	       const struct skua_create_qp_req *req, uint16_t attr, const struct buffer_desc *desc,
	       uint32_t *handle);

/* --- dma-bufs --------------------------------------------------------------- */

/* The dma-buf of a memfd that is mapped at *@p; -1: cannot be had here. */
int dmabuf_memfd(uint8_t **p, size_t len);
/* Where device memory is mapped: what is exported is named by that. */
uint64_t dm_offset(struct ibv_dm *dm);
/* A dma-buf of what is mapped there, or -1 and errno. */
int dmabuf_export(struct ibv_context *ctx, uint64_t offset);

/* --- waiting ---------------------------------------------------------------- */

/* One completion; false if none came in so many seconds. */
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);
/* The same by the CQ's channel. */
bool wait_one(struct ibv_comp_channel *ch, struct ibv_cq *cq, struct ibv_wc *wc, double seconds);

/* --- beside: TCP ------------------------------------------------------------ */

int tcp_listen(int port);
int tcp_accept(int fd);
int tcp_connect(const char *host, int port);
void tcp_send(int fd, const void *buf, size_t len);
void tcp_recv(int fd, void *buf, size_t len);
/* Both sides have come here. */
void tcp_sync(int fd);
/* The same, each with something to say: what the other side said. */
char tcp_meet(int fd, char say);
/* What it says already, to be read by tcp_meet(); or 0. */
char tcp_peek(int fd);

#endif /* PROGS_COMMON_H */
