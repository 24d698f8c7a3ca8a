// SPDX-License-Identifier: GPL-2.0
/*
 * Driver-specific details for "rdma resource show -dd", and raw contexts of the device
 * for "rdma resource show -r".
 */
#include <linux/slab.h>
#include <rdma/restrack.h>
#include <net/netlink.h>
#include <uapi/rdma/rdma_netlink.h>

#include "skua_ib.h"

static struct nlattr *skua_ib_nest(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

static int skua_ib_nest_end(struct sk_buff *msg, struct nlattr *nest, bool failed)
{
	if (failed) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

/*
 * Selective repeat: the window that is in force is known to the device alone. A QP that has
 * not heard from a peer which supports it has none.
 */
static bool skua_ib_fill_sr(struct sk_buff *msg, struct skua_ib_qp *qp)
{
	struct skua_cmd_query_qp_out *out __free(kfree) = kzalloc_obj(*out);

	if (!out || skua_qp_query(skua_ib_qp_dev(qp)->core, &qp->core, out))
		return false;
	return rdma_nl_put_driver_u32(msg, "sr_window", skua_qp_sr_window(out)) ||
	       rdma_nl_put_driver_string(msg, "loss_recovery", skua_qp_recovery(out));
}

static int skua_ib_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct nlattr *nest = skua_ib_nest(msg);
	bool failed;

	if (!nest)
		return -EMSGSIZE;
	failed = rdma_nl_put_driver_u32(msg, "max_send_wr", qp->cap.max_send_wr) ||
		 rdma_nl_put_driver_u32(msg, "max_recv_wr", qp->cap.max_recv_wr) ||
		 rdma_nl_put_driver_u32(msg, "max_inline", qp->cap.max_inline_data);
	if (skua_ib_qp_is_kernel(qp))
		failed = failed ||
			 rdma_nl_put_driver_u32(msg, "sq_pi", READ_ONCE(qp->sq.pi)) ||
			 rdma_nl_put_driver_u32(msg, "sq_ci", READ_ONCE(qp->sq.ci)) ||
			 rdma_nl_put_driver_u32(msg, "rq_pi", READ_ONCE(qp->rq.pi)) ||
			 rdma_nl_put_driver_u32(msg, "rq_ci", READ_ONCE(qp->rq.ci));
	if (READ_ONCE(qp->rate_limit))
		failed = failed ||
			 rdma_nl_put_driver_u32(msg, "rate_limit", READ_ONCE(qp->rate_limit)) ||
			 rdma_nl_put_driver_u32(msg, "max_burst", READ_ONCE(qp->rate_burst));
	if (skua_qp_has_ext(&qp->core))
		failed = failed || skua_ib_fill_sr(msg, qp);
	return skua_ib_nest_end(msg, nest, failed);
}

static int skua_ib_fill_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	int err;

	/* An RSS QP has no QP context. */
	if (qp->is_rss)
		return -EOPNOTSUPP;

	struct skua_cmd_query_qp_out *out __free(kfree) = kzalloc_obj(*out);

	if (!out)
		return -ENOMEM;
	err = skua_qp_query(to_skua_dev(ibqp->device)->core, &qp->core, out);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(*out), out);
}

static int skua_ib_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	struct nlattr *nest = skua_ib_nest(msg);
	bool failed;

	if (!nest)
		return -EMSGSIZE;
	failed = rdma_nl_put_driver_u32(msg, "cqn", cq->core.obj.num) ||
		 rdma_nl_put_driver_u32(msg, "vector", cq->core.vector) ||
		 rdma_nl_put_driver_u32(msg, "irq", cq->core.irq);
	if (cq->ring)
		failed = failed || rdma_nl_put_driver_u32(msg, "ci", READ_ONCE(cq->ci)) ||
			 rdma_nl_put_driver_u32(msg, "arms", READ_ONCE(cq->arm_serial));
	return skua_ib_nest_end(msg, nest, failed);
}

static int skua_ib_fill_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	struct skua_cqc cqc = {};
	int err;

	err = skua_cq_query(to_skua_dev(ibcq->device)->core, &cq->core, &cqc);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(cqc), &cqc);
}

static int skua_ib_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	static const char * const mode[] = {
		[SKUA_XLAT_CONTIG] = "contiguous",
		[SKUA_XLAT_MTT] = "mtt",
		[SKUA_XLAT_INLINE] = "inline",
	};
	struct skua_ib_mr *mr = to_skua_mr(ibmr);
	struct nlattr *nest = skua_ib_nest(msg);
	bool failed;

	if (!nest)
		return -EMSGSIZE;
	if (mr->fr.max_pages) {
		failed = rdma_nl_put_driver_string(msg, "translation", "fast registration") ||
			 rdma_nl_put_driver_u32(msg, "pages", mr->fr.max_pages);
		return skua_ib_nest_end(msg, nest, failed);
	}
	if (mr->odp)
		return skua_ib_nest_end(msg, nest, skua_ib_odp_fill_res(msg, mr));
	failed = rdma_nl_put_driver_string(msg, "translation", mode[mr->mem.mode]);
	if (mr->mem.mode != SKUA_XLAT_CONTIG)
		failed = failed ||
			 rdma_nl_put_driver_u32(msg, "page_shift", mr->mem.log_page) ||
			 rdma_nl_put_driver_u32(msg, "pages", mr->mem.npages);
	return skua_ib_nest_end(msg, nest, failed);
}

static int skua_ib_fill_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct skua_ib_mr *mr = to_skua_mr(ibmr);
	struct skua_mpt mpt = {};
	int err;

	err = skua_mr_query(to_skua_dev(ibmr->device)->core, &mr->core, &mpt);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(mpt), &mpt);
}

static int skua_ib_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	struct nlattr *nest = skua_ib_nest(msg);
	bool failed;

	if (!nest)
		return -EMSGSIZE;
	failed = rdma_nl_put_driver_u32(msg, "srqn", srq->core.obj.num) ||
		 rdma_nl_put_driver_u32(msg, "wqes", READ_ONCE(srq->wqes)) ||
		 rdma_nl_put_driver_u32(msg, "max_sge", srq->max_sge);
	return skua_ib_nest_end(msg, nest, failed);
}

static int skua_ib_fill_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	struct skua_srqc srqc = {};
	int err;

	err = skua_srq_query(to_skua_dev(ibsrq->device)->core, &srq->core, &srqc);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(srqc), &srqc);
}

const struct ib_device_ops skua_ib_restrack_ops = {
	.fill_res_srq_entry = skua_ib_fill_srq,
	.fill_res_srq_entry_raw = skua_ib_fill_srq_raw,
	.fill_res_qp_entry = skua_ib_fill_qp,
	.fill_res_qp_entry_raw = skua_ib_fill_qp_raw,
	.fill_res_cq_entry = skua_ib_fill_cq,
	.fill_res_cq_entry_raw = skua_ib_fill_cq_raw,
	.fill_res_mr_entry = skua_ib_fill_mr,
	.fill_res_mr_entry_raw = skua_ib_fill_mr_raw,
};
