#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""rds.py serve OWN | messages OWN PEER N BYTES | rdma OWN PEER N BYTES

RDS sockets, reliable datagrams: the client sends what the number of the message makes, the server
sends it back, changed. "rdma": the client lends the server a buffer, which the server READs and
WRITEs by RDMA, and tells of it by a message. Every byte is looked at."""
import ctypes
import mmap
import random
import socket
import struct
import sys

SOL_RDS = 276
CMSG_RDMA_ARGS, CMSG_RDMA_DEST, CMSG_RDMA_MAP, CMSG_RDMA_STATUS = 1, 2, 3, 4
READWRITE, NOTIFY_ME = 0x1, 0x20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
PORT, TIMEOUT, ROOM = 18634, 30, 4 << 20


def content(number, size):
    return random.Random(number).randbytes(size)


def changed(data):
    return bytes(data).translate(bytes(b ^ 0xff for b in range(256)))


def buffer(size):
    mem = mmap.mmap(-1, size)
    return mem, ctypes.addressof(ctypes.c_char.from_buffer(mem))


def rds(own, port):
    sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
    for opt in SO_SNDBUFFORCE, SO_RCVBUFFORCE:
        sock.setsockopt(socket.SOL_SOCKET, opt, ROOM)
    # Not Python's own timeout, with which the kernel would be asked not to block
    for opt in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
        sock.setsockopt(socket.SOL_SOCKET, opt, struct.pack("ll", TIMEOUT, 0))
    sock.bind((own, port))
    return sock


def receive(sock):
    data, control, _, peer = sock.recvmsg(2 << 20, 256)
    return data, {kind: value for level, kind, value in control if level == SOL_RDS}, peer


def by_rdma(sock, peer, cookie, addr, size, flags, text):
    """A message with RDMA before it, from or to the memory of the peer; its end is awaited"""
    local = ctypes.create_string_buffer(struct.pack("=QQ", addr, size))
    args = struct.pack("=7Q", cookie, 0, size, ctypes.addressof(local), 1, flags | NOTIFY_ME, 77)
    sock.sendmsg([text], [(SOL_RDS, CMSG_RDMA_ARGS, args)], 0, peer)
    while True:
        _, control, _ = receive(sock)
        if CMSG_RDMA_STATUS in control:
            token, status = struct.unpack_from("=Qi", control[CMSG_RDMA_STATUS])
            if (token, status) != (77, 0):
                sys.exit(f"RDMA ends with status {status}")
            return


def serve(own):
    sock = rds(own, PORT)
    print("ready", flush=True)
    while True:
        data, control, peer = receive(sock)
        if CMSG_RDMA_DEST not in control:
            sock.sendto(changed(data), peer)
            continue
        cookie, = struct.unpack_from("=Q", control[CMSG_RDMA_DEST])
        size, = struct.unpack("=Q", data)
        mem, addr = buffer(size)
        by_rdma(sock, peer, cookie, addr, size, 0, b"read")
        mem[:] = changed(mem[:])
        by_rdma(sock, peer, cookie, addr, size, READWRITE, b"written")


def messages(sock, peer, count, size):
    for number in range(count):
        data = content(number, size)
        sock.sendto(data, peer)
        back, _, _ = receive(sock)
        if back != changed(data):
            sys.exit(f"message {number}: other bytes came back ({len(back)} of {size})")
    print(f"{count} messages of {size} bytes")


def rdma(sock, peer, count, size):
    mem, addr = buffer(size)
    for number in range(count):
        data = content(number, size)
        mem[:] = data
        cookie = ctypes.c_uint64()
        args = struct.pack("=4Q", addr, size, ctypes.addressof(cookie), READWRITE)
        sock.sendmsg([struct.pack("=Q", size)], [(SOL_RDS, CMSG_RDMA_MAP, args)], 0, peer)
        said = [receive(sock)[0] for _ in range(2)]
        if said != [b"read", b"written"]:
            sys.exit(f"the server says {said}")
        if mem[:] != changed(data):
            sys.exit(f"round {number}: other bytes were written")
        # RDS_FREE_MR
        sock.setsockopt(SOL_RDS, 3, struct.pack("=QQ", cookie.value, 0))
    print(f"{count} buffers of {size} bytes read and written")


def main():
    what, own, *rest = sys.argv[1:]
    if what == "serve":
        serve(own)
        return
    sock, peer = rds(own, PORT + 1), (rest[0], PORT)
    numbers = [int(arg) for arg in rest[1:]]
    if what == "rdma":
        # Memory is registered by the QP of a connection, which there must be
        messages(sock, peer, 1, 8)
        rdma(sock, peer, *numbers)
    else:
        messages(sock, peer, *numbers)


main()
