/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many messages of one function are logged. A guest can cause as many as it likes, by
 * dying and coming back, or by a client that connects again and again; they must not fill the
 * disk, or keep the model busy.
 */
#ifndef SKUA_MODEL_LOG_H
#define SKUA_MODEL_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Size of a burst of messages, and ns until one more is allowed. */
#define LOG_BURST	50
#define LOG_INTERVAL	200000000ull

/**
 * struct log_limit - the messages of one function; zeroed: none yet
 * @spent: messages that count against the burst at @since
 * @since: time of the last computation of @spent
 * @left_out: messages suppressed since the last one that was allowed
 */
struct log_limit {
	uint32_t spent;
	uint64_t since;
	uint64_t left_out;
};

/*
 * May a message be logged at @now (ns)? If so, *@left_out is the number of messages suppressed
 * before it.
 */
bool log_allow(struct log_limit *log, uint64_t now, uint64_t *left_out);

#endif /* SKUA_MODEL_LOG_H */
