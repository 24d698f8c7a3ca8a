/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM skua_ib

#if !defined(SKUA_IB_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SKUA_IB_TRACE_H

#include <linux/tracepoint.h>

#include "skua_ib.h"

TRACE_EVENT(skua_ib_modify_qp,
	TP_PROTO(const struct ib_device *ibdev, u32 qpn, enum ib_qp_state from,
		 enum ib_qp_state to, u32 mask, int err),
	TP_ARGS(ibdev, qpn, from, to, mask, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&ibdev->dev))
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
		__field(u32, mask)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qpn;
		__entry->from = from;
		__entry->to = to;
		__entry->mask = mask;
		__entry->err = err;
	),
	TP_printk("%s: QP %#x %u to %u mask %#x err %d", __get_str(dev), __entry->qpn,
		  __entry->from, __entry->to, __entry->mask, __entry->err)
);

DECLARE_EVENT_CLASS(skua_ib_ah,
	TP_PROTO(const struct ib_device *ibdev, const struct skua_av *av),
	TP_ARGS(ibdev, av),
	TP_STRUCT__entry(
		__string(dev, dev_name(&ibdev->dev))
		__array(u8, dgid, sizeof_field(struct skua_av, dgid))
		__array(u8, dmac, sizeof_field(struct skua_av, dmac))
		__field(u32, sgid_index)
	),
	TP_fast_assign(
		__assign_str(dev);
		memcpy(__entry->dgid, av->dgid, sizeof(av->dgid));
		memcpy(__entry->dmac, av->dmac, sizeof(av->dmac));
		__entry->sgid_index = le16_to_cpu(av->sgid_index);
	),
	TP_printk("%s: to %pI6c via %pM from GID index %u", __get_str(dev), __entry->dgid,
		  __entry->dmac, __entry->sgid_index)
);

DEFINE_EVENT(skua_ib_ah, skua_ib_create_ah,
	TP_PROTO(const struct ib_device *ibdev, const struct skua_av *av),
	TP_ARGS(ibdev, av)
);

DEFINE_EVENT(skua_ib_ah, skua_ib_destroy_ah,
	TP_PROTO(const struct ib_device *ibdev, const struct skua_av *av),
	TP_ARGS(ibdev, av)
);

DECLARE_EVENT_CLASS(skua_ib_pd,
	TP_PROTO(const struct ib_device *ibdev, u32 pdn),
	TP_ARGS(ibdev, pdn),
	TP_STRUCT__entry(
		__string(dev, dev_name(&ibdev->dev))
		__field(u32, pdn)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->pdn = pdn;
	),
	TP_printk("%s: PD %#x", __get_str(dev), __entry->pdn)
);

DEFINE_EVENT(skua_ib_pd, skua_ib_alloc_pd,
	TP_PROTO(const struct ib_device *ibdev, u32 pdn),
	TP_ARGS(ibdev, pdn)
);

DEFINE_EVENT(skua_ib_pd, skua_ib_dealloc_pd,
	TP_PROTO(const struct ib_device *ibdev, u32 pdn),
	TP_ARGS(ibdev, pdn)
);

#endif /* SKUA_IB_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
