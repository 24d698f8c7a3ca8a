/* SPDX-License-Identifier: GPL-2.0 */
/* The calling thread and the processors of the host. */
#ifndef SKUA_HOST_PROCESSOR_H
#define SKUA_HOST_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Ask for slices of @ns. A thread with short ones is let in sooner when it wakes up, and has
 * no more time in all. Nothing happens under another scheduling class than the default, in
 * which case the user has decided, and under Linux before 6.12. False: not done.
 */
bool processor_slice(uint64_t ns);
/* Go on on another processor, if there is one that the thread may use. */
bool processor_leave(void);

#endif /* SKUA_HOST_PROCESSOR_H */
