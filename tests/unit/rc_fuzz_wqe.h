/* SPDX-License-Identifier: GPL-2.0 */
/* Work requests of a guest that posts what it likes. */
#ifndef SKUA_TEST_RC_FUZZ_WQE_H
#define SKUA_TEST_RC_FUZZ_WQE_H

#include <skua/wqe_build.h>

#include "rc_fuzz.h"

/* An operand or a mask: small, all ones, or a single bit. */
static inline uint64_t rc_fuzz_operand(struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);

	return pick < 128 ? pick : pick < 192 ? ~0ull : 1ull << pick % 64;
}

/* What the WQEs have that work on keys. */
static inline void rc_fuzz_key_segments(int i, struct rc_wr *wr, struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t key = fuzz[i].key[pick % FUZZ_KEYS];
	uint32_t access = (uint32_t)take(in, 2) & (pick & 0x80 ? 0xffff : 0x2e);

	if (wr->op == SKUA_WQE_BIND_MW)
		skua_wqe_bind_set(&wr->bind, key, key + (pick >> 2) % 4, rc_fuzz_key(i, in),
				  access, RC_VA + take(in, 2), take(in, 3));
	else
		skua_wqe_reg_set(&wr->reg, fuzz[i].key[FUZZ_FAST] + (pick >> 2) % 4,
				 access | SKUA_ACCESS_LOCAL_WRITE, RC_VA + take(in, 2),
				 take(in, 2));
	if (wr->op == SKUA_WQE_REG_MR)
		skua_wqe_reg_pages(&wr->reg, fuzz[i].list + (pick & 0x40 ? take(in, 1) * 64 : 0),
				   take(in, 1) % 16, 12 + take(in, 1) % 2, take(in, 2));
}

/*
 * A WQE that is right but for what the input wants otherwise; of an XRC initiator it goes to
 * SRQ @srqn.
 */
static inline void rc_fuzz_post(int i, uint32_t srqn, struct input *in)
{
	static const uint8_t ops[] = { SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE,
				       SKUA_WQE_WRITE_IMM, SKUA_WQE_READ, SKUA_WQE_NOP,
				       SKUA_WQE_CAS, SKUA_WQE_FAA, SKUA_WQE_MASKED_CAS,
				       SKUA_WQE_MASKED_FAA, SKUA_WQE_FLUSH,
				       SKUA_WQE_ATOMIC_WRITE, SKUA_WQE_SEND_INV,
				       SKUA_WQE_BIND_MW, SKUA_WQE_LOCAL_INV, SKUA_WQE_REG_MR };
	struct rc_wr wr = { .srqn = srqn };
	uint8_t pick = (uint8_t)take(in, 1);

	if (rc.s[i].qp.sq_pi - le32_to_cpu(rc_query(&rc, i).sqc.ci) > 48)
		return;
	wr.op = pick < 240 ? ops[pick % sizeof(ops)] : (enum skua_wqe_op)take(in, 1);
	wr.flags = take(in, 1) & (pick & 0x40 ? 0x1ff : SKUA_WQE_F_FENCE | SKUA_WQE_F_SOLICITED);
	if (wr.op == SKUA_WQE_BIND_MW || wr.op == SKUA_WQE_REG_MR) {
		wr.flags |= pick & 0x80 ? SKUA_WQE_F_LOCAL_FENCE : 0;
		rc_fuzz_key_segments(i, &wr, in);
		rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
		return;
	}
	if (wr.op == SKUA_WQE_LOCAL_INV || wr.op == SKUA_WQE_SEND_INV)
		wr.imm = rc_fuzz_key(wr.op == SKUA_WQE_LOCAL_INV ? i : 1 - i, in);
	if (wr.op == SKUA_WQE_FLUSH)
		wr.flush = take(in, 1) & 0x33, wr.imm = (uint32_t)take(in, 2);
	if (wr.op >= SKUA_WQE_CAS && wr.op <= SKUA_WQE_MASKED_FAA) {
		bool add = wr.op == SKUA_WQE_FAA || wr.op == SKUA_WQE_MASKED_FAA;

		for (unsigned int k = 0; k < 2; k++) {
			wr.atomic[k].swap_add = rc_fuzz_operand(in);
			wr.atomic[k].compare = add ? 0 : rc_fuzz_operand(in);
		}
	}
	wr.quiet = pick & 2;
	wr.roff = take(in, 3) & (pick & 0x20 ? ~0ull : ~7ull);
	wr.rkey = rc_fuzz_key(1 - i, in);
	wr.len = (uint32_t)take(in, 2);
	/* What has one length only mostly has it. */
	if (wr.op >= SKUA_WQE_CAS && wr.op <= SKUA_WQE_ATOMIC_WRITE && pick & 0x10) {
		wr.len = 8;
		rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
		return;
	}
	if (wr.flags & SKUA_WQE_F_INLINE)
		wr.len %= 700;
	else
		wr.nsge = take(in, 1) % 10;
	for (uint32_t k = 0; k < wr.nsge; k++)
		wr.sge[k] = (struct sge){ RC_VA + take(in, 3), rc_fuzz_key(i, in),
					  (uint32_t)take(in, 2) };
	rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
}

#endif /* SKUA_TEST_RC_FUZZ_WQE_H */
