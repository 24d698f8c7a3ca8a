// SPDX-License-Identifier: GPL-2.0
/*
 * Domains, memory, counters and what else is no queue.
 */
#include <rdma/ib_user_ioctl_cmds.h>

#include "fake.h"

static struct ibv_cq *cq;

/* --- domains ------------------------------------------------------------------------------- */

static unsigned int given, taken;
static bool refuse, crooked;
static uint64_t type_asked;

static void *give(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	void *p = NULL;

	(void)pd;
	assert_ptr_equal(context, &given);
	assert_int_equal(size % alignment, 0);
	type_asked = type;
	if (refuse)
		return NULL;
	assert_false(posix_memalign(&p, alignment, size + alignment));
	memset(p, 0x77, size + alignment);
	given++;
	return crooked ? (char *)p + 16 : p;
}

static void take(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
	(void)pd;
	assert_ptr_equal(context, &given);
	assert_int_equal(type, type_asked);
	taken++;
	free(crooked ? (char *)p - 16 : p);
}

static void test_domains(void **state)
{
	struct ibv_td_init_attr tattr = {};
	struct ibv_td *td = ibv_alloc_td(fake.ctx, &tattr);
	struct ibv_parent_domain_init_attr attr = {
		.pd = fake.pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give,
		.free = take,
		.pd_context = &given,
	};
	struct ibv_pd *pd = ibv_alloc_parent_domain(fake.ctx, &attr), *pd2;
	struct ibv_cq_init_attr_ex cattr = {
		.cqe = 16,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = pd,
	};
	struct ibv_qp_init_attr qattr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	const struct fake_obj *o;
	struct ibv_cq_ex *cqx;
	struct ibv_qp *qp;
	size_t i;

	(void)state;
	given = 0;
	taken = 0;
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(fake.pd), EBUSY);
	cqx = ibv_create_cq_ex(fake.ctx, &cattr);
	assert_non_null(cqx);
	cq = ibv_cq_ex_to_cq(cqx);
	assert_int_equal(type_asked, SKUADV_RES_CQ);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	qattr.send_cq = cq;
	qattr.recv_cq = cq;
	qp = ibv_create_qp(pd, &qattr);
	assert_non_null(qp);
	assert_int_equal(type_asked, SKUADV_RES_QP);
	assert_int_equal(given, 2);
	/* Whatever was there before, as in memory of the provider's own */
	o = fake_qp(qp);
	for (i = 0; i < o->qp_req.buf_len; i++)
		assert_int_equal(((uint8_t *)(uintptr_t)o->qp_req.buf_addr)[i], 0);
	/* One thread: the locks are left out, all goes on */
	fake_modify(qp, IBV_QPS_RTS);
	fake_post_writes(qp, 1, 5);
	fake_post_recvs(qp, 1, 6);
	fake_sent(qp, 0, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	fake_destroy_qp(qp);
	type_asked = SKUADV_RES_CQ;
	fake_destroy_cq(cq);
	assert_int_equal(taken, 2);

	refuse = true;
	assert_null(ibv_create_cq_ex(fake.ctx, &cattr));
	assert_int_equal(errno, ENOMEM);
	refuse = false;
	crooked = true;
	assert_null(ibv_create_cq_ex(fake.ctx, &cattr));
	assert_int_equal(errno, EINVAL);
	crooked = false;
	assert_int_equal(given, taken);

	/* One of a parent domain is one of the domain below it, with what it is given itself */
	attr.pd = pd;
	attr.comp_mask = 0;
	attr.td = NULL;
	pd2 = ibv_alloc_parent_domain(fake.ctx, &attr);
	assert_non_null(pd2);
	assert_int_equal(pd2->handle, fake.pd->handle);
	assert_false(ibv_dealloc_pd(pd));
	assert_false(ibv_dealloc_td(td));
	assert_int_equal(ibv_dealloc_pd(fake.pd), EBUSY);
	cattr.parent_domain = pd2;
	cqx = ibv_create_cq_ex(fake.ctx, &cattr);
	assert_non_null(cqx);
	assert_int_equal(given, taken);
	assert_int_equal(ibv_dealloc_pd(pd2), EBUSY);
	fake_destroy_cq(ibv_cq_ex_to_cq(cqx));
	assert_false(ibv_dealloc_pd(pd2));

	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.pd = fake.pd;
	attr.free = NULL;
	assert_null(ibv_alloc_parent_domain(fake.ctx, &attr));
	assert_int_equal(errno, EINVAL);
	tattr.comp_mask = 1;
	assert_null(ibv_alloc_td(fake.ctx, &tattr));
}

/* With one thread a fence stands where the lock was: a record, then the look at the state */
static unsigned int fences;

static void count_fences(enum fake_barrier kind)
{
	fences += kind == FAKE_FENCE;
}

static void test_domain_fence(void **state)
{
	struct ibv_td_init_attr tattr = {};
	struct ibv_td *td = ibv_alloc_td(fake.ctx, &tattr);
	struct ibv_parent_domain_init_attr attr = { .pd = fake.pd, .td = td };
	struct ibv_pd *pd = ibv_alloc_parent_domain(fake.ctx, &attr);
	struct ibv_qp_init_attr qattr = { .qp_type = IBV_QPT_RC, .cap = { 1, 4, 1, 1, 0 } };
	struct ibv_qp *qp;

	(void)state;
	cq = fake_make_cq(16);
	qattr.send_cq = cq;
	qattr.recv_cq = cq;
	qp = ibv_create_qp(pd, &qattr);
	fake_modify(qp, IBV_QPS_RTS);
	fences = 0;
	fake.on_barrier = count_fences;
	fake_post_recvs(qp, 1, 1);
	fake.on_barrier = NULL;
	assert_int_equal(fences, 1);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	assert_false(ibv_dealloc_pd(pd));
	assert_false(ibv_dealloc_td(td));
}

static void test_pd_import(void **state)
{
	struct ibv_pd *pd = ibv_import_pd(fake.ctx, fake.pd->handle);

	(void)state;
	assert_non_null(pd);
	assert_int_equal(pd->handle, fake.pd->handle);
	assert_ptr_equal(pd->context, fake.ctx);
	ibv_unimport_pd(pd);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void test_regions(void **state)
{
	char bytes[4096];
	struct ibv_mr *mr = ibv_reg_mr(fake.pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	const struct ib_uverbs_rereg_mr *rereg = (void *)fake.last_core;
	struct ibv_mr *other;

	(void)state;
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x41);
	assert_int_equal(mr->rkey, 0x42);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION |
				      IBV_REREG_MR_CHANGE_ACCESS, fake.pd, bytes, 8,
				      IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(mr->lkey, 0x43);
	assert_int_equal(rereg->start, (uintptr_t)bytes);
	assert_int_equal(rereg->hca_va, (uintptr_t)bytes);
	assert_int_equal(rereg->length, 8);
	assert_int_equal(rereg->access_flags, IBV_ACCESS_REMOTE_READ);
	fake.fail_at = 1;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, ENOMEM);
	fake.fail_at = 1;
	assert_int_equal(ibv_dereg_mr(mr), ENOMEM);
	other = ibv_import_mr(fake.pd, mr->handle);
	assert_non_null(other);
	assert_int_equal(other->lkey, 0x71);
	ibv_unimport_mr(other);
	assert_false(ibv_dereg_mr(mr));

	mr = ibv_reg_dmabuf_mr(fake.pd, 0, 4096, 0, 3, 0);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x61);
	assert_false(ibv_dereg_mr(mr));

	/* It is the domain's: the kernel has nothing to take back */
	mr = ibv_alloc_null_mr(fake.pd);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x81);
	assert_ptr_equal(mr->pd, fake.pd);
	assert_true(mr->length == SIZE_MAX);
	assert_int_equal(fake_live(7), 0);
	assert_false(ibv_dereg_mr(mr));
	assert_false(ibv_advise_mr(fake.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, NULL, 0));
	assert_int_equal(ibv_advise_mr(fake.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0),
			 EINVAL);
}

static unsigned int flushes;

static void count_flushes(enum fake_barrier kind)
{
	flushes += kind == FAKE_FLUSH_WRITES;
}

static void test_device_memory(void **state)
{
	struct ibv_alloc_dm_attr attr = { .length = 256 };
	struct ibv_dm *dm = ibv_alloc_dm(fake.ctx, &attr), *other;
	uint8_t *mem = fake.uar + 2 * 4096, in[256], out[256];
	struct ibv_mr *mr;
	unsigned int off, len, i;

	(void)state;
	assert_non_null(dm);
	for (i = 0; i < 256; i++)
		in[i] = i * 3 + 1;
	fake.on_barrier = count_flushes;
	for (off = 0; off <= 40; off += 4) {
		for (len = 0; len <= 40; len += 4) {
			memset(mem, 0xee, 256);
			memset(out, 0xdd, sizeof(out));
			flushes = 0;
			assert_false(ibv_memcpy_to_dm(dm, off, in + 1, len));
			assert_int_equal(flushes, 1);
			assert_memory_equal(mem + off, in + 1, len);
			for (i = 0; i < 256; i++)
				if (i < off || i >= off + len)
					assert_int_equal(mem[i], 0xee);
			assert_false(ibv_memcpy_from_dm(out + 1, dm, off, len));
			assert_memory_equal(out + 1, in + 1, len);
			assert_int_equal(out[0], 0xdd);
			assert_int_equal(out[1 + len], 0xdd);
		}
	}
	fake.on_barrier = NULL;
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, in, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, in, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 256, in, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4, in, 256), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, in, SIZE_MAX - 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 260, in, 0), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 256, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 1, 4), EINVAL);
	assert_false(ibv_memcpy_to_dm(dm, 256, in, 0));
	assert_false(ibv_memcpy_to_dm(dm, 0, in, 256));
	assert_memory_equal(mem, in, 256);

	mr = ibv_reg_dm_mr(fake.pd, dm, 0, 256, IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x51);
	assert_false(ibv_dereg_mr(mr));
	assert_null(ibv_reg_dm_mr(fake.pd, dm, 0, 256, 0));
	other = ibv_import_dm(fake.ctx, dm->handle);
	assert_non_null(other);
	assert_int_equal(other->handle, dm->handle);
	assert_false(ibv_memcpy_from_dm(out, other, 0, 256));
	assert_memory_equal(out, in, 256);
	ibv_unimport_dm(other);
	fake.fail_at = 1;
	assert_int_equal(ibv_free_dm(dm), ENOMEM);
	assert_false(ibv_memcpy_from_dm(out, dm, 0, 256));
	assert_false(ibv_free_dm(dm));
	attr.comp_mask = 1;
	assert_null(ibv_alloc_dm(fake.ctx, &attr));
	assert_int_equal(errno, EINVAL);
}

/* --- the rest --------------------------------------------------------------------------------- */

static struct ibv_counters *make_counters(void)
{
	struct ibv_counters_init_attr init = {};
	struct ibv_counters *c = ibv_create_counters(fake.ctx, &init);

	assert_non_null(c);
	return c;
}

static int attach(struct ibv_counters *c, uint32_t what, uint32_t index)
{
	struct ibv_counter_attach_attr at = { .counter_desc = what, .index = index };

	return ibv_attach_counters_point_flow(c, &at, NULL);
}

static void test_counters(void **state)
{
	struct ibv_counter_attach_attr at = { .counter_desc = IBV_COUNTER_BYTES };
	struct ibv_counters_init_attr init = { .comp_mask = 1 };
	struct ibv_counters *c = make_counters();
	uint64_t v[4] = { 9, 9, 9, 9 };
	unsigned int i;

	(void)state;
	assert_false(attach(c, IBV_COUNTER_BYTES, 2));
	assert_false(attach(c, IBV_COUNTER_PACKETS, 0));
	assert_false(ibv_read_counters(c, v, 3, 0));
	assert_int_equal(v[0], 1111);
	assert_int_equal(v[1], 0);
	assert_int_equal(v[2], 2222);
	assert_int_equal(v[3], 9);
	/* A reader with fewer places */
	v[2] = 9;
	assert_false(ibv_read_counters(c, v, 1, 0));
	assert_int_equal(v[0], 1111);
	assert_int_equal(v[2], 9);
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, 64), EINVAL);
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, ~0U), EINVAL);
	/* What the device does not count is not supported, at whichever index */
	assert_int_equal(attach(c, IBV_COUNTER_BYTES + 1, 1), ENOTSUP);
	assert_int_equal(attach(c, ~0U, 1), ENOTSUP);
	at.comp_mask = 1;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EOPNOTSUPP);
	at.comp_mask = 0;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, (void *)1), EOPNOTSUPP);
	for (i = 3; i < 64; i++)
		assert_false(attach(c, IBV_COUNTER_PACKETS, i));
	fake.fail_at = 1;
	assert_int_equal(ibv_read_counters(c, v, 1, 0), ENOMEM);
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_counters(c), ENOMEM);
	assert_false(ibv_destroy_counters(c));
	assert_null(ibv_create_counters(fake.ctx, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* An index that is set more than once has the sum */
static void test_counters_sum(void **state)
{
	struct ibv_counters *c = make_counters();
	uint64_t v[3] = { 9, 9, 9 };
	unsigned int i;

	(void)state;
	assert_false(attach(c, IBV_COUNTER_PACKETS, 1));
	assert_false(attach(c, IBV_COUNTER_BYTES, 1));
	for (i = 0; i < 100; i++)
		assert_false(attach(c, IBV_COUNTER_BYTES, 0));
	assert_false(ibv_read_counters(c, v, 3, 0));
	assert_int_equal(v[0], 100 * 2222);
	assert_int_equal(v[1], 1111 + 2222);
	assert_int_equal(v[2], 0);
	assert_false(ibv_destroy_counters(c));
}

static struct ibv_flow *make_flow(struct ibv_qp *qp, struct ibv_counters *c)
{
	struct __attribute__((packed)) {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} a = {
		.attr = { .size = sizeof(a), .port = FAKE_PORT, .num_of_specs = 2 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(a.eth) },
		.count = {
			.type = IBV_FLOW_SPEC_ACTION_COUNT,
			.size = sizeof(a.count),
			.counters = c,
		},
	};

	return ibv_create_flow(qp, (void *)&a);
}

static struct ibv_counters *between;
static int between_answer;

/* Another thread, while the kernel has destroyed the flow that the call returns to */
static void destroy_counters_between(unsigned int object, unsigned int method)
{
	if (object != UVERBS_OBJECT_FLOW || method != UVERBS_METHOD_FLOW_DESTROY)
		return;
	fake.after_cmd = NULL;
	between_answer = ibv_destroy_counters(between);
}

/* While flows count in it, a set stays as it is */
static void test_counters_bound(void **state)
{
	struct ibv_counters *c = make_counters();
	struct ibv_counters foreign = { .context = &(struct ibv_context){
		.device = &(struct verbs_device){}.device,
	} };
	struct ibv_flow *flow[2];
	struct ibv_qp *qp;
	uint64_t v;

	(void)state;
	cq = fake_make_cq(16);
	qp = fake_make_qp(cq, IBV_QPT_RAW_PACKET);
	assert_false(attach(c, IBV_COUNTER_PACKETS, 0));
	/* One that the kernel refuses does not bind */
	fake.fail_at = 2;
	fake.failed = false;
	assert_null(make_flow(qp, c));
	assert_true(fake.failed);
	assert_int_equal(errno, ENOMEM);
	assert_false(attach(c, IBV_COUNTER_PACKETS, 0));
	flow[0] = make_flow(qp, c);
	assert_non_null(flow[0]);
	flow[1] = make_flow(qp, c);
	assert_non_null(flow[1]);
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, 1), EBUSY);
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, 0), EBUSY);
	assert_false(ibv_destroy_flow(flow[0]));
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, 1), EBUSY);
	assert_int_equal(ibv_destroy_counters(c), EBUSY);
	assert_false(ibv_read_counters(c, &v, 1, 0));
	assert_int_equal(v, 2 * 1111);
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_flow(flow[1]), ENOMEM);
	assert_int_equal(attach(c, IBV_COUNTER_PACKETS, 1), EBUSY);
	between = c;
	fake.after_cmd = destroy_counters_between;
	assert_false(ibv_destroy_flow(flow[1]));
	assert_null(fake.after_cmd);
	assert_int_equal(between_answer, EBUSY);
	assert_false(attach(c, IBV_COUNTER_PACKETS, 1));
	assert_false(ibv_destroy_counters(c));

	assert_null(make_flow(qp, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(make_flow(qp, &foreign));
	assert_int_equal(errno, EINVAL);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

static void test_queries(void **state)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex dev;
	struct ibv_device_attr old;
	struct ibv_port_attr port;

	(void)state;
	assert_false(ibv_query_device_ex(fake.ctx, NULL, &dev));
	assert_string_equal(dev.orig_attr.fw_ver, "3.21.42");
	assert_int_equal(dev.orig_attr.max_qp, 1234);
	assert_int_equal(dev.packet_pacing_caps.qp_rate_limit_min, 64);
	assert_int_equal(dev.packet_pacing_caps.qp_rate_limit_max, 100000);
	assert_int_equal(dev.packet_pacing_caps.supported_qpts, 1 << IBV_QPT_RC);
	assert_int_equal(dev.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	assert_int_equal(dev.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(dev.rss_caps.rx_hash_fields_mask,
			 IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |
			 IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP |
			 IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP |
			 IBV_RX_HASH_DST_PORT_UDP);
	fake.no_rss = true;
	assert_false(ibv_query_device_ex(fake.ctx, NULL, &dev));
	assert_int_equal(dev.rss_caps.rx_hash_function, 0);
	assert_int_equal(dev.rss_caps.rx_hash_fields_mask, 0);
	fake.no_rss = false;
	(void)old;
	assert_false(ibv_query_port(fake.ctx, FAKE_PORT, &port));
	assert_int_equal(port.gid_tbl_len, 77);
	assert_int_equal(ibv_query_port(fake.ctx, 2, &port), EINVAL);
	fake.clock.clock = 4242;
	assert_false(ibv_query_rt_values_ex(fake.ctx, &values));
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_nsec, 4242);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	values.comp_mask = 0;
	assert_false(ibv_query_rt_values_ex(fake.ctx, &values));
	assert_int_equal(fake.clock_reads, 1);
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	fake.fail_at = 1;
	assert_int_equal(ibv_query_rt_values_ex(fake.ctx, &values), ENOMEM);
	assert_int_equal(values.comp_mask, 0);
}

static void test_multicast(void **state)
{
	const struct ib_uverbs_attach_mcast *told = (void *)fake.last_core;
	union ibv_gid gid = { .raw = { 0xff, [15] = 1 } };
	struct ibv_qp *qp;

	(void)state;
	cq = fake_make_cq(16);
	qp = fake_make_qp(cq, IBV_QPT_UD);
	assert_false(ibv_attach_mcast(qp, &gid, 7));
	assert_memory_equal(told->gid, gid.raw, 16);
	assert_int_equal(told->qp_handle, qp->handle);
	assert_int_equal(fake.last_write, IB_USER_VERBS_CMD_ATTACH_MCAST);
	assert_false(ibv_detach_mcast(qp, &gid, 7));
	assert_int_equal(fake.last_write, IB_USER_VERBS_CMD_DETACH_MCAST);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

#define CASE(f)		cmocka_unit_test_setup_teardown(test_##f, fake_setup_open, fake_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(domains), CASE(domain_fence), CASE(pd_import), CASE(regions),
		CASE(device_memory), CASE(counters), CASE(counters_sum), CASE(counters_bound),
		CASE(queries), CASE(multicast),
	};

	return cmocka_run_group_tests_name("provider domains", tests, NULL, NULL);
}
