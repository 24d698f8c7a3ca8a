/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BENCH_MARK_H
#define BENCH_MARK_H

/* nopl 0xa05c(%rax,%rax,1) */
#define SKUA_MARK 0x0f, 0x1f, 0x84, 0x00, 0x5c, 0xa0, 0x00, 0x00

#endif
