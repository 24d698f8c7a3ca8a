// SPDX-License-Identifier: GPL-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "onload.h"

static bool has_event(struct rc_side *s, const struct onload_side *o)
{
	const struct skua_eqe *ring = fake_ptr(&s->f, o->eq.ring);

	return skua_eqe_is_new(&ring[o->eq.ci & ((1u << o->eq.log) - 1)], o->eq.ci, o->eq.log);
}

static void take_events(struct rc_side *s, struct onload_side *o)
{
	struct skua_eqe eqe;

	while (mini_eq_next(&s->m, &o->eq, &eqe)) {
		struct skua_eqe_recovery e;

		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_RECOVERY);
		memcpy(&e, &eqe, sizeof(e));
		if (le32_get_bits(e.qpn, SKUA_RECOVERY_QPN) == s->qp.qpn)
			skua_recovery_event(&o->r, &e, s->f.now);
		o->events++;
	}
	skua_recovery_judge(&o->r, s->f.now);
	fake_db(&s->f, o->eq.uar, SKUA_UAR_EQ, o->eq.ci, o->eq.eqn | SKUA_UAR_EQ_ARM);
}

static bool drive_side(struct net *n, struct rc_side *s, struct onload_side *o)
{
	uint64_t now = s->f.now;
	bool did = false;

	if (!o->used || o->gone)
		return false;
	if (!o->work_at && has_event(s, o))
		o->work_at = now + o->late;
	if (o->work_at && now >= o->work_at) {
		take_events(s, o);
		o->work_at = 0;
		did = true;
	}
	if (o->r.deadline && now >= o->r.deadline)
		skua_recovery_timer(&o->r, now);
	if (o->r.pi != o->told) {
		o->told = o->r.pi;
		fake_db(&s->f, 0, SKUA_UAR_RECOVERY, o->told, s->qp.qpn);
		did = true;
	}
	if (o->work_at && o->work_at < n->drive_at)
		n->drive_at = o->work_at;
	if (o->r.deadline && o->r.deadline < n->drive_at)
		n->drive_at = o->r.deadline;
	return did;
}

static bool drive(struct net *n)
{
	struct onload *o = n->drive_priv;
	bool did = false;

	n->drive_at = SKUA_TIME_NEVER;
	for (int i = 0; i < 2; i++)
		did |= drive_side(n, &n->rc.s[i], &o->side[i]);
	return did;
}

void onload_start(struct net *n, struct onload *o)
{
	memset(o, 0, sizeof(*o));
	n->drive = drive;
	n->drive_priv = o;
}

void onload_side(struct net *n, int i, uint32_t log_window, uint32_t log_eq, uint64_t late)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_RECOVERY_EQ),
		.recovery_eqn = cpu_to_le32(ONLOAD_EQN),
	};
	struct onload_side *o = &((struct onload *)n->drive_priv)->side[i];
	struct mini *m = &n->rc.s[i].m;

	assert_int_equal(mini_eq_create(m, &o->eq, ONLOAD_EQN, log_eq, 0, 1), SKUA_CMD_ST_OK);
	mini_eq_db(m, &o->eq, true);
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	skua_recovery_init(&o->r, fake_ptr(m->f, m->rec_ring), log_window);
	o->late = late;
	o->used = true;
}
