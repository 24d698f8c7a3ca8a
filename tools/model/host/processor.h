/* SPDX-License-Identifier: GPL-2.0 */
/* The calling thread and the processors of the host. */
#ifndef SKUA_HOST_PROCESSOR_H
#define SKUA_HOST_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Set the scheduler slice of the thread to @ns. With a short slice it preempts others sooner
 * when it wakes up, but gets no more time in total. Not done if the user has chosen another
 * scheduling class than the default, and under Linux before 6.12. False: not done.
 */
bool processor_slice(uint64_t ns);
/* Move the thread to another processor. False: there is none that it may use. */
bool processor_leave(void);

#endif /* SKUA_HOST_PROCESSOR_H */
