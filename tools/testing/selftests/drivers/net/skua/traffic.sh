#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Frames between two Skua devices: IPv4, IPv6, greater MTUs, TCP with and without offloads.
. "$(dirname "$0")/lib.sh"

# Some megabytes there and the same back, as a stream and with their checksum
transfer()
{
	local server rc=0

	server python3 -c '
import hashlib, socket
s = socket.create_server(("192.0.2.1", 5001))
print("ready", flush=True)
c = s.accept()[0]
h = hashlib.sha256()
while True:
    data = c.recv(1 << 16)
    if not data:
        break
    h.update(data)
c.sendall(h.digest())' >"$log.server" 2>&1 &
	server=$!
	wait_for 20 grep -q ready "$log.server" || rc=1
	in2 timeout 60 python3 -c '
import hashlib, os, socket
c = socket.create_connection(("192.0.2.1", 5001))
h = hashlib.sha256()
for i in range(64):
    data = os.urandom(1 << 16)
    h.update(data)
    c.sendall(data)
c.shutdown(socket.SHUT_WR)
assert c.recv(64) == h.digest(), "other data came"' || rc=1
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server || rc=1
	[ $rc = 0 ] || cat "$log.server"
	rm -f "$log.server"
	return $rc
}

mtu()
{
	in1 ip link set "$net1" mtu "$1" && in2 ip link set "$net2" mtu "$1" &&
		wait_for 10 in2 ping -q -c 1 -W 1 -M "do" -s $(($1 - 28)) 192.0.2.1 || return
	! in2 ping -q -c 1 -W 1 -M "do" -s $(($1 - 27)) 192.0.2.1
}

without_offloads()
{
	local f rc=0

	for f in tso gro rx tx; do
		in2 ethtool -K "$net2" $f off && in1 ethtool -K "$net1" $f off || rc=1
	done
	transfer || rc=1
	for f in tx rx gro tso; do
		in2 ethtool -K "$net2" $f on && in1 ethtool -K "$net1" $f on || rc=1
	done
	return $rc
}

skua_setup
need python3 ethtool
tap "IPv4" in2 ping -q -c 3 -i 0.2 -W 5 192.0.2.1
tap "IPv6" in2 ping -q -6 -c 3 -i 0.2 -W 5 2001:db8::1
tap "an MTU of 9000" mtu 9000
tap "an MTU of 1500" mtu 1500
tap "TCP" transfer
tap "TCP without offloads" without_offloads
tap_end
