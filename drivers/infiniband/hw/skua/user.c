// SPDX-License-Identifier: GPL-2.0
/*
 * Per-user accounts of device resources. No object of verbs needs a privilege, except for
 * those over Ethernet. Memory that is pinned for a process counts against its
 * RLIMIT_MEMLOCK, which limits MTT entries, too; but on-demand regions and dma-bufs use MTT
 * entries without that, and no limit of the system covers the number of objects, UAR pages
 * or device memory. A user gets at most a fixed share of each.
 *
 * Accounts are per user ID and not per context, because a process may open any number
 * of contexts.
 */
#include <kunit/visibility.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/slab.h>

#include "skua_ib.h"

/* A user gets at most 1/SKUA_IB_USER_SHARE of each resource. */
#define SKUA_IB_USER_SHARE	4

/**
 * skua_ib_user_get() - get the account of the calling user
 * @dev: the device
 *
 * Return: the account with a reference, or NULL if there is no memory for one.
 */
struct skua_ib_user *skua_ib_user_get(struct skua_ib_dev *dev)
{
	kuid_t uid = current_uid();
	struct skua_ib_user *user;

	guard(mutex)(&dev->user_lock);
	list_for_each_entry(user, &dev->users, link) {
		if (uid_eq(user->uid, uid)) {
			refcount_inc(&user->refs);
			return user;
		}
	}
	user = kzalloc_obj(*user, GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	get_device(&dev->ibdev.dev);
	user->dev = dev;
	user->uid = uid;
	refcount_set(&user->refs, 1);
	spin_lock_init(&user->fault_lock);
	INIT_LIST_HEAD(&user->faults);
	list_add(&user->link, &dev->users);
	return user;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_user_get);

/**
 * skua_ib_user_hold() - take another reference to an account
 * @user: the account, or NULL for a kernel consumer, which has none
 *
 * Return: @user.
 */
struct skua_ib_user *skua_ib_user_hold(struct skua_ib_user *user)
{
	if (user)
		refcount_inc(&user->refs);
	return user;
}

static void skua_ib_user_free(struct skua_ib_user *user)
{
	struct skua_ib_dev *dev = user->dev;
	unsigned int res;

	for (res = 0; res < SKUA_IB_RES_COUNT; res++)
		WARN_ON_ONCE(atomic64_read(&user->used[res]));
	WARN_ON_ONCE(user->serving);
	kfree(user);
	put_device(&dev->ibdev.dev);
}

/**
 * skua_ib_user_put() - drop a reference to an account
 * @user: the account, or NULL
 *
 * Context: may sleep. May drop the last reference to the device.
 */
void skua_ib_user_put(struct skua_ib_user *user)
{
	struct skua_ib_dev *dev;

	if (!user)
		return;
	dev = user->dev;
	/*
	 * mutex_unlock() may still use the mutex when another thread has taken it already, and has
	 * dropped the last reference to the account, and with it that to a device which is removed.
	 * That is so as well if this turns out not to be the last one, with the mutex held.
	 */
	get_device(&dev->ibdev.dev);
	if (refcount_dec_and_mutex_lock(&user->refs, &dev->user_lock)) {
		list_del(&user->link);
		mutex_unlock(&dev->user_lock);
		skua_ib_user_free(user);
	}
	put_device(&dev->ibdev.dev);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_user_put);

/**
 * skua_ib_pd_user() - get the account that a protection domain belongs to
 * @ibpd: the domain
 *
 * Return: the account of the user who opened its context, or NULL for a domain of the
 * kernel. No reference is taken.
 */
struct skua_ib_user *skua_ib_pd_user(struct ib_pd *ibpd)
{
	return ibpd->uobject ? to_skua_ucontext(ibpd->uobject->context)->user : NULL;
}

/* What is taken for @num: MTT entries are handed out in groups. */
static u64 skua_ib_user_takes(enum skua_ib_resource res, u64 num)
{
	return res == SKUA_IB_RES_MTT ? round_up(num, SKUA_MTT_GROUP) : num;
}

static u64 skua_ib_user_max(const struct skua_ib_user *user, enum skua_ib_resource res)
{
	const struct skua_limits *lim = user->dev->lim;
	const u64 total[] = {
		[SKUA_IB_RES_MTT] = lim->max_mtt,
		[SKUA_IB_RES_KEY] = lim->max_mr,
		[SKUA_IB_RES_UAR] = lim->max_uar,
		[SKUA_IB_RES_DM] = lim->dm_size,
		[SKUA_IB_RES_QP] = lim->max_qp,
		[SKUA_IB_RES_CQ] = lim->max_cq,
		[SKUA_IB_RES_SRQ] = lim->max_srq,
		/* Domains are but numbers. One that no key, or no SRQ, belongs to is of no use. */
		[SKUA_IB_RES_PD] = lim->max_mr,
		[SKUA_IB_RES_XRCD] = lim->max_srq,
		[SKUA_IB_RES_MCG] = lim->max_mcg,
	};

	static_assert(ARRAY_SIZE(total) == SKUA_IB_RES_COUNT);
	return max(total[res] / SKUA_IB_USER_SHARE, skua_ib_user_takes(res, 1));
}

/*
 * Objects are created by the calling process, so its capabilities decide. MTT entries may be
 * charged by a work item on behalf of a user.
 */
static bool skua_ib_user_exempt(enum skua_ib_resource res)
{
	return res != SKUA_IB_RES_MTT && capable(CAP_SYS_RESOURCE);
}

/**
 * skua_ib_user_charge() - charge a resource to an account
 * @user: the account, or NULL for a kernel consumer, which is not limited
 * @res: the resource
 * @num: entries of one range, keys, pages or bytes
 *
 * Return: 0, or -ENOSPC if the user would exceed its share.
 */
int skua_ib_user_charge(struct skua_ib_user *user, enum skua_ib_resource res, u64 num)
{
	static const char * const name[] = {
		[SKUA_IB_RES_MTT] = "MTT entries of memory that RLIMIT_MEMLOCK does not cover",
		[SKUA_IB_RES_KEY] = "keys of regions and windows",
		[SKUA_IB_RES_UAR] = "UAR pages",
		[SKUA_IB_RES_DM] = "bytes of device memory",
		[SKUA_IB_RES_QP] = "QPs",
		[SKUA_IB_RES_CQ] = "CQs",
		[SKUA_IB_RES_SRQ] = "SRQs",
		[SKUA_IB_RES_PD] = "protection domains",
		[SKUA_IB_RES_XRCD] = "XRC domains",
		[SKUA_IB_RES_MCG] = "members of multicast groups",
	};
	u64 max;

	if (!user)
		return 0;
	max = skua_ib_user_max(user, res);
	if (num <= S64_MAX / 2) {
		num = skua_ib_user_takes(res, num);
		if (atomic64_add_return(num, &user->used[res]) <= max || skua_ib_user_exempt(res))
			return 0;
		atomic64_sub(num, &user->used[res]);
	}
	return skua_ib_refuse(user->dev, -ENOSPC,
			      "user %u has %lld %s, %llu more exceed the limit of %llu",
			      from_kuid(&init_user_ns, user->uid),
			      atomic64_read(&user->used[res]), name[res], num, max);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_user_charge);

/**
 * skua_ib_user_uncharge() - take a charge back
 * @user: the account, or NULL
 * @res: the resource
 * @num: what was charged
 */
void skua_ib_user_uncharge(struct skua_ib_user *user, enum skua_ib_resource res, u64 num)
{
	if (user)
		atomic64_sub(skua_ib_user_takes(res, num), &user->used[res]);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_user_uncharge);

/**
 * skua_ib_user_own() - charge an object to an account that it keeps
 * @user: filled in: the account with a reference, or NULL for a kernel consumer
 * @dev: the device
 * @udata: of the context that the object belongs to, or NULL
 * @shared: processes share the object, so that it may outlive the context it is created in:
 *	it is charged to the calling user
 * @res: the kind of object
 *
 * Return: 0, -ENOSPC if the user would exceed its share, or -ENOMEM.
 */
int skua_ib_user_own(struct skua_ib_user **user, struct skua_ib_dev *dev, struct ib_udata *udata,
		     bool shared, enum skua_ib_resource res)
{
	struct skua_ib_user *u = NULL;
	int err;

	if (shared) {
		u = skua_ib_user_get(dev);
		if (!u)
			return -ENOMEM;
	} else if (udata) {
		u = skua_ib_user_hold(rdma_udata_to_drv_context(udata, struct skua_ib_ucontext,
								ibuc)->user);
	}
	err = skua_ib_user_charge(u, res, 1);
	if (err) {
		skua_ib_user_put(u);
		u = NULL;
	}
	*user = u;
	return err;
}

/**
 * skua_ib_user_disown() - undo skua_ib_user_own()
 * @user: the account, or NULL
 * @res: the kind of object
 */
void skua_ib_user_disown(struct skua_ib_user *user, enum skua_ib_resource res)
{
	skua_ib_user_uncharge(user, res, 1);
	skua_ib_user_put(user);
}
