#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Connections by addresses between two Skua devices: rping checks what it gets.
. "$(dirname "$0")/../../drivers/net/skua/lib.sh"
. "$(dirname "$0")/pair.sh"

# The device of a connection is that of its namespace's netdev
ping_rdma()
{
	pair 0 "rping -s -a $1 -C 10 -V" "rping -c -a $1 -C 10 -V"
}

rdma_setup
need rping
tap "rping, IPv4" ping_rdma 192.0.2.1
tap "rping, IPv6" ping_rdma 2001:db8::1
tap_end
