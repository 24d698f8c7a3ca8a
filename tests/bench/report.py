#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""report.py DIR: medians of DIR/results.csv (see compare) as a table with ratios, as CSV,
and as plots."""

import csv
import os
import re
import statistics
import subprocess
import sys

STACKS = ["skua", "rxe", "siw", "rxe/skua", "veth", "memcpy"]
SWEEPS = {"write": ("bandwidth", "MiB/s"), "write latency": ("latency", "us")}
# The path MTU that RoCE makes of a netdev's
PATH_MTU = {4200: 4096, 1500: 1024}


def medians(path):
    """{(MTU, row, unit): {stack: (median, how many, how many failed)}}"""
    values = {}
    with open(path, newline="") as f:
        for mtu, row, unit, stack, _, value in csv.reader(f):
            cell = values.setdefault((int(mtu), row, unit), {}).setdefault(stack, ([], []))
            if value == "failed":
                cell[1].append(1)
            else:
                cell[0].append(float(value))
    return {key: {s: (statistics.median(v) if v else None, len(v), len(bad))
                  for s, (v, bad) in cells.items()}
            for key, cells in values.items()}


def number(value):
    if value is None:
        return "failed"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def ratio(unit, ours, theirs):
    """How many times better the first is"""
    if not ours or not theirs:
        return None
    return theirs / ours if unit in ("us", "instructions") else ours / theirs


def is_sweep(row):
    return re.fullmatch(r"write( latency)? \d+", row)


def table(data, out):
    rows = [(k, c) for k, c in data.items() if not is_sweep(k[1]) and "memcpy" not in c]
    stacks = [s for s in STACKS if any(s in c for _, c in rows)]
    print(f"{'path MTU':>8} {'':26} {'unit':>12}" + "".join(f"{s:>10}" for s in stacks) +
          "".join(f"{'x ' + s:>12}" for s in stacks[1:]), file=out)
    for (mtu, row, unit), cells in rows:
        ours = cells.get("skua", (None,))[0]
        line = f"{PATH_MTU.get(mtu, mtu):>8} {row:26} {unit:>12}"
        for s in stacks:
            line += f"{number(cells[s][0]) if s in cells else '-':>10}"
        for s in stacks[1:]:
            r = ratio(unit, ours, cells.get(s, (None,))[0])
            line += f"{number(r) if r else '-':>12}"
        failed = sum(c[2] for c in cells.values())
        print(line + (f"  {failed} failed" if failed else ""), file=out)
    for (_, row, unit), cells in data.items():
        if "memcpy" in cells:
            print(f"{'':8} {row:26} {unit:>12}{number(cells['memcpy'][0]):>10}  (host, one thread)",
                  file=out)


def medians_csv(data, out):
    w = csv.writer(out)
    w.writerow(["netdev_mtu", "row", "unit", "stack", "median", "samples", "failed"])
    for (mtu, row, unit), cells in data.items():
        for s, (value, n, bad) in cells.items():
            w.writerow([mtu, row, unit, s, "" if value is None else value, n, bad])


def plot(data, name, title, unit, directory):
    """One plot of a sweep over sizes"""
    stacks = {}
    for (_, row, _), cells in data.items():
        m = re.fullmatch(re.escape(name) + r" (\d+)", row)
        if m:
            for s, (value, _, _) in cells.items():
                if value:
                    stacks.setdefault(s, []).append((int(m.group(1)), value))
    if not stacks:
        return
    script = [
        "set terminal pngcairo size 900,560 noenhanced",
        f"set output '{directory}/{title}.png'",
        "set logscale x 2", "set logscale y", "set grid", "set key left top",
        "set xlabel 'message size in bytes'", f"set ylabel '{unit}'",
        f"set title 'RDMA WRITE, {title}, path MTU 4096'",
    ]
    lines = []
    for s, points in stacks.items():
        block = re.sub(r"\W", "_", s)
        script += [f"${block} << END", *(f"{x} {y}" for x, y in sorted(points)), "END"]
        lines.append(f"${block} with linespoints title '{s}'")
    script.append("plot " + ", ".join(lines))
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)


def main():
    directory = sys.argv[1]
    data = medians(os.path.join(directory, "results.csv"))
    with open(os.path.join(directory, "table.txt"), "w") as f:
        table(data, f)
    with open(os.path.join(directory, "medians.csv"), "w", newline="") as f:
        medians_csv(data, f)
    for name, (title, unit) in SWEEPS.items():
        plot(data, name, title, unit, directory)
    table(data, sys.stdout)


main()
