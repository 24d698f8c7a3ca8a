#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Single frames and datagrams, sent and awaited by the netdev tests.

  frames.py send NETDEV DMAC [--count N]              raw frames, a broadcast behind
  frames.py count NETDEV                              how many arrive before that
  frames.py fill NETDEV DMAC [--count N]              frames past the qdisc, to one queue,
                                                      until it takes no more
  frames.py badsum NETDEV DMAC SRC DST [--count N]    UDP of a wrong checksum
  frames.py mrecv NETDEV GROUP ADDR                   join, print one datagram
  frames.py msend GROUP ADDR [--count N]              datagrams to a group
  frames.py flows SRC DST [--count N]                 datagrams from each of 64 ports
"""
import argparse
import errno
import os
import socket
import struct
import sys

ETYPE = 0x88b5          # for local experiments
LAST = b"that was all"
PORT = 7777
# What the module socket does not have, or not everywhere
SO_SNDBUFFORCE, SOL_PACKET, PACKET_QDISC_BYPASS = 32, 263, 20


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def raw(netdev, etype):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(etype))
    s.bind((netdev, etype))
    return s


def own_mac(netdev):
    return mac(open(f"/sys/class/net/{netdev}/address").read().strip())


def send(o):
    s = raw(o.netdev, ETYPE)
    rest = own_mac(o.netdev) + struct.pack("!H", ETYPE)
    for _ in range(o.count):
        s.send(mac(o.dmac) + rest + bytes(46))
    s.send(b"\xff" * 6 + rest + LAST.ljust(46, b"\0"))


def count(o):
    s = raw(o.netdev, ETYPE)
    s.settimeout(30)
    print("listening", flush=True)
    n = 0
    while True:
        data, addr = s.recvfrom(2048)
        # What this host sends itself is seen here too
        if addr[2] == socket.PACKET_OUTGOING:
            continue
        if data[14:].startswith(LAST):
            break
        n += 1
    print(n)


def fill(o):
    """Byte queue limits do not stop this sender, only a ring that is full does."""
    # The queue is chosen by the frame's hash, and by XPS, if that is set, by the processor
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    s = raw(o.netdev, ETYPE)
    s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
    s.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    frame = mac(o.dmac) + own_mac(o.netdev) + struct.pack("!H", ETYPE) + bytes(46)
    for i in range(o.count):
        try:
            s.send(frame)
        except OSError as e:
            if e.errno != errno.ENOBUFS:
                raise
            print(f"no room for frame {i}")
            return 0
    print(f"{o.count} frames went")
    return 1


def ip_sum(data):
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    s = (s >> 16) + (s & 0xffff)
    return ~(s + (s >> 16)) & 0xffff


def badsum(o):
    s = raw(o.netdev, 0x0800)
    data = bytes(32)
    udp = struct.pack("!HHHH", PORT, PORT, 8 + len(data), 0x1234)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(data), 1, 0, 64, 17, 0,
                       socket.inet_aton(o.src), socket.inet_aton(o.dst))
    head = head[:10] + struct.pack("!H", ip_sum(head)) + head[12:]
    frame = mac(o.dmac) + own_mac(o.netdev) + b"\x08\x00" + head + udp + data
    for _ in range(o.count):
        s.send(frame)


def mrecv(o):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((o.group, PORT))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                 socket.inet_aton(o.group) + socket.inet_aton(o.addr))
    s.settimeout(20)
    print("listening", flush=True)
    print(s.recv(100).decode())


def msend(o):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(o.addr))
    for _ in range(o.count):
        s.sendto(b"hello", (o.group, PORT))


def flows(o):
    for port in range(4000, 4064):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((o.src, port))
        for _ in range(o.count):
            # each refusal that came back ends one call
            try:
                s.sendto(b"flow", (o.dst, PORT))
            except ConnectionRefusedError:
                s.sendto(b"flow", (o.dst, PORT))


def options():
    p = argparse.ArgumentParser()
    sub = p.add_subparsers(required=True)
    for fn, args in ((send, "netdev dmac"), (count, "netdev"),
                     (fill, "netdev dmac"),
                     (badsum, "netdev dmac src dst"),
                     (mrecv, "netdev group addr"), (msend, "group addr"),
                     (flows, "src dst")):
        q = sub.add_parser(fn.__name__)
        q.set_defaults(fn=fn)
        for arg in args.split():
            q.add_argument(arg)
        q.add_argument("--count", type=int, default=10)
    return p.parse_args()


opt = options()
sys.exit(opt.fn(opt))
