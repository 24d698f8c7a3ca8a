#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Start the model and QEMU, watch both, and tell how the command ended.

Runs inside the Debian tree, in a pid namespace that dies with it (see vm and
enter), so nothing here needs to clean up after itself.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

# Nothing is written beside the sources: a package's files are there, which would not go with it
sys.dont_write_bytecode = True
import tsc

HERE = "/skua/tools/vm"
JOB = "/job"
MODEL_CONTROL = "/run/model-control"
LINE = "/run/line.sock"         # a serial port of the guest that may sleep
SWAP = "/run/swap"              # a disk of the guest, which goes with the namespace
MODEL_DIED, HANG, HARNESS, PANIC = 122, 124, 125, 126
BOOT_LIMIT = 120                # seconds until the guest must have come up
BOOT_LIMIT_DEBUG = 240
BOOTS = 3                       # so often is a guest started that the emulator killed


class HarnessError(Exception):
    pass


def say(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def options():
    p = argparse.ArgumentParser(prog="vm")
    p.add_argument("mode", choices=["run", "shell"])
    p.add_argument("--nics", type=int, default=2)
    p.add_argument("--nic-socket", action="append", default=[])
    p.add_argument("--peer", choices=["rxe"])
    p.add_argument("--kernel", default="stock")
    p.add_argument("--kernel-dir")
    p.add_argument("--root")
    p.add_argument("--guest")
    p.add_argument("--apps")
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--iommu", choices=["virtio"])
    p.add_argument("--switch", action="store_true")
    p.add_argument("--sleep", action="store_true")
    p.add_argument("--kexec", action="store_true")
    p.add_argument("--swap", type=int, default=0)
    p.add_argument("--smp", type=int, default=2)
    p.add_argument("--mem", type=int, default=2048)
    p.add_argument("--accel", choices=["tcg", "kvm"])
    p.add_argument("--append", default="")
    p.add_argument("--model-arg", action="append", default=[])
    p.add_argument("--nic-opt", action="append", default=[])
    p.add_argument("--fault")
    p.add_argument("--cmd-fault", action="append", default=[])
    p.add_argument("--caps-off")
    p.add_argument("--pcap")
    p.add_argument("--dir")
    p.add_argument("--qemu-arg", action="append", default=[])
    p.add_argument("--allow-splat", action="store_true")
    p.add_argument("cmd", nargs="*")
    o = p.parse_args()
    if o.nic_socket and (o.peer or o.fault or o.cmd_fault or o.caps_off or o.pcap or
                         o.nic_opt or o.model_arg):
        p.error("with --nic-socket the model is another's: give it such options when it is started")
    o.own_model = o.nics > 0 and not o.nic_socket
    o.nic_socket = o.nic_socket or [f"/run/nic{n}.sock" for n in range(o.nics)]
    o.nics = len(o.nic_socket)
    if o.peer and not o.nics:
        p.error("--peer needs a model on the wire: --nics 1 or more")
    if o.sleep and o.dir:
        p.error("--dir is a share, which a guest that sleeps would lose")
    if o.sleep and o.mode == "shell":
        p.error("--sleep is for run only")
    return o


def output(cmd):
    return subprocess.run(cmd, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Kernel:
    """Where the image and the modules of the chosen kernel are."""

    def __init__(self, name, built, packed=False, guest=None):
        facts = dict(line.split("=", 1)
                     for line in open("/etc/skua-tree").read().split())
        self.modules = None             # a directory to mount in the guest
        self.packed_initrd = None
        if guest:
            self.release = open(f"{guest}/release").read().strip()
            self.image = output([f"{HERE}/mkvmlinux", f"{guest}/bzImage"])
            self.packed_initrd = f"{guest}/initrd"
            return
        if built:
            self.release = open(f"{built}/release").read().strip()
            # KASAN checks what runs at the PVH entry before it has its shadow
            self.image = f"{built}/bzImage"
            self.modules = f"{built}/modules"
            return
        self.release = facts["KV_LTS" if name == "6.12" else "KV_STOCK"]
        for path in (f"/boot/vmlinuz-{self.release}",
                     f"/usr/lib/modules/{self.release}/vmlinuz"):
            if os.path.exists(path):
                self.image = path if packed else output([f"{HERE}/mkvmlinux", path])
                return
        raise HarnessError(f"no image of kernel {self.release} in the tree")

    def initrd(self):
        return self.packed_initrd or output([f"{HERE}/mkinitrd", self.release, self.modules or ""])


# ---- choice of the accelerator ---------------------------------------------

def kvm_runs(kernel):
    """/dev/kvm may open and create VMs and still not run one: boot a guest."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = open("/proc/sys/kernel/random/boot_id").read().strip()
    known = f"/cache/kvm-{boot_id}"
    if not os.path.exists(known):
        cmd = ["qemu-system-x86_64", "-nodefaults", "-no-user-config",
               "-display", "none", "-no-reboot", "-machine", "q35",
               "-accel", "kvm", "-cpu", "host", "-m", "512",
               "-kernel", kernel.image, "-initrd", kernel.initrd(),
               "-append", "console=ttyS0 panic=-1 quiet skua.probe",
               "-serial", "stdio"]
        try:
            r = subprocess.run(cmd, stdin=subprocess.DEVNULL, timeout=10,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            good = b"skua: probe ok" in r.stdout
        except subprocess.TimeoutExpired:
            good = False
        with open(known, "w") as f:
            f.write("yes\n" if good else "no\n")
        say("KVM " + ("works" if good else
                      "is there but runs no guest; emulating instead"))
    return open(known).read() == "yes\n"


# ---- the model --------------------------------------------------------------

class Model:
    def __init__(self, o):
        self.proc = None
        self.expected = False           # its death was asked for
        if not o.own_model:
            return
        binary = os.environ.get("SKUA_MODEL", "/build/model/skua-model")
        if not os.access(binary, os.X_OK):
            raise HarnessError(f"{binary} is not built (make model)")
        more = {}
        for item in o.nic_opt:
            n, opt = item.split(":", 1)
            more[int(n)] = more.get(int(n), "") + "," + opt
        cmd = shlex.split(os.environ.get("SKUA_MODEL_WRAPPER", "")) + [binary]
        for n in range(o.nics):
            mac = "" if "mac=" in more.get(n, "") else f",mac=02:5c:a0:00:00:{n + 1:02x}"
            bus = "" if "bus=" in more.get(n, "") else ",bus=0"
            cmd += ["--nic", f"socket={o.nic_socket[n]}{mac}{bus}{more.get(n, '')}"]
        cmd += ["--control", MODEL_CONTROL]
        if o.peer:
            cmd += ["--dgram", "local=/run/wire-model,remote=/run/wire-qemu"]
        if o.fault:
            cmd += ["--fault", o.fault]
        for spec in o.cmd_fault:
            cmd += ["--cmd-fault", spec]
        if o.caps_off:
            cmd += ["--caps-off", o.caps_off]
        if o.pcap:
            cmd += ["--pcap", o.pcap]
        cmd += o.model_arg
        log = open(f"{JOB}/model.log", "wb")
        log.write((shlex.join(cmd) + "\n").encode())
        log.flush()
        self.proc = subprocess.Popen(cmd, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=log)
        self.wait_ready(log)

    def wait_ready(self, log):
        out = self.proc.stdout
        os.set_blocking(out.fileno(), False)
        deadline = time.monotonic() + 30
        text = b""
        while b"ready" not in text:
            chunk = out.read()
            if chunk:
                text += chunk
                log.write(chunk)
                log.flush()
            elif self.proc.poll() is not None or time.monotonic() > deadline:
                raise HarnessError("the model did not get ready: "
                                   + tail(f"{JOB}/model.log", 10))
            else:
                time.sleep(0.02)
        self.log = log

    def pump(self):
        if self.proc:
            chunk = self.proc.stdout.read()
            if chunk:
                self.log.write(chunk)
                self.log.flush()

    def died(self):
        return self.proc and not self.expected and self.proc.poll() is not None

    def tell(self, line):
        """A line to the control socket; the model's answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.settimeout(10)
            s.bind("")                  # any name, for the answer to find us
            s.connect(MODEL_CONTROL)
            s.send(line.encode())
            return s.recv(1 << 16).decode()

    def signal(self, name):
        if not self.proc:
            return "no model"
        sig = getattr(signal, "SIG" + name)
        self.expected = self.expected or sig not in (signal.SIGSTOP, signal.SIGCONT,
                                                     signal.SIGUSR1, signal.SIGUSR2)
        self.proc.send_signal(sig)
        return "ok"


# ---- QEMU -------------------------------------------------------------------

def share(tag, path, readonly=True):
    ro = ",readonly=on" if readonly else ""
    return ["-fsdev", f"local,id={tag},path={path},security_model=none"
                      f"{ro},multidevs=remap",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def qemu_command(o, kernel):
    accel = o.accel or ("kvm" if kvm_runs(kernel) else "tcg")
    append = ("console=ttyS0 panic=-1 oops=panic mitigations=off quiet loglevel=5 "
              "tsc=reliable no_timer_check watchdog_thresh=30 "
              "rcupdate.rcu_cpu_stall_timeout=90 ")
    if kernel.modules:
        append += "skua.modules "
    if o.apps:
        append += "skua.apps "
    if o.dir:
        append += "skua.work "
    if o.sleep:
        append += "skua.sleep no_console_suspend "
    cmd = [os.environ.get("SKUA_QEMU", "qemu-system-x86_64"), "-nodefaults", "-no-user-config",
           "-display", "none", "-no-reboot", "-name", "skua",
           # guest RAM must be a shared file: the model maps it
           "-machine", "q35,memory-backend=mem",
           "-object", f"memory-backend-memfd,id=mem,size={o.mem}M,share=on",
           "-m", f"{o.mem}M", "-smp", str(o.smp)]
    if accel == "kvm":
        cmd += ["-accel", "kvm", "-cpu", "host"]
    else:
        # Without five levels of page tables: while a kernel that has them looks at its
        # first CPU it takes itself, for a moment, for one that has not, and KASAN then
        # reports an interrupt's accesses. Fewer levels are walked faster, too.
        # Without "fast" string instructions: emulated, they move a byte at a time, and
        # kernel and library copy in words without them.
        cmd += ["-accel", "tcg,thread=multi,tb-size=512", "-cpu",
                "max,la57=off,erms=off,fsrm=off,fsrs=off,fsrc=off,fzrm=off"]
        append += f"tsc_early_khz={tsc.khz()} "
    cmd += ["-kernel", kernel.image, "-initrd", kernel.initrd(),
            "-append", append + o.append,
            "-qmp", "unix:/run/qmp.sock,server=on,wait=off",
            "-device", "virtio-rng-pci"]
    if o.mode == "shell":
        cmd += ["-chardev", "stdio,id=con,signal=off,mux=on",
                "-serial", "chardev:con", "-mon", "chardev=con"]
    else:
        cmd += ["-serial", f"file:{JOB}/console"]
    if o.sleep:
        cmd += ["-chardev", f"socket,id=line,path={LINE},server=on,wait=off",
                "-serial", "chardev:line"]
    if o.iommu:
        cmd += ["-device", "virtio-iommu-pci"]
    # In the order that the guest names them
    for name, path in (("root", o.root), ("apps", o.apps)):
        if path:
            cmd += ["-blockdev", f"driver=raw,node-name={name},read-only=on,"
                                 f"file.driver=file,file.filename={path}",
                    "-device", f"virtio-blk-pci,drive={name}"]
    if o.swap:
        with open(SWAP, "wb") as f:
            f.truncate(o.swap << 20)
        cmd += ["-blockdev", f"driver=raw,node-name=swap,file.driver=file,file.filename={SWAP}",
                "-device", "virtio-blk-pci,drive=swap,serial=swap"]
    cmd += share("skua", "/skua") + share("build", "/build")
    cmd += share("job", JOB, readonly=False)
    if o.dir:
        cmd += share("work", o.dir, readonly=False)
    if kernel.modules:
        cmd += share("modules", kernel.modules)
    if o.switch:
        cmd += ["-device", "pcie-root-port,id=root,chassis=100,slot=100",
                "-device", "x3130-upstream,id=up,bus=root"]
    for n in range(o.nics):
        port = "xio3130-downstream,bus=up" if o.switch else "pcie-root-port"
        cmd += ["-device", f"{port},id=rp{n},chassis={n + 1},slot={n + 1}",
                "-device", json.dumps({
                    "driver": "vfio-user-pci", "id": f"nic{n}", "bus": f"rp{n}",
                    # patience for a model under valgrind or a debugger
                    "x-msg-timeout": int(os.environ.get("SKUA_MSG_TIMEOUT", 5000)),
                    "socket": {"type": "unix", "path": o.nic_socket[n]}})]
    if o.peer:
        cmd += ["-netdev", "dgram,id=wire,local.type=unix,local.path=/run/wire-qemu,"
                           "remote.type=unix,remote.path=/run/wire-model",
                "-device", "virtio-net-pci,netdev=wire,mac=02:5c:a0:00:01:01,"
                           "host_mtu=9000"]
    return cmd + [word for arg in o.qemu_arg for word in shlex.split(arg)]


class Qmp:
    """Just enough of the monitor protocol: one command, one answer."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(path)
        self.file = self.sock.makefile("rw")
        self.file.readline()
        self.do({"execute": "qmp_capabilities"})

    def do(self, command):
        self.file.write(json.dumps(command) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "event" not in answer:
                return answer


# ---- files the guest writes ---------------------------------------------------

class Tail:
    """New bytes of a file that grows; the file may not exist yet."""

    def __init__(self, path):
        self.path, self.fd = path, None

    def read(self):
        if self.fd is None:
            try:
                self.fd = os.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                return b""
        return os.read(self.fd, 1 << 20)


class Line:
    """A serial port of a guest that has no share to write to: lines of its output ("out"),
    of its kernel log ("log"), its exit code ("rc"); all others are for the reader."""

    def __init__(self):
        self.sock, self.rest = None, b""
        self.files = {word: open(f"{JOB}/{name}", "ab", buffering=0)
                      for word, name in ((b"out", "out"), (b"log", "dmesg"))}

    def read(self):
        if not self.sock:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(LINE)
            except OSError:
                return b""              # QEMU has only just started
            sock.setblocking(False)
            self.sock = sock
        try:
            data = self.sock.recv(1 << 20)
        except (BlockingIOError, ConnectionResetError):
            return b""
        *lines, self.rest = (self.rest + data).split(b"\n")
        wishes = b""
        for line in lines:
            word, _, text = line.partition(b" ")
            if word in self.files:
                self.files[word].write(text + b"\n")
            elif word == b"rc":
                with open(f"{JOB}/rc", "wb") as f:
                    f.write(text + b"\n")
            else:
                wishes += line + b"\n"
        return wishes

    def write(self, text):
        self.sock.setblocking(True)
        self.sock.sendall(text.encode())
        self.sock.setblocking(False)


def tail(path, lines):
    try:
        with open(path, errors="replace") as f:
            return "".join(f.readlines()[-lines:])
    except FileNotFoundError:
        return ""


def exists(name):
    return os.path.exists(f"{JOB}/{name}")


def splats():
    """Reports of the kernel's own checks, from log and console."""
    out = subprocess.run([f"{HERE}/guest/splats", f"{JOB}/dmesg", f"{JOB}/console"],
                         stdout=subprocess.PIPE, text=True, errors="replace")
    return out.stdout


# ---- one run -------------------------------------------------------------------

class Run:
    def __init__(self, o):
        self.o = o
        for name in ("dmesg", "console"):
            open(f"{JOB}/{name}", "w").close()
        self.write_job()
        # QEMU loads what is not packed again when the guest wakes up, over what it was
        kernel = Kernel(o.kernel, o.kernel_dir, packed=o.sleep, guest=o.guest)
        if o.kexec:
            shutil.copy(kernel.initrd(), f"{JOB}/initrd")
        self.model = Model(o)
        cmd = qemu_command(o, kernel)
        # Its messages are bounded: a dead model makes it write without end
        self.qemu_err = open(f"{JOB}/qemu.log", "wb")
        self.qemu_err.write((shlex.join(cmd) + "\n").encode())
        self.qemu_err.flush()
        shell = o.mode == "shell"
        self.qemu = subprocess.Popen(
            cmd, stdin=None if shell else subprocess.DEVNULL,
            stdout=None if shell else subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.set_blocking(self.qemu.stderr.fileno(), False)
        self.err_left = 1 << 18
        self.out = Tail(f"{JOB}/out")
        self.ctl = Line() if o.sleep else Tail(f"{JOB}/ctl")
        self.look = 0.0                 # when to look next whether the guest sleeps
        self.ctl_rest = b""
        self.qmp = None
        self.reset_from = 0

    def write_job(self):
        o = self.o
        with open(f"{JOB}/env", "w") as f:
            for k, v in os.environ.items():
                if k.startswith("SKUA_") or k == "TERM":
                    f.write(f"export {k}={shlex.quote(v)}\n")
            f.write(f"export SKUA_NICS={o.nics} SKUA_PEER={o.peer or ''} "
                    f"SKUA_KERNEL={o.kernel} SKUA_TIMEOUT={int(o.timeout)} "
                    f"SKUA_SLEEP={'1' if o.sleep else ''}\n")
        if o.mode == "shell":
            size = shutil.get_terminal_size()
            with open(f"{JOB}/shell", "w") as f:
                f.write(f"{size.lines} {size.columns}\n")
            say("^A x ends the VM, ^A c is QEMU's monitor")
        with open(f"{JOB}/cmd", "w") as f:
            # one word: a shell line; several: a command and its arguments
            f.write((o.cmd[0] if len(o.cmd) == 1 else shlex.join(o.cmd)) + "\n")

    def control(self, line):
        """A wish of the guest: 'ID VERB ARGS'; answered in ctl.reply."""
        ident, _, wish = line.partition(" ")
        verb, _, arg = wish.partition(" ")
        try:
            if verb == "model" and arg in ("KILL", "TERM"):
                answer = self.end_model(arg)
            elif verb == "model" and arg.isupper():
                answer = self.model.signal(arg)
            elif verb == "model":
                answer = self.model.tell(arg)
            elif verb == "pause":
                self.model.signal("STOP")
                time.sleep(float(arg))
                answer = self.model.signal("CONT")
            elif verb == "qmp":
                answer = json.dumps(self.monitor(json.loads(arg)))
            elif verb == "reset":
                self.reset_from = self.boots()
                self.monitor({"execute": "set-action", "arguments": {"reboot": "reset"}})
                answer = json.dumps(self.monitor({"execute": "system_reset"}))
            else:
                answer = f"unknown verb '{verb}'"
        except (OSError, ValueError, AttributeError) as e:
            answer = f"error: {e}"
        if self.o.sleep:
            self.ctl.write(f"{ident} {answer}\n")
            return
        with open(f"{JOB}/ctl.reply", "a") as f:
            f.write(f"{ident} {answer}\n")

    def end_model(self, name):
        """QEMU (11.1 at least) aborts if the model goes while two messages wait for
        room in its socket: hold the guest until the model has read them all."""
        self.monitor({"execute": "stop"})
        time.sleep(0.3)
        answer = self.model.signal(name)
        self.model.proc.wait()
        self.monitor({"execute": "cont"})
        return answer

    def monitor(self, command):
        if not self.qmp:
            self.qmp = Qmp("/run/qmp.sock")
        return self.qmp.do(command)

    def wake(self):
        """Nobody else is there to press the key."""
        if time.monotonic() < self.look:
            return
        self.look = time.monotonic() + 0.2
        if self.monitor({"execute": "query-status"})["return"]["status"] == "suspended":
            self.monitor({"execute": "system_wakeup"})

    def pump(self):
        data = self.out.read()
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        self.model.pump()
        err = self.qemu.stderr.read()
        if err and self.err_left > 0:
            self.qemu_err.write(err[:self.err_left])
            self.qemu_err.flush()
            self.err_left -= len(err)
        self.ctl_rest += self.ctl.read()
        while b"\n" in self.ctl_rest:
            line, self.ctl_rest = self.ctl_rest.split(b"\n", 1)
            self.control(line.decode())
        if self.reset_from and self.boots() > self.reset_from:
            # The reset that was asked for is over: a panic ends the VM again
            self.reset_from = 0
            self.monitor({"execute": "set-action",
                          "arguments": {"reboot": "shutdown"}})
        return bool(data)

    def boots(self):
        return int(tail(f"{JOB}/boots", 1).strip() or 0)

    def watch(self):
        """Until QEMU ends or patience does.  The reason, or None for a plain end."""
        start = time.monotonic()
        limit = BOOT_LIMIT_DEBUG if self.o.kernel.endswith("debug") else BOOT_LIMIT
        booted = False
        while self.qemu.poll() is None:
            self.pump()
            if self.o.sleep and exists("rc"):
                self.qemu.kill()        # it does not power off by itself
                self.qemu.wait()
                return None
            if self.o.sleep and booted:
                self.wake()
            time.sleep(0.03)
            if self.model.died():
                time.sleep(0.5)
                self.qemu.kill()
                self.qemu.wait()
                return "model"
            if self.o.mode == "shell":
                continue
            if not booted and exists("booted"):
                booted = True
                start, limit = time.monotonic(), self.o.timeout
            if time.monotonic() - start > limit:
                if exists("rc"):        # the answer is there, only the end hangs
                    say("the guest does not power off")
                self.qemu.kill()
                self.qemu.wait()
                return "hang" if booted else "no boot"
        return None

    def finish(self, why):
        while self.pump():
            pass
        panic = "Kernel panic" in tail(f"{JOB}/console", 400)
        if why == "model":
            return MODEL_DIED, (f"model died: {describe(self.model.proc.returncode)}\n"
                                + tail(f"{JOB}/model.log", 15))
        if panic and "skua: initramfs:" in tail(f"{JOB}/console", 400):
            return HARNESS, "the guest did not mount all\n" + tail(f"{JOB}/console", 60)
        if panic:
            return PANIC, "panic\n" + (splats() or tail(f"{JOB}/console", 40))
        if why == "hang" and not exists("rc"):
            return HANG, (f"hang: no result after {self.o.timeout:.0f} s\n"
                          + tail(f"{JOB}/console", 15))
        if why == "no boot":
            return HARNESS, "the guest did not come up\n" + tail(f"{JOB}/console", 30)
        if self.o.mode == "shell":
            return 0, "exit 0"
        if not exists("rc"):
            return HARNESS, (f"QEMU ended ({describe(self.qemu.returncode)}) without a "
                             "result\n" + tail(f"{JOB}/qemu.log", 5)
                             + tail(f"{JOB}/console", 15))
        rc = int(open(f"{JOB}/rc").read())
        reports = "" if self.o.allow_splat else splats()
        if why == "hang":
            return HANG, f"hang: exit {rc}, but no poweroff\n" + reports
        if reports:
            return rc or PANIC, f"exit {rc}, kernel reports:\n{reports}"
        return rc, f"exit {rc}"

    def emulator_broke(self):
        """The kernel replaces its own instructions by way of a breakpoint. An emulated CPU may
        translate the breakpoint while another one's store takes it away, and keep it (QEMU 11.1
        at least): a panic that says nothing about the guest, as long as no job has begun."""
        return (any(arg.startswith("tcg") for arg in self.qemu.args) and
                not exists("booted") and "Oops: int3" in tail(f"{JOB}/console", 400))

    def drop(self):
        """Both have ended, or do now; what the guest said is kept beside the next one's."""
        for proc in (self.qemu, self.model.proc):
            if proc:
                proc.kill()
                proc.wait()
        os.replace(f"{JOB}/console", f"{JOB}/console.dropped")
        for name in ("boots", "out", "ctl", "ctl.reply"):
            if exists(name):
                os.remove(f"{JOB}/{name}")


def describe(code):
    return f"signal {-code}" if code < 0 else f"exit {code}"


def main():
    try:
        o = options()
    except SystemExit as e:
        sys.exit(HARNESS if e.code else 0)
    try:
        for left in reversed(range(BOOTS)):
            run = Run(o)
            rc, verdict = run.finish(run.watch())
            if not (left and rc == PANIC and run.emulator_broke()):
                break
            say("a CPU of the emulator kept a breakpoint that the kernel had taken away: "
                "the guest is started again")
            run.drop()
    except (HarnessError, OSError, subprocess.SubprocessError) as e:
        rc, verdict = HARNESS, f"harness: {e}"
    with open(f"{JOB}/verdict", "w") as f:
        f.write(verdict.split("\n", 1)[0] + "\n")
    if rc and not verdict.startswith("exit") or "\n" in verdict:
        say(verdict.rstrip())
    sys.exit(rc)


main()
