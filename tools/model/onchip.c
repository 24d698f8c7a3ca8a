// SPDX-License-Identifier: GPL-2.0
/*
 * Accounting of on-chip memory: what each part of the device has there at present, and the
 * total. The cache of contexts gets what the other parts leave (cache.c). Buffers of frames do
 * not count, since they depend on the link and not on connections; they are only reported.
 */
#include <stdio.h>

#include "icm.h"

#define SIZE_DEFAULT	(4400u << 10)

uint64_t onchip_size(const struct skua_dev *dev)
{
	return dev->cfg.onchip ? dev->cfg.onchip : SIZE_DEFAULT;
}

static const struct {
	const char *name;
	struct onchip (*use)(const struct skua_dev *dev);
} parts[] = {
#define X(part, text) { text, part##_onchip },
	ONCHIP_PARTS(X)
#undef X
};

uint64_t onchip_others(const struct skua_dev *dev)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		bytes += parts[i].use(dev).bytes;
	return bytes;
}

uint64_t onchip_used(const struct skua_dev *dev)
{
	return onchip_others(dev) + dev->icm->bytes;
}

static size_t put(char *answer, size_t room, size_t at, const char *name, uint64_t num,
		  uint64_t bytes)
{
	int len = 0;

	if (at < room)
		len = snprintf(answer + at, room - at, "; %s %llu %llu", name,
			       (unsigned long long)num, (unsigned long long)bytes);
	return at + len;
}

void skua_dev_onchip(struct skua_dev *dev, char *answer, size_t room)
{
	static const char *const table[SKUA_ICM_TABLES] = {
#define X(name, number, size, text) [SKUA_ICM_##name] = #name,
		SKUA_ICM_TABLE(X)
#undef X
	};
	struct onchip frames = frames_onchip(dev);
	size_t at = snprintf(answer, room, "size %llu used %llu",
			     (unsigned long long)onchip_size(dev),
			     (unsigned long long)onchip_used(dev));

	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		const struct ctx_cache *c = &dev->icm->table[i].cache;

		if (c->used)
			at = put(answer, room, at, table[i], c->used,
				 c->used * (uint64_t)CTX_TAG + c->sectors * (uint64_t)CTX_SECTOR);
	}
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct onchip use = parts[i].use(dev);

		if (use.bytes)
			at = put(answer, room, at, parts[i].name, use.num, use.bytes);
	}
	put(answer, room, at, "apart: frames", frames.num, frames.bytes);
}
