// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers, lookup and lifetime of CQs, SRQs and QPs.
 *
 * An object is reserved (it has a number), published (lookup by number finds it), retired
 * (lookup fails, and all references are dropped) and released (its number can be reused).
 * Before the release the caller ensures that no event of the object is left in an EQ.
 */
#include <kunit/visibility.h>
#include <linux/random.h>

#include "skua.h"

/* QPN of multicast packets: never an object's. */
#define SKUA_NUM_MULTICAST	0xffffff

/**
 * skua_obj_table_init() - initialize an empty table
 * @t: the table
 * @first: first index to allocate
 * @last: last one
 * @index_bits: width of the index in a number
 * @num_bits: width of a number
 */
void skua_obj_table_init(struct skua_obj_table *t, u32 first, u32 last, u8 index_bits,
			 u8 num_bits)
{
	xa_init_flags(&t->xa, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	t->range = XA_LIMIT(first, last);
	t->index_bits = index_bits;
	t->num_bits = num_bits;
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_table_init);

/**
 * skua_obj_table_exit() - free a table without objects
 * @t: the table
 */
void skua_obj_table_exit(struct skua_obj_table *t)
{
	WARN_ON_ONCE(!xa_empty(&t->xa));
	xa_destroy(&t->xa);
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_table_exit);

static void skua_obj_init(struct skua_obj *obj, u32 num)
{
	obj->num = num;
	refcount_set(&obj->ref, 1);
	init_completion(&obj->free);
}

/**
 * skua_obj_reserve() - allocate a number for an object
 * @t: the table
 * @obj: the object
 *
 * Indices are allocated densely, so that contexts share ICM pages. The bits above the index
 * are random, so that the number of a new object differs from that of an earlier one.
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int skua_obj_reserve(struct skua_obj_table *t, struct skua_obj *obj)
{
	u32 index, num;
	int err;

	err = xa_alloc(&t->xa, &index, NULL, t->range, GFP_KERNEL_ACCOUNT);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	num = index;
	if (t->num_bits > t->index_bits) {
		u32 variants = BIT(t->num_bits - t->index_bits);

		num |= get_random_u32_below(variants) << t->index_bits;
		if (num == SKUA_NUM_MULTICAST)
			num = index;
	}
	skua_obj_init(obj, num);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_reserve);

/**
 * skua_obj_reserve_at() - reserve a given number for an object
 * @t: the table
 * @obj: the object
 * @num: a number whose index is outside of the table's range
 *
 * Return: 0, -EBUSY or -ENOMEM.
 */
int skua_obj_reserve_at(struct skua_obj_table *t, struct skua_obj *obj, u32 num)
{
	int err = xa_insert(&t->xa, skua_obj_index(t, num), NULL, GFP_KERNEL_ACCOUNT);

	if (!err)
		skua_obj_init(obj, num);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_reserve_at);

/**
 * skua_obj_release() - free the number of an object
 * @t: the table
 * @obj: a reserved or retired object
 */
void skua_obj_release(struct skua_obj_table *t, struct skua_obj *obj)
{
	xa_erase(&t->xa, skua_obj_index(t, obj->num));
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_release);

/**
 * skua_obj_publish() - make the object known to lookups
 * @t: the table
 * @obj: a reserved object
 */
void skua_obj_publish(struct skua_obj_table *t, struct skua_obj *obj)
{
	/* Cannot fail: the slot was allocated when the number was reserved. */
	WARN_ON(xa_err(xa_store(&t->xa, skua_obj_index(t, obj->num), obj, GFP_KERNEL)));
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_publish);

/**
 * skua_obj_retire() - hide the object from lookups and wait until its references are dropped
 * @t: the table
 * @obj: a published object
 *
 * The number stays reserved. Must not be called from an event callback.
 */
void skua_obj_retire(struct skua_obj_table *t, struct skua_obj *obj)
{
	/* NULL in an allocating array: the index stays taken. */
	xa_store(&t->xa, skua_obj_index(t, obj->num), NULL, GFP_KERNEL);
	skua_obj_put(obj);
	wait_for_completion(&obj->free);
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_retire);

/**
 * skua_obj_get() - look up an object and take a reference
 * @t: the table
 * @num: its number from the device, not trusted
 *
 * Return: the object, to be dropped with skua_obj_put(), or NULL.
 */
struct skua_obj *skua_obj_get(struct skua_obj_table *t, u32 num)
{
	struct skua_obj *obj;

	xa_lock(&t->xa);
	obj = xa_load(&t->xa, skua_obj_index(t, num));
	if (obj && (obj->num != num || !refcount_inc_not_zero(&obj->ref)))
		obj = NULL;
	xa_unlock(&t->xa);
	return obj;
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_get);

/**
 * skua_obj_next() - look up the next object and take a reference
 * @t: the table
 * @index: first index to look at; set to the index of the object
 *
 * Return: the object, to be dropped with skua_obj_put(), or NULL at the end.
 */
struct skua_obj *skua_obj_next(struct skua_obj_table *t, unsigned long *index)
{
	struct skua_obj *obj;

	xa_lock(&t->xa);
	obj = xa_find(&t->xa, index, ULONG_MAX, XA_PRESENT);
	while (obj && !refcount_inc_not_zero(&obj->ref))
		obj = xa_find_after(&t->xa, index, ULONG_MAX, XA_PRESENT);
	xa_unlock(&t->xa);
	return obj;
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_next);

/**
 * skua_obj_put() - drop a reference
 * @obj: the object
 */
void skua_obj_put(struct skua_obj *obj)
{
	if (refcount_dec_and_test(&obj->ref))
		complete(&obj->free);
}
EXPORT_SYMBOL_IF_KUNIT(skua_obj_put);
