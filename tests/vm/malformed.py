#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RoCE packets with one thing wrong each: the receiver drops them, and the counter
of the reason tells of it. Prints TAP.

  malformed.py NETDEV DMAC IBDEV RTS-QPN INIT-QPN SRC4 DST4 SRC6 DST6

They leave by NETDEV; IBDEV is the receiver's device, with a QP that is connected
to one here and one in INIT.
"""
import socket
import struct
import sys
import time
import zlib

COPIES = 3
SEND_ONLY, WRITE_ONLY, READ_REQUEST, ACK = 0x04, 0x0a, 0x0c, 0x11
UC_SEND_ONLY, RD_SEND_ONLY, UD_SEND_ONLY, RESERVED, VENDOR = 0x24, 0x44, 0x64, 0x1f, 0xdf
SR_SEND_FIRST = 0xc0
RETH = bytes(16)
AETH = bytes(4)

netdev, dmac, ibdev, rts, init = sys.argv[1:6]
src4, dst4 = (socket.inet_aton(a) for a in sys.argv[6:8])
src6, dst6 = (socket.inet_pton(socket.AF_INET6, a) for a in sys.argv[8:10])
rts, init = int(rts), int(init)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip_sum(data):
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    s = (s >> 16) + (s & 0xffff)
    return ~(s + (s >> 16)) & 0xffff


def icrc(l3, l4, v6):
    """Over what no hop changes: the rest counts as ones."""
    l3, l4 = bytearray(l3), bytearray(l4)
    if v6:
        l3[0] |= 0x0f
        l3[1:4] = b"\xff" * 3
        l3[7] = 0xff
    else:
        l3[1] = l3[8] = l3[10] = l3[11] = 0xff
    l4[6:8] = b"\xff\xff"
    l4[8 + 4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + l3 + l4))


def packet(v6, opcode=SEND_ONLY, body=b"data", pad=0, tver=0, qpn=rts, pkey=0xffff, src=None,
           ip_more=0, udp_more=0, frag=0, csum=0, flip=None, tail=b""):
    """One packet; what the arguments change is what is wrong with it."""
    bth = struct.pack("!BBHII", opcode, pad << 4 | tver, pkey, qpn, 0x5a5a5a)
    size = 8 + len(bth) + len(body) + 4
    udp = struct.pack("!HHHH", 0xc123, 4791, size + udp_more, 0)
    if v6:
        l3 = struct.pack("!IHBB", 6 << 28, size + ip_more,
                         17, 64) + (src or src6) + dst6
    else:
        l3 = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size + ip_more,
                         1, frag, 64, 17, 0) + (src or src4) + dst4
        l3 = l3[:10] + struct.pack("!H", ip_sum(l3) ^ csum) + l3[12:]
    l4 = udp + bth + body
    data = bytearray(l3 + l4 + icrc(l3, l4, v6) + tail)
    if flip is not None:
        data[flip] ^= 0x10
    return mac(dmac) + own + (b"\x86\xdd" if v6 else b"\x08\x00") + bytes(data)


def cases():
    bad, crc = "rx_malformed", "rx_icrc_encapsulated"
    for v6 in (False, True):
        for what, counter, kw in (
                ("transport version", bad, {"tver": 1}),
                ("opcode reserved", bad, {"opcode": RESERVED}),
                ("opcode of RD", bad, {"opcode": RD_SEND_ONLY}),
                ("opcode of the manufacturer", bad, {"opcode": VENDOR, "body": bytes(32)}),
                ("opcode of UC to an RC QP", bad, {"opcode": UC_SEND_ONLY}),
                ("opcode of UD to an RC QP", bad, {"opcode": UD_SEND_ONLY, "body": bytes(12)}),
                ("pad without payload", bad, {"body": b"", "pad": 1}),
                ("pad longer than the payload", bad,
                 {"opcode": WRITE_ONLY, "body": RETH, "pad": 2}),
                ("length not aligned", bad, {"body": b"12345"}),
                ("RETH cut short", bad, {"opcode": WRITE_ONLY, "body": RETH[:12]}),
                ("SETH cut short", bad, {"opcode": SR_SEND_FIRST, "body": bytes(4)}),
                ("AETH missing", bad, {"opcode": ACK, "body": b""}),
                ("payload on a READ request", bad,
                 {"opcode": READ_REQUEST, "body": RETH + bytes(4)}),
                ("payload on an ACK", bad, {"opcode": ACK, "body": AETH + bytes(4)}),
                # One that is too long for its frame is no IP packet: the netdev's
                ("IP length too short", bad, {"ip_more": -4}),
                ("UDP length too long", bad, {"udp_more": 4}),
                ("UDP length too short", bad, {"udp_more": -4}),
                ("ICRC", crc, {"flip": -1}),
                ("payload", crc, {"flip": -5}),
                ("BTH", crc, {"flip": 40 + 8 + 11 if v6 else 20 + 8 + 11}),
                ("UDP source port", crc, {"flip": 40 if v6 else 20}),
                ("P_Key", "rx_bad_pkey", {"pkey": 0x1234}),
                ("no such QP", "rx_no_qp", {"qpn": rts ^ 0x800000}),
                ("QP in INIT", "rx_bad_state", {"qpn": init}),
                ("source address of a stranger", "rx_bad_peer",
                 {"src": (src6 if v6 else src4)[:-1] + b"\x77"})):
            # The QP is connected over IPv4: all of IPv6 is a stranger to it
            if not (v6 and counter in ("rx_bad_peer",)):
                yield what, counter, v6, kw
    yield "IP checksum", bad, False, {"csum": 1}
    yield "first fragment", bad, False, {"frag": 0x2000}
    yield "peer's packet over another IP", "rx_bad_peer", True, {}


def counters():
    # A network namespace has a sysfs of its own, without the device: see init's
    top = f"/proc/1/root/sys/class/infiniband/{ibdev}/ports/1/hw_counters/"
    time.sleep(0.02)            # the kernel keeps what it read for 10 ms
    return {n: int(open(top + n).read()) for n in DROPS}


DROPS = ("rx_malformed", "rx_icrc_encapsulated", "rx_bad_pkey", "rx_no_qp", "rx_bad_state",
         "rx_bad_peer", "rx_bad_qkey", "rx_bad_resp")
own = mac(open(f"/sys/class/net/{netdev}/address").read().strip())
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind((netdev, 0))
number = failed = 0
before = counters()
for what, counter, v6, kw in cases():
    for _ in range(COPIES):
        sock.send(packet(v6, **kw))
    want = dict(before)
    want[counter] += COPIES
    end = time.monotonic() + 10
    now = counters()
    while now[counter] < want[counter] and time.monotonic() < end:
        now = counters()
    number += 1
    good = now == want
    failed += not good
    print("ok" if good else "not ok", number, "-", "IPv6:" if v6 else "IPv4:", what, flush=True)
    if not good:
        print("# " + ", ".join(f"{n} {now[n] - before[n]:+}" for n in DROPS if now[n] != before[n])
              + f"; should be {counter} {COPIES:+}")
    before = now
print(f"1..{number}")
sys.exit(failed > 0)
