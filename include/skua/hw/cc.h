/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: congestion control.
 *
 * With SKUA_CAP_DCQCN the device answers packets with a CE mark by congestion
 * notification packets (CNPs, notification point), and QPs can react to them
 * (reaction point). With SKUA_CAP_CC_DELAY they can react to the round trip time instead.
 * Parameters are the device's: QUERY_CC and MODIFY_CC. All of them have their default
 * after each reset of the device, and after INIT_DEVICE.
 */
#ifndef SKUA_HW_CC_H
#define SKUA_HW_CC_H

#include <linux/types.h>

/* Reaction points (RP_ALGORITHM, SKUA_CC_ALGORITHM). */
enum skua_cc_algorithm {
	SKUA_CC_NONE			= 0,	/* what the QP is allowed to send, it sends */
	SKUA_CC_DCQCN			= 1,	/* a rate, by CNPs */
	SKUA_CC_DELAY			= 2,	/* a window, by the round trip time */
	SKUA_CC_ALGORITHMS
};

/* Whom NP_MIN_TIME_BETWEEN_CNPS lies between (NP_CNP_SCOPE). */
enum skua_cnp_scope {
	SKUA_CNP_PER_QP			= 0,
	SKUA_CNP_PER_IP			= 1,	/* CNPs to one address */
	SKUA_CNP_PER_PORT		= 2,
	SKUA_CNP_SCOPES
};

/*
 * Parameters: X(name, user's name, least, greatest, default, text). The names are those that
 * users of mlx5 know, as far as there are any. A new value holds for all QPs from the next
 * event on that makes use of it, but RP_ALGORITHM for QPs that go to RTS from then on.
 *
 * With RP_CLAMP_TGT_RATE 0 a decrease changes the target rate only if bytes sent, or with
 * RP_CLAMP_TGT_RATE_ATI time, have raised the rate since the decrease before.
 */
#define SKUA_CC_PARAM_TABLE(X)								\
	X(RP_ALGORITHM, rp_algorithm, 0, 2, 0, "enum skua_cc_algorithm")		\
	X(RP_CLAMP_TGT_RATE, rp_clamp_tgt_rate, 0, 1, 1,				\
	  "1: each decrease makes the rate before it the target; 0: see above")		\
	X(RP_CLAMP_TGT_RATE_ATI, rp_clamp_tgt_rate_ati, 0, 1, 1,			\
	  "the same of rates raised by time")					\
	X(RP_TIME_RESET, rp_time_reset, 1, 131071, 55,					\
	  "us between increases by time")						\
	X(RP_BYTE_RESET, rp_byte_reset, 0, 0x7fffffff, 10000000,			\
	  "bytes sent between increases by bytes; 0: there are none")			\
	X(RP_THRESHOLD, rp_threshold, 1, 31, 1,						\
	  "increases until additive increase; of both kinds, until hyper increase")	\
	X(RP_AI_RATE, rp_ai_rate, 1, 100000, 200, "Mbit/s of an additive increase")	\
	X(RP_MAX_RATE, rp_max_rate, 0, 1000000, 0, "Mbit/s; 0: the port's")		\
	X(RP_HAI_RATE, rp_hai_rate, 1, 100000, 200, "Mbit/s of a hyper increase")	\
	X(RP_MIN_DEC_FAC, rp_min_dec_fac, 1, 100, 50,					\
	  "percent of the rate that a decrease leaves at least")			\
	X(RP_MIN_RATE, rp_min_rate, 1, 1000000, 10, "Mbit/s")				\
	X(RP_RATE_TO_SET_ON_FIRST_CNP, rp_rate_to_set_on_first_cnp, 0, 1000000, 0,	\
	  "Mbit/s; 0: what is known of the rate until then, less a decrease")		\
	X(RP_DCE_TCP_G, rp_dce_tcp_g, 1, 1023, 16,					\
	  "weight, in 1/1024, of a period in alpha")					\
	X(RP_DCE_TCP_RTT, rp_dce_tcp_rtt, 1, 131071, 55, "us of a period of alpha")	\
	X(RP_RATE_REDUCE_MONITOR_PERIOD, rp_rate_reduce_monitor_period, 0, 131071, 50,	\
	  "us between decreases")							\
	X(RP_INITIAL_ALPHA_VALUE, rp_initial_alpha_value, 0, 1023, 1023, "in 1/1024")	\
	X(RP_GD, rp_gd, 0, 15, 11,							\
	  "a decrease takes alpha (in 1/1024) / 2^gd of the rate")			\
	X(RP_INITIAL_WINDOW, rp_initial_window, 0, 0x7fffffff, 16384,			\
	  "bytes that may be outstanding at first (DCQCN: 0: no limit)")			\
	X(RP_DELAY_TARGET, rp_delay_target, 1, 1000000, 60,				\
	  "us of round trip that a large window aims at")				\
	X(RP_DELAY_RANGE, rp_delay_range, 0, 1000000, 40,				\
	  "us more for a window of one packet, of n packets divided by the root of n")	\
	X(RP_DELAY_AI, rp_delay_ai, 1, 1048576, 4096,					\
	  "bytes that the window grows by in a round trip")				\
	X(RP_DELAY_BETA, rp_delay_beta, 1, 100, 80,					\
	  "percent of the part by which the delay is too long: taken of the window")	\
	X(RP_DELAY_MAX_DEC, rp_delay_max_dec, 1, 99, 50,				\
	  "percent that the window shrinks at most in a round trip")			\
	X(NP_MIN_TIME_BETWEEN_CNPS, np_min_time_between_cnps, 0, 131071, 50, "us")	\
	X(NP_CNP_SCOPE, np_cnp_scope, 0, 2, 0, "enum skua_cnp_scope")			\
	X(NP_CNP_DSCP, np_cnp_dscp, 0, 63, 48, "of CNPs")				\
	X(NP_CNP_PRIO_MODE, np_cnp_prio_mode, 0, 1, 1,					\
	  "802.1p priority of tagged CNPs: 0: as the QP's other packets, 1: NP_CNP_PRIO") \
	X(NP_CNP_PRIO, np_cnp_prio, 0, 7, 6, "802.1p priority of tagged CNPs")

enum skua_cc_param {
#define X(name, user, min, max, dflt, text) SKUA_CC_##name,
	SKUA_CC_PARAM_TABLE(X)
#undef X
	SKUA_CC_PARAMS
};

/**
 * struct skua_cmd_modify_cc_in - set a parameter
 * @param: enum skua_cc_param
 * @value: least to greatest of SKUA_CC_PARAM_TABLE, else BAD_PARAM; so is an algorithm
 *	that the device does not have
 */
struct skua_cmd_modify_cc_in {
	__le32 param;
	__le32 value;
};

_Static_assert(sizeof(struct skua_cmd_modify_cc_in) == 8, "modify_cc_in");

/* Parameters that QUERY_CC has room for. */
#define SKUA_CC_PARAMS_MAX		62

/**
 * struct skua_cmd_query_cc_out - all parameters
 * @count: how many the device has: the first ones of enum skua_cc_param
 * @reserved: zero
 * @value: by enum skua_cc_param
 */
struct skua_cmd_query_cc_out {
	__le32 count;
	__le32 reserved;
	__le32 value[SKUA_CC_PARAMS_MAX];
};

_Static_assert(sizeof(struct skua_cmd_query_cc_out) == 256, "query_cc_out");

/**
 * struct skua_cc - congestion control of a QP: state, all of it, in its send queue context
 * @flags: SKUA_CC_*
 * @rate: kbit/s at which it sends at most, 0: no limit
 * @target: kbit/s to which @rate rises again
 * @window: bytes that may be outstanding, 0: no limit
 * @alpha: how much congestion there was of late, 2^20 are all that can be
 * @bytes: sent since the last increase by bytes
 * @una: oldest PSN not acknowledged, as last looked at
 * @rtt: last round trip measured, ns, 0: none was
 * @rtt_least: the shortest measured while the window opened
 * @rtt_psn: PSN whose acknowledgment measures the next, with @rtt_time
 * @stages: SKUA_CC_STAGE_*
 * @reserved: zero
 * @rtt_time: device time (ns) at which it was sent, 0: none is being measured
 * @alpha_time: device time (ns) at which the present period of @alpha began
 * @dec_time: device time (ns) of the last decrease
 * @inc_time: device time (ns) of the last increase by time
 * @cnp_time: notification point: device time (ns) of the last CNP sent, 0: none was
 *
 * But for SKUA_CC_ALGORITHM and @cnp_time it holds while SKUA_SQC_CC is set.
 */
struct skua_cc {
	__le32 flags;
	__le32 rate;
	__le32 target;
	__le32 window;
	__le32 alpha;
	__le32 bytes;
	__le32 una;
	__le32 rtt;
	__le32 rtt_least;
	__le32 rtt_psn;
	__le32 stages;
	__le32 reserved;
	__le64 rtt_time;
	__le64 alpha_time;
	__le64 dec_time;
	__le64 inc_time;
	__le64 cnp_time;
};

_Static_assert(sizeof(struct skua_cc) == 88, "skua_cc");

#define SKUA_CC_ALGORITHM		GENMASK(3, 0)	/* enum skua_cc_algorithm */
#define SKUA_CC_START			BIT(4)	/* window or rate still opens for the first time */
#define SKUA_CC_CNP_SEEN		BIT(5)	/* in the present period of alpha */
#define SKUA_CC_CNP_WAITS		BIT(6)	/* a decrease is due when its time has come */
/* Increases since the last decrease, of each kind. */
#define SKUA_CC_STAGE_TIME		GENMASK(15, 0)
#define SKUA_CC_STAGE_BYTES		GENMASK(31, 16)

#endif /* SKUA_HW_CC_H */
