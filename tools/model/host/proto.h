/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vfio-user messages on the socket, host byte order. Payloads that are the
 * structures of <linux/vfio.h> are used from there.
 */
#ifndef SKUA_HOST_PROTO_H
#define SKUA_HOST_PROTO_H

#include <stdint.h>
#include <linux/vfio.h>

enum vfu_cmd {
	VFU_VERSION = 1,
	VFU_DMA_MAP = 2,
	VFU_DMA_UNMAP = 3,
	VFU_GET_INFO = 4,
	VFU_GET_REGION_INFO = 5,
	VFU_GET_REGION_IO_FDS = 6,
	VFU_GET_IRQ_INFO = 7,
	VFU_SET_IRQS = 8,
	VFU_REGION_READ = 9,
	VFU_REGION_WRITE = 10,
	VFU_DMA_READ = 11,
	VFU_DMA_WRITE = 12,
	VFU_DEVICE_RESET = 13,
	VFU_REGION_WRITE_MULTI = 15,
	VFU_DEVICE_FEATURE = 16,
	VFU_MIG_DATA_READ = 17,
	VFU_MIG_DATA_WRITE = 18,
};

#define VFU_F_TYPE_MASK		0x0f
#define VFU_F_TYPE_COMMAND	0x00
#define VFU_F_TYPE_REPLY	0x01
#define VFU_F_NO_REPLY		0x10
#define VFU_F_ERROR		0x20

/**
 * struct vfu_hdr - first 16 bytes of each message
 * @id: chosen by the sender, echoed in the reply
 * @cmd: enum vfu_cmd
 * @size: of the message, with this header
 * @flags: VFU_F_*
 * @error: errno in a reply with VFU_F_ERROR
 */
struct vfu_hdr {
	uint16_t id;
	uint16_t cmd;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
};
_Static_assert(sizeof(struct vfu_hdr) == 16, "vfio-user header");

/* Followed by a JSON text with a terminating NUL, which may be missing altogether. */
struct vfu_version {
	uint16_t major;
	uint16_t minor;
};
_Static_assert(sizeof(struct vfu_version) == 4, "vfio-user version");

/* @offset is one into the passed file here, where the ioctl has an address. */
struct vfu_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t iova;
	uint64_t size;
};
_Static_assert(sizeof(struct vfu_dma_map) == 32, "vfio-user DMA map");

struct vfu_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size;
};
_Static_assert(sizeof(struct vfu_dma_unmap) == 24, "vfio-user DMA unmap");

/* Region read and write; data follows. */
struct vfu_region_rw {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};
_Static_assert(sizeof(struct vfu_region_rw) == 16, "vfio-user region access");

/* One of the writes that a VFU_REGION_WRITE_MULTI coalesces; a 64-bit count comes first. */
#define VFU_MULTI_DATA	8
struct vfu_write_one {
	struct vfu_region_rw rw;
	uint8_t data[VFU_MULTI_DATA];
};
_Static_assert(sizeof(struct vfu_write_one) == 24, "vfio-user coalesced write");

/* The protocol's default limit of the data in one message, which we keep. */
#define VFU_MAX_DATA	(1u << 20)
#define VFU_MAX_MSG	(sizeof(struct vfu_hdr) + sizeof(struct vfu_region_rw) + VFU_MAX_DATA)

#endif /* SKUA_HOST_PROTO_H */
