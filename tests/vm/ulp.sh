# SPDX-License-Identifier: GPL-2.0
# Shared by the tests of kernel consumers, both ends of which are in one network namespace;
# sourced by bash.
# shellcheck shell=bash
TARGET=10.90.0.1 HOST=10.90.0.2
NVMET=/sys/kernel/config/nvmet LIO=/sys/kernel/config/target
RAM=/dev/ram1 MNT=/run/mnt EXPORT=/run/export
# What a limit is multiplied by: a kernel that checks everything is several times as slow
PATIENCE=1
[[ $(uname -r) != *-debug ]] || PATIENCE=5

# by_wire DEV TABLE FROM TO: from one address to the other by the wire, though both are local
by_wire()
{
	ip route add "$4/32" dev "$1" src "$3" table "$2" &&
	ip rule add pref 1 iif lo from "$3" to "$4" lookup "$2" &&
	ip rule add pref 2 oif "$1" from "$3" to "$4" lookup "$2"
}

# Kernel consumers know the first network namespace only: both functions are in that
addresses()
{
	NET1=$(skua_netdev 1) NET2=$(skua_netdev 2)
	for f in /proc/sys/net/ipv4/conf/{all,"$NET1","$NET2"}; do
		echo 0 >"$f/rp_filter" && echo 1 >"$f/accept_local" && echo 1 >"$f/arp_ignore"
	done
	ip addr add $TARGET/24 dev "$NET1" && ip addr add $HOST/24 dev "$NET2" &&
	ip link set "$NET1" up && ip link set "$NET2" up &&
	by_wire "$NET1" 101 $TARGET $HOST && by_wire "$NET2" 102 $HOST $TARGET &&
	ip rule add pref 100 lookup local && ip rule del pref 0 &&
	need "ping" until_true 20 ping -c 1 -W 1 -q -I $HOST $TARGET
}

# Consumers that name no source address: to the target by the wire, too
any_source()
{
	ip rule add pref 3 iif lo to $TARGET lookup 102
}

# target [DISK PI]: NVMe's; PI is 1 if that disk is offered with its protection information
target()
{
	local sub=$NVMET/subsystems/skua port=$NVMET/ports/1 disk=${1-/dev/ram0} pi=${2-0}

	modprobe -a nvmet nvmet-rdma nvme-rdma && modprobe brd rd_nr=1 rd_size=65536 || return
	[ -e $NVMET ] || mount -t configfs configfs /sys/kernel/config || return
	mkdir $sub && echo 1 >$sub/attr_allow_any_host && echo "$pi" >$sub/attr_pi_enable &&
	mkdir $sub/namespaces/1 && printf %s "$disk" >$sub/namespaces/1/device_path &&
	echo 1 >$sub/namespaces/1/enable &&
	mkdir $port && echo "$pi" >$port/param_pi_enable &&
	echo rdma >$port/addr_trtype && echo ipv4 >$port/addr_adrfam &&
	echo $TARGET >$port/addr_traddr && echo 4420 >$port/addr_trsvcid &&
	ln -s $sub $port/subsystems/
}

# first_disk NAME: of those that the kernel calls so, in DISK
first_disk()
{
	local d

	for d in /sys/block/"$1"*; do
		[ -e "$d" ] && DISK=/dev/${d##*/} && [ -b "$DISK" ] && return
	done
	return 1
}

disk()
{
	first_disk nvme
}

connect()
{
	printf 'transport=rdma,traddr=%s,host_traddr=%s,trsvcid=4420,nqn=skua,reconnect_delay=1,ctrl_loss_tmo=120,nr_io_queues=2' \
		$TARGET $HOST >/dev/nvme-fabrics && until_true 20 disk
}

disconnect()
{
	local c

	for c in /sys/class/nvme/nvme*; do
		echo 1 >"$c/delete_controller" || return
	done
	PORT_WENT=1
	rm $NVMET/ports/1/subsystems/skua && rmdir $NVMET/ports/1 &&
	rmdir $NVMET/subsystems/skua/namespaces/1 $NVMET/subsystems/skua
}

# ---- I/O that looks at every block ------------------------------------------------------

# verify FILE BYTES BLOCK [FIO-OPTION...]: written at random, read back, and compared
verify()
{
	local file=$1 size=$2 bs=$3
	shift 3

	timeout $((200 * PATIENCE)) fio --name=verify --filename="$file" --size="$size" \
		--bs="$bs" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite \
		--verify=crc32c --verify_fatal=1 --do_verify=1 --randseed=7 \
		--output-format=terse --terse-version=3 "$@" \
		</dev/null >"$TMP/fio" 2>&1 || { echo "fio: exit $?"; cat "$TMP/fio"; return 1; }
}

# endless_io FILE: verified in the background, again and again, until it fails or is ended
endless_io()
{
	timeout $((200 * PATIENCE)) fio --name=endless --filename="$1" --size=8M --bs=64k --direct=1 \
		--ioengine=libaio --iodepth=4 --rw=randrw --verify=crc32c --verify_fatal=1 \
		--verify_backlog=16 --time_based --runtime=$((180 * PATIENCE)) --output-format=terse \
		</dev/null >"$TMP/io.log" 2>&1 &
	PID[io]=$!
	need "I/O" moves 20
}

beyond()
{
	kill -0 "${PID[io]}" 2>/dev/null && [ "$(counted tx_bytes)" -gt "$1" ]
}

# moves SECONDS: data are on the wire by then, of the I/O under way
moves()
{
	until_true $(($1 * PATIENCE)) beyond $(($(counted tx_bytes) + 2000000)) ||
		{ cat "$TMP/io.log"; return 1; }
}

# The I/O under way ends by itself
ends_with_error()
{
	local rc=0

	ended io $((60 * PATIENCE)) || rc=$?
	case $rc in
	0) echo "I/O ends without an error"; return 1 ;;
	124 | 137) echo "I/O does not end"; return 1 ;;
	esac
}

# The SCSI disk of the initiator
scsi()
{
	first_disk sd
}

# scsi_disk MODULE...: a RAM disk as a SCSI disk of the target, for transports of these modules
scsi_disk()
{
	modprobe -a target_core_mod target_core_iblock sd_mod "$@" || return
	[ -e $LIO ] || mount -t configfs configfs /sys/kernel/config || return
	mkdir -p $LIO/core/iblock_0/disk && echo "udev_path=$RAM" >$LIO/core/iblock_0/disk/control &&
	echo 1 >$LIO/core/iblock_0/disk/enable
}

# The kernel tells of one error of DMA, and then of none until it is asked for the next
next_dma_error()
{
	local f=/sys/kernel/debug/dma-api/num_errors

	[ ! -e $f ] || echo 1 >$f
}

# checks_on: the kernel's checks turn themselves off when they are out of room, or after a report; as
# lockdep may when a port of NVMe's target went (tools/vm/guest/splats)
checks_on()
{
	local dma=/sys/kernel/debug/dma-api/disabled

	[ ! -e /proc/lockdep_stats ] || [ -n "${PORT_WENT-}" ] ||
		need "lockdep" grep -Eq '^ debug_locks: +1$' /proc/lockdep_stats || return
	[ ! -e $dma ] || need "DMA-API debug" grep -qx N $dma
}

# ---- what is left behind ---------------------------------------------------------------

# The RDMA core keeps the CQs that its consumers share until the device goes
objects_but_cqs()
{
	objects | sed 's/ cq [0-9]*//g'
}

remember_but_cqs()
{
	objects_then=$(objects_but_cqs)
}

objects_but_cqs_returned()
{
	as_then "$objects_then" "$(objects_but_cqs)"
}
