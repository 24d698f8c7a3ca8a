// SPDX-License-Identifier: GPL-2.0
/*
 * What one user has of the device where no limit of the system counts it. Memory that is
 * pinned counts against RLIMIT_MEMLOCK, and every ring is pinned; but on-demand regions,
 * dma-bufs, windows and null regions take keys and translation entries for nothing, and
 * anybody may have them. Nobody gets more than a part of what there is of both.
 *
 * Users are told apart by their user ID, and not by their contexts, of which a process
 * opens as many as it likes.
 */
#include <linux/cred.h>
#include <linux/slab.h>

#include "skua_ib.h"

/* Nobody has more than this part of the keys and of the MTT entries. */
#define SKUA_IB_USER_PART	4

/**
 * skua_ib_user_get() - the account of who calls
 * @dev: the device
 *
 * Return: the account, with a reference, or NULL.
 */
struct skua_ib_user *skua_ib_user_get(struct skua_ib_dev *dev)
{
	kuid_t uid = current_uid();
	struct skua_ib_user *user;

	guard(mutex)(&dev->user_lock);
	list_for_each_entry(user, &dev->users, link) {
		if (uid_eq(user->uid, uid)) {
			user->refs++;
			return user;
		}
	}
	user = kzalloc_obj(*user, GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	user->dev = dev;
	user->uid = uid;
	user->refs = 1;
	spin_lock_init(&user->fault_lock);
	INIT_LIST_HEAD(&user->faults);
	list_add(&user->link, &dev->users);
	return user;
}

/**
 * skua_ib_user_hold() - another reference
 * @user: the account; NULL: the kernel, which has none
 *
 * Return: @user.
 */
struct skua_ib_user *skua_ib_user_hold(struct skua_ib_user *user)
{
	if (!user)
		return NULL;
	guard(mutex)(&user->dev->user_lock);
	user->refs++;
	return user;
}

/**
 * skua_ib_user_put() - a reference less
 * @user: the account, or NULL
 */
void skua_ib_user_put(struct skua_ib_user *user)
{
	if (!user)
		return;
	scoped_guard(mutex, &user->dev->user_lock) {
		if (--user->refs)
			return;
		list_del(&user->link);
	}
	WARN_ON_ONCE(atomic64_read(&user->mtt) || atomic_read(&user->keys) || user->serving);
	kfree(user);
}

/**
 * skua_ib_pd_user() - whose is a protection domain?
 * @ibpd: the domain
 *
 * Return: the account of who opened its context, or NULL for the kernel's.
 */
struct skua_ib_user *skua_ib_pd_user(struct ib_pd *ibpd)
{
	return ibpd->uobject ? to_skua_ucontext(ibpd->uobject->context)->user : NULL;
}

/**
 * skua_ib_user_take_mtt() - count MTT entries
 * @user: the account, or NULL
 * @num: entries
 *
 * Return: 0, or -ENOSPC if that were more than the user's part.
 */
int skua_ib_user_take_mtt(struct skua_ib_user *user, u64 num)
{
	u64 max, now;

	if (!user)
		return 0;
	max = user->dev->lim->max_mtt / SKUA_IB_USER_PART;
	now = num > max ? U64_MAX : atomic64_add_return(num, &user->mtt);
	if (now <= max)
		return 0;
	if (num <= max)
		atomic64_sub(num, &user->mtt);
	ibdev_dbg(&user->dev->ibdev, "user %u has %lld MTT entries, %llu more are over %llu\n",
		  from_kuid(&init_user_ns, user->uid), atomic64_read(&user->mtt), num, max);
	return -ENOSPC;
}

/**
 * skua_ib_user_give_mtt() - count MTT entries off
 * @user: the account, or NULL
 * @num: entries
 */
void skua_ib_user_give_mtt(struct skua_ib_user *user, u64 num)
{
	if (user)
		atomic64_sub(num, &user->mtt);
}

/**
 * skua_ib_user_take_key() - count a key
 * @user: the account, or NULL
 *
 * Return: 0, or -ENOSPC if that were more than the user's part.
 */
int skua_ib_user_take_key(struct skua_ib_user *user)
{
	u32 max;

	if (!user)
		return 0;
	max = user->dev->lim->max_mr / SKUA_IB_USER_PART;
	if (atomic_inc_return(&user->keys) <= max)
		return 0;
	atomic_dec(&user->keys);
	ibdev_dbg(&user->dev->ibdev, "user %u has %u keys of regions that are not pinned, and windows\n",
		  from_kuid(&init_user_ns, user->uid), max);
	return -ENOSPC;
}

/**
 * skua_ib_user_give_key() - count a key off
 * @user: the account, or NULL
 */
void skua_ib_user_give_key(struct skua_ib_user *user)
{
	if (user)
		atomic_dec(&user->keys);
}
