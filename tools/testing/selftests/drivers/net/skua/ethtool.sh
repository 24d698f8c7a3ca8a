#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Settings of a Skua netdev, with traffic after each of them; all are set back.
. "$(dirname "$0")/lib.sh"

# value OPTION "NAME": what ethtool shows now; of -l and -g the second one
value()
{
	in1 ethtool "$1" "$net1" | sed -n "s/^$2:[[:space:]]*//p" | tail -n 1
}

driver()
{
	in1 ethtool -i "$net1" | tee /dev/stderr | grep -qx 'driver: skua_en' &&
		in1 ethtool -i "$net1" | grep -qx "bus-info: $pci1"
}

# changed SHOW NAME SET PARAM VALUE: what is shown as NAME becomes VALUE, and what it was before
changed()
{
	local was

	was=$(value "$1" "$2")
	in1 ethtool "$3" "$net1" "$4" "$5" && [ "$(value "$1" "$2")" = "$5" ] && reached 10 || return
	[ "$was" = "$5" ] || in1 ethtool "$3" "$net1" "$4" "$was"
	reached 10
}

too_much()
{
	! in1 ethtool -L "$net1" combined 100000 && ! in1 ethtool -G "$net1" rx 100000000 && reached 10
}

counts()
{
	local before after name=/sys/class/net/$net1/statistics/rx_packets

	before=$(in1 cat "$name")
	in2 ping -q -c 5 -i 0.2 -W 5 192.0.2.1 || return
	after=$(in1 cat "$name")
	echo "$before, $after"
	[ "$after" -ge $((before + 5)) ]
}

down_and_up()
{
	in1 ip link set "$net1" down && ! in2 ping -q -c 1 -W 1 192.0.2.1 &&
		in1 ip link set "$net1" up && wait_for 10 carrier "$ns1" "$net1" && reached 10
}

skua_setup
need ethtool
tap "driver and bus are told" driver
tap "one channel, and all again" changed -l Combined -L combined 1
tap "another ring size, and back" changed -g RX -G rx 256
tap "more than there is is refused" too_much
tap "received frames are counted" counts
tap "down and up" down_and_up
tap_end
