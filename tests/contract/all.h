/* SPDX-License-Identifier: GPL-2.0 */
/* The whole device interface and the uverbs ABI. */
#include <errno.h>
#include <stddef.h>

#include <skua/bits.h>
#include <skua/hw/cc.h>
#include <skua/hw/cmd.h>
#include <skua/hw/counters.h>
#include <skua/hw/cqe.h>
#include <skua/hw/doorbell.h>
#include <skua/hw/eqe.h>
#include <skua/hw/icm.h>
#include <skua/hw/pci.h>
#include <skua/hw/queue.h>
#include <skua/hw/regs.h>
#include <skua/hw/steer.h>
#include <skua/hw/wqe.h>
#include <rdma/skua-abi.h>
