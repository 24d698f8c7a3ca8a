/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * What a program may know about the Skua provider beyond the verbs.
 */
#ifndef SKUADV_H
#define SKUADV_H

/**
 * enum skuadv_res_type - what the allocator of a parent domain is asked for
 * @SKUADV_RES_QP: both rings of a queue pair
 * @SKUADV_RES_CQ: ring of a completion queue
 *
 * The allocator gets whole pages to allocate, and must return a page's beginning.
 * Doorbell records are the provider's own: they share pages.
 */
enum skuadv_res_type {
	SKUADV_RES_QP = 0x5ca00000,
	SKUADV_RES_CQ,
};

#endif /* SKUADV_H */
