#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Statistics of a netdev's queues, by the netlink family "netdev".

  qstats.py NETDEV            of each queue: lines "rx 0 packets 123"
  qstats.py --device NETDEV   of the netdev, queues that are gone included: "rx packets 123"
"""
import argparse
import socket
import struct
import sys

NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
NETDEV_CMD_QSTATS_GET = 12
IFINDEX, QUEUE_TYPE, QUEUE_ID, SCOPE = 1, 2, 3, 4
SCOPE_QUEUE = 1

# enum in include/uapi/linux/netdev.h
NAMES = {8: "rx packets", 9: "rx bytes", 10: "tx packets", 11: "tx bytes",
         12: "rx alloc_fail", 15: "rx csum_complete", 16: "rx csum_unnecessary",
         17: "rx csum_none", 18: "rx csum_bad", 19: "rx hw_gro_packets",
         20: "rx hw_gro_bytes", 21: "rx hw_gro_wire_packets", 22: "rx hw_gro_wire_bytes",
         26: "tx csum_none", 27: "tx needs_csum", 28: "tx hw_gso_packets",
         29: "tx hw_gso_bytes", 33: "tx stop", 34: "tx wake"}


def attr(kind, data):
    raw = struct.pack("=HH", 4 + len(data), kind) + data
    return raw + bytes(-len(raw) % 4)


def attrs(data):
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3fff, data[4:size]
        data = data[(size + 3) & ~3:]


def request(s, family, cmd, flags, body):
    """The attributes of each answer."""
    body = struct.pack("=BBH", cmd, 1, 0) + body
    s.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | flags, 1, 0) + body)
    while True:
        data = s.recv(65536)
        while data:
            size, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_ERROR:
                sys.exit(f"netlink: error {-struct.unpack_from('=i', data, 16)[0]}")
            if kind == NLMSG_DONE:
                return
            yield dict(attrs(data[20:size]))
            if not flags:
                return
            data = data[(size + 3) & ~3:]


def number(raw):
    return int.from_bytes(raw, sys.byteorder)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("netdev")
    p.add_argument("--device", action="store_true")
    o = p.parse_args()
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    s.settimeout(10)
    who = attr(CTRL_ATTR_FAMILY_NAME, b"netdev\0")
    (ctrl,) = request(s, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, who)
    body = attr(IFINDEX, struct.pack("=I", socket.if_nametoindex(o.netdev)))
    if not o.device:
        body += attr(SCOPE, struct.pack("=I", SCOPE_QUEUE))
    for a in request(s, number(ctrl[CTRL_ATTR_FAMILY_ID]), NETDEV_CMD_QSTATS_GET, NLM_F_DUMP,
                     body):
        for kind, name in NAMES.items():
            if kind not in a:
                continue
            side, what = name.split()
            queue = "" if o.device else f" {number(a[QUEUE_ID])}"
            print(f"{side}{queue} {what} {number(a[kind])}")


main()
