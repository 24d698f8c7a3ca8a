// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains and XRC domains: allocation of the numbers that contexts contain.
 */
#include "skua.h"

/**
 * skua_pd_alloc() - allocate a protection domain
 * @dev: the function
 * @pdn: its number
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int skua_pd_alloc(struct skua_dev *dev, u32 *pdn)
{
	/* Not 0, so that a context that was not filled in has no valid domain. */
	int id = ida_alloc_range(&dev->pds, 1, SKUA_PDN_MAX, GFP_KERNEL_ACCOUNT);

	if (id < 0)
		return id;
	*pdn = id;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_pd_alloc, "SKUA");

/**
 * skua_pd_free() - free a protection domain
 * @dev: the function
 * @pdn: its number, to which no object refers any more
 */
void skua_pd_free(struct skua_dev *dev, u32 pdn)
{
	ida_free(&dev->pds, pdn);
}
EXPORT_SYMBOL_NS_GPL(skua_pd_free, "SKUA");

/**
 * skua_xrcd_alloc() - allocate an XRC domain
 * @dev: the function
 * @xrcd: its number
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int skua_xrcd_alloc(struct skua_dev *dev, u32 *xrcd)
{
	/* Not 0, which means none. */
	int id = ida_alloc_range(&dev->xrcds, 1, SKUA_PDN_MAX, GFP_KERNEL_ACCOUNT);

	if (id < 0)
		return id;
	*xrcd = id;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_xrcd_alloc, "SKUA");

/**
 * skua_xrcd_free() - free an XRC domain
 * @dev: the function
 * @xrcd: its number, to which no object refers any more
 */
void skua_xrcd_free(struct skua_dev *dev, u32 xrcd)
{
	ida_free(&dev->xrcds, xrcd);
}
EXPORT_SYMBOL_NS_GPL(skua_xrcd_free, "SKUA");
