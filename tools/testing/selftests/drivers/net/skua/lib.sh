# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two Skua devices of this machine, each in a network namespace of its own. Sourced by the
# tests here and by those of rdma/skua. Results are TAP; a test that cannot run exits with 4.

readonly ksft_pass=0 ksft_fail=1 ksft_skip=4
ns1= ns2= net1= net2= ib1= ib2= pci1= pci2=
cases=0 failed=0 skipped=0
log=$(mktemp)

skip_all()
{
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

# need PROGRAM...
need()
{
	local p

	for p; do
		command -v "$p" >/dev/null || skip_all "no program $p"
	done
}

# tap NAME CMD...: a case; CMD may return 4, too
tap()
{
	local name=$1 rc=0
	shift

	cases=$((cases + 1))
	"$@" >"$log" 2>&1 || rc=$?
	case $rc in
	0) echo "ok $cases $name" ;;
	$ksft_skip)
		skipped=$((skipped + 1))
		echo "ok $cases $name # SKIP $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		echo "not ok $cases $name"
		sed 's/^/# /' "$log"
		;;
	esac
}

# The last line of a test
tap_end()
{
	echo "1..$cases"
	echo "# Totals: pass:$((cases - failed - skipped)) fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
	[ $failed = 0 ] || exit $ksft_fail
	[ $skipped != "$cases" ] || exit $ksft_skip
	exit $ksft_pass
}

# wait_for SECONDS CMD...: until CMD succeeds
wait_for()
{
	local end=$((SECONDS + $1 + 1))
	shift

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# class_of PCI CLASS: the name of the device of that class on a PCI function
class_of()
{
	find "/sys/bus/pci/devices/$1/" -mindepth 2 -maxdepth 3 -path "*/$2/*" -prune \
		-printf '%f\n' 2>/dev/null | head -n 1
}

in1() { ip netns exec "$ns1" "$@"; }
in2() { ip netns exec "$ns2" "$@"; }

# server CMD...: on the first device, in the background ("server CMD &"). $! is of the timeout,
# not of a subshell, and it passes the signal that ends it on.
server() { exec ip netns exec "$ns1" timeout 60 "$@"; }

cleanup()
{
	local ns net

	rm -f "$log"
	# A netdev of a PCI function goes back where this shell is, not to init's namespace
	for ns in $ns1 $ns2; do
		for net in $net1 $net2; do
			ip -n "$ns" link set "$net" down 2>/dev/null
			ip -n "$ns" link set "$net" netns $$ 2>/dev/null
		done
		ip netns del "$ns" 2>/dev/null
	done
}

# put NS NET N
put()
{
	ip netns add "$1" &&
		ip link set "$2" netns "$1" &&
		ip -n "$1" link set lo up &&
		ip -n "$1" addr add "192.0.2.$3/24" dev "$2" &&
		ip -n "$1" -6 addr add "2001:db8::$3/64" dev "$2" nodad &&
		ip -n "$1" link set "$2" up
}

carrier()
{
	[ "$(ip netns exec "$1" cat "/sys/class/net/$2/carrier" 2>/dev/null)" = 1 ]
}

# reached SECONDS: the first device answers the second one by then
reached()
{
	wait_for "$1" in2 ping -q -c 1 -W 1 192.0.2.1
}

# The devices, and what the tests call them; skipped without two devices that are connected
skua_setup()
{
	local n

	[ "$(id -u)" = 0 ] || skip_all "not root"
	need ip ping
	modprobe -a skua_core skua_en 2>/dev/null
	# shellcheck disable=SC2046
	set -- $(cd /sys/bus/pci/drivers/skua_core 2>/dev/null && echo ????:??:??.?)
	[ $# -ge 2 ] || skip_all "fewer than two Skua devices"
	pci1=$1 pci2=$2
	net1=$(class_of "$pci1" net)
	net2=$(class_of "$pci2" net)
	[ -n "$net1" ] && [ -n "$net2" ] || skip_all "no netdev of $pci1 or $pci2 in this namespace"
	trap cleanup EXIT
	n=$$
	ns1=skua1-$n ns2=skua2-$n
	put "$ns1" "$net1" 1 && put "$ns2" "$net2" 2 || skip_all "no network namespaces"
	wait_for 10 carrier "$ns1" "$net1" && wait_for 10 carrier "$ns2" "$net2" ||
		skip_all "no carrier"
	# Neighbours are found, or the devices are not on one wire
	wait_for 10 in1 ping -q -c 1 -W 1 192.0.2.2 >/dev/null ||
		skip_all "$net1 and $net2 are not connected to each other"
	echo "TAP version 13"
	echo "# $pci1 $net1 and $pci2 $net2"
}

# has_gid IBDEV IP: set gid to the index of the RoCEv2 GID of an IPv4 address
has_gid()
{
	local want i port=/sys/class/infiniband/$1/ports/1

	# shellcheck disable=SC2046
	want=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' $(tr . ' ' <<<"$2"))
	for i in "$port"/gids/*; do
		[ "$(cat "$i" 2>/dev/null)" = "$want" ] &&
			[ "$(cat "$port/gid_attrs/types/${i##*/}" 2>/dev/null)" = "RoCE v2" ] || continue
		gid=${i##*/}
		return 0
	done
	return 1
}

# The RDMA devices of both; they are usable in all namespaces
# shellcheck disable=SC2034
rdma_setup()
{
	skua_setup
	need rdma
	modprobe -a skua_ib ib_uverbs rdma_ucm 2>/dev/null
	ib1=$(class_of "$pci1" infiniband)
	ib2=$(class_of "$pci2" infiniband)
	[ -n "$ib1" ] && [ -n "$ib2" ] || skip_all "no RDMA device of $pci1 or $pci2"
	wait_for 10 has_gid "$ib1" 192.0.2.1 || skip_all "$ib1 has no GID"
	gid1=$gid
	wait_for 10 has_gid "$ib2" 192.0.2.2 || skip_all "$ib2 has no GID"
	gid2=$gid
	echo "# $ib1 GID $gid1 and $ib2 GID $gid2"
}
