// SPDX-License-Identifier: GPL-2.0
/*
 * Receive side scaling: the hash of a frame selects its channel.
 */
#include <linux/slab.h>

#include "en.h"

/**
 * skua_en_rss_default() - fill the table evenly with all channels
 * @conf: configuration with the number of channels; gets the table
 */
void skua_en_rss_default(struct skua_en_conf *conf)
{
	u32 i;

	for (i = 0; i < SKUA_RSS_MAX; i++)
		conf->rss_indir[i] = ethtool_rxfh_indir_default(i, conf->channels);
}

/**
 * skua_en_rss_apply() - create or change the device's RSS context
 * @en: the netdev
 * @conf: key and table
 * @ch: the channels that the table names
 * @create: create it; else change it
 *
 * Return: 0 or a negative errno.
 */
int skua_en_rss_apply(struct skua_en *en, const struct skua_en_conf *conf,
		      struct skua_en_channel *const *ch, bool create)
{
	struct skua_rss *rss;
	int err;
	u32 i;

	rss = kzalloc_obj(*rss);
	if (!rss)
		return -ENOMEM;
	rss->flags = le32_encode_bits(ilog2(SKUA_RSS_MAX), SKUA_RSS_LOG_SIZE) |
		     cpu_to_le32(SKUA_RSS_IPV4 | SKUA_RSS_IPV6 |
				 SKUA_RSS_TCP_IPV4 | SKUA_RSS_TCP_IPV6 |
				 SKUA_RSS_UDP_IPV4 | SKUA_RSS_UDP_IPV6);
	memcpy(rss->key, conf->rss_key, sizeof(rss->key));
	for (i = 0; i < SKUA_RSS_MAX; i++)
		rss->qpn[i] = cpu_to_le32(ch[conf->rss_indir[i]]->qp.obj.num);
	if (create)
		err = skua_rss_create(en->dev, &en->rss_index, rss);
	else
		err = skua_rss_modify(en->dev, en->rss_index, rss);
	kfree(rss);
	return err;
}
