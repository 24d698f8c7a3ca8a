# SPDX-License-Identifier: GPL-2.0
"""skua run --plot: the counters of all devices while the programs run, as CSV and plots.

In the VM this file is a program: plots.py FILE SECONDS writes a line of FILE for each device, now,
every so many seconds, and once more when it is told to end (SIGTERM)."""

import csv
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import top

# What is shown: the column's name, and the counters whose sum it is
RATES = {"tx_gbit_s": ("tx_bytes",), "rx_gbit_s": ("rx_bytes",),
         "tx_packets_s": ("tx_pkts",), "rx_packets_s": ("rx_pkts",), "requests_s": top.MESSAGES,
         "retransmitted_s": ("tx_retrans_pkts",), "timeouts_s": ("local_ack_timeout_err",),
         "out_of_sequence_s": ("out_of_sequence",), "marked_s": ("rp_cnp_handled",)}

# Each device is a block of the data, parted by two empty lines
GNUPLOT = """
set terminal pngcairo size 900,900 noenhanced
set output "rates.png"
set grid
set key outside right top
set lmargin 10
set rmargin 30
set offsets 0, 0, graph 0.05, 0
set xrange [0:*]
set yrange [0:*]
set multiplot layout 3,1
set ylabel "Gbit/s"
plot {devices} u 1:3 w lines t {name}." sends"
set ylabel "packets/s"
plot {devices} u 1:5 w lines t {name}." sends"
set xlabel "seconds"
set ylabel "events/s"
plot {devices} u 1:8 w lines t {name}.": sent again", {devices} u 1:9 w lines t {name}.": timeouts", \\
	{devices} u 1:10 w lines t {name}.": out of sequence"
"""


def sampler(path, seconds, debugfs="/sys/kernel/debug/skua"):
    # Blocked, so that it is seen only between two lines
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    first, names, over = None, None, None
    with open(path, "w", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        while True:
            for addr, name in top.devices(debugfs):
                now = top.sample(debugfs, addr, False)
                if now is None:
                    continue
                if names is None:
                    first, names = now[0], sorted(now[1])
                    out.writerow(["seconds", "device", *names])
                out.writerow([f"{now[0] - first:.4f}", name, *(now[1].get(n, 0) for n in names)])
            f.flush()
            if over:
                return
            over = signal.sigtimedwait({signal.SIGTERM}, seconds)


def rates(samples):
    """Rows of RATES, for each device between every two of its samples; the time is the later one's."""
    last = {}
    for now in samples:
        was = last.get(now["device"])
        last[now["device"]] = now
        seconds = float(now["seconds"]) - float(was["seconds"]) if was else 0
        if seconds <= 0:
            continue
        row = {"seconds": now["seconds"], "device": now["device"]}
        for name, counters in RATES.items():
            # Counters begin anew after a reset
            rise = sum(max(int(now.get(c) or 0) - int(was.get(c) or 0), 0) for c in counters)
            scale = 8e-9 if name.endswith("gbit_s") else 1
            row[name] = f"{rise * scale / seconds:.6g}"
        yield row


def draw(top_dir, path, rows):
    """rates.png in the directory, by gnuplot in the Debian tree. None, or what it says."""
    devices = sorted({r["device"] for r in rows})
    if not devices:
        return "no two samples"
    data = f"{path}/.rates"
    with open(data, "w", encoding="utf-8") as f:
        for dev in devices:
            for r in rows:
                if r["device"] == dev:
                    f.write(" ".join(r.values()) + "\n")
            f.write("\n\n")
    names = " ".join(devices)
    script = GNUPLOT.replace("{devices}", f'for [i=0:{len(devices) - 1}] ".rates" index i') \
        .replace("{name}", f'word("{names}", i + 1)')
    done = subprocess.run([f"{top_dir}/tools/vm/enter", "-b", f"{path}:/mnt", "-C", "/mnt", "--",
                           "gnuplot"], input=script, text=True, capture_output=True, check=False)
    os.remove(data)
    return done.stdout + done.stderr if done.returncode else None


def plot(top_dir, samples, path):
    """counters.csv, rates.csv and rates.png in the directory. None, or why not."""
    os.makedirs(path, exist_ok=True)
    try:
        shutil.copy(samples, f"{path}/counters.csv")
    except FileNotFoundError:
        return "the VM has left no samples"
    with open(samples, encoding="utf-8", newline="") as f:
        rows = list(rates(csv.DictReader(f)))
    with open(f"{path}/rates.csv", "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, ["seconds", "device", *RATES], lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    return draw(top_dir, os.path.abspath(path), rows)


if __name__ == "__main__":
    sampler(sys.argv[1], float(sys.argv[2]))
