// SPDX-License-Identifier: GPL-2.0
/*
 * One function as a whole: creation, reset, fatal error, and the entry points of model.h.
 * Each entry point calls the part of the device core that does the work, and then tells the
 * host the next deadline.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Unit of the heartbeat: 2^19 ns. By the interface it changes at least once in a millisecond. */
#define HEARTBEAT_SHIFT		19

/* Capabilities that this model implements. */
#define MODEL_CAPS	(SKUA_CAP_ROCE | SKUA_CAP_ETH | SKUA_CAP_RSS | SKUA_CAP_CSUM |		\
			 SKUA_CAP_VLAN | SKUA_CAP_LSO | SKUA_CAP_FLOW | SKUA_CAP_RC |		\
			 SKUA_CAP_TIMESTAMP | SKUA_CAP_MODERATION | SKUA_CAP_NULL_MR | SKUA_CAP_DM |	\
			 SKUA_CAP_ATOMIC | SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_FLUSH |	\
			 SKUA_CAP_ATOMIC_WRITE | SKUA_CAP_SRQ | SKUA_CAP_SRQ_RESIZE | \
			 SKUA_CAP_CQ_RESIZE | SKUA_CAP_INVALIDATE | SKUA_CAP_MW | SKUA_CAP_FAST_REG | \
			 SKUA_CAP_XRC | SKUA_CAP_UC | SKUA_CAP_UD | SKUA_CAP_ODP | SKUA_CAP_MCAST | \
			 SKUA_CAP_COUNTER_SET | SKUA_CAP_RATE_LIMIT | SKUA_CAP_VENDOR_OFF | SKUA_CAP_PUSH | \
			 SKUA_CAP_DB_SUPPRESS | SKUA_CAP_SCATTER_CQE | SKUA_CAP_SR | SKUA_CAP_DCQCN | \
			 SKUA_CAP_CC_DELAY | SKUA_CAP_GRO | SKUA_CAP_TURN | SKUA_CAP_PI | \
			 SKUA_CAP_ETS)

void dev_log(struct skua_dev *dev, int level, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	if (!dev->cfg.log)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	dev->cfg.log(dev->cfg.log_priv, level, msg);
}

int answer_err(char *answer, size_t room, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(answer, room, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

uint32_t dev_heartbeat(struct skua_dev *dev)
{
	if (dev->fatal != SKUA_FATAL_NONE)
		return dev->heartbeat;
	return (uint32_t)(dev_now(dev) >> HEARTBEAT_SHIFT);
}

static const char *fatal_name(enum skua_fatal why)
{
	switch (why) {
	case SKUA_FATAL_ICM_DMA:
		return "a context or translation in ICM could not be read or written";
	case SKUA_FATAL_EQ_DMA:
		return "an event queue could not be written";
	case SKUA_FATAL_CMD_DMA:
		return "the command ring could not be read or written";
	case SKUA_FATAL_ICM_CORRUPT:
		return "a context read from ICM contradicts itself";
	case SKUA_FATAL_INJECTED:
		return "INJECT_FATAL was issued";
	case SKUA_FATAL_NONE:
		break;
	}
	return "unknown";
}

void dev_fatal(struct skua_dev *dev, enum skua_fatal why)
{
	if (dev->fatal != SKUA_FATAL_NONE)
		return;
	engine_settle(dev);
	dev->heartbeat = dev_heartbeat(dev);
	dev->fatal = why;
	dev_log(dev, 0, "fatal error %u (%s): the function has stopped until it is reset", why,
		fatal_name(why));
	eq_fatal(dev, why);
	dev->state = DEV_FATAL;
}

void dev_quiesce(struct skua_dev *dev)
{
	dev->cmd_eqn = SKUA_NO_EQ;
	dev->async_eqn = SKUA_NO_EQ;
	dev->fault_eqn = SKUA_NO_EQ;
	dev->recovery_eqn = SKUA_NO_EQ;
	dev->roce = false;
	dev->turn_wqes = MODEL_TURN_WQES;
	dev->turn_bytes = MODEL_TURN_BYTES;
	sched_one_class(dev);
}

/* Everything but configuration space and the state of the wire. */
void dev_hw_reset(struct skua_dev *dev)
{
	engine_settle(dev);
#define X(part) part##_reset(dev);
	MODEL_PARTS(X)
#undef X
	dev_quiesce(dev);
	dev->fatal = SKUA_FATAL_NONE;
	dev->uar_shift = MODEL_LOG_PAGE_MIN;
	memset(&dev->regs, 0, sizeof(dev->regs));
	dev->state = DEV_READY;
	timer_sync(dev);
}

struct skua_dev *skua_dev_create(const struct skua_dev_cfg *cfg,
				 const struct skua_host_ops *host, void *host_priv,
				 const struct skua_wire_ops *wire, void *wire_priv)
{
	struct skua_dev *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->cfg = *cfg;
	dev->host = host;
	dev->host_priv = host_priv;
	dev->wire = wire;
	dev->wire_priv = wire_priv;
	dev->caps = MODEL_CAPS & ~cfg->caps_off;
	dev->caps |= cfg->onload ? SKUA_CAP_RECOVERY & ~cfg->caps_off : 0;
	skua_pci_init(&dev->pci, cfg);
#define X(part)					\
	if (part##_init(dev)) {			\
		skua_dev_destroy(dev);		\
		return NULL;			\
	}
	MODEL_PARTS(X)
#undef X
	dev_hw_reset(dev);
	return dev;
}

void skua_dev_destroy(struct skua_dev *dev)
{
	if (!dev)
		return;
#define X(part) part##_exit(dev);
	MODEL_PARTS(X)
#undef X
	free(dev);
}

void skua_dev_reset(struct skua_dev *dev, enum skua_reset_kind kind)
{
	skua_pci_reset(&dev->pci, kind);
	memset(dev->cnt, 0, sizeof(dev->cnt));
	tlp_counters_reset(dev);
	dev_hw_reset(dev);
}

/*
 * While Bus Master Enable is clear the function does nothing that could need DMA. What it
 * has to do waits until the bit is set again.
 */
static bool running(const struct skua_dev *dev)
{
	return dev->state != DEV_FATAL && skua_pci_bus_master(&dev->pci);
}

void skua_dev_cfg_read(struct skua_dev *dev, unsigned int off, void *buf, size_t len)
{
	skua_pci_read(&dev->pci, off, buf, len);
}

bool skua_dev_cfg_write(struct skua_dev *dev, unsigned int off, const void *buf, size_t len)
{
	unsigned int ev;

	/* The write may clear Bus Master Enable. */
	engine_settle(dev);
	ev = skua_pci_write(&dev->pci, off, buf, len);
	if (ev & SKUA_PCI_EV_FLR)
		skua_dev_reset(dev, SKUA_RESET_FLR);
	/* If the write has set Bus Master Enable, deadlines may have passed meanwhile. */
	if (running(dev))
		timer_sync(dev);
	return ev & SKUA_PCI_EV_FLR;
}

unsigned int skua_dev_msix_vectors(const struct skua_dev *dev)
{
	return skua_pci_msix_vectors(&dev->pci);
}

bool skua_dev_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending)
{
	bool more;

	if (dev->state != DEV_OPERATIONAL || !running(dev)) {
		port_rx_none(dev);
		return false;
	}
	more = port_rx(dev, frame, len, icrc_pending);
	timer_sync(dev);
	return more;
}

void skua_dev_rx_soon(struct skua_dev *dev, const void *frame, size_t len)
{
	roce_rx_soon(dev, frame, len);
}

bool skua_dev_rx_train(struct skua_dev *dev, void *head, size_t len,
		       const struct skua_train *train)
{
	bool taken;

	/* The sender's memory has changed: the packets are lost. */
	if (!train_intact(train))
		return true;
	if (dev->state != DEV_OPERATIONAL || !running(dev))
		return false;
	taken = port_rx_train(dev, head, len, train);
	timer_sync(dev);
	return taken;
}

static void turn_begin(struct skua_dev *dev)
{
	dev->turn_end = dev->cfg.turn_ns ? dev_now(dev) + dev->cfg.turn_ns : 0;
}

void skua_dev_tick(struct skua_dev *dev)
{
	turn_begin(dev);
	timer_rang(dev);
	if (!running(dev))
		return;
	timer_run(dev);
	timer_sync(dev);
}

void skua_dev_room(struct skua_dev *dev)
{
	sched_room(dev);
}

void skua_dev_link(struct skua_dev *dev, bool up)
{
	port_link(dev, up);
	timer_sync(dev);
}

bool skua_dev_run(struct skua_dev *dev)
{
	uint64_t taken = dev->cnt[SKUA_CNT_SQ_RECORD];
	bool more = false, looks = false;

	dev->only_looks = false;
	if (!running(dev))
		return false;
	turn_begin(dev);
	/* Complete merged frames before a command can query or change their queue. */
	eth_rx_done(dev);
	more |= cmdq_run(dev);
	if (dev->state == DEV_OPERATIONAL)
		more |= eq_run(dev);
	if (dev->state == DEV_OPERATIONAL)
		more |= port_run(dev);
	if (dev->state == DEV_OPERATIONAL)
		eth_rx_done(dev);
	if (dev->state == DEV_OPERATIONAL)
		looks = hot_run(dev);
	if (dev->state == DEV_OPERATIONAL)
		more |= sched_run(dev) || port_pending(dev);
	if (dev->state == DEV_OPERATIONAL)
		more |= roce_run(dev);
	timer_sync(dev);
	dev->only_looks = looks && !more && dev->cnt[SKUA_CNT_SQ_RECORD] == taken;
	return (more || looks) && running(dev);
}

bool skua_dev_only_looks(const struct skua_dev *dev)
{
	return dev->only_looks;
}

bool skua_dev_rest(struct skua_dev *dev)
{
	return running(dev) && hot_rest(dev) && running(dev);
}

uint64_t skua_dev_found(const struct skua_dev *dev)
{
	return dev->cnt[SKUA_CNT_SQ_RECORD];
}
