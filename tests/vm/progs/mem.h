/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skua-mem: regions, windows, keys and what is done with them, between two devices
 * (or one with itself). End 0 asks, end 1 has the memory. A case is a function that
 * returns true; it says why not by fail(), or that it cannot be by skip().
 */
#ifndef PROGS_MEM_H
#define PROGS_MEM_H

#include <errno.h>
#include <string.h>

#include "common.h"

#define MEM_SIZE	(64 * 1024)
#define MEM_REMOTE	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MEM_ALL		(IBV_ACCESS_LOCAL_WRITE | MEM_REMOTE)

struct mem_end {
	struct dev dev;
	struct ibv_device_attr_ex attr;
	bool is_skua;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint64_t ops;		/* IBV_QP_EX_WITH_*, or 0 */
	uint8_t *buf;
	struct ibv_mr *mr;	/* the whole of @buf, MEM_ALL */
};

struct mem {
	struct mem_end end[2];
	const char *dir;	/* in a file system that may be frozen, or NULL */
	unsigned int flush;	/* rights that the QPs have beside MEM_ALL */
	bool fresh;		/* QPs are connected and unused since the last error */
};

struct mem_case {
	const char *name;
	bool (*run)(struct mem *m);
};

extern const struct mem_case mem_cases_region[], mem_cases_rereg[], mem_cases_again[],
	mem_cases_key[], mem_cases_ext[], mem_cases_odp[], mem_cases_dmabuf[];
/* Only when they are asked for by name: stay, for others to do something meanwhile. */
extern const struct mem_case mem_stay[], mem_stay_dmabuf[];

/* A QP in the place of the old one, with these ibv_wr_*() calls; false: it has none. */
bool mem_qp(struct mem *m, int side, uint64_t ops);
/* Connect both QPs anew, after an error. */
void mem_connect(struct mem *m);
/* The QPs have seen an error, or may have. */
static inline void mem_spoilt(struct mem *m)
{
	m->fresh = false;
}

void fill(void *buf, size_t len, unsigned int seed);

/* Post by this side, and have this come of it. */
bool post(struct mem *m, int side, struct ibv_send_wr *wr, enum ibv_wc_status status);
bool recv_post(struct mem *m, int side, void *addr, uint32_t len, uint32_t lkey);
bool completes(struct mem *m, int side, struct ibv_wc *wc, enum ibv_wc_status status);

/*
 * End 0 does this with @len bytes between the start of its buffer and @raddr, rkey.
 * What was expected to fail leaves the QPs spoilt.
 */
bool rdma(struct mem *m, enum ibv_wr_opcode op, uint64_t raddr, uint32_t rkey, uint32_t len,
	  enum ibv_wc_status status);
/* WRITE of a pattern to @where, known to the device as @raddr; it must arrive. */
bool write_arrives(struct mem *m, uint8_t *where, uint64_t raddr, uint32_t rkey, uint32_t len);

#endif /* PROGS_MEM_H */
