// SPDX-License-Identifier: GPL-2.0
#include "log.h"

bool log_allow(struct log_limit *log, uint64_t now, uint64_t *left_out)
{
	uint64_t back = (now - log->since) / LOG_INTERVAL;

	if (back >= log->spent) {
		log->spent = 0;
		log->since = now;
	} else {
		log->spent -= back;
		log->since += back * LOG_INTERVAL;
	}
	if (log->spent == LOG_BURST) {
		log->left_out++;
		return false;
	}
	log->spent++;
	*left_out = log->left_out;
	log->left_out = 0;
	return true;
}
