/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A send WQE as the device would read it, and what its segments must be.
 */
#ifndef SKUA_TESTS_PROVIDER_LOOK_H
#define SKUA_TESTS_PROVIDER_LOOK_H

#include "fake.h"

static uint8_t wqe[1024];
static unsigned int nseg;

/* Copy the WQE at a block of the send ring to wqe[]. */
static inline void look_at(struct ibv_qp *qp, uint32_t index)
{
	nseg = fake_wqe(fake_qp(qp), index, wqe);
}

static inline const struct skua_wqe_ctrl *ctrl(void)
{
	return (void *)wqe;
}

static inline void *seg(unsigned int n)
{
	return wqe + n * SKUA_WQE_SEG;
}

static inline void assert_ctrl(unsigned int op, unsigned int segs, uint32_t flags, uint32_t imm)
{
	assert_int_equal(le32_get_bits(ctrl()->op, SKUA_WQE_OPCODE), op);
	assert_int_equal(nseg, segs);
	assert_int_equal(le32_to_cpu(ctrl()->flags), flags);
	assert_int_equal(le32_to_cpu(ctrl()->inv_key), imm);
	assert_int_equal(le32_to_cpu(ctrl()->eth), 0);
}

static inline void assert_raddr(unsigned int n, uint64_t va, uint32_t rkey, uint32_t flush)
{
	const struct skua_wqe_raddr *r = seg(n);

	assert_int_equal(le64_to_cpu(r->va), va);
	assert_int_equal(le32_to_cpu(r->rkey), rkey);
	assert_int_equal(le32_to_cpu(r->flush), flush);
}

static inline void assert_data(unsigned int n, uint64_t addr, uint32_t lkey, uint32_t len)
{
	const struct skua_wqe_data *d = seg(n);

	assert_int_equal(le64_to_cpu(d->addr), addr);
	assert_int_equal(le32_to_cpu(d->lkey), lkey);
	assert_int_equal(le32_to_cpu(d->len), len);
}

static inline void assert_inline(unsigned int n, const void *data, uint32_t len)
{
	const struct skua_wqe_inline *head = seg(n);

	assert_int_equal(le32_to_cpu(head->len), len);
	assert_memory_equal(head + 1, data, len);
	assert_int_equal(nseg, n + (sizeof(*head) + len + 15) / 16);
}

#endif /* SKUA_TESTS_PROVIDER_LOOK_H */
