/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the two files of the fake.
 */
#ifndef SKUA_TESTS_PROVIDER_FAKE_KERNEL_H
#define SKUA_TESTS_PROVIDER_FAKE_KERNEL_H

#include "fake.h"

/* One more step that can fail: does this one? */
bool fake_step_fails(void);
/* Forget all objects */
void fake_kernel_reset(void);
/* The file that contexts map: UAR page, status page, device memory */
#define FAKE_UAR_PAGE		0
#define FAKE_STATUS_PAGE	1
#define FAKE_DM_PAGE		2
#define FAKE_PUSH_PAGE		4
#define FAKE_FILE_PAGES		5

#endif /* SKUA_TESTS_PROVIDER_FAKE_KERNEL_H */
