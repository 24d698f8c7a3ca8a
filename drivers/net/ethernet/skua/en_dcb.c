// SPDX-License-Identifier: GPL-2.0
/*
 * Data center bridging: traffic classes of priorities and their shares (IEEE 802.1Qaz, "dcb
 * ets"). They concern what all queues of the device send, those of RDMA above all: the priority
 * of a connection is its service level, that of the netdev's packets is 0.
 */
#include <kunit/visibility.h>

#include "en.h"

static_assert(SKUA_TC_NUM == IEEE_8021QAZ_MAX_TCS);
static_assert(SKUA_PRIO_NUM == IEEE_8021QAZ_MAX_TCS);

static int skua_en_tc_check(const struct net_device *ndev, const struct ieee_ets *ets,
			    unsigned int tc)
{
	switch (ets->tc_tsa[tc]) {
	case IEEE_8021QAZ_TSA_STRICT:
		return 0;
	case IEEE_8021QAZ_TSA_ETS:
		if (ets->tc_tx_bw[tc])
			return 0;
		netdev_warn(ndev, "ETS refused: traffic class %u has no bandwidth\n", tc);
		return -EINVAL;
	default:
		netdev_warn(ndev,
			    "ETS refused: traffic class %u has selection algorithm %u, not strict (%u) or ets (%u)\n",
			    tc, ets->tc_tsa[tc], IEEE_8021QAZ_TSA_STRICT, IEEE_8021QAZ_TSA_ETS);
		return -EOPNOTSUPP;
	}
}

/**
 * skua_en_ets_check() - may traffic classes be like this?
 * @ndev: the netdev
 * @ets: the classes
 *
 * Return: 0; -EINVAL if there is no such class, one has no bandwidth, or all of them together do
 * not have 100 %; -EOPNOTSUPP for an algorithm other than strict priority and ETS, or the claim
 * that there is one (cbs). The kernel log then says why.
 */
VISIBLE_IF_KUNIT
int skua_en_ets_check(const struct net_device *ndev, const struct ieee_ets *ets)
{
	unsigned int i, sum = 0;
	int err;

	if (ets->cbs) {
		netdev_warn(ndev, "ETS refused: cbs is %u, without a credit-based shaper it is 0\n",
			    ets->cbs);
		return -EOPNOTSUPP;
	}
	for (i = 0; i < SKUA_PRIO_NUM; i++) {
		if (ets->prio_tc[i] < SKUA_TC_NUM)
			continue;
		netdev_warn(ndev, "ETS refused: priority %u has traffic class %u, the highest is %u\n",
			    i, ets->prio_tc[i], SKUA_TC_NUM - 1);
		return -EINVAL;
	}
	for (i = 0; i < SKUA_TC_NUM; i++) {
		err = skua_en_tc_check(ndev, ets, i);
		if (err)
			return err;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS)
			sum += ets->tc_tx_bw[i];
	}
	/* Zero: no class has a share, since one with none was refused. */
	if (!sum || sum == SKUA_TC_SHARE_MAX)
		return 0;
	netdev_warn(ndev, "ETS refused: the traffic classes have %u %% of the bandwidth, not %u\n",
		    sum, SKUA_TC_SHARE_MAX);
	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_ets_check);

/*
 * A device that is dead, or fails here, has refused nothing: when it is recovered
 * skua_en_dcb_up() writes the classes.
 */
static int skua_en_ets_write(struct skua_en *en, const struct ieee_ets *ets)
{
	u8 share[SKUA_TC_NUM];
	unsigned int i;
	int err;

	for (i = 0; i < SKUA_TC_NUM; i++)
		share[i] = ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS ? ets->tc_tx_bw[i] :
								     SKUA_TC_STRICT;
	err = skua_set_classes(en->dev, ets->prio_tc, share);
	if (!err || skua_dead(en->dev))
		return 0;
	netdev_warn(en->ndev, "ETS: the device refuses the traffic classes: %pe\n", ERR_PTR(err));
	return err;
}

/* If the device has refused the classes, shown is what it has after a reset: one class. */
static int skua_en_ieee_getets(struct net_device *ndev, struct ieee_ets *ets)
{
	struct skua_en *en = netdev_priv(ndev);

	*ets = en->ets;
	ets->ets_cap = SKUA_TC_NUM;
	if (!en->ets_refused)
		return 0;
	memset(ets->prio_tc, 0, sizeof(ets->prio_tc));
	memset(ets->tc_tsa, IEEE_8021QAZ_TSA_STRICT, sizeof(ets->tc_tsa));
	memset(ets->tc_tx_bw, 0, sizeof(ets->tc_tx_bw));
	return 0;
}

/*
 * While the device is down it is only kept: skua_en_dcb_up() writes it. What is for LLDP
 * agents alone, whether they are willing, the recommendations and what is received, is kept
 * for them.
 */
static int skua_en_ieee_setets(struct net_device *ndev, struct ieee_ets *ets)
{
	struct skua_en *en = netdev_priv(ndev);
	int err;

	ASSERT_RTNL();
	err = skua_en_ets_check(ndev, ets);
	if (err)
		return err;
	if (en->attached && !READ_ONCE(en->dead)) {
		err = skua_en_ets_write(en, ets);
		if (err)
			return err;
	}
	en->ets = *ets;
	en->ets_refused = false;
	return 0;
}

/* There is no agent in the device: the host's speaks DCBX, in its IEEE version. */
#define SKUA_EN_DCBX	(DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE)

static u8 skua_en_getdcbx(struct net_device *ndev)
{
	return SKUA_EN_DCBX;
}

/* Nonzero: refused. */
static u8 skua_en_setdcbx(struct net_device *ndev, u8 mode)
{
	return mode != SKUA_EN_DCBX;
}

static const struct dcbnl_rtnl_ops skua_en_dcbnl_ops = {
	.ieee_getets	= skua_en_ieee_getets,
	.ieee_setets	= skua_en_ieee_setets,
	.getdcbx	= skua_en_getdcbx,
	.setdcbx	= skua_en_setdcbx,
};

/**
 * skua_en_dcb_init() - give a netdev its DCB operations
 * @en: a new netdev, whose capabilities are known
 */
void skua_en_dcb_init(struct skua_en *en)
{
	if (en->caps & SKUA_CAP_ETS)
		en->ndev->dcbnl_ops = &skua_en_dcbnl_ops;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dcb_init);

/**
 * skua_en_dcb_up() - write the traffic classes to the device
 * @en: the netdev, about to be attached to its device; under RTNL
 *
 * A reset has put all priorities into one class. The netdev is attached in any case: if the device
 * refuses its classes it goes on with the one, which is shown, and is told again when it comes up
 * the next time.
 */
void skua_en_dcb_up(struct skua_en *en)
{
	bool refused;

	ASSERT_RTNL();
	if (!(en->caps & SKUA_CAP_ETS))
		return;
	refused = skua_en_ets_write(en, &en->ets);
	if (refused == en->ets_refused)
		return;
	en->ets_refused = refused;
	if (en->ndev->reg_state == NETREG_REGISTERED)
		dcbnl_ieee_notify(en->ndev, RTM_SETDCB, DCB_CMD_IEEE_SET, 0, 0);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dcb_up);

/**
 * skua_en_dcb_exit() - put all priorities into one class again
 * @en: the netdev, attached to its device, and unregistered
 *
 * The classes concern the queues of RDMA, too, which the device may go on to have. Without a
 * netdev nobody could see or change them.
 */
void skua_en_dcb_exit(struct skua_en *en)
{
	static const struct ieee_ets none;

	if (en->caps & SKUA_CAP_ETS)
		skua_en_ets_write(en, &none);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_dcb_exit);
