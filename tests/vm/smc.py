#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sockets of SMC-R, and what they need to be set up: smc-tools is not in Debian.

  smc.py eid NAME             an enterprise ID: what SMC-Rv2 lets peers agree by
  smc.py pnetid NAME eth|ib DEVICE
                              the physical network of a netdev in this namespace, or, in the
                              first namespace, of an RDMA device
  smc.py server ADDRESS PORT  send back what comes
  smc.py client ADDRESS PORT BYTES [CONNECTIONS]
                              send so many on each, and compare what comes back
  smc.py hold ADDRESS PORT    send and compare for ever
  smc.py sockets              the sockets of this namespace, and their states

Each end asks the kernel whether its connection is one of SMC-R; a fallback to TCP ends it.
"""
import os
import random
import socket
import struct
import sys
import threading

from genl import NLM_F_ACK, NLM_F_DUMP, Family, attr, attrs, messages, netlink

# enums in include/uapi/linux/smc.h and smc_diag.h
IPPROTO_SMC, AF_SMC = 256, 43
SMC_PNETID_ADD, PNETID_NAME, PNETID_ETHNAME, PNETID_IBNAME, PNETID_IBPORT = 2, 1, 2, 3, 4
SMC_NETLINK_ADD_UEID, EID_TABLE_ENTRY, MAX_EID_LEN = 10, 1, 32
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
DIAG_LGRINFO, DIAG_FALLBACK = 2, 5
MODES = ("SMC-R", "TCP", "SMC-D")
# struct smc_diag_req, struct smc_diag_msg, struct smc_diag_linkinfo
DIAG_REQ, DIAG_MSG, LINK_INFO = "=B2xB48x", "=4B48xIQ", "=B64sB40s40s"


def text(raw):
    return raw.rstrip(b"\0").decode()


def diag():
    """What the kernel says of each socket."""
    req = struct.pack(DIAG_REQ, AF_SMC, 1 << (DIAG_LGRINFO - 1))
    return messages(netlink(NETLINK_SOCK_DIAG), SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, req)


def sockets():
    for m in diag():
        _, state, how, _, _, inode = struct.unpack_from(DIAG_MSG, m)
        print(f"state {state}, {MODES[how]}, inode {inode}")


def mode(sock):
    """How the kernel carries the data of a socket."""
    inode = os.fstat(sock.fileno()).st_ino
    for m in diag():
        _, _, how, _, _, ino = struct.unpack_from(DIAG_MSG, m)
        if ino != inode:
            continue
        more = dict(attrs(m[struct.calcsize(DIAG_MSG):]))
        if MODES[how] == "SMC-R" and DIAG_LGRINFO in more:
            _, dev, _, gid, peer = struct.unpack_from(LINK_INFO, more[DIAG_LGRINFO])
            return f"SMC-R by {text(dev)}, {text(gid)} to {text(peer)}"
        why = struct.unpack_from("=II", more.get(DIAG_FALLBACK, bytes(8)))
        return f"{MODES[how]}: reason {why[0]:#x}, the peer's {why[1]:#x}"
    return "not a socket of SMC"


def smc_r(sock):
    how = mode(sock)
    print(how, flush=True)
    return how.startswith("SMC-R by")


def smc_socket():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC)


def connect(sock, address, port):
    sock.connect((address, int(port)))
    if not smc_r(sock):
        os._exit(2)


def echo(conn):
    with conn:
        # The client ends with an error; those that come later are served
        if not smc_r(conn):
            return
        try:
            while data := conn.recv(1 << 17):
                conn.sendall(data)
        except OSError as e:
            print(f"server: {e}", flush=True)


def server(address, port):
    s = smc_socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    s.listen(64)
    while True:
        conn, _ = s.accept()
        threading.Thread(target=echo, args=(conn,), daemon=True).start()


def sender(sock, data):
    try:
        sock.sendall(data)
    except OSError as e:
        print(f"client: {e}", flush=True)


def exchange(sock, data):
    """Both ways at once, since neither end has room for all of it."""
    t = threading.Thread(target=sender, args=(sock, data))
    t.start()
    at = 0
    while at < len(data):
        got = sock.recv(1 << 17)
        if not got or got != data[at:at + len(got)]:
            print(f"{'wrong data' if got else 'the end'} at {at}", flush=True)
            os._exit(9 if got else 5)
        at += len(got)
    t.join()


def failed(args):
    print(f"client: {args.exc_value}", flush=True)
    os._exit(5)


def client(address, port, size, count="1"):
    threading.excepthook = failed
    socks = [smc_socket() for _ in range(int(count))]
    for s in socks:
        connect(s, address, port)
    rand = random.Random(int(size))
    work = [threading.Thread(target=exchange, args=(s, rand.randbytes(int(size)))) for s in socks]
    for t in work:
        t.start()
    for t in work:
        t.join()
    for s in socks:
        s.shutdown(socket.SHUT_WR)
        if s.recv(1):
            sys.exit("more than was sent")
        s.close()


def hold(address, port):
    s = smc_socket()
    connect(s, address, port)
    data = random.Random(1).randbytes(1 << 20)
    try:
        while True:
            exchange(s, data)
    except OSError as e:
        print(f"client: {e}", flush=True)
        os._exit(5)


def eid(name):
    entry = name.ljust(MAX_EID_LEN).encode() + b"\0"
    Family("SMC_GEN_NETLINK").request(SMC_NETLINK_ADD_UEID, NLM_F_ACK,
                                      attr(EID_TABLE_ENTRY, entry))


def pnetid(name, kind, device):
    body = attr(PNETID_NAME, name.encode() + b"\0")
    if kind == "eth":
        body += attr(PNETID_ETHNAME, device.encode() + b"\0")
    else:
        body += attr(PNETID_IBNAME, device.encode() + b"\0") + attr(PNETID_IBPORT, b"\1")
    Family("SMC_PNETID").request(SMC_PNETID_ADD, NLM_F_ACK, body)


{f.__name__: f for f in (eid, pnetid, server, client, hold, sockets)}[sys.argv[1]](*sys.argv[2:])
