// SPDX-License-Identifier: GPL-2.0
/*
 * Adaptive moderation of receive interrupts: from the rates of a channel's interrupts,
 * frames and bytes the kernel's DIM library finds a delay and a number of frames, which a
 * work item gives to the device.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/dim.h>

#include "en.h"

static void skua_en_dim_work(struct work_struct *work)
{
	struct dim *dim = container_of(work, struct dim, work);
	struct skua_en_channel *ch = container_of(dim, struct skua_en_channel, dim);
	struct dim_cq_moder moder = net_dim_get_rx_moderation(dim->mode, dim->profile_ix);
	int err;

	err = skua_cq_modify(ch->en->dev, &ch->rxcq.cq,
			     min_t(u32, moder.pkts, FIELD_MAX(SKUA_MOD_COUNT)),
			     min_t(u32, moder.usec, FIELD_MAX(SKUA_MOD_USEC)));
	/*
	 * The command fails if the device is reset at this time; the new CQ then starts with the
	 * netdev's values.
	 */
	if (err)
		netdev_dbg(ch->en->ndev,
			   "channel %u: moderation of %u us, %u frames refused: error %d\n",
			   ch->index, moder.usec, moder.pkts, err);
	dim->state = DIM_START_MEASURE;
}

/**
 * skua_en_dim_init() - prepare a channel's adaptive moderation
 * @ch: the channel
 */
void skua_en_dim_init(struct skua_en_channel *ch)
{
	INIT_WORK(&ch->dim.work, skua_en_dim_work);
	ch->dim.mode = DIM_CQ_PERIOD_MODE_START_FROM_EQE;
	ch->dim.state = DIM_START_MEASURE;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dim_init);

/**
 * skua_en_dim() - give DIM a sample at the end of a poll
 * @ch: the channel
 *
 * Context: NAPI of the channel, which alone writes the statistics that are read here.
 */
void skua_en_dim(struct skua_en_channel *ch)
{
	struct dim_sample sample = {};

	KUNIT_STATIC_STUB_REDIRECT(skua_en_dim, ch);
	dim_update_sample(READ_ONCE(ch->rx_events), ch->rx_stats.packets, ch->rx_stats.bytes,
			  &sample);
	net_dim(&ch->dim, &sample);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dim);

/**
 * skua_en_dim_stop() - wait for the work item that changes the moderation
 * @ch: the channel
 *
 * Context: process; NAPI of the channel is disabled, or @adaptive of the netdev is false and
 * an RCU grace period has passed since it was cleared.
 */
void skua_en_dim_stop(struct skua_en_channel *ch)
{
	cancel_work_sync(&ch->dim.work);
	ch->dim.state = DIM_START_MEASURE;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dim_stop);
