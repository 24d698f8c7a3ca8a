// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Memory that the device accesses: rings, and pages of doorbell records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "skua.h"

/* One cache line for each record, so that no two QPs write to the same line. */
#define DBR_STRIDE	64

/**
 * struct skua_dbr_page - a page of doorbell records
 * @node: in the context's list; pages with a free slot stand before full ones
 * @buf: the page
 * @slots: records in it
 * @used: how many are given out
 * @free: bitmap of the others
 */
struct skua_dbr_page {
	struct list_node node;
	struct skua_mem buf;
	unsigned int slots;
	unsigned int used;
	uint64_t free[];
};

/* errno is set on failure. */
int skua_mem_alloc(struct skua_context *ctx, struct skua_mem *buf, size_t len)
{
	int ret;

	len = align(len, ctx->page_size);
	buf->addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;
	/* The pages are pinned: a fork must not make the parent copy them. */
	if (ibv_dontfork_range(buf->addr, len)) {
		ret = errno;
		munmap(buf->addr, len);
		errno = ret;
		return ret;
	}
	buf->len = len;
	buf->owner = NULL;
	return 0;
}

/*
 * As skua_mem_alloc(), but by the allocator of the parent domain @pd if that has one and
 * it does not return IBV_ALLOCATOR_USE_DEFAULT.
 */
int skua_mem_alloc_in(struct skua_context *ctx, struct skua_pd *pd, struct skua_mem *buf,
		      size_t len, uint64_t type)
{
	void *addr = IBV_ALLOCATOR_USE_DEFAULT;
	int ret;

	len = align(len, ctx->page_size);
	if (pd && pd->alloc)
		addr = pd->alloc(&pd->ibv_pd, pd->pd_context, len, ctx->page_size, type);
	if (addr == IBV_ALLOCATOR_USE_DEFAULT)
		return skua_mem_alloc(ctx, buf, len);
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
	buf->owner = pd;
	buf->type = type;
	return 0;
}

void skua_mem_free(struct skua_mem *buf)
{
	struct skua_pd *pd = buf->owner;

	ibv_dofork_range(buf->addr, buf->len);
	if (pd)
		pd->free(&pd->ibv_pd, pd->pd_context, buf->addr, buf->type);
	else
		munmap(buf->addr, buf->len);
}

static struct skua_dbr_page *dbr_page_add(struct skua_context *ctx)
{
	unsigned int slots = ctx->page_size / DBR_STRIDE;
	unsigned int words = (slots + 63) / 64;
	struct skua_dbr_page *page;
	unsigned int i;

	page = calloc(1, sizeof(*page) + words * sizeof(page->free[0]));
	if (!page)
		return NULL;
	if (skua_mem_alloc(ctx, &page->buf, ctx->page_size)) {
		free(page);
		return NULL;
	}
	page->slots = slots;
	for (i = 0; i < slots; i++)
		page->free[i / 64] |= 1ULL << (i % 64);
	list_add(&ctx->dbr_pages, &page->node);
	return page;
}

static void dbr_page_del(struct skua_dbr_page *page)
{
	list_del(&page->node);
	skua_mem_free(&page->buf);
	free(page);
}

/* A zeroed doorbell record, or NULL with errno set. */
void *skua_dbr_alloc(struct skua_context *ctx)
{
	struct skua_dbr_page *page;
	void *dbr = NULL;
	unsigned int i;

	pthread_mutex_lock(&ctx->dbr_lock);
	page = list_top(&ctx->dbr_pages, struct skua_dbr_page, node);
	if (!page || page->used == page->slots)
		page = dbr_page_add(ctx);
	if (!page)
		goto out;

	for (i = 0; !page->free[i]; i++)
		;
	i = i * 64 + __builtin_ctzll(page->free[i]);
	page->free[i / 64] &= ~(1ULL << (i % 64));
	if (++page->used == page->slots) {
		list_del(&page->node);
		list_add_tail(&ctx->dbr_pages, &page->node);
	}
	dbr = (uint8_t *)page->buf.addr + (size_t)i * DBR_STRIDE;
	memset(dbr, 0, DBR_STRIDE);
out:
	pthread_mutex_unlock(&ctx->dbr_lock);
	return dbr;
}

void skua_dbr_free(struct skua_context *ctx, void *dbr)
{
	uintptr_t base = (uintptr_t)dbr & ~(ctx->page_size - 1);
	unsigned int i = ((uintptr_t)dbr - base) / DBR_STRIDE;
	struct skua_dbr_page *page;

	pthread_mutex_lock(&ctx->dbr_lock);
	list_for_each(&ctx->dbr_pages, page, node) {
		if ((uintptr_t)page->buf.addr != base)
			continue;
		page->free[i / 64] |= 1ULL << (i % 64);
		page->used--;
		list_del(&page->node);
		list_add(&ctx->dbr_pages, &page->node);
		if (!page->used)
			dbr_page_del(page);
		break;
	}
	pthread_mutex_unlock(&ctx->dbr_lock);
}

/* A program that closes a device with objects left leaves pages as well. */
void skua_dbr_cleanup(struct skua_context *ctx)
{
	struct skua_dbr_page *page, *next;

	list_for_each_safe(&ctx->dbr_pages, page, next, node)
		dbr_page_del(page);
}
