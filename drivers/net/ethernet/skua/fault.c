// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the device: delivery to the handler, and resumption of the queue.
 */
#include <kunit/visibility.h>

#include "skua.h"

/**
 * skua_fault_raise() - deliver a page fault to the handler
 * @dev: the function
 * @fault: the fault as the device reported it
 *
 * Called by the work of the page fault EQ only. Without a handler the work request fails,
 * as it would wait for ever.
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
 * skua_fault_set_handler() - set or clear the page fault handler
 * @dev: the function
 * @handler: the handler, or NULL. On return the previous one is not called any more.
 */
void skua_fault_set_handler(struct skua_dev *dev, struct skua_fault_handler *handler)
{
	WRITE_ONCE(dev->fault_handler, handler);
	/* A running work item may still use the old handler. */
	if (!handler && dev->fault_eq.created)
		flush_work(&dev->fault_eq.work);
}
EXPORT_SYMBOL_NS_GPL(skua_fault_set_handler, "SKUA");

/**
 * skua_fault_resume() - resume the queue that waits for a page fault
 * @dev: the function
 * @token: token of the fault
 * @error: the page is not available and the work request fails; else the access is retried
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
	 * -EINVAL means that the token is no longer valid, because the QP is gone. After
	 * any other error a queue would wait for ever.
	 */
	if (err && err != -EINVAL)
		skua_declare_dead(dev, "RESUME_PAGE_FAULT failed");
}
EXPORT_SYMBOL_NS_GPL(skua_fault_resume, "SKUA");
