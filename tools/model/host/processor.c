// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "processor.h"

/* The kernel's structure, which not all versions of libc have. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

bool processor_slice(uint64_t ns)
{
	struct attr attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return false;
	attr.runtime = ns;
	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

bool processor_leave(void)
{
	cpu_set_t all, rest;
	int cpu = sched_getcpu();

	if (cpu < 0 || sched_getaffinity(0, sizeof(all), &all))
		return false;
	rest = all;
	CPU_CLR(cpu, &rest);
	if (!CPU_COUNT(&rest) || sched_setaffinity(0, sizeof(rest), &rest))
		return false;
	return !sched_setaffinity(0, sizeof(all), &all);
}
