/* SPDX-License-Identifier: GPL-2.0 */
/* What the cases of skua-share have in common. */
#ifndef PROGS_SHARE_H
#define PROGS_SHARE_H

#include "common.h"

uint8_t *share_map(size_t len);
/*
 * Beside one another: user GREEDY takes things by @take and keeps them, until user OTHER, who
 * does @fare, has ended. True if both end as they should.
 */
bool share_beside(void (*take)(struct dev *dev, void *arg), void *arg,
		  bool (*fare)(struct dev *dev));

/* share_each.c: one case for each kind of object, on a device that has few of them */
void share_each(const char *name, int gid);

#endif /* PROGS_SHARE_H */
