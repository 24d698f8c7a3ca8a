// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's side of uverbs: ioctl() of the command file, answered by two tables. One
 * has the commands that are an object and a method, the other those that still are the
 * numbers of write(), which libibverbs wraps into an ioctl.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>

#include "fake_kernel.h"

static struct fake_obj *objs[FAKE_MAX_OBJS];
static unsigned int nobjs;

void fake_kernel_reset(void)
{
	while (nobjs)
		free(objs[--nobjs]);
}

struct fake_obj *fake_obj(unsigned int object, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < nobjs; i++)
		if (objs[i]->live && objs[i]->object == object && objs[i]->handle == handle)
			return objs[i];
	return NULL;
}

/* The one of two live objects of a number that was made first */
struct fake_obj *fake_by_num(unsigned int object, uint32_t num)
{
	unsigned int i;

	for (i = 0; i < nobjs; i++)
		if (objs[i]->live && objs[i]->object == object && objs[i]->num == num)
			return objs[i];
	return NULL;
}

unsigned int fake_live(unsigned int object)
{
	unsigned int i, n = 0;

	for (i = 0; i < nobjs; i++)
		n += objs[i]->live && objs[i]->object == object;
	return n;
}

/* Handles are of no use as numbers: a mix-up shows. */
static struct fake_obj *obj_new(unsigned int object)
{
	struct fake_obj *obj = malloc(sizeof(*obj));

	assert_non_null(obj);
	memset(obj, 0, sizeof(*obj));
	assert_true(nobjs < FAKE_MAX_OBJS);
	obj->object = object;
	obj->handle = 1000 + nobjs;
	obj->live = true;
	objs[nobjs++] = obj;
	return obj;
}

static struct fake_obj *obj_get(unsigned int object, uint32_t handle)
{
	struct fake_obj *obj = fake_obj(object, handle);

	if (!obj)
		fail_msg("no object of kind %u has the handle %u", object, handle);
	return obj;
}

/* --- attributes -------------------------------------------------------------- */

static struct ib_uverbs_attr *attr_find(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id)
{
	unsigned int i;

	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	return NULL;
}

/* Bytes of an input attribute, zero behind its end; returns its length. */
static size_t attr_in(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, void *to, size_t len)
{
	struct ib_uverbs_attr *a = attr_find(hdr, id);

	memset(to, 0, len);
	if (!a)
		return 0;
	memcpy(to, a->len <= sizeof(a->data) ? (void *)&a->data : (void *)(uintptr_t)a->data,
	       a->len < len ? a->len : len);
	return a->len;
}

static uint32_t attr_u32(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id)
{
	uint64_t v;

	attr_in(hdr, id, &v, sizeof(v));
	return v;
}

static uint32_t attr_handle(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id)
{
	struct ib_uverbs_attr *a = attr_find(hdr, id);

	return a ? a->data : 0;
}

static void attr_out(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, const void *from, size_t len)
{
	struct ib_uverbs_attr *a = attr_find(hdr, id);

	if (!a)
		return;
	memcpy((void *)(uintptr_t)a->data, from, a->len < len ? a->len : len);
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

static void attr_out_u32(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, uint32_t v)
{
	attr_out(hdr, id, &v, sizeof(v));
}

static void attr_out_handle(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, uint32_t handle)
{
	attr_find(hdr, id)->data = handle;
}

/* --- device ---------------------------------------------------------------------- */

static int get_context(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct skua_alloc_ucontext_req req;

	attr_in(hdr, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	fake.wish = req.comp_mask;
	if (fake.old_kernel && req.comp_mask)
		return EOPNOTSUPP;
	attr_out_u32(hdr, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 2);
	attr_out(hdr, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &(uint64_t){ 0 }, 8);
	attr_out(hdr, UVERBS_ATTR_UHW_OUT, &fake.lim, sizeof(fake.lim));
	return 0;
}

static int query_context(struct ib_uverbs_ioctl_hdr *hdr)
{
	attr_out_u32(hdr, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 2);
	attr_out(hdr, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &(uint64_t){ 0 }, 8);
	attr_out(hdr, SKUA_ATTR_QUERY_CONTEXT_RESP, &fake.lim, sizeof(fake.lim));
	return 0;
}

static int query_port(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_query_port_resp_ex resp = {
		.legacy_resp = { .state = IBV_PORT_ACTIVE, .gid_tbl_len = 77 },
	};

	if (attr_u32(hdr, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != FAKE_PORT)
		return EINVAL;
	attr_out(hdr, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
	return 0;
}

static int device_clock(struct ib_uverbs_ioctl_hdr *hdr)
{
	fake.clock_reads++;
	attr_out(hdr, SKUA_ATTR_DEVICE_CLOCK_RESP, &fake.clock, sizeof(fake.clock));
	return 0;
}

/* --- queues -------------------------------------------------------------------------- */

static int create_cq(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct skua_create_cq_resp resp = {};
	struct fake_obj *cq = obj_new(UVERBS_OBJECT_CQ);

	assert_int_equal(attr_in(hdr, UVERBS_ATTR_UHW_IN, &cq->cq_req, sizeof(cq->cq_req)),
			 sizeof(cq->cq_req));
	cq->entries = attr_u32(hdr, UVERBS_ATTR_CREATE_CQ_CQE);
	cq->flags = attr_u32(hdr, UVERBS_ATTR_CREATE_CQ_FLAGS);
	cq->num = fake.next_num++;
	cq->ring = (void *)(uintptr_t)cq->cq_req.buf_addr;
	while (1U << cq->log < cq->entries)
		cq->log++;
	assert_true(cq->cq_req.cqe_size == 64 || cq->cq_req.cqe_size == 128);
	assert_int_equal(cq->cq_req.buf_len, (uint64_t)cq->cq_req.cqe_size << cq->log);

	resp.cqn = cq->num;
	resp.entries = 1U << cq->log;
	attr_out(hdr, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 1U << cq->log);
	attr_out_handle(hdr, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->handle);
	return 0;
}

static int create_qp(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct skua_create_qp_resp resp = {};
	struct fake_obj *qp = obj_new(UVERBS_OBJECT_QP);
	size_t len;

	qp->type = attr_u32(hdr, UVERBS_ATTR_CREATE_QP_TYPE);
	qp->flags = attr_u32(hdr, UVERBS_ATTR_CREATE_QP_FLAGS);
	qp->pd = attr_handle(hdr, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
	qp->cq = attr_handle(hdr, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
	qp->recv_cq = attr_handle(hdr, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
	qp->srq = attr_handle(hdr, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
	attr_in(hdr, UVERBS_ATTR_CREATE_QP_CAP, &qp->cap, sizeof(qp->cap));
	if (attr_find(hdr, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE)) {
		obj_get(UVERBS_OBJECT_RWQ_IND_TBL,
			attr_handle(hdr, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE));
		len = attr_in(hdr, UVERBS_ATTR_UHW_IN, &qp->rss_req, sizeof(qp->rss_req));
		assert_int_equal(len, sizeof(qp->rss_req));
	} else if (qp->type == IBV_QPT_XRC_RECV) {
		obj_get(UVERBS_OBJECT_XRCD, attr_handle(hdr, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE));
	} else {
		len = attr_in(hdr, UVERBS_ATTR_UHW_IN, &qp->qp_req, sizeof(qp->qp_req));
		assert_int_equal(len, sizeof(qp->qp_req));
	}
	qp->num = fake.next_num++;
	resp.qpn = qp->num;
	attr_out(hdr, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	attr_out(hdr, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qp->num);
	attr_out_handle(hdr, UVERBS_ATTR_CREATE_QP_HANDLE, qp->handle);
	return 0;
}

static int create_srq(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct skua_create_srq_resp resp = {};
	struct fake_obj *srq = obj_new(UVERBS_OBJECT_SRQ);

	assert_int_equal(attr_in(hdr, UVERBS_ATTR_UHW_IN, &srq->srq_req, sizeof(srq->srq_req)),
			 sizeof(srq->srq_req));
	srq->type = attr_u32(hdr, UVERBS_ATTR_CREATE_SRQ_TYPE);
	srq->pd = attr_handle(hdr, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
	srq->cq = attr_handle(hdr, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE);
	srq->num = fake.next_num++;
	resp.srqn = srq->num;
	attr_out(hdr, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, srq->num);
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR,
		     attr_u32(hdr, UVERBS_ATTR_CREATE_SRQ_MAX_WR));
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE,
		     attr_u32(hdr, UVERBS_ATTR_CREATE_SRQ_MAX_SGE));
	attr_out_handle(hdr, UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->handle);
	return 0;
}

static int create_wq(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct skua_create_wq_resp resp = {};
	struct fake_obj *wq = obj_new(UVERBS_OBJECT_WQ);

	assert_int_equal(attr_in(hdr, UVERBS_ATTR_UHW_IN, &wq->wq_req, sizeof(wq->wq_req)),
			 sizeof(wq->wq_req));
	wq->flags = attr_u32(hdr, UVERBS_ATTR_CREATE_WQ_FLAGS);
	wq->recv_cq = attr_handle(hdr, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE);
	wq->num = fake.next_num++;
	resp.wqn = wq->num;
	attr_out(hdr, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	/* As the kernel's number: another one than the device's */
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 3 * wq->num);
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR,
		     attr_u32(hdr, UVERBS_ATTR_CREATE_WQ_MAX_WR));
	attr_out_u32(hdr, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE,
		     attr_u32(hdr, UVERBS_ATTR_CREATE_WQ_MAX_SGE));
	attr_out_handle(hdr, UVERBS_ATTR_CREATE_WQ_HANDLE, wq->handle);
	return 0;
}

/* --- the rest ----------------------------------------------------------------------- */

static int create_counters(struct ib_uverbs_ioctl_hdr *hdr)
{
	attr_out_handle(hdr, UVERBS_ATTR_CREATE_COUNTERS_HANDLE,
			obj_new(UVERBS_OBJECT_COUNTERS)->handle);
	return 0;
}

/* Packets and bytes */
static int read_counters(struct ib_uverbs_ioctl_hdr *hdr)
{
	static const uint64_t values[] = { 1111, 2222 };

	obj_get(UVERBS_OBJECT_COUNTERS, attr_handle(hdr, UVERBS_ATTR_READ_COUNTERS_HANDLE));
	attr_out(hdr, UVERBS_ATTR_READ_COUNTERS_BUFF, values, sizeof(values));
	return 0;
}

static void dm_answer(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id)
{
	struct skua_dm_resp resp = {
		.offset = FAKE_DM_PAGE * fake_page(),
		.size = fake_page(),
		.length = 256,
	};

	attr_out(hdr, id, &resp, sizeof(resp));
}

static int alloc_dm(struct ib_uverbs_ioctl_hdr *hdr)
{
	dm_answer(hdr, SKUA_ATTR_DM_ALLOC_RESP);
	attr_out_handle(hdr, UVERBS_ATTR_ALLOC_DM_HANDLE, obj_new(UVERBS_OBJECT_DM)->handle);
	return 0;
}

static int query_dm(struct ib_uverbs_ioctl_hdr *hdr)
{
	obj_get(UVERBS_OBJECT_DM, attr_handle(hdr, SKUA_ATTR_DM_QUERY_HANDLE));
	dm_answer(hdr, SKUA_ATTR_DM_QUERY_RESP);
	return 0;
}

static int reg_dm_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	obj_get(UVERBS_OBJECT_DM, attr_handle(hdr, UVERBS_ATTR_REG_DM_MR_DM_HANDLE));
	attr_out_u32(hdr, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 0x51);
	attr_out_u32(hdr, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 0x52);
	attr_out_handle(hdr, UVERBS_ATTR_REG_DM_MR_HANDLE, obj_new(UVERBS_OBJECT_MR)->handle);
	return 0;
}

static int reg_dmabuf_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	attr_out_u32(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 0x61);
	attr_out_u32(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 0x62);
	attr_out_handle(hdr, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, obj_new(UVERBS_OBJECT_MR)->handle);
	return 0;
}

static int query_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	obj_get(UVERBS_OBJECT_MR, attr_handle(hdr, UVERBS_ATTR_QUERY_MR_HANDLE));
	attr_out_u32(hdr, UVERBS_ATTR_QUERY_MR_RESP_LKEY, 0x71);
	attr_out_u32(hdr, UVERBS_ATTR_QUERY_MR_RESP_RKEY, 0x72);
	attr_out(hdr, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &(uint64_t){ 4096 }, 8);
	return 0;
}

static int advise_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	obj_get(UVERBS_OBJECT_PD, attr_handle(hdr, UVERBS_ATTR_ADVISE_MR_PD_HANDLE));
	return attr_u32(hdr, UVERBS_ATTR_ADVISE_MR_FLAGS) ? 0 : EINVAL;
}

static int null_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	obj_get(UVERBS_OBJECT_PD, attr_handle(hdr, SKUA_ATTR_PD_NULL_MR_HANDLE));
	attr_out_u32(hdr, SKUA_ATTR_PD_NULL_MR_LKEY, 0x81);
	return 0;
}

/* --- the commands that are numbers --------------------------------------------------- */

struct write_cmd {
	uint8_t core[sizeof(fake.last_core)] __attribute__((aligned(8)));
	uint8_t drv[64] __attribute__((aligned(8)));
	size_t core_len;
	size_t drv_len;
	struct ib_uverbs_ioctl_hdr *hdr;
};

static void write_out(struct write_cmd *c, const void *core, size_t len)
{
	attr_out(c->hdr, UVERBS_ATTR_CORE_OUT, core, len);
}

static int w_alloc_pd(struct write_cmd *c)
{
	struct ib_uverbs_alloc_pd_resp resp = { .pd_handle = obj_new(UVERBS_OBJECT_PD)->handle };

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_reg_mr(struct write_cmd *c)
{
	struct ib_uverbs_reg_mr_resp resp = {
		.mr_handle = obj_new(UVERBS_OBJECT_MR)->handle,
		.lkey = 0x41,
		.rkey = 0x42,
	};

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_rereg_mr(struct write_cmd *c)
{
	struct ib_uverbs_rereg_mr_resp resp = { .lkey = 0x43, .rkey = 0x44 };

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_alloc_mw(struct write_cmd *c)
{
	struct ib_uverbs_alloc_mw_resp resp = {
		.mw_handle = obj_new(UVERBS_OBJECT_MW)->handle,
		.rkey = 0xabcd00,
	};

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_create_ah(struct write_cmd *c)
{
	struct ib_uverbs_create_ah_resp resp = { .ah_handle = obj_new(UVERBS_OBJECT_AH)->handle };
	struct skua_create_ah_resp drv = {
		.dmac = { 2, 0, 0, 0, 0, 9 },
		.udp_sport = 0xc123,
		.hop_limit = 63,
	};

	write_out(c, &resp, sizeof(resp));
	attr_out(c->hdr, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
	return 0;
}

/* The new ring has what came since on: what was not polled is for the provider to move. */
static int w_resize_cq(struct write_cmd *c)
{
	const struct ib_uverbs_resize_cq *req = (void *)c->core;
	struct fake_obj *cq = obj_get(UVERBS_OBJECT_CQ, req->cq_handle);
	const struct skua_resize_cq_req *drv = (void *)c->drv;
	struct ib_uverbs_resize_cq_resp resp = { .cqe = req->cqe };
	struct skua_resize_cq_resp drv_resp = { .pi = cq->pi };
	uint32_t unread = cq->pi - le32_to_cpu(fake_cq_dbr(cq)->ci);

	if (unread > req->cqe)
		return EINVAL;
	assert_int_equal(drv->buf_len, req->cqe * (uint64_t)cq->cq_req.cqe_size);
	cq->ring = (void *)(uintptr_t)drv->buf_addr;
	for (cq->log = 0; 1U << cq->log < req->cqe; cq->log++)
		;
	assert_int_equal(1U << cq->log, req->cqe);
	write_out(c, &resp, sizeof(resp));
	attr_out(c->hdr, UVERBS_ATTR_UHW_OUT, &drv_resp, sizeof(drv_resp));
	return 0;
}

static int w_modify_srq(struct write_cmd *c)
{
	const struct ib_uverbs_modify_srq *req = (void *)c->core;
	struct fake_obj *srq = obj_get(UVERBS_OBJECT_SRQ, req->srq_handle);
	const struct skua_modify_srq_req *drv = (void *)c->drv;

	if (req->attr_mask & IBV_SRQ_MAX_WR) {
		assert_int_equal(c->drv_len, sizeof(*drv));
		assert_int_equal(drv->buf_len, 16ULL << (drv->log_wqes + srq->srq_req.log_stride));
		/* The device goes on in what was copied to the new ring */
		srq->srq_req.buf_addr = drv->buf_addr;
		srq->srq_req.buf_len = drv->buf_len;
		srq->srq_req.log_wqes = drv->log_wqes;
	}
	/* The last thing that is done, as in the kernel: what was done before stays */
	return req->attr_mask & IBV_SRQ_LIMIT ? fake.limit_err : 0;
}

static int w_query_srq(struct write_cmd *c)
{
	struct ib_uverbs_query_srq_resp resp = { .max_wr = 11, .max_sge = 22, .srq_limit = 33 };

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static void qp_modified(struct fake_obj *qp, const struct ib_uverbs_modify_qp *mod,
			const struct write_cmd *c)
{
	qp->mod = *mod;
	memset(&qp->mod_req, 0, sizeof(qp->mod_req));
	memcpy(&qp->mod_req, c->drv, c->drv_len < sizeof(qp->mod_req) ? c->drv_len :
								       sizeof(qp->mod_req));
	qp->mod_req_len = c->drv_len;
	if (!(mod->attr_mask & IBV_QP_STATE))
		return;
	qp->state = mod->qp_state;
	if (mod->qp_state == IBV_QPS_RESET) {
		qp->sq_tail = 0;
		qp->sq_head = 0;
		qp->rq_head = 0;
		qp->nwqes = 0;
	}
}

static int w_modify_qp(struct write_cmd *c)
{
	const struct ib_uverbs_modify_qp *req = (void *)c->core;

	qp_modified(obj_get(UVERBS_OBJECT_QP, req->qp_handle), req, c);
	return 0;
}

static int w_modify_qp_ex(struct write_cmd *c)
{
	const struct ib_uverbs_ex_modify_qp *req = (void *)c->core;
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct fake_obj *qp = obj_get(UVERBS_OBJECT_QP, req->base.qp_handle);

	qp_modified(qp, &req->base, c);
	qp->rate_limit = req->rate_limit;
	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_query_qp(struct write_cmd *c)
{
	const struct ib_uverbs_query_qp *req = (void *)c->core;
	struct fake_obj *qp = obj_get(UVERBS_OBJECT_QP, req->qp_handle);
	struct ib_uverbs_query_qp_resp resp = { .qp_state = qp->state, .max_send_wr = 9999 };

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_open_qp(struct write_cmd *c)
{
	const struct ib_uverbs_open_qp *req = (void *)c->core;
	struct fake_obj *qp = obj_new(UVERBS_OBJECT_QP);
	struct ib_uverbs_create_qp_resp resp = { .qp_handle = qp->handle, .qpn = req->qpn };

	qp->type = req->qp_type;
	qp->num = req->qpn;
	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_open_xrcd(struct write_cmd *c)
{
	struct ib_uverbs_open_xrcd_resp resp = {
		.xrcd_handle = obj_new(UVERBS_OBJECT_XRCD)->handle,
	};

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_create_flow(struct write_cmd *c)
{
	struct ib_uverbs_create_flow_resp resp = {
		.flow_handle = obj_new(UVERBS_OBJECT_FLOW)->handle,
	};

	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_modify_wq(struct write_cmd *c)
{
	const struct ib_uverbs_ex_modify_wq *req = (void *)c->core;
	struct fake_obj *wq = obj_get(UVERBS_OBJECT_WQ, req->wq_handle);

	if (req->attr_mask & IBV_WQ_ATTR_STATE) {
		wq->state = req->wq_state;
		if (req->wq_state == IBV_WQS_RESET)
			wq->rq_head = 0;
	}
	return 0;
}

static int w_create_rwq_ind_table(struct write_cmd *c)
{
	const struct ib_uverbs_ex_create_rwq_ind_table *req = (void *)c->core;
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {
		.response_length = sizeof(resp),
	};
	unsigned int i;

	for (i = 0; i < 1U << req->log_ind_tbl_size; i++)
		obj_get(UVERBS_OBJECT_WQ, req->wq_handles[i]);
	resp.ind_tbl_handle = obj_new(UVERBS_OBJECT_RWQ_IND_TBL)->handle;
	write_out(c, &resp, sizeof(resp));
	return 0;
}

static int w_ok(struct write_cmd *c)
{
	(void)c;
	return 0;
}

static int w_query_device(struct write_cmd *c)
{
	struct ib_uverbs_ex_query_device_resp resp = {
		.base = { .fw_ver = 3ULL << 32 | 21 << 16 | 42, .max_qp = 1234 },
		.rss_caps.supported_qpts = fake.no_rss ? 0 : 1 << IBV_QPT_RAW_PACKET,
		.response_length = sizeof(resp),
	};
	struct skua_query_device_resp drv = {
		.rate_limit_min = 64,
		.rate_limit_max = 100000,
		.rate_qpts = 1 << IBV_QPT_RC,
	};

	write_out(c, &resp, sizeof(resp));
	attr_out(c->hdr, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
	return 0;
}

#define EX(cmd)	((cmd) | IB_USER_VERBS_CMD_FLAG_EXTENDED)

static const struct {
	uint32_t cmd;
	int (*serve)(struct write_cmd *c);
} write_cmds[] = {
	{ IB_USER_VERBS_CMD_ALLOC_PD, w_alloc_pd },
	{ IB_USER_VERBS_CMD_REG_MR, w_reg_mr },
	{ IB_USER_VERBS_CMD_REREG_MR, w_rereg_mr },
	{ IB_USER_VERBS_CMD_ALLOC_MW, w_alloc_mw },
	{ IB_USER_VERBS_CMD_CREATE_AH, w_create_ah },
	{ IB_USER_VERBS_CMD_RESIZE_CQ, w_resize_cq },
	{ IB_USER_VERBS_CMD_MODIFY_SRQ, w_modify_srq },
	{ IB_USER_VERBS_CMD_QUERY_SRQ, w_query_srq },
	{ IB_USER_VERBS_CMD_MODIFY_QP, w_modify_qp },
	{ IB_USER_VERBS_CMD_QUERY_QP, w_query_qp },
	{ IB_USER_VERBS_CMD_OPEN_QP, w_open_qp },
	{ IB_USER_VERBS_CMD_OPEN_XRCD, w_open_xrcd },
	{ IB_USER_VERBS_CMD_ATTACH_MCAST, w_ok },
	{ IB_USER_VERBS_CMD_DETACH_MCAST, w_ok },
	{ EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), w_query_device },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), w_modify_qp_ex },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ), w_ok },
	{ EX(IB_USER_VERBS_EX_CMD_CREATE_FLOW), w_create_flow },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_WQ), w_modify_wq },
	{ EX(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL), w_create_rwq_ind_table },
};

static int invoke_write(struct ib_uverbs_ioctl_hdr *hdr)
{
	uint32_t number = attr_u32(hdr, UVERBS_ATTR_WRITE_CMD);
	struct write_cmd c = { .hdr = hdr };
	unsigned int i;

	c.core_len = attr_in(hdr, UVERBS_ATTR_CORE_IN, c.core, sizeof(c.core));
	c.drv_len = attr_in(hdr, UVERBS_ATTR_UHW_IN, c.drv, sizeof(c.drv));
	memcpy(fake.last_core, c.core, sizeof(c.core));
	fake.last_len = c.core_len;
	fake.last_write = number;
	for (i = 0; i < sizeof(write_cmds) / sizeof(write_cmds[0]); i++)
		if (write_cmds[i].cmd == number)
			return write_cmds[i].serve(&c);
	/* libibverbs asks so whether the ioctl is known */
	if (number == IB_USER_VERBS_CMD_QUERY_DEVICE && !attr_find(hdr, UVERBS_ATTR_CORE_OUT))
		return ENOSPC;
	fail_msg("write command %#x is not served", number);
	return ENOSYS;
}

/* --- the tables ------------------------------------------------------------------------- */

static const struct {
	unsigned int object;
	unsigned int method;
	int (*serve)(struct ib_uverbs_ioctl_hdr *hdr);
} methods[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, get_context },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, query_port },
	{ UVERBS_OBJECT_DEVICE, SKUA_METHOD_DEVICE_CLOCK, device_clock },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, create_cq },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, create_qp },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, create_srq },
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, create_wq },
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, create_counters },
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, read_counters },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, alloc_dm },
	{ UVERBS_OBJECT_DM, SKUA_METHOD_DM_QUERY, query_dm },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, reg_dm_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, reg_dmabuf_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, query_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, advise_mr },
	{ UVERBS_OBJECT_PD, SKUA_METHOD_PD_NULL_MR, null_mr },
};

static const struct {
	unsigned int object;
	unsigned int method;
	unsigned int handle;
	int resp;
} destroys[] = {
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, UVERBS_ATTR_DESTROY_PD_HANDLE, -1 },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, UVERBS_ATTR_DESTROY_CQ_HANDLE,
	  UVERBS_ATTR_DESTROY_CQ_RESP },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, UVERBS_ATTR_DESTROY_QP_HANDLE,
	  UVERBS_ATTR_DESTROY_QP_RESP },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, UVERBS_ATTR_DESTROY_SRQ_HANDLE,
	  UVERBS_ATTR_DESTROY_SRQ_RESP },
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, UVERBS_ATTR_DESTROY_WQ_HANDLE,
	  UVERBS_ATTR_DESTROY_WQ_RESP },
	{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, UVERBS_ATTR_DESTROY_AH_HANDLE, -1 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE, -1 },
	{ UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, UVERBS_ATTR_DESTROY_MW_HANDLE, -1 },
	{ UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, UVERBS_ATTR_DESTROY_FLOW_HANDLE, -1 },
	{ UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, UVERBS_ATTR_DESTROY_XRCD_HANDLE, -1 },
	{ UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
	  UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, -1 },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, UVERBS_ATTR_FREE_DM_HANDLE, -1 },
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY,
	  UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, -1 },
};

static int serve(struct ib_uverbs_ioctl_hdr *hdr)
{
	static const uint32_t no_events[2];
	unsigned int i;

	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_INVOKE_WRITE)
		return invoke_write(hdr);
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].object == hdr->object_id && methods[i].method == hdr->method_id)
			return methods[i].serve(hdr);
	for (i = 0; i < sizeof(destroys) / sizeof(destroys[0]); i++) {
		if (destroys[i].object != hdr->object_id || destroys[i].method != hdr->method_id)
			continue;
		obj_get(hdr->object_id, attr_handle(hdr, destroys[i].handle))->live = false;
		if (destroys[i].resp >= 0)
			attr_out(hdr, destroys[i].resp, no_events, sizeof(no_events));
		return 0;
	}
	fail_msg("method %#x of object %u is not served", hdr->method_id, hdr->object_id);
	return ENOSYS;
}

static unsigned int method_of(struct ib_uverbs_ioctl_hdr *hdr)
{
	if (hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_INVOKE_WRITE)
		return FAKE_WRITE + attr_u32(hdr, UVERBS_ATTR_WRITE_CMD);
	return hdr->method_id;
}

/* In the place of the C library's: of libibverbs too */
int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list ap;
	int err;

	va_start(ap, request);
	hdr = va_arg(ap, void *);
	va_end(ap);
	if (request != RDMA_VERBS_IOCTL)
		return syscall(SYS_ioctl, fd, request, hdr);

	err = fake.on_cmd ? fake.on_cmd(hdr->object_id, method_of(hdr)) : 0;
	if (!err && fake_step_fails())
		err = ENOMEM;
	if (!err)
		err = serve(hdr);
	if (!err && fake.after_cmd)
		fake.after_cmd(hdr->object_id, method_of(hdr));
	if (!err)
		return 0;
	errno = err;
	return -1;
}
