// SPDX-License-Identifier: GPL-2.0
/*
 * Receive buffers of the netdev: how frames lie in them, and what becomes of a queue for which
 * there is no memory.
 */
#include <kunit/static_stub.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>

#include "en_fake.h"

/* Of the last MTU no more than the netdev has */
static const struct layout {
	unsigned int mtu;
	bool small;
} layouts[] = {
	{ ETH_MIN_MTU }, { ETH_DATA_LEN }, { 2000 }, { 4200 }, { 9000 }, { 65535 },
	{ ETH_DATA_LEN, true }, { 4200, true }, { 9000, true }, { 65535, true },
};

static void layout_name(const struct layout *l, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "MTU %u%s", l->mtu, l->small ? ", small pages" : "");
}

KUNIT_ARRAY_PARAM(layout, layouts, layout_name);

static unsigned int mtu_of(const struct layout *l)
{
	return min_t(u32, l->mtu, SKUA_EN_MAX_MTU);
}

/* Buffer @i of the WQE at @pos: in its page, with what the skb needs around it, and alone. */
static void rx_frag_check(struct ent *t, u32 pos, unsigned int i)
{
	const struct skua_en_channel *ch = t->ch;
	const struct skua_en_rx_frag *frag = &ch->rx_info[pos].frag[i];
	const struct skua_wqe_data *seg = (const struct skua_wqe_data *)ch->rq +
					  (pos << SKUA_EN_RX_LOG_SGE) + i;
	u32 before = i ? 0 : SKUA_EN_RX_HEADROOM, other, j;
	u32 behind = i ? 0 : SKB_DATA_ALIGN(sizeof(struct skb_shared_info));

	KUNIT_ASSERT_NOT_NULL(t->test, frag->page);
	KUNIT_EXPECT_LE(t->test, frag->offset + frag->truesize, PAGE_SIZE << ch->rx_order);
	KUNIT_EXPECT_GE(t->test, frag->truesize, before + ch->rx_room[i] + behind);
	KUNIT_EXPECT_EQ(t->test, le64_to_cpu(seg->addr),
			page_pool_get_dma_addr(frag->page) + frag->offset + before);
	KUNIT_EXPECT_EQ(t->test, le32_to_cpu(seg->len), ch->rx_room[i]);
	for (other = 0; other < BIT(LOG_RQ); other++) {
		for (j = 0; j < ch->nsge; j++) {
			const struct skua_en_rx_frag *o = &ch->rx_info[other].frag[j];

			if (o != frag && o->page == frag->page)
				KUNIT_EXPECT_TRUE(t->test,
						  o->offset + o->truesize <= frag->offset ||
						  frag->offset + frag->truesize <= o->offset);
		}
	}
}

/* Fill the channel's ring anew, with buffers of another layout. */
static void refill(struct ent *t, unsigned int mtu, bool small)
{
	struct skua_en_channel *ch = t->ch;

	local_bh_disable();
	skua_en_rx_flush(ch);
	local_bh_enable();
	napi_disable(&ch->napi);
	page_pool_destroy(ch->pool);
	ch->rx_pi = t->rx_pi;
	ch->rx_ci = t->rx_pi;
	skua_en_rx_layout(ch, mtu, small);
	ch->pool = ent_pool(ch);
	napi_enable(&ch->napi);
	KUNIT_ASSERT_FALSE(t->test, IS_ERR(ch->pool));
	local_bh_disable();
	skua_en_rx_fill(ch, GFP_ATOMIC);
	local_bh_enable();
	KUNIT_ASSERT_EQ(t->test, ch->rx_pi - ch->rx_ci, BIT(LOG_RQ));
}

/* The largest frame has room, and buffers that share a page do not overlap. */
static void test_buffers(struct kunit *test)
{
	const struct layout *l = test->param_value;
	unsigned int mtu = mtu_of(l), i;
	struct ent *t = ent_create(test);
	struct skua_en_channel *ch = t->ch;
	u32 pos, room = 0, shared = 0;

	refill(t, mtu, l->small);
	for (i = 0; i < ch->nsge; i++)
		room += ch->rx_room[i];
	KUNIT_EXPECT_GE(test, room, mtu + VLAN_ETH_HLEN);
	for (pos = 0; pos < BIT(LOG_RQ); pos++) {
		for (i = 0; i < ch->nsge; i++)
			rx_frag_check(t, pos, i);
		shared += pos && ch->rx_info[pos].frag[0].page == ch->rx_info[pos - 1].frag[0].page;
	}
	/* With pages of 4 KiB two frames of an Ethernet share one, jumbo frames a larger one. */
	if (mtu <= ETH_DATA_LEN || ch->rx_order)
		KUNIT_EXPECT_GE(test, shared, BIT(LOG_RQ) / 2);
	if (l->small)
		KUNIT_EXPECT_EQ(test, ch->rx_order, 0);
	else if (mtu <= 9000)
		KUNIT_EXPECT_EQ(test, ch->nsge, 1);
}

/* More fragments than an skb has room for are not asked for. */
static void test_gro_layout(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct skua_en_channel *ch = ent_zalloc(test, sizeof(*ch));

	skua_en_rx_layout(ch, mtu_of(l), l->small);
	skua_en_rx_gro_init(ch, true);
	KUNIT_EXPECT_LE(test, ch->rx_gro * ch->nsge - 1, MAX_SKB_FRAGS);
	KUNIT_EXPECT_GT(test, ch->rx_gro, 1);
	skua_en_rx_gro_init(ch, false);
	KUNIT_EXPECT_EQ(test, ch->rx_gro, 0);
}

static bool no_memory(struct skua_en_channel *ch, struct skua_en_rx_frag *frag, gfp_t gfp)
{
	frag->page = NULL;
	return false;
}

/* Receive all that there are buffers for, while there is no memory for others. */
static void starve(struct ent *t)
{
	ent_count_restarts(t);
	kunit_activate_static_stub(t->test, skua_en_rx_page, no_memory);
	ent_receive(t, BIT(LOG_RQ));
	/* With many buffers left nothing is done about it. */
	KUNIT_EXPECT_EQ(t->test, ent_poll(t, BIT(LOG_RQ) / 2), BIT(LOG_RQ) / 2);
	KUNIT_EXPECT_EQ(t->test, t->ch->rx_hungry, 0);
	KUNIT_EXPECT_EQ(t->test, ent_poll(t, 64), 64);
	KUNIT_EXPECT_EQ(t->test, t->ch->rx_pi, t->ch->rx_ci);
	KUNIT_EXPECT_EQ(t->test, t->ch->rx_stats.alloc_fail, 2);
}

/* Polled once more after that time; how often the queue was to be restarted. */
static u64 restarts_after(struct ent *t, unsigned long wait)
{
	if (t->ch->rx_hungry)
		t->ch->rx_hungry -= wait;
	KUNIT_EXPECT_EQ(t->test, ent_poll(t, 64), 64);
	KUNIT_EXPECT_FALSE(t->test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	flush_delayed_work(&t->en->restart);
	return t->en->restarts[0];
}

/* Memory in pieces: the queue is to be replaced by one with small pages, and works until then. */
static void test_no_large_pages(struct kunit *test)
{
	struct ent *t = ent_create(test);

	refill(t, 9000, false);
	if (!t->ch->rx_order) {
		t->en->dead = true;
		kunit_skip(test, "the frame fits in a page");
	}
	starve(t);
	/* Not for a moment without memory */
	KUNIT_EXPECT_NE(test, t->ch->rx_hungry, 0);
	t->ch->rx_hungry = (jiffies + HZ) | 1;
	KUNIT_EXPECT_EQ(test, restarts_after(t, 0), 0);
	KUNIT_EXPECT_EQ(test, restarts_after(t, 2 * HZ), 1);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_STARVED, &t->ch->flags));
	/* Once is enough. */
	KUNIT_EXPECT_EQ(test, restarts_after(t, HZ), 1);
	ent_send(t, 0);
	ent_complete_sends(t, 1);
	KUNIT_EXPECT_EQ(test, restarts_after(t, HZ), 1);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, t->ch->tx_pi);

	/* There is memory before the queue could be replaced. */
	kunit_deactivate_static_stub(test, skua_en_rx_page);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_FALSE(test, test_bit(SKUA_EN_CH_STARVED, &t->ch->flags));
	KUNIT_EXPECT_EQ(test, t->ch->rx_hungry, 0);
	t->en->dead = true;
}

/* No memory at all: the queue is polled until there is some. */
static void test_no_pages(struct kunit *test)
{
	struct ent *t = ent_create(test);

	refill(t, 9000, true);
	starve(t);
	KUNIT_EXPECT_EQ(test, restarts_after(t, HZ), 0);
	KUNIT_EXPECT_EQ(test, restarts_after(t, HZ), 0);
	kunit_deactivate_static_stub(test, skua_en_rx_page);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->ch->rx_pi - t->ch->rx_ci, BIT(LOG_RQ));
	ent_receive(t, 3);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 3);
	t->en->dead = true;
}

static struct kunit_case rx_cases[] = {
	KUNIT_CASE_PARAM(test_buffers, layout_gen_params),
	KUNIT_CASE_PARAM(test_gro_layout, layout_gen_params),
	KUNIT_CASE(test_no_large_pages),
	KUNIT_CASE(test_no_pages),
	{}
};

static struct kunit_suite rx_suite = {
	.name = "skua_en_rx",
	.test_cases = rx_cases,
};

kunit_test_suite(rx_suite);
