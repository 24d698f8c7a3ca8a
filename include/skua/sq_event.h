/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Software's half of doorbell suppression (SKUA_CAP_DB_SUPPRESS, <skua/hw/doorbell.h>),
 * which the kernel and the user-space provider share.
 */
#ifndef SKUA_SQ_EVENT_H
#define SKUA_SQ_EVENT_H

#include <skua/bits.h>
#include <skua/hw/doorbell.h>

/**
 * skua_need_event() - check whether an index has passed the event index
 * @event: index after which the other side requests a notification
 * @new_index: free-running index after this change
 * @old_index: free-running index before this change
 *
 * The rule of virtio's event index: true if the step from @old_index to
 * @new_index went past @event.
 *
 * Return: true if the other side must be notified.
 */
static inline _Bool skua_need_event(__u32 event, __u32 new_index, __u32 old_index)
{
	return (__u32)(new_index - event - 1) < (__u32)(new_index - old_index);
}

/**
 * skua_sq_record() - store a send producer index in the doorbell record
 * @dbr: the QP's record
 * @pi: new producer index; the WQEs before it are visible to the device
 * @old: producer index of the last call, 0 after the QP was in RESET
 * @suppress: the QP has SKUA_QP_F_DB_SUPPRESS
 *
 * Return: true if the device must be told by a doorbell.
 */
static inline _Bool skua_sq_record(struct skua_qp_dbr *dbr, __u32 pi, __u32 old,
				   _Bool suppress)
{
	WRITE_ONCE(dbr->sq_pi, cpu_to_le32(pi));
	if (!suppress)
		return 1;
	/*
	 * Store the record before the event index is loaded. The device stores its event
	 * index before it loads the record for the last time. So either the device sees
	 * this record, or the load below sees the event index that asks for a doorbell.
	 */
	dma_mb();
	return skua_need_event(le32_to_cpu(READ_ONCE(dbr->sq_event)), pi, old);
}

#endif /* SKUA_SQ_EVENT_H */
