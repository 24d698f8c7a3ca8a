/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings of queue pairs, for qp.c, qp_kernel.c and qp_user.c.
 */
#ifndef SKUA_IB_QP_H
#define SKUA_IB_QP_H

#include "skua_ib.h"

int skua_ib_kernel_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_qp_cap *cap,
		      struct skua_cmd_create_qp_in *in);
int skua_ib_kernel_publish(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init);
void skua_ib_kernel_reset(struct skua_ib_qp *qp);
void skua_ib_kernel_free(struct skua_ib_dev *dev, struct skua_ib_qp *qp);

int skua_ib_user_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_udata *udata,
		    const struct ib_qp_cap *cap, struct skua_cmd_create_qp_in *in);

#endif /* SKUA_IB_QP_H */
