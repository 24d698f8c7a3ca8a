// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: doorbells that bring the WQE along.
 *
 * A context may have a second UAR page, which is mapped write-combining. All doorbells of a
 * QP that pushes go through it, as the device takes them through one page only; each is
 * flushed, so that it reaches the device at once and as a write of its own.
 *
 * A QP has two of the page's slots and uses them by turns: while the processor sends one,
 * the other can be filled. The last two slots are shared by the QPs for which there are no
 * others, under a lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "skua.h"
#include "db.h"

#define SLOT		SKUA_UAR_PUSH_SLOT_SIZE
#define PAIRS		(SKUA_UAR_PUSH_SLOTS / 2)
#define SHARED		(PAIRS - 1)

/**
 * skua_push_wish() - what to ask the kernel for
 *
 * Return: SKUA_ALLOC_UCONTEXT_* by the environment variable SKUA_SHUT_UP_BF: 1: never push;
 * 0: push, even if it does not pay; unset: as the device says.
 */
uint32_t skua_push_wish(void)
{
	const char *env = getenv("SKUA_SHUT_UP_BF");

	/* Machines without 8-byte stores have no pushes. */
	if (sizeof(long) < 8)
		return 0;
	if (!env || !*env)
		return SKUA_ALLOC_UCONTEXT_PUSH;
	return strcmp(env, "0") ? 0 : SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS;
}

/* Map the page, if the kernel has given the context one. Returns 0 or an errno. */
int skua_push_map(struct skua_context *ctx, int cmd_fd)
{
	void *p;

	pthread_mutex_init(&ctx->push_mutex, NULL);
	pthread_spin_init(&ctx->push_lock, PTHREAD_PROCESS_PRIVATE);
	if (!ctx->lim.push_size)
		return 0;
	p = mmap(NULL, ctx->lim.push_size, PROT_WRITE, MAP_SHARED, cmd_fd, ctx->lim.push_offset);
	if (p == MAP_FAILED) {
		int err = errno;

		skua_push_unmap(ctx);
		return err;
	}
	ctx->push = p;
	return 0;
}

void skua_push_unmap(struct skua_context *ctx)
{
	if (ctx->push)
		munmap(ctx->push, ctx->lim.push_size);
	pthread_spin_destroy(&ctx->push_lock);
	pthread_mutex_destroy(&ctx->push_mutex);
}

/* Make the QP one that pushes, if there is a page for that and its WQEs are short enough. */
void skua_push_get(struct skua_context *ctx, struct skua_qp *qp)
{
	struct skua_push *push = &qp->push;

	/* A SEND without data is the shortest WQE there is. */
	if (!ctx->push || !qp->sq.blocks || qp->sq.head_segs > ctx->lim.push_segs)
		return;
	pthread_mutex_lock(&ctx->push_mutex);
	for (push->pair = 0; push->pair < SHARED; push->pair++)
		if (!(ctx->push_pairs & BIT(push->pair)))
			break;
	if (push->pair < SHARED)
		ctx->push_pairs |= BIT(push->pair);
	else
		push->lock = &ctx->push_lock;
	pthread_mutex_unlock(&ctx->push_mutex);
	push->slot = (uint8_t *)ctx->push + SKUA_UAR_PUSH + 2 * push->pair * SLOT;
	push->max_segs = ctx->lim.push_segs;
	qp->sq.tell |= SKUA_TELL_BY_PUSH;
	qp->uar = ctx->push;
}

void skua_push_put(struct skua_context *ctx, struct skua_qp *qp)
{
	struct skua_push *push = &qp->push;

	if (!push->slot || push->lock)
		return;
	pthread_mutex_lock(&ctx->push_mutex);
	ctx->push_pairs &= ~BIT(push->pair);
	pthread_mutex_unlock(&ctx->push_mutex);
}

/* A short WQE into the slot, the doorbell's word last. */
static void push_wqe(struct skua_push *push, const void *wqe, uint32_t pi, uint32_t qpn)
{
	__le64 words[SLOT / 8] = {};

	memcpy(words, wqe, SKUA_PUSH_SEGS * SKUA_WQE_SEG);
	words[SLOT / 8 - 1] = cpu_to_le64(skua_db_word(pi, qpn));
	if (push->lock)
		pthread_spin_lock(push->lock);
	/* The record and the WQE in the ring before the slot, which is weakly ordered. */
	mmio_wc_start();
	mmio_memcpy_x64(push->slot + push->turn, words, SLOT);
	/* Send the slot, before it or the doorbell is written again. */
	mmio_flush_writes();
	push->turn ^= SLOT;
	if (push->lock)
		pthread_spin_unlock(push->lock);
}

/**
 * skua_push_sq() - pass new send WQEs of a QP that pushes to the device
 * @qp: the QP, its send queue locked
 * @pi: new producer index
 * @old: producer index of the last call
 */
void skua_push_sq(struct skua_qp *qp, uint32_t pi, uint32_t old)
{
	const struct skua_wqe_ctrl *c = skua_sq_seg(&qp->sq.ring, old, 0);

	if (!skua_db_sq_record(qp->dbr, pi, old, qp->sq.tell & SKUA_TELL_IF_ASKED))
		return;
	if (pi - old == 1 && le32_get_bits(c->op, SKUA_WQE_NSEG) <= qp->push.max_segs) {
		push_wqe(&qp->push, c, pi, qp->vqp.qp.qp_num);
		return;
	}
	/* As in push_wqe(). */
	mmio_wc_start();
	skua_ring(qp->uar, SKUA_UAR_SQ, pi, qp->vqp.qp.qp_num);
	mmio_flush_writes();
}
