#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the kernel shows of an RDMA program on a Skua device, and what is left when it was killed.
. "$(dirname "$0")/../../drivers/net/skua/lib.sh"
. "$(dirname "$0")/pair.sh"

# count KIND WHERE: how many objects of the program there are, of a link (QPs) or a device
count()
{
	rdma resource show "$@" | grep -c "pid $pid "
}

gone()
{
	! rdma resource show qp link "$ib1/1" | grep -q "pid $pid "
}

shown()
{
	server ibv_rc_pingpong -d "$ib1" -g "$gid1" >"$log.server" 2>&1 &
	server=$!
	wait_for 20 listening 18515 || return
	pid=$(rdma resource show qp link "$ib1/1" | sed -n 's/.* pid \([0-9]*\) comm ibv_rc.*/\1/p' | head -n 1)
	rdma resource show qp link "$ib1/1"
	[ -n "$pid" ] && [ "$(count qp link "$ib1/1")" = 1 ] &&
		[ "$(count cq dev "$ib1")" -ge 1 ] && [ "$(count mr dev "$ib1")" -ge 1 ]
}

killed()
{
	[ -n "$pid" ] || return
	kill -KILL "$pid" && wait_for 20 gone
}

sent()
{
	rdma -j statistic show link "$ib1/1" | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["tx_send_msgs"])'
}

counted()
{
	local before after

	before=$(sent)
	pair 18515 "ibv_rc_pingpong -d $ib1 -g $gid1 -n 100" \
		"ibv_rc_pingpong -d $ib2 -g $gid2 -n 100 192.0.2.1" || return
	after=$(sent)
	echo "$before, $after"
	[ "$after" -ge $((before + 100)) ]
}

rdma_setup
need ibv_rc_pingpong python3
need_provider
pid= server=
tap "a program's objects are shown" shown
tap "none is left when it was killed" killed
# Where it was not seen it is still there
kill "$server" 2>/dev/null
tap "messages are counted" counted
rm -f "$log.server"
tap_end
