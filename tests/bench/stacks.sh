# SPDX-License-Identifier: GPL-2.0
# In the guest: what is compared, each as two hosts; sourced by bash.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
LIMIT=120

declare -A HOST1 HOST2 DEV1 DEV2 GIDX1 GIDX2 ADDR1 NETDEV1 NETDEV2

# stack NAME NS1 NS2 NET1 NET2 IB1 IB2 IP4_1 [GID1 GID2]
stack()
{
	HOST1[$1]=$2 HOST2[$1]=$3 NETDEV1[$1]=$4 NETDEV2[$1]=$5 DEV1[$1]=$6 DEV2[$1]=$7
	ADDR1[$1]=$8 GIDX1[$1]=${9-} GIDX2[$1]=${10-}
}

# veth_pair NAME NET NS1 NS2
veth_pair()
{
	ip link add "${1}1" mtu 4200 type veth peer name "${1}2" mtu 4200
	add_ns "$3" "${1}1" "10.$2.0.1" "fd$2::1"
	add_ns "$4" "${1}2" "10.$2.0.2" "fd$2::2"
	wait_link "$3" "${1}1"
	wait_link "$4" "${1}2"
}

make_siw()
{
	insmod /build/bench/siw/siw.ko || return
	veth_pair sv 79 s1 s2
	ip netns exec s1 rdma link add siw1 type siw netdev sv1 &&
		ip netns exec s2 rdma link add siw2 type siw netdev sv2 &&
		stack siw s1 s2 sv1 sv2 siw1 siw2 10.79.0.1
}

# soft-RoCE as a user of Skua as a plain NIC: the third and fourth
make_rxe_on_skua()
{
	local n addr net

	for n in 3 4; do
		addr=$(skua_pci | sed -n ${n}p)
		devlink dev param set "pci/$addr" name enable_roce value false cmode driverinit &&
			devlink dev reload "pci/$addr" >/dev/null || return
		net=$(until_true 20 skua_netdev $n) || return
		add_ns "o$((n - 2))" "$net" "10.80.0.$((n - 2))" "fd80::$((n - 2))" 4200
		wait_link "o$((n - 2))" "$net"
		rxe_add "rxeo$((n - 2))" "o$((n - 2))" "$net" || return
		[ $n = 3 ] && NETDEV1[rxe/skua]=$net
	done
	stack rxe/skua o1 o2 "${NETDEV1[rxe/skua]}" "$net" rxeo1 rxeo2 10.80.0.1 \
		"$(wait_gid rxeo1 10.80.0.1)" "$(wait_gid rxeo2 10.80.0.2)"
}

make_stacks()
{
	skua_load && skua_pair 4200 || fatal "no pair"
	stack skua $NS1 $NS2 "$NET1" "$NET2" "$IB1" "$IB2" $IP4_1 "$GID1" "$GID2"
	rxe_pair
	stack rxe r1 r2 rv1 rv2 $RXE1 $RXE2 10.78.0.1 "$RGID1" "$RGID2"
	make_siw || fatal "no siw"
	make_rxe_on_skua || fatal "no soft-RoCE over Skua"
}

# mtu MTU: of all of them
mtu()
{
	local s

	for s in "${!HOST1[@]}"; do
		ip -n "${HOST1[$s]}" link set "${NETDEV1[$s]}" mtu "$1" &&
			ip -n "${HOST2[$s]}" link set "${NETDEV2[$s]}" mtu "$1" || fatal "$s: no MTU $1"
		wait_link "${HOST1[$s]}" "${NETDEV1[$s]}"
		wait_link "${HOST2[$s]}" "${NETDEV2[$s]}"
	done
	MTU=$1
}

# on STACK PROGRAM ARG...: a program of perftest; siw connects by rdma_cm alone
on()
{
	local s=$1 port="-p $port_in_use" gid1='' gid2=''
	shift

	if [ "$s" = siw ]; then
		port+=" -R"
	else
		gid1="-x ${GIDX1[$s]}" gid2="-x ${GIDX2[$s]}"
	fi
	pair $port_in_use "${HOST1[$s]}" "$1 -d ${DEV1[$s]} $gid1 -F $port ${*:2}" \
		"${HOST2[$s]}" "$1 -d ${DEV2[$s]} $gid2 -F $port ${*:2} ${ADDR1[$s]}" $LIMIT
}
