// SPDX-License-Identifier: GPL-2.0
/*
 * All queues of the netdev together: up, down, change of configuration. The channels of
 * a new configuration are complete before those in use are touched, so that a change
 * which fails leaves the netdev as it was.
 */
#include <kunit/visibility.h>
#include <linux/etherdevice.h>

#include "en.h"

int skua_en_modify_port(struct skua_en *en, struct skua_cmd_modify_port_in *in)
{
	if (READ_ONCE(en->dead))
		return -EIO;
	return skua_modify_port(en->dev, in);
}

/* --- Filters --- */

static void skua_en_filter_del(struct skua_en *en, unsigned int i)
{
	skua_flow_destroy(en->dev, en->filter[i].rule);
	en->filter[i] = en->filter[--en->filters];
}

static void skua_en_filters_clear(struct skua_en *en)
{
	while (en->filters)
		skua_en_filter_del(en, en->filters - 1);
}

static int skua_en_filter_add(struct skua_en *en, const u8 *mac)
{
	struct skua_en_filter *filter = en->filter + en->filters;
	struct skua_flow flow = {
		.flags = le32_encode_bits(SKUA_FLOW_PRIO_NETDEV, SKUA_FLOW_PRIO),
	};
	int err;

	if (en->filters == SKUA_EN_MAX_FILTERS)
		return -ENOSPC;
	if (en->rss) {
		flow.flags |= cpu_to_le32(SKUA_FLOW_RSS);
		flow.dest = cpu_to_le32(en->rss_index);
	} else {
		flow.dest = cpu_to_le32(en->channel[0]->qp.obj.num);
	}
	ether_addr_copy(flow.value.dmac, mac);
	eth_broadcast_addr(flow.mask.dmac);
	err = skua_flow_create(en->dev, &filter->rule, &flow);
	if (err)
		return err;
	ether_addr_copy(filter->mac, mac);
	en->filters++;
	return 0;
}

static bool skua_en_filter_is(const struct skua_en *en, const u8 *mac)
{
	unsigned int i;

	for (i = 0; i < en->filters; i++)
		if (ether_addr_equal(en->filter[i].mac, mac))
			return true;
	return false;
}

static bool skua_en_filter_wanted(const struct skua_en *en, const u8 *mac)
{
	unsigned int i;

	for (i = 0; i < en->mode.num; i++)
		if (ether_addr_equal(en->mode.mac[i], mac))
			return true;
	return false;
}

/*
 * Make the rules of en->mode that are missing, and set its modes. If a rule cannot be made, all
 * multicast frames are received, or, for a unicast address, all frames.
 */
static int skua_en_filters_make(struct skua_en *en)
{
	const struct skua_en_rx_mode *mode = &en->mode;
	bool promisc = mode->promisc, allmulti = mode->allmulti;
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
	};
	unsigned int i;
	int err;

	for (i = 0; i < mode->num; i++) {
		if (skua_en_filter_is(en, mode->mac[i]))
			continue;
		err = skua_en_filter_add(en, mode->mac[i]);
		if (!err)
			continue;
		netdev_dbg(en->ndev, "no filter for %pM (%pe), receiving more instead\n",
			   mode->mac[i], ERR_PTR(err));
		promisc |= !is_multicast_ether_addr(mode->mac[i]);
		allmulti = true;
	}
	in.promisc = cpu_to_le32(promisc);
	in.allmulti = cpu_to_le32(allmulti || promisc);
	return skua_en_modify_port(en, &in);
}

/*
 * Filters as en->mode wants them. What is received before and afterwards is received meanwhile,
 * too: rules go when those that are missing were made, and the modes set.
 */
static int skua_en_filters_apply(struct skua_en *en)
{
	unsigned int i, before;
	int err;

	err = skua_en_filters_make(en);
	if (err)
		return err;
	before = en->filters;
	/* The last one takes the place of one that goes. */
	for (i = before; i--;)
		if (!skua_en_filter_wanted(en, en->filter[i].mac))
			skua_en_filter_del(en, i);
	/* For some there may have been no room while others were there. */
	if (en->filters < before && en->filters < en->mode.num)
		return skua_en_filters_make(en);
	return 0;
}

/**
 * skua_en_filters_set() - bring filters and modes of the device up to date
 * @en: the netdev, its channels there
 * @mode: what the stack wants
 *
 * Context: RTNL.
 * Return: 0 or a negative errno.
 */
int skua_en_filters_set(struct skua_en *en, const struct skua_en_rx_mode *mode)
{
	en->mode = *mode;
	return skua_en_filters_apply(en);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_filters_set);

/* --- Destination of received frames --- */

static u32 skua_en_port_dest(const struct skua_en *en, struct skua_en_channel *const *ch)
{
	return en->rss ? en->rss_index | SKUA_PORT_DFLT_RSS : ch[0]->qp.obj.num;
}

/* Have the device deliver frames to the channels @ch instead of those in use. */
static int skua_en_steer(struct skua_en *en, const struct skua_en_conf *conf,
			 struct skua_en_channel *const *ch)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_DFLT),
	};

	/* Port and filters name the RSS context, whose number does not change. */
	if (en->rss)
		return skua_en_rss_apply(en, conf, ch, false);
	in.dflt = cpu_to_le32(skua_en_port_dest(en, ch));
	return skua_en_modify_port(en, &in);
}

static int skua_en_port_mtu(struct skua_en *en, u32 mtu)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_MTU),
		.mtu = cpu_to_le16(mtu),
	};

	return mtu == en->conf.mtu ? 0 : skua_en_modify_port(en, &in);
}

/*
 * Change the destination of frames and the port's MTU. The buffers of a channel fit its
 * MTU: the port's MTU grows after frames go to the new channels, and shrinks before.
 */
static int skua_en_redirect(struct skua_en *en, const struct skua_en_conf *conf,
			    struct skua_en_channel *const *ch)
{
	bool grow = conf->mtu > en->conf.mtu;
	int err;

	if (!grow) {
		err = skua_en_port_mtu(en, conf->mtu);
		if (err)
			return err;
	}
	err = skua_en_steer(en, conf, ch);
	if (err)
		goto err_mtu;
	if (!grow)
		return 0;
	err = skua_en_port_mtu(en, conf->mtu);
	if (err && skua_en_steer(en, &en->conf, en->channel))
		netdev_err(en->ndev, "no frames are received: the device refuses to steer them back to the old channels; set the interface down and up\n");
	return err;

err_mtu:
	if (!grow && conf->mtu != en->conf.mtu) {
		struct skua_cmd_modify_port_in in = {
			.mask = cpu_to_le32(SKUA_PORT_M_MTU),
			.mtu = cpu_to_le16(en->conf.mtu),
		};

		if (skua_en_modify_port(en, &in))
			netdev_err(en->ndev, "the port's MTU remains %u, the netdev's %u\n",
				   conf->mtu, en->conf.mtu);
	}
	return err;
}

static int skua_en_port_up(struct skua_en *en)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE | SKUA_PORT_M_MTU |
				    SKUA_PORT_M_MAC | SKUA_PORT_M_DFLT),
		.enable = cpu_to_le32(1),
		.mtu = cpu_to_le16(en->conf.mtu),
		.dflt = cpu_to_le32(skua_en_port_dest(en, en->channel)),
	};

	ether_addr_copy(in.mac, en->ndev->dev_addr);
	return skua_en_modify_port(en, &in);
}

static void skua_en_port_down(struct skua_en *en)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE | SKUA_PORT_M_DFLT |
				    SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
		.dflt = cpu_to_le32(SKUA_PORT_NO_DFLT),
	};

	skua_en_modify_port(en, &in);
}

/* --- Channels --- */

static int skua_en_channels_create(struct skua_en *en, const struct skua_en_conf *conf,
				   struct skua_en_channel **ch)
{
	unsigned int i;

	for (i = 0; i < conf->channels; i++) {
		en->rx_small[i] = false;
		ch[i] = skua_en_channel_create(en, conf, i);
		if (IS_ERR(ch[i])) {
			int err = PTR_ERR(ch[i]);

			skua_en_channels_destroy(ch, i);
			return err;
		}
	}
	return 0;
}

/* Replace the channels in use by @ch (NULL: by none); @old gets those replaced. */
static void skua_en_channels_swap(struct skua_en *en, const struct skua_en_conf *conf,
				  struct skua_en_channel **ch, struct skua_en_channel **old)
{
	unsigned int i;

	spin_lock_bh(&en->stats_lock);
	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++) {
		old[i] = en->channel[i];
		if (old[i])
			skua_en_stats_add(&en->stats[i], old[i]);
		WRITE_ONCE(en->channel[i], ch && i < conf->channels ? ch[i] : NULL);
	}
	if (conf)
		en->conf = *conf;
	spin_unlock_bh(&en->stats_lock);
}

static void skua_en_start(struct skua_en *en)
{
	unsigned int i;

	for (i = 0; i < en->conf.channels; i++)
		skua_en_channel_start(en->channel[i]);
}

/* On return neither skua_en_xmit() nor skua_en_poll() runs, or will run. */
static void skua_en_stop(struct skua_en *en)
{
	skua_en_channels_stop(en->channel, en->conf.channels);
	/* After NAPI is disabled, since it wakes queues that have room again. */
	netif_tx_disable(en->ndev);
}

/*
 * Byte queue limits: what the old channels have not completed is freed without being
 * reported as completed.
 */
static void skua_en_reset_queues(struct skua_en *en)
{
	unsigned int i;

	for (i = 0; i < en->conf.channels; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(en->ndev, i));
}

/**
 * skua_en_up() - make the channels and open the port
 * @en: the netdev
 *
 * Context: RTNL.
 * Return: 0 or a negative errno, with nothing left behind.
 */
int skua_en_up(struct skua_en *en)
{
	struct skua_en_channel *ch[SKUA_EN_MAX_CHANNELS], *none[SKUA_EN_MAX_CHANNELS];
	int err;

	if (READ_ONCE(en->dead))
		return -EIO;
	err = skua_en_channels_create(en, &en->conf, ch);
	if (err) {
		netdev_err(en->ndev, "%u channels cannot be made: %pe\n", en->conf.channels,
			   ERR_PTR(err));
		return err;
	}
	err = netif_set_real_num_queues(en->ndev, en->conf.channels, en->conf.channels);
	if (err)
		goto err_channels;
	if (en->rss) {
		err = skua_en_rss_apply(en, &en->conf, ch, true);
		if (err) {
			netdev_err(en->ndev, "RSS context cannot be made: %pe\n", ERR_PTR(err));
			goto err_channels;
		}
	}
	skua_en_channels_swap(en, &en->conf, ch, none);
	skua_en_start(en);
	err = skua_en_port_up(en);
	if (err) {
		netdev_err(en->ndev, "port cannot be enabled with MTU %u: %pe\n", en->conf.mtu,
			   ERR_PTR(err));
		goto err_stop;
	}
	/*
	 * Wake, not start: if the netdev was detached, packets wait in the qdiscs, and
	 * netif_device_attach() schedules only those of queues that are still stopped.
	 */
	netif_tx_wake_all_queues(en->ndev);
	skua_en_link_watch(en, true);
#ifdef SKUA_COMPAT_RX_MODE
	en->rx_mode_tries = 0;
#endif
	schedule_delayed_work(&en->watch, en->ndev->watchdog_timeo);
	return 0;

err_stop:
	skua_en_stop(en);
	if (en->rss)
		skua_rss_destroy(en->dev, en->rss_index);
	skua_en_channels_swap(en, NULL, NULL, ch);
err_channels:
	skua_en_channels_destroy(ch, en->conf.channels);
	return err;
}

/**
 * skua_en_down() - undo skua_en_up()
 * @en: the netdev
 *
 * Context: RTNL. The device may be dead.
 */
void skua_en_down(struct skua_en *en)
{
	struct skua_en_channel *old[SKUA_EN_MAX_CHANNELS];

	cancel_delayed_work_sync(&en->watch);
	skua_en_link_watch(en, false);
	skua_en_port_down(en);
	skua_en_filters_clear(en);
	skua_en_stop(en);
	skua_en_reset_queues(en);
	if (en->rss)
		skua_rss_destroy(en->dev, en->rss_index);
	skua_en_channels_swap(en, NULL, NULL, old);
	skua_en_channels_destroy(old, en->conf.channels);
}

/* Without RSS the filters name the QP of channel 0: make them anew for another one. */
static void skua_en_filters_move(struct skua_en *en)
{
	int err;

	if (en->rss)
		return;
	skua_en_filters_clear(en);
	err = skua_en_filters_apply(en);
	if (err)
		skua_en_rx_mode_failed(en, err);
}

/**
 * skua_en_reconfigure() - change the queues
 * @en: the netdev, up or down
 * @conf: new configuration; with the present one all channels are replaced
 *
 * Context: RTNL.
 * Return: 0, or a negative errno, and the netdev is as it was.
 */
int skua_en_reconfigure(struct skua_en *en, const struct skua_en_conf *conf)
{
	struct skua_en_channel *ch[SKUA_EN_MAX_CHANNELS], *old[SKUA_EN_MAX_CHANNELS];
	unsigned int n_old = en->conf.channels, n_max = max(n_old, conf->channels);
	int err;

	if (!en->channel[0]) {
		en->conf = *conf;
		return 0;
	}
	if (READ_ONCE(en->dead))
		return -EIO;
	err = skua_en_channels_create(en, conf, ch);
	if (err)
		goto err_message;
	skua_en_stop(en);
	/*
	 * To raise the number of queues can fail, to lower it cannot: raise it before the
	 * point of no return, lower it after.
	 */
	err = netif_set_real_num_queues(en->ndev, n_max, n_max);
	if (!err)
		err = skua_en_redirect(en, conf, ch);
	if (err) {
		netif_set_real_num_queues(en->ndev, n_old, n_old);
		skua_en_channels_destroy(ch, conf->channels);
	} else {
		skua_en_reset_queues(en);
		skua_en_channels_swap(en, conf, ch, old);
		netif_set_real_num_queues(en->ndev, conf->channels, conf->channels);
		skua_en_filters_move(en);
	}
	skua_en_start(en);
	/* Wake, not start: packets may wait in the qdiscs. */
	netif_tx_wake_all_queues(en->ndev);
	if (err)
		goto err_message;
	skua_en_channels_destroy(old, n_old);
	return 0;

err_message:
	netdev_err(en->ndev,
		   "queues stay as they were: %u channels, rings of %u and %u, MTU %u cannot be had: %pe\n",
		   conf->channels, conf->ring_rx, conf->ring_tx, conf->mtu, ERR_PTR(err));
	return err;
}

/* Replace the channel of queue @i, which has failed or has no receive buffers. */
static int skua_en_restart(struct skua_en *en, unsigned int i)
{
	struct skua_en_channel *ch[SKUA_EN_MAX_CHANNELS], *old = en->channel[i];
	struct netdev_queue *txq = netdev_get_tx_queue(en->ndev, i);
	int err;

	memcpy(ch, en->channel, sizeof(ch));
	ch[i] = skua_en_channel_create(en, &en->conf, i);
	if (IS_ERR(ch[i]))
		return PTR_ERR(ch[i]);
	skua_en_channels_stop(&old, 1);
	/* After NAPI is disabled, since it wakes a queue that has room again. */
	__netif_tx_lock_bh(txq);
	netif_tx_stop_queue(txq);
	__netif_tx_unlock_bh(txq);
	err = skua_en_steer(en, &en->conf, ch);
	if (err) {
		skua_en_channel_start(old);
		/*
		 * The queue of a channel that has failed remains stopped until the next attempt.
		 * One that lacked receive buffers works. It may have them before the next attempt,
		 * which then leaves it alone, and with an empty send ring no completion wakes its
		 * queue.
		 */
		if (!test_bit(SKUA_EN_CH_FAILED, &old->flags) && !READ_ONCE(en->dead))
			netif_tx_wake_queue(txq);
		skua_en_channels_destroy(&ch[i], 1);
		return err;
	}
	netdev_tx_reset_queue(txq);
	spin_lock_bh(&en->stats_lock);
	skua_en_stats_add(&en->stats[i], old);
	WRITE_ONCE(en->channel[i], ch[i]);
	en->restarts[i]++;
	spin_unlock_bh(&en->stats_lock);
	skua_en_filters_move(en);
	skua_en_channel_start(ch[i]);
	netif_tx_wake_queue(txq);
	skua_en_channels_destroy(&old, 1);
	return 0;
}

/**
 * skua_en_restart_wait() - may a queue that has failed be restarted?
 * @pace: of the queue
 * @now: the time, in jiffies
 *
 * A device that fails each packet would have its queue restarted without end, and each restart
 * keeps RTNL from others for two grace periods. The first restart is at once, further ones wait
 * longer and longer until the queue was not restarted for a while. It is never given up: a wait is
 * shorter than the stack's patience with a queue (watchdog_timeo).
 *
 * Return: jiffies to wait. 0: none, and it is noted as restarted.
 */
VISIBLE_IF_KUNIT unsigned long skua_en_restart_wait(struct skua_en_pace *pace, u64 now)
{
	u64 due;

	if (now - pace->last >= SKUA_EN_RESTART_CALM)
		pace->row = 0;
	if (pace->row) {
		due = pace->last + min(SKUA_EN_RESTART_FIRST << (pace->row - 1),
				       SKUA_EN_RESTART_LONGEST);
		if (now < due)
			return due - now;
	}
	pace->last = now;
	pace->row = min(pace->row + 1, SKUA_EN_RESTART_ROW);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_restart_wait);

/*
 * Replace the channel of queue @i if it has failed, or has no receive buffers, and may be.
 * Return: jiffies to wait, or 0.
 */
static unsigned long skua_en_restart_failed(struct skua_en *en, unsigned int i)
{
	const struct skua_en_channel *ch = en->channel[i];
	unsigned long wait;
	bool starved;
	int err;

	if (!ch || READ_ONCE(en->dead))
		return 0;
	starved = test_bit(SKUA_EN_CH_STARVED, &ch->flags);
	if (!starved && !test_bit(SKUA_EN_CH_FAILED, &ch->flags))
		return 0;
	wait = skua_en_restart_wait(&en->pace[i], get_jiffies_64());
	if (wait)
		return wait;
	en->rx_small[i] |= starved;
	err = skua_en_restart(en, i);
	if (!err)
		return 0;
	netdev_err(en->ndev, "queue %u: restart fails: %pe, there will be another attempt\n", i,
		   ERR_PTR(err));
	return SKUA_EN_RESTART_FIRST;
}

/**
 * skua_en_restart_work() - replace the channels that failed, or have no receive buffers
 * @work: of the netdev
 *
 * A new channel may fail before it is in use: that queues this work again, which gets RTNL
 * when the channel is in use.
 */
void skua_en_restart_work(struct work_struct *work)
{
	struct skua_en *en = container_of(to_delayed_work(work), struct skua_en, restart);
	unsigned long next = 0;
	unsigned int i;

	rtnl_lock();
	for (i = 0; i < en->conf.channels; i++)
		next = min_not_zero(next, skua_en_restart_failed(en, i));
	rtnl_unlock();
	/* A failure of another queue has it run earlier, and then it comes back here. */
	if (next)
		schedule_delayed_work(&en->restart, next);
}

/**
 * skua_en_watch_work() - look for packets that the device does not complete
 * @work: of the netdev
 *
 * The stack's watchdog looks only at queues that are stopped. Packets lost in others would
 * keep their sockets' send buffers, and TCP does not send again what a queue still has.
 */
void skua_en_watch_work(struct work_struct *work)
{
	struct skua_en *en = container_of(to_delayed_work(work), struct skua_en, watch);
	struct skua_en_channel *ch;
	unsigned int i;

	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++) {
		/* As in skua_en_tx_timeout(): a channel that is replaced stays that long. */
		guard(rcu)();
		ch = READ_ONCE(en->channel[i]);
		if (ch && skua_en_tx_stuck(ch))
			skua_en_channel_fail(ch, "packets are not completed for %u s",
					     en->ndev->watchdog_timeo / HZ);
	}
	schedule_delayed_work(&en->watch, en->ndev->watchdog_timeo);
}
