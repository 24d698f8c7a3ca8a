// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains and XRC domains: numbers that contexts name, and nothing more.
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
	/* Not 0, which is what a context forgotten to fill in would name. */
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
 * @pdn: its number; no object names it any more
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
	/* Not 0, which says that there is none. */
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
 * @xrcd: its number; no object names it any more
 */
void skua_xrcd_free(struct skua_dev *dev, u32 xrcd)
{
	ida_free(&dev->xrcds, xrcd);
}
EXPORT_SYMBOL_NS_GPL(skua_xrcd_free, "SKUA");
