/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Interface of the Skua provider to programs, beyond the verbs.
 */
#ifndef SKUADV_H
#define SKUADV_H

/**
 * enum skuadv_res_type - what the allocator of a parent domain is asked for
 * @SKUADV_RES_QP: both rings of a queue pair
 * @SKUADV_RES_CQ: ring of a completion queue
 *
 * The allocator is asked for whole pages and must return page-aligned memory. Doorbell
 * records are not allocated by it.
 */
enum skuadv_res_type {
	SKUADV_RES_QP = 0x5ca00000,
	SKUADV_RES_CQ,
};

#endif /* SKUADV_H */
