// SPDX-License-Identifier: GPL-2.0
/*
 * The vfio-user server's commands as a client sees them: version, regions, interrupts
 * and resets. Memory is in test_vfu_dma.c, the connection in test_vfu_conn.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>

#include "vfu_client.h"

static void test_version(void **state)
{
	char rep[512];
	size_t len;
	struct vfu_version v;

	(void)state;
	/* Nothing else is served before. */
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), 0);
	memcpy(&v, rep, sizeof(v));
	assert_int_equal(v.major, 0);
	assert_true(v.minor <= 1);
	assert_true(len > 4 && len <= 4 + sizeof(qemu_caps));
	assert_int_equal(rep[len - 1], '\0');
	assert_int_equal(strlen(rep + 4), len - 5);
	assert_non_null(strstr(rep + 4, "\"write_multiple\":true"));
	assert_non_null(strstr(rep + 4, "\"max_msg_fds\":16"));
	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), EINVAL);
}

static void test_version_short(void **state)
{
	static const char small[] = "{\"capabilities\":{}}";
	char rep[512];
	size_t len;

	(void)state;
	/* Too little room for ours: then none, not more than the client can take. */
	assert_int_equal(version(small, rep, sizeof(rep), &len), 0);
	assert_int_equal(len, 4);
}

static void test_version_no_multi(void **state)
{
	char caps[256], rep[512];
	size_t len;

	(void)state;
	snprintf(caps, sizeof(caps), "%-200s", "{\"capabilities\":{\"write_multiple\" : false}}");
	assert_int_equal(version(caps, rep, sizeof(rep), &len), 0);
	assert_true(len > 4);
	assert_null(strstr(rep + 4, "write_multiple"));
}

static void test_version_bad(void **state)
{
	struct vfu_version v = { 1, 0 };
	uint16_t id;
	char c;

	(void)state;
	id = post(VFU_VERSION, 0, &v, sizeof(v), "{}", 2, NULL, 0);
	run();
	assert_int_equal(recv(sock, &c, 1, MSG_DONTWAIT), 0);
	assert_false(vfu_connected(vfu));
	close(sock);

	connect_client();
	v.major = 0;
	id = post(VFU_VERSION, 0, &v, sizeof(v), "{}", 2, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, NULL, 0, NULL), EINVAL);
	id = post(VFU_VERSION, 0, &v, 2, NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, NULL, 0, NULL), EINVAL);
	/* No text at all is allowed. */
	id = post(VFU_VERSION, 0, &v, sizeof(v), NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, &v, sizeof(v), NULL), 0);
}

static void test_info(void **state)
{
	uint32_t info[4] = { 16 };
	uint32_t irq[4] = { 16, 0, VFIO_PCI_MSIX_IRQ_INDEX };

	(void)state;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
	assert_int_equal(info[1], VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
	assert_int_equal(info[2], VFIO_PCI_NUM_REGIONS);
	assert_int_equal(info[3], VFIO_PCI_NUM_IRQS);
	info[0] = 15;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(ask(VFU_GET_INFO, info, 15, NULL, 0), EINVAL);

	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, irq, 16), 0);
	assert_int_equal(irq[1], VFIO_IRQ_INFO_EVENTFD);
	assert_int_equal(irq[3], VECTORS);
	irq[2] = VFIO_PCI_INTX_IRQ_INDEX;
	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, irq, 16), 0);
	assert_int_equal(irq[3], 0);
	irq[2] = VFIO_PCI_NUM_IRQS;
	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, NULL, 0), EINVAL);
}

/*
 * First with room for the structure, then again with what the reply said: the
 * second time may bring more, but ours has no more to say.
 */
static void test_region_info(void **state)
{
	static const uint64_t size[VFIO_PCI_NUM_REGIONS] = {
		[SKUA_BAR_REGS] = SKUA_BAR_REGS_SIZE,
		[SKUA_BAR_UAR] = SKUA_BAR_UAR_SIZE,
		[SKUA_BAR_DM] = SKUA_BAR_DM_SIZE,
		[VFIO_PCI_CONFIG_REGION_INDEX] = SKUA_PCI_CFG_SIZE,
	};
	struct vfio_region_info info, again;

	(void)state;
	for (uint32_t i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
		info = (struct vfio_region_info){ .argsz = sizeof(info), .index = i };
		assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), &info,
				     sizeof(info)), 0);
		assert_int_equal(info.size, size[i]);
		assert_int_equal(info.index, i);
		/* A single mmappable region would end posted writes for all. */
		assert_int_equal(info.flags, size[i] ? VFIO_REGION_INFO_FLAG_READ |
				 VFIO_REGION_INFO_FLAG_WRITE : 0);
		assert_true(info.argsz >= sizeof(info));
		again = (struct vfio_region_info){ .argsz = info.argsz, .index = i };
		assert_int_equal(ask(VFU_GET_REGION_INFO, &again, sizeof(again), &again,
				     sizeof(again)), 0);
		assert_memory_equal(&again, &info, sizeof(info));
	}
	info.index = VFIO_PCI_NUM_REGIONS;
	assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), NULL, 0), EINVAL);
	info.index = 0;
	info.argsz = 31;
	assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), NULL, 0), EINVAL);
}

static void test_region_rw(void **state)
{
	uint8_t buf[64], back[64];
	uint16_t id;
	uint32_t word;

	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		buf[i] = i * 3 + 1;
	for (unsigned int len = 1; len <= 64; len *= 2) {
		assert_int_equal(reg_write(SKUA_BAR_UAR, 0x100, buf, len), 0);
		assert_int_equal(reg_read(SKUA_BAR_UAR, 0x100, back, len), 0);
		assert_memory_equal(buf, back, len);
	}
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX, 0, &word, 4), 0);
	assert_int_equal(word, SKUA_PCI_DEVICE_ID << 16 | SKUA_PCI_VENDOR_ID);
	id = PCI_COMMAND_MASTER;
	assert_int_equal(reg_write(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, &id, 2), 0);
	assert_true(skua_pci_bus_master(&dev->pci));
	/* Last bytes, and one too many. */
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE - 8, buf, 8), 0);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE - 7, buf, 8), EINVAL);
	assert_int_equal(reg_write(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE, buf, 1), EINVAL);
	assert_int_equal(reg_read(SKUA_BAR_REGS, UINT64_MAX, buf, 2), EINVAL);
	assert_int_equal(reg_read(1, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(6, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(9, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(UINT32_MAX, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX, SKUA_PCI_CFG_SIZE - 2, buf, 4),
			 EINVAL);
	assert_int_equal(reg_read(SKUA_BAR_REGS, 0, buf, 0), EINVAL);
}

/* Posted writes get no reply and are done before whatever comes after them. */
static void test_posted(void **state)
{
	uint64_t val;

	(void)state;
	for (uint64_t i = 0; i < 500; i++)
		post_write(SKUA_BAR_UAR, 8 * (i % 16), i);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 500);
	post_write(SKUA_BAR_UAR, 0x10, 0x123456789abcdef0);
	assert_int_equal(reg_read(SKUA_BAR_UAR, 0x10, &val, 8), 0);
	assert_int_equal(val, 0x123456789abcdef0);
	/* A wrong one is refused in silence. */
	post_write(SKUA_BAR_UAR, SKUA_BAR_UAR_SIZE, 0);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 501);
	assert_true(vfu_connected(vfu));
}

static void test_write_multi(void **state)
{
	struct vfu_write_one wr[200];
	uint64_t count = 200, rep, val;
	uint16_t id;

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		wr[i] = (struct vfu_write_one){
			.rw = { .offset = 8 * i, .region = SKUA_BAR_UAR, .count = 8 }
		};
		val = i * 0x0101010101010101ull;
		memcpy(wr[i].data, &val, 8);
	}
	post(VFU_REGION_WRITE_MULTI, VFU_F_NO_REPLY, &count, 8, wr, sizeof(wr), NULL, 0);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 200);
	assert_int_equal(reg_read(SKUA_BAR_UAR, 8 * 199, &val, 8), 0);
	assert_int_equal(val, 199 * 0x0101010101010101ull);

	wr[1].rw.count = 4;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), 0);
	assert_int_equal(rep, 200);
	assert_int_equal(dev->writes, 400);

	/* One wrong entry: none is done. */
	wr[199].rw.count = 9;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	wr[199].rw.count = 8;
	count = 201;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	/* A count whose product overflows. */
	count = 0x0aaaaaaaaaaaaaabull;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	id = post(VFU_REGION_WRITE_MULTI, 0, &count, 7, NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_REGION_WRITE_MULTI, NULL, 0, NULL), EINVAL);
	assert_int_equal(dev->writes, 400);
}

static void test_irqs(void **state)
{
	uint8_t bools[3] = { 1, 0, 1 };
	uint64_t pba;
	int efd[8];

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		efd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 8, NULL, 0, efd, 8), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 3);
	run();
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(fired(efd[i]), i == 3);

	/* Raised while there is nobody: pending, shown in the PBA, sent when there is. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 12);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 12);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
	assert_int_equal(pba, 1u << 12);
	pba = 0;
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA + 1, &pba, 1), 0);
	assert_int_equal(pba, 1u << 4);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 12, 1, NULL, 0, &efd[0], 1), 0);
	assert_int_equal(fired(efd[0]), 1);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
	assert_int_equal(pba, 0);

	/* Taken away and given back, as when vectors are set up anew. */
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 3, 1, NULL, 0, NULL, 0), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 3);
	run();
	assert_int_equal(fired(efd[3]), 0);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 3, 1, NULL, 0, &efd[4], 1), 0);
	assert_int_equal(fired(efd[4]), 1);

	assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 3, bools, 3, NULL, 0), 0);
	assert_int_equal(fired(efd[0]), 1);
	assert_int_equal(fired(efd[1]), 0);
	assert_int_equal(fired(efd[2]), 1);
	assert_int_equal(set_irqs(NONE_TRIGGER, 5, 2, NULL, 0, NULL, 0), 0);
	assert_int_equal(fired(efd[5]) + fired(efd[6]), 2);

	/* Count 0 is all off. */
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 0, NULL, 0, NULL, 0), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 5);
	run();
	assert_int_equal(fired(efd[5]), 0);
	/* A reset forgets. */
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 5, 1, NULL, 0, &efd[5], 1), 0);
	assert_int_equal(fired(efd[5]), 0);
	/* No such vector: the device core's mistake must not be ours. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 63);
	post_write(SKUA_BAR_DM, FAKE_MSIX, UINT64_MAX);
	run();
	for (unsigned int i = 0; i < 8; i++)
		close(efd[i]);
}

/*
 * The counter is full and the client has made it one that blocks, by the description
 * that it shares with us: nobody waits for it to be read.
 */
static void test_irqs_blocking(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &efd, 1), 0);
	assert_int_equal(fcntl(efd, F_SETFL, 0), 0);
	assert_int_equal(write(efd, &full, sizeof(full)), sizeof(full));
	alarm(10);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 0);
	run();
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 1, NULL, 0, NULL, 0), 0);
	alarm(0);
	assert_true(fired(efd) >= full);
	/* As soon as there is room it is told again. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 0);
	run();
	assert_int_equal(fcntl(efd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fired(efd), 1);
	close(efd);
}

static void test_irqs_bad(void **state)
{
	struct vfio_irq_set set = { .argsz = sizeof(set), .flags = NONE_TRIGGER };
	uint8_t bools[2] = { 1, 1 };
	int fds[2];

	(void)state;
	fds[0] = eventfd(0, EFD_CLOEXEC);
	fds[1] = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, VECTORS - 1, 2, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, UINT32_MAX, 2, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 2, UINT32_MAX, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 3, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 0, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 1, NULL, 0, fds, 1), EINVAL);
	assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 3, bools, 2, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, 0, 1, NULL,
				  0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(0, 0, 1, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(UINT32_MAX, 0, 1, NULL, 0, NULL, 0), EINVAL);
	/* Something that is no event descriptor. */
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &ram, 1), EINVAL);
	/* Other kinds of interrupt have no vectors: nothing to disable is fine. */
	for (set.index = 0; set.index < VFIO_PCI_NUM_IRQS; set.index++)
		assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), 0);
	assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), EINVAL);
	set.index = VFIO_PCI_INTX_IRQ_INDEX;
	set.count = 1;
	assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), EINVAL);
	close(fds[0]);
	close(fds[1]);
}

static void test_reset(void **state)
{
	uint16_t ctl = 0;

	(void)state;
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(dev->resets, 1);
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX,
				  SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL, &ctl, 2), 0);
	ctl |= PCI_EXP_DEVCTL_BCR_FLR;
	assert_int_equal(reg_write(VFIO_PCI_CONFIG_REGION_INDEX,
				   SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL, &ctl, 2), 0);
	assert_int_equal(dev->flrs, 1);
	assert_int_equal(dev->resets, 1);
}

/* Messages that waited for their interrupt to be set up do not outlive a reset of any kind. */
static void test_reset_pending(void **state)
{
	const unsigned int config = VFIO_PCI_CONFIG_REGION_INDEX;
	const unsigned int devctl = SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL;

	(void)state;
	for (unsigned int flr = 0; flr < 2; flr++) {
		uint64_t pba = 0;
		uint16_t ctl = 0;

		post_write(SKUA_BAR_DM, FAKE_MSIX, 3);
		run();
		assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
		assert_int_equal(pba, 1 << 3);
		/* Another write to configuration space leaves them alone. */
		assert_int_equal(reg_read(config, devctl, &ctl, 2), 0);
		assert_int_equal(reg_write(config, devctl, &ctl, 2), 0);
		assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
		assert_int_equal(pba, 1 << 3);
		ctl |= PCI_EXP_DEVCTL_BCR_FLR;
		if (flr)
			assert_int_equal(reg_write(config, devctl, &ctl, 2), 0);
		else
			assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), 0);
		assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
		assert_int_equal(pba, 0);
	}
	assert_int_equal(dev->flrs, 1);
	assert_int_equal(dev->resets, 1);
}

static void test_timer(void **state)
{
	(void)state;
	assert_int_equal(vfu_deadline(vfu), SKUA_TIME_NEVER);
	post_write(SKUA_BAR_DM, FAKE_TIMER, 1000000);
	run();
	assert_true(vfu_deadline(vfu) != SKUA_TIME_NEVER);
	vfu_tick(vfu, vfu_deadline(vfu) - 1);
	assert_int_equal(dev->ticks, 0);
	vfu_tick(vfu, vfu_deadline(vfu));
	assert_int_equal(dev->ticks, 1);
	assert_int_equal(vfu_deadline(vfu), SKUA_TIME_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_RAW(test_version), T_RAW(test_version_short), T_RAW(test_version_no_multi),
		T_RAW(test_version_bad), T(test_info), T(test_region_info), T(test_region_rw),
		T(test_posted), T(test_write_multi), T(test_irqs), T(test_irqs_blocking),
		T(test_irqs_bad), T(test_reset), T(test_reset_pending), T(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
