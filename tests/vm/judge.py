#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Let tshark and scapy, which know nothing of us, judge a capture of the wire."""
import collections
import logging
import struct
import subprocess
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.contrib.roce import BTH                      # noqa: E402
from scapy.layers.inet import IP                        # noqa: E402
from scapy.layers.inet6 import IPv6                     # noqa: E402
from scapy.layers.l2 import Dot1Q                       # noqa: E402
from scapy.utils import PcapNgReader                    # noqa: E402

FILE = sys.argv[1]
# Guesses at what the payload might be find malformed things in random bytes
NO_GUESS = ["--disable-heuristic", "eth_over_ib", "--disable-heuristic", "rpcrdma_infiniband"]
# RC opcodes that the traffic must have had, so that the verdict is about them
EXPECTED = {0x00: "SEND first", 0x01: "SEND middle", 0x02: "SEND last", 0x04: "SEND only",
            0x06: "WRITE first", 0x07: "WRITE middle", 0x08: "WRITE last",
            0x0c: "READ request", 0x0d: "READ response first",
            0x0e: "READ response middle", 0x0f: "READ response last",
            0x11: "acknowledge"}
# Skuas with each other use the selective repeat forms of these (Documentation/wire)
SELECTIVE = 0xc0
EXPECTED |= {SELECTIVE | op: f"{EXPECTED[op]}, selective repeat"
             for op in (0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x0c)}
# Those that may ask for an event at the other end: the last packet of a message alone
SOLICIT = {0x02, 0x03, 0x04, 0x05, 0x09, 0x0b, 0x16, 0x17}
SOLICIT |= {SELECTIVE | op for op in SOLICIT}
failed = False


def case(name, good, *detail):
    global failed
    print("ok" if good else "not ok", name)
    for line in detail if not good else ():
        print("#", line)
    failed |= not good


def tshark(*args):
    r = subprocess.run(["tshark", "-r", FILE, *NO_GUESS, *args],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        case(f"tshark {' '.join(args)}", False, *r.stderr.splitlines())
    return r.stdout.splitlines()


def by_tshark():
    bad = tshark("-Y", "_ws.malformed")
    case("tshark: no malformed packet", not bad, *bad[:20])
    lines = tshark("-Y", "infiniband", "-T", "fields", "-E", "occurrence=f",
                   "-e", "infiniband.bth.opcode")
    seen = collections.Counter(int(x, 0) for x in lines if x)
    case("tshark: RoCE packets", sum(seen.values()) > 200, f"{sum(seen.values())} packets")
    for op, name in EXPECTED.items():
        case(f"tshark: {name}", seen[op] > 0, f"{seen}")


def solicited():
    lines = tshark("-Y", "infiniband", "-T", "fields", "-E", "occurrence=f",
                   "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.se")
    asks = collections.Counter(int(op, 0) for op, se in (x.split() for x in lines if x.strip())
                               if se in ("1", "True"))
    for form, base in (("", 0), (", selective repeat", SELECTIVE)):
        case(f"tshark: solicited events in SEND and WRITE{form}",
             asks[base | 0x02] and asks[base | 0x09], f"{asks}")
    case("tshark: in last packets alone", not set(asks) - SOLICIT, f"{asks}")


def by_scapy():
    right = collections.Counter()
    wrong = []
    for number, pkt in enumerate(PcapNgReader(FILE), 1):
        if BTH not in pkt:
            continue
        family = ("IPv6" if IPv6 in pkt else "IPv4") + (", VLAN" if Dot1Q in pkt else "")
        bth = pkt[BTH]
        if struct.pack("!I", bth.icrc) == bth.compute_icrc(b""):
            right[family] += 1
        else:
            wrong.append(f"packet {number}: {pkt.summary()}")
    case("scapy: every ICRC is right", not wrong, f"{len(wrong)} wrong", *wrong[:10])
    for family in ("IPv4", "IPv6", "IPv4, VLAN"):
        case(f"scapy: {family}, {right[family]} packets", right[family] > 50)


by_tshark()
solicited()
by_scapy()
sys.exit(failed)
