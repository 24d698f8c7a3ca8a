// SPDX-License-Identifier: GPL-2.0
/* The vfio-user server's view of its client's memory: maps, and what has none. */
#define _GNU_SOURCE
#include "vfu_client.h"

static int dma_unmap_msg(uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_dma_unmap req = {
		.argsz = sizeof(req), .flags = flags, .iova = iova, .size = size
	};
	struct vfu_dma_unmap rep;
	int err = ask(VFU_DMA_UNMAP, &req, sizeof(req), &rep, sizeof(rep));

	if (!err)
		assert_memory_equal(&req, &rep, sizeof(req));
	return err;
}

static void test_dma(void **state)
{
	(void)state;
	assert_int_equal(dma_map_msg(0x100000, 16 * PG, 4 * PG, RW, ram), 0);
	assert_int_equal(dma_map_msg(0, 2 * PG, 0, RW, ram), 0);
	assert_int_equal(dmatab_files(), 1);
	assert_int_equal(core_write(0x100008, 0x1111222233334444), 0);
	assert_int_equal(guest64(4 * PG + 8), 0x1111222233334444);
	assert_int_equal(core_write(0x100000 + 16 * PG - 4, 1), -EFAULT);
	assert_int_equal(dma_map_msg(PG, PG, 0, RW, ram), EEXIST);
	assert_int_equal(dma_map_msg(0x500000, 16 * PG, RAM_PAGES * PG, RW, ram), ERANGE);
	assert_int_equal(dma_map_msg(0x500000, 16 * PG, 0, RW | 4, ram), EINVAL);
	/* Part of a map, then all. */
	assert_int_equal(dma_unmap_msg(0x100000, PG, 0), 0);
	assert_int_equal(core_write(0x100008, 1), -EFAULT);
	assert_int_equal(core_write(0x100008 + PG, 2), 0);
	assert_int_equal(guest64(5 * PG + 8), 2);
	assert_int_equal(dma_unmap_msg(0x100000, 16 * PG, 0), 0);
	assert_int_equal(core_write(0x100008 + PG, 1), -EFAULT);
	assert_int_equal(core_write(8, 1), 0);
	assert_int_equal(dma_unmap_msg(0, 0, 0), EINVAL);
	assert_int_equal(dma_unmap_msg(0, PG, VFIO_DMA_UNMAP_FLAG_ALL), EINVAL);
	assert_int_equal(dma_unmap_msg(0, 0, 1), EINVAL);
	assert_int_equal(dma_unmap_msg(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(core_write(8, 1), -EFAULT);
	assert_int_equal(dmatab_files(), 0);
}

/* Before a map comes or goes whoever knows where memory lies is told. */
static void test_settle(void **state)
{
	(void)state;
	settled = 0;
	assert_int_equal(dma_map_msg(0, PG, 0, RW, ram), 0);
	assert_int_equal(settled, 1);
	assert_int_equal(dma_unmap_msg(0, PG, 0), 0);
	assert_int_equal(settled, 2);
	assert_int_equal(dma_map_msg(0, PG, 0, RW, ram), 0);
	assert_int_equal(dma_unmap_msg(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(settled, 4);
	shutdown(sock, SHUT_RDWR);
	run();
	assert_false(vfu_connected(vfu));
	assert_int_equal(settled, 5);
}

/* What is no memory of the client's is a function's, while there is one. */
static void test_peers(void **state)
{
	struct vfu_cfg cfg = { .epfd = -1, .bus = &bus };
	struct skua_dev_cfg dcfg = { .msix_vectors = VECTORS };
	struct vfu *alone, *other = vfu_create(&cfg);
	struct skua_dev *peer = skua_dev_create(&dcfg, &vfu_host_ops, other, NULL, NULL), *far;

	(void)state;
	vfu_set_dev(other, peer);
	cfg.bus = NULL;
	alone = vfu_create(&cfg);
	far = skua_dev_create(&dcfg, &vfu_host_ops, alone, NULL, NULL);
	vfu_set_dev(alone, far);
	dev->peer_at = 0x200000;
	peer->peer_at = 0x300000;
	far->peer_at = 0x400000;
	assert_int_equal(core_write(0x300000, 3), 0);
	assert_int_equal(peer->peer, 3);
	assert_int_equal(core_write(0x200000, 2), 0);
	assert_int_equal(dev->peer, 2);
	assert_int_equal(core_write(0x400000, 4), -EFAULT);
	peer->peer = 0x55;
	post_write(SKUA_BAR_DM, FAKE_IOVA, 0x300000);
	post_write(SKUA_BAR_DM, FAKE_DMA_READ, 0);
	run();
	assert_int_equal(dev->err, 0);
	assert_int_equal(dev->word, 0x55);
	/* Memory first. */
	assert_int_equal(dma_map_msg(0x300000, PG, 0, RW, ram), 0);
	assert_int_equal(core_write(0x300000, 6), 0);
	assert_int_equal(guest64(0), 6);
	assert_int_equal(peer->peer, 0x55);
	assert_int_equal(dma_unmap_msg(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(core_write(0x300000, 7), 0);
	vfu_shutdown(other);
	assert_int_equal(core_write(0x300000, 8), -EFAULT);
	assert_int_equal(core_write(0x200000, 9), 0);
	skua_dev_destroy(peer);
	vfu_destroy(other);
	vfu_shutdown(alone);
	skua_dev_destroy(far);
	vfu_destroy(alone);
}

/* An emulated IOMMU's traffic: a map for each page, unmapped in one go or singly. */
static void test_viommu(void **state)
{
	enum { MAPS = 60000, BATCH = 200 };
	uint16_t ids[BATCH];

	(void)state;
	for (unsigned int i = 0; i < MAPS; i += BATCH) {
		for (unsigned int j = 0; j < BATCH; j++) {
			struct vfu_dma_map req = {
				.argsz = sizeof(req), .flags = RW, .size = PG,
				.iova = 0x100000000ull + (uint64_t)(i + j) * PG,
				.offset = (i + j) % RAM_PAGES * PG,
			};

			ids[j] = post(VFU_DMA_MAP, 0, &req, sizeof(req), NULL, 0, &ram, 1);
			/* Descriptors in flight are limited: let them arrive. */
			if (j % 64 == 63)
				run();
		}
		run();
		for (unsigned int j = 0; j < BATCH; j++)
			assert_int_equal(get_reply(ids[j], VFU_DMA_MAP, NULL, 0, NULL), 0);
	}
	assert_int_equal(dmatab_files(), 1);
	for (uint64_t i = 0; i < MAPS; i += 997) {
		assert_int_equal(core_write(0x100000000ull + i * PG + 16, i), 0);
		assert_int_equal(guest64(i % RAM_PAGES * PG + 16), i);
	}
	assert_int_equal(dma_unmap_msg(0x100000000ull, PG, 0), 0);
	assert_int_equal(core_write(0x100000000ull, 1), -EFAULT);
	/* The whole address space at once, as when a domain goes. */
	assert_int_equal(dma_unmap_msg(0, 1ull << 48, 0), 0);
	assert_int_equal(core_write(0x100000000ull + PG, 1), -EFAULT);
	assert_int_equal(dmatab_files(), 0);
}

/* Guest RAM without descriptors: a client that asks on is told, and the log says how. */
static void test_refuse_private_ram(void **state)
{
	uint32_t info[4] = { 16 };

	(void)state;
	assert_int_equal(dma_map_msg(0xc0000, 16 * PG, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
	assert_int_equal(dma_map_msg(0, 16 * PG, 0, RW, -1), 0);
	info[0] = 16;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(core_write(0, 1), -EFAULT);
	log_lines = 0;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(log_lines, 2);
	/* With RAM that can be shared, other memory without is no harm. */
	assert_int_equal(dma_map_msg(0x100000, PG, 0, RW, ram), 0);
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_dma), T(test_settle), T(test_peers), T(test_viommu), T(test_refuse_private_ram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
