// SPDX-License-Identifier: GPL-2.0
/*
 * vfio-user messages. A payload is not aligned, and hostile: each handler
 * checks its length, copies the fixed part and looks at nothing else of it.
 *
 * A handler returns 0 when it queued the reply or none is wanted, a positive
 * errno for the error reply, or a negative one to end the connection. VFU_UNFINISHED asks
 * for another call with the same message in a later turn; vfu->done is the handler's.
 *
 * No region is ever offered for mmap: a client that sees one such region stops
 * posting its writes to all of them, and each doorbell would wait for a reply.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vfu_priv.h"

/* The fixed part of the payload into @req; false if the message is too short. */
#define fetch(msg, req)	fetch_bytes(msg, req, sizeof(*(req)))

static bool fetch_bytes(const struct tran_msg *msg, void *req, size_t len)
{
	if (msg->len < len)
		return false;
	memcpy(req, msg->data, len);
	return true;
}

static bool wants_reply(const struct tran_msg *msg)
{
	return !(msg->hdr.flags & VFU_F_NO_REPLY);
}

static int reply(struct vfu *vfu, const struct tran_msg *msg, const void *data, size_t len)
{
	void *buf;

	if (!wants_reply(msg))
		return 0;
	buf = tran_reply(&vfu->tran, &msg->hdr, len);
	if (!buf)
		return -ENOMEM;
	if (len)
		memcpy(buf, data, len);
	return 0;
}

/* Whether the client's JSON text has "name": true. */
static bool json_true(const char *text, const char *name)
{
	char key[32];

	snprintf(key, sizeof(key), "\"%s\"", name);
	text = strstr(text, key);
	if (!text)
		return false;
	text += strlen(key);
	text += strspn(text, " \t\r\n");
	if (*text++ != ':')
		return false;
	text += strspn(text, " \t\r\n");
	return !strncmp(text, "true", 4);
}

/*
 * The client accepts a reply that is not longer than its request, with capabilities that its
 * request named. If they do not fit, none are sent and the defaults apply.
 */
static int do_version(struct vfu *vfu, struct tran_msg *msg)
{
	struct {
		struct vfu_version version;
		char json[128];
	} rep = { 0 };
	struct vfu_version req;
	const char *text = (const char *)msg->data + sizeof(req);
	size_t room, len = 0;

	if (vfu->negotiated || !fetch(msg, &req))
		return EINVAL;
	room = msg->len - sizeof(req);
	if (req.major != 0) {
		vfu_warn(vfu, "protocol version %u.%u is not supported", req.major, req.minor);
		return -EPROTONOSUPPORT;
	}
	if (room && text[room - 1] != '\0')
		return EINVAL;
	if (room) {
		len = 1 + snprintf(rep.json, sizeof(rep.json),
				   "{\"capabilities\":{\"max_msg_fds\":%u,\"pgsizes\":%u%s}}",
				   TRAN_MAX_FDS, DMA_PAGE_SIZE,
				   json_true(text, "write_multiple") ?
				   ",\"write_multiple\":true" : "");
		if (len > room)
			len = 0;
	}
	vfu->negotiated = true;
	return reply(vfu, msg, &rep, sizeof(rep.version) + len);
}

/*
 * ROMs and memory of other devices come without a descriptor. They are not accessible, and
 * need not be. Guest RAM without a descriptor cannot be used, see ram_usable().
 */
static int do_dma_map(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfu_dma_map req;
	unsigned int prot = 0;
	int err;

	if (!fetch(msg, &req) || req.argsz < sizeof(req) || msg->nfds > 1 ||
	    (req.flags & ~(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)))
		return EINVAL;
	if (req.flags & VFIO_DMA_MAP_FLAG_READ)
		prot |= DMA_PROT_READ;
	if (req.flags & VFIO_DMA_MAP_FLAG_WRITE)
		prot |= DMA_PROT_WRITE;

	vfu_memory_moves(vfu);
	err = dmatab_map(&vfu->dma, req.iova, req.size, prot, msg->nfds ? msg->fds[0] : -1,
			 req.offset);
	if (err == -EAGAIN)
		return VFU_UNFINISHED;
	if (err) {
		vfu_warn(vfu, "cannot map 0x%" PRIx64 "+0x%" PRIx64 ": %s", req.iova, req.size,
			 err == -EMEDIUMTYPE ?
			 "its file is neither a memfd nor on tmpfs or hugetlbfs" : strerror(-err));
		return -err;
	}
	/* The helper closes the descriptor: of a file with many locks that takes long. */
	if (msg->nfds)
		vfu->shared_maps++;
	else if (prot & DMA_PROT_WRITE)
		vfu->private_maps++;
	return reply(vfu, msg, NULL, 0);
}

/*
 * If the client has mapped writable memory, some of it must have come with a descriptor. The
 * client maps it before it asks for the device's information, so that request is refused:
 * the client then fails to start, instead of running a guest whose DMA fails.
 */
static bool ram_usable(struct vfu *vfu)
{
	if (vfu->shared_maps || !vfu->private_maps)
		return true;
	vfu_log(vfu, LOG_ERROR,
		"refused: the guest's memory comes without a file descriptor. Start QEMU with -object memory-backend-memfd,id=mem,size=SIZE,share=on -machine memory-backend=mem");
	return false;
}

static int do_dma_unmap(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfu_dma_unmap req;
	int err = 0;

	if (!fetch(msg, &req) || req.argsz < sizeof(req))
		return EINVAL;
	vfu_memory_moves(vfu);
	if (req.flags & VFIO_DMA_UNMAP_FLAG_ALL) {
		if (req.flags != VFIO_DMA_UNMAP_FLAG_ALL || req.iova || req.size)
			return EINVAL;
		dmatab_unmap_all(&vfu->dma);
	} else {
		if (req.flags)
			return EINVAL;
		do {
			err = dmatab_unmap(&vfu->dma, req.iova, req.size);
		} while (err == -EAGAIN && vfu->turn_end && !vfu_turn_over(vfu));
	}
	if (err == -EAGAIN)
		return VFU_UNFINISHED;
	if (err)
		return -err;
	return reply(vfu, msg, &req, sizeof(req));
}

static int do_get_info(struct vfu *vfu, struct tran_msg *msg)
{
	/* Without the later additions of the ioctl's structure: QEMU has no room for them. */
	struct {
		uint32_t argsz, flags, num_regions, num_irqs;
	} info;

	if (!fetch(msg, &info) || info.argsz < sizeof(info))
		return EINVAL;
	if (!ram_usable(vfu))
		return EINVAL;
	info.argsz = sizeof(info);
	info.flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI;
	info.num_regions = VFIO_PCI_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return reply(vfu, msg, &info, sizeof(info));
}

static uint64_t region_size(struct vfu *vfu, uint32_t region)
{
	if (region <= VFIO_PCI_BAR5_REGION_INDEX)
		return skua_dev_bar_size(vfu->dev, region);
	if (region == VFIO_PCI_CONFIG_REGION_INDEX)
		return SKUA_PCI_CFG_SIZE;
	return 0;
}

static int do_get_region_info(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfio_region_info info;

	if (!fetch(msg, &info) || info.argsz < sizeof(info) ||
	    info.index >= VFIO_PCI_NUM_REGIONS)
		return EINVAL;
	if (!ram_usable(vfu))
		return EINVAL;
	info.argsz = sizeof(info);
	info.size = region_size(vfu, info.index);
	info.flags = info.size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
	info.cap_offset = 0;
	info.offset = 0;
	return reply(vfu, msg, &info, sizeof(info));
}

/*
 * MSI-X vectors can be set up one by one: with NORESIZE the client would take
 * all of them down for each new one.
 */
static int do_get_irq_info(struct vfu *vfu, struct tran_msg *msg)
{
	struct {
		uint32_t argsz, flags, index, count;
	} info;

	if (!fetch(msg, &info) || info.argsz < sizeof(info) || info.index >= VFIO_PCI_NUM_IRQS)
		return EINVAL;
	info.argsz = sizeof(info);
	info.flags = 0;
	info.count = 0;
	if (info.index == VFIO_PCI_MSIX_IRQ_INDEX) {
		info.flags = VFIO_IRQ_INFO_EVENTFD;
		info.count = vfu->irqs.num;
	}
	return reply(vfu, msg, &info, sizeof(info));
}

/* Event descriptors for a range of vectors, or none for all of it. */
static int assign_vectors(struct vfu *vfu, struct tran_msg *msg, const struct vfio_irq_set *set)
{
	int err;

	if (msg->nfds && msg->nfds != set->count)
		return EINVAL;
	for (uint32_t i = 0; i < set->count; i++) {
		err = irq_assign(&vfu->irqs, set->start + i, msg->nfds ? msg->fds[i] : -1);
		if (err)
			return -err;
		if (msg->nfds)
			msg->fds[i] = -1;
	}
	return 0;
}

/* Interrupts that the client triggers itself, as a loopback test. */
static int trigger_vectors(struct vfu *vfu, struct tran_msg *msg, const struct vfio_irq_set *set)
{
	const uint8_t *bools = NULL;

	if (set->flags & VFIO_IRQ_SET_DATA_BOOL) {
		if (msg->len - sizeof(*set) < set->count)
			return EINVAL;
		bools = msg->data + sizeof(*set);
	}
	for (uint32_t i = 0; i < set->count; i++) {
		if (!bools || bools[i])
			irq_raise(&vfu->irqs, set->start + i);
	}
	return 0;
}

static int do_set_irqs(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfio_irq_set set;
	uint32_t data, num;
	int err = 0;

	if (!fetch(msg, &set) || set.argsz < sizeof(set) || set.index >= VFIO_PCI_NUM_IRQS)
		return EINVAL;
	data = set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
	if (set.flags != (data | VFIO_IRQ_SET_ACTION_TRIGGER))
		return EINVAL;
	num = set.index == VFIO_PCI_MSIX_IRQ_INDEX ? vfu->irqs.num : 0;
	if (set.start > num || set.count > num - set.start)
		return EINVAL;
	if (data != VFIO_IRQ_SET_DATA_EVENTFD && msg->nfds)
		return EINVAL;

	switch (data) {
	case VFIO_IRQ_SET_DATA_EVENTFD:
		err = assign_vectors(vfu, msg, &set);
		break;
	case VFIO_IRQ_SET_DATA_NONE:
		if (!set.count && num)
			irq_disable(&vfu->irqs);
		err = trigger_vectors(vfu, msg, &set);
		break;
	case VFIO_IRQ_SET_DATA_BOOL:
		err = trigger_vectors(vfu, msg, &set);
		break;
	default:
		return EINVAL;
	}
	return err ? err : reply(vfu, msg, NULL, 0);
}

static bool region_ok(struct vfu *vfu, const struct vfu_region_rw *rw)
{
	uint64_t size = region_size(vfu, rw->region);

	return rw->count && rw->count <= VFU_MAX_DATA && rw->offset <= size &&
	       rw->count <= size - rw->offset;
}

/* The pending bit array is kept here; the device core only sends messages. */
static void overlay_pba(struct vfu *vfu, const struct vfu_region_rw *rw, uint8_t *buf)
{
	uint64_t off;

	if (rw->region != SKUA_BAR_REGS)
		return;
	for (uint32_t i = 0; i < rw->count; i++) {
		off = rw->offset + i - SKUA_BAR_MSIX_PBA;
		if (off < sizeof(vfu->irqs.pending))
			buf[i] = (uint8_t)(vfu->irqs.pending >> 8 * off);
	}
}

static int do_region_read(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfu_region_rw rw;
	uint64_t word;
	uint8_t *buf, *data;

	if (!fetch(msg, &rw) || !region_ok(vfu, &rw))
		return EINVAL;
	if (!wants_reply(msg))
		return 0;
	buf = tran_reply(&vfu->tran, &msg->hdr, sizeof(rw) + rw.count);
	if (!buf)
		return -ENOMEM;
	memcpy(buf, &rw, sizeof(rw));
	/* A register access gets an aligned buffer, as its width promises. */
	data = rw.count <= sizeof(word) ? (uint8_t *)&word : buf + sizeof(rw);
	if (rw.region == VFIO_PCI_CONFIG_REGION_INDEX)
		skua_dev_cfg_read(vfu->dev, rw.offset, data, rw.count);
	else
		skua_dev_bar_read(vfu->dev, rw.region, rw.offset, data, rw.count);
	overlay_pba(vfu, &rw, data);
	if (rw.count <= sizeof(word))
		memcpy(buf + sizeof(rw), data, rw.count);
	return 0;
}

static void region_write(struct vfu *vfu, const struct vfu_region_rw *rw, const uint8_t *data)
{
	uint64_t word;

	if (rw->count <= sizeof(word)) {
		memcpy(&word, data, rw->count);
		data = (const uint8_t *)&word;
	}
	if (rw->region != VFIO_PCI_CONFIG_REGION_INDEX)
		skua_dev_bar_write(vfu->dev, rw->region, rw->offset, data, rw->count);
	else if (skua_dev_cfg_write(vfu->dev, rw->offset, data, rw->count))
		irq_reset(&vfu->irqs);
}

static int do_region_write(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfu_region_rw rw;

	if (!fetch(msg, &rw) || !region_ok(vfu, &rw) || msg->len - sizeof(rw) < rw.count)
		return EINVAL;
	region_write(vfu, &rw, msg->data + sizeof(rw));
	return reply(vfu, msg, &rw, sizeof(rw));
}

/* All entries are checked before the first is done: a refused message did nothing. */
static bool multi_ok(struct vfu *vfu, const uint8_t *entries, uint64_t count)
{
	struct vfu_write_one one;

	for (uint64_t i = 0; i < count; i++) {
		memcpy(&one, entries + i * sizeof(one), sizeof(one));
		if (one.rw.count > VFU_MULTI_DATA || !region_ok(vfu, &one.rw))
			return false;
	}
	return true;
}

/* In one turn, at most as many entries are done as messages would be. */
static int do_region_write_multi(struct vfu *vfu, struct tran_msg *msg)
{
	struct vfu_write_one one;
	const uint8_t *entries;
	uint64_t count;

	if (!fetch(msg, &count) || count > (msg->len - sizeof(count)) / sizeof(one))
		return EINVAL;
	entries = msg->data + sizeof(count);
	if (!vfu->done && !multi_ok(vfu, entries, count))
		return EINVAL;
	for (unsigned int n = 0; vfu->done < count; n++) {
		if (n == VFU_TURN_MESSAGES || (n && vfu_turn_over(vfu)))
			return VFU_UNFINISHED;
		memcpy(&one, entries + vfu->done++ * sizeof(one), sizeof(one));
		region_write(vfu, &one.rw, one.data);
	}
	return reply(vfu, msg, &count, sizeof(count));
}

static int do_device_reset(struct vfu *vfu, struct tran_msg *msg)
{
	skua_dev_reset(vfu->dev, SKUA_RESET_POWER);
	irq_reset(&vfu->irqs);
	return reply(vfu, msg, NULL, 0);
}

static const struct {
	const char *name;
	int (*handler)(struct vfu *vfu, struct tran_msg *msg);
} commands[] = {
	[VFU_VERSION] = { "VERSION", do_version },
	[VFU_DMA_MAP] = { "DMA_MAP", do_dma_map },
	[VFU_DMA_UNMAP] = { "DMA_UNMAP", do_dma_unmap },
	[VFU_GET_INFO] = { "GET_INFO", do_get_info },
	[VFU_GET_REGION_INFO] = { "GET_REGION_INFO", do_get_region_info },
	[VFU_GET_IRQ_INFO] = { "GET_IRQ_INFO", do_get_irq_info },
	[VFU_SET_IRQS] = { "SET_IRQS", do_set_irqs },
	[VFU_REGION_READ] = { "REGION_READ", do_region_read },
	[VFU_REGION_WRITE] = { "REGION_WRITE", do_region_write },
	[VFU_DEVICE_RESET] = { "DEVICE_RESET", do_device_reset },
	[VFU_REGION_WRITE_MULTI] = { "REGION_WRITE_MULTI", do_region_write_multi },
};

int vfu_dispatch(struct vfu *vfu, struct tran_msg *msg)
{
	const char *name = "unknown command";
	unsigned int cmd = msg->hdr.cmd;
	int ret = EOPNOTSUPP;

	if (cmd < sizeof(commands) / sizeof(commands[0]) && commands[cmd].handler) {
		name = commands[cmd].name;
		if (vfu->negotiated || cmd == VFU_VERSION)
			ret = commands[cmd].handler(vfu, msg);
		else
			ret = EINVAL;
	}
	if (ret <= 0 || ret == VFU_UNFINISHED)
		return ret;
	vfu_warn(vfu, "message %u (%s), %u bytes: %s", cmd, name, msg->hdr.size, strerror(ret));
	return wants_reply(msg) ? tran_reply_error(&vfu->tran, &msg->hdr, ret) : 0;
}
