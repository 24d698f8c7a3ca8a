// SPDX-License-Identifier: GPL-2.0
/*
 * Push slots of UAR pages: doorbells with a WQE.
 *
 * A slot collects the words that are stored to it, as a write-combining buffer does. If all
 * other words have arrived when the last one does, the slot counts as one memory write of 64
 * bytes on the link, however many messages it took. Otherwise each word counts as a write.
 *
 * Pushed WQEs wait here for their QP's turn, in a few places that all QPs share. A WQE whose
 * place was taken by that of another QP is read from the ring, which has it, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define WORDS		(SKUA_UAR_PUSH_SLOT_SIZE / 8)
#define DB_WORD		(WORDS - 1)
#define WQE_BYTES	(SKUA_PUSH_SEGS * SKUA_WQE_SEG)

/* Number of places for pushed WQEs, chosen by the low bits of the QPN. */
#define LOG_WAITING	6

/**
 * struct slot - a slot of a UAR page
 * @word: as last stored
 * @there: BIT(n): word n was stored since the last doorbell of the slot
 */
struct slot {
	__le64 word[WORDS];
	uint8_t there;
};

struct slots {
	struct slot slot[SKUA_UAR_PUSH_SLOTS];
};

/**
 * struct waiting - a pushed WQE that waits for its QP's turn
 * @qpn: the QP; 0: there is none
 * @index: block at which the WQE is
 * @raw: its segments, aligned as in a ring
 */
struct waiting {
	uint32_t qpn;
	uint32_t index;
	uint8_t raw[WQE_BYTES] __attribute__((aligned(8)));
};

/**
 * struct push - what was pushed
 * @page: slots of each UAR page that has been pushed to
 * @pages: how many these are
 * @waiting: WQEs
 */
struct push {
	struct slots *page[SKUA_BAR_UAR_SIZE >> MODEL_LOG_PAGE_MIN];
	uint32_t pages;
	struct waiting waiting[1 << LOG_WAITING];
};

int push_init(struct skua_dev *dev)
{
	dev->push = calloc(1, sizeof(*dev->push));
	return dev->push ? 0 : -ENOMEM;
}

struct onchip push_onchip(const struct skua_dev *dev)
{
	const struct push *p = dev->push;

	/* Asked for each context that the cache has no room for: nothing is counted here. */
	return (struct onchip){
		.num = p->pages,
		.bytes = sizeof(p->waiting) + p->pages * sizeof(struct slots),
	};
}

void push_reset(struct skua_dev *dev)
{
	struct push *p = dev->push;

	for (unsigned int i = 0; i < sizeof(p->page) / sizeof(p->page[0]); i++)
		free(p->page[i]);
	memset(p, 0, sizeof(*p));
}

void push_exit(struct skua_dev *dev)
{
	if (!dev->push)
		return;
	push_reset(dev);
	free(dev->push);
}

static struct waiting *place_of(struct skua_dev *dev, uint32_t qpn)
{
	return &dev->push->waiting[qpn & ((1u << LOG_WAITING) - 1)];
}

/* --- from the doorbell --- */

void push_put(struct skua_dev *dev, uint32_t qpn, uint32_t index, const void *raw)
{
	struct waiting *w = place_of(dev, qpn);

	w->qpn = qpn;
	w->index = index;
	memcpy(w->raw, raw, sizeof(w->raw));
}

/* --- to the QP --- */

const void *push_take(struct skua_dev *dev, uint32_t qpn, uint32_t index, size_t *nbytes)
{
	struct waiting *w = place_of(dev, qpn);

	if (w->qpn != qpn)
		return NULL;
	w->qpn = 0;
	*nbytes = sizeof(w->raw);
	return w->index == index ? w->raw : NULL;
}

void push_forget(struct skua_dev *dev, uint32_t qpn)
{
	struct waiting *w = place_of(dev, qpn);

	if (w->qpn == qpn)
		w->qpn = 0;
}

/* --- slots --- */

static struct slot *slot_at(struct skua_dev *dev, uint32_t page, uint32_t in)
{
	struct slots **s = &dev->push->page[page];

	if (!*s) {
		*s = calloc(1, sizeof(**s));
		dev->push->pages += *s ? 1 : 0;
	}
	return *s ? &(*s)->slot[(in - SKUA_UAR_PUSH) / SKUA_UAR_PUSH_SLOT_SIZE] : NULL;
}

static void slot_act(struct skua_dev *dev, uint32_t page, struct slot *s)
{
	bool whole = s->there == (1u << WORDS) - 1;
	unsigned int words = __builtin_popcount(s->there), n = whole ? 1 : words;
	uint64_t db = le64_to_cpu(s->word[DB_WORD]);
	uint32_t qpn = db >> 32;

	for (unsigned int i = 0; i < n; i++)
		tlp_mmio(dev, TLP_PUSH, 8 * words / n);
	tlp_mmio_qp(dev, qpn, TLP_PUSH, n, 8 * words);
	s->there = 0;
	sq_doorbell(dev, page, (uint32_t)db, qpn, whole ? s->word : NULL);
}

bool push_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len)
{
	uint32_t in = off & ((1u << dev->uar_shift) - 1);
	unsigned int first = in % SKUA_UAR_PUSH_SLOT_SIZE / 8;
	struct slot *s;

	if (in < SKUA_UAR_PUSH ||
	    in >= SKUA_UAR_PUSH + SKUA_UAR_PUSH_SLOTS * SKUA_UAR_PUSH_SLOT_SIZE ||
	    in % 8 || len % 8 || first + len / 8 > WORDS ||
	    dev->state != DEV_OPERATIONAL || !dev_has(dev, SKUA_CAP_PUSH))
		return false;
	s = slot_at(dev, off >> dev->uar_shift, in);
	if (!s)
		return false;
	memcpy(&s->word[first], buf, len);
	s->there |= ((1u << len / 8) - 1) << first;
	if (s->there & BIT(DB_WORD))
		slot_act(dev, off >> dev->uar_shift, s);
	return true;
}
