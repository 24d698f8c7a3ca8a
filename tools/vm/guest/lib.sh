# SPDX-License-Identifier: GPL-2.0
# Helpers for scripts that run in the guest; sourced by bash.
# shellcheck shell=bash
#
# They may be called by scripts with "set -e".
#
# Results are lines "ok NAME", "not ok NAME", "skip NAME: reason" on stdout;
# everything else there is comment.  See tests/run.

KVER=$(uname -r)
NS1=n1 NS2=n2
IP4_1=10.77.0.1 IP4_2=10.77.0.2
IP6_1=fd77::1 IP6_2=fd77::2
TMP=${TMPDIR:-/tmp}
# Programs of our own (tests/vm/progs)
PATH=$PATH:/build/progs

# A case has its output in a file; what ends the script must be seen all the same
exec 3>&1
fatal()
{
	echo "not ok ${CASE:-setup}: $*" >&3
	exit 1
}

# ---- results ---------------------------------------------------------------

failures=0

# wanted NAME: SKUA_ONLY, a pattern, may pick cases by name
wanted()
{
	[ -z "${SKUA_ONLY-}" ] || [[ $1 =~ $SKUA_ONLY ]]
}

# t NAME CMD...: one test case; its output is shown if it fails. What a case did again is
# told by lines "retry: WHY" of its output, which tests/run counts.
t()
{
	local name=$1 log=$TMP/t.$BASHPID rc=0 t_began=$SECONDS
	shift

	wanted "$name" || return 0
	CASE=$name "$@" >"$log" 2>&1 || rc=$?
	if [ $rc = 0 ]; then
		echo "ok $name"
		grep '^retry: ' "$log" | sed 's/^/# /'
	else
		failures=$((failures + 1))
		echo "not ok $name (exit $rc)"
		sed 's/^/# /' "$log"
	fi
	# Where the time goes
	[ $((SECONDS - t_began)) -lt 5 ] || echo "# $((SECONDS - t_began)) s"
	return 0
}

skip()
{
	echo "skip $1: ${*:2}"
}

# The last line of a script: its exit code says whether all passed
done_testing()
{
	[ $failures = 0 ]
	exit
}

# ---- waiting ----------------------------------------------------------------

# late BEGAN SECONDS LOOKS: since BEGAN these seconds have passed, with five looks in each. On a
# busy machine a look takes longer, as all does that one waits for: they become four times as many
# at most.
late()
{
	local passed=$((SECONDS - $1))

	# The second that has begun is no whole one
	[ $passed -gt "$2" ] && { [ "$3" -ge $((5 * $2)) ] || [ $passed -gt $((4 * $2)) ]; }
}

# until_true SECONDS CMD...: poll; the only way anything here waits
until_true()
{
	# CMD sees these names
	local wait_limit=$1 wait_began=$SECONDS wait_looks=0
	shift

	until "$@"; do
		! late $wait_began "$wait_limit" $wait_looks || return 1
		wait_looks=$((wait_looks + 1))
		sleep 0.1
	done
}

# ---- finding devices ----------------------------------------------------------

# pci_of PATH: the PCI address a class device hangs on, whatever is between
pci_of()
{
	readlink -f "$1/device" | grep -oE '[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]' |
		tail -n 1
}

# The identity is declared in one header; read it from there
skua_pci_ids()
{
	awk '/#define SKUA_PCI_VENDOR_ID/ { v = $3 } /#define SKUA_PCI_DEVICE_ID/ { d = $3 }
	     END { print v, d }' /skua/include/skua/hw/pci.h
}

# skua_pci: PCI addresses of the Skua functions, in slot order
skua_pci()
{
	local dev ven id

	read -r ven id < <(skua_pci_ids)
	for dev in /sys/bus/pci/devices/*; do
		[ $(($(<"$dev/vendor"))) = $((ven)) ] &&
			[ $(($(<"$dev/device"))) = $((id)) ] && echo "${dev##*/}"
	done
	return 0
}

# class_on_pci CLASS ADDRESS: names of the class devices on a PCI function
class_on_pci()
{
	local d

	for d in /sys/class/"$1"/*; do
		[ -e "$d/device" ] && [ "$(pci_of "$d")" = "$2" ] && echo "${d##*/}"
	done
	return 0
}

# skua_netdev N, skua_ibdev N: names on the Nth function, counted from 1.
# A netdev that was moved to a namespace is looked for there.
skua_netdev()
{
	local addr ns name

	addr=$(skua_pci | sed -n "$1p")
	[ -n "$addr" ] || return 1
	name=$(class_on_pci net "$addr")
	for ns in $NS1 $NS2; do
		[ -n "$name" ] && break
		[ -e "/run/netns/$ns" ] || continue
		name=$(ip netns exec "$ns" bash -c \
			". /skua/tools/vm/guest/lib.sh; class_on_pci net $addr")
	done
	echo "$name" | grep .
}

skua_ibdev()
{
	local addr

	addr=$(skua_pci | sed -n "$1p")
	[ -n "$addr" ] && class_on_pci infiniband "$addr" | grep .
}

# The virtio-net NIC that "vm run --peer rxe" puts on the wire
peer_netdev()
{
	local d

	for d in /sys/class/net/*; do
		[ "$(cat "$d/address")" = 02:5c:a0:00:01:01 ] && echo "${d##*/}"
	done | grep .
}

# ---- modules -------------------------------------------------------------------

# Make the modules of this checkout known to modprobe, dependencies included; or those in
# SKUA_MODROOT, which are made like them
skua_modules()
{
	local from=${SKUA_MODROOT:-/build/modules-$KVER/modroot}/lib/modules/$KVER
	local to=/usr/lib/modules/$KVER

	[ -d "$from/updates" ] || fatal "no modules were built for $KVER"
	if mountpoint -q "$to"; then
		# a kernel of our own: its module directory is a read-only share
		mount -t overlay -o "lowerdir=$from:$to" overlay "$to"
	else
		cp -r "$from"/. "$to"/
	fi
}

# skua_provider: install it, unless this very build is installed already (installing starts
# twenty processes, each of which costs much in an emulated guest)
skua_provider()
{
	local built installed=/run/skua-provider

	built=$(stat -c '%n %i %.Y' /build/rdma-core-gcc/out/*) &&
		[ "$built" = "$(cat $installed 2>/dev/null)" ] && return
	/skua/tools/rdma-core/install / && echo "$built" >$installed
}

# skua_load [MODULE]...: default all three, and what programs need for them
skua_load()
{
	local m

	skua_modules
	skua_provider || return
	for m in "${@:-skua_core skua_en skua_ib}"; do
		# shellcheck disable=SC2086
		modprobe -a $m || return
	done
	# no udev here that would do it
	modprobe -a ib_uverbs rdma_ucm
}

# ---- two hosts in one guest -------------------------------------------------------

# add_ns NAME NETDEV IP4 IP6 [MTU]: a network namespace with one NIC
add_ns()
{
	local ns=$1 dev=$2 ip4=$3 ip6=$4 mtu=${5-}

	ip netns add "$ns"
	ip -n "$ns" link set lo up
	ip link set "$dev" netns "$ns"
	[ -z "$mtu" ] || ip -n "$ns" link set "$dev" mtu "$mtu"
	ip -n "$ns" addr add "$ip4/24" dev "$dev"
	ip -n "$ns" addr add "$ip6/64" dev "$dev" nodad
	ip -n "$ns" link set "$dev" up
}

link_up()
{
	ip -n "$1" -o link show "$2" | grep -q 'LOWER_UP'
}

wait_link()
{
	until_true 20 link_up "$1" "$2" || fatal "$2 in $1: no link"
}

# skua_pair [MTU]: both Skua NICs, one in each namespace; sets NET1 NET2 IB1 IB2
# and GID1 GID2 (index of the RoCEv2 GID of the IPv4 address)
skua_pair()
{
	NET1=$(skua_netdev 1) || fatal "no first Skua netdev"
	NET2=$(skua_netdev 2) || fatal "no second Skua netdev"
	add_ns $NS1 "$NET1" $IP4_1 $IP6_1 "${1-}"
	add_ns $NS2 "$NET2" $IP4_2 $IP6_2 "${1-}"
	wait_link $NS1 "$NET1"
	wait_link $NS2 "$NET2"
	IB1=$(skua_ibdev 1) || return 0
	IB2=$(skua_ibdev 2) || return 0
	GID1=$(wait_gid "$IB1" $IP4_1) || fatal "$IB1: no GID for $IP4_1"
	GID2=$(wait_gid "$IB2" $IP4_2) || fatal "$IB2: no GID for $IP4_2"
}

# rxe_pair: the same with soft-RoCE over a veth pair, namespaces r1 and r2;
# sets RXE1 RXE2 RGID1 RGID2.  rxe works in shared RDMA namespace mode only, so
# every program must be told its device.
rxe_pair()
{
	modprobe -a veth rdma_rxe ib_uverbs rdma_ucm
	ip link add rv1 mtu 4200 type veth peer name rv2 mtu 4200
	add_ns r1 rv1 10.78.0.1 fd78::1
	add_ns r2 rv2 10.78.0.2 fd78::2
	wait_link r1 rv1
	wait_link r2 rv2
	RXE1=rxe1 RXE2=rxe2
	rxe_add $RXE1 r1 rv1
	rxe_add $RXE2 r2 rv2
	RGID1=$(wait_gid $RXE1 10.78.0.1) || fatal "rxe1: no GID"
	RGID2=$(wait_gid $RXE2 10.78.0.2) || fatal "rxe2: no GID"
}

# rxe_peer IP4 IP6 [MTU]: soft-RoCE on the NIC that shares the Skuas' wire, in
# namespace p1; sets PEER PEER_NET PEER_GID
rxe_peer()
{
	modprobe -a virtio_net rdma_rxe ib_uverbs rdma_ucm
	PEER_NET=$(until_true 10 peer_netdev) || fatal "no peer NIC (vm run --peer rxe)"
	PEER=rxep
	add_ns p1 "$PEER_NET" "$1" "$2" "${3:-4200}"
	wait_link p1 "$PEER_NET"
	rxe_add $PEER p1 "$PEER_NET"
	PEER_GID=$(wait_gid $PEER "$1") || fatal "peer: no GID"
}

rxe_add()
{
	ip netns exec "$2" rdma link add "$1" type rxe netdev "$3"
}

# gid_index IBDEV IP: index of the RoCEv2 GID of an address
gid_index()
{
	local port=/sys/class/infiniband/$1/ports/1 want i

	case $2 in
	*:*) want=$(python3 -c 'import ipaddress, sys
print(ipaddress.ip_address(sys.argv[1]).exploded)' "$2") ;;
	*) want=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${2//./ }) ;;
	esac
	for i in "$port"/gids/*; do
		i=${i##*/}
		if [ "$(<"$port/gids/$i")" = "$want" ] &&
		   [ "$(cat "$port/gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ]; then
			echo "$i"
			return
		fi
	done
	return 1
}

wait_gid()
{
	until_true 20 gid_index "$1" "$2"
}

# ---- servers ----------------------------------------------------------------------

# serve NAME NS CMD...: start in the background; log in $TMP/NAME.log
declare -A PID
serve()
{
	local name=$1 ns=$2
	shift 2

	ip netns exec "$ns" "$@" >"$TMP/$name.log" 2>&1 </dev/null &
	PID[$name]=$!
}

# listening NAME PORT: the server (its namespace) has the TCP port open
listening()
{
	local pid=${PID[$1]}

	kill -0 "$pid" 2>/dev/null || return 0	# ended: the caller finds out
	cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null |
		grep -q "$(printf ':%04X [0-9A-F:]* 0A ' "$2")"
}

# ready NAME PORT: wait until it listens
ready()
{
	until_true 60 listening "$1" "$2" && kill -0 "${PID[$1]}" 2>/dev/null && return
	echo "server $1 is not ready:"
	cat "$TMP/$1.log"
	return 1
}

# waits_for PID: where each thread of a program that does not end is in the kernel, and the
# TCP connections of its namespace
waits_for()
{
	local thread

	for thread in "/proc/$1"/task/*; do
		echo "$(<"$thread/comm") (${thread##*/}) is in:"
		cat "$thread/stack"
	done
	grep -v '^ *sl' "/proc/$1/net/tcp"
} 2>/dev/null

# ended NAME [SECONDS]: wait for its end, give its exit code (124: had to kill it)
ended()
{
	local pid=${PID[$1]} began=$SECONDS looks=0

	while kill -0 "$pid" 2>/dev/null; do
		if late $began "${2:-30}" $looks; then
			waits_for "$pid"
			kill -KILL "$pid"
			wait "$pid"
			return 124
		fi
		looks=$((looks + 1))
		sleep 0.1
	done
	wait "$pid"
}

# stuck SECONDS: what programs wait for that have not ended by then
stuck()
{
	local idle

	exec {idle}<> <(:)
	read -rt "$1" -u $idle || :
	echo "after $1 s:"
	rdma -dd resource show qp
	rdma -dd resource show cq
	rdma statistic show | tr -s ' ' '\n' | paste -d ' ' - - | grep -v ' 0$'
	cat /sys/kernel/debug/skua/*/eqs
}

# pair PORT NS1 "SERVER" NS2 "CLIENT" [SECONDS]: both must succeed
port_in_use=18515
pair()
{
	local port=$1 limit=${6:-120} rc=0 src=0 watch

	# shellcheck disable=SC2086
	serve pair "$2" $3
	ready pair "$port" || return
	stuck $((limit - 2)) &
	watch=$!
	# shellcheck disable=SC2086
	timeout "$limit" ip netns exec "$4" $5 || rc=$?
	kill $watch 2>/dev/null || :
	wait $watch 2>/dev/null || :
	ended pair 10 || src=$?
	if [ $rc != 0 ] || [ $src != 0 ]; then
		echo "client exit $rc, server exit $src; server said:"
		cat "$TMP/pair.log"
		return 1
	fi
}

# ---- the kernel log -----------------------------------------------------------------

# dmesg_clean: no report of the kernel's checks since the last call
dmesg_clean()
{
	local now=$TMP/dmesg.now seen=$TMP/dmesg.seen

	dmesg >"$now"
	[ -e "$seen" ] || : >"$seen"
	tail -n +$(($(wc -l <"$seen") + 1)) "$now" >"$TMP/dmesg.new"
	mv "$now" "$seen"
	! /skua/tools/vm/guest/splats "$TMP/dmesg.new"
}

# kmemleak_clean: no memory that nobody can reach any more, as far as the debug kernel can
# tell, except what the kernel is known to lose; it scans twice, since objects younger than
# 5 s are not reported
kmemleak_clean()
{
	local f=/sys/kernel/debug/kmemleak i

	[ -e $f ] || return 0
	for i in 1 2; do
		# refused if kmemleak has turned itself off
		echo scan >$f || { echo "kmemleak does not scan"; return 1; }
		[ $i = 2 ] || sleep 6
	done
	cat $f >"$TMP/kmemleak" || return
	! /skua/tools/vm/guest/leaks "$TMP/kmemleak"
}

# ---- the harness outside --------------------------------------------------------------

# vm_ctl VERB [ARG]: "model KILL" (any signal), "model cmd-fault SPEC" (or another
# line for the model's control socket), "pause SECONDS" (the model stands still: less than
# QEMU's patience with it), "reset", "qmp JSON"; prints the answer
vm_ctl()
{
	local id=$BASHPID-$RANDOM-$SECONDS end=$((SECONDS + 15)) idle i
	local -a line

	[ -z "${SKUA_SLEEP-}" ] || { vm_ctl_line "$id" "$@"; return; }
	# no program is started here: tests do this often
	exec {idle}<> <(:)
	echo "$id $*" >>/job/ctl
	while [ $SECONDS -lt $end ]; do
		[ ! -e /job/ctl.reply ] || mapfile -t line </job/ctl.reply
		for ((i = ${#line[@]}; i-- > 0;)); do
			[[ ${line[i]} = "$id "* ]] || continue
			echo "${line[i]#* }"
			exec {idle}>&-
			return
		done
		read -rt 0.02 -u "$idle" || :
	done
	exec {idle}>&-
	return 1
}

# The same over the serial port of a guest that may sleep. In a subshell: the port would
# become the terminal of a shell that leads a session, and be hung up for all when it ends.
vm_ctl_line()
(
	local id=$1 line tty lock end=$((SECONDS + 15))

	# Each answer is read by who asked
	exec {lock}>/run/line.lock
	flock $lock
	exec {tty}</dev/ttyS1
	printf '%s\n' "$*" >/run/line
	while [ $SECONDS -lt $end ] && IFS= read -rt 15 -u $tty line; do
		[[ $line = "$id "* ]] || continue
		echo "${line#* }"
		exit
	done
	exit 1
)
