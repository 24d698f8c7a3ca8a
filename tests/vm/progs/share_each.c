// SPDX-License-Identifier: GPL-2.0
/*
 * One user takes one kind of object until it is refused, which must be at its share of a
 * quarter; the other then makes one of each kind, moves data and ends. For a device with few
 * objects (skua-model --nic ...,objects=12), and without on-demand paging, so that dma-bufs are
 * pinned.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <rdma/skua-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "share.h"

#define SHARE		4
/* The longest send ring, which a dma-buf is for */
#define LOG_BLOCKS	16
#define RING_LEN	(64UL << LOG_BLOCKS)
/* Their pages are listed by more MTT entries than a user may have. */
#define DMABUFS		32

static int dmabufs[DMABUFS];
static bool rings;	/* the kernel takes rings in dma-bufs */

/* What the first user has for what it takes; each is made only when it is needed. */
static struct ibv_cq *cq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *ud;
static struct ibv_dm *dm;
static uint8_t *page;

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *of, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = of, .recv_cq = of, .qp_type = type, .cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(pd, &init);
}

static struct ibv_xrcd *open_xrcd(struct dev *dev)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(dev->ctx, &attr);
}

static struct ibv_qp *make_tgt(struct dev *dev, struct ibv_xrcd *of)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = of,
	};

	return ibv_create_qp_ex(dev->ctx, &attr);
}

static struct ibv_srq *make_srq(struct dev *dev)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return ibv_create_srq(dev->pd, &attr);
}

static struct ibv_wq *make_wq(struct dev *dev, struct ibv_cq *of)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = dev->pd, .cq = of,
	};

	return ibv_create_wq(dev->ctx, &attr);
}

static int attach(struct ibv_qp *qp, unsigned int n)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e, [13] = n >> 16, n >> 8, n } };

	return ibv_attach_mcast(qp, &group, 0);
}

static struct ibv_mr *reg_dm(struct dev *dev, struct ibv_dm *of)
{
	return ibv_reg_dm_mr(dev->pd, of, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
}

/* Pinned by a device without on-demand paging */
static struct ibv_mr *reg_dmabuf(struct dev *dev, unsigned int n)
{
	return ibv_reg_dmabuf_mr(dev->pd, 0, RING_LEN, 0, dmabufs[n % DMABUFS],
				 IBV_ACCESS_LOCAL_WRITE);
}

/* A QP whose send ring is in a dma-buf. True, or false and errno. */
static bool make_ring(struct dev *dev, struct ibv_cq *of, int fd)
{
	struct ib_uverbs_qp_cap cap = { 1, 0, 1, 0, 0 };
	struct buffer_desc desc = { .type = BUFFER_DMABUF, .fd = fd, .length = RING_LEN };
	struct skua_create_qp_req req = {
		.buf_len = RING_LEN, .has_sq = 1, .log_sq = LOG_BLOCKS,
	};
	uint32_t handle;

	errno = qp_by_desc(dev, of->handle, &cap, &req, ATTR_CREATE_QP_BUF_UMEM, &desc, &handle);
	return !errno;
}

/* --- what the first user takes: the n-th; 0 or errno --------------------------------- */

static int or_errno(const void *object)
{
	return object ? 0 : errno;
}

static int take_qp(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(make_qp(dev->pd, cq, IBV_QPT_RC));
}

static int take_tgt(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(make_tgt(dev, xrcd));
}

static int take_wq(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(make_wq(dev, cq));
}

static int take_cq(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(ibv_create_cq(dev->ctx, 4, NULL, NULL, 0));
}

static int take_srq(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(make_srq(dev));
}

static int take_xrcd(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(open_xrcd(dev));
}

static int take_pd(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(ibv_alloc_pd(dev->ctx));
}

static int take_group(struct dev *dev, unsigned int n)
{
	(void)dev;
	return attach(ud, n);
}

static int take_mr(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(ibv_reg_mr(dev->pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE));
}

static int take_dm_mr(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(reg_dm(dev, dm));
}

static int take_mw(struct dev *dev, unsigned int n)
{
	(void)n;
	return or_errno(ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2));
}

static int take_dmabuf(struct dev *dev, unsigned int n)
{
	return or_errno(reg_dmabuf(dev, n));
}

static int take_ring(struct dev *dev, unsigned int n)
{
	return make_ring(dev, cq, dmabufs[n % DMABUFS]) ? 0 : errno;
}

/*
 * @of: of how many of the device the user gets a quarter; NULL: of MTT entries, of which programs
 * cannot know how many there are
 */
struct kind {
	const char *name;
	int (*take)(struct dev *dev, unsigned int n);
	const int *of;
};

static struct ibv_device_attr attr;

static const struct kind kinds[] = {
	{ "QPs", take_qp, &attr.max_qp },
	{ "XRC targets", take_tgt, &attr.max_qp },
	{ "work queues", take_wq, &attr.max_qp },
	{ "CQs", take_cq, &attr.max_cq },
	{ "SRQs", take_srq, &attr.max_srq },
	{ "XRC domains", take_xrcd, &attr.max_srq },
	{ "protection domains", take_pd, &attr.max_mr },
	{ "members of multicast groups", take_group, &attr.max_total_mcast_qp_attach },
	{ "regions", take_mr, &attr.max_mr },
	{ "regions of device memory", take_dm_mr, &attr.max_mr },
	{ "windows", take_mw, &attr.max_mr },
	{ "regions over dma-bufs", take_dmabuf, NULL },
	{ "rings in dma-bufs", take_ring, NULL },
	{}
};

static void take_kind(struct dev *dev, void *arg)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = PAGE };
	const struct kind *kind = arg;
	/* Without a limit it ends when there are no more. */
	unsigned int share = kind->of ? *kind->of / SHARE : DMABUFS, n;
	int err = 0;

	cq = ibv_create_cq(dev->ctx, 16, NULL, NULL, 0);
	xrcd = open_xrcd(dev);
	ud = cq ? make_qp(dev->pd, cq, IBV_QPT_UD) : NULL;
	dm = ibv_alloc_dm(dev->ctx, &dm_attr);
	page = share_map(PAGE);
	if (!cq || !xrcd || !ud || !dm)
		die("set-up: CQ %d, XRC domain %d, QP %d, device memory %d", !!cq, !!xrcd, !!ud, !!dm);
	for (n = 0; n < 2 * SHARE * share && !err; )
		if (!(err = kind->take(dev, n)))
			n++;
	printf("# %u %s, of %d: %s\n", n, kind->name, kind->of ? *kind->of : 0, strerror(err));
	/* What it has besides counts, too: a domain, a QP ... */
	if (err != ENOSPC || n > share || (kind->of ? n + 2 < share : !n))
		die("not limited to %u by ENOSPC", share);
}

/* --- what the other has ---------------------------------------------------------------- */

static bool writes_arrive(struct dev *dev, struct ibv_qp *qp, struct ibv_cq *of, uint8_t *p,
			  struct ibv_mr *mr)
{
	struct link_attr l = link_default;
	struct addr a = qp_addr(dev, qp, 7);
	int i;

	l.access = IBV_ACCESS_REMOTE_WRITE;
	qp_connect(dev, qp, 7, &a, &l);
	for (i = 0; i < 8; i++) {
		struct ibv_sge sg = { (uintptr_t)p, PAGE, mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p + PAGE, mr->rkey },
		}, *bad;
		struct ibv_wc wc;

		memset(p, i + 1, PAGE);
		if (ibv_post_send(qp, &wr, &bad) || !poll_one(of, &wc, 20))
			return fail("WRITE %d does not end", i);
		if (wc.status || memcmp(p, p + PAGE, PAGE))
			return fail("WRITE %d: %s", i, ibv_wc_status_str(wc.status));
	}
	return true;
}

/* All of it ends with the process. */
static bool has_one_of_each(struct dev *dev)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = PAGE };
	struct ibv_cq *mine = ibv_create_cq(dev->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = mine ? make_qp(dev->pd, mine, IBV_QPT_RC) : NULL;
	struct ibv_qp *dgram = mine ? make_qp(dev->pd, mine, IBV_QPT_UD) : NULL;
	struct ibv_xrcd *domain = open_xrcd(dev);
	struct ibv_dm *mem = ibv_alloc_dm(dev->ctx, &dm_attr);
	uint8_t *p = share_map(2 * PAGE);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, p, 2 * PAGE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	if (!mine || !qp || !dgram || !domain || !mem || !mr)
		return fail("CQ %d, QPs %d %d, XRC domain %d, device memory %d, region %d", !!mine,
			    !!qp, !!dgram, !!domain, !!mem, !!mr);
	if (!ibv_alloc_pd(dev->ctx) || !make_srq(dev) || !make_wq(dev, mine) ||
	    !make_tgt(dev, domain))
		return fail("a protection domain, SRQ, work queue or XRC target: %m");
	if (!reg_dm(dev, mem) || !ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2) || !reg_dmabuf(dev, 0))
		return fail("a region of device memory, window or region over a dma-buf: %m");
	errno = attach(dgram, 0);
	if (errno)
		return fail("attach_mcast: %m");
	if (rings && !make_ring(dev, mine, dmabufs[1]))
		return fail("a ring in a dma-buf: %m");
	return writes_arrive(dev, qp, mine, p, mr);
}

/*
 * The pages of a dma-buf are written to in an order in which few that follow each other come
 * from the same place, so that each needs an MTT entry.
 */
static void make_dmabufs(void)
{
	struct udmabuf_create create = { .size = RING_LEN };
	size_t pages = DMABUFS * RING_LEN / PAGE, i;
	int fd = open("/dev/udmabuf", O_RDWR);
	uint8_t *p;

	create.memfd = memfd_create("skua-share", MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(create.memfd, DMABUFS * RING_LEN) ||
	    fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("udmabuf: %m");
	p = mmap(NULL, DMABUFS * RING_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, create.memfd, 0);
	if (p == MAP_FAILED)
		die("mmap: %m");
	/* Coprime to the number of pages, a power of two */
	for (i = 0; i < pages; i++)
		p[i * 4001 % pages * PAGE] = 1;
	munmap(p, DMABUFS * RING_LEN);
	for (i = 0; i < DMABUFS; i++) {
		create.offset = i * RING_LEN;
		dmabufs[i] = ioctl(fd, UDMABUF_CREATE, &create);
		if (dmabufs[i] < 0)
			die("udmabuf: %m");
	}
	close(create.memfd);
	close(fd);
}

void share_each(const char *name, int gid)
{
	const struct kind *kind;
	struct dev dev;
	char text[80];

	make_dmabufs();
	dev_open(&dev, name, gid);
	attr = dev.attr;
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	rings = cq && (make_ring(&dev, cq, dmabufs[0]) || errno != EPROTONOSUPPORT);
	/* The kernel destroys what was made. */
	if (ibv_close_device(dev.ctx))
		die("close_device: %m");
	for (kind = kinds; kind->name; kind++) {
		snprintf(text, sizeof(text), "%s are taken until there are no more", kind->name);
		if (kind->take == take_ring && !rings)
			tap_case(text, skip("the kernel has no such attribute"));
		else
			tap_case(text, share_beside(take_kind, (void *)kind, has_one_of_each));
	}
}
