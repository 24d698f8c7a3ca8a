/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ethernet netdev over skua_core: one RAW_ETH queue pair, with a send and a
 * receive CQ and one NAPI context, for each channel.
 */
#ifndef SKUA_EN_H
#define SKUA_EN_H

#include <linux/dim.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>
#include <net/dcbnl.h>

#include <linux/skua/core.h>
#include <skua/wqe_build.h>

#define SKUA_EN_MAX_CHANNELS	16
/* Ring sizes in packets; a send ring has SKUA_EN_TX_BLOCKS blocks a packet. */
#define SKUA_EN_RING_DEFAULT	256
/*
 * The receive ring is larger: a whole TCP window can arrive while the thread that polls waits
 * for a processor. Frames without a WQE are dropped, and TCP then reduces its rate.
 */
#define SKUA_EN_RX_RING_DEFAULT	1024
#define SKUA_EN_RING_MIN	64
#define SKUA_EN_RING_MAX	4096
#define SKUA_EN_TX_BLOCKS	2
/* Send completions handled in one poll; the limit keeps them from delaying receive. */
#define SKUA_EN_TX_BUDGET	256

/*
 * Receive buffers: each scatter element is a part of a page or a whole page; the first one has
 * an skb's headroom in front of it and the shared info behind it. If the largest frame does not
 * fit in one page, but two such frames fit in a page of higher order, it gets one buffer there,
 * unless there was no memory for such pages (@rx_small).
 */
#define SKUA_EN_RX_ORDER	PAGE_ALLOC_COSTLY_ORDER
/* So long a queue may have few buffers for want of such pages. */
#define SKUA_EN_RX_PATIENCE	(HZ / 10)
#define SKUA_EN_RX_LOG_SGE	2
#define SKUA_EN_RX_SGE		BIT(SKUA_EN_RX_LOG_SGE)
#define SKUA_EN_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define SKUA_EN_RX_FIRST						\
	(PAGE_SIZE - SKUA_EN_RX_HEADROOM -				\
	 SKB_DATA_ALIGN(sizeof(struct skb_shared_info)))
#define SKUA_EN_MAX_MTU							\
	(SKUA_EN_RX_FIRST + (SKUA_EN_RX_SGE - 1) * PAGE_SIZE - VLAN_ETH_HLEN)

/* Multicast and secondary unicast addresses filtered one by one; beyond this
 * all multicast (or everything) is let in.
 */
#define SKUA_EN_MAX_FILTERS	64
/* After so long a query of the link's state that has failed is repeated. */
#define SKUA_EN_LINK_RETRY	HZ

/* Largest send WQE: control, and a data segment for the head and each fragment. */
#define SKUA_EN_TX_MAX_SEGS	(1 + 1 + MAX_SKB_FRAGS)
#define SKUA_EN_TX_MAX_BLOCKS	\
	DIV_ROUND_UP(SKUA_EN_TX_MAX_SEGS * SKUA_WQE_SEG, SKUA_WQE_BLOCK)

/**
 * struct skua_en_cq - a CQ of a channel
 * @cq: core object
 * @buf: ring, then the doorbell record
 * @dbr: doorbell record, in @buf
 * @ci: consumer index, free running
 * @log_size: log2 of the entries
 * @serial: of the next arm
 */
struct skua_en_cq {
	struct skua_cq cq;
	struct skua_buf buf;
	struct skua_cq_dbr *dbr;
	u32 ci;
	u8 log_size;
	u8 serial;
};

/* What a send WQE carries, kept at the index of its first block. */
struct skua_en_tx_info {
	struct sk_buff *skb;
	u16 nsegs;		/* data segments */
	u16 blocks;
	u16 frames;		/* on the wire */
	u16 hdr;		/* bytes that each of several frames begins with */
};

/* What a data segment maps. Not read back from the ring, where the device could
 * have written something else.
 */
struct skua_en_tx_dma {
	dma_addr_t addr;
	u32 len;
};

/* Part of a page; other receive WQEs may have other parts of it. */
struct skua_en_rx_frag {
	struct page *page;
	u32 offset;
	u32 truesize;
};

/* Buffers of a receive WQE. */
struct skua_en_rx_info {
	struct skua_en_rx_frag frag[SKUA_EN_RX_SGE];
};

/* Counted by xmit. */
struct skua_en_xmit_stats {
	u64 dropped;
	u64 stopped;
};

/* Counted by NAPI, in frames on the wire; @gso_packets and @gso_bytes before they are cut. */
struct skua_en_tx_stats {
	u64 packets;
	u64 bytes;
	u64 needs_csum;
	u64 gso_packets;
	u64 gso_bytes;
	u64 gso_wire_packets;
	u64 gso_wire_bytes;
	u64 woken;
	u64 errors;
};

/* @alloc_fail: failed allocations; where one costs a frame, @dropped counts that, too. */
struct skua_en_rx_stats {
	u64 packets;
	u64 bytes;
	u64 multicast;
	u64 csum_ok;
	u64 csum_none;
	u64 csum_bad;
	u64 alloc_fail;
	u64 dropped;
	u64 errors;
	u64 gro_packets;
	u64 gro_bytes;
	u64 gro_wire_packets;
	u64 gro_wire_bytes;
};

struct skua_en_stats {
	struct skua_en_xmit_stats xmit;
	struct skua_en_tx_stats tx;
	struct skua_en_rx_stats rx;
};

/* Counters of the device that the netdev's statistics include. */
enum skua_en_hw_stat {
	SKUA_EN_HW_NO_BUF,
	SKUA_EN_HW_TOO_LONG,
	SKUA_EN_HW_TX_ERR,
	SKUA_EN_HW_COUNT
};

/**
 * enum skua_en_channel_flag - bits of a channel
 * @SKUA_EN_CH_FAILED: the queue is in error, or its completions are invalid: NAPI does not
 *	touch it until the channel is replaced
 * @SKUA_EN_CH_STARVED: there is no memory for the large pages of its receive buffers: it is used
 *	until the channel is replaced, or there is
 */
enum skua_en_channel_flag {
	SKUA_EN_CH_FAILED,
	SKUA_EN_CH_STARVED,
};

/**
 * struct skua_en_channel - a queue pair with its CQs and NAPI context
 * @en: owner
 * @napi: polls both CQs
 * @qp: core object
 * @index: queue number of the netdev
 * @flags: enum skua_en_channel_flag, by atomic bit operations
 * @buf: receive ring, send ring, doorbell record
 * @dbr: doorbell record
 * @txcq: send completions
 * @sq: send ring
 * @tx_info: by block
 * @tx_dma: by segment
 * @tx_pi: producer index in blocks; written by xmit under the queue's lock
 * @tx_ci: consumer index in blocks; written by NAPI
 * @watch_pi: @tx_pi at the last run of skua_en_watch_work()
 * @watch_ci: @tx_ci likewise
 * @log_sq: log2 of the send ring's blocks
 * @suppress: the device tells when it wants a send doorbell (SKUA_QP_F_DB_SUPPRESS)
 * @xmit_sync: for consistent reads of @xmit_stats on 32-bit systems
 * @xmit_stats: transmit counters of xmit
 * @tx_sync: likewise, of @tx_stats
 * @tx_stats: transmit counters of NAPI
 * @rxcq: receive completions
 * @rq: receive ring's memory
 * @rx_info: by WQE
 * @pool: receive pages
 * @rx_pi: producer index in WQEs
 * @rx_ci: consumer index in WQEs
 * @rx_gro: maximum number of frames that the device merges into one; 0: none are merged
 * @log_rq: log2 of the receive WQEs
 * @nsge: scatter elements that the MTU needs
 * @rx_room: bytes of page that each element takes
 * @rx_order: order of the pages of @pool
 * @rx_hungry: when the receive ring had few buffers and no memory for others, in jiffies and not
 *	0; 0 if it has been full since then
 * @rx_events: interrupts of @rxcq, counted by their handler
 * @dim: adaptive moderation of @rxcq; NAPI and its work item take turns by @dim.state
 * @rx_sync: likewise, of @rx_stats
 * @rx_stats: receive counters
 */
struct skua_en_channel {
	struct skua_en *en;
	struct napi_struct napi;
	struct skua_qp qp;
	u32 index;
	unsigned long flags;
	struct skua_buf buf;
	struct skua_qp_dbr *dbr;

	struct skua_en_cq txcq;
	struct skua_sq_ring sq;
	struct skua_en_tx_info *tx_info;
	struct skua_en_tx_dma *tx_dma;
	u32 tx_pi;
	u32 tx_ci;
	u32 watch_pi;
	u32 watch_ci;
	u8 log_sq;
	bool suppress;
	struct u64_stats_sync xmit_sync;
	struct skua_en_xmit_stats xmit_stats;
	struct u64_stats_sync tx_sync;
	struct skua_en_tx_stats tx_stats;

	struct skua_en_cq rxcq ____cacheline_aligned_in_smp;
	struct skua_wqe_data *rq;
	struct skua_en_rx_info *rx_info;
	struct page_pool *pool;
	u32 rx_pi;
	u32 rx_ci;
	u8 rx_gro;
	u8 log_rq;
	u8 nsge;
	u8 rx_order;
	unsigned long rx_hungry;
	u32 rx_room[SKUA_EN_RX_SGE];
	u16 rx_events;
	struct dim dim;
	struct u64_stats_sync rx_sync;
	struct skua_en_rx_stats rx_stats;
};

/**
 * struct skua_en_conf - configuration whose change needs new queues
 * @channels: number in use
 * @ring_rx: receive WQEs of a channel
 * @ring_tx: packets of a send ring
 * @mtu: of the netdev
 * @gro: NETIF_F_GRO_HW is on: the device merges frames
 * @rss_key: Toeplitz key
 * @rss_indir: channel of each hash bucket
 */
struct skua_en_conf {
	unsigned int channels;
	u32 ring_rx;
	u32 ring_tx;
	u32 mtu;
	bool gro;
	u8 rss_key[SKUA_RSS_KEY_SIZE];
	u32 rss_indir[SKUA_RSS_MAX];
};

/**
 * struct skua_en_rx_mode - what the stack wants to receive besides its own address
 * @promisc: everything
 * @allmulti: all multicast
 * @num: addresses that need a rule: none for stations with @promisc, for groups with @allmulti
 * @mac: these addresses
 */
struct skua_en_rx_mode {
	bool promisc;
	bool allmulti;
	unsigned int num;
	u8 mac[SKUA_EN_MAX_FILTERS][ETH_ALEN];
};

/**
 * struct skua_en_filter - a flow rule of the netdev
 * @rule: its number
 * @mac: frames to this address are received
 */
struct skua_en_filter {
	u32 rule;
	u8 mac[ETH_ALEN];
};

/*
 * Restarts of a queue that fails again and again: the wait before the second one, which doubles
 * with each, and the longest. A queue that was not restarted for so long begins anew.
 */
#define SKUA_EN_RESTART_FIRST	(HZ / 10UL)
#define SKUA_EN_RESTART_LONGEST	(2UL * HZ)
#define SKUA_EN_RESTART_CALM	(10UL * HZ)
/* Restarts after which the wait is the longest */
#define SKUA_EN_RESTART_ROW	6

/**
 * struct skua_en_pace - how often a queue is restarted
 * @last: time of the last restart, in jiffies
 * @row: restarts in a row, each soon after the one before
 */
struct skua_en_pace {
	u64 last;
	unsigned int row;
};

/**
 * struct skua_en - private data of the netdev
 * @dev: the function
 * @dma: the function's device, which maps for DMA
 * @ndev: the netdev
 * @nb: core events
 * @pdn: protection domain of all its queues
 * @conf: configuration in force
 * @channel: the channels, while the netdev is up
 * @stats_lock: readers see the statistics of a channel either in the channel or, when it is
 *	destroyed, in @stats
 * @stats: totals of destroyed channels, by queue
 * @hw_stats: increments of the device's counters since the netdev was made; under @stats_lock
 * @hw_seen: the device's counters as they were queried last
 * @hw_stats_work: queries the device's counters
 * @link_lock: protects @link_watch and @link_failed, and makes the query of the link state and
 *	the change of the carrier one step
 * @link_watch: the carrier follows the device's link; else it is off
 * @link_failed: the last query has failed
 * @link_work: repeats it
 * @rss: the device has RSS; without it there is one channel
 * @rss_index: RSS context, while up
 * @mode: receive mode that the stack wants
 * @filters: number of flow rules; if some could not be created it is less than the number of
 *	addresses in @mode
 * @filter: these rules
 * @rx_mode: carries the address lists to the device, where the stack does not
 * @rx_mode_tries: how often that has failed in a row; under RTNL
 * @rx_small: by queue: receive buffers of its next channel are in pages of order 0, for there
 *	was no memory for larger ones; until all channels are made anew; under RTNL
 * @restarts: by queue, how often a channel that had failed was replaced; under @stats_lock
 * @pace: likewise, when that may be again; of @restart alone
 * @restart: replaces the channels that have failed
 * @watch: looks for packets that are not completed, while the netdev is up
 * @adaptive: the receive CQs' interrupt moderation follows the traffic
 * @mod_usec: microseconds of interrupt moderation; the initial value if it is adaptive
 * @mod_count: likewise, in frames
 * @attached: the device is up and the netdev uses it; under RTNL
 * @dead: the device has failed or is not up: it gets no packets and no commands
 * @caps: capabilities of the device when the netdev was made
 * @ets: traffic classes; under RTNL
 * @ets_refused: the device has refused them when it came up; likewise
 */
struct skua_en {
	struct skua_dev *dev;
	struct device *dma;
	struct net_device *ndev;
	struct notifier_block nb;
	u32 pdn;
	struct skua_en_conf conf;
	struct skua_en_channel *channel[SKUA_EN_MAX_CHANNELS];
	spinlock_t stats_lock; /* see above */
	struct skua_en_stats stats[SKUA_EN_MAX_CHANNELS];
	u64 hw_stats[SKUA_EN_HW_COUNT];
	u64 hw_seen[SKUA_EN_HW_COUNT];
	struct work_struct hw_stats_work;
	struct mutex link_lock; /* see above */
	bool link_watch;
	bool link_failed;
	struct delayed_work link_work;
	bool rss;
	u32 rss_index;
	struct skua_en_rx_mode mode;
	unsigned int filters;
	struct skua_en_filter filter[SKUA_EN_MAX_FILTERS];
#ifdef SKUA_COMPAT_RX_MODE
	struct delayed_work rx_mode;
	unsigned int rx_mode_tries;
#endif
	bool rx_small[SKUA_EN_MAX_CHANNELS];
	u64 restarts[SKUA_EN_MAX_CHANNELS];
	struct skua_en_pace pace[SKUA_EN_MAX_CHANNELS];
	struct delayed_work restart;
	struct delayed_work watch;
	bool adaptive;
	u16 mod_usec;
	u16 mod_count;
	bool attached;
	bool dead;
	u64 caps;
#if IS_ENABLED(CONFIG_DCB)
	struct ieee_ets ets;
	bool ets_refused;
#endif
};

/* Capabilities that the netdev's features and operations depend on. */
#define SKUA_EN_CAPS	(SKUA_CAP_CSUM | SKUA_CAP_LSO | SKUA_CAP_RSS | SKUA_CAP_VLAN |	\
			 SKUA_CAP_MODERATION | SKUA_CAP_GRO | SKUA_CAP_ETS)

/* Without RSS one channel receives all frames. */
static inline unsigned int skua_en_max_channels(const struct skua_en *en)
{
	return en->rss ? min(skua_num_comp_vectors(en->dev), SKUA_EN_MAX_CHANNELS) : 1;
}

/* en_channel.c */
struct skua_en_channel *skua_en_channel_create(struct skua_en *en,
					       const struct skua_en_conf *conf, u32 index);
void skua_en_channel_start(struct skua_en_channel *ch);
void skua_en_channels_stop(struct skua_en_channel *const *ch, unsigned int n);
__printf(2, 3) void skua_en_channel_fail(struct skua_en_channel *ch, const char *fmt, ...);
void skua_en_channel_starved(struct skua_en_channel *ch);
void skua_en_channels_destroy(struct skua_en_channel *const *ch, unsigned int n);
void skua_en_cq_arm(struct skua_en *en, struct skua_en_cq *cq);
const struct skua_cqe *skua_en_cq_next(struct skua_en_cq *cq);
void skua_en_cq_publish(struct skua_en_cq *cq);
int skua_en_poll(struct napi_struct *napi, int budget);

/* en_tx.c */
netdev_tx_t skua_en_xmit(struct sk_buff *skb, struct net_device *ndev);
netdev_features_t skua_en_features_check(struct sk_buff *skb, struct net_device *ndev,
					 netdev_features_t features);
bool skua_en_tx_poll(struct skua_en_channel *ch, int budget);
bool skua_en_tx_stuck(struct skua_en_channel *ch);
void skua_en_tx_flush(struct skua_en_channel *ch);

/* en_rx.c */
int skua_en_rx_poll(struct skua_en_channel *ch, int budget);
void skua_en_dim_init(struct skua_en_channel *ch);
void skua_en_dim(struct skua_en_channel *ch);
void skua_en_dim_stop(struct skua_en_channel *ch);

unsigned int skua_en_rx_size(const struct skua_en_channel *ch, unsigned int i);
void skua_en_rx_layout(struct skua_en_channel *ch, unsigned int mtu, bool small);
void skua_en_rx_gro_init(struct skua_en_channel *ch, bool gro);
bool skua_en_rx_page(struct skua_en_channel *ch, struct skua_en_rx_frag *frag, gfp_t gfp);
void skua_en_rx_fill(struct skua_en_channel *ch, gfp_t gfp);
void skua_en_rx_flush(struct skua_en_channel *ch);

/* en_rss.c */
int skua_en_rss_apply(struct skua_en *en, const struct skua_en_conf *conf,
		      struct skua_en_channel *const *ch, bool create);
void skua_en_rss_default(struct skua_en_conf *conf);

/* en_config.c */
int skua_en_up(struct skua_en *en);
void skua_en_down(struct skua_en *en);
int skua_en_reconfigure(struct skua_en *en, const struct skua_en_conf *conf);
void skua_en_restart_work(struct work_struct *work);
#if IS_ENABLED(CONFIG_KUNIT)
unsigned long skua_en_restart_wait(struct skua_en_pace *pace, u64 now);
#endif
void skua_en_watch_work(struct work_struct *work);
int skua_en_modify_port(struct skua_en *en, struct skua_cmd_modify_port_in *in);
int skua_en_filters_set(struct skua_en *en, const struct skua_en_rx_mode *mode);

/* en_netdev.c */
extern const struct net_device_ops skua_en_netdev_ops;
void skua_en_link(struct skua_en *en);
void skua_en_link_watch(struct skua_en *en, bool watch);
void skua_en_link_work(struct work_struct *work);
void skua_en_rx_mode_work(struct work_struct *work);
void skua_en_rx_mode_refresh(struct skua_en *en);
void skua_en_rx_mode_failed(struct skua_en *en, int err);
#if IS_ENABLED(CONFIG_KUNIT)
void skua_en_rx_mode_again(struct skua_en *en);
#endif

/* en_stats.c */
extern const struct netdev_stat_ops skua_en_stat_ops;
void skua_en_stats_sum(struct skua_en_stats *to, const struct skua_en_stats *from);
void skua_en_stats_add(struct skua_en_stats *to, const struct skua_en_channel *ch);
void skua_en_hw_stats_start(struct skua_en *en);
void skua_en_hw_stats_work(struct work_struct *work);
void skua_en_get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *stats);
void skua_en_get_eth_mac_stats(struct net_device *ndev, struct ethtool_eth_mac_stats *mac);
void skua_en_get_rmon_stats(struct net_device *ndev, struct ethtool_rmon_stats *rmon,
			    const struct ethtool_rmon_hist_range **ranges);
int skua_en_get_sset_count(struct net_device *ndev, int set);
void skua_en_get_strings(struct net_device *ndev, u32 set, u8 *p);
void skua_en_get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data);

/* en_dcb.c */
#if IS_ENABLED(CONFIG_DCB)
void skua_en_dcb_init(struct skua_en *en);
void skua_en_dcb_up(struct skua_en *en);
void skua_en_dcb_exit(struct skua_en *en);
#if IS_ENABLED(CONFIG_KUNIT)
int skua_en_ets_check(const struct net_device *ndev, const struct ieee_ets *ets);
#endif
#else
static inline void skua_en_dcb_init(struct skua_en *en)
{
}

static inline void skua_en_dcb_up(struct skua_en *en)
{
}

static inline void skua_en_dcb_exit(struct skua_en *en)
{
}
#endif

/* en_ethtool.c */
extern const struct ethtool_ops skua_en_ethtool_ops;

#endif /* SKUA_EN_H */
