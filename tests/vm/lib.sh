# SPDX-License-Identifier: GPL-2.0
# Shared by the test scripts here, which run in the guest; sourced by bash.
# shellcheck shell=bash
. /skua/tools/vm/guest/lib.sh

HERE=/skua/tests/vm

# need TEXT CMD...: a step of a case, or the case ends there
need()
{
	local text=$1
	shift

	"$@" || { echo "failed: $text"; return 1; }
}

# in1 CMD, in2 CMD: on the one or the other host
in1() { ip netns exec $NS1 "$@"; }
in2() { ip netns exec $NS2 "$@"; }

# of_queues PREFIX NAME: what "ethtool -S" of the first host has by queue, in sum
of_queues()
{
	in1 ethtool -S "$NET1" |
		awk -v re="^ *$1[0-9]+_$2:" '$0 ~ re { n += $2 } END { print n + 0 }'
}

# restarts: of all queues of the first host
restarts()
{
	of_queues q restarts
}

# ---- counters ------------------------------------------------------------------

# rdma_counter IBDEV NAME: as "rdma statistic" tells it
rdma_counter()
{
	rdma statistic show link "$1/1" | awk -v n="$2" '
		{ for (i = 1; i < NF; i++) if ($i == n) { print $(i + 1); found = 1 } }
		END { exit !found }'
}

# counted NAME: of both RDMA devices together
counted()
{
	echo $(($(rdma_counter "$IB1" "$1") + $(rdma_counter "$IB2" "$1")))
}

# counters_into ARRAY: what all RDMA devices count, added up, by name
counters_into()
{
	local -n into=$1
	local name value

	while read -r name value; do
		into[$name]=$value
	done < <(rdma statistic show | awk '
		{ for (i = 1; i < NF; i += 2) if ($i != "link") sum[$i] += $(i + 1) }
		END { for (n in sum) print n, sum[n] }')
	[ -n "${into[tx_bytes]-}" ]
}

# risen CMD...: how far each counter rose meanwhile is in ROSE
declare -A ROSE
risen()
{
	local name rc=0
	local -A counters_then counters_now

	counters_into counters_then || return
	"$@" || rc=$?
	counters_into counters_now || return
	ROSE=()
	for name in "${!counters_now[@]}"; do
		ROSE[$name]=$((counters_now[$name] - counters_then[$name]))
		[ ${ROSE[$name]} = 0 ] || echo "$name rose by ${ROSE[$name]}"
	done
	return $rc
}

# uses "COUNTER LEAST..." CMD...: CMD passes, and all RDMA devices together count at least so much
uses()
{
	local rc=0 least bad=0 c
	# shellcheck disable=SC2206
	least=($1)
	shift

	risen "$@" || rc=$?
	echo "exit $rc"
	for ((c = 0; c < ${#least[@]}; c += 2)); do
		[ "${ROSE[${least[c]}]}" -ge "${least[c + 1]}" ] || bad=1
	done
	need "$*" [ $rc = 0 ] && need "the wire was used" [ $bad = 0 ]
}

# wire_used BYTES CMD...: CMD moves at least so many over the wire, by RDMA
wire_used()
{
	uses "tx_bytes $1" "${@:2}"
}

# model_stats PORT: the model writes its counters to /job/stats ("--model-arg --stats"), those
# of PORT last, some time after it was asked
model_stats()
{
	rm -f /job/stats
	vm_ctl model USR1 >/dev/null &&
		until_true 20 grep -q "^wire\\.$1\\.fault_flow_evict" /job/stats
}

# eth_counter NS NETDEV NAME: as "ethtool -S" tells it
eth_counter()
{
	ip netns exec "$1" ethtool -S "$2" | awk -v n="$3:" '
		$1 == n { print $2; found = 1 } END { exit !found }'
}

# queue_counter NS NETDEV rx|tx QUEUE|all NAME: of a queue, or of all in sum
queue_counter()
{
	ip netns exec "$1" python3 "$HERE/qstats.py" "$2" |
		awk -v side="$3" -v q="$4" -v n="$5" '
		$1 == side && (q == "all" || $2 == q) && $3 == n { v += $4; found = 1 }
		END { printf "%d\n", v; exit !found }'
}

# device_counter NS NETDEV rx|tx NAME: of the netdev, queues that are gone included
device_counter()
{
	ip netns exec "$1" python3 "$HERE/qstats.py" --device "$2" |
		awk -v side="$3" -v n="$4" '
		$1 == side && $2 == n { print $3; found = 1 } END { exit !found }'
}

# link_counter NS NETDEV NAME: 64-bit statistics of the netdev
link_counter()
{
	ip netns exec "$1" cat "/sys/class/net/$2/statistics/$3"
}

# sets IBDEV: numbers of the sets that there are
sets()
{
	rdma statistic qp show link "$1/1" | grep -o 'cntn [0-9]*' | cut -d ' ' -f 2
}

# device_total IBDEV NAME: what the device has counted, of whatever QPs
device_total()
{
	awk -v n="$2" '$2 == n { print $3; exit }' \
		"/sys/kernel/debug/skua/$(basename "$(readlink "/sys/class/infiniband/$1/device")")/counters"
}

# uncounted IBDEV NAME: what the port tells less what the device has counted
uncounted()
{
	# the kernel keeps what it read for a while
	sleep 0.1
	echo $(($(rdma_counter "$1" "$2") - $(device_total "$1" "$2")))
}

# objects: the RDMA objects of all devices, user space's and the kernel's. The numbers before the
# names, which order them, are others after a reload
objects()
{
	rdma resource show | sed 's/^[0-9]*: //' | sort
}

# icm_in_use: pages of each table that the core has given to the devices, and that
# the devices know of, when nothing waits in a pool for its next use
icm_in_use()
{
	local f

	skua-frmr drain
	for f in /sys/kernel/debug/skua/*/icm; do
		[ -e "$f" ] && echo "$f" && awk 'NR > 1 { print $1, $4, $10 }' "$f"
	done
}

# remember: what is in use now is what objects_returned and icm_returned look for
remember()
{
	objects_then=$(objects)
	icm_then=$(icm_in_use)
}

objects_returned()
{
	as_then "$objects_then" "$(objects)"
}

icm_returned()
{
	as_then "$icm_then" "$(icm_in_use)"
}

as_then()
{
	[ "$1" = "$2" ] || { echo "before: $1"; echo "now: $2"; return 1; }
}

# ---- memory of the guest -----------------------------------------------------------

# A file system that may be frozen, and somewhere for pages to go
odp_disks()
{
	modprobe -q zram num_devices=2 || return 0
	echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon /dev/zram0
	mkdir "$TMP/disk"
	echo 64M >/sys/block/zram1/disksize && modprobe -q ext4 && mkfs.ext4 -q /dev/zram1 &&
		mount /dev/zram1 "$TMP/disk" && disk=(-f "$TMP/disk")
}

# memory_setup: what cases about memory need of the guest; "disk" has the arguments for
# skua-mem
memory_setup()
{
	echo 8 >/proc/sys/vm/nr_hugepages
	ulimit -l unlimited
	disk=()
	odp_disks >/dev/null
}

# ---- traffic that goes on -------------------------------------------------------

# sent_more IBDEV MESSAGES THAN: so many more than THAT
sent_more()
{
	[ "$(rdma_counter "$1" tx_send_msgs)" -gt $(($2 + $3)) ]
}

# sends IBDEV MESSAGES: the device goes on for so many
sends()
{
	until_true 30 sent_more "$1" "$2" "$(rdma_counter "$1" tx_send_msgs)"
}

# ---- RDMA programs on the pair ---------------------------------------------------

# on_pair PROGRAM [ARG]...: the server in $NS1, its client in $NS2, each told its device
# and GID (by the option GIDOPT)
on_pair()
{
	local s c

	s="$1 -d $IB1 ${GIDOPT:--g} $GID1 ${*:2}"
	c="$1 -d $IB2 ${GIDOPT:--g} $GID2 ${*:2} ${TARGET:-$IP4_1}"
	pair $port_in_use $NS1 "$s" $NS2 "$c" "${LIMIT:-60}"
}

pingpong()
{
	on_pair ibv_rc_pingpong "$@"
}

# perf PROGRAM [ARG]...: a perftest program, with PERFOPT as well; the average in PERF
# (MiB/s or us), and how often it ran in RUNS
perf()
{
	local out=$TMP/perf.out rc=0 i

	# It measures the clock first, and where others disturb that it goes on and takes
	# every time to be infinite
	for i in 1 2 3; do
		RUNS=$i
		# shellcheck disable=SC2086
		GIDOPT=-x on_pair "$1" -F ${PERFOPT-} "${@:2}" >"$out" 2>&1 || rc=$?
		cat "$out"
		[ $rc = 0 ] || return 1
		grep -q 'Correlation coefficient' "$out" || break
		echo "retry: $1 could not measure the clock"
	done
	PERF=$(awk '/^ *#bytes/ { head = 1; col = /t_typical/ ? 5 : 4; next }
		head && $1 ~ /^[0-9]+$/ { v = $col; found = 1 }
		END { print v + 0; exit !found }' "$out") || return
	# Little in a long time is 0.00 MiB/s; without a clock that is no result
	[ "$PERF" != 0 ] || ! grep -q 'Correlation coefficient' "$out"
}

# tlp ARG...: tools/tlp, for the model that this VM's NICs are
tlp()
{
	(export -f vm_ctl vm_ctl_line && /skua/tools/tlp --via 'vm_ctl model' "$@")
}

# wire SPEC: the wire's faults from now on; flows begin anew, so that their packets have the same
# fate in each run
wire()
{
	[ "$(vm_ctl model fault off)" = ok ] &&
		{ [ "$1" = off ] || [ "$(vm_ctl model fault "$1")" = ok ]; }
}

# cmd_rules [SPEC]: rules for the commands of the first device, in place of those before; none
cmd_rules()
{
	local answer

	answer=$(vm_ctl model cmd-fault "nic0/off;${1-}") && [ "$answer" = ok ] && return
	echo "rules ${1-}: ${answer:-no answer}"
	return 1
}

# cmd_rules_hit [RULE]: this one, or any, has made somebody suffer
cmd_rules_hit()
{
	local pattern="${1:+$1 seen [0-9]+ }hit [1-9]"

	[[ $(vm_ctl model cmd-fault nic0/show) =~ $pattern ]]
}

# The first host reaches the second one now
ping_once()
{
	in1 ping -q -c 1 -W 1 $IP4_2
}

# selective_repeat true|false: of the first device, which is reloaded and connected anew
selective_repeat()
{
	local addr

	addr=$(skua_pci | head -n 1)
	undo_pair
	need "set" devlink dev param set "pci/$addr" name selective_repeat value "$1" cmode driverinit &&
	need "reload" devlink dev reload "pci/$addr" &&
	need "back" until_true 20 skua_ibdev 1 &&
	skua_pair 4200
}

# has_ended NAME: of what "serve" started
has_ended()
{
	! kill -0 "${PID[$1]}" 2>/dev/null
}

# told_to_end NAME: it was there until then, and ends by SIGTERM
told_to_end()
{
	local rc=0

	kill "${PID[$1]}" 2>/dev/null || echo "$1 has ended already"
	ended "$1" 20 || rc=$?
	echo "$1: exit $rc"
	[ $rc = $((128 + 15)) ]
}

# cm_listens NAME: the server listens at the connection manager, or has ended
cm_listens()
{
	! has_ended "$1" || return 0
	rdma resource show cm_id | grep -q "LISTEN.* pid ${PID[$1]} "
}

# cm_serve "SERVER": in $NS1; it listens as LISTENS, a command, finds out
cm_serve()
{
	# shellcheck disable=SC2086
	serve cms $NS1 $1
	until_true 20 "${LISTENS:-cm_listens}" cms || { echo "does not listen"; return 1; }
}

# cm_pair "SERVER" "CLIENT": the server in $NS1, its client in $NS2; both must end well
cm_pair()
{
	local rc=0 src=0

	cm_serve "$1" || rc=1
	# shellcheck disable=SC2086
	[ $rc != 0 ] || timeout "${LIMIT:-60}" ip netns exec $NS2 $2 || rc=$?
	ended cms 20 || src=$?
	echo "client exit $rc, server exit $src; server said:"
	cat "$TMP/cms.log"
	[ $rc = 0 ] && [ $src = 0 ]
}

# cm_with "SERVER" CMD...: beside a server that goes on until it is told to end, CMD must end well
cm_with()
{
	local rc=0

	cm_serve "$1" || rc=1
	[ $rc != 0 ] || "${@:2}" || rc=$?
	echo "exit $rc"
	told_to_end cms || rc=1
	echo "server said:"
	cat "$TMP/cms.log"
	[ $rc = 0 ]
}

# datagrams_of IBDEV sent|received: as its driver calls them; PEER is soft-RoCE's, if there is one
datagrams_of()
{
	local name=tx_send_msgs

	case $1-$2 in
	"${PEER-}"-sent) name=sent_pkts ;;
	"${PEER-}"-received) name=rcvd_pkts ;;
	*-received) name=rx_send_msgs ;;
	esac
	rdma_counter "$1" $name
}

mc_receives()
{
	has_ended mc || grep -q 'receiving data transfers' "$TMP/mc.log"
}

# multicast GROUP ADDR1 ADDR2 [OPTION...]: host 1 receives what host 2, with these options of
# mckey, sends to the group. mckey's sender destroys its QP without asking whether all is sent,
# which soft-RoCE does later: so others come until all is received, if the first was too quick.
# All that is sent arrives.
multicast()
{
	local rc=0 sender sent got before

	before=$(datagrams_of "$IB2" sent)
	sent=$before got=$(datagrams_of "$IB1" received)
	serve mc $NS1 stdbuf -oL mckey -m "$1" -b "$2" -C 10 -S 1000
	until_true 20 mc_receives || { echo "has not joined"; rc=1; }
	for ((sender = 0; rc == 0 && sender < 15; sender++)); do
		timeout 30 ip netns exec $NS2 mckey -m "$1" -b "$3" -s -C 10 -S 1000 "${@:4}" ||
			rc=$?
		until_true 3 has_ended mc
		if [ $sender = 0 ]; then
			sent=$(($(datagrams_of "$IB2" sent) - sent))
			got=$(($(datagrams_of "$IB1" received) - got))
			echo "sent $sent, received $got"
			[ $got = $sent ] || rc=1
		fi
		! has_ended mc || break
	done
	ended mc 10 || rc=1
	[ "$(datagrams_of "$IB2" sent)" -ge $((before + 10)) ] || { echo "nothing was sent"; rc=1; }
	cat "$TMP/mc.log"
	return $rc
}

# pattern tiny|quick|whole|loss: data of all kinds and sizes, every byte looked at
pattern()
{
	local opt

	case $1 in
	tiny) opt="-q -M 10000" ;;
	quick) opt="-q" ;;
	whole) opt="" ;;
	loss) opt="-q -M 200000 -T 60" ;;
	esac
	# shellcheck disable=SC2086
	port_in_use=18600 LIMIT=240 on_pair skua-pattern ${PATTERNOPT-} $opt
}

# tap NAME CMD...: a program that prints its cases itself, and a plan behind them
tap()
{
	local name=$1 out=$TMP/tap rc=0 cases bad
	shift

	wanted "$name" || return 0
	"$@" >"$out" 2>&1 || rc=$?
	sed -E "/^1\.\./d; s/^(ok|not ok) [0-9]+ - /\1 $name: /" "$out"
	cases=$(grep -cE '^(ok|not ok) ' "$out")
	bad=$(grep -c '^not ok ' "$out")
	if ! grep -qx "1\.\.$cases" "$out" || [ $((rc != 0)) != $((bad > 0)) ]; then
		echo "not ok $name ends before its plan (exit $rc, $cases cases)"
		bad=$((bad + 1))
	fi
	failures=$((failures + bad))
}

# on_ip6 CMD: with the GIDs of the IPv6 addresses
on_ip6()
{
	local g1 g2

	g1=$(wait_gid "$IB1" $IP6_1) && g2=$(wait_gid "$IB2" $IP6_2) || return
	GID1=$g1 GID2=$g2 "$@"
}

# Give back what skua_pair made
undo_pair()
{
	ip netns del $NS1
	ip netns del $NS2
}
