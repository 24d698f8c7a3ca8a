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
 * struct skua_pi_domain - protection information in memory, or on the wire (SKUA_CAP_PI)
 * @flags: SKUA_PI_F_*; all is zero where there is none
 * @seed: of the guard: initial value of the CRC or of the sum
 * @app_tag: application tag
 * @app_mask: bits of the application tag that a check looks at
 * @ref_tag: reference tag of the first block
 */
struct skua_pi_domain {
	__le16 flags;
	__le16 seed;
	__le16 app_tag;
	__le16 app_mask;
	__le32 ref_tag;
};

_Static_assert(sizeof(struct skua_pi_domain) == 12, "skua_pi_domain");

/* Each block has a tuple of T10 protection information, struct skua_pi_tuple. */
#define SKUA_PI_F_T10			BIT(0)
/* The guard is the IP checksum of the block; without it the CRC of T10 (0x8bb7). */
#define SKUA_PI_F_CSUM			BIT(1)
/* The reference tag of a block is @ref_tag and the block's number. */
#define SKUA_PI_F_REF_INC		BIT(2)
/*
 * A block is not checked, and its tuple is passed on as it is, whose application tag is
 * 0xffff; whose reference tag is 0xffffffff. With both flags: with both.
 */
#define SKUA_PI_F_APP_ESCAPE		BIT(3)
#define SKUA_PI_F_REF_ESCAPE		BIT(4)
#define SKUA_PI_F_ALL			GENMASK(4, 0)

/**
 * struct skua_pi_tuple - protection information of a block
 * @guard: of its data
 * @app_tag: application tag
 * @ref_tag: reference tag
 */
struct skua_pi_tuple {
	__be16 guard;
	__be16 app_tag;
	__be32 ref_tag;
};

_Static_assert(sizeof(struct skua_pi_tuple) == 8, "skua_pi_tuple");

/* Bits of masks over a tuple: the highest is the first byte. */
#define SKUA_PI_GUARD			0xc0
#define SKUA_PI_APP			0x30
#define SKUA_PI_REF			0x0f

/* A block's bytes of data are a multiple of 8 between: */
#define SKUA_PI_INTERVAL_MIN		512
#define SKUA_PI_INTERVAL_MAX		4096

/**
 * struct skua_pi_attr - what REG_MR tells of an integrity region
 * @offset: of the first tuple in the first page of protection information
 * @interval: bytes of data of a block
 * @check: bytes of a tuple that are checked, SKUA_PI_GUARD ...
 * @copy: bytes of a tuple that are passed on, the others are made anew; zero unless both
 *	sides have tuples
 * @mem: protection information in memory
 * @wire: that of the region as work requests and the wire address it
 */
struct skua_pi_attr {
	__le32 offset;
	__le16 interval;
	__u8 check;
	__u8 copy;
	struct skua_pi_domain mem;
	struct skua_pi_domain wire;
};

_Static_assert(sizeof(struct skua_pi_attr) == 32, "skua_pi_attr");

/**
 * struct skua_mpt_pi - what an integrity region (SKUA_MPT_PI) has besides
 * @area: bus address of its struct skua_pi_area, a multiple of 64
 * @base: index of the first MTT entry of the pages of protection information
 * @npages: number of them, at most
 * @max_blocks: blocks that the region can have, at most
 * @attr: REG_MR: that of the descriptor
 * @reserved: zero
 */
struct skua_mpt_pi {
	__le64 area;
	__le64 base;
	__le32 npages;
	__le32 max_blocks;
	struct skua_pi_attr attr;
	__le64 reserved;
};

_Static_assert(sizeof(struct skua_mpt_pi) == 64, "skua_mpt_pi");

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
 * @pi: integrity regions (SKUA_MPT_PI), in the place of @page
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
	union {
		__le64 page[SKUA_MPT_INLINE_PAGES];
		struct skua_mpt_pi pi;
	};
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
 * Integrity region (SKUA_CAP_PI), with FAST_REG: its memory is blocks of @interval bytes,
 * and, apart from them, a tuple of protection information for each where @mem has
 * SKUA_PI_F_T10. Work requests and the wire see the blocks with each tuple right behind its
 * block where @wire has SKUA_PI_F_T10, and else the blocks alone: @va and @len of the region
 * are those of this form. Unless neither has tuples @len is a whole number of blocks.
 *
 * The device makes tuples where there are only blocks (insert), takes them away where
 * there are only blocks on the other side (strip), and checks those that come in:
 * from memory, where it is the region's data that are sent, as a block's last byte is
 * read; from the wire, for WRITEs to the region and READs into it, as a block's last byte is
 * written. Software has all of a block written before its last byte, in as many requests
 * as it likes; the requests that the device receives are taken in order, without
 * selective repeat's early packets. A check that fails changes nothing but the status in
 * the region's struct skua_pi_area: the data go on as they are. The status is in memory
 * before the completion of a request that reads or writes the block, and before the
 * answer to the peer's. What is sent again is checked again.
 *
 * Where both sides have tuples, the bytes in @copy are passed on as they came in, the
 * others are made by the rules of the other side. Access rights are LOCAL_WRITE,
 * REMOTE_READ, REMOTE_WRITE and RELAXED_ORDERING; receives may not use the region, nor
 * atomics their results, as they are not in order or are no blocks: such a use fails
 * with SKUA_VENDOR_KEY_STATE.
 */
#define SKUA_MPT_PI			BIT(13)

/**
 * struct skua_pi_status - what the checks of an integrity region found
 * @errors: checks that failed since the registration; the rest is about the first, and
 *	zero without one
 * @what: SKUA_PI_GUARD, SKUA_PI_APP or SKUA_PI_REF, the first in this order that is wrong
 * @expected: what the guard or tag should be
 * @actual: what it is
 * @offset: of the block, counted as if each had a tuple behind it
 * @key: of the region, also without an error
 * @reserved: zero
 *
 * The device writes it all by REG_MR, and when a check has failed.
 */
struct skua_pi_status {
	__le32 errors;
	__le32 what;
	__le32 expected;
	__le32 actual;
	__le64 offset;
	__le32 key;
	__le32 reserved[9];
};

_Static_assert(sizeof(struct skua_pi_status) == 64, "skua_pi_status");

/**
 * struct skua_pi_desc - how an integrity region is to be registered
 * @page_list: bus address of an array of __le64 addresses of pages of protection
 *	information, 64-byte aligned; pages are of the size in the work request
 * @npages: entries of the array; 0 without protection information in memory
 * @attr: attributes of the region
 * @reserved: zero
 *
 * Software writes it before the REG_MR work request. The device has read it, and the
 * array, when it reports completion, at the latest.
 */
struct skua_pi_desc {
	__le64 page_list;
	__le32 npages;
	struct skua_pi_attr attr;
	__le32 reserved[5];
};

_Static_assert(sizeof(struct skua_pi_desc) == 64, "skua_pi_desc");

/**
 * struct skua_pi_area - host memory of an integrity region
 * @status: written by the device
 * @desc: written by software
 * @tuple: the device's own: tuples that come from the wire, @max_blocks of them
 */
struct skua_pi_area {
	struct skua_pi_status status;
	struct skua_pi_desc desc;
	struct skua_pi_tuple tuple[];
};

_Static_assert(sizeof(struct skua_pi_area) == 128, "skua_pi_area");
/*
 * Who makes an entry VALID, besides CREATE_MPT:
 *
 * A region with FAST_REG is created FREE, with @pd, and with a run of MTT entries of
 * its own (XLAT_MTT; @xlat.base, @npages: the most pages it can have; all else zero).
 * REG_MR finds it FREE, copies its page list into these entries and makes it VALID
 * under the key, rights, range, page size and offset of the WQE; @xlat.base and
 * @npages stay. LOCAL_INV and SEND_INV make it FREE again. One with SKUA_MPT_PI also has
 * @area, @base, @npages and @max_blocks in @pi, which stay too; REG_MR takes the rest of
 * @pi from the descriptor in the area, and its page list for the entries from @pi.base on.
 *
 * A window is created FREE, with @pd. BIND_MW makes it VALID; binding type 1 to
 * nothing, or LOCAL_INV and SEND_INV on type 2, make it FREE. A bound window has no
 * translation of its own: its @va is an address of the region @parent (with
 * ZERO_BASED, byte 0 is the byte of the region that the bind named).
 *
 * The variant of a key is that of the last REG_MR or BIND_MW, or of CREATE_MPT.
 */

#endif /* SKUA_HW_ICM_H */
