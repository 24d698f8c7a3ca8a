/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A function without a device: commands are served by a callback.
 */
#ifndef SKUA_TESTS_FAKE_H
#define SKUA_TESTS_FAKE_H

#include <kunit/test.h>

#include "skua.h"

/**
 * enum fake_mode - what becomes of a command
 * @FAKE_SERVE: served at once
 * @FAKE_LOSE_EVENT: served at once, but no event comes
 * @FAKE_HOLD: left lying
 */
enum fake_mode {
	FAKE_SERVE,
	FAKE_LOSE_EVENT,
	FAKE_HOLD,
};

/**
 * struct fake - the function and its knobs
 * @dev: the function
 * @test: the test it belongs to
 * @mode: what becomes of the next commands
 * @hold_op: this opcode is left lying whatever @mode says, -1: none
 * @serve: executes a command, NULL: all are fine
 * @served: commands executed
 * @held: commands left lying
 * @uar: the kernel's UAR page, in memory
 * @quiesced: DMA has been turned off
 * @token: of the last command
 * @mapped: ICM pages mapped, as the commands have it
 * @maps: MAP_ICM commands
 * @unmaps: UNMAP_ICM commands
 * @refuse_map: status for the n-th MAP_ICM from now on, 0: none
 * @refuse_unmap: UNMAP_ICM is refused
 */
struct fake {
	struct skua_dev dev;
	struct kunit *test;
	enum fake_mode mode;
	int hold_op;
	u32 (*serve)(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out);
	atomic_t served;
	atomic_t held;
	void *uar;
	bool quiesced;
	u32 token;
	atomic64_t mapped;
	atomic_t maps;
	atomic_t unmaps;
	int refuse_map;
	bool refuse_unmap;
};

struct fake *fake_create(struct kunit *test);
void fake_finish(struct fake *fake, u32 token, bool event);
void fake_finish_all(struct fake *fake);
u32 fake_serve_icm(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out);

extern struct kunit_suite skua_cc_suite;
extern struct kunit_suite skua_cmd_suite;
extern struct kunit_suite skua_core_srq_suite;
extern struct kunit_suite skua_counter_suite;
extern struct kunit_suite skua_eq_suite;
extern struct kunit_suite skua_fault_suite;
extern struct kunit_suite skua_icm_suite;
extern struct kunit_suite skua_lifecycle_suite;
extern struct kunit_suite skua_mr_suite;
extern struct kunit_suite skua_mtt_suite;
extern struct kunit_suite skua_obj_suite;
extern struct kunit_suite skua_profile_suite;
extern struct kunit_suite skua_qp_suite;
extern struct kunit_suite skua_recovery_suite;
extern struct kunit_suite skua_reset_suite;

#endif /* SKUA_TESTS_FAKE_H */
