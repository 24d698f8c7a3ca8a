# SPDX-License-Identifier: GPL-2.0
"""skua top: rates of the Skua devices of this machine or VM and of their QPs, from the counters and
contexts that the driver shows in debugfs."""

import os
import re
import shutil
import sys
import time

PSN_MASK, INDEX_MASK = (1 << 24) - 1, (1 << 32) - 1
HEAD_QP = "QP       type     state dest      sent/s   recv/s  sq/s     unacked  rq/s     recovery"
MESSAGES = ("tx_send_msgs", "tx_write_msgs", "tx_read_reqs", "tx_atomic_reqs")
# What of the transport should not be seen on a good wire with good programs
TROUBLE = ("tx_retrans_pkts", "local_ack_timeout_err", "packet_seq_err", "rnr_nak_retry_err",
           "out_of_sequence", "duplicate_request", "out_of_buffer", "rx_icrc_encapsulated",
           "rx_malformed", "rx_no_qp", "rx_bad_state", "rx_bad_resp", "req_cqe_error",
           "resp_cqe_error", "rp_cnp_handled", "page_faults", "cq_overrun", "dma_errors",
           "eth_rx_no_buffer", "eth_tx_errors")


def devices(debugfs):
    """(PCI address, name): the RDMA device's, or else the address."""
    try:
        addrs = sorted(os.listdir(debugfs))
    except OSError as e:
        sys.exit(f"skua: {debugfs}: {e.strerror}; \"skua top\" runs as root where the devices are, "
                 "as in \"skua shell\"")
    found = []
    for addr in addrs:
        try:
            name = os.listdir(f"/sys/bus/pci/devices/{addr}/infiniband")[0]
        except (OSError, IndexError):
            name = addr
        found.append((addr, name))
    return found


def counters(text):
    """The lines NAME VALUE, whatever else a line has before them."""
    return {m[1]: int(m[2]) for m in re.finditer(r"(\w+):?\s+(\d+)$", text, re.M)}


def qps(text):
    """Of each QP its values by the names of the first line, without the words of its context."""
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    rows = [line.split() for line in lines[1:] if line.startswith("0x")]
    return {r[0]: dict(zip(names, r)) for r in rows if len(r) == len(names)}


def sample(debugfs, addr, with_qps):
    """(time, counters, QPs), or None while the device is not up."""
    try:
        with open(f"{debugfs}/{addr}/counters", encoding="utf-8") as f:
            value = counters(f.read())
        now, queues = time.monotonic(), {}
        if with_qps:
            with open(f"{debugfs}/{addr}/qps", encoding="utf-8") as f:
                queues = qps(f.read())
        return now, value, queues
    except OSError:
        return None


def short(rate):
    """At most seven characters."""
    for unit in ("", "k", "M", "G"):
        if rate < 10000:
            break
        rate /= 1000
    text = f"{rate:.0f}" if rate >= 100 or rate == int(rate) else f"{rate:.1f}"
    return text + unit


def device_lines(name, was, now):
    if was is None or now is None:
        return [f"{name}: not up"]
    seconds = now[0] - was[0]

    # Counters begin anew after a reset
    def rate(*names):
        return sum(max(now[1].get(n, 0) - was[1].get(n, 0), 0) for n in names) / seconds

    def gbit(n):
        return f"{rate(n) * 8 / 1e9:.3f}"

    lines = [f"{name}: RoCE tx {gbit('tx_bytes')} rx {gbit('rx_bytes')} Gbit/s, "
             f"tx {short(rate('tx_pkts'))} rx {short(rate('rx_pkts'))} packets/s, "
             f"{short(rate(*MESSAGES))} requests/s",
             f"  Ethernet tx {gbit('eth_tx_bytes')} rx {gbit('eth_rx_bytes')} Gbit/s; PCIe: "
             f"{short(rate('tlp_mwr_tx'))} writes/s, {short(rate('tlp_mrd_tx'))} reads/s, "
             f"{short(rate('sq_doorbells'))} doorbells/s, {short(rate('tlp_msix'))} interrupts/s"]
    trouble = [f"{n} {short(rate(n))}/s" for n in TROUBLE if rate(n) > 0]
    if trouble:
        lines.append("  " + ", ".join(trouble))
    return lines


def qp_rows(was, now):
    """(packets a second, line) of each QP that both samples have."""
    if was is None or now is None:
        return
    seconds = now[0] - was[0]
    for num, q in now[2].items():
        old = was[2].get(num)
        if old is None or old["type"] != q["type"]:
            continue

        def rate(key, mask, q=q, old=old):
            return ((int(q[key]) - int(old[key])) & mask) / seconds

        sent, received = rate("next_psn", PSN_MASK), rate("epsn", PSN_MASK)
        # It was connected anew, and its PSNs are others
        if old["state"] != q["state"] or old["dest"] != q["dest"]:
            sent = received = 0
        waiting = (int(q["next_psn"]) - int(q["una_psn"])) & PSN_MASK
        yield sent + received, (
            f"{num:<9}{q['type']:<9}{q['state']:<6}{q['dest']:<9} {short(sent):>7}  "
            f"{short(received):>7}  {short(rate('sq_ci', INDEX_MASK)):<8} {waiting:<8} "
            f"{short(rate('rq_ci', INDEX_MASK)):<8} {q['recovery']}")


def table(devs, old, new, limit):
    for addr, name in devs:
        yield from device_lines(name, old.get(addr), new.get(addr))
        rows = sorted(qp_rows(old.get(addr), new.get(addr)), key=lambda r: -r[0])
        rows = [r for r in rows if not r[1].split()[1] == "RAW_ETH"]
        if limit and rows:
            yield "  " + HEAD_QP
            yield from ("  " + line for _, line in rows[:limit])
            if len(rows) > limit:
                yield f"  and {len(rows) - limit} more QPs"
        yield ""


def top(o):
    """Redraws a terminal; elsewhere, and with --batch or --once, one table after the other."""
    plain = o.once or o.batch or not sys.stdout.isatty()
    left = 1 if o.once else o.count
    old, shown = None, False
    try:
        while True:
            devs = devices(o.debugfs)
            new = {addr: sample(o.debugfs, addr, o.qps > 0) for addr, _ in devs}
            if old is not None:
                lines = [time.strftime("%H:%M:%S"), *table(devs, old, new, o.qps)]
                if not plain:
                    size = shutil.get_terminal_size()
                    lines = [line[:size.columns - 1] + "\x1b[K" for line in lines[:size.lines - 1]]
                    print("" if shown else "\x1b[2J", end="")
                    print("\x1b[H", end="")
                print("\n".join(lines) + ("" if plain else "\x1b[J"), flush=True)
                shown = True
                left -= 1
                if left == 0:
                    return 0
            old = new
            time.sleep(o.interval)
    except KeyboardInterrupt:
        return 0
