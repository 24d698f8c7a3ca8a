// SPDX-License-Identifier: GPL-2.0
/*
 * skua-mem -d DEV -g GID [-D DEV2 -G GID2] [-s] [-c CASE] [-f DIR]; TAP. With -s the
 * two ends change places. DIR is on a file system that may be frozen.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem.h"

void fill(void *buf, size_t len, unsigned int seed)
{
	uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = mix(seed * 1000003ULL + i / 8) >> i % 8 * 8;
}

/* --- QPs ------------------------------------------------------------------- */

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

static struct ibv_qp *make_qp(struct mem_end *e, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq, .pd = e->dev.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 16 },
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(e->dev.ctx, &attr);
}

bool mem_qp(struct mem *m, int side, uint64_t ops)
{
	struct mem_end *e = &m->end[side];
	struct ibv_qp *qp = make_qp(e, ops);

	if (!qp)
		return false;
	if (ibv_destroy_qp(e->qp))
		die("destroy_qp: %m");
	e->qp = qp;
	e->ops = ops;
	mem_spoilt(m);
	return true;
}

static int try_connect(struct mem *m)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct link_attr l = link_default;
	struct addr a[2];
	int i, err = 0;

	l.access = MEM_ALL | m->flush;
	for (i = 0; i < 2; i++) {
		struct mem_end *e = &m->end[i];

		if (ibv_modify_qp(e->qp, &reset, IBV_QP_STATE))
			die("QP to RESET: %m");
		drain(e->cq);
		a[i] = qp_addr(&e->dev, e->qp, 0xfffff0 + i);
	}
	for (i = 0; i < 2 && !err; i++) {
		struct mem_end *e = &m->end[i];

		err = qp_to_init(e->qp, &l);
		if (!err)
			err = qp_to_rtr(&e->dev, e->qp, &a[!i], &l);
		if (!err)
			err = qp_to_rts(e->qp, a[i].psn, &l);
	}
	return err;
}

/* What soft-RoCE still had to do may take a QP from RESET to ERR: again. */
void mem_connect(struct mem *m)
{
	int err, tries = m->end[0].is_skua && m->end[1].is_skua ? 1 : 20;

	if (m->fresh)
		return;
	while ((err = try_connect(m))) {
		if (!--tries)
			die("cannot connect: %s", strerror(err));
		usleep(10000);
	}
	m->fresh = true;
}

bool completes(struct mem *m, int side, struct ibv_wc *wc, enum ibv_wc_status status)
{
	if (!poll_one(m->end[side].cq, wc, 20))
		return fail("no completion at end %d", side);
	if (wc->status == status)
		return true;
	mem_spoilt(m);
	return fail("end %d: status '%s' (vendor %#x), not '%s'", side,
		    ibv_wc_status_str(wc->status), wc->vendor_err, ibv_wc_status_str(status));
}

bool post(struct mem *m, int side, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int err;

	mem_connect(m);
	wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(m->end[side].qp, wr, &bad);
	if (err)
		return fail("post_send of opcode %d: %s", wr->opcode, strerror(err));
	if (status != IBV_WC_SUCCESS)
		mem_spoilt(m);
	if (!completes(m, side, &wc, status))
		return false;
	return wc.wr_id == wr->wr_id || fail("completion of another request");
}

bool recv_post(struct mem *m, int side, void *addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sg = { (uintptr_t)addr, len, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sg, .num_sge = !!len }, *bad;
	int err;

	mem_connect(m);
	err = ibv_post_recv(m->end[side].qp, &wr, &bad);
	return !err || fail("post_recv: %s", strerror(err));
}

bool rdma(struct mem *m, enum ibv_wr_opcode op, uint64_t raddr, uint32_t rkey, uint32_t len,
	  enum ibv_wc_status status)
{
	struct mem_end *e = &m->end[0];
	struct ibv_sge sg = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 4711, .opcode = op, .sg_list = &sg, .num_sge = 1,
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};

	return post(m, 0, &wr, status);
}

bool write_arrives(struct mem *m, uint8_t *where, uint64_t raddr, uint32_t rkey, uint32_t len)
{
	static unsigned int seed;

	fill(m->end[0].buf, len, ++seed);
	if (!rdma(m, IBV_WR_RDMA_WRITE, raddr, rkey, len, IBV_WC_SUCCESS))
		return false;
	return !memcmp(where, m->end[0].buf, len) || fail("%u bytes are not what was sent", len);
}

/* --- frame ------------------------------------------------------------------- */

static void end_open(struct mem_end *e, const char *name, int gid)
{
	dev_open(&e->dev, name, gid);
	if (ibv_query_device_ex(e->dev.ctx, NULL, &e->attr))
		die("query_device_ex: %m");
	e->is_skua = e->attr.orig_attr.vendor_id == 0x1234;
	e->buf = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e->buf == MAP_FAILED)
		die("mmap: %m");
	e->mr = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE, MEM_ALL);
	e->cq = ibv_create_cq(e->dev.ctx, 128, NULL, NULL, 0);
	if (!e->mr || !e->cq)
		die("region or CQ: %m");
	e->qp = make_qp(e, 0);
	if (!e->qp)
		die("create_qp: %m");
}

static void end_close(struct mem_end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_destroy_cq(e->cq) || ibv_dereg_mr(e->mr))
		die("something is left: %m");
	dev_close(&e->dev);
}

static void run(struct mem *m, const struct mem_case *c)
{
	bool ok;

	mem_connect(m);
	ok = c->run(m);
	if (!ok)
		mem_spoilt(m);
	tap_case(c->name, ok);
}

int main(int argc, char **argv)
{
	static const struct mem_case *const sets[] = {
		mem_cases_region, mem_cases_rereg, mem_cases_again, mem_cases_key, mem_cases_ext,
		mem_cases_odp, mem_cases_dmabuf,
	}, *const stays[] = { mem_stay, mem_stay_dmabuf };
	const char *dev[2] = {}, *only = NULL;
	int gid[2] = {}, opt, swap = 0, ret;
	unsigned int i;
	const struct mem_case *c;
	struct mem m = {};

	while ((opt = getopt(argc, argv, "d:g:D:G:sc:f:")) != -1) {
		switch (opt) {
		case 'd': dev[0] = optarg; break;
		case 'g': gid[0] = atoi(optarg); break;
		case 'D': dev[1] = optarg; break;
		case 'G': gid[1] = atoi(optarg); break;
		case 's': swap = 1; break;
		case 'c': only = optarg; break;
		case 'f': m.dir = optarg; break;
		default: die("usage: skua-mem -d DEV -g GID [-D DEV2 -G GID2] [-s] [-c CASE] [-f DIR]");
		}
	}
	if (!dev[1]) {
		dev[1] = dev[0];
		gid[1] = gid[0];
	}
	setlinebuf(stdout);
	for (i = 0; i < 2; i++)
		end_open(&m.end[i ^ swap], dev[i], gid[i]);
	for (i = 0; only && i < sizeof(stays) / sizeof(stays[0]); i++)
		for (c = stays[i]; c->name; c++)
			if (!strcmp(only, c->name))
				run(&m, c);
	if (tap_cases())
		return tap_end();
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		for (c = sets[i]; c->name; c++)
			if (!only || strstr(c->name, only))
				run(&m, c);
	ret = tap_end();
	for (i = 0; i < 2; i++)
		end_close(&m.end[i]);
	return ret;
}
