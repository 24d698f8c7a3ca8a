/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM skua

#if !defined(SKUA_CORE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SKUA_CORE_TRACE_H

#include <linux/tracepoint.h>

#include "skua.h"

TRACE_EVENT(skua_cmd_issue,
	TP_PROTO(const struct skua_dev *dev, u32 op, u32 token, size_t in_len, size_t out_len),
	TP_ARGS(dev, op, token, in_len, out_len),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev->dev))
		__string(op, skua_cmd_name(op))
		__field(u32, token)
		__field(u32, in_len)
		__field(u32, out_len)
	),
	TP_fast_assign(
		__assign_str(dev);
		__assign_str(op);
		__entry->token = token;
		__entry->in_len = in_len;
		__entry->out_len = out_len;
	),
	TP_printk("%s: %s token %#x in %u out %u", __get_str(dev), __get_str(op),
		  __entry->token, __entry->in_len, __entry->out_len)
);

TRACE_EVENT(skua_cmd,
	TP_PROTO(const struct skua_dev *dev, u32 op, u32 token, int err, u32 status, u64 ns),
	TP_ARGS(dev, op, token, err, status, ns),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev->dev))
		__string(op, skua_cmd_name(op))
		__field(u32, token)
		__field(int, err)
		__field(u32, status)
		__field(u64, ns)
	),
	TP_fast_assign(
		__assign_str(dev);
		__assign_str(op);
		__entry->token = token;
		__entry->err = err;
		__entry->status = status;
		__entry->ns = ns;
	),
	TP_printk("%s: %s token %#x err %d status %#x %llu ns", __get_str(dev), __get_str(op),
		  __entry->token, __entry->err, __entry->status, __entry->ns)
);

TRACE_EVENT(skua_eqe,
	TP_PROTO(const struct skua_dev *dev, u32 eqn, u32 ci, u32 type, u32 subtype, u32 num),
	TP_ARGS(dev, eqn, ci, type, subtype, num),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev->dev))
		__field(u32, eqn)
		__field(u32, ci)
		__field(u32, type)
		__field(u32, subtype)
		__field(u32, num)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->eqn = eqn;
		__entry->ci = ci;
		__entry->type = type;
		__entry->subtype = subtype;
		__entry->num = num;
	),
	TP_printk("%s: EQ %u [%u] type %#x.%u num %#x", __get_str(dev), __entry->eqn,
		  __entry->ci, __entry->type, __entry->subtype, __entry->num)
);

TRACE_EVENT(skua_life,
	TP_PROTO(const struct skua_dev *dev, u32 state, u32 event, u32 next, u32 action),
	TP_ARGS(dev, state, event, next, action),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev->dev))
		__string(state, skua_state_name(state))
		__string(event, skua_life_name(event))
		__string(next, skua_state_name(next))
		__field(u32, action)
	),
	TP_fast_assign(
		__assign_str(dev);
		__assign_str(state);
		__assign_str(event);
		__assign_str(next);
		__entry->action = action;
	),
	TP_printk("%s: %s in state %s: %s, action %u", __get_str(dev), __get_str(event),
		  __get_str(state), __get_str(next), __entry->action)
);

DECLARE_EVENT_CLASS(skua_object,
	TP_PROTO(const struct skua_dev *dev, const char *kind, u32 num),
	TP_ARGS(dev, kind, num),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev->dev))
		__string(kind, kind)
		__field(u32, num)
	),
	TP_fast_assign(
		__assign_str(dev);
		__assign_str(kind);
		__entry->num = num;
	),
	TP_printk("%s: %s %#x", __get_str(dev), __get_str(kind), __entry->num)
);

DEFINE_EVENT(skua_object, skua_create,
	TP_PROTO(const struct skua_dev *dev, const char *kind, u32 num),
	TP_ARGS(dev, kind, num)
);

DEFINE_EVENT(skua_object, skua_destroy,
	TP_PROTO(const struct skua_dev *dev, const char *kind, u32 num),
	TP_ARGS(dev, kind, num)
);

#endif /* SKUA_CORE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
