#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Messages by each transport between two Skua devices, through the provider: the programs of
# libibverbs, which check what they get (the one for XRC cannot).
. "$(dirname "$0")/../../drivers/net/skua/lib.sh"
. "$(dirname "$0")/pair.sh"

# pingpong KIND OPTION...
pingpong()
{
	local prog=ibv_$1_pingpong
	shift

	command -v "$prog" >/dev/null || { echo "no program $prog"; return $ksft_skip; }
	pair 18515 "$prog -d $ib1 -g $gid1 -n 200 $*" "$prog -d $ib2 -g $gid2 -n 200 $* 192.0.2.1"
}

rdma_setup
need_provider
tap "RC" pingpong rc -c
tap "RC with events" pingpong rc -c -e
tap "RC, a long message" pingpong rc -c -s 1000000
tap "UC" pingpong uc -c
tap "UD" pingpong ud -c
tap "SRQ" pingpong srq -c
tap "XRC" pingpong xsrq
tap_end
