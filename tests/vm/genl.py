# SPDX-License-Identifier: GPL-2.0
"""As much of netlink as the tests here need: requests, their answers, generic families."""
import socket
import struct
import sys

NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2


def attr(kind, data):
    raw = struct.pack("=HH", 4 + len(data), kind) + data
    return raw + bytes(-len(raw) % 4)


def attrs(data):
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3fff, data[4:size]
        data = data[(size + 3) & ~3:]


def number(raw):
    return int.from_bytes(raw, sys.byteorder)


def netlink(protocol):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.settimeout(10)
    return s


def messages(s, kind, flags, body):
    """What each answer has behind its header."""
    s.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 1, 0) + body)
    while True:
        data = s.recv(65536)
        while data:
            size, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_ERROR:
                error = -struct.unpack_from("=i", data, 16)[0]
                if error:
                    sys.exit(f"netlink: error {error}")
                return
            if kind == NLMSG_DONE:
                return
            yield data[16:size]
            if not flags:
                return
            data = data[(size + 3) & ~3:]


class Family:
    """A generic family, by its name."""

    def __init__(self, name):
        self.s = netlink(NETLINK_GENERIC)
        self.id = GENL_ID_CTRL
        who = attr(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0")
        (ctrl,) = self.request(CTRL_CMD_GETFAMILY, 0, who)
        self.id = number(ctrl[CTRL_ATTR_FAMILY_ID])

    def request(self, cmd, flags, body):
        """The attributes of each answer."""
        body = struct.pack("=BBH", cmd, 1, 0) + body
        return [dict(attrs(m[4:])) for m in messages(self.s, self.id, flags, body)]
