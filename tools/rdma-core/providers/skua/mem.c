// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Memory that the device accesses: rings, and pages of doorbell records and of short rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ccan/ilog.h>

#include "skua.h"
#include "skuadv.h"

/* One cache line for each record, so that no two QPs write to the same line. */
#define DBR_LOG		6
#define CHUNK_MAX	(1UL << (DBR_LOG + SKUA_SLAB_SIZES - 1))

/**
 * struct skua_slab - a page that is given out in chunks of one size
 * @node: in the context's list of that size; pages with a free chunk stand before full ones
 * @ctx: the context
 * @addr: the page
 * @log: log2 of the bytes of a chunk
 * @chunks: chunks in it
 * @used: how many are given out
 * @free: bitmap of the others
 */
struct skua_slab {
	struct list_node node;
	struct skua_context *ctx;
	void *addr;
	unsigned int log;
	unsigned int chunks;
	unsigned int used;
	uint64_t free[];
};

/* Zeroed memory for a structure that is aligned to cache lines, or NULL with errno set. */
void *skua_zalloc_lines(size_t size)
{
	void *p = aligned_alloc(SKUA_LINE, size);

	if (p)
		memset(p, 0, size);
	return p;
}

/* Zeroed pages. Returns NULL with errno set. */
static void *pages_map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (addr == MAP_FAILED)
		return NULL;
	/* The pages are pinned: a fork must not make the parent copy them. */
	if (ibv_dontfork_range(addr, len)) {
		err = errno;
		munmap(addr, len);
		errno = err;
		return NULL;
	}
	return addr;
}

static void pages_unmap(void *addr, size_t len)
{
	ibv_dofork_range(addr, len);
	munmap(addr, len);
}

static struct list_head *slab_list(struct skua_context *ctx, unsigned int log)
{
	return &ctx->slabs[log - DBR_LOG];
}

static struct skua_slab *slab_add(struct skua_context *ctx, unsigned int log)
{
	unsigned int chunks = ctx->page_size >> log;
	unsigned int words = (chunks + 63) / 64;
	struct skua_slab *slab;
	unsigned int i;

	slab = calloc(1, sizeof(*slab) + words * sizeof(slab->free[0]));
	if (!slab)
		return NULL;
	slab->addr = pages_map(ctx->page_size);
	if (!slab->addr) {
		free(slab);
		return NULL;
	}
	slab->ctx = ctx;
	slab->log = log;
	slab->chunks = chunks;
	for (i = 0; i < chunks; i++)
		slab->free[i / 64] |= 1ULL << (i % 64);
	list_add(slab_list(ctx, log), &slab->node);
	return slab;
}

static void slab_del(struct skua_slab *slab)
{
	list_del(&slab->node);
	pages_unmap(slab->addr, slab->ctx->page_size);
	free(slab);
}

/* A zeroed chunk, or NULL with errno set. */
static void *chunk_alloc(struct skua_context *ctx, unsigned int log, struct skua_slab **from)
{
	struct list_head *list = slab_list(ctx, log);
	struct skua_slab *slab;
	void *chunk = NULL;
	unsigned int i;

	pthread_mutex_lock(&ctx->slab_lock);
	slab = list_top(list, struct skua_slab, node);
	if (!slab || slab->used == slab->chunks)
		slab = slab_add(ctx, log);
	if (!slab)
		goto out;

	for (i = 0; !slab->free[i]; i++)
		;
	i = i * 64 + __builtin_ctzll(slab->free[i]);
	slab->free[i / 64] &= ~(1ULL << (i % 64));
	if (++slab->used == slab->chunks) {
		list_del(&slab->node);
		list_add_tail(list, &slab->node);
	}
	chunk = (uint8_t *)slab->addr + ((size_t)i << log);
	memset(chunk, 0, (size_t)1 << log);
	*from = slab;
out:
	pthread_mutex_unlock(&ctx->slab_lock);
	return chunk;
}

static void chunk_free(struct skua_slab *slab, void *chunk)
{
	unsigned int i = ((uint8_t *)chunk - (uint8_t *)slab->addr) >> slab->log;
	struct skua_context *ctx = slab->ctx;

	pthread_mutex_lock(&ctx->slab_lock);
	slab->free[i / 64] |= 1ULL << (i % 64);
	slab->used--;
	list_del(&slab->node);
	list_add(slab_list(ctx, slab->log), &slab->node);
	if (!slab->used)
		slab_del(slab);
	pthread_mutex_unlock(&ctx->slab_lock);
}

/* errno is set on failure. */
int skua_mem_alloc(struct skua_context *ctx, struct skua_mem *buf, size_t len)
{
	len = align(len, ctx->page_size);
	buf->addr = pages_map(len);
	if (!buf->addr)
		return errno;
	buf->len = len;
	buf->slab = NULL;
	buf->owner = NULL;
	return 0;
}

/* A part of a page. Of many short rings fewer pages are in use, and pinned. */
static int mem_alloc_chunk(struct skua_context *ctx, struct skua_mem *buf, size_t len)
{
	unsigned int log = len > 1UL << DBR_LOG ? ilog64(len - 1) : DBR_LOG;

	buf->addr = chunk_alloc(ctx, log, &buf->slab);
	if (!buf->addr)
		return errno;
	buf->len = (size_t)1 << log;
	buf->owner = NULL;
	return 0;
}

/*
 * As skua_mem_alloc(), but by the allocator of the parent domain @pd if that has one and
 * it does not return IBV_ALLOCATOR_USE_DEFAULT. Short rings of QPs share pages.
 */
int skua_mem_alloc_in(struct skua_context *ctx, struct skua_pd *pd, struct skua_mem *buf,
		      size_t len, uint64_t type)
{
	void *addr = IBV_ALLOCATOR_USE_DEFAULT;
	int ret;

	if (pd && pd->alloc)
		addr = pd->alloc(&pd->ibv_pd, pd->pd_context, align(len, ctx->page_size),
				 ctx->page_size, type);
	if (addr == IBV_ALLOCATOR_USE_DEFAULT)
		return type == SKUADV_RES_QP && len <= ctx->page_size / 2 && len <= CHUNK_MAX ?
			       mem_alloc_chunk(ctx, buf, len) : skua_mem_alloc(ctx, buf, len);
	len = align(len, ctx->page_size);
	if (!addr) {
		errno = ENOMEM;
		return ENOMEM;
	}

	/* The kernel pins whole pages: memory that is not aligned shares them with other data. */
	ret = (uintptr_t)addr & (ctx->page_size - 1) ? EINVAL : 0;
	if (!ret && ibv_dontfork_range(addr, len))
		ret = errno;
	if (ret) {
		pd->free(&pd->ibv_pd, pd->pd_context, addr, type);
		errno = ret;
		return ret;
	}
	memset(addr, 0, len);
	buf->addr = addr;
	buf->len = len;
	buf->slab = NULL;
	buf->owner = pd;
	buf->type = type;
	return 0;
}

void skua_mem_free(struct skua_mem *buf)
{
	struct skua_pd *pd = buf->owner;

	if (buf->slab) {
		chunk_free(buf->slab, buf->addr);
	} else if (pd) {
		ibv_dofork_range(buf->addr, buf->len);
		pd->free(&pd->ibv_pd, pd->pd_context, buf->addr, buf->type);
	} else {
		pages_unmap(buf->addr, buf->len);
	}
}

/* A zeroed doorbell record, or NULL with errno set. */
void *skua_dbr_alloc(struct skua_context *ctx)
{
	struct skua_slab *slab;

	return chunk_alloc(ctx, DBR_LOG, &slab);
}

void skua_dbr_free(struct skua_context *ctx, void *dbr)
{
	uintptr_t page = (uintptr_t)dbr & ~(ctx->page_size - 1);
	struct skua_slab *slab;

	pthread_mutex_lock(&ctx->slab_lock);
	list_for_each(slab_list(ctx, DBR_LOG), slab, node)
		if ((uintptr_t)slab->addr == page)
			break;
	pthread_mutex_unlock(&ctx->slab_lock);
	chunk_free(slab, dbr);
}

void skua_slabs_init(struct skua_context *ctx)
{
	unsigned int i;

	pthread_mutex_init(&ctx->slab_lock, NULL);
	for (i = 0; i < SKUA_SLAB_SIZES; i++)
		list_head_init(&ctx->slabs[i]);
}

/*
 * A program that closes a device with objects left leaves pages as well. The kernel may still
 * have them pinned, for another context on the same file, which must not get others at their
 * addresses: they stay, as other memory of such objects does.
 */
void skua_slabs_cleanup(struct skua_context *ctx)
{
	struct skua_slab *slab, *next;
	unsigned int i;

	for (i = 0; i < SKUA_SLAB_SIZES; i++)
		list_for_each_safe(&ctx->slabs[i], slab, next, node)
			free(slab);
	pthread_mutex_destroy(&ctx->slab_lock);
}
