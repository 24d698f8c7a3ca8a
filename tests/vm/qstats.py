#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Statistics of a netdev's queues, by the netlink family "netdev".

  qstats.py NETDEV            of each queue: lines "rx 0 packets 123"
  qstats.py --device NETDEV   of the netdev, queues that are gone included: "rx packets 123"
"""
import argparse
import socket
import struct

from genl import NLM_F_DUMP, Family, attr, number

NETDEV_CMD_QSTATS_GET = 12
IFINDEX, QUEUE_TYPE, QUEUE_ID, SCOPE = 1, 2, 3, 4
SCOPE_QUEUE = 1

# enum in include/uapi/linux/netdev.h
NAMES = {8: "rx packets", 9: "rx bytes", 10: "tx packets", 11: "tx bytes",
         12: "rx alloc_fail", 15: "rx csum_complete", 16: "rx csum_unnecessary",
         17: "rx csum_none", 18: "rx csum_bad", 19: "rx hw_gro_packets",
         20: "rx hw_gro_bytes", 21: "rx hw_gro_wire_packets", 22: "rx hw_gro_wire_bytes",
         26: "tx csum_none", 27: "tx needs_csum", 28: "tx hw_gso_packets",
         29: "tx hw_gso_bytes", 30: "tx hw_gso_wire_packets", 31: "tx hw_gso_wire_bytes", 33: "tx stop", 34: "tx wake"}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("netdev")
    p.add_argument("--device", action="store_true")
    o = p.parse_args()
    body = attr(IFINDEX, struct.pack("=I", socket.if_nametoindex(o.netdev)))
    if not o.device:
        body += attr(SCOPE, struct.pack("=I", SCOPE_QUEUE))
    for a in Family("netdev").request(NETDEV_CMD_QSTATS_GET, NLM_F_DUMP, body):
        for kind, name in NAMES.items():
            if kind not in a:
                continue
            side, what = name.split()
            queue = "" if o.device else f" {number(a[QUEUE_ID])}"
            print(f"{side}{queue} {what} {number(a[kind])}")


main()
