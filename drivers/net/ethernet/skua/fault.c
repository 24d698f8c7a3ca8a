// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the device: from its event queue to whoever pages in, and back.
 */
#include <kunit/visibility.h>

#include "skua.h"

/**
 * skua_fault_raise() - a page fault was reported
 * @dev: the function
 * @fault: what the event says
 *
 * From the work of the page fault EQ only. A device that nobody serves has its
 * work requests fail: it would wait for ever.
 */
void skua_fault_raise(struct skua_dev *dev, const struct skua_page_fault *fault)
{
	struct skua_fault_handler *handler = READ_ONCE(dev->fault_handler);

	if (handler)
		handler->fault(handler, fault);
	else
		skua_fault_resume(dev, fault->token, true);
}

/**
 * skua_fault_set_handler() - serve page faults, or no longer
 * @dev: the function
 * @handler: who does; NULL: nobody, and the last one is not called any more on
 *	return
 */
void skua_fault_set_handler(struct skua_dev *dev, struct skua_fault_handler *handler)
{
	WRITE_ONCE(dev->fault_handler, handler);
	/* A work item that runs may have seen the old one. */
	if (!handler && dev->fault_eq.created)
		flush_work(&dev->fault_eq.work);
}
EXPORT_SYMBOL_NS_GPL(skua_fault_set_handler, "SKUA");

/**
 * skua_fault_resume() - have the queue that waits go on
 * @dev: the function
 * @token: of the fault
 * @error: the page cannot be had: the work request fails. Else the access is tried
 *	again.
 *
 * The command is reclaim-safe.
 */
void skua_fault_resume(struct skua_dev *dev, u32 token, bool error)
{
	struct skua_cmd_resume_fault_in in = {
		.token = cpu_to_le32(token),
		.error = cpu_to_le32(error),
	};
	int err;

	if (skua_dead(dev))
		return;
	err = skua_cmd_in(dev, SKUA_CMD_RESUME_PAGE_FAULT, &in);
	/*
	 * -EINVAL is no error: the device knows the token no more, for the QP is
	 * gone. After any other a queue would wait for ever.
	 */
	if (err && err != -EINVAL)
		skua_declare_dead(dev, "page fault could not be settled");
}
EXPORT_SYMBOL_NS_GPL(skua_fault_resume, "SKUA");
