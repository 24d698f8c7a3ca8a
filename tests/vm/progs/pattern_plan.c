// SPDX-License-Identifier: GPL-2.0
/*
 * The plan of skua-pattern: a sweep over sizes, then a pairwise covering array
 * over everything that a message can vary in.
 */
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

const char *const op_name[OPS] = { "SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ" };

/* The factors of the covering array. */
enum factor { F_MTU, F_OP, F_SGE_MINE, F_SGE_THEIRS, F_ALIGN_MINE, F_ALIGN_THEIRS, F_SIZE, F_DIR,
	      FACTORS };

static const uint32_t aligns[] = { 0, 1, 3, 7, 31, 63 };
#define ALIGNS		(sizeof(aligns) / sizeof(aligns[0]))
#define SGE_LEVELS	4
#define SIZE_CLASSES	12
#define MAX_LEVELS	16
#define MAX_ROWS	400
#define CANDIDATES	40

struct row {
	uint8_t level[FACTORS];
};

struct plan {
	struct opts o;
	struct caps c;
	unsigned int levels[FACTORS];
	unsigned int sweeps;		/* batches of the sweep */
	unsigned int nrows;
	struct row row[MAX_ROWS];
};

/* --- the covering array: greedy, best of some random candidates ------------------- */

typedef bool pairs_t[FACTORS][MAX_LEVELS][FACTORS][MAX_LEVELS];

static unsigned int row_gain(const struct row *r, pairs_t covered)
{
	unsigned int i, j, gain = 0;

	for (i = 0; i < FACTORS; i++)
		for (j = i + 1; j < FACTORS; j++)
			gain += !covered[i][r->level[i]][j][r->level[j]];
	return gain;
}

static unsigned int row_cover(const struct row *r, pairs_t covered)
{
	unsigned int i, j, gain = row_gain(r, covered);

	for (i = 0; i < FACTORS; i++)
		for (j = i + 1; j < FACTORS; j++)
			covered[i][r->level[i]][j][r->level[j]] = true;
	return gain;
}

/* A pair not covered yet, to build a candidate on. */
static bool first_open(const struct plan *p, pairs_t covered, struct row *r, bool fixed[])
{
	unsigned int i, j, a, b;

	for (i = 0; i < FACTORS; i++)
		for (j = i + 1; j < FACTORS; j++)
			for (a = 0; a < p->levels[i]; a++)
				for (b = 0; b < p->levels[j]; b++) {
					if (covered[i][a][j][b])
						continue;
					r->level[i] = a;
					r->level[j] = b;
					fixed[i] = fixed[j] = true;
					return true;
				}
	return false;
}

static void make_rows(struct plan *p)
{
	struct rng rng = rng_make(p->o.seed, 0x0c0e);
	bool (*covered)[MAX_LEVELS][FACTORS][MAX_LEVELS];
	unsigned int i, k;

	covered = calloc(FACTORS, sizeof(*covered));
	if (!covered)
		die("out of memory");
	for (p->nrows = 0; p->nrows < MAX_ROWS; p->nrows++) {
		struct row best = {}, base = {};
		bool fixed[FACTORS] = {};
		unsigned int best_gain = 0;

		if (!first_open(p, covered, &base, fixed))
			break;
		for (k = 0; k < CANDIDATES; k++) {
			struct row r = base;
			unsigned int gain;

			for (i = 0; i < FACTORS; i++)
				if (!fixed[i])
					r.level[i] = rng_below(&rng, p->levels[i]);
			gain = row_gain(&r, covered);
			if (gain > best_gain || !k) {
				best_gain = gain;
				best = r;
			}
		}
		row_cover(&best, covered);
		p->row[p->nrows] = best;
	}
	if (p->nrows == MAX_ROWS)
		die("covering array did not end");
	free(covered);
}

/* --- what the levels mean -------------------------------------------------------- */

static unsigned int sge_level(const struct plan *p, unsigned int level)
{
	const unsigned int n[SGE_LEVELS] = { 1, 2, 3, p->c.max_sge };

	return n[level] < p->c.max_sge ? n[level] : p->c.max_sge;
}

/* A length of the class; some are exact, some vary with the seed. */
static uint32_t size_level(const struct plan *p, unsigned int level, uint32_t mtu,
			   struct rng *rng)
{
	uint32_t n;

	switch (level) {
	case 0: n = 0; break;
	case 1: n = 1; break;
	case 2: n = 2 + rng_below(rng, 62); break;
	case 3: n = mtu - 1; break;
	case 4: n = mtu; break;
	case 5: n = mtu + 1; break;
	case 6: n = 2 * mtu + rng_below(rng, 2 * mtu); break;
	case 7: n = 8 * mtu; break;
	case 8: n = (32 << 10) + rng_below(rng, 64 << 10); break;
	case 9: n = (256 << 10) + rng_below(rng, 256 << 10); break;
	case 10: n = (1 << 20) + rng_below(rng, 1 << 20); break;
	default: n = (16 << 20) - rng_below(rng, 4096); break;
	}
	return n < p->o.max_size ? n : p->o.max_size;
}

/* --- laying messages out in the areas ---------------------------------------------- */

/*
 * Cut a length in pieces of random sizes, empty ones among them, each at the
 * alignment asked for and with a gap that must stay untouched behind it.
 */
static unsigned int lay_out(struct piece *piece, unsigned int n, uint32_t len, uint32_t align,
			    uint32_t *used, struct rng *rng)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : rng_below(rng, 2 * (len / (n - i)) + 2);

		if (part > len)
			part = len;
		*used = (*used + 63) / 64 * 64 + align;
		piece[i] = (struct piece){ .off = *used, .len = part };
		*used += part + 16 + rng_below(rng, 48);
		len -= part;
	}
	return n;
}

static void lay_out_msg(const struct plan *p, struct batch *b, struct msg *m, unsigned int mine,
			unsigned int theirs, uint32_t align_mine, uint32_t align_theirs,
			struct rng *rng)
{
	uint32_t room = m->size;

	m->id = mix(rng_next(rng));
	m->signaled = rng_below(rng, 3) == 0;
	m->fence = rng_below(rng, 8) == 0;
	m->use_inline = m->op != OP_READ && m->size <= p->c.max_inline && rng_below(rng, 2);

	/* An empty message may have no list at all. */
	if (!m->size && rng_below(rng, 2))
		mine = 0;
	m->n_mine = lay_out(m->mine, mine, m->size, align_mine, &b->used_mine, rng);
	if (m->op == OP_WRITE_IMM || m->op == OP_WRITE || m->op == OP_READ)
		theirs = 1;
	else if (rng_below(rng, 4) == 0)
		room += 1 + rng_below(rng, 100);	/* a receive longer than the message */
	m->n_theirs = lay_out(m->theirs, theirs, room, align_theirs, &b->used_theirs, rng);
}

static void plan_sweep(const struct plan *p, unsigned int index, struct batch *b)
{
	struct rng rng = rng_make(p->o.seed, 0x10000 + index);
	uint32_t per_pass = p->o.sizes / p->o.step + 1;
	uint64_t first = (uint64_t)index / 2 * MAX_MSGS, i;

	b->mtu = p->c.mtu;
	b->from_client = !(index & 1);
	for (i = first; i < first + MAX_MSGS && i < (uint64_t)per_pass * p->o.passes; i++) {
		struct msg *m = &b->msg[b->n++];

		m->size = i % per_pass * p->o.step;
		/* Each pass moves the opcodes by one: five passes are all of them. */
		m->op = (i % per_pass + i / per_pass) % OPS;
		if (m->op == OP_READ && m->size < p->c.min_read)
			m->size = p->c.min_read;
		lay_out_msg(p, b, m, 1 + rng_below(&rng, p->c.max_sge),
			    1 + rng_below(&rng, p->c.max_sge), rng_below(&rng, 64),
			    rng_below(&rng, 64), &rng);
	}
}

static void plan_row(const struct plan *p, unsigned int index, struct batch *b)
{
	const struct row *r = &p->row[index];
	struct rng rng = rng_make(p->o.seed, 0x20000 + index);
	unsigned int n, k;

	b->mtu = IBV_MTU_256 + r->level[F_MTU];
	b->from_client = r->level[F_DIR];
	n = r->level[F_SIZE] >= 10 ? 1 : r->level[F_SIZE] >= 8 ? 3 : 8;
	for (k = 0; k < n; k++) {
		struct msg *m = &b->msg[b->n++];

		m->op = r->level[F_OP];
		m->size = size_level(p, r->level[F_SIZE], mtu_bytes(b->mtu), &rng);
		if (m->op == OP_READ && m->size < p->c.min_read)
			m->size = p->c.min_read;
		lay_out_msg(p, b, m, sge_level(p, r->level[F_SGE_MINE]),
			    sge_level(p, r->level[F_SGE_THEIRS]),
			    aligns[r->level[F_ALIGN_MINE]], aligns[r->level[F_ALIGN_THEIRS]], &rng);
	}
}

/* --- outside ------------------------------------------------------------------------ */

struct plan *plan_make(const struct opts *o, const struct caps *c)
{
	struct plan *p = calloc(1, sizeof(*p));
	uint64_t msgs;

	if (!p)
		die("out of memory");
	p->o = *o;
	p->c = *c;
	p->levels[F_MTU] = c->mtu - IBV_MTU_256 + 1;
	p->levels[F_OP] = OPS;
	p->levels[F_SGE_MINE] = SGE_LEVELS;
	p->levels[F_SGE_THEIRS] = SGE_LEVELS;
	p->levels[F_ALIGN_MINE] = ALIGNS;
	p->levels[F_ALIGN_THEIRS] = ALIGNS;
	p->levels[F_SIZE] = SIZE_CLASSES;
	p->levels[F_DIR] = 2;
	if (o->sizes) {
		msgs = (uint64_t)(o->sizes / o->step + 1) * o->passes;
		p->sweeps = 2 * ((msgs + MAX_MSGS - 1) / MAX_MSGS);
	}
	if (o->rows)
		make_rows(p);
	return p;
}

unsigned int plan_batches(const struct plan *p)
{
	return p->sweeps + p->nrows;
}

void plan_batch(const struct plan *p, unsigned int index, struct batch *b)
{
	struct rng rng = rng_make(p->o.seed, 0x30000 + index);

	memset(b, 0, sizeof(*b));
	b->index = index;
	if (index < p->sweeps)
		plan_sweep(p, index, b);
	else
		plan_row(p, index - p->sweeps, b);
	b->events = p->o.mode == 'e' || (p->o.mode == 'm' && rng_below(&rng, 2));
	/* Its completion says that all the others are complete. */
	b->msg[b->n - 1].signaled = true;
	if (b->used_mine + 64 > AREA_SIZE || b->used_theirs + 64 > AREA_SIZE)
		die("batch %u does not fit its area", index);
}

void plan_free(struct plan *p)
{
	free(p);
}
