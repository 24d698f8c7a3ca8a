/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers, lookup and lifetime of CQs, SRQs and QPs, internal to skua_core.
 */
#ifndef SKUA_CORE_OBJ_H
#define SKUA_CORE_OBJ_H

#include <linux/xarray.h>

#include <linux/skua/core.h>

/**
 * struct skua_obj_table - objects of one kind
 * @xa: struct skua_obj by index. An index without a published object is reserved
 *	(a zero entry) or free. The array's lock makes lookup and taking a reference
 *	one step against retiring; process context only.
 * @range: indices handed out
 * @index_bits: width of the index in a number
 * @num_bits: width of a number; the bits above the index are random
 */
struct skua_obj_table {
	struct xarray xa;
	struct xa_limit range;
	u8 index_bits;
	u8 num_bits;
};

void skua_obj_table_init(struct skua_obj_table *t, u32 first, u32 last, u8 index_bits,
			 u8 num_bits);
void skua_obj_table_exit(struct skua_obj_table *t);
int skua_obj_reserve(struct skua_obj_table *t, struct skua_obj *obj);
int skua_obj_reserve_at(struct skua_obj_table *t, struct skua_obj *obj, u32 num);
void skua_obj_release(struct skua_obj_table *t, struct skua_obj *obj);
void skua_obj_publish(struct skua_obj_table *t, struct skua_obj *obj);
void skua_obj_retire(struct skua_obj_table *t, struct skua_obj *obj);
struct skua_obj *skua_obj_get(struct skua_obj_table *t, u32 num);
struct skua_obj *skua_obj_next(struct skua_obj_table *t, unsigned long *index);
void skua_obj_put(struct skua_obj *obj);

static inline u32 skua_obj_index(const struct skua_obj_table *t, u32 num)
{
	return num & (BIT(t->index_bits) - 1);
}

#endif /* SKUA_CORE_OBJ_H */
