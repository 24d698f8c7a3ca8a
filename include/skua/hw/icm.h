/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: ICM, its tables, and memory regions.
 *
 * ICM is the device's virtual memory in the host: one 48-bit address space,
 * holding tables, each of a base and an entry size. The driver maps host pages
 * into it on demand (MAP_ICM). A mapped context belongs to the device: software
 * neither reads nor writes it, but for MTT pages, which software fills before
 * the MPT that uses them becomes valid, or with SYNC_MTT after. The QUERY
 * commands return contexts up to date.
 *
 * Contexts hold everything: doorbell indices, PSNs, deadlines. The device may
 * keep any of them in a bounded cache and write it back; a quiesced device can
 * be written out whole.
 *
 * "State" below marks fields that the device owns: zero in commands.
 *
 * Contexts of queues are in queue.h, those of addresses and steering in steer.h.
 */
#ifndef SKUA_HW_ICM_H
#define SKUA_HW_ICM_H

#include <linux/types.h>

/* ICM is mapped in pages of this unit; table bases are aligned to it. */
#define SKUA_ICM_PAGE_SHIFT		12
#define SKUA_ICM_PAGE_SIZE		BIT(SKUA_ICM_PAGE_SHIFT)
/* Addresses in ICM are below this power of two. */
#define SKUA_ICM_ADDR_BITS		48

/*
 * The tables: X(name, number, entry size in bytes, text). The entry sizes are
 * also in QUERY_DEVICE; software uses those.
 */
#define SKUA_ICM_TABLE(X)						\
	X(SQC,	 0, 512,  "send queue contexts")			\
	X(RQC,	 1, 256,  "receive queue contexts")			\
	X(SRQC,	 2, 128,  "shared receive queue contexts")		\
	X(CQC,	 3, 128,  "completion queue contexts")			\
	X(EQC,	 4, 128,  "event queue contexts")			\
	X(MPT,	 5, 128,  "memory protection table")			\
	X(MTT,	 6, 8,    "memory translation table")			\
	X(RRC,	 7, 512,  "responder resources (READ, atomics) of a QP")\
	X(GID,	 8, 32,   "GID table")					\
	X(FLOW,	 9, 128,  "flow steering rules")			\
	X(MCG,	10, 64,   "multicast members")				\
	X(RSS,	11, 1024, "receive side scaling contexts")		\
	X(CNT,	12, 256,  "counter sets")				\
	X(LRC,	13, 512,  "loss recovery of a QP (SKUA_CAP_SR)")

enum skua_icm_table {
#define X(name, number, size, text) SKUA_ICM_##name = number,
	SKUA_ICM_TABLE(X)
#undef X
	SKUA_ICM_TABLES
};

/* SKUA_ICM_SQC_SIZE ... */
enum {
#define X(name, number, size, text) SKUA_ICM_##name##_SIZE = size,
	SKUA_ICM_TABLE(X)
#undef X
};

/**
 * struct skua_xlat - where a queue's ring lies
 * @base: bus address of the first page (MODE_CONTIG), or index of the first MTT
 *	entry (MODE_MTT)
 * @offset: of the ring's first byte in the first page; a multiple of 64
 * @mode: translation mode and page size
 */
struct skua_xlat {
	__le64 base;
	__le32 offset;
	__le32 mode;
};

_Static_assert(sizeof(struct skua_xlat) == 16, "skua_xlat");

#define SKUA_XLAT_MODE			GENMASK(1, 0)
#define SKUA_XLAT_CONTIG		0	/* one run of bus addresses */
#define SKUA_XLAT_MTT			1	/* page list in the MTT */
#define SKUA_XLAT_INLINE		2	/* page list in the MPT entry */
#define SKUA_XLAT_DIR			3	/* SKUA_MPT_ODP: directory in the MTT */
#define SKUA_XLAT_LOG_PAGE		GENMASK(13, 8)
/* XLAT_DIR: size of the pages; LOG_PAGE, at most 48, is what an entry of the directory covers. */
#define SKUA_XLAT_LOG_SUB		GENMASK(21, 16)
/*
 * XLAT_DIR: 0: an entry of the directory names a list of pages. Else it names a directory
 * of the second level, each entry of which covers 1 << LOG_MID bytes by such a list.
 */
#define SKUA_XLAT_LOG_MID		GENMASK(29, 24)

/*
 * The device may cache MTT entries by aligned groups of this many (64 bytes), and
 * then knows an entry as it was when the group was first used. So a group has one
 * user at a time, and SYNC_MTT comes between two users.
 */
#define SKUA_MTT_GROUP			8

/* An MTT entry: bus address of a page, a multiple of its size, and: */
#define SKUA_MTT_PRESENT		BIT_ULL(0)
#define SKUA_MTT_WRITE			BIT_ULL(1)
#define SKUA_MTT_ADDR			GENMASK_ULL(63, 12)
/*
 * An entry of a directory (XLAT_DIR): PRESENT, and the index of the first entry of the
 * list, or of the directory of the second level, that it names:
 */
#define SKUA_MTT_LIST			GENMASK_ULL(63, 12)

/* Access rights: in MPT entries, memory windows and QP attributes. */
#define SKUA_ACCESS_LOCAL_WRITE		BIT(0)
#define SKUA_ACCESS_REMOTE_WRITE	BIT(1)
#define SKUA_ACCESS_REMOTE_READ		BIT(2)
#define SKUA_ACCESS_REMOTE_ATOMIC	BIT(3)
#define SKUA_ACCESS_MW_BIND		BIT(4)
#define SKUA_ACCESS_ZERO_BASED		BIT(5)
#define SKUA_ACCESS_FLUSH_GLOBAL	BIT(6)
#define SKUA_ACCESS_FLUSH_PERSISTENT	BIT(7)
#define SKUA_ACCESS_RELAXED_ORDERING	BIT(8)
#define SKUA_ACCESS_ALL			GENMASK(8, 0)

/* Pages that an MPT entry can hold itself. */
#define SKUA_MPT_INLINE_PAGES		8

/**
 * struct skua_mpt - memory protection table entry: a region or a window
 * @key: the whole key, index << 8 | variant
 * @flags: type, state
 * @access: SKUA_ACCESS_*
 * @pd: protection domain
 * @va: first byte, as used in work requests and on the wire
 * @len: bytes
 * @xlat: where the region lies; @xlat.offset is that of @va in the first page
 * @npages: pages of the list
 * @parent: state: bound windows: key of the region bound to
 * @qpn: state: bound type 2 windows: the QP that bound it
 * @windows: state: windows bound to this region
 * @page: page addresses (XLAT_INLINE), as MTT entries
 */
struct skua_mpt {
	__le32 key;
	__le32 flags;
	__le32 access;
	__le32 pd;
	__le64 va;
	__le64 len;
	struct skua_xlat xlat;
	__le32 npages;
	__le32 parent;
	__le32 qpn;
	__le32 windows;
	__le64 page[SKUA_MPT_INLINE_PAGES];
};

_Static_assert(sizeof(struct skua_mpt) == SKUA_ICM_MPT_SIZE, "skua_mpt");

/* In flags. A FREE entry has an owner (its key is allocated) but no meaning. */
#define SKUA_MPT_STATE			GENMASK(1, 0)
#define SKUA_MPT_INVALID		0	/* not created */
#define SKUA_MPT_FREE			1	/* created, to be registered by a WQE */
#define SKUA_MPT_VALID			2
#define SKUA_MPT_TYPE			GENMASK(5, 4)
#define SKUA_MPT_MR			0
#define SKUA_MPT_MW1			1
#define SKUA_MPT_MW2			2
/* The region may be registered again by REG_MR work requests. */
#define SKUA_MPT_FAST_REG		BIT(8)
/*
 * On-demand region (SKUA_CAP_ODP): pages come and go while it is VALID. Its mode is
 * SKUA_XLAT_MTT, or SKUA_XLAT_DIR: then @xlat.base and @npages are a directory, each
 * entry of which covers 1 << SKUA_XLAT_LOG_PAGE bytes by naming a list of pages of
 * 1 << SKUA_XLAT_LOG_SUB bytes, or, with SKUA_XLAT_LOG_MID, a directory of such lists. A
 * sparse region (implicit: the address space) thus needs lists, and even indices of
 * entries, only where it is used. Not with FAST_REG, DM or NULL.
 *
 * An entry without SKUA_MTT_PRESENT, one in ICM that is not mapped, and for a write
 * one without SKUA_MTT_WRITE are misses. What gives rights (an entry becomes PRESENT,
 * a list gets its directory entry when it is filled) needs no SYNC_MTT: the device
 * reads an entry anew before it calls it a miss. What takes them does: software
 * changes the entry, by one 8-byte store, and the page or the list is its own when
 * SYNC_MTT of that entry is complete.
 *
 * A miss is found after key, rights and bounds were checked, and before a byte of
 * the packet is placed, fetched or changed. It makes one side of a QP, its requester
 * or its responder, report SKUA_EQE_PAGE_FAULT and wait for RESUME_PAGE_FAULT; each
 * side has at most one fault outstanding. While it waits:
 *
 * - A requester (gathering, or placing a response, which is dropped) sends nothing;
 *   its ack timer is stopped. It continues with the oldest PSN that is not acknowledged.
 * - The responder of RC and XRC executes nothing that misses: it answers RNR NAK, with
 *   the QP's MIN_RNR_TIMER or 1.28 ms, whichever is longer, which doubles up to 41 ms
 *   while the fault is outstanding. ePSN stays, a receive WQE stays the message's.
 *   Where a READ response misses (its first pages did not) the responder pauses there.
 * - The responder of UC and UD drops the message. The receive WQE serves the next; one
 *   of an SRQ that UC has begun is reported, as for any message that UC drops.
 *
 * A QP that leaves for RESET or ERR forgets its faults (for SQE, its requester's).
 * RAW_ETH QPs do not wait, and no QP does if there is no page fault EQ. In these cases, and
 * after RESUME_PAGE_FAULT with an error, the access fails as for an invalid key:
 * SKUA_VENDOR_KEY_FAULT, with LOC_PROT_ERR for a local key (for a receive the peer gets
 * NAK REMOTE_OP), NAK REMOTE_ACCESS for a remote one. FLUSH never misses: the device has
 * no data left to write to a page that is not present.
 */
#define SKUA_MPT_ODP			BIT(9)
/*
 * Lies in device memory (SKUA_CAP_DM): mode is SKUA_XLAT_CONTIG and the address an
 * offset in BAR 4. The whole region lies within dm_size.
 */
#define SKUA_MPT_DM			BIT(10)
/* Reads give zero, writes are dropped: a null region. */
#define SKUA_MPT_NULL			BIT(11)
/*
 * Not on-demand, in no device memory: its addresses are the virtual addresses of the
 * process that owns the queues of the protection domain, so that software may write there
 * what the device found in its place in a CQE (SKUA_CAP_SCATTER_CQE).
 */
#define SKUA_MPT_OWN_VA			BIT(12)
/*
 * Who makes an entry VALID, besides CREATE_MPT:
 *
 * A region with FAST_REG is created FREE, with @pd, and with a run of MTT entries of
 * its own (XLAT_MTT; @xlat.base, @npages: the most pages it can have; all else zero).
 * REG_MR finds it FREE, copies its page list into these entries and makes it VALID
 * under the key, rights, range, page size and offset of the WQE; @xlat.base and
 * @npages stay. LOCAL_INV and SEND_INV make it FREE again.
 *
 * A window is created FREE, with @pd. BIND_MW makes it VALID; binding type 1 to
 * nothing, or LOCAL_INV and SEND_INV on type 2, make it FREE. A bound window has no
 * translation of its own: its @va is an address of the region @parent (with
 * ZERO_BASED, byte 0 is the byte of the region that the bind named).
 *
 * The variant of a key is that of the last REG_MR or BIND_MW, or of CREATE_MPT.
 */

#endif /* SKUA_HW_ICM_H */
