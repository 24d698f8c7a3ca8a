# SPDX-License-Identifier: GPL-2.0
# Shared by the tests that lose or reset the first function under traffic; sourced by bash. A
# is its PCI address.
# shellcheck shell=bash

# inject STATUS: the first function reports uncorrectable errors
inject()
{
	python3 - "$A" "$1" <<-'END'
	import re, struct, sys
	dom, bus, dev, fn = (int(x, 16) for x in re.split('[:.]', sys.argv[1]))
	# struct aer_error_inj: function, uncorrectable, correctable, header log, domain
	err = struct.pack('=BBBxII4II', bus, dev, fn, int(sys.argv[2], 16), 0, 0, 0, 0, 0, dom)
	open('/dev/aer_inject', 'wb', buffering=0).write(err)
	END
}

# What devlink says of the first function
health()
{
	devlink health show "pci/$A" reporter fw_fatal
}

# in_health PATTERN
in_health()
{
	[[ $(health 2>/dev/null) =~ $1 ]]
}

# What a user has set and what others know of the first netdev
netdev_state()
{
	ip -n $NS1 -d link show | grep -v '^ *link/.*brd' | sed 's/state [A-Z]* //; s/,NO-CARRIER//'
	ip -n $NS1 addr show | grep -E 'inet|link/' | sed 's/ tentative//'
	tc -n $NS1 qdisc show dev "$NET1" | grep -o '^qdisc .* root'
	ip netns exec $NS1 bash -c "ethtool -l $NET1; ethtool -g $NET1; ethtool -x $NET1
		ethtool -c $NET1; ethtool -k $NET1; cat /proc/net/dev_mcast"
} 2>&1

# All of it other than it is by itself
configure()
{
	undo_pair 2>/dev/null
	need "devices" until_true 30 eval 'skua_netdev 1 && skua_netdev 2 && skua_ibdev 1 &&
		skua_ibdev 2' || return
	skua_pair 4200
	echo 1500 >"/sys/kernel/debug/skua/$A/cmd_timeout_ms"
	in1 ethtool -G "$NET1" rx 128 tx 512 && in1 ethtool -C "$NET1" rx-usecs 7 &&
	in1 ethtool -X "$NET1" weight 3 1 && in1 ethtool -K "$NET1" tso off &&
	tc -n $NS1 qdisc replace dev "$NET1" root handle 7: pfifo limit 321 &&
	ip -n $NS1 link add link "$NET1" name vlan7 type vlan id 7 &&
	ip -n $NS1 addr add 10.79.0.1/24 dev vlan7 && ip -n $NS1 link set vlan7 up &&
	ip -n $NS1 maddr add 01:00:5e:00:00:77 dev "$NET1" || return
	# IPv6 and its groups come by themselves, some time after
	until_true 60 settled_state
}

# The system falls asleep; whoever runs the VM wakes it up
suspend_to_ram()
{
	local before

	before=$(</sys/power/suspend_stats/success)
	echo deep >/sys/power/mem_sleep && echo mem >/sys/power/state &&
	[ "$(</sys/power/suspend_stats/success)" -gt "$before" ]
}

settled_state()
{
	local before=${STATE-}

	STATE=$(netdev_state)
	[ "$STATE" = "$before" ]
}

same_state()
{
	[ "$(netdev_state)" = "$STATE" ]
}

# A stream over one TCP connection, of $TCP_RATE bytes a second (as fast as it can be); every byte
# is looked at, the count is in $TMP/tcp.count
tcp_stream()
{
	cat >"$TMP/stream.py" <<-'END'
	import socket, struct, sys
	how, addr, count, rate = sys.argv[1:]
	# Closed with a reset: what waits for a lost NIC would keep the namespace
	linger = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
	block = bytes(range(251)) * 64
	if how == "server":
	    s = socket.create_server((addr, 5007))
	    c, _ = s.accept()
	    c.setsockopt(*linger)
	    n = 0
	    with open(count, "w") as f:
	        while data := c.recv(len(block)):
	            at = n % 251
	            if data != (block + block)[at:at + len(data)]:
	                sys.exit(f"wrong data at {n}")
	            n += len(data)
	            f.seek(0)
	            f.write(f"{n}\n")
	            f.flush()
	else:
	    c = socket.create_connection((addr, 5007))
	    c.setsockopt(*linger)
	    if rate:	# SO_MAX_PACING_RATE
	        c.setsockopt(socket.SOL_SOCKET, 47, int(rate))
	    while True:
	        c.sendall(block)
	END
	serve tcp_s $NS1 python3 "$TMP/stream.py" server $IP4_1 "$TMP/tcp.count" ""
	# What the one before counted is not to be waited for
	echo 0 >"$TMP/tcp.count"
	ready tcp_s 5007 || return
	serve tcp_c $NS2 python3 "$TMP/stream.py" client $IP4_1 - "${TCP_RATE-}"
	tcp_goes_on
}

tcp_beyond()
{
	[ "$(cat "$TMP/tcp.count")" -gt "$1" ]
}

tcp_goes_on()
{
	until_true 90 tcp_beyond $(($(cat "$TMP/tcp.count" 2>/dev/null || echo 0) + 500000)) &&
		kill -0 "${PID[tcp_s]}" && kill -0 "${PID[tcp_c]}"
} 2>/dev/null

# traffic [N]: N pairs of RDMA programs (2) that would go on for ever; every other one waits
# for events, the others poll, unless ALL_WAIT is set: a program that polls takes a processor.
# So they run when nobody else wants it: devlink, the shell and python do not wait for them.
# Servers s1, s2, ... run on the first function, clients c1, c2, ... on the second. They have
# met by the end of this, and need the netdev no more: a server whose client cannot reach it
# waits for ever, whatever becomes of its RDMA device.
traffic()
{
	local n=${1:-2} i how=(-e "${ALL_WAIT:+-e}")

	for ((i = 1; i <= n; i++)); do
		# shellcheck disable=SC2086
		serve s$i $NS1 nice -n 19 stdbuf -oL ibv_rc_pingpong -d "$IB1" -g "$GID1" -n 100000000 \
			-p $((19000 + i)) ${how[i % 2]}
	done
	for ((i = 1; i <= n; i++)); do
		ready s$i $((19000 + i)) || return
		# shellcheck disable=SC2086
		serve c$i $NS2 nice -n 19 ibv_rc_pingpong -d "$IB2" -g "$GID2" -n 100000000 \
			-p $((19000 + i)) ${how[i % 2]} $IP4_1
	done
	need "programs meet" until_true 60 met "$n" && need "RDMA traffic" sends "$IB2" $((10 * n))
}

# A server tells of its client when they have said all to each other
met()
{
	local i

	for ((i = 1; i <= $1; i++)); do
		grep -q 'remote address' "$TMP/s$i.log" || return
	done
}

kill_all()
{
	local p

	for p in "$@"; do
		[ -n "${PID[$p]-}" ] || continue
		kill -KILL "${PID[$p]}"
		wait "${PID[$p]}"
		unset "PID[$p]"
	done 2>/dev/null
}

# servers_end [SECONDS]: programs on the function that was lost end in time (30): ibv_rc_pingpong
# with its exit code for a failure, since its requests are flushed, or, if it waits for an event,
# since its channel of events has ended. Their clients notice only if they have something
# outstanding.
servers_end()
{
	local p rc bad=0 polls='Failed status Work Request Flushed Error \(5\)'
	local waits="$polls|Failed to get cq_event"
	local -A why=([s1]=$polls [s2]=$waits)

	[ -z "${ALL_WAIT-}" ] || why[s1]=$waits

	for p in s1 s2; do
		rc=0
		ended $p "${1:-30}" || rc=$?
		echo "$p: exit $rc: $(tail -n 2 "$TMP/$p.log" | tr '\n' ' ')"
		[ $rc = 1 ] && grep -qE "${why[$p]}" "$TMP/$p.log" || bad=1
	done
	kill_all c1 c2
	return $bad
}

# It is up, and stays so: nothing is under way any more
is_back()
{
	in_health 'state healthy' && skua_netdev 1 >/dev/null && IB1=$(skua_ibdev 1) &&
	link_up $NS1 "$NET1"
}

# The second function, too: sleep took both away
both_back()
{
	is_back && skua_netdev 2 >/dev/null && IB2=$(skua_ibdev 2) && link_up $NS2 "$NET2"
}

rdma_works()
{
	IB1=$(skua_ibdev 1) && IB2=$(skua_ibdev 2) && GID1=$(wait_gid "$IB1" $IP4_1) &&
	GID2=$(wait_gid "$IB2" $IP4_2) && pingpong -n 20
}

