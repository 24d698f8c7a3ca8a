// SPDX-License-Identifier: GPL-2.0
/*
 * The netdev's queues as a whole: up, down, and from one configuration to the next.
 * A new configuration is complete before the old one is touched, so that a change
 * which fails leaves the netdev as it was.
 */
#include <linux/etherdevice.h>

#include "en.h"

int skua_en_modify_port(struct skua_en *en, struct skua_cmd_modify_port_in *in)
{
	if (READ_ONCE(en->dead))
		return -EIO;
	return skua_modify_port(en->dev, in);
}

/* --- Filters --- */

static void skua_en_filters_clear(struct skua_en *en)
{
	while (en->filters)
		skua_flow_destroy(en->dev, en->filter[--en->filters]);
}

static int skua_en_filter_add(struct skua_en *en, const u8 *mac)
{
	struct skua_flow flow = {
		.flags = le32_encode_bits(SKUA_FLOW_PRIO_NETDEV, SKUA_FLOW_PRIO),
	};
	int err;

	if (en->rss) {
		flow.flags |= cpu_to_le32(SKUA_FLOW_RSS);
		flow.dest = cpu_to_le32(en->rss_index);
	} else {
		flow.dest = cpu_to_le32(en->channel[0]->qp.obj.num);
	}
	ether_addr_copy(flow.value.dmac, mac);
	eth_broadcast_addr(flow.mask.dmac);
	err = skua_flow_create(en->dev, &en->filter[en->filters], &flow);
	if (!err)
		en->filters++;
	return err;
}

/*
 * Make the filters of en->mode, whatever there was before. Addresses for which there is
 * no filter are let in by a wider mode.
 */
static int skua_en_filters_apply(struct skua_en *en)
{
	const struct skua_en_rx_mode *mode = &en->mode;
	bool promisc = mode->promisc, allmulti = mode->allmulti;
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
	};
	unsigned int i;
	int err;

	skua_en_filters_clear(en);
	for (i = 0; i < mode->num; i++) {
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
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
		.promisc = cpu_to_le32(mode->promisc),
		.allmulti = cpu_to_le32(mode->allmulti || mode->promisc),
	};
	/* All of them are there already: only the modes may have changed. */
	bool same = mode->num == en->mode.num && mode->num == en->filters &&
		    !memcmp(mode->mac, en->mode.mac, mode->num * ETH_ALEN);

	en->mode = *mode;
	return same ? skua_en_modify_port(en, &in) : skua_en_filters_apply(en);
}

/* --- Where frames go --- */

static u32 skua_en_port_dest(const struct skua_en *en, struct skua_en_channel *const *ch)
{
	return en->rss ? en->rss_index | SKUA_PORT_DFLT_RSS : ch[0]->qp.obj.num;
}

/* Steer frames to channels that are made, away from those in use. */
static int skua_en_steer(struct skua_en *en, const struct skua_en_conf *conf,
			 struct skua_en_channel *const *ch)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_DFLT),
	};

	/* Port and filters name the RSS context, which stays. */
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
 * Both of the above. No channel is ever offered frames that its buffers are too
 * small for: a larger MTU comes after its channels, a smaller one before.
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
		netdev_err(en->ndev, "frames are not steered back: restart the interface\n");
	return err;

err_mtu:
	if (!grow && conf->mtu != en->conf.mtu) {
		struct skua_cmd_modify_port_in in = {
			.mask = cpu_to_le32(SKUA_PORT_M_MTU),
			.mtu = cpu_to_le16(en->conf.mtu),
		};

		if (skua_en_modify_port(en, &in))
			netdev_err(en->ndev, "the port keeps an MTU of %u\n", conf->mtu);
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

static void skua_en_channels_destroy(struct skua_en_channel **ch, unsigned int n)
{
	while (n--)
		skua_en_channel_destroy(ch[n]);
}

static int skua_en_channels_create(struct skua_en *en, const struct skua_en_conf *conf,
				   struct skua_en_channel **ch)
{
	unsigned int i;

	for (i = 0; i < conf->channels; i++) {
		ch[i] = skua_en_channel_create(en, conf, i);
		if (IS_ERR(ch[i])) {
			int err = PTR_ERR(ch[i]);

			skua_en_channels_destroy(ch, i);
			return err;
		}
	}
	return 0;
}

/* Put channels in the place of those in use, which @old gets. */
static void skua_en_channels_swap(struct skua_en *en, const struct skua_en_conf *conf,
				  struct skua_en_channel **ch, struct skua_en_channel **old)
{
	unsigned int i;

	spin_lock_bh(&en->stats_lock);
	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++) {
		old[i] = en->channel[i];
		if (old[i])
			skua_en_stats_add(&en->stats, old[i]);
		en->channel[i] = ch && i < conf->channels ? ch[i] : NULL;
	}
	bitmap_zero(en->failed, SKUA_EN_MAX_CHANNELS);
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

/* On return nobody sends and nobody looks for completions. */
static void skua_en_stop(struct skua_en *en)
{
	unsigned int i;

	for (i = en->conf.channels; i--;)
		skua_en_channel_stop(en->channel[i]);
	/* Only now: NAPI wakes queues that have room again. */
	netif_tx_disable(en->ndev);
}

/* What the old channels still have to send will not be told of to the queues. */
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
	if (err)
		return err;
	err = netif_set_real_num_queues(en->ndev, en->conf.channels, en->conf.channels);
	if (err)
		goto err_channels;
	if (en->rss) {
		err = skua_en_rss_apply(en, &en->conf, ch, true);
		if (err)
			goto err_channels;
	}
	skua_en_channels_swap(en, &en->conf, ch, none);
	skua_en_start(en);
	err = skua_en_port_up(en);
	if (err)
		goto err_stop;
	netif_tx_start_all_queues(en->ndev);
	skua_en_link_watch(en, true);
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
 * Context: RTNL. Works with a dead device too.
 */
void skua_en_down(struct skua_en *en)
{
	struct skua_en_channel *old[SKUA_EN_MAX_CHANNELS];

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

/* Filters that lead to a channel in particular are made again for its successor. */
static void skua_en_filters_move(struct skua_en *en)
{
	int err;

	if (en->rss)
		return;
	err = skua_en_filters_apply(en);
	if (err)
		netdev_warn(en->ndev, "receive mode is not set: %pe\n", ERR_PTR(err));
}

/**
 * skua_en_reconfigure() - change the queues
 * @en: the netdev, up or down
 * @conf: what they are to be like; the same as before: they are made anew
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
		return err;
	skua_en_stop(en);
	/* More queues can fail, fewer cannot: so those come first, these last. */
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
	/* Not only start: packets may have been waiting. */
	netif_tx_wake_all_queues(en->ndev);
	if (!err)
		skua_en_channels_destroy(old, n_old);
	return err;
}

/* Give a queue a new channel in place of one that failed. */
static int skua_en_restart(struct skua_en *en, unsigned int i)
{
	struct skua_en_channel *ch[SKUA_EN_MAX_CHANNELS], *old = en->channel[i];
	struct netdev_queue *txq = netdev_get_tx_queue(en->ndev, i);
	int err;

	memcpy(ch, en->channel, sizeof(ch));
	ch[i] = skua_en_channel_create(en, &en->conf, i);
	if (IS_ERR(ch[i]))
		return PTR_ERR(ch[i]);
	skua_en_channel_stop(old);
	/* Only now: NAPI wakes a queue that has room again. */
	__netif_tx_lock_bh(txq);
	netif_tx_stop_queue(txq);
	__netif_tx_unlock_bh(txq);
	err = skua_en_steer(en, &en->conf, ch);
	if (err) {
		/* The queue stays as it was, out of order, and nobody sends to it. */
		skua_en_channel_start(old);
		skua_en_channel_destroy(ch[i]);
		return err;
	}
	netdev_tx_reset_queue(txq);
	spin_lock_bh(&en->stats_lock);
	skua_en_stats_add(&en->stats, old);
	en->channel[i] = ch[i];
	en->restarts[i]++;
	spin_unlock_bh(&en->stats_lock);
	clear_bit(i, en->failed);
	skua_en_filters_move(en);
	skua_en_channel_start(ch[i]);
	netif_tx_wake_queue(txq);
	skua_en_channel_destroy(old);
	return 0;
}

/**
 * skua_en_restart_work() - replace the channels that failed
 * @work: of the netdev
 */
void skua_en_restart_work(struct work_struct *work)
{
	struct skua_en *en = container_of(to_delayed_work(work), struct skua_en, restart);
	bool again = false;
	unsigned int i;
	int err;

	rtnl_lock();
	for_each_set_bit(i, en->failed, en->conf.channels) {
		if (!en->channel[i] || READ_ONCE(en->dead))
			continue;
		err = skua_en_restart(en, i);
		if (!err)
			continue;
		netdev_err(en->ndev, "queue %u: restart fails: %pe, next attempt in 1 s\n", i,
			   ERR_PTR(err));
		again = true;
	}
	rtnl_unlock();
	if (again)
		schedule_delayed_work(&en->restart, HZ);
}
