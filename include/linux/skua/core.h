/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-kernel API of skua_core, for its auxiliary drivers skua_en and skua_ib.
 * Symbols are in the namespace "SKUA".
 *
 * skua_core creates the objects (CQ, QP, SRQ, MR, EQ): it manages numbers, ICM, commands,
 * events and lifetime. The auxiliary drivers implement the semantics of netdev and verbs.
 * Unless said otherwise functions may sleep and return 0 or a negative errno.
 */
#ifndef LINUX_SKUA_CORE_H
#define LINUX_SKUA_CORE_H

#include <linux/auxiliary_bus.h>
#include <linux/completion.h>
#include <linux/io.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include <skua/bits.h>
#include <skua/hw/cmd.h>
#include <skua/hw/counters.h>
#include <skua/hw/cqe.h>
#include <skua/hw/doorbell.h>
#include <skua/hw/eqe.h>
#include <skua/hw/icm.h>
#include <skua/hw/queue.h>
#include <skua/hw/steer.h>
#include <skua/hw/wqe.h>

struct skua_dev;

/**
 * struct skua_limits - limits from QUERY_DEVICE, in host byte order, reduced to the sizes
 *	of the driver's ICM tables
 * @caps: SKUA_CAP_*
 * @fw_version: as in the command
 * @node_guid: EUI-64
 * @mac: permanent MAC address
 * @max_mtu: largest Ethernet payload
 * @max_qp: QPs, reserved ones not counted
 * @max_cq: CQs
 * @max_srq: SRQs
 * @max_mr: keys
 * @max_mtt: MTT entries
 * @max_gids: GID table entries
 * @max_flows: steering rules
 * @max_rss: RSS contexts
 * @max_mcg: multicast members
 * @max_sets: counter sets
 * @max_uar: UAR pages, the driver's own included
 * @max_sq_blocks: blocks of a send ring
 * @max_rq_wqes: receive WQEs of a ring
 * @max_rq_sge: scatter elements of a receive WQE
 * @max_wqe_blocks: blocks of a send WQE
 * @max_inline: bytes of inline payload
 * @push_segs: longest WQE, in segments, that is better pushed than fetched; 0: none
 * @max_cqe: entries of a CQ
 * @max_eqe: entries of an EQ
 * @max_rd_atomic: READs and atomics outstanding
 * @max_msg: longest message
 * @max_mr_len: longest region
 * @page_sizes: bit mask of page sizes of regions and rings
 * @path_mtu_max: IBTA code of the largest path MTU
 * @clock_khz: device clock
 * @dm_size: bytes of device memory
 * @rate_min: least rate limit of a QP, kbit/s
 * @rate_max: greatest
 * @rate_burst_max: longest burst under a rate limit, bytes
 * @turn_wqes: send WQEs that a QP begins in a turn, unless told otherwise
 * @turn_bytes: bytes that it sends in a turn, likewise
 * @qpn_bits: width of the index in a QPN. No queue has index 0.
 */
struct skua_limits {
	u64 caps;
	u64 fw_version;
	__be64 node_guid;
	u8 mac[6];
	u16 max_mtu;
	u32 max_qp;
	u32 max_cq;
	u32 max_srq;
	u32 max_mr;
	u64 max_mtt;
	u32 max_gids;
	u32 max_flows;
	u32 max_rss;
	u32 max_mcg;
	u32 max_sets;
	u32 max_uar;
	u32 max_sq_blocks;
	u32 max_rq_wqes;
	u32 max_rq_sge;
	u32 max_wqe_blocks;
	u32 max_inline;
	u8 push_segs;
	u32 max_cqe;
	u32 max_eqe;
	u32 max_rd_atomic;
	u64 max_msg;
	u64 max_mr_len;
	u64 page_sizes;
	u8 path_mtu_max;
	u32 clock_khz;
	u32 dm_size;
	u32 rate_min;
	u32 rate_max;
	u32 rate_burst_max;
	u32 turn_wqes;
	u32 turn_bytes;
	u8 qpn_bits;
};

/**
 * enum skua_down_reason - why a client may not use the device for a while
 * @SKUA_DOWN_RELOAD: the administrator reloads it; it works until down() returns
 * @SKUA_DOWN_FAILURE: it has failed and is recovered
 * @SKUA_DOWN_RESET: the PCI core resets the function
 * @SKUA_DOWN_PCI_ERROR: the PCI core recovers the function from an error
 * @SKUA_DOWN_SLEEP: the system sleeps
 */
enum skua_down_reason {
	SKUA_DOWN_RELOAD,
	SKUA_DOWN_FAILURE,
	SKUA_DOWN_RESET,
	SKUA_DOWN_PCI_ERROR,
	SKUA_DOWN_SLEEP,
};

/**
 * struct skua_client_ops - a client that outlives resets of the device
 * @down: use the device no more: on return all objects are destroyed, and no function of
 *	this API is called but skua_is_up(), skua_dead() and those that need no device. If
 *	the device is dead, objects are destroyed all the same; the device knows them no
 *	more. Not all is lost: up() follows, or the client's removal.
 * @up: the device may be used again. It knows nothing of what it was told before; limits
 *	may be other ones. On an error the device is taken down again, and down() called.
 *
 * Called in process context with the auxiliary device's lock, which probe and remove hold
 * as well, and never with RTNL. A client that is probed while the device is not up
 * (skua_is_up()) waits for up(); one that was up already may be told once more, and one
 * that is down likewise.
 */
struct skua_client_ops {
	void (*down)(struct auxiliary_device *adev, enum skua_down_reason reason);
	int (*up)(struct auxiliary_device *adev);
};

/**
 * struct skua_adev - an auxiliary device of the core
 * @adev: its bus device, named "skua_core.eth" or "skua_core.rdma"
 * @dev: the function it belongs to
 * @ops: set by the client's probe, cleared by its remove. NULL: the auxiliary device is
 *	deleted whenever the device is taken down, and another one added when it is up.
 */
struct skua_adev {
	struct auxiliary_device adev;
	struct skua_dev *dev;
	const struct skua_client_ops *ops;
};

static inline void skua_adev_set_ops(struct auxiliary_device *adev,
				     const struct skua_client_ops *ops)
{
	container_of(adev, struct skua_adev, adev)->ops = ops;
}

static inline struct skua_dev *skua_adev_dev(struct auxiliary_device *adev)
{
	return container_of(adev, struct skua_adev, adev)->dev;
}

/* The PCI function, its limits, the number of completion vectors (EQs). */
struct pci_dev *skua_pdev(const struct skua_dev *dev);
const struct skua_limits *skua_limits(const struct skua_dev *dev);
unsigned int skua_num_comp_vectors(const struct skua_dev *dev);
u64 skua_clock(const struct skua_dev *dev);
int skua_comp_vector_irq(const struct skua_dev *dev, unsigned int vector);

/**
 * skua_dead() - is the device beyond use?
 * @dev: the function
 *
 * True from the moment it fails or is taken away (its registers read all ones, it reports
 * a fatal error, its heartbeat stops, a command is not completed; a reset of the PCI core,
 * sleep) until it is brought up again. Lock free; commands fail with -EIO at once while
 * true, and the device does no DMA: what it owned may be freed.
 *
 * Return: true if so.
 */
bool skua_dead(const struct skua_dev *dev);

/**
 * skua_is_up() - may clients use the device?
 * @dev: the function
 *
 * For a client's probe. It may fail at any time after; but as long as the lock of the
 * client's auxiliary device is held it is not taken down.
 *
 * Return: true if so.
 */
bool skua_is_up(const struct skua_dev *dev);

/*
 * Events of the function, told to a client's blocking notifier chain in process
 * context. @data is the struct skua_dev. SKUA_EVENT_DEAD is told before the clients of
 * the dead function are taken down or removed.
 */
enum skua_event {
	SKUA_EVENT_PORT,	/* link state may have changed */
	SKUA_EVENT_DEAD,	/* device declared dead: no more completions */
};

int skua_register_notifier(struct skua_dev *dev, struct notifier_block *nb);
void skua_unregister_notifier(struct skua_dev *dev, struct notifier_block *nb);

/* --- UAR pages (uar.c) --- */

/**
 * struct skua_uar - a UAR page
 * @index: number of the page in contexts
 * @pfn: page frame number for mapping it to user space
 * @map: kernel mapping, or NULL for a page of user space
 */
struct skua_uar {
	u32 index;
	unsigned long pfn;
	void __iomem *map;
};

int skua_uar_alloc(struct skua_dev *dev, struct skua_uar *uar, bool map);
void skua_uar_free(struct skua_dev *dev, struct skua_uar *uar);
/* The UAR page that kernel queues share. */
const struct skua_uar *skua_kernel_uar(const struct skua_dev *dev);

/**
 * skua_ring_db() - ring a doorbell by one 8-byte store
 * @uar: page with a kernel mapping
 * @reg: SKUA_UAR_SQ, _CQ_ARM, _EQ or _RECOVERY
 * @lo: index
 * @hi: queue number and flags
 *
 * Orders earlier stores to coherent memory before the doorbell (writeq does).
 * On 32-bit kernels two stores under the page's lock.
 */
void skua_ring_db(const struct skua_uar *uar, unsigned int reg, u32 lo, u32 hi);

/* --- Device memory (dm.c) --- */

/**
 * struct skua_dm - a range of device memory
 * @offset: offset of its first byte in the device memory
 * @size: bytes, whole pages
 * @pfn: page frame for mapping it to user space
 */
struct skua_dm {
	u32 offset;
	u32 size;
	unsigned long pfn;
};

int skua_dm_alloc(struct skua_dev *dev, struct skua_dm *dm, u64 size, u32 log_align);
void skua_dm_free(struct skua_dev *dev, const struct skua_dm *dm);
struct p2pdma_provider *skua_dm_provider(const struct skua_dev *dev);

/* --- Ring memory (buf.c) --- */

/**
 * struct skua_buf - zeroed coherent memory for a kernel ring or record
 * @va: kernel address
 * @dma: bus address
 * @size: bytes
 */
struct skua_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
};

int skua_buf_try(struct skua_dev *dev, struct skua_buf *buf, size_t size, gfp_t gfp);
int skua_buf_alloc(struct skua_dev *dev, struct skua_buf *buf, size_t size);
void skua_buf_free(struct skua_dev *dev, struct skua_buf *buf);

/**
 * skua_buf_xlat() - describe a kernel ring for a context
 * @buf: contiguous coherent memory
 *
 * Return: the description.
 */
static inline struct skua_xlat skua_buf_xlat(const struct skua_buf *buf)
{
	return (struct skua_xlat) {
		.base = cpu_to_le64(buf->dma),
		.mode = le32_encode_bits(SKUA_XLAT_CONTIG, SKUA_XLAT_MODE),
	};
}

/* --- MTT (mtt.c) --- */

/**
 * struct skua_mtt - a run of MTT entries
 * @first: index of the first
 * @npages: entries
 * @log_page: log2 of the page size
 */
struct skua_mtt {
	u64 first;
	u32 npages;
	u8 log_page;
};

/**
 * skua_mtt_alloc() - allocate and fill MTT entries
 * @dev: the function
 * @mtt: filled in
 * @pages: bus addresses, multiples of the page size; NULL: entries for the device
 *	to fill
 * @npages: entries
 * @log_page: log2 of the page size
 * @write: the device may write there
 *
 * Return: 0, -EINVAL for a page size that the device does not support or for more
 * entries than the device has, -ENOSPC, or another negative errno.
 */
int skua_mtt_alloc(struct skua_dev *dev, struct skua_mtt *mtt, const dma_addr_t *pages,
		   u64 npages, u8 log_page, bool write);
void skua_mtt_clear(struct skua_dev *dev, const struct skua_mtt *mtt);
u32 skua_mtt_refill(struct skua_dev *dev, const struct skua_mtt *mtt, const dma_addr_t *pages,
		    u32 npages, bool write, bool known);
void skua_mtt_free(struct skua_dev *dev, struct skua_mtt *mtt);

/**
 * skua_mtt_reserve() - allocate indices of MTT entries without memory for them
 * @dev: the function
 * @mtt: filled in
 * @npages: number of entries
 *
 * For a directory, of which only the parts in use are backed with memory. The device
 * treats an entry without memory as an empty one.
 *
 * Return: 0, -EINVAL for more entries than the device has, -ENOSPC, or another
 * negative errno.
 */
int skua_mtt_reserve(struct skua_dev *dev, struct skua_mtt *mtt, u64 npages);
void skua_mtt_unreserve(struct skua_dev *dev, const struct skua_mtt *mtt);
int skua_mtt_dir_set(struct skua_dev *dev, const struct skua_mtt *dir, u32 i,
		     const struct skua_mtt *block);
void skua_mtt_dir_clear(struct skua_dev *dev, const struct skua_mtt *dir, u32 i);
void skua_mtt_dir_free(struct skua_dev *dev, const struct skua_mtt *dir);
bool skua_mtt_set(struct skua_dev *dev, const struct skua_mtt *mtt, u32 i, dma_addr_t addr,
		  bool write);
u32 skua_mtt_zap(struct skua_dev *dev, const struct skua_mtt *mtt, u32 first, u32 count);

/* --- Page faults (fault.c) --- */

/**
 * struct skua_page_fault - a queue waits for a page of an on-demand region. All members
 *	are from the device and not trusted.
 * @qpn: number of the QP
 * @key: key of the region
 * @va: first byte of the access
 * @len: bytes of the access
 * @token: for skua_fault_resume()
 * @write: the access is a write
 */
struct skua_page_fault {
	u32 qpn;
	u32 key;
	u64 va;
	u32 len;
	u32 token;
	bool write;
};

/**
 * struct skua_fault_handler - page fault handler
 * @fault: called in process context, one call at a time. It must call skua_fault_resume()
 *	or have it called later. Further faults are delivered after its return.
 */
struct skua_fault_handler {
	void (*fault)(struct skua_fault_handler *handler, const struct skua_page_fault *fault);
};

void skua_fault_set_handler(struct skua_dev *dev, struct skua_fault_handler *handler);
void skua_fault_resume(struct skua_dev *dev, u32 token, bool error);

/* --- Common part of CQ, SRQ and QP (obj.c) --- */

/**
 * struct skua_obj - number and reference count of an object
 * @num: its number
 * @ref: references of the table and of event handlers
 * @free: completed when @ref drops to zero
 */
struct skua_obj {
	u32 num;
	refcount_t ref;
	struct completion free;
};

/* --- CQ (cq.c) --- */

/**
 * struct skua_cq - completion queue
 * @obj: number
 * @comp: completion event, from hard interrupt context, may be NULL
 * @event: CQ error, from process context, may be NULL
 * @vector: completion vector
 * @irq: its interrupt
 *
 * Embedded by the caller. Callbacks do not run after skua_cq_destroy() has returned.
 */
struct skua_cq {
	struct skua_obj obj;
	void (*comp)(struct skua_cq *cq);
	void (*event)(struct skua_cq *cq, enum skua_cq_err err);
	unsigned int vector;
	int irq;
};

/**
 * skua_cq_create() - create a completion queue
 * @dev: the function
 * @cq: @comp, @event and @vector are set by the caller
 * @cqc: context with flags, uar, moderation, ring and dbr; number and EQ are filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_cq_create(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc);
void skua_cq_destroy(struct skua_dev *dev, struct skua_cq *cq);
int skua_cq_modify(struct skua_dev *dev, struct skua_cq *cq, u16 count, u16 usec);
int skua_cq_query(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc);
int skua_cq_resize(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc, u32 *pi);

/* --- SRQ (srq.c) --- */

/**
 * struct skua_srq - shared receive queue
 * @obj: number
 * @event: SKUA_EQE_SRQ_LIMIT or SKUA_EQE_SRQ_ERR, from process context
 */
struct skua_srq {
	struct skua_obj obj;
	void (*event)(struct skua_srq *srq, enum skua_eqe_type type);
};

int skua_srq_create(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc);
void skua_srq_destroy(struct skua_dev *dev, struct skua_srq *srq);
int skua_srq_modify(struct skua_dev *dev, struct skua_srq *srq, u32 limit);
int skua_srq_query(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc);
int skua_srq_resize(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc);

/* --- QP (qp.c) --- */

/**
 * struct skua_qp - queue pair
 * @obj: QPN, variant bits included
 * @event: asynchronous event, from process context, may be NULL
 * @ext: placement tables of selective repeat (SKUA_EXT_TABLE_BYTES()), from the transition to
 *	RTR until RESET; empty if the QP does not use it. Managed by skua_qp_modify().
 *	With SKUA_CAP_RECOVERY the recovery ring is behind it, and of a QP that receives from
 *	an SRQ the table of struct skua_ext_recv behind that
 * @shared: it receives from an SRQ. Set by skua_qp_create()
 * @recovery: its loss state, if that is the driver's; likewise
 */
struct skua_qp {
	struct skua_obj obj;
	void (*event)(struct skua_qp *qp, enum skua_qp_event event);
	struct skua_buf ext;
	bool shared;
	struct skua_qp_recovery *recovery;
};

/**
 * skua_qp_has_ext() - does the QP use selective repeat, or offer it to its peer?
 * @qp: the QP
 *
 * Return: true if so. It may change at any time, unless the caller serializes with
 * skua_qp_modify().
 */
static inline bool skua_qp_has_ext(const struct skua_qp *qp)
{
	return READ_ONCE(qp->ext.va);
}

/**
 * skua_qp_create() - create a QP in state RESET
 * @dev: the function
 * @qp: @event is set by the caller
 * @in: everything but the number, which is filled in; with @gsi it is 1
 * @gsi: the GSI QP
 *
 * Return: 0, -EBUSY for a second GSI QP, or another negative errno.
 */
int skua_qp_create(struct skua_dev *dev, struct skua_qp *qp,
		   struct skua_cmd_create_qp_in *in, bool gsi);
void skua_qp_destroy(struct skua_dev *dev, struct skua_qp *qp);
void skua_qp_for_each(struct skua_dev *dev,
		      void (*event)(struct skua_qp *qp, enum skua_qp_event event),
		      void (*fn)(struct skua_qp *qp));
int skua_qp_modify(struct skua_dev *dev, struct skua_qp *qp, struct skua_cmd_modify_qp_in *in);
/* Count the QP in a counter set, or in none (SKUA_NO_SET). */
int skua_qp_count(struct skua_dev *dev, struct skua_qp *qp, u32 set);
int skua_qp_query(struct skua_dev *dev, struct skua_qp *qp, struct skua_cmd_query_qp_out *out);
u32 skua_qp_sr_window(const struct skua_cmd_query_qp_out *out);
const char *skua_qp_recovery(const struct skua_cmd_query_qp_out *out);

/* --- MR (mr.c) --- */

/**
 * struct skua_mr - memory region or window
 * @key: the whole key
 */
struct skua_mr {
	u32 key;
};

/**
 * skua_mr_create() - allocate a key and create the MPT entry
 * @dev: the function
 * @mr: filled in
 * @mpt: everything but the key
 *
 * Return: 0 or a negative errno.
 */
int skua_mr_create(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt);
/* Fails with -EBUSY while windows are bound, but not if the device is dead. */
int skua_mr_destroy(struct skua_dev *dev, struct skua_mr *mr);
int skua_mr_modify(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt);
/* The same in two steps, for keys that are reused. */
int skua_mr_reserve(struct skua_dev *dev, struct skua_mr *mr);
int skua_mr_enable(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt);
int skua_mr_disable(struct skua_dev *dev, struct skua_mr *mr);
void skua_mr_unreserve(struct skua_dev *dev, const struct skua_mr *mr);
int skua_mr_query(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt);

/* --- Protection and XRC domains (pd.c): only numbers --- */
#define SKUA_PDN_MAX	0xffffff	/* the largest: contexts have 24 bits for it */
int skua_pd_alloc(struct skua_dev *dev, u32 *pdn);
void skua_pd_free(struct skua_dev *dev, u32 pdn);
int skua_xrcd_alloc(struct skua_dev *dev, u32 *xrcd);
void skua_xrcd_free(struct skua_dev *dev, u32 xrcd);

/* --- GIDs (gid.c), port (port.c) --- */
int skua_set_gid(struct skua_dev *dev, u32 index, const struct skua_gid *gid);
int skua_query_port(struct skua_dev *dev, struct skua_cmd_query_port_out *out);
int skua_modify_port(struct skua_dev *dev, const struct skua_cmd_modify_port_in *in);
int skua_set_classes(struct skua_dev *dev, const u8 prio_tc[SKUA_PRIO_NUM],
		     const u8 tc_share[SKUA_TC_NUM]);

/* --- Steering of received frames (steer.c) --- */
int skua_rss_create(struct skua_dev *dev, u32 *index, const struct skua_rss *rss);
int skua_rss_modify(struct skua_dev *dev, u32 index, const struct skua_rss *rss);
void skua_rss_destroy(struct skua_dev *dev, u32 index);

/* Values of SKUA_FLOW_PRIO; rules with a lower value are matched first. */
enum skua_flow_prio {
	SKUA_FLOW_PRIO_USER = 0,	/* first one of RAW_PACKET QPs */
	SKUA_FLOW_PRIO_NETDEV = 0x8000,	/* rules of the netdev */
	SKUA_FLOW_PRIO_REST = 0xffff,	/* frames that match no other rule */
};

int skua_flow_create(struct skua_dev *dev, u32 *index, const struct skua_flow *flow);
void skua_flow_destroy(struct skua_dev *dev, u32 index);
int skua_mcg_attach(struct skua_dev *dev, u32 *index, const struct skua_mcg *mcg);
void skua_mcg_detach(struct skua_dev *dev, u32 index);

/*
 * Counters (counters.c). Counter sets are numbered from 1; SKUA_NO_SET stands for the
 * counters of the device. @value has SKUA_CNT_COUNT elements.
 */
#define SKUA_NO_SET	0
int skua_query_set(struct skua_dev *dev, u32 set, u64 *value);
static inline int skua_query_counters(struct skua_dev *dev, u64 *value)
{
	return skua_query_set(dev, SKUA_NO_SET, value);
}

int skua_set_create(struct skua_dev *dev, u32 *set);
void skua_set_destroy(struct skua_dev *dev, u32 set);

/* --- Netdev of the function: set by skua_en, used by skua_ib --- */
struct net_device;
void skua_set_netdev(struct skua_dev *dev, struct net_device *ndev);
/* Returns the netdev with a reference (see dev_put()) or NULL; may not be registered yet. */
struct net_device *skua_get_netdev(struct skua_dev *dev);

#endif /* LINUX_SKUA_CORE_H */
