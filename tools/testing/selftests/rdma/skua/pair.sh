# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A server on the first device and a client on the second one. Sourced by the tests here.

need_provider()
{
	need ibv_devinfo
	ibv_devinfo -d "$ib1" >/dev/null 2>&1 || skip_all "libibverbs has no provider for $ib1"
}

listening()
{
	in1 cat /proc/net/tcp /proc/net/tcp6 | grep -q "$(printf ':%04X [0-9A-F:]* 0A ' "$1")"
}

# pair PORT "SERVER" "CLIENT": both must succeed. PORT 0: the server's connection manager
# listens, which shows in rdma resource
# shellcheck disable=SC2086
pair()
{
	local server rc=0

	server $2 >"$log.server" 2>&1 &
	server=$!
	if [ "$1" = 0 ]; then
		wait_for 20 cm_listening || rc=1
	else
		wait_for 20 listening "$1" || rc=1
	fi
	[ $rc != 0 ] || in2 timeout 60 $3 || rc=1
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server || rc=1
	[ $rc = 0 ] || cat "$log.server"
	rm -f "$log.server"
	return $rc
}

cm_listening()
{
	rdma resource show cm_id | grep -q 'state LISTEN'
}
