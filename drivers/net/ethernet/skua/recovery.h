/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loss recovery of a QP in software: what has arrived, what counts as lost, what is sent
 * again. No I/O, no clock, no lock: recovery_eq.c connects it with the device, and tests in
 * user space link it as it is. Documentation/recovery.rst describes it.
 */
#ifndef SKUA_CORE_RECOVERY_H
#define SKUA_CORE_RECOVERY_H

#include <skua/bits.h>
#include <skua/hw/eqe.h>
#include <skua/hw/queue.h>

#ifndef __KERNEL__
#include <stdbool.h>
#endif

/**
 * struct skua_recovery_psn - a PSN that is outstanding
 * @ref: it counts as lost when something that was sent so far behind this PSN has arrived:
 *	itself, or the first PSN that had not been sent when it was sent again
 * @time: since when it is waited for, in units of 1024 ns
 * @wrote: with @again: when the command for it was written, in units of 1024 ns, modulo 2^16
 * @cmd: with @waits: number of the command, modulo 256, that has it sent again
 * @waits: that command has not been executed
 * @again: it was sent again
 */
struct skua_recovery_psn {
	__u32 ref;
	__u32 time;
	__u16 wrote;
	__u8 cmd;
	bool waits : 1;
	bool again : 1;
};

/**
 * struct skua_recovery - what software knows of the packets that a QP has sent
 * @ring: commands, SKUA_RECOVERY_RING of them, in memory that the device reads
 * @pi: commands written, free-running; the caller rings the doorbell when it has changed
 * @done: commands that the device has dealt with
 * @window: largest number of PSNs outstanding, the smaller of both ends' windows
 * @open: the device reports
 * @serial: of the present time of loss
 * @una: oldest PSN that is not acknowledged
 * @cum: PSN that the peer expects
 * @max: first PSN never sent
 * @top: one after the furthest PSN that is known to have arrived
 * @seen: the same, but counting @cum and requests that the peer holds
 * @advanced: PSN of the last SKUA_RECOVERY_ADVANCE
 * @distance: so far behind something that arrived a PSN counts as lost
 * @wait: after so many ns it counts as lost
 * @extra: added to @wait, as packets came later than that
 * @rtt: round trip time, ns, 0: not known
 * @heard: time of the last news
 * @asked: time at which @deadline passed last
 * @probes: times that @deadline passed since then
 * @deadline: time at which skua_recovery_timer() is to be called, 0: never
 * @bad: reports that make no sense
 * @stale: reports of another serial
 * @arrived: PSNs that arrived, bit PSN modulo SKUA_LRC_PSNS
 * @held: PSNs of READ responses of which the peer holds the request
 * @psn: by PSN modulo SKUA_LRC_PSNS
 */
struct skua_recovery {
	struct skua_recovery_cmd *ring;
	__u32 pi;
	__u32 done;
	__u32 window;
	bool open;
	__u32 serial;
	__u32 una;
	__u32 cum;
	__u32 max;
	__u32 top;
	__u32 seen;
	__u32 advanced;
	__u32 distance;
	__u64 wait;
	__u64 extra;
	__u64 rtt;
	__u64 heard;
	__u64 asked;
	__u32 probes;
	__u64 deadline;
	__u64 bad;
	__u64 stale;
	__u64 arrived[SKUA_LRC_PSNS / 64];
	__u64 held[SKUA_LRC_PSNS / 64];
	struct skua_recovery_psn psn[SKUA_LRC_PSNS];
};

void skua_recovery_init(struct skua_recovery *r, struct skua_recovery_cmd *ring,
			__u32 log_window);
void skua_recovery_event(struct skua_recovery *r, const struct skua_eqe_recovery *e,
			 __u64 now);
void skua_recovery_judge(struct skua_recovery *r, __u64 now);
void skua_recovery_timer(struct skua_recovery *r, __u64 now);

#endif /* SKUA_CORE_RECOVERY_H */
