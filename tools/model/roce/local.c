// SPDX-License-Identifier: GPL-2.0
/*
 * WQEs that change keys (bind, invalidate, register): executed once, when they are next in the
 * send queue. They send no packet, so that they are not repeated when the queue goes back.
 */
#include "engine.h"

enum skua_vendor local_run(struct turn *t, const struct wqe *w)
{
	struct mr_who who = who_local(t, 0);

	switch (w->op) {
	case SKUA_WQE_BIND_MW:
		return key_bind(t->dev, &who, &w->bind);
	case SKUA_WQE_LOCAL_INV:
		return key_invalidate(t->dev, &who, w->imm);
	case SKUA_WQE_REG_MR:
		return key_register(t->dev, &who, &w->reg);
	default:
		return SKUA_VENDOR_NONE;
	}
}
