// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions, whose pages are mapped and unmapped at any time. All pages of an access are
 * translated before its first byte is moved. So an access with a missing page has no effect,
 * and one without uses the translations that it has found, even if software changes the lists
 * at the same time.
 */
#include "icm.h"
#include "mr.h"

/* The longest access is a frame. */
#define RUNS	(MODEL_MAX_FRAME / (1u << MODEL_LOG_PAGE_MIN) + 2)

struct run {
	uint64_t bus;
	uint32_t len;
};

/* Bus addresses of the bytes of an access, or the position of the missing page. */
struct runs {
	struct run run[RUNS];
	unsigned int num;
	uint64_t missed;
};

enum found { FOUND, MISSED, NONSENSE };

/*
 * Return an entry with these bits. If the cached one does not have them it is read again, since
 * software adds entries without telling the device.
 */
static bool entry_get(struct skua_dev *dev, uint64_t index, uint64_t need, uint64_t *entry)
{
	if (!mtt_get(dev, index, entry) && (*entry & need) == need)
		return true;
	mtt_forget(dev, index, 1);
	return !mtt_get(dev, index, entry) && (*entry & need) == need;
}

/*
 * From an entry of a directory, of 1 << @log bytes, to the entry of the list it names:
 * @index, and @pos in what the directory's entry covers.
 */
static enum found descend(struct skua_dev *dev, uint32_t log, uint32_t sub, uint64_t *index,
			  uint64_t *pos)
{
	uint64_t entry;

	if (*index >= icm_num(dev, SKUA_ICM_MTT))
		return NONSENSE;
	if (!entry_get(dev, *index, SKUA_MTT_PRESENT, &entry))
		return MISSED;
	*pos &= (1ull << log) - 1;
	*index = le64_get_bits(cpu_to_le64(entry), SKUA_MTT_LIST) + (*pos >> sub);
	return FOUND;
}

/* Bus address of the byte @pos of a region, counted as in mr.c; bytes that follow there. */
static enum found find(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t pos, bool write,
		       uint64_t *bus, uint64_t *room)
{
	uint64_t need = SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0);
	uint32_t log = mpt_log_page(mpt), mid = mpt_log_mid(mpt);
	uint64_t index = le64_to_cpu(mpt->xlat.base) + (pos >> log);
	enum found found = FOUND;
	uint64_t entry, page;

	if (mpt_mode(mpt) == SKUA_XLAT_DIR) {
		if (mid) {
			found = descend(dev, log, mid, &index, &pos);
			log = mid;
		}
		if (found == FOUND)
			found = descend(dev, log, mpt_log_sub(mpt), &index, &pos);
		if (found != FOUND)
			return found;
		log = mpt_log_sub(mpt);
	}
	if (index >= icm_num(dev, SKUA_ICM_MTT))
		return NONSENSE;
	if (!entry_get(dev, index, need, &entry))
		return MISSED;
	page = 1ull << log;
	if ((entry & SKUA_MTT_ADDR) % page)
		return NONSENSE;
	*bus = (entry & SKUA_MTT_ADDR) + pos % page;
	*room = page - pos % page;
	return FOUND;
}

static enum found find_all(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va,
			   uint32_t len, bool write, struct runs *r)
{
	uint64_t pos = va - le64_to_cpu(mpt->va) + le32_to_cpu(mpt->xlat.offset);

	for (r->num = 0; len; r->num++) {
		struct run *run = &r->run[r->num];
		enum found found;
		uint64_t room;

		if (r->num == RUNS)
			return NONSENSE;
		r->missed = va;
		found = find(dev, mpt, pos, write, &run->bus, &room);
		if (found != FOUND)
			return found;
		run->len = room < len ? (uint32_t)room : len;
		pos += run->len;
		va += run->len;
		len -= run->len;
	}
	return FOUND;
}

/* Note the missing page at @missed, of an access of @len bytes at @va. */
static enum skua_vendor miss(struct skua_dev *dev, const struct mr_who *who,
			     const struct skua_mpt *mpt, uint64_t va, uint32_t len,
			     uint64_t missed, bool write)
{
	uint64_t want = who->want > len ? who->want : len;
	uint64_t room = le64_to_cpu(mpt->len) - (missed - le64_to_cpu(mpt->va));

	if (!who->may_wait) {
		dev->cnt[SKUA_CNT_PAGE_FAULT_ERR]++;
		return SKUA_VENDOR_KEY_FAULT;
	}
	want -= missed - va;
	want = want < room ? want : room;
	dev->miss = (struct mr_miss){
		.va = missed,
		.key = le32_to_cpu(mpt->key),
		.len = want < UINT32_MAX ? (uint32_t)want : UINT32_MAX,
		.write = write,
	};
	return SKUA_VENDOR_MISS;
}

static enum skua_vendor map(struct skua_dev *dev, const struct mr_who *who,
			    const struct skua_mpt *mpt, uint64_t va, uint32_t len, bool write,
			    struct runs *r)
{
	switch (find_all(dev, mpt, va, len, write, r)) {
	case FOUND:
		return SKUA_VENDOR_NONE;
	case MISSED:
		return miss(dev, who, mpt, va, len, r->missed, write);
	default:
		return SKUA_VENDOR_KEY_DMA;
	}
}

static enum skua_vendor move(struct skua_dev *dev, const struct runs *r, uint8_t *buf, bool write)
{
	for (unsigned int i = 0; i < r->num; i++) {
		const struct run *run = &r->run[i];

		if (write ? dma_write(dev, TLP_PAYLOAD, run->bus, buf, run->len) :
			    dma_read(dev, TLP_PAYLOAD, run->bus, buf, run->len))
			return SKUA_VENDOR_KEY_DMA;
		buf += run->len;
	}
	return SKUA_VENDOR_NONE;
}

enum skua_vendor odp_copy(struct skua_dev *dev, const struct mr_who *who,
			  const struct skua_mpt *mpt, uint64_t va, uint8_t *buf, uint32_t len,
			  bool write)
{
	struct runs r;
	enum skua_vendor err = map(dev, who, mpt, va, len, write, &r);

	return err ? err : move(dev, &r, buf, write);
}

enum skua_vendor odp_change(struct skua_dev *dev, const struct mr_who *who,
			    const struct skua_mpt *mpt, uint64_t va,
			    uint64_t (*change)(uint64_t val, const void *arg), const void *arg,
			    uint64_t *old)
{
	enum skua_vendor err;
	__le64 val, new;
	struct runs r;

	err = map(dev, who, mpt, va, sizeof(val), true, &r);
	if (!err)
		err = move(dev, &r, (uint8_t *)&val, false);
	if (err)
		return err;
	*old = le64_to_cpu(val);
	new = cpu_to_le64(change(*old, arg));
	return new == val ? SKUA_VENDOR_NONE : move(dev, &r, (uint8_t *)&new, true);
}

enum skua_vendor odp_probe(struct skua_dev *dev, const struct mr_who *who,
			   const struct skua_mpt *mpt, uint64_t va, uint64_t len)
{
	bool write = who->access & SKUA_ACCESS_REMOTE_WRITE;
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct mr_who part = *who;
	struct runs r;

	while (len && !err) {
		uint32_t n = len < 1u << MODEL_LOG_PAGE_MIN ? (uint32_t)len :
							       1u << MODEL_LOG_PAGE_MIN;

		err = map(dev, &part, mpt, va, n, write, &r);
		part.want = part.want > n ? part.want - n : 0;
		va += n;
		len -= n;
	}
	return err;
}

/* Pages that are not mapped any more were written back when they were unmapped. */
enum skua_vendor odp_flush(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va)
{
	struct runs r;
	uint8_t byte;

	return find_all(dev, mpt, va, sizeof(byte), false, &r) == FOUND ?
	       move(dev, &r, &byte, false) : SKUA_VENDOR_NONE;
}
