// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of the device, and the layout of its tables in ICM.
 *
 * The tables are as large as the device allows, because only parts that are used take up
 * host memory.
 */
#include <kunit/visibility.h>
#include <linux/random.h>

#include "skua.h"

/* QPNs 0 and 1 are reserved for special QPs (the GSI QP is created with number 1). */
#define SKUA_QP_FIRST		2
/* 0 is not used, so that a number that was not filled in is invalid. */
#define SKUA_OBJ_FIRST		1
#define SKUA_NUM_BITS		24
#define SKUA_LOG_EQ_MAX		16
/* Limit of the ring size. */
#define SKUA_LOG_CQ_MAX		22

static u32 skua_pow2(unsigned int log)
{
	return BIT(min(log, 31U));
}

static u64 skua_pow2_64(unsigned int log)
{
	return BIT_ULL(min(log, 63U));
}

static bool skua_icm_desc_ok(u32 entry_size, u32 log_num)
{
	return is_power_of_2(entry_size) && entry_size <= SKUA_ICM_CHUNK_SIZE &&
	       log_num < SKUA_ICM_ADDR_BITS &&
	       log_num + ilog2(entry_size) < SKUA_ICM_ADDR_BITS;
}

/* The fewest entries of table @id that are of use to the driver. */
static u32 skua_icm_min(unsigned int id)
{
	switch (id) {
	case SKUA_ICM_MPT:
	case SKUA_ICM_CQC:
		return SKUA_OBJ_FIRST + 1;
	case SKUA_ICM_EQC:
		return SKUA_EQN_COMP + 1;
	default:
		return 1;
	}
}

/* Lay the tables out one after the other. */
static int skua_profile_tables(struct skua_dev *dev, const struct skua_cmd_query_device_out *out,
			       struct skua_cmd_init_device_in *in)
{
	u64 base = 0;
	unsigned int i;

	for (i = 0; i < SKUA_ICM_TABLES_MAX; i++) {
		u32 entry_size = le32_to_cpu(out->icm[i].entry_size);
		u32 log_num = le32_to_cpu(out->icm[i].log_max);
		struct skua_icm_tbl *t = &dev->icm[i];

		if (!entry_size && i >= SKUA_ICM_TABLES)
			continue;
		/* MTT entries are written by the driver, so their size is fixed. */
		if (!skua_icm_desc_ok(entry_size, log_num) ||
		    (i == SKUA_ICM_MTT && entry_size != SKUA_ICM_MTT_SIZE)) {
			dev_err(dev->dev,
				"QUERY_DEVICE: ICM table %u has 2^%u entries of %u bytes: size must be a power of two up to %u (MTT: %u), the table at most 2^%u bytes\n",
				i, log_num, entry_size, SKUA_ICM_CHUNK_SIZE, SKUA_ICM_MTT_SIZE,
				SKUA_ICM_ADDR_BITS - 1);
			return -EPROTO;
		}
		if (skua_pow2(log_num) < skua_icm_min(i)) {
			dev_err(dev->dev, "QUERY_DEVICE: ICM table %u has %u entries, must be at least %u\n",
				i, skua_pow2(log_num), skua_icm_min(i));
			return -EPROTO;
		}
		/* A table that the driver does not know gets one entry, which is not used. */
		if (i >= SKUA_ICM_TABLES)
			log_num = 0;
		/* Indices are 24 bits wide wherever they are named, but for MTT. */
		else if (i != SKUA_ICM_MTT)
			log_num = min(log_num, (u32)SKUA_NUM_BITS);
		skua_icm_table_init(t, 0, entry_size, log_num);
		/* A chunk is aligned to its size, so the whole table is to ICM pages. */
		t->base = ALIGN(base, t->chunk_size);
		base = t->base + max((u64)entry_size << log_num, (u64)t->chunk_size);
		in->icm[i].base = cpu_to_le64(t->base);
		in->icm[i].log_num = cpu_to_le32(log_num);
	}
	if (base > BIT_ULL(SKUA_ICM_ADDR_BITS)) {
		dev_err(dev->dev, "QUERY_DEVICE: ICM tables of %#llx bytes exceed 2^%u\n", base,
			SKUA_ICM_ADDR_BITS);
		return -EPROTO;
	}
	return 0;
}

static u32 skua_table_num(const struct skua_dev *dev, enum skua_icm_table id)
{
	return skua_pow2(dev->icm[id].log_num);
}

/* Limits that follow from the sizes of the ICM tables. */
static void skua_profile_objects(struct skua_dev *dev,
				 const struct skua_cmd_query_device_out *out)
{
	struct skua_limits *lim = &dev->limits;
	u32 qps = min3(skua_table_num(dev, SKUA_ICM_SQC), skua_table_num(dev, SKUA_ICM_RQC),
		       skua_table_num(dev, SKUA_ICM_RRC));

	if (lim->caps & SKUA_CAP_SR)
		qps = min(qps, skua_table_num(dev, SKUA_ICM_LRC));
	dev->qpn_bits = clamp(out->qpn_bits, 1, SKUA_NUM_BITS);
	lim->qpn_bits = dev->qpn_bits;
	qps = min(qps, skua_pow2(dev->qpn_bits));
	/* QPN 0xffffff is the multicast one. */
	qps = min(qps, skua_pow2(SKUA_NUM_BITS) - 1);
	lim->max_qp = qps > SKUA_QP_FIRST ? qps - SKUA_QP_FIRST : 0;
	lim->max_cq = skua_table_num(dev, SKUA_ICM_CQC) - SKUA_OBJ_FIRST;
	lim->max_srq = skua_table_num(dev, SKUA_ICM_SRQC) - SKUA_OBJ_FIRST;
	lim->max_mr = skua_table_num(dev, SKUA_ICM_MPT) - SKUA_OBJ_FIRST;
	/* Allocated in groups. */
	lim->max_mtt = ALIGN_DOWN(BIT_ULL(dev->icm[SKUA_ICM_MTT].log_num), SKUA_MTT_GROUP);
	lim->max_gids = min_t(u32, le16_to_cpu(out->max_gids), skua_table_num(dev, SKUA_ICM_GID));
	lim->max_flows = skua_table_num(dev, SKUA_ICM_FLOW);
	lim->max_rss = skua_table_num(dev, SKUA_ICM_RSS);
	lim->max_mcg = skua_table_num(dev, SKUA_ICM_MCG);
	/* The first entry has the counters of the device. */
	lim->max_sets = skua_table_num(dev, SKUA_ICM_CNT) - 1;
	dev->max_vectors = min3((u32)le16_to_cpu(out->msix_vectors),
				(u32)SKUA_MSIX_VECTORS_MAX,
				skua_table_num(dev, SKUA_ICM_EQC) - SKUA_EQN_COMP);
	lim->max_uar = skua_pow2(out->log_uars);
}

static void skua_profile_limits(struct skua_dev *dev, const struct skua_cmd_query_device_out *out)
{
	struct skua_limits *lim = &dev->limits;

	lim->caps = le64_to_cpu(out->caps);
	lim->fw_version = le64_to_cpu(out->fw_version);
	lim->node_guid = out->node_guid;
	memcpy(lim->mac, out->mac, sizeof(lim->mac));
	lim->max_mtu = le16_to_cpu(out->max_mtu);
	lim->max_sq_blocks = skua_pow2(out->log_max_sq);
	lim->max_rq_wqes = skua_pow2(out->log_max_rq);
	lim->max_rq_sge = out->max_rq_sge;
	lim->max_wqe_blocks = out->max_wqe_blocks;
	lim->max_inline = le16_to_cpu(out->max_inline);
	lim->push_segs = min_t(u8, out->push_segs, SKUA_PUSH_SEGS);
	lim->max_cqe = skua_pow2(min_t(u32, out->log_max_cq, SKUA_LOG_CQ_MAX));
	lim->max_eqe = skua_pow2(min_t(u32, out->log_max_eq, SKUA_LOG_EQ_MAX));
	lim->max_rd_atomic = out->max_rd_atomic;
	lim->max_msg = skua_pow2_64(out->log_max_msg);
	lim->max_mr_len = skua_pow2_64(out->log_max_mr_len);
	lim->page_sizes = GENMASK_ULL(out->log_max_page, out->log_min_page);
	lim->path_mtu_max = out->active_mtu_max;
	lim->clock_khz = le32_to_cpu(out->clock_khz);
	lim->dm_size = le32_to_cpu(out->dm_size);
	lim->rate_min = le32_to_cpu(out->rate_min);
	lim->rate_max = le32_to_cpu(out->rate_max);
	lim->rate_burst_max = le32_to_cpu(out->rate_burst_max);
	lim->turn_wqes = le16_to_cpu(out->turn_wqes);
	lim->turn_bytes = le32_to_cpu(out->turn_bytes);
}

static int skua_profile_check(struct skua_dev *dev, const struct skua_cmd_query_device_out *out)
{
	if (le32_to_cpu(out->size) < sizeof(*out) || out->ports != 1 ||
	    out->log_min_page < SKUA_ICM_PAGE_SHIFT || out->log_max_page > 63 ||
	    out->log_min_page > out->log_max_page || !le16_to_cpu(out->msix_vectors) ||
	    out->max_wqe_blocks < 2 || out->max_wqe_blocks > SKUA_WQE_MAX_BLOCKS) {
		dev_err(dev->dev,
			"QUERY_DEVICE: size %u (min %zu), ports %u (1), page sizes 2^%u to 2^%u (2^%u to 2^63), MSI-X vectors %u (min 1), WQE blocks %u (2 to %u)\n",
			le32_to_cpu(out->size), sizeof(*out), out->ports, out->log_min_page,
			out->log_max_page, SKUA_ICM_PAGE_SHIFT, le16_to_cpu(out->msix_vectors),
			out->max_wqe_blocks, SKUA_WQE_MAX_BLOCKS);
		return -EPROTO;
	}
	return 0;
}

static void skua_objects_init(struct skua_dev *dev)
{
	const struct skua_limits *lim = &dev->limits;

	skua_obj_table_init(&dev->cqs, SKUA_OBJ_FIRST, lim->max_cq, SKUA_NUM_BITS, SKUA_NUM_BITS);
	skua_obj_table_init(&dev->srqs, SKUA_OBJ_FIRST, lim->max_srq, SKUA_NUM_BITS,
			    SKUA_NUM_BITS);
	skua_obj_table_init(&dev->qps, SKUA_QP_FIRST, SKUA_QP_FIRST + lim->max_qp - 1,
			    dev->qpn_bits, SKUA_NUM_BITS);
	xa_init_flags(&dev->keys, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	atomic_set(&dev->num_keys, 0);
	dev->key_base = get_random_u32_below(lim->max_mr);
	ida_init(&dev->pds);
	ida_init(&dev->xrcds);
	ida_init(&dev->rsss);
	ida_init(&dev->flows);
	ida_init(&dev->mcgs);
	ida_init(&dev->sets);
	mt_init_flags(&dev->mtt, MT_FLAGS_ALLOC_RANGE);
}

static void skua_objects_exit(struct skua_dev *dev)
{
	WARN_ON_ONCE(!mtree_empty(&dev->mtt));
	mtree_destroy(&dev->mtt);
	WARN_ON_ONCE(!ida_is_empty(&dev->sets));
	ida_destroy(&dev->sets);
	WARN_ON_ONCE(!ida_is_empty(&dev->mcgs));
	ida_destroy(&dev->mcgs);
	WARN_ON_ONCE(!ida_is_empty(&dev->flows));
	ida_destroy(&dev->flows);
	WARN_ON_ONCE(!ida_is_empty(&dev->rsss));
	ida_destroy(&dev->rsss);
	WARN_ON_ONCE(!ida_is_empty(&dev->xrcds));
	ida_destroy(&dev->xrcds);
	WARN_ON_ONCE(!ida_is_empty(&dev->pds));
	ida_destroy(&dev->pds);
	WARN_ON_ONCE(!xa_empty(&dev->keys));
	xa_destroy(&dev->keys);
	skua_obj_table_exit(&dev->qps);
	skua_obj_table_exit(&dev->srqs);
	skua_obj_table_exit(&dev->cqs);
}

static void skua_tables_exit(struct skua_dev *dev)
{
	unsigned int i;

	for (i = 0; i < SKUA_ICM_TABLES_MAX; i++)
		skua_icm_table_exit(dev, &dev->icm[i]);
}

/**
 * skua_profile_init() - query the device's limits, lay out ICM and initialize the device
 * @dev: the function, with a command ring
 *
 * Afterwards objects can be created.
 *
 * Return: 0 or a negative errno.
 */
int skua_profile_init(struct skua_dev *dev)
{
	struct skua_cmd_query_device_out *out __free(kfree) = kzalloc(sizeof(*out), GFP_KERNEL);
	struct skua_cmd_init_device_in *in __free(kfree) = kzalloc(sizeof(*in), GFP_KERNEL);
	int err;

	if (!out || !in)
		return -ENOMEM;
	err = skua_cmd_exec(dev, SKUA_CMD_QUERY_DEVICE, NULL, 0, out, sizeof(*out));
	if (!err)
		err = skua_profile_check(dev, out);
	if (err)
		return err;
	skua_profile_limits(dev, out);
	err = skua_profile_tables(dev, out, in);
	if (!err)
		err = skua_cmd_in(dev, SKUA_CMD_INIT_DEVICE, in);
	if (err) {
		skua_tables_exit(dev);
		return err;
	}
	skua_profile_objects(dev, out);
	skua_objects_init(dev);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_profile_init);

/**
 * skua_profile_exit() - free the object and ICM tables
 * @dev: the function, which has been reset or does no more DMA
 */
void skua_profile_exit(struct skua_dev *dev)
{
	skua_objects_exit(dev);
	skua_tables_exit(dev);
}
EXPORT_SYMBOL_IF_KUNIT(skua_profile_exit);
