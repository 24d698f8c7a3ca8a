// SPDX-License-Identifier: GPL-2.0
/*
 * Behind the provider's back: doorbells that no driver would ring, WQEs that change
 * after the doorbell, and CQEs that no good device would write.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "neg.h"

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* --- finding things in our own address space ---------------------------------------- */

/* Mappings of a uverbs device for writing: the UAR pages, in order of address. */
static unsigned int find_uars(uint8_t **uar, unsigned int max)
{
	unsigned long from, to;
	unsigned int n = 0;
	char line[512], perm[8];
	FILE *f = fopen("/proc/self/maps", "r");

	if (!f)
		die("/proc/self/maps: %m");
	while (fgets(line, sizeof(line), f) && n < max)
		if (strstr(line, "/infiniband/uverbs") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, perm) == 3 && perm[1] == 'w')
			uar[n++] = (uint8_t *)from;
	fclose(f);
	return n;
}

static uint8_t *my_uar(void)
{
	uint8_t *uar[8];
	unsigned int n = find_uars(uar, 8);

	if (n != 1)
		die("%u UAR pages instead of 1", n);
	return uar[0];
}

/* The block of a send ring that holds this data segment. */
static uint8_t *find_wqe(const struct skua_wqe_data *d)
{
	unsigned long from, to, p;
	uint8_t *found = NULL;
	char line[512], perm[8];
	FILE *f = fopen("/proc/self/maps", "r");

	if (!f)
		die("/proc/self/maps: %m");
	while (fgets(line, sizeof(line), f) && !found) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perm) != 3 || strncmp(perm, "rw-p", 4) ||
		    strchr(line, '/') || strchr(line, '['))
			continue;
		for (p = from; p + sizeof(*d) <= to && !found; p += SKUA_WQE_SEG)
			if ((const void *)p != d && !memcmp((void *)p, d, sizeof(*d)))
				found = (uint8_t *)(p & ~(SKUA_WQE_BLOCK - 1UL));
	}
	fclose(f);
	return found;
}

/* --- doorbells ------------------------------------------------------------------------- */

static void store64(uint8_t *uar, unsigned int reg, uint32_t lo, uint32_t hi)
{
	*(volatile uint64_t *)(uar + reg) = htole64(skua_db_word(lo, hi));
}

/* The kernel keeps what it read for some milliseconds. */
static long long settled(struct neg *n, const char *name)
{
	usleep(50000);
	return counter(n, name);
}

static bool counted(struct neg *n, const char *name, long long before, long long by)
{
	long long after = settled(n, name);

	if (before < 0 || after < 0)
		return fail("no counter %s", name);
	return after == before + by ||
	       fail("%s went up by %lld, should be %lld", name, after - before, by);
}

/* Does the pair still carry data, and just once what was posted once? */
static bool works(struct neg *n, struct pair *p)
{
	struct ibv_send_wr wr = { .wr_id = 77, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_wc wc;

	memset(n->buf, 0, 64);
	memset(n->buf + 4096, 0x5c, 64);
	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	if (!expect_err("post", post_send(p, 0, &wr, n->buf + 4096, 64, n->mr->lkey), 0) ||
	    !expect_wc(p, 0, 77, IBV_WC_SUCCESS))
		return false;
	if (memcmp(n->buf, n->buf + 4096, 64))
		return fail("data did not arrive");
	usleep(20000);
	return !ibv_poll_cq(p->cq[0], 1, &wc) || fail("a completion too many");
}

static bool db_width(struct neg *n)
{
	long long before = settled(n, "bad_doorbells");
	uint8_t *uar = my_uar();
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	*(volatile uint8_t *)(uar + SKUA_UAR_SQ) = 1;
	*(volatile uint16_t *)(uar + SKUA_UAR_SQ) = htole16(1);
	*(volatile uint16_t *)(uar + SKUA_UAR_SQ + 2) = htole16(1);
	/* A high half without its low half. */
	*(volatile uint32_t *)(uar + SKUA_UAR_SQ + 4) = htole32(p.qp[0]->qp_num);
	/* The low half of another register. */
	*(volatile uint32_t *)(uar + SKUA_UAR_CQ_ARM) = htole32(1);
	*(volatile uint32_t *)(uar + SKUA_UAR_SQ + 4) = htole32(p.qp[0]->qp_num);
	store64(uar, SKUA_UAR_EQ + 8, 1, p.qp[0]->qp_num);
	store64(uar, 0x800, 1, p.qp[0]->qp_num);
	ok = counted(n, "bad_doorbells", before, 7) && works(n, &p);
	pair_free(&p);
	return ok;
}

/* 32-bit software: two halves make a doorbell. */
static bool db_halves(struct neg *n)
{
	long long bad = settled(n, "bad_doorbells"), good = settled(n, "sq_doorbells");
	uint8_t *uar = my_uar();
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	ok = works(n, &p);
	/* The index as it is: no work, no error. */
	*(volatile uint32_t *)(uar + SKUA_UAR_SQ) = htole32(1);
	*(volatile uint32_t *)(uar + SKUA_UAR_SQ + 4) = htole32(p.qp[0]->qp_num);
	ok = ok && counted(n, "bad_doorbells", bad, 0) && works(n, &p);
	if (ok && settled(n, "sq_doorbells") <= good)
		ok = fail("no doorbell was counted");
	pair_free(&p);
	return ok;
}

static bool db_unknown(struct neg *n)
{
	long long before = settled(n, "bad_doorbell_queue"), form = settled(n, "bad_doorbells");
	uint8_t *uar = my_uar();
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	store64(uar, SKUA_UAR_SQ, 1, p.qp[0]->qp_num ^ 0x800000);
	store64(uar, SKUA_UAR_SQ, 1, 0xffffff);
	store64(uar, SKUA_UAR_CQ_ARM, 0, 0xffffff);
	/* Bits that must be zero. */
	store64(uar, SKUA_UAR_SQ, 1, p.qp[0]->qp_num | 1U << 24);
	store64(uar, SKUA_UAR_CQ_ARM, 0, 1U << 31);
	ok = counted(n, "bad_doorbell_queue", before, 3) &&
	     counted(n, "bad_doorbells", form, 2) && works(n, &p);
	pair_free(&p);
	return ok;
}

static bool db_index(struct neg *n)
{
	long long before = settled(n, "bad_doorbell_index");
	uint8_t *uar = my_uar();
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	store64(uar, SKUA_UAR_SQ, 100000, p.qp[0]->qp_num);
	store64(uar, SKUA_UAR_SQ, (1U << 31) - 1, p.qp[0]->qp_num);
	ok = counted(n, "bad_doorbell_index", before, 2) && works(n, &p);
	pair_free(&p);
	return ok;
}

/* Behind the present index: late, and no error where records tell the device of work too. */
static bool db_behind(struct neg *n)
{
	long long before = settled(n, "bad_doorbell_index"), events;
	uint8_t *uar = my_uar();
	struct pair p;
	bool ok;

	events = settled(n, "sq_events");
	pair_make(&p, n, ALL_RIGHTS, true);
	ok = works(n, &p);
	store64(uar, SKUA_UAR_SQ, 0, p.qp[0]->qp_num);
	store64(uar, SKUA_UAR_SQ, -1, p.qp[0]->qp_num);
	store64(uar, SKUA_UAR_SQ, -100000, p.qp[0]->qp_num);
	/* If the queue takes part, its event index has been written meanwhile. */
	ok = ok && counted(n, "bad_doorbell_index", before,
			   settled(n, "sq_events") > events ? 0 : 3) && works(n, &p);
	pair_free(&p);
	return ok;
}

/* Through the page of another context of the same process. */
static bool db_foreign(struct neg *n)
{
	uint8_t *mine = my_uar(), *uar[8], *other;
	long long before;
	struct ibv_context *ctx2;
	unsigned int num;
	struct pair p;
	bool ok;

	ctx2 = ibv_open_device(n->dev.ctx->device);
	if (!ctx2)
		die("second context: %m");
	num = find_uars(uar, 8);
	if (num != 2)
		die("%u UAR pages instead of 2", num);
	other = uar[0] == mine ? uar[1] : uar[0];
	before = settled(n, "bad_doorbell_uar");
	pair_make(&p, n, ALL_RIGHTS, true);
	store64(other, SKUA_UAR_SQ, 1, p.qp[0]->qp_num);
	ok = counted(n, "bad_doorbell_uar", before, 1) && works(n, &p);
	pair_free(&p);
	ibv_close_device(ctx2);
	return ok;
}

/* A doorbell for what was not written: garbage, so an error of this QP alone. */
static bool db_empty(struct neg *n)
{
	uint8_t *uar = my_uar();
	struct pair p, q;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	unsigned int i;
	bool ok = false;

	pair_make(&p, n, ALL_RIGHTS, true);
	pair_make(&q, n, ALL_RIGHTS, true);
	store64(uar, SKUA_UAR_SQ, 1, p.qp[0]->qp_num);
	for (i = 0; i < 100 && !ok; i++) {
		usleep(20000);
		if (ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init))
			die("query_qp: %m");
		ok = attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
	}
	if (!ok)
		fail("the QP went on in state %u", attr.qp_state);
	ok = ok && works(n, &q);
	pair_free(&p);
	pair_free(&q);
	return ok;
}

/* --- WQEs that change -------------------------------------------------------------------- */

struct scribbler {
	uint8_t *block;
	size_t len;
	atomic_bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct rng rng = rng_make(7, 7);

	while (!atomic_load(&s->stop)) {
		size_t at = rng_below(&rng, s->len);
		uint8_t old = s->block[at];

		/* Now broken, now whole: so that some look good at first. */
		*(volatile uint8_t *)&s->block[at] = old ^ 1 << rng_below(&rng, 8);
		*(volatile uint8_t *)&s->block[at] = old;
	}
	return NULL;
}

/* Post while another thread changes the ring; any completion of its own is fine. */
static bool scribbled_round(struct neg *n, struct pair *p, struct scribbler *s)
{
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_wc wc = {};
	unsigned int i;

	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	for (i = 0; i < 16; i++) {
		if (post_send(p, 0, &wr, n->buf + 16384, 8192, n->mr->lkey))
			die("post_send: %m");
		if (!poll_one(p->cq[0], &wc, 2)) {
			struct ibv_qp_attr attr;
			struct ibv_qp_init_attr init;

			/*
			 * The signaled flag, or the index that the CQE names, may
			 * have been what changed: then there is none to be seen.
			 */
			if (ibv_query_qp(p->qp[0], &attr, IBV_QP_STATE, &init))
				return fail("query_qp: %m");
			return true;
		}
		if (wc.status != IBV_WC_SUCCESS)
			return true;
	}
	(void)s;
	return true;
}

static bool wqe_rewritten(struct neg *n)
{
	struct skua_wqe_data seg;
	struct scribbler s = {};
	unsigned int round;
	struct pair victim;
	pthread_t thread;
	bool ok = true;

	pair_make(&victim, n, ALL_RIGHTS, true);
	for (round = 0; ok && round < 30; round++) {
		struct ibv_send_wr wr = { .wr_id = 5, .opcode = IBV_WR_RDMA_WRITE };
		struct pair p;

		pair_make(&p, n, ALL_RIGHTS, true);
		wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
		wr.wr.rdma.rkey = n->mr->rkey;
		ok = expect_err("post", post_send(&p, 0, &wr, n->buf + 12345, 321 + round,
						  n->mr->lkey), 0) &&
		     expect_wc(&p, 0, 5, IBV_WC_SUCCESS);
		skua_wqe_data_set(&seg, (uintptr_t)n->buf + 12345, n->mr->lkey, 321 + round);
		s.block = find_wqe(&seg);
		if (ok && !s.block)
			ok = fail("the WQE is not to be found");
		if (!ok) {
			pair_free(&p);
			break;
		}
		s.len = 8 * SKUA_WQE_BLOCK;
		atomic_store(&s.stop, false);
		if (pthread_create(&thread, NULL, scribble, &s))
			die("no thread");
		ok = scribbled_round(n, &p, &s);
		atomic_store(&s.stop, true);
		pthread_join(thread, NULL);
		pair_free(&p);
		ok = ok && works(n, &victim);
	}
	pair_free(&victim);
	return ok;
}

/* --- CQEs that make no sense ----------------------------------------------------------- */

#define LOG_CQ	6

/* A CQ whose ring we have allocated. */
struct open_cq {
	struct ibv_pd *domain;
	struct ibv_cq *cq;
	struct skua_cqe *ring;
};

static void *ring_alloc(struct ibv_pd *pd, void *ctx, size_t size, size_t align, uint64_t type)
{
	struct open_cq *c = ctx;

	(void)pd;
	(void)type;
	return posix_memalign((void **)&c->ring, align, size) ? NULL : c->ring;
}

static void ring_free(struct ibv_pd *pd, void *ctx, void *p, uint64_t type)
{
	(void)pd;
	(void)ctx;
	(void)type;
	free(p);
}

static void open_cq_make(struct neg *n, struct open_cq *c)
{
	struct ibv_parent_domain_init_attr pd = {
		.pd = n->dev.pd, .alloc = ring_alloc, .free = ring_free, .pd_context = c,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1 << LOG_CQ, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_cq_ex *cqx;

	c->domain = ibv_alloc_parent_domain(n->dev.ctx, &pd);
	attr.parent_domain = c->domain;
	cqx = c->domain ? ibv_create_cq_ex(n->dev.ctx, &attr) : NULL;
	if (!cqx || !c->ring)
		die("CQ with a ring of our own: %m");
	c->cq = ibv_cq_ex_to_cq(cqx);
}

static void open_cq_free(struct open_cq *c)
{
	if (ibv_destroy_cq(c->cq) || ibv_dealloc_pd(c->domain))
		die("cannot destroy a CQ: %m");
}

/* The entry at @index, once the device has written it. */
static struct skua_cqe *open_cq_wait(struct open_cq *c, uint32_t index)
{
	struct skua_cqe *cqe = &c->ring[index & ((1 << LOG_CQ) - 1)];
	double end = now() + 20;

	while (!skua_cqe_is_new(cqe, index, LOG_CQ))
		if (now() > end)
			die("no CQE %u", index);
	return cqe;
}

static bool nothing(struct open_cq *c, const char *what)
{
	struct ibv_wc wc;

	return !ibv_poll_cq(c->cq, 1, &wc) ||
	       fail("%s: completion of %llu", what, (unsigned long long)wc.wr_id);
}

/* Two QPs, their CQs open to us: [0] of both send queues, [1] of the receive queues. */
static void open_pair(struct neg *n, struct open_cq c[2], struct ibv_qp *qp[2])
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = c[0].cq, .recv_cq = c[1].cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 200 },
	};
	struct addr a[2];
	int i;

	for (i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(n->dev.pd, &attr);
		if (!qp[i])
			die("create_qp: %m");
		a[i] = qp_addr(&n->dev, qp[i], i);
	}
	for (i = 0; i < 2; i++)
		qp_connect(&n->dev, qp[i], a[i].psn, &a[!i], &link_default);
}

/* Post; the completion, entry @at, says that it is of block @index: no such WQE. */
static bool renamed(struct open_cq *c, uint32_t at, struct ibv_qp *qp, struct ibv_send_wr *wr,
		    uint32_t index, const char *what)
{
	struct ibv_send_wr *bad;
	struct skua_cqe *cqe;

	if (!expect_err("post", ibv_post_send(qp, wr, &bad), 0))
		return false;
	cqe = open_cq_wait(c, at);
	le32p_replace_bits(&cqe->what, index, SKUA_CQE_WQE_INDEX);
	return nothing(c, what);
}

static bool cqe_index(struct neg *n)
{
	struct ibv_sge sg = { (uintptr_t)n->buf, 200, n->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)n->buf + 4096, n->mr->rkey },
	}, *bad;
	struct open_cq c[2] = {};
	struct ibv_qp *qp[2];
	struct ibv_wc wc;
	bool ok;

	open_cq_make(n, &c[0]);
	open_cq_make(n, &c[1]);
	open_pair(n, c, qp);
	/* WQEs of several blocks: one in the middle; then one that was never posted. */
	ok = renamed(&c[0], 0, qp[0], &wr, 1, "of a WQE's middle") &&
	     renamed(&c[0], 1, qp[0], &wr, 1000, "of no WQE");
	/* The next one takes those before it along, as if they were not signaled. */
	wr.wr_id = 3;
	ok = ok && expect_err("post", ibv_post_send(qp[0], &wr, &bad), 0) &&
	     (poll_one(c[0].cq, &wc, 20) || fail("no completion"));
	ok = ok && ((wc.wr_id == 3 && wc.status == IBV_WC_SUCCESS) ||
		    fail("completion of %llu: %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status)));
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	open_cq_free(&c[0]);
	open_cq_free(&c[1]);
	return ok;
}

/* A receive that was made a send: sends complete elsewhere. */
static bool cqe_side(struct neg *n)
{
	struct ibv_sge sg = { (uintptr_t)n->buf, 64, n->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sg, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 4, .sg_list = &sg, .num_sge = 1 }, *rbad;
	struct open_cq c[2] = {};
	struct ibv_qp *qp[2];
	struct skua_cqe *cqe;
	uint32_t at;
	bool ok;

	open_cq_make(n, &c[0]);
	open_cq_make(n, &c[1]);
	open_pair(n, c, qp);
	/* Both have a send outstanding, of which nothing is to be heard. */
	ok = expect_err("receive", ibv_post_recv(qp[0], &rwr, &rbad), 0) &&
	     expect_err("receive", ibv_post_recv(qp[1], &rwr, &rbad), 0) &&
	     expect_err("post", ibv_post_send(qp[0], &wr, &bad), 0) &&
	     expect_err("post", ibv_post_send(qp[1], &wr, &bad), 0);
	for (at = 0; ok && at < 2; at++) {
		cqe = open_cq_wait(&c[1], at);
		le32p_replace_bits(&cqe->what, SKUA_CQE_REQ, SKUA_CQE_OPCODE);
	}
	ok = ok && nothing(&c[1], "of a send");
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	open_cq_free(&c[0]);
	open_cq_free(&c[1]);
	return ok;
}

const struct neg_case cases_ring[] = {
	{ "doorbell of wrong width or offset", db_width, .skua_only = true },
	{ "doorbell in two halves", db_halves, .skua_only = true },
	{ "doorbell of an unknown queue", db_unknown, .skua_only = true },
	{ "doorbell of a wrong index", db_index, .skua_only = true },
	{ "doorbell behind the present index", db_behind, .skua_only = true },
	{ "doorbell through another UAR page", db_foreign, .skua_only = true },
	{ "doorbell without a WQE", db_empty, .skua_only = true },
	{ "WQE rewritten after the doorbell", wqe_rewritten, .skua_only = true },
	{ "CQE of no WQE", cqe_index, .skua_only = true },
	{ "CQE of a queue that completes elsewhere", cqe_side, .skua_only = true },
	{}
};
