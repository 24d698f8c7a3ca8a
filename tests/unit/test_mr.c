// SPDX-License-Identifier: GPL-2.0
/* Keys: checks of every access, and translation against a plain picture of it. */
#include <errno.h>
#include <linux/pci_regs.h>

#include "core_test.h"

#define VA	0x7f0000001234ull

static const struct mr_who writer = { .pd = MINI_PD, .access = SKUA_ACCESS_LOCAL_WRITE };
static const struct mr_who reader = { .pd = MINI_PD };

static int create(struct rig *r, const struct skua_mpt *mpt)
{
	return mini_cmd(&r->m, SKUA_CMD_CREATE_MPT, mpt, sizeof(*mpt), NULL, 0);
}

/* A region that is right, of one 4 KiB page list entry. */
static struct skua_mpt good_mpt(struct rig *r, uint32_t mode)
{
	struct skua_mpt mpt = {
		.key = cpu_to_le32(r->m.next_mpt++ << 8 | 0x77),
		.flags = cpu_to_le32(SKUA_MPT_VALID),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE),
		.pd = cpu_to_le32(MINI_PD),
		.va = cpu_to_le64(VA),
		.len = cpu_to_le64(4096 - 0x234),
		.xlat.offset = cpu_to_le32(0x234),
		.xlat.mode = cpu_to_le32(mode | (mode ? 12 << 8 : 0)),
	};

	if (mode == SKUA_XLAT_CONTIG)
		mpt.xlat.base = cpu_to_le64(fake_alloc(&r->f, 4096, 4096));
	else
		mpt.npages = cpu_to_le32(1);
	if (mode == SKUA_XLAT_INLINE)
		mpt.page[0] = cpu_to_le64(fake_alloc(&r->f, 4096, 4096) | SKUA_MTT_PRESENT |
					  SKUA_MTT_WRITE);
	return mpt;
}

static void create_checks(void **state)
{
	static const uint32_t modes[] = { SKUA_XLAT_CONTIG, SKUA_XLAT_MTT, SKUA_XLAT_INLINE };
	struct rig *r = *state;

	for (unsigned int i = 0; i < 3; i++) {
		const struct skua_mpt good = good_mpt(r, modes[i]);
		bool list = modes[i] != SKUA_XLAT_CONTIG;
		struct skua_mpt in;

#define refuse(status, change) do { in = good; change; assert_status(create(r, &in), status); } while (0)
		refuse(BAD_PARAM, in.flags = cpu_to_le32(SKUA_MPT_INVALID));
		refuse(BAD_PARAM, in.flags = cpu_to_le32(SKUA_MPT_FREE));
		refuse(BAD_PARAM, in.flags = cpu_to_le32(3));
		refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_MPT_MW2 << 4));
		if (modes[i] != SKUA_XLAT_MTT)
			refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_MPT_ODP));
		refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_MPT_DM);
		       in.xlat.base = cpu_to_le64(SKUA_BAR_DM_SIZE));
		refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_MPT_FAST_REG));
		refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_MPT_NULL));
		refuse(BAD_PARAM, in.flags |= cpu_to_le32(1u << 31));
		refuse(BAD_PARAM, in.access = cpu_to_le32(1u << 9));
		refuse(BAD_PARAM, in.parent = cpu_to_le32(1));
		refuse(BAD_PARAM, in.qpn = cpu_to_le32(1));
		refuse(BAD_PARAM, in.windows = cpu_to_le32(1));
		refuse(BAD_PARAM, in.va = cpu_to_le64(0ull - 0xfff + 0x234));
		refuse(BAD_PARAM, in.xlat.mode |= cpu_to_le32(1u << 7));
		refuse(BAD_PARAM, in.xlat.mode |= cpu_to_le32(3));
		refuse(BAD_INDEX, in.key = cpu_to_le32(0x77));
		refuse(BAD_INDEX, in.key = cpu_to_le32(1u << (MINI_LOG_MPT + 8)));
		refuse(BAD_INDEX, in.key = cpu_to_le32(0xffffffff));
		refuse(NO_ICM, in.key = cpu_to_le32(MINI_MAPPED << 8));
		refuse(BAD_PARAM, in.npages = cpu_to_le32(list ? 0 : 1));
		if (list) {
			refuse(BAD_PARAM, in.len = cpu_to_le64(4096 - 0x233));
			refuse(BAD_PARAM, in.xlat.offset = cpu_to_le32(4096));
			refuse(BAD_PARAM, in.xlat.offset = cpu_to_le32(0x235));
			refuse(BAD_PARAM, in.len = cpu_to_le64(0xffffffffffffffffull); in.va = 0);
			refuse(BAD_PARAM, le32p_replace_bits(&in.xlat.mode, 11, SKUA_XLAT_LOG_PAGE));
			refuse(BAD_PARAM, le32p_replace_bits(&in.xlat.mode, 32, SKUA_XLAT_LOG_PAGE));
		} else {
			refuse(BAD_PARAM, in.xlat.base = cpu_to_le64(0xfffffffffffff001ull));
		}
		if (modes[i] == SKUA_XLAT_MTT) {
			refuse(BAD_PARAM, in.xlat.base = cpu_to_le64(1u << MINI_LOG_MTT));
			refuse(BAD_PARAM, in.xlat.base = cpu_to_le64(0xffffffffffffffffull));
			refuse(BAD_PARAM, in.npages = cpu_to_le32((1u << MINI_LOG_MTT) + 1));
		}
		if (modes[i] == SKUA_XLAT_INLINE)
			refuse(BAD_PARAM, in.npages = cpu_to_le32(SKUA_MPT_INLINE_PAGES + 1));
		else
			refuse(BAD_PARAM, in.page[7] = cpu_to_le64(1));
		refuse(OK, );
		refuse(EXISTS, );
		refuse(EXISTS, in.key ^= cpu_to_le32(1));
#undef refuse
	}
}

static void rights(void **state)
{
	struct rig *r = *state;
	uint64_t mem = fake_alloc(&r->f, 8192, 4096);
	uint32_t key = mini_mr(&r->m, VA, mem, 8192, SKUA_ACCESS_LOCAL_WRITE |
			       SKUA_ACCESS_REMOTE_READ);
	uint32_t ro = mini_mr(&r->m, VA, mem, 8192, 0);
	struct mr_who remote = { .pd = MINI_PD, .remote = true, .access = SKUA_ACCESS_REMOTE_READ };
	struct mr_who other = { .pd = MINI_PD + 1 };
	uint64_t word = 1;

#define check(who, key, va, len) mr_check(r->f.dev, who, key, va, len)
	assert_int_equal(check(&reader, key, VA, 8192), SKUA_VENDOR_NONE);
	assert_int_equal(check(&writer, key, VA, 8192), SKUA_VENDOR_NONE);
	assert_int_equal(check(&remote, key, VA, 8192), SKUA_VENDOR_NONE);
	assert_int_equal(check(&remote, ro, VA, 1), SKUA_VENDOR_KEY_ACCESS);
	assert_int_equal(check(&writer, ro, VA, 1), SKUA_VENDOR_KEY_ACCESS);
	remote.access = SKUA_ACCESS_REMOTE_WRITE;
	assert_int_equal(check(&remote, key, VA, 1), SKUA_VENDOR_KEY_ACCESS);
	assert_int_equal(check(&other, key, VA, 1), SKUA_VENDOR_KEY_PD);
	/* The variant, the number, keys that never exist. */
	for (unsigned int bit = 0; bit < 32; bit++) {
		uint32_t wrong = key ^ 1u << bit;

		if (wrong != ro)
			assert_int_equal(check(&reader, wrong, VA, 1), SKUA_VENDOR_KEY_INVALID);
	}
	assert_int_equal(check(&reader, SKUA_INVALID_LKEY, VA, 1), SKUA_VENDOR_KEY_INVALID);
	assert_int_equal(check(&reader, SKUA_RESERVED_LKEY, mem, 1), SKUA_VENDOR_KEY_INVALID);
	/* Nothing is always allowed. */
	assert_int_equal(check(&other, 0xffffffff, 0, 0), SKUA_VENDOR_NONE);
	/* Bounds. */
	assert_int_equal(check(&reader, key, VA - 1, 1), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, VA, 8193), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, VA + 8191, 1), SKUA_VENDOR_NONE);
	assert_int_equal(check(&reader, key, VA + 8191, 2), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, VA + 8192, 1), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, 0xffffffffffffffffull, 2), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, VA + 1, 0xffffffffffffffffull), SKUA_VENDOR_KEY_BOUNDS);
	assert_int_equal(check(&reader, key, 0xfffffffffffff000ull, 0x7f0000004000ull),
			 SKUA_VENDOR_KEY_BOUNDS);
	/* What is refused moves nothing. */
	assert_int_equal(mr_write(r->f.dev, &writer, ro, VA, &word, 8), SKUA_VENDOR_KEY_ACCESS);
	assert_int_equal(*(uint64_t *)fake_ptr(&r->f, mem), 0);
#undef check
}

static uint64_t same(uint64_t val, const void *arg)
{
	(void)arg;
	return val;
}

/* An atomic that changes nothing, such as a comparison that fails, does not write. */
static void atomic_same(void **state)
{
	struct rig *r = *state;
	uint64_t mem = fake_alloc(&r->f, 4096, 4096), old, writes;
	uint32_t key = mini_mr(&r->m, VA, mem, 4096, SKUA_ACCESS_LOCAL_WRITE);

	memset(fake_ptr(&r->f, mem), 0x5a, 8);
	writes = r->f.writes;
	assert_int_equal(mr_atomic(r->f.dev, &writer, key, VA, same, NULL, &old), 0);
	assert_int_equal(old, 0x5a5a5a5a5a5a5a5aull);
	assert_int_equal(r->f.writes, writes);
}

static void reserved_lkey(void **state)
{
	struct rig *r = *state;
	struct mr_who kernel = { .pd = 999, .reserved_lkey = true,
				 .access = SKUA_ACCESS_LOCAL_WRITE };
	uint64_t mem = fake_alloc(&r->f, 64, 64);
	uint64_t word = 0x1122334455667788ull;

	assert_int_equal(mr_write(r->f.dev, &kernel, SKUA_RESERVED_LKEY, mem, &word, 8), 0);
	assert_int_equal(*(uint64_t *)fake_ptr(&r->f, mem), word);
	assert_int_equal(mr_write(r->f.dev, &kernel, SKUA_RESERVED_LKEY, 0x1000, &word, 8),
			 SKUA_VENDOR_KEY_DMA);
	assert_int_equal(mr_check(r->f.dev, &kernel, SKUA_RESERVED_LKEY, 0xfffffffffffffff8ull, 9),
			 SKUA_VENDOR_KEY_BOUNDS);
	/* Never from the wire. */
	kernel.remote = true;
	assert_int_equal(mr_check(r->f.dev, &kernel, SKUA_RESERVED_LKEY, mem, 8),
			 SKUA_VENDOR_KEY_INVALID);
}

/* Random copies through a page list, beside the same ones in one plain buffer. */
static void translate(struct rig *r, uint32_t log_page, uint32_t npages, uint32_t offset,
		      bool in_mpt)
{
	uint64_t size = (uint64_t)npages << log_page;
	uint64_t len = size - offset - 5;
	uint8_t *plain = calloc(1, size), *buf = malloc(size);
	uint64_t *page = calloc(npages, sizeof(*page));
	uint32_t rng = log_page * 7 + npages, key;

	for (uint32_t i = 0; i < npages; i++)
		page[i] = fake_alloc(&r->f, 1ull << log_page, 1ull << log_page);
	/* Some follow each other on the bus, some go backwards. */
	for (uint32_t i = 3; i + 1 < npages; i += 4) {
		uint64_t t = page[i];

		page[i] = page[i + 1];
		page[i + 1] = t;
	}
	if (in_mpt) {
		struct skua_mpt mpt = good_mpt(r, SKUA_XLAT_INLINE);

		le32p_replace_bits(&mpt.xlat.mode, log_page, SKUA_XLAT_LOG_PAGE);
		mpt.xlat.offset = cpu_to_le32(offset);
		mpt.npages = cpu_to_le32(npages);
		mpt.len = cpu_to_le64(len);
		for (uint32_t i = 0; i < npages; i++)
			mpt.page[i] = cpu_to_le64(page[i] | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
		assert_status(create(r, &mpt), OK);
		key = le32_to_cpu(mpt.key);
	} else {
		key = mini_mr_mtt(&r->m, VA, page, npages, log_page, offset, len,
				  SKUA_ACCESS_LOCAL_WRITE);
	}
	for (unsigned int i = 0; i < 300; i++) {
		uint64_t at, n;

		rng = rng * 1664525 + 1013904223;
		at = rng % len;
		rng = rng * 1664525 + 1013904223;
		n = rng % (len - at) + 1;
		for (uint64_t k = 0; k < n; k++)
			buf[k] = (uint8_t)(i + k * 31);
		if (i & 1) {
			memcpy(plain + at, buf, n);
			assert_int_equal(mr_write(r->f.dev, &writer, key, VA + at, buf, n), 0);
		} else {
			assert_int_equal(mr_read(r->f.dev, &reader, key, VA + at, buf, n), 0);
			assert_memory_equal(buf, plain + at, n);
		}
	}
	/* And where the pages are, byte by byte. */
	for (uint64_t i = 0; i < len; i++) {
		uint64_t pos = i + offset;
		const uint8_t *p = fake_ptr(&r->f, page[pos >> log_page]);

		assert_int_equal(p[pos & ((1u << log_page) - 1)], plain[i]);
	}
	free(plain);
	free(buf);
	free(page);
}

static void translation(void **state)
{
	struct rig *r = *state;

	translate(r, 12, 1, 0, false);
	translate(r, 12, 9, 0xfff, false);
	translate(r, 12, 40, 1, false);
	translate(r, 16, 5, 0x8000, false);
	translate(r, 12, 8, 3, true);
	translate(r, 13, 2, 0x1fff, true);
}

static void not_present(void **state)
{
	struct rig *r = *state;
	uint64_t page[3] = { 0 };
	__le64 *mtt;
	uint8_t buf[64] = { 0 };
	uint32_t key;

	for (unsigned int i = 0; i < 3; i++)
		page[i] = fake_alloc(&r->f, 4096, 4096);
	key = mini_mr_mtt(&r->m, 0, page, 3, 12, 0, 3 * 4096, SKUA_ACCESS_LOCAL_WRITE);
	mtt = mini_icm(&r->m, SKUA_ICM_MTT, r->m.next_mtt - 3);
	mtt[1] = cpu_to_le64(page[1] | SKUA_MTT_PRESENT);
	mtt[2] = cpu_to_le64(page[2] | SKUA_MTT_WRITE);
	assert_int_equal(mr_write(r->f.dev, &writer, key, 4064, buf, 32), SKUA_VENDOR_NONE);
	assert_int_equal(mr_write(r->f.dev, &writer, key, 4064, buf, 33), SKUA_VENDOR_KEY_DMA);
	assert_int_equal(mr_read(r->f.dev, &reader, key, 4064, buf, 33), SKUA_VENDOR_NONE);
	assert_int_equal(mr_read(r->f.dev, &reader, key, 8191, buf, 2), SKUA_VENDOR_KEY_DMA);
	fake_hole(&r->f, page[0], 1);
	assert_int_equal(mr_read(r->f.dev, &reader, key, 0, buf, 8), SKUA_VENDOR_KEY_DMA);
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

static void null_region(void **state)
{
	struct rig *r = *state;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(200 << 8 | 1),
		.flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_NULL),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE),
		.pd = cpu_to_le32(MINI_PD),
		.len = cpu_to_le64(0xffffffffffffffffull),
	};
	uint64_t word = 5, writes;

	assert_status(create(r, &mpt), OK);
	writes = r->f.writes;
	assert_int_equal(mr_write(r->f.dev, &writer, 200 << 8 | 1, 0x1000, &word, 8), 0);
	assert_int_equal(r->f.writes, writes);
	assert_int_equal(mr_read(r->f.dev, &reader, 200 << 8 | 1, 0x1000, &word, 8), 0);
	assert_int_equal(word, 0);
}

/* A region in device memory: what BAR 4 shows is what work requests see. */
static void device_memory(void **state)
{
	struct rig *r = *state;
	const struct skua_mpt good = {
		.key = cpu_to_le32(200 << 8 | 1),
		.flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_DM),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE),
		.pd = cpu_to_le32(MINI_PD),
		.len = cpu_to_le64(8192),
		.xlat.base = cpu_to_le64(SKUA_BAR_DM_SIZE - 8192),
	};
	struct skua_mpt in;
	uint8_t got[5];
	uint64_t word;

#define refuse(change) do { in = good; change; assert_status(create(r, &in), BAD_PARAM); } while (0)
	refuse(in.len = cpu_to_le64(8193));
	refuse(in.xlat.offset = cpu_to_le32(1));
	refuse(in.xlat.base = cpu_to_le64(~0ull); in.xlat.offset = cpu_to_le32(1));
	refuse(in.xlat.base = cpu_to_le64(SKUA_BAR_DM_SIZE + 1); in.len = 0);
	refuse(in.npages = cpu_to_le32(1));
	refuse(in.flags |= cpu_to_le32(SKUA_MPT_NULL));
	refuse(in.xlat.mode = cpu_to_le32(SKUA_XLAT_INLINE | 12 << 8); in.npages = cpu_to_le32(1);
	       in.len = cpu_to_le64(4096));
#undef refuse
	in = good;
	assert_status(create(r, &in), OK);

	word = r->f.writes;
	assert_int_equal(mr_write(r->f.dev, &writer, 200 << 8 | 1, 8187, "abcde", 5), 0);
	assert_int_equal(r->f.writes, word);
	skua_dev_bar_read(r->f.dev, SKUA_BAR_DM, SKUA_BAR_DM_SIZE - 8, &word, 8);
	assert_memory_equal((char *)&word + 3, "abcde", 5);
	skua_dev_bar_write(r->f.dev, SKUA_BAR_DM, SKUA_BAR_DM_SIZE - 4, "WXYZ", 4);
	assert_int_equal(mr_read(r->f.dev, &reader, 200 << 8 | 1, 8187, got, 5), 0);
	assert_memory_equal(got, "aWXYZ", 5);
	assert_int_equal(mr_read(r->f.dev, &reader, 200 << 8 | 1, 8188, got, 5),
			 SKUA_VENDOR_KEY_BOUNDS);
	/* The next owner finds nothing of it. */
	skua_dev_reset(r->f.dev, SKUA_RESET_FLR);
	skua_dev_bar_read(r->f.dev, SKUA_BAR_DM, SKUA_BAR_DM_SIZE - 8, &word, 8);
	assert_true(word == 0 || word == ~0ull);
}

#define DM_BUS	0x7ffff0000000ull

/* Other functions get at device memory at the place that the BAR was given, no further. */
static void peers(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	__le64 bar = cpu_to_le64(DM_BUS);
	char got[8];

	assert_int_equal(skua_dev_peer_read(dev, 0, got, 8), -EFAULT);
	skua_dev_cfg_write(dev, PCI_BASE_ADDRESS_0 + 4 * SKUA_BAR_DM, &bar, sizeof(bar));
	assert_int_equal(skua_dev_peer_write(dev, DM_BUS + 4093, "abcdefgh", 8), 0);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS + 4093, got, 8), 0);
	assert_memory_equal(got, "abcdefgh", 8);
	skua_dev_bar_read(dev, SKUA_BAR_DM, 4096, got, 4);
	assert_memory_equal(got, "defg", 4);

	assert_int_equal(skua_dev_peer_read(dev, DM_BUS + SKUA_BAR_DM_SIZE - 8, got, 8), 0);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS + SKUA_BAR_DM_SIZE - 7, got, 8), -EFAULT);
	assert_int_equal(skua_dev_peer_write(dev, DM_BUS + SKUA_BAR_DM_SIZE - 7, "ABCDEFGH", 8),
			 -EFAULT);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS - 1, got, 8), -EFAULT);
	assert_int_equal(skua_dev_peer_read(dev, ~0ull, got, 8), -EFAULT);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS + SKUA_BAR_DM_SIZE - 8, got, 8), 0);
	assert_memory_equal(got, "\0\0\0\0\0\0\0\0", 8);

	/* A page boundary makes two requests of one. */
	assert_counts(&r->m, TLP_MWR_RX, 2, skua_dev_peer_write(dev, DM_BUS + 4093, "xxxxxxxx", 8));
	assert_counts(&r->m, TLP_MWR_RX_BYTES, 8, skua_dev_peer_write(dev, DM_BUS, "xxxxxxxx", 8));
	assert_counts(&r->m, TLP_MRD_RX, 1, skua_dev_peer_read(dev, DM_BUS, got, 8));
	/* The function does not answer at its BARs. */
	fake_bus(&r->f, false, true);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS, got, 8), -EFAULT);
	fake_bus(&r->f, true, true);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS, got, 8), 0);
	/* As the host bridge does, it forgets by a reset of the bus where they are. */
	skua_dev_reset(dev, SKUA_RESET_FLR);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS, got, 8), -EFAULT);
	fake_bus(&r->f, true, true);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS, got, 8), 0);
	skua_dev_reset(dev, SKUA_RESET_POWER);
	fake_bus(&r->f, true, true);
	assert_int_equal(skua_dev_peer_read(dev, DM_BUS, got, 8), -EFAULT);
}

static void modify_and_destroy(void **state)
{
	struct rig *r = *state;
	uint64_t a = fake_alloc(&r->f, 64, 64), b = fake_alloc(&r->f, 64, 64);
	struct skua_mpt mpt = good_mpt(r, SKUA_XLAT_CONTIG);
	uint32_t key = le32_to_cpu(mpt.key);
	struct skua_mpt out;
	uint64_t word;

	*(uint64_t *)fake_ptr(&r->f, a) = 0xaaaa;
	*(uint64_t *)fake_ptr(&r->f, b) = 0xbbbb;
	mpt.xlat.offset = 0;
	mpt.xlat.base = cpu_to_le64(a);
	mpt.len = cpu_to_le64(64);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_MPT, &mpt, sizeof(mpt), NULL, 0), BAD_INDEX);
	assert_status(create(r, &mpt), OK);
	mr_read(r->f.dev, &reader, key, VA, &word, 8);
	assert_int_equal(word, 0xaaaa);
	mpt.xlat.base = cpu_to_le64(b);
	mpt.key = cpu_to_le32(key ^ 0xff);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_MPT, &mpt, sizeof(mpt), NULL, 0), OK);
	assert_int_equal(mr_read(r->f.dev, &reader, key, VA, &word, 8), SKUA_VENDOR_KEY_INVALID);
	key ^= 0xff;
	assert_int_equal(mr_read(r->f.dev, &reader, key, VA, &word, 8), 0);
	assert_int_equal(word, 0xbbbb);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_MPT, key, &out, sizeof(out)), OK);
	assert_memory_equal(&out, &mpt, sizeof(mpt));
	mpt.flags = cpu_to_le32(SKUA_MPT_FREE);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_MPT, &mpt, sizeof(mpt), NULL, 0), BAD_PARAM);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_MPT, key, NULL, 0), OK);
	assert_int_equal(mr_read(r->f.dev, &reader, key, VA, &word, 8), SKUA_VENDOR_KEY_INVALID);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_MPT, key, NULL, 0), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_MPT, 0xffffffff, NULL, 128), BAD_INDEX);
}

/* What an analyser on the link would count. */
static void tlps(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t len;
		unsigned int mwr, mrd, cpld;
	} cases[] = {
		{ 0, 1, 1, 1, 1 },
		{ 0, 64, 1, 1, 1 },
		{ 0, 256, 1, 1, 1 },
		{ 0, 257, 2, 1, 2 },
		{ 0, 512, 2, 1, 2 },
		{ 0, 513, 3, 2, 3 },
		{ 0, 4096, 16, 8, 16 },
		{ 63, 256, 1, 1, 2 },
		{ 4095, 2, 2, 2, 2 },
		{ 4032, 128, 2, 2, 2 },
		{ 4096, 8192, 32, 16, 32 },
		{ 4064, 4096 + 64, 1 + 16 + 1, 1 + 8 + 1, 1 + 16 + 1 },
		/* Each request is completed by itself: 224, 256 and 32 bytes. */
		{ 32, 512, 2, 1, 3 },
		{ 32, 1024, 4, 2, 6 },
		{ 32, 1024 + 224, 5, 3, 6 + 1 },
		{ 32, 1024 + 225, 5, 3, 6 + 2 },
		{ 3616, 512, 2 + 1, 2, 2 + 1 },
	};
	struct rig *r = *state;
	uint64_t mem = fake_alloc(&r->f, 16384, 4096);
	static uint8_t buf[16384];

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_counts(&r->m, TLP_MWR_TX, cases[i].mwr,
			      dma_write(r->f.dev, TLP_OTHER, mem + cases[i].off, buf, cases[i].len));
		assert_counts(&r->m, TLP_MRD_TX, cases[i].mrd,
			      dma_read(r->f.dev, TLP_OTHER, mem + cases[i].off, buf, cases[i].len));
		assert_counts(&r->m, TLP_CPLD_RX, cases[i].cpld,
			      dma_read(r->f.dev, TLP_OTHER, mem + cases[i].off, buf, cases[i].len));
		assert_counts(&r->m, TLP_MRD_TX_BYTES, cases[i].len,
			      dma_read(r->f.dev, TLP_OTHER, mem + cases[i].off, buf, cases[i].len));
	}
	assert_counts(&r->m, DMA_ERR, 1, dma_read(r->f.dev, TLP_OTHER, 0x1000, buf, 8));
	assert_counts(&r->m, DMA_ERR, 1, dma_read(r->f.dev, TLP_OTHER, 0xfffffffffffffffcull, buf, 8));
	assert_counts(&r->m, TLP_MSIX, 1, dma_msix(r->f.dev, 3));
	/* An 8-byte doorbell is one write. */
	assert_counts(&r->m, TLP_MWR_RX, 1, fake_db(&r->f, 0, SKUA_UAR_SQ, 0, 0));
	assert_counts(&r->m, TLP_MWR_RX_BYTES, 8, fake_db(&r->f, 0, SKUA_UAR_SQ, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(create_checks),
		rig_test(rights),
		rig_test(atomic_same),
		rig_test(reserved_lkey),
		rig_test(translation),
		rig_test(not_present),
		rig_test(null_region),
		rig_test(device_memory),
		rig_test(peers),
		rig_test(modify_and_destroy),
		rig_test(tlps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
