// SPDX-License-Identifier: GPL-2.0
/*
 * User contexts. Each has a UAR page for doorbells and a status page that shows whether
 * the device is alive.
 */
#include <kunit/visibility.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <rdma/uverbs_ioctl.h>

#include "skua_ib.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static struct skua_ib_mmap *to_skua_mmap(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct skua_ib_mmap, entry);
}

static int skua_ib_uar_get(struct skua_ib_ucontext *uc, struct skua_uar *uar)
{
	struct skua_ib_dev *dev = to_skua_dev(uc->ibuc.device);
	int err;

	err = skua_ib_user_charge(uc->user, SKUA_IB_RES_UAR, 1);
	if (err)
		return err;
	err = skua_uar_alloc(dev->core, uar, false);
	if (err) {
		skua_ib_user_uncharge(uc->user, SKUA_IB_RES_UAR, 1);
		return skua_ib_refuse(dev, err, "alloc_ucontext: no UAR page of %u: %pe",
				      dev->lim->max_uar, ERR_PTR(err));
	}
	return 0;
}

static void skua_ib_uar_put(struct skua_ib_ucontext *uc, struct skua_uar *uar)
{
	skua_uar_free(to_skua_dev(uc->ibuc.device)->core, uar);
	skua_ib_user_uncharge(uc->user, SKUA_IB_RES_UAR, 1);
}

/*
 * Called when the entry is removed and its last mapping is gone. The RDMA core destroys
 * the context only after that.
 */
static void skua_ib_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct skua_ib_ucontext *uc = to_skua_ucontext(entry->ucontext);
	struct skua_ib_mmap *map = to_skua_mmap(entry);

	switch (map->kind) {
	case SKUA_IB_MMAP_UAR:
	case SKUA_IB_MMAP_PUSH:
		skua_ib_uar_put(uc, &map->uar);
		break;
	case SKUA_IB_MMAP_STATUS:
		put_page(map->page);
		break;
	case SKUA_IB_MMAP_DM:
		skua_ib_dm_put(uc, &map->dm);
		break;
	}
	kfree(map);
}

static int skua_ib_map_uar(struct skua_ib_ucontext *uc, enum skua_ib_mmap_kind kind,
			   struct skua_ib_mmap **mapped)
{
	int err;

	struct skua_ib_mmap *map __free(kfree) = kzalloc_obj(*map, GFP_KERNEL_ACCOUNT);

	if (!map)
		return -ENOMEM;
	map->kind = kind;
	err = skua_ib_uar_get(uc, &map->uar);
	if (err)
		return err;
	err = rdma_user_mmap_entry_insert(&uc->ibuc, &map->entry, PAGE_SIZE);
	if (err) {
		skua_ib_uar_put(uc, &map->uar);
		return err;
	}
	*mapped = no_free_ptr(map);
	return 0;
}

/*
 * The page for pushes is one of its own: the pages of the BAR that one process maps must
 * not be mapped both write-combining and not, and doorbells are better not. Without one,
 * as all may be in use, QPs do without pushes.
 */
static void skua_ib_map_push(struct skua_ib_ucontext *uc, u32 wish)
{
	const struct skua_limits *lim = to_skua_dev(uc->ibuc.device)->lim;

	if (!(lim->caps & SKUA_CAP_PUSH) ||
	    !(wish & SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS ||
	      (wish & SKUA_ALLOC_UCONTEXT_PUSH && lim->push_segs)))
		return;
	if (skua_ib_map_uar(uc, SKUA_IB_MMAP_PUSH, &uc->push_map))
		return;
	uc->push_uar = uc->push_map->uar.index;
}

static int skua_ib_map_status(struct skua_ib_ucontext *uc)
{
	struct page *page;
	int err;

	struct skua_ib_mmap *map __free(kfree) = kzalloc_obj(*map, GFP_KERNEL_ACCOUNT);

	if (!map)
		return -ENOMEM;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!page)
		return -ENOMEM;
	map->kind = SKUA_IB_MMAP_STATUS;
	map->page = page;
	err = rdma_user_mmap_entry_insert(&uc->ibuc, &map->entry, PAGE_SIZE);
	if (err) {
		put_page(page);
		return err;
	}
	uc->status = page_address(page);
	uc->status_map = no_free_ptr(map);
	return 0;
}

/**
 * skua_ib_status_dead() - clear the status pages of all contexts
 * @dev: the device; dev->dead is set already, so no new context is marked alive
 */
void skua_ib_status_dead(struct skua_ib_dev *dev)
{
	struct skua_ib_ucontext *uc;

	guard(mutex)(&dev->uc_lock);
	list_for_each_entry(uc, &dev->ucontexts, link)
		WRITE_ONCE(uc->status->alive, 0);
}

static void skua_ib_ucontext_publish(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc)
{
	guard(mutex)(&dev->uc_lock);
	WRITE_ONCE(uc->status->alive, !skua_ib_dead(dev));
	list_add(&uc->link, &dev->ucontexts);
}

static void skua_ib_ucontext_withdraw(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc)
{
	guard(mutex)(&dev->uc_lock);
	list_del(&uc->link);
	/* The page stays as long as it is mapped, even after the driver is gone. */
	WRITE_ONCE(uc->status->alive, 0);
}

static void skua_ib_ucontext_tell(struct skua_ib_ucontext *uc,
				  struct skua_alloc_ucontext_resp *resp)
{
	const struct skua_limits *lim = to_skua_dev(uc->ibuc.device)->lim;

	resp->uar_size = PAGE_SIZE;
	resp->uar_offset = rdma_user_mmap_get_offset(&uc->uar_map->entry);
	resp->status_offset = rdma_user_mmap_get_offset(&uc->status_map->entry);
	resp->caps = lim->caps;
	resp->max_sq_blocks = min_t(u32, lim->max_sq_blocks, SKUA_IB_MAX_RING);
	resp->max_rq_wqes = min_t(u32, lim->max_rq_wqes, SKUA_IB_MAX_RING);
	resp->max_wqe_blocks = lim->max_wqe_blocks;
	resp->max_rq_sge = lim->max_rq_sge;
	resp->max_inline = lim->max_inline;
	resp->max_cqe = lim->max_cqe;
	resp->clock_khz = lim->clock_khz;
	resp->ece_options = skua_ib_ece_options(lim);
	if (!uc->push_map)
		return;
	resp->push_offset = rdma_user_mmap_get_offset(&uc->push_map->entry);
	resp->push_size = PAGE_SIZE;
	resp->push_segs = lim->push_segs ?: SKUA_PUSH_SEGS;
}

static int skua_ib_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct skua_ib_ucontext *uc = to_skua_ucontext(ibuc);
	struct skua_ib_dev *dev = to_skua_dev(ibuc->device);
	struct skua_alloc_ucontext_resp resp = {};
	struct skua_alloc_ucontext_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, reserved,
					   SKUA_ALLOC_UCONTEXT_PUSH |
					   SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS);
	if (err)
		return err;
	if (req.reserved)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "alloc_ucontext: reserved field %#llx, must be 0",
				      (u64)req.reserved);
	if (skua_ib_dead(dev))
		return -EIO;

	mutex_init(&uc->page_lock);
	xa_init_flags(&uc->pages, XA_FLAGS_ACCOUNT);
	uc->user = skua_ib_user_get(dev);
	if (!uc->user)
		return -ENOMEM;
	err = skua_ib_map_uar(uc, SKUA_IB_MMAP_UAR, &uc->uar_map);
	if (err)
		goto err_user;
	uc->uar = uc->uar_map->uar.index;
	err = skua_ib_map_status(uc);
	if (err)
		goto err_uar;
	skua_ib_map_push(uc, req.comp_mask);
	/* Not another one at the same address, while the context lives. */
	mmgrab(current->mm);
	uc->mm = current->mm;
	skua_ib_ucontext_publish(dev, uc);

	skua_ib_ucontext_tell(uc, &resp);
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_status;
	return 0;

err_status:
	mmdrop(uc->mm);
	skua_ib_ucontext_withdraw(dev, uc);
	if (uc->push_map)
		rdma_user_mmap_entry_remove(&uc->push_map->entry);
	rdma_user_mmap_entry_remove(&uc->status_map->entry);
err_uar:
	rdma_user_mmap_entry_remove(&uc->uar_map->entry);
err_user:
	skua_ib_user_put(uc->user);
	return err;
}

static void skua_ib_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct skua_ib_ucontext *uc = to_skua_ucontext(ibuc);

	/* All queues are gone. */
	WARN_ON_ONCE(!xa_empty(&uc->pages));
	mmdrop(uc->mm);
	skua_ib_ucontext_withdraw(to_skua_dev(ibuc->device), uc);
	if (uc->push_map)
		rdma_user_mmap_entry_remove(&uc->push_map->entry);
	rdma_user_mmap_entry_remove(&uc->status_map->entry);
	rdma_user_mmap_entry_remove(&uc->uar_map->entry);
	skua_ib_user_put(uc->user);
}

/**
 * skua_ib_mmap_check() - check the flags of a mapping
 * @kind: what is to be mapped
 * @flags: vm_flags of the VMA
 *
 * The UAR pages must be mapped write-only, the status page read-only, device memory in any way.
 * A mapping for reading and execution is allowed, because all for reading are that with the
 * personality READ_IMPLIES_EXEC. The caller takes the right to execute away.
 *
 * Return: 0, -EINVAL or -EPERM.
 */
int skua_ib_mmap_check(enum skua_ib_mmap_kind kind, vm_flags_t flags)
{
	if (!(flags & VM_SHARED))
		return -EINVAL;
	if ((flags & (VM_READ | VM_EXEC)) == VM_EXEC)
		return -EPERM;
	switch (kind) {
	case SKUA_IB_MMAP_UAR:
	case SKUA_IB_MMAP_PUSH:
		if (flags & VM_READ)
			return -EPERM;
		return (flags & VM_WRITE) ? 0 : -EINVAL;
	case SKUA_IB_MMAP_STATUS:
		return (flags & VM_WRITE) ? -EPERM : 0;
	case SKUA_IB_MMAP_DM:
		return 0;
	}
	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_mmap_check);

static int skua_ib_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct skua_ib_mmap *map;
	int err;

	/* Fails if the VMA is not shared or does not cover the whole entry. */
	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry)
		return skua_ib_refuse(to_skua_dev(ibuc->device), -EINVAL,
				      "mmap: %lu bytes at offset %#lx: not a whole entry, or not shared",
				      vma->vm_end - vma->vm_start, vma->vm_pgoff << PAGE_SHIFT);
	map = to_skua_mmap(entry);
	err = skua_ib_mmap_check(map->kind, vma->vm_flags);
	if (err) {
		ibdev_dbg(ibuc->device, "mmap: offset %#lx, kind %d: flags %#lx are not allowed\n",
			  vma->vm_pgoff << PAGE_SHIFT, map->kind, vma->vm_flags);
		goto out;
	}

	vm_flags_clear(vma, VM_EXEC | VM_MAYEXEC);
	/* The kernel does this behind the callback, which is too late for what is mapped here. */
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	switch (map->kind) {
	case SKUA_IB_MMAP_UAR:
		vm_flags_clear(vma, VM_MAYREAD);
		/*
		 * Not write-combined: each doorbell store must reach the device
		 * immediately and as a write of its own.
		 */
		err = rdma_user_mmap_io(ibuc, vma, map->uar.pfn, PAGE_SIZE,
					pgprot_noncached(vma->vm_page_prot), entry);
		break;
	case SKUA_IB_MMAP_PUSH:
		vm_flags_clear(vma, VM_MAYREAD);
		/* The eight stores to a push slot are to become one write of 64 bytes. */
		err = rdma_user_mmap_io(ibuc, vma, map->uar.pfn, PAGE_SIZE,
					pgprot_writecombine(vma->vm_page_prot), entry);
		break;
	case SKUA_IB_MMAP_STATUS:
		vm_flags_clear(vma, VM_MAYWRITE);
		/*
		 * A page of host memory with a reference from the mapping: it need not
		 * be unmapped when the device is removed. It reads as zero then.
		 */
		err = vm_insert_page(vma, vma->vm_start, map->page);
		break;
	case SKUA_IB_MMAP_DM:
		err = rdma_user_mmap_io(ibuc, vma, map->dm.pfn, map->dm.size,
					pgprot_writecombine(vma->vm_page_prot), entry);
		break;
	}
out:
	rdma_user_mmap_entry_put(entry);
	return err;
}

#ifndef SKUA_COMPAT_MMAP_PFNS
/* Only device memory can be exported as a dma-buf, no UAR or status page. */
static int skua_ib_mmap_get_pfns(struct rdma_user_mmap_entry *entry, struct phys_vec *vec,
				 struct p2pdma_provider **provider)
{
	struct skua_ib_dev *dev = to_skua_dev(entry->ucontext->device);
	struct skua_ib_mmap *map = to_skua_mmap(entry);

	if (map->kind != SKUA_IB_MMAP_DM)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "dma-buf export: mmap entry of kind %d is not device memory",
				      map->kind);
	*provider = skua_dm_provider(dev->core);
	if (!*provider)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "dma-buf export: the kernel does not support peer-to-peer DMA");
	vec->paddr = PFN_PHYS(map->dm.pfn);
	vec->len = map->dm.size;
	return 0;
}

/* Find an entry by its mmap offset in bytes. */
static struct rdma_user_mmap_entry *skua_ib_pgoff_to_mmap_entry(struct ib_ucontext *ibuc,
								off_t off)
{
	if (off < 0 || offset_in_page(off))
		return NULL;
	return rdma_user_mmap_entry_get_pgoff(ibuc, off >> PAGE_SHIFT);
}
#endif

/* The RDMA core unmaps the UAR pages. Required for disassociation, even if empty. */
static void skua_ib_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static int skua_ib_query_ucontext(struct ib_ucontext *ibuc, struct uverbs_attr_bundle *attrs)
{
	struct skua_alloc_ucontext_resp resp = {};

	if (!uverbs_attr_is_valid(attrs, SKUA_ATTR_QUERY_CONTEXT_RESP))
		return 0;
	skua_ib_ucontext_tell(to_skua_ucontext(ibuc), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, SKUA_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

const struct ib_device_ops skua_ib_ucontext_ops = {
	.alloc_ucontext = skua_ib_alloc_ucontext,
	.dealloc_ucontext = skua_ib_dealloc_ucontext,
	.disassociate_ucontext = skua_ib_disassociate_ucontext,
	.mmap = skua_ib_mmap,
	.mmap_free = skua_ib_mmap_free,
#ifndef SKUA_COMPAT_MMAP_PFNS
	.mmap_get_pfns = skua_ib_mmap_get_pfns,
	.pgoff_to_mmap_entry = skua_ib_pgoff_to_mmap_entry,
#endif
	.query_ucontext = skua_ib_query_ucontext,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, skua_ib_ucontext, ibuc),
};

/* --- driver methods and attributes --- */

static int UVERBS_HANDLER(SKUA_METHOD_DEVICE_CLOCK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	struct skua_clock_resp resp = {};
	struct skua_ib_dev *dev;
	u64 before;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);
	dev = to_skua_dev(ibuc->device);
	if (!(dev->lim->caps & SKUA_CAP_TIMESTAMP))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "device_clock: the device does not support timestamps");
	/* The register is sampled about half way through the read. */
	before = ktime_get_real_ns();
	resp.clock = skua_clock(dev->core);
	resp.real_ns = before + (ktime_get_real_ns() - before) / 2;
	if (skua_ib_dead(dev) || resp.clock == U64_MAX)
		return -EIO;
	return uverbs_copy_to_struct_or_zero(attrs, SKUA_ATTR_DEVICE_CLOCK_RESP, &resp,
					     sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_METHOD_DEVICE_CLOCK,
			    UVERBS_ATTR_PTR_OUT(SKUA_ATTR_DEVICE_CLOCK_RESP,
						UVERBS_ATTR_STRUCT(struct skua_clock_resp, real_ns),
						UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DEVICE, &UVERBS_METHOD(SKUA_METHOD_DEVICE_CLOCK));

/* A driver attribute of the RDMA core's QUERY_CONTEXT method. */
static const struct uverbs_attr_def * const skua_ib_query_context_attrs[] = {
	UVERBS_ATTR_PTR_OUT(SKUA_ATTR_QUERY_CONTEXT_RESP,
			    UVERBS_ATTR_STRUCT(struct skua_alloc_ucontext_resp, ece_options),
			    UA_OPTIONAL),
};

static const struct uverbs_method_def skua_ib_query_context = {
	.id = UVERBS_METHOD_QUERY_CONTEXT,
	.num_attrs = ARRAY_SIZE(skua_ib_query_context_attrs),
	.attrs = &skua_ib_query_context_attrs,
};

static const struct uverbs_method_def * const skua_ib_device_methods[] = {
	&skua_ib_query_context,
};

static const struct uverbs_object_def skua_ib_device_object = {
	.id = UVERBS_OBJECT_DEVICE,
	.num_methods = ARRAY_SIZE(skua_ib_device_methods),
	.methods = &skua_ib_device_methods,
};

const struct uapi_definition skua_ib_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &skua_ib_device_object),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DEVICE),
	{},
};
