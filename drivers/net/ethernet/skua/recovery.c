// SPDX-License-Identifier: GPL-2.0
/*
 * Loss recovery of a QP in software.
 *
 * Each PSN from una on that is missing, as something behind it is known to have arrived, is
 * looked at by itself. It counts as lost when something that was sent more than @distance
 * PSNs behind it has arrived, or when it was waited for longer than two round trips. What
 * was sent again is compared with what was sent for the first time after it, which the
 * device's reports tell: a packet is never sent again because those that overtook its
 * first copy go on arriving.
 *
 * Both bounds adapt to the path: a packet that comes without having been sent again, or so
 * soon after that it cannot be the answer to that, widens them.
 */
#include "recovery.h"

/* Shortest time, in ns, until a PSN counts as lost; and until the peer is asked. */
#define RECOVERY_WAIT_MIN	20000
#define RECOVERY_PROBE_MIN	1000000
/* Longest that the device may tell, and what is assumed if it tells nothing. */
#define RECOVERY_WAIT_MAX	4000000000ULL
#define RECOVERY_WAIT_DEFAULT	1000000
/* The time doubles so often at most while nothing arrives. */
#define RECOVERY_BACKOFF_MAX	6
/* So many times the peer is asked in vain: then the device's ack timer has to decide. */
#define RECOVERY_PROBES_MAX	16
/* What a command has sent again, of which no report tells, is lost after so many times that. */
#define RECOVERY_UNTOLD		4
/* Time is kept in units of 1 << this ns for each PSN. */
#define RECOVERY_TIME_SHIFT	10

#define PSN_MASK		0xffffffU

static __u32 skua_rec_psn_add(__u32 psn, __u32 n)
{
	return (psn + n) & PSN_MASK;
}

static __u32 skua_rec_psn_sub(__u32 a, __u32 b)
{
	return (a - b) & PSN_MASK;
}

/* How far @a is ahead of @b, or behind it. */
static __s32 skua_rec_psn_diff(__u32 a, __u32 b)
{
	return (__s32)((a - b) << 8) >> 8;
}

static void skua_rec_raise(__u32 *psn, __u32 to)
{
	if (skua_rec_psn_diff(to, *psn) > 0)
		*psn = to;
}

static bool skua_rec_is_set(const __u64 *map, __u32 psn)
{
	return map[psn % SKUA_LRC_PSNS / 64] >> psn % 64 & 1;
}

static void skua_rec_set(__u64 *map, __u32 psn)
{
	map[psn % SKUA_LRC_PSNS / 64] |= 1ULL << psn % 64;
}

static void skua_rec_clear(__u64 *map, __u32 psn)
{
	map[psn % SKUA_LRC_PSNS / 64] &= ~(1ULL << psn % 64);
}

static struct skua_recovery_psn *skua_rec_at(struct skua_recovery *r, __u32 psn)
{
	return &r->psn[psn % SKUA_LRC_PSNS];
}

static __u32 skua_rec_units(__u64 ns)
{
	return (__u32)(ns >> RECOVERY_TIME_SHIFT);
}

/* --- time --- */

/* After so long what has not arrived is lost, in ns. */
static __u64 skua_rec_lost_after(const struct skua_recovery *r)
{
	__u32 n = r->probes < RECOVERY_BACKOFF_MAX ? r->probes : RECOVERY_BACKOFF_MAX;

	return (r->wait + r->extra) << n;
}

static __u64 skua_rec_probe_after(const struct skua_recovery *r)
{
	__u64 wait = 2 * skua_rec_lost_after(r);

	return wait > RECOVERY_PROBE_MIN ? wait : RECOVERY_PROBE_MIN;
}

static void skua_rec_news(struct skua_recovery *r, __u64 now)
{
	r->heard = now;
	r->probes = 0;
}

/* --- what arrived --- */

/* A PSN came. Was it only late? Then what counts as lost has to come later still. */
static void skua_rec_learn(struct skua_recovery *r, __u32 psn, __u64 now)
{
	const struct skua_recovery_psn *p = skua_rec_at(r, psn);
	__u32 most = r->window / 4 * 3, far = skua_rec_psn_sub(r->top, psn);
	__u32 time = skua_rec_units(now), half = skua_rec_units(r->rtt / 2);

	if (skua_rec_psn_diff(r->top, psn) <= 0 || p->waits)
		return;
	if (!p->again) {
		far += far / 4;
		if (far > r->distance)
			r->distance = far < most ? far : most;
		return;
	}
	/*
	 * That it was sent may have been told long after it was, and together with its arrival.
	 * So it is the command's time that shows whether it can be the answer to that.
	 */
	if (time - p->time >= half || (__u16)(time - p->wrote) >= half)
		return;
	far = r->distance + r->distance / 2;
	r->distance = far < most ? far : most;
	if (r->extra < 4 * r->rtt)
		r->extra += r->rtt;
}

static void skua_rec_arrive(struct skua_recovery *r, __u32 psn, __u64 now)
{
	if (skua_rec_is_set(r->arrived, psn))
		return;
	skua_rec_learn(r, psn, now);
	skua_rec_set(r->arrived, psn);
	skua_rec_news(r, now);
	skua_rec_raise(&r->top, skua_rec_psn_add(psn, 1));
}

/* From now on it is waited for: @ref as in struct skua_recovery_psn. */
static void skua_rec_await(struct skua_recovery *r, __u32 psn, __u32 ref, __u64 now)
{
	*skua_rec_at(r, psn) = (struct skua_recovery_psn){
		.ref = ref,
		.time = skua_rec_units(now),
	};
}

/* It went out once more: it is behind all that was sent until now. */
static void skua_rec_sent_again(struct skua_recovery *r, __u32 psn, __u16 wrote, __u64 now)
{
	*skua_rec_at(r, psn) = (struct skua_recovery_psn){
		.ref = r->max,
		.time = skua_rec_units(now),
		.wrote = wrote,
		.again = true,
	};
}

/* Something before @psn is missing, of which that was not known. */
static void skua_rec_see(struct skua_recovery *r, __u32 psn, __u64 now)
{
	for (; skua_rec_psn_diff(psn, r->seen) > 0; r->seen = skua_rec_psn_add(r->seen, 1))
		skua_rec_await(r, r->seen, r->seen, now);
}

/* Nothing is known of what is outstanding from @una on. */
static void skua_rec_restart(struct skua_recovery *r, __u32 una)
{
	__u32 i;

	for (i = 0; i < SKUA_LRC_PSNS / 64; i++) {
		r->arrived[i] = 0;
		r->held[i] = 0;
	}
	r->una = una;
	r->cum = una;
	r->max = una;
	r->top = una;
	r->seen = una;
	r->advanced = una;
}

static void skua_rec_follow_una(struct skua_recovery *r, __u32 una, __u64 now)
{
	if (una != r->una)
		skua_rec_news(r, now);
	skua_rec_see(r, una, now);
	for (; r->una != una; r->una = skua_rec_psn_add(r->una, 1)) {
		if (!skua_rec_is_set(r->arrived, r->una))
			skua_rec_learn(r, r->una, now);
		skua_rec_clear(r->arrived, r->una);
		skua_rec_clear(r->held, r->una);
	}
	skua_rec_raise(&r->top, una);
	skua_rec_raise(&r->cum, una);
	skua_rec_raise(&r->advanced, una);
}

/* The peer executes requests up to @cum: those that it held are on their way back now. */
static void skua_rec_follow_cum(struct skua_recovery *r, __u32 cum, __u64 now)
{
	skua_rec_see(r, cum, now);
	for (; skua_rec_psn_diff(cum, r->cum) > 0; r->cum = skua_rec_psn_add(r->cum, 1)) {
		skua_rec_news(r, now);
		if (skua_rec_is_set(r->held, r->cum))
			skua_rec_await(r, r->cum, r->max, now);
	}
}

/* Commands that were executed. */
static void skua_rec_follow_done(struct skua_recovery *r, __u32 done, __u64 now)
{
	__u32 psn, n = (done - r->done) & 0xff;

	if (!n || n > r->pi - r->done)
		return;
	r->done += n;
	for (psn = r->una; skua_rec_psn_diff(r->max, psn) > 0; psn = skua_rec_psn_add(psn, 1)) {
		struct skua_recovery_psn *p = skua_rec_at(r, psn);

		if (p->waits && (__s8)(r->done - p->cmd) > 0)
			skua_rec_sent_again(r, psn, p->wrote, now);
	}
}

static void skua_rec_take_word(struct skua_recovery *r, enum skua_recovery_kind kind, __u32 psn,
			       __u64 bits, __u64 now)
{
	for (; bits; bits >>= 1, psn = skua_rec_psn_add(psn, 1)) {
		if (!(bits & 1) || skua_rec_psn_diff(psn, r->max) >= 0)
			continue;
		if (kind == SKUA_RECOVERY_ASKED) {
			skua_rec_see(r, skua_rec_psn_add(psn, 1), now);
			/* When that was decided is not known. */
			skua_rec_sent_again(r, psn, (__u16)(skua_rec_units(now) + 0x8000), now);
			continue;
		}
		skua_rec_see(r, skua_rec_psn_add(psn, 1), now);
		if (kind == SKUA_RECOVERY_DROPPED)
			continue;
		if (kind == SKUA_RECOVERY_ARRIVED) {
			skua_rec_arrive(r, psn, now);
		} else if (!skua_rec_is_set(r->held, psn)) {
			skua_rec_set(r->held, psn);
			skua_rec_news(r, now);
		}
	}
}

/* --- what is lost --- */

static bool skua_rec_missing(const struct skua_recovery *r, __u32 psn)
{
	return !skua_rec_is_set(r->arrived, psn) &&
	       !(skua_rec_is_set(r->held, psn) && skua_rec_psn_diff(r->cum, psn) <= 0);
}

static bool skua_rec_is_lost(const struct skua_recovery *r, const struct skua_recovery_psn *p,
			     __u64 now)
{
	__u32 age = skua_rec_units(now) - p->time, limit = skua_rec_units(skua_rec_lost_after(r));

	/* The device has not told that it has sent it again: that may be lost, too. */
	if (p->waits)
		return age >= RECOVERY_UNTOLD * skua_rec_units(r->wait + r->extra);
	if (skua_rec_psn_diff(r->top, p->ref) > 0 && skua_rec_psn_sub(r->top, p->ref) > r->distance)
		return true;
	return age >= limit;
}

static bool skua_rec_knows_of_missing(const struct skua_recovery *r)
{
	__u32 psn;

	for (psn = r->una; psn != r->seen; psn = skua_rec_psn_add(psn, 1)) {
		if (skua_rec_missing(r, psn))
			return true;
	}
	return false;
}

static bool skua_rec_has_room(const struct skua_recovery *r)
{
	return r->pi - r->done < SKUA_RECOVERY_RING;
}

static void skua_rec_put(struct skua_recovery *r, enum skua_recovery_op op, __u32 first, __u32 end)
{
	r->ring[r->pi++ % SKUA_RECOVERY_RING] = (struct skua_recovery_cmd){
		.op = le32_encode_bits(op, SKUA_RECOVERY_OP),
		.serial = cpu_to_le32(r->serial),
		.first = cpu_to_le32(first),
		.end = cpu_to_le32(end),
	};
}

/* Have the lost PSNs from @psn on sent again that follow each other; the first one behind. */
static __u32 skua_rec_send_run(struct skua_recovery *r, __u32 psn, __u64 now)
{
	__u32 end = psn;

	while (end != r->seen && skua_rec_missing(r, end) &&
	       skua_rec_is_lost(r, skua_rec_at(r, end), now)) {
		*skua_rec_at(r, end) = (struct skua_recovery_psn){
			.ref = r->max,
			.time = skua_rec_units(now),
			.wrote = (__u16)skua_rec_units(now),
			.cmd = (__u8)r->pi,
			.waits = true,
			.again = true,
		};
		end = skua_rec_psn_add(end, 1);
	}
	skua_rec_put(r, SKUA_RECOVERY_SEND, psn, end);
	return end;
}

/* Responses that came, up to what is missing, are complete; never beyond @cum. */
static void skua_rec_advance(struct skua_recovery *r)
{
	__u32 psn = r->una;

	while (psn != r->cum && skua_rec_is_set(r->arrived, psn))
		psn = skua_rec_psn_add(psn, 1);
	if (skua_rec_psn_diff(psn, r->advanced) <= 0 || !skua_rec_has_room(r))
		return;
	skua_rec_put(r, SKUA_RECOVERY_ADVANCE, 0, psn);
	r->advanced = psn;
}

/* The next time to look: when the first PSN that is missing counts as lost, or to ask. */
static void skua_rec_set_deadline(struct skua_recovery *r, __u32 oldest, bool any, __u64 now)
{
	__u64 since = r->heard > r->asked ? r->heard : r->asked;
	__u32 limit = skua_rec_units(skua_rec_lost_after(r)) + 1;
	__u32 age = skua_rec_units(now) - oldest;
	__u64 left = age < limit ? (__u64)(limit - age) << RECOVERY_TIME_SHIFT : 0;

	r->deadline = since + skua_rec_probe_after(r);
	if (any && now + left < r->deadline)
		r->deadline = now + left;
}

/**
 * skua_recovery_judge() - write the commands that are due, and set the deadline
 * @r: the QP's state
 * @now: time, ns
 *
 * To be called after the reports that have come were given to skua_recovery_event().
 */
void skua_recovery_judge(struct skua_recovery *r, __u64 now)
{
	__u32 psn = r->una, oldest = skua_rec_units(now);
	bool any = false;

	if (!r->open)
		return;
	skua_rec_advance(r);
	while (psn != r->seen) {
		const struct skua_recovery_psn *p = skua_rec_at(r, psn);

		if (!skua_rec_missing(r, psn)) {
			psn = skua_rec_psn_add(psn, 1);
			continue;
		}
		if (!skua_rec_is_lost(r, p, now)) {
			if (!p->waits && (!any || (__s32)(p->time - oldest) < 0)) {
				oldest = p->time;
				any = true;
			}
			psn = skua_rec_psn_add(psn, 1);
		} else if (skua_rec_has_room(r)) {
			psn = skua_rec_send_run(r, psn, now);
		} else {
			/* The next report tells of room. */
			break;
		}
	}
	skua_rec_set_deadline(r, oldest, any, now);
}

/* --- reports --- */

/* A peer may take fewer packets out of order than the QP's own window has. */
static void skua_rec_set_window(struct skua_recovery *r, __u32 log_window)
{
	if (log_window < SKUA_EXT_LOG_WINDOW_MIN || log_window > SKUA_EXT_LOG_WINDOW_MAX ||
	    r->window == 1U << log_window)
		return;
	r->window = 1U << log_window;
	r->distance = r->window / 4;
}

static void skua_rec_begin(struct skua_recovery *r, __u32 serial, __u32 una, __u32 log_window,
			   __u64 bits, __u64 now)
{
	/* Commands of the time before have no effect: whether they were read does not matter. */
	skua_rec_restart(r, una);
	skua_rec_set_window(r, log_window);
	r->open = true;
	r->serial = serial;
	r->wait = bits & 0xffffffff;
	if (!r->wait)
		r->wait = RECOVERY_WAIT_DEFAULT;
	if (r->wait < RECOVERY_WAIT_MIN)
		r->wait = RECOVERY_WAIT_MIN;
	if (r->wait > RECOVERY_WAIT_MAX)
		r->wait = RECOVERY_WAIT_MAX;
	r->rtt = bits >> 32;
	/* What was learned of the path is forgotten little by little. */
	r->extra -= r->extra / 8;
	r->distance -= (r->distance - r->window / 4) / 8;
	skua_rec_news(r, now);
}

/*
 * Nothing came for long. The answer to the last packet says which others arrived. If nothing
 * answers that, as it is a response to a READ whose request was lost, the first one is asked for.
 */
static void skua_rec_probe(struct skua_recovery *r)
{
	__u32 psn = r->probes % 2 ? r->una : skua_rec_psn_sub(r->max, 1);

	if (r->max != r->una && skua_rec_has_room(r))
		skua_rec_put(r, SKUA_RECOVERY_SEND, psn, skua_rec_psn_add(psn, 1));
}

/**
 * skua_recovery_event() - take a report of the device
 * @r: the QP's state
 * @e: the report
 * @now: time, ns
 *
 * A report of another time of loss than the present one is ignored, and one that makes no
 * sense: the device then goes back when its ack timer expires.
 */
void skua_recovery_event(struct skua_recovery *r, const struct skua_eqe_recovery *e, __u64 now)
{
	__u32 what = le32_to_cpu(e->what), una = le32_to_cpu(e->una) & PSN_MASK;
	__u32 cum = skua_rec_psn_add(una, u32_get_bits(what, SKUA_RECOVERY_CUM));
	__u32 ahead = u32_get_bits(what, SKUA_RECOVERY_MAX);
	__u32 word = u32_get_bits(what, SKUA_RECOVERY_WORD);
	enum skua_recovery_kind kind = u32_get_bits(what, SKUA_RECOVERY_KIND);
	bool first = kind == SKUA_RECOVERY_OPEN || kind == SKUA_RECOVERY_PROBE;
	__u32 serial = le32_to_cpu(e->serial);
	__u64 bits = le64_to_cpu(e->bits);

	if (!kind || kind > SKUA_RECOVERY_DROPPED || ahead > SKUA_LRC_PSNS ||
	    skua_rec_psn_sub(cum, una) > ahead) {
		r->bad++;
		return;
	}
	if (first) {
		skua_rec_begin(r, serial, una, word, bits, now);
	} else if (!r->open || serial != r->serial) {
		r->stale++;
		return;
	}
	if (skua_rec_psn_diff(una, r->una) < 0 ||
	    skua_rec_psn_diff(skua_rec_psn_add(una, ahead), r->max) < 0) {
		r->bad++;
		return;
	}
	/* All that was outstanding is acknowledged, and as much has gone out and come since. */
	if (skua_rec_psn_sub(una, r->una) > SKUA_LRC_PSNS) {
		skua_rec_restart(r, una);
		skua_rec_news(r, now);
	}
	r->max = skua_rec_psn_add(una, ahead);
	skua_rec_follow_done(r, le32_get_bits(e->qpn, SKUA_RECOVERY_DONE), now);
	skua_rec_follow_una(r, una, now);
	if (kind == SKUA_RECOVERY_CLOSE) {
		r->open = false;
		r->deadline = 0;
		return;
	}
	skua_rec_follow_cum(r, cum, now);
	if (kind == SKUA_RECOVERY_PROBE)
		skua_rec_probe(r);
	else if (!first)
		skua_rec_take_word(r, kind, skua_rec_psn_add(una, 64 * word), bits, now);
}

/**
 * skua_recovery_timer() - the deadline has come
 * @r: the QP's state
 * @now: time, ns
 */
void skua_recovery_timer(struct skua_recovery *r, __u64 now)
{
	if (!r->open || !r->deadline || now < r->deadline)
		return;
	if (r->probes >= RECOVERY_PROBES_MAX) {
		/* The device says nothing for so long: its ack timer has to decide. */
		r->open = false;
		r->deadline = 0;
		return;
	}
	skua_recovery_judge(r, now);
	if (!skua_rec_knows_of_missing(r))
		skua_rec_probe(r);
	r->asked = now;
	r->probes++;
	/* With the longer time that holds from now on, nothing more is lost: a new deadline. */
	skua_recovery_judge(r, now);
}

/**
 * skua_recovery_init() - state of a QP that has just left RESET
 * @r: zeroed
 * @ring: its recovery ring
 * @log_window: log2 of its own window; the peer's, which is known later, may be smaller
 */
void skua_recovery_init(struct skua_recovery *r, struct skua_recovery_cmd *ring,
			__u32 log_window)
{
	r->ring = ring;
	r->window = 1U << log_window;
	r->distance = r->window / 4;
}
