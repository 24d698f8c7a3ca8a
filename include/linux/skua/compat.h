/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Older kernels: included before everything else by the out-of-tree build, never
 * by name. Each part is switched by tools/scripts/kconftest.sh, which looks for
 * the thing itself in the kernel's headers.
 */
#ifndef LINUX_SKUA_COMPAT_H
#define LINUX_SKUA_COMPAT_H

/* Namespaces were tokens before they became strings. */
#ifdef SKUA_COMPAT_NS_STRING
#include <linux/export.h>
#include <linux/module.h>
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)		MODULE_INFO(import_ns, ns)
#undef EXPORT_SYMBOL_NS
#define EXPORT_SYMBOL_NS(sym, ns)	__EXPORT_SYMBOL(sym, "", ns)
#undef EXPORT_SYMBOL_NS_GPL
#define EXPORT_SYMBOL_NS_GPL(sym, ns)	__EXPORT_SYMBOL(sym, "GPL", ns)
#endif

/* The graceful period was an argument before it became a field of the operations. */
#ifdef SKUA_COMPAT_HEALTH_GRACE
#include <net/devlink.h>
#endif

#endif /* LINUX_SKUA_COMPAT_H */
