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

/* Messages at once, and one more for each so many nanoseconds. */
#define LOG_BURST	50
#define LOG_INTERVAL	200000000ull

/**
 * struct log_limit - the messages of one function; zeroed: none yet
 * @spent: messages that count still
 * @since: when that was reckoned
 * @left_out: messages since the last that was allowed
 */
struct log_limit {
	uint32_t spent;
	uint64_t since;
	uint64_t left_out;
};

/* May a message be logged at @now (nanoseconds)? Then *@left_out is how many before were not. */
bool log_allow(struct log_limit *log, uint64_t now, uint64_t *left_out);

#endif /* SKUA_MODEL_LOG_H */
