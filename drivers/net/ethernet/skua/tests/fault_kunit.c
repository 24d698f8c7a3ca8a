// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults: from the event to whoever pages in, and what the device hears of it.
 */
#include <linux/random.h>

#include "fake.h"

#define EQ_LOG	4

/**
 * struct ft - a page fault EQ, and who serves it
 * @fake: the function
 * @eq: the EQ
 * @pi: the device's index in it
 * @handler: who serves
 * @last: what it was told
 * @faults: how often
 * @resumes: RESUME_PAGE_FAULT commands
 * @token: of the last one
 * @error: what it said
 * @status: what becomes of it
 */
struct ft {
	struct fake *fake;
	struct skua_eq eq;
	u32 pi;
	struct skua_fault_handler handler;
	struct skua_page_fault last;
	unsigned int faults;
	unsigned int resumes;
	u32 token;
	u32 error;
	u32 status;
};

static void ft_fault(struct skua_fault_handler *handler, const struct skua_page_fault *fault)
{
	struct ft *f = container_of(handler, struct ft, handler);

	f->last = *fault;
	f->faults++;
}

static u32 ft_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_resume_fault_in *resume = in;
	struct ft *f = fake->test->priv;

	KUNIT_EXPECT_EQ(fake->test, le16_to_cpu(slot->opcode), SKUA_CMD_RESUME_PAGE_FAULT);
	/* Reclaim may wait for it: no event, no memory. */
	KUNIT_EXPECT_EQ(fake->test, le16_to_cpu(slot->flags) & SKUA_CMD_F_EVENT, 0);
	f->resumes++;
	f->token = le32_to_cpu(resume->token);
	f->error = le32_to_cpu(resume->error);
	return f->status;
}

static void ft_exit(void *data)
{
	struct ft *f = data;

	skua_buf_free(&f->fake->dev, &f->eq.buf);
}

static int fault_init(struct kunit *test)
{
	struct ft *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->fake = fake_create(test);
	f->fake->serve = ft_serve;
	f->handler.fault = ft_fault;
	dev = &f->fake->dev;
	f->eq.dev = dev;
	f->eq.eqn = SKUA_EQN_FAULT;
	f->eq.log_size = EQ_LOG;
	xa_init(&f->eq.cqs);
	KUNIT_ASSERT_EQ(test, skua_buf_alloc(dev, &f->eq.buf, sizeof(struct skua_eqe) << EQ_LOG),
			0);
	return kunit_add_action_or_reset(test, ft_exit, f);
}

static void produce(struct ft *f, u32 type, const struct skua_eqe_fault *fault)
{
	struct skua_eqe *ring = f->eq.buf.va;
	struct skua_eqe *eqe = &ring[f->pi & (BIT(EQ_LOG) - 1)];
	u32 phase = !((f->pi >> EQ_LOG) & 1);

	static_assert(offsetof(struct skua_eqe, what) >= sizeof(*fault));
	memcpy(eqe, fault, sizeof(*fault));
	eqe->what = le32_encode_bits(type, SKUA_EQE_TYPE);
	/* The phase last, as a device does. */
	dma_wmb();
	WRITE_ONCE(eqe->own, le32_encode_bits(phase, SKUA_EQE_PHASE));
	f->pi++;
}

static void expect_fault(struct ft *f, const struct skua_eqe_fault *in)
{
	struct kunit *test = f->fake->test;

	KUNIT_EXPECT_EQ(test, f->last.qpn, le32_to_cpu(in->qpn));
	KUNIT_EXPECT_EQ(test, f->last.key, le32_to_cpu(in->key));
	KUNIT_EXPECT_EQ(test, f->last.va, le64_to_cpu(in->va));
	KUNIT_EXPECT_EQ(test, f->last.len, le32_to_cpu(in->len));
	KUNIT_EXPECT_EQ(test, f->last.token, le32_to_cpu(in->token) & 0x7fffffff);
	KUNIT_EXPECT_EQ(test, f->last.write, le32_to_cpu(in->token) >> 31);
}

static const struct skua_eqe_fault some = {
	.qpn = cpu_to_le32(0x123456), .key = cpu_to_le32(0xabcdef01),
	.va = cpu_to_le64(0x0123456789abcdef), .len = cpu_to_le32(0x76543210),
	.token = cpu_to_le32(0xdeadbeef),
};

/* Each field arrives whole, and in no other's place, at its ends too. */
static void test_decode(struct kunit *test)
{
	struct ft *f = test->priv;
	struct skua_eqe_fault in = some;
	unsigned int bit, n = 0;

	skua_fault_set_handler(&f->fake->dev, &f->handler);
	produce(f, SKUA_EQE_PAGE_FAULT, &in);
	KUNIT_ASSERT_EQ(test, skua_eq_poll(&f->eq), 1);
	KUNIT_ASSERT_EQ(test, f->faults, ++n);
	expect_fault(f, &in);
	for (bit = 0; bit < BITS_PER_TYPE(in); bit++) {
		memset(&in, 0, sizeof(in));
		((u8 *)&in)[bit / 8] = BIT(bit % 8);
		produce(f, SKUA_EQE_PAGE_FAULT, &in);
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&f->eq), 1);
		KUNIT_ASSERT_EQ(test, f->faults, ++n);
		expect_fault(f, &in);
	}
	memset(&in, 0xff, sizeof(in));
	produce(f, SKUA_EQE_PAGE_FAULT, &in);
	KUNIT_ASSERT_EQ(test, skua_eq_poll(&f->eq), 1);
	KUNIT_ASSERT_EQ(test, f->faults, ++n);
	expect_fault(f, &in);
	KUNIT_EXPECT_EQ(test, f->resumes, 0);
}

/* Faults are told by one EQ, and that one tells of nothing that is handled elsewhere. */
static void test_elsewhere(struct kunit *test)
{
	struct ft *f = test->priv;

	skua_fault_set_handler(&f->fake->dev, &f->handler);
	f->eq.eqn = SKUA_EQN_ASYNC;
	produce(f, SKUA_EQE_PAGE_FAULT, &some);
	f->eq.eqn = SKUA_EQN_COMP;
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 1);
	produce(f, SKUA_EQE_PAGE_FAULT, &some);
	f->eq.eqn = SKUA_EQN_ASYNC;
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 1);
	f->eq.eqn = SKUA_EQN_FAULT;
	produce(f, SKUA_EQE_FATAL, &some);
	produce(f, SKUA_EQE_QP, &some);
	produce(f, SKUA_EQE_COMP, &some);
	produce(f, SKUA_EQE_RECOVERY, &some);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 4);
	KUNIT_EXPECT_EQ(test, f->faults, 0);
	KUNIT_EXPECT_EQ(test, f->eq.bad, 6);
	KUNIT_EXPECT_FALSE(test, skua_dead(&f->fake->dev));
}

/* Nobody serves: the work request fails, it does not wait. */
static void test_nobody(struct kunit *test)
{
	struct ft *f = test->priv;

	produce(f, SKUA_EQE_PAGE_FAULT, &some);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 1);
	KUNIT_EXPECT_EQ(test, f->resumes, 1);
	KUNIT_EXPECT_EQ(test, f->token, le32_to_cpu(some.token) & SKUA_EQE_FAULT_TOKEN);
	KUNIT_EXPECT_EQ(test, f->error, 1);

	skua_fault_set_handler(&f->fake->dev, &f->handler);
	produce(f, SKUA_EQE_PAGE_FAULT, &some);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 1);
	KUNIT_EXPECT_EQ(test, f->resumes, 1);
	skua_fault_set_handler(&f->fake->dev, NULL);
	produce(f, SKUA_EQE_PAGE_FAULT, &some);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&f->eq), 1);
	KUNIT_EXPECT_EQ(test, f->faults, 1);
	KUNIT_EXPECT_EQ(test, f->resumes, 2);
}

/* Noise: as many calls as events, and the next good one gets through. */
static void test_garbage(struct kunit *test)
{
	struct ft *f = test->priv;
	struct skua_eqe_fault in;
	unsigned int i;

	skua_fault_set_handler(&f->fake->dev, &f->handler);
	for (i = 0; i < 1000; i++) {
		get_random_bytes(&in, sizeof(in));
		produce(f, SKUA_EQE_PAGE_FAULT, &in);
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&f->eq), 1);
		expect_fault(f, &in);
	}
	KUNIT_EXPECT_EQ(test, f->faults, 1000);
	KUNIT_EXPECT_EQ(test, f->eq.bad, 0);
}

/* An answer the device has no use for is no fault of its own; any other refusal is. */
static void test_resume(struct kunit *test)
{
	struct ft *f = test->priv;
	struct skua_dev *dev = &f->fake->dev;

	skua_fault_resume(dev, 7, false);
	KUNIT_EXPECT_EQ(test, f->token, 7);
	KUNIT_EXPECT_EQ(test, f->error, 0);
	skua_fault_resume(dev, U32_MAX, true);
	KUNIT_EXPECT_EQ(test, f->token, U32_MAX);
	KUNIT_EXPECT_EQ(test, f->error, 1);
	f->status = SKUA_CMD_ST_BAD_INDEX;
	skua_fault_resume(dev, 8, false);
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
	KUNIT_EXPECT_EQ(test, f->resumes, 3);
	f->status = SKUA_CMD_ST_INTERNAL;
	skua_fault_resume(dev, 9, false);
	KUNIT_EXPECT_TRUE(test, skua_dead(dev));
	KUNIT_EXPECT_EQ(test, f->resumes, 4);
	skua_fault_resume(dev, 10, false);
	KUNIT_EXPECT_EQ(test, f->resumes, 4);
}

static struct kunit_case skua_fault_cases[] = {
	KUNIT_CASE(test_decode),
	KUNIT_CASE(test_elsewhere),
	KUNIT_CASE(test_nobody),
	KUNIT_CASE(test_garbage),
	KUNIT_CASE(test_resume),
	{}
};

struct kunit_suite skua_fault_suite = {
	.name = "skua_fault",
	.init = fault_init,
	.test_cases = skua_fault_cases,
};
