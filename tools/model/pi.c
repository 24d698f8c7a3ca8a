// SPDX-License-Identifier: GPL-2.0
/*
 * Integrity regions: T10 protection information checked, made and taken away between memory and
 * the wire.
 *
 * Nothing of a message is kept on the chip. Its bytes are split into data, which go to their place
 * in memory or come from there, and tuples; a tuple from the wire goes to the region's area. With
 * a block's last byte the whole block is looked at: if part of it is not in the packet, the block
 * is read from memory again, which costs that read. So a packet may begin and end anywhere in a
 * block, and what is sent again gives the same result. Only in bytes that are written in order the
 * last byte tells that the others have come: early packets of selective repeat are not taken
 * (mr_who.in_order).
 */
#include <string.h>

#include "cmd.h"
#include "icm.h"
#include "mr.h"

#define TUPLE		((uint32_t)sizeof(struct skua_pi_tuple))
#define MAX_BLOCKS	(1u << 20)
#define RIGHTS		(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
			 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_RELAXED_ORDERING)

/* A region in use. */
struct pi {
	struct skua_dev *dev;
	const struct skua_mpt_pi *pi;
	struct skua_mpt data, meta;	/* translation of data and tuples, from 0 on */
	uint32_t key;
	uint32_t interval;
	uint32_t unit;			/* bytes of a block on the wire, with its tuple */
};

static bool has_tuples(const struct skua_pi_domain *d)
{
	return le16_to_cpu(d->flags) & SKUA_PI_F_T10;
}

static uint32_t unit_of(const struct skua_mpt_pi *pi)
{
	return le16_to_cpu(pi->attr.interval) + (has_tuples(&pi->attr.wire) ? TUPLE : 0);
}

/* --- what a region may be --- */

static bool domain_ok(const struct skua_pi_domain *d)
{
	if (le16_to_cpu(d->flags) & ~SKUA_PI_F_ALL)
		return false;
	return has_tuples(d) || all_zero(d, sizeof(*d));
}

bool pi_free_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	const struct skua_mpt_pi *pi = &mpt->pi;
	uint64_t num = icm_num(dev, SKUA_ICM_MTT), base = le64_to_cpu(pi->base);
	uint32_t npages = le32_to_cpu(pi->npages);

	return le64_to_cpu(pi->area) % SKUA_WQE_BLOCK == 0 && base % SKUA_MTT_GROUP == 0 &&
	       base <= num && npages <= num - base && npages <= MODEL_REG_PAGES &&
	       le32_to_cpu(pi->max_blocks) <= MAX_BLOCKS && !pi->reserved;
}

bool pi_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	const struct skua_mpt_pi *pi = &mpt->pi;
	bool mem = has_tuples(&pi->attr.mem), wire = has_tuples(&pi->attr.wire);
	uint64_t offset = le32_to_cpu(pi->attr.offset), len = le64_to_cpu(mpt->len);
	uint32_t interval = le16_to_cpu(pi->attr.interval), log = mpt_log_page(mpt);

	if (!pi_free_ok(dev, mpt) || !mpt_is(mpt, SKUA_MPT_FAST_REG) ||
	    le32_to_cpu(mpt->access) & ~RIGHTS || log < MODEL_LOG_PAGE_MIN ||
	    log > MODEL_LOG_PAGE_MAX)
		return false;
	if (interval < SKUA_PI_INTERVAL_MIN || interval > SKUA_PI_INTERVAL_MAX ||
	    interval % TUPLE || !domain_ok(&pi->attr.mem) || !domain_ok(&pi->attr.wire) ||
	    (pi->attr.copy && !(mem && wire)))
		return false;
	if (!mem && !wire)
		return !pi->attr.check && !offset;
	if (len % unit_of(pi) || len / unit_of(pi) > le32_to_cpu(pi->max_blocks))
		return false;
	return mem ? !(offset >> log) && offset + len / unit_of(pi) * TUPLE <=
					 (uint64_t)le32_to_cpu(pi->npages) << log :
		     !offset;
}

uint64_t pi_data_len(const struct skua_mpt *mpt)
{
	const struct skua_mpt_pi *pi = &mpt->pi;
	uint64_t len = le64_to_cpu(mpt->len);

	return has_tuples(&pi->attr.wire) ? len / unit_of(pi) * le16_to_cpu(pi->attr.interval) : len;
}

/* --- registration --- */

enum skua_vendor pi_describe(struct skua_dev *dev, struct skua_mpt *mpt, struct skua_pi_desc *d)
{
	struct skua_mpt_pi *pi = &mpt->pi;

	if (dma_read(dev, TLP_MTT, le64_to_cpu(pi->area) + offsetof(struct skua_pi_area, desc), d,
		     sizeof(*d)))
		return SKUA_VENDOR_KEY_DMA;
	if (le64_to_cpu(d->page_list) % SKUA_WQE_BLOCK ||
	    le32_to_cpu(d->npages) > le32_to_cpu(pi->npages) ||
	    !!d->npages != has_tuples(&d->attr.mem) || !all_zero(d->reserved, sizeof(d->reserved)))
		return SKUA_VENDOR_KEY_PAGES;
	pi->attr = d->attr;
	return SKUA_VENDOR_NONE;
}

static int put_status(struct skua_dev *dev, const struct skua_mpt_pi *pi,
		      const struct skua_pi_status *s)
{
	return dma_write(dev, TLP_OTHER, le64_to_cpu(pi->area), s, sizeof(*s));
}

enum skua_vendor pi_register(struct skua_dev *dev, const struct skua_mpt *mpt,
			     const struct skua_pi_desc *d)
{
	const struct skua_pi_status status = { .key = mpt->key };
	const struct skua_mpt_pi *pi = &mpt->pi;
	uint64_t bytes = le64_to_cpu(mpt->len) / unit_of(pi) * TUPLE;
	enum skua_vendor err = SKUA_VENDOR_NONE;

	if (has_tuples(&pi->attr.mem)) {
		/* The entry was checked against the pages that the region can have. */
		if (le32_to_cpu(pi->attr.offset) + bytes >
		    (uint64_t)le32_to_cpu(d->npages) << mpt_log_page(mpt))
			return SKUA_VENDOR_KEY_PAGES;
		err = key_pages(dev, le64_to_cpu(pi->base), le64_to_cpu(d->page_list),
				le32_to_cpu(d->npages), mpt_log_page(mpt));
	}
	if (!err && put_status(dev, pi, &status))
		err = SKUA_VENDOR_KEY_DMA;
	return err;
}

/* --- guards --- */

/* CRC of T10: x^16 + x^15 + x^11 + x^9 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1. */
static uint16_t guard_crc(const uint8_t *p, uint32_t len, uint16_t crc)
{
	static const uint16_t step[16] = {	/* of four bits */
		0x0000, 0x8bb7, 0x9cd9, 0x176e, 0xb205, 0x39b2, 0x2edc, 0xa56b,
		0xefbd, 0x640a, 0x7364, 0xf8d3, 0x5db8, 0xd60f, 0xc161, 0x4ad6,
	};

	for (; len; len--, p++) {
		crc = (uint16_t)(crc << 4) ^ step[crc >> 12 ^ *p >> 4];
		crc = (uint16_t)(crc << 4) ^ step[crc >> 12 ^ (*p & 0xf)];
	}
	return crc;
}

static uint16_t guard_csum(const uint8_t *p, uint32_t len, uint16_t seed)
{
	uint32_t sum = seed;

	for (; len; len -= 2, p += 2)
		sum += p[0] << 8 | p[1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The tuple of a block by a side's rules. */
static struct skua_pi_tuple make(const struct pi *p, const struct skua_pi_domain *d,
				 uint32_t block, const uint8_t *data)
{
	uint16_t flags = le16_to_cpu(d->flags), seed = le16_to_cpu(d->seed);
	uint16_t guard = flags & SKUA_PI_F_CSUM ? guard_csum(data, p->interval, seed) :
						  guard_crc(data, p->interval, seed);
	uint32_t ref = le32_to_cpu(d->ref_tag) + (flags & SKUA_PI_F_REF_INC ? block : 0);

	return (struct skua_pi_tuple){
		.guard = htobe16(guard),
		.app_tag = htobe16(le16_to_cpu(d->app_tag)),
		.ref_tag = htobe32(ref),
	};
}

/* --- checks --- */

static bool escapes(const struct skua_pi_domain *d, const struct skua_pi_tuple *t)
{
	uint16_t flags = le16_to_cpu(d->flags);

	if (!(flags & (SKUA_PI_F_APP_ESCAPE | SKUA_PI_F_REF_ESCAPE)))
		return false;
	return (!(flags & SKUA_PI_F_APP_ESCAPE) || be16toh(t->app_tag) == 0xffff) &&
	       (!(flags & SKUA_PI_F_REF_ESCAPE) || be32toh(t->ref_tag) == UINT32_MAX);
}

/* Take @mask's bytes from @from. */
static void merge(struct skua_pi_tuple *to, const struct skua_pi_tuple *from, uint8_t mask)
{
	for (unsigned int i = 0; i < TUPLE; i++) {
		if (mask & 0x80 >> i)
			((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	}
}

/* The first error of the region is kept, the others are counted. */
static enum skua_vendor report(const struct pi *p, uint32_t block, uint32_t what,
			       uint32_t expected, uint32_t actual)
{
	struct skua_pi_status s;

	p->dev->cnt[SKUA_CNT_PI_ERRORS]++;
	dev_log(p->dev, 2, "key %#x: block %u: %s %#x, expected %#x", p->key, block,
		what == SKUA_PI_GUARD ? "guard" : what == SKUA_PI_APP ? "application tag" :
								      "reference tag",
		actual, expected);
	if (dma_read(p->dev, TLP_OTHER, le64_to_cpu(p->pi->area), &s, sizeof(s)))
		return SKUA_VENDOR_KEY_DMA;
	if (!s.errors) {
		s.what = cpu_to_le32(what);
		s.expected = cpu_to_le32(expected);
		s.actual = cpu_to_le32(actual);
		s.offset = cpu_to_le64((uint64_t)block * (p->interval + TUPLE));
	}
	if (s.errors != cpu_to_le32(UINT32_MAX))
		s.errors = cpu_to_le32(le32_to_cpu(s.errors) + 1);
	return put_status(p->dev, p->pi, &s) ? SKUA_VENDOR_KEY_DMA : SKUA_VENDOR_NONE;
}

static enum skua_vendor check(const struct pi *p, const struct skua_pi_domain *d, uint32_t block,
			      const uint8_t *data, const struct skua_pi_tuple *in)
{
	struct skua_pi_tuple want = make(p, d, block, data), got = want;
	uint16_t mask = le16_to_cpu(d->app_mask);

	merge(&got, in, p->pi->attr.check);
	p->dev->cnt[SKUA_CNT_PI_BLOCKS]++;
	if (got.guard != want.guard)
		return report(p, block, SKUA_PI_GUARD, be16toh(want.guard), be16toh(got.guard));
	if ((be16toh(got.app_tag) ^ be16toh(want.app_tag)) & mask)
		return report(p, block, SKUA_PI_APP, be16toh(want.app_tag) & mask,
			      be16toh(got.app_tag) & mask);
	if (got.ref_tag != want.ref_tag)
		return report(p, block, SKUA_PI_REF, be32toh(want.ref_tag), be32toh(got.ref_tag));
	return SKUA_VENDOR_NONE;
}

/*
 * A block goes from one side to the other: *@t is its tuple on side @from, if there is one, and
 * then that on side @to. @look: check it.
 */
static enum skua_vendor pass(const struct pi *p, const struct skua_pi_domain *from,
			     const struct skua_pi_domain *to, uint32_t block, const uint8_t *data,
			     struct skua_pi_tuple *t, bool look)
{
	bool escaped = has_tuples(from) && escapes(from, t);
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct skua_pi_tuple in = *t;

	if (look && has_tuples(from) && p->pi->attr.check && !escaped)
		err = check(p, from, block, data, &in);
	if (!has_tuples(to))
		return err;
	*t = make(p, to, block, data);
	if (has_tuples(from))
		merge(t, &in, escaped ? 0xff : p->pi->attr.copy);
	return err;
}

/* --- access --- */

static enum skua_vendor copy_data(struct pi *p, uint64_t off, uint8_t *buf, uint32_t len,
				  bool write)
{
	return mr_copy(p->dev, &p->data, off, buf, len, write);
}

static enum skua_vendor copy_tuple(struct pi *p, uint32_t block, struct skua_pi_tuple *t,
				   bool write)
{
	return mr_copy(p->dev, &p->meta, (uint64_t)block * TUPLE, (uint8_t *)t, TUPLE, write);
}

/* All of a block's data: @piece if it has it all, else @buf, read from memory. */
static enum skua_vendor whole(struct pi *p, uint32_t block, uint32_t in, uint32_t n,
			      const uint8_t *piece, uint8_t *buf, const uint8_t **data)
{
	*data = piece;
	if (!in && n >= p->interval)
		return SKUA_VENDOR_NONE;
	*data = buf;
	return copy_data(p, (uint64_t)block * p->interval, buf, p->interval, false);
}

/* Read bytes [@in, @in + @n) of a block as the wire has it. */
static enum skua_vendor read_block(struct pi *p, uint32_t block, uint32_t in, uint8_t *buf,
				   uint32_t n)
{
	uint32_t nd = in >= p->interval ? 0 : n < p->interval - in ? n : p->interval - in;
	bool mem = has_tuples(&p->pi->attr.mem), last = in + n == p->unit;
	uint8_t copy[SKUA_PI_INTERVAL_MAX];
	struct skua_pi_tuple t = { 0 };
	enum skua_vendor err;
	const uint8_t *data;

	err = copy_data(p, (uint64_t)block * p->interval + in, buf, nd, false);
	/* A tuple for the wire, or a check. */
	if (err || (nd == n && !(last && mem && p->pi->attr.check)))
		return err;
	err = whole(p, block, in, n, buf, copy, &data);
	if (!err && mem)
		err = copy_tuple(p, block, &t, false);
	if (!err)
		err = pass(p, &p->pi->attr.mem, &p->pi->attr.wire, block, data, &t, last);
	if (!err && nd < n)
		memcpy(buf + nd, (uint8_t *)&t + in + nd - p->interval, n - nd);
	return err;
}

/* Bytes of a block's tuple came; at its end *@t is all of it. */
static enum skua_vendor keep_tuple(struct pi *p, uint32_t block, uint32_t at, const uint8_t *buf,
				   uint32_t n, struct skua_pi_tuple *t)
{
	uint64_t bus = le64_to_cpu(p->pi->area) + offsetof(struct skua_pi_area, tuple) +
		       (uint64_t)block * TUPLE;

	memcpy((uint8_t *)t + at, buf, n);
	if (at + n < TUPLE ? dma_write(p->dev, TLP_OTHER, bus + at, buf, n) :
			     at && dma_read(p->dev, TLP_OTHER, bus, t, at))
		return SKUA_VENDOR_KEY_DMA;
	return SKUA_VENDOR_NONE;
}

/* Write them. */
static enum skua_vendor write_block(struct pi *p, uint32_t block, uint32_t in, uint8_t *buf,
				    uint32_t n)
{
	uint32_t nd = in >= p->interval ? 0 : n < p->interval - in ? n : p->interval - in;
	bool mem = has_tuples(&p->pi->attr.mem), wire = has_tuples(&p->pi->attr.wire);
	uint8_t copy[SKUA_PI_INTERVAL_MAX];
	struct skua_pi_tuple t = { 0 };
	enum skua_vendor err;
	const uint8_t *data;

	err = copy_data(p, (uint64_t)block * p->interval + in, buf, nd, true);
	if (!err && nd < n)
		err = keep_tuple(p, block, in + nd - p->interval, buf + nd, n - nd, &t);
	if (err || in + n < p->unit || (!mem && !(wire && p->pi->attr.check)))
		return err;
	err = whole(p, block, in, n, buf, copy, &data);
	if (!err)
		err = pass(p, &p->pi->attr.wire, &p->pi->attr.mem, block, data, &t, true);
	if (!err && mem)
		err = copy_tuple(p, block, &t, true);
	return err;
}

enum skua_vendor pi_copy(struct skua_dev *dev, const struct mr_who *who,
			 const struct skua_mpt *mpt, uint64_t va, uint8_t *buf, uint32_t len,
			 bool write)
{
	uint64_t off = va - le64_to_cpu(mpt->va);
	struct pi p = {
		.dev = dev,
		.pi = &mpt->pi,
		.data = *mpt,
		.meta = *mpt,
		.key = le32_to_cpu(mpt->key),
		.interval = le16_to_cpu(mpt->pi.attr.interval),
		.unit = unit_of(&mpt->pi),
	};
	enum skua_vendor err = SKUA_VENDOR_NONE;

	if (write && !who->in_order)
		return SKUA_VENDOR_KEY_STATE;
	p.data.va = 0;
	p.meta.va = 0;
	p.meta.xlat.base = mpt->pi.base;
	p.meta.xlat.offset = mpt->pi.attr.offset;
	if (!has_tuples(&mpt->pi.attr.mem) && !has_tuples(&mpt->pi.attr.wire))
		return copy_data(&p, off, buf, len, write);
	for (uint32_t n; len && !err; off += n, buf += n, len -= n) {
		uint32_t block = (uint32_t)(off / p.unit), in = (uint32_t)(off % p.unit);

		n = p.unit - in < len ? p.unit - in : len;
		err = write ? write_block(&p, block, in, buf, n) : read_block(&p, block, in, buf, n);
	}
	return err;
}
