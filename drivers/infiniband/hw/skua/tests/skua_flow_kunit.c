// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what skua_ib makes of steering rules and hash fields.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/module.h>

#include "../skua_ib.h"

/* A rule of one specification. */
struct flow_rule {
	struct ib_flow_attr attr;
	union ib_flow_spec spec[4];
};

static struct flow_rule *rule_alloc(struct kunit *test)
{
	struct flow_rule *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->attr.port = 1;
	return r;
}

/* Specifications follow each other as long as each says it is. */
static void *rule_add(struct flow_rule *r, u32 type, u16 size)
{
	union ib_flow_spec *s = r->spec;
	unsigned int i;

	for (i = 0; i < r->attr.num_of_specs; i++)
		s = (void *)s + s->size;
	r->attr.num_of_specs++;
	s->type = type;
	s->size = size;
	return s;
}

static void test_flow_eth(struct kunit *test)
{
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 1, 2, 3 };
	struct flow_rule *r = rule_alloc(test);
	struct ib_flow_spec_eth *eth = rule_add(r, IB_FLOW_SPEC_ETH, sizeof(*eth));
	struct skua_flow flow;

	memcpy(eth->val.dst_mac, mac, ETH_ALEN);
	memset(eth->mask.dst_mac, 0xff, 3);
	eth->val.vlan_tag = cpu_to_be16(0x2123);
	eth->mask.vlan_tag = cpu_to_be16(0x0fff);
	r->attr.priority = 7;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	/* The device wants zero where it shall not look. */
	KUNIT_EXPECT_MEMEQ(test, flow.value.dmac, mac, 3);
	KUNIT_EXPECT_EQ(test, flow.value.dmac[3], 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(flow.value.vlan_tci), 0x123);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(flow.mask.vlan_tci), 0xfff);
	KUNIT_EXPECT_EQ(test, flow.value.flags, SKUA_FLOW_M_VLAN);
	KUNIT_EXPECT_EQ(test, flow.mask.flags, SKUA_FLOW_M_VLAN);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flow.flags), 7 << 16);
}

static void test_flow_five_tuple(struct kunit *test)
{
	struct flow_rule *r = rule_alloc(test);
	struct ib_flow_spec_ipv4 *ip = rule_add(r, IB_FLOW_SPEC_IPV4, sizeof(*ip));
	struct ib_flow_spec_tcp_udp *udp = rule_add(r, IB_FLOW_SPEC_UDP, sizeof(*udp));
	struct ib_flow_spec_action_tag *tag = rule_add(r, IB_FLOW_SPEC_ACTION_TAG, sizeof(*tag));
	struct skua_flow flow;

	ip->val.src_ip = cpu_to_be32(0x0a000001);
	ip->mask.src_ip = cpu_to_be32(~0U);
	udp->val.dst_port = cpu_to_be16(4791);
	udp->mask.dst_port = cpu_to_be16(0xffff);
	tag->tag_id = 77;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_MEMEQ(test, flow.value.saddr + 12, &ip->val.src_ip, 4);
	KUNIT_EXPECT_NULL(test, memchr_inv(flow.mask.saddr, 0, 12));
	KUNIT_EXPECT_EQ(test, be16_to_cpu(flow.value.dport), 4791);
	KUNIT_EXPECT_EQ(test, flow.value.ip_proto, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, flow.mask.flags, SKUA_FLOW_M_IPV4);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flow.tag), 77);
	/* UDP that is TCP. */
	ip->val.proto = IPPROTO_TCP;
	ip->mask.proto = 0xff;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);
	ip->mask.proto = 0;
	ip->mask.tos = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EOPNOTSUPP);
}

/* Specifications in any order, and more than one of a layer: a frame must match them all. */
static void test_flow_order(struct kunit *test)
{
	struct flow_rule *r = rule_alloc(test);
	struct ib_flow_spec_tcp_udp *udp = rule_add(r, IB_FLOW_SPEC_UDP, sizeof(*udp));
	struct ib_flow_spec_ipv4 *ip = rule_add(r, IB_FLOW_SPEC_IPV4, sizeof(*ip));
	struct ib_flow_spec_ipv4 *more = rule_add(r, IB_FLOW_SPEC_IPV4, sizeof(*more));
	struct skua_flow flow;

	ip->val.dst_ip = cpu_to_be32(0x0a000001);
	ip->mask.dst_ip = cpu_to_be32(~0U);
	more->val.src_ip = cpu_to_be32(0x0a000002);
	more->mask.src_ip = cpu_to_be32(~0U);
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_EQ(test, flow.value.ip_proto, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, flow.mask.ip_proto, 0xff);
	KUNIT_EXPECT_MEMEQ(test, flow.value.daddr + 12, &ip->val.dst_ip, 4);
	KUNIT_EXPECT_MEMEQ(test, flow.value.saddr + 12, &more->val.src_ip, 4);
	/* Contradictions, which no frame can match. */
	more->val.dst_ip = cpu_to_be32(0x0a000003);
	more->mask.dst_ip = cpu_to_be32(0xff);
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);
	more->mask.dst_ip = 0;
	more->val.proto = IPPROTO_TCP;
	more->mask.proto = 0xff;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);
	more->mask.proto = 0;
	rule_add(r, IB_FLOW_SPEC_IPV6, sizeof(struct ib_flow_spec_ipv6));
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);
}

static void test_flow_ipv6(struct kunit *test)
{
	struct flow_rule *r = rule_alloc(test);
	struct ib_flow_spec_ipv6 *ip = rule_add(r, IB_FLOW_SPEC_IPV6, sizeof(*ip));
	struct skua_flow flow;

	memset(ip->val.dst_ip, 0x5a, 16);
	memset(ip->mask.dst_ip, 0xff, 15);
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_EQ(test, flow.value.daddr[14], 0x5a);
	KUNIT_EXPECT_EQ(test, flow.value.daddr[15], 0);
	KUNIT_EXPECT_EQ(test, flow.mask.flags, SKUA_FLOW_M_IPV6);
	ip->mask.hop_limit = 0xff;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EOPNOTSUPP);
}

static void test_flow_types(struct kunit *test)
{
	struct flow_rule *r = rule_alloc(test);
	struct skua_flow flow;

	r->attr.type = IB_FLOW_ATTR_ALL_DEFAULT;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flow.flags), SKUA_FLOW_PRIO_REST << 16);
	r->attr.type = IB_FLOW_ATTR_MC_DEFAULT;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_EQ(test, flow.mask.dmac[0], 1);
	KUNIT_EXPECT_EQ(test, flow.value.dmac[0], 1);
	r->attr.type = IB_FLOW_ATTR_SNIFFER;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_TRUE(test, le32_to_cpu(flow.flags) & SKUA_FLOW_SNIFFER);
	rule_add(r, IB_FLOW_SPEC_ETH, sizeof(struct ib_flow_spec_eth));
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);

	r->attr.type = IB_FLOW_ATTR_NORMAL;
	r->attr.flags = IB_FLOW_ATTR_FLAGS_DONT_TRAP;
	KUNIT_ASSERT_EQ(test, skua_ib_flow_build(&r->attr, &flow), 0);
	KUNIT_EXPECT_TRUE(test, le32_to_cpu(flow.flags) & SKUA_FLOW_SNIFFER);
	r->attr.flags = IB_FLOW_ATTR_FLAGS_EGRESS;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EOPNOTSUPP);
	r->attr.flags = 0;
	r->attr.priority = SKUA_FLOW_PRIO_NETDEV;
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EINVAL);
	r->attr.priority = 0;
	rule_add(r, IB_FLOW_SPEC_GRE, sizeof(struct ib_flow_spec_gre));
	KUNIT_EXPECT_EQ(test, skua_ib_flow_build(&r->attr, &flow), -EOPNOTSUPP);
}

static void test_rss_fields(struct kunit *test)
{
	u32 flags;

	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(0, &flags), 0);
	KUNIT_EXPECT_EQ(test, flags, 0);
	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(SKUA_RX_HASH_IPV4, &flags), 0);
	KUNIT_EXPECT_EQ(test, flags, SKUA_RSS_IPV4);
	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(SKUA_RX_HASH_IPV4 | SKUA_RX_HASH_IPV6 |
					       SKUA_RX_HASH_UDP, &flags), 0);
	KUNIT_EXPECT_EQ(test, flags, SKUA_RSS_IPV4 | SKUA_RSS_IPV6 | SKUA_RSS_UDP_IPV4 |
			SKUA_RSS_UDP_IPV6);
	/* Ports alone, one address of two, what nobody knows. */
	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(SKUA_RX_HASH_TCP, &flags), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(0x1, &flags), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_rss_hash(BIT_ULL(31) | SKUA_RX_HASH_IPV4, &flags),
			-EOPNOTSUPP);
}

static struct kunit_case skua_flow_cases[] = {
	KUNIT_CASE(test_flow_eth),
	KUNIT_CASE(test_flow_five_tuple),
	KUNIT_CASE(test_flow_order),
	KUNIT_CASE(test_flow_ipv6),
	KUNIT_CASE(test_flow_types),
	KUNIT_CASE(test_rss_fields),
	{}
};

static struct kunit_suite skua_flow_suite = {
	.name = "skua_flow",
	.test_cases = skua_flow_cases,
};

kunit_test_suite(skua_flow_suite);

MODULE_DESCRIPTION("KUnit tests of steering in skua_ib");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
