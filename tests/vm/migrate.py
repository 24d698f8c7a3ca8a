#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""migrate.py disk FILE | pattern FILE | go SOURCE DESTINATION URI PATTERN pin|chunks |
dies SOURCE DESTINATION URI PID

What tests/vm/migrate asks two QEMUs for, by their QMP sockets. "disk": a floppy whose boot sector
fills 64 KiB with a number of 16 bits, and again with the next one, for ever. "pattern": what is
put into the source's memory at PATTERN_AT. "go": the VM migrates; its memory is compared, and
it runs on. "dies": the destination is killed amid the migration, and the source's VM runs on.
"""
import json
import os
import random
import signal
import socket
import sys
import time

LIMIT = 120             # seconds that anything here may take
COUNTER = 0x7e00        # the number that is written now
FILLED, WORDS = 0x20000, 0x8000
PATTERN_AT, PATTERN_LEN = 0x1000000, 0x1000000

# xor ax,ax; mov ds,ax; mov ax,2000h; mov es,ax; cld
# next: xor di,di; mov cx,8000h; inc word [7e00h]; mov ax,[7e00h]; rep stosw; jmp next
BOOT = bytes.fromhex('31c08ed8b800208ec0fc' '31ffb90080ff06007ea1007ef3abebf0')


class Qemu:
    """A QEMU's QMP socket."""

    def __init__(self, path):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT)
        self.sock.connect(path)
        self.lines = self.sock.makefile('r', encoding='utf-8')
        self.events = []
        json.loads(self.lines.readline())
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        """What QEMU returns to the command."""
        text = json.dumps({'execute': command, 'arguments': arguments})
        self.sock.sendall(text.encode() + b'\n')
        while True:
            answer = self.next()
            if 'return' in answer:
                return answer['return']
            if 'error' in answer:
                sys.exit(f'{command}: {answer["error"]["desc"]}')
            self.events.append(answer)

    def next(self):
        """The next message."""
        line = self.lines.readline()
        if not line:
            sys.exit(f'{self.path}: QEMU has ended')
        return json.loads(line)

    def status(self, wanted):
        """Wait for a MIGRATION event with one of these states."""
        while True:
            event = self.events.pop(0) if self.events else self.next()
            if event.get('event') != 'MIGRATION':
                continue
            status = event['data']['status']
            print(f'{self.path}: {status}')
            if status in wanted:
                return status

    def memory(self, at, size):
        """Bytes of the VM's memory."""
        path = self.path + '.mem'
        self.ask('pmemsave', val=at, size=size, filename=path)
        with open(path, 'rb') as mem:
            data = mem.read()
        os.unlink(path)
        return data

    def count(self):
        """The number that the VM writes now."""
        return int.from_bytes(self.memory(COUNTER, 2), 'little')

    def goes_on(self):
        """The VM runs: its number changes."""
        before, end = self.count(), time.monotonic() + LIMIT
        while self.count() == before:
            if time.monotonic() > end:
                sys.exit(f'{self.path}: the VM stands still at {before}')
            time.sleep(0.05)

    def consistent(self):
        """The VM is stopped: what it has filled is of its number up to somewhere, then of the one before."""
        now, data = self.count(), self.memory(FILLED, 2 * WORDS)
        words = [int.from_bytes(data[i:i + 2], 'little') for i in range(0, len(data), 2)]
        done = 0
        while done < WORDS and words[done] == now:
            done += 1
        # The number is incremented before the first word is written
        if words[done:] != [(now - 1) % 65536] * (WORDS - done):
            sys.exit(f'{self.path}: the memory that the VM writes is mixed at word {done}, {now}')


def go(source, destination, uri, pattern, pin):
    """The VM migrates."""
    src, dst = Qemu(source), Qemu(destination)
    caps = [{'capability': 'events', 'state': True},
            {'capability': 'rdma-pin-all', 'state': pin == 'pin'}]
    for qemu in (src, dst):
        qemu.ask('migrate-set-capabilities', capabilities=caps)
    dst.ask('migrate-incoming', uri=uri)
    src.goes_on()
    src.ask('migrate', uri=uri)
    if src.status(('completed', 'failed')) == 'failed':
        sys.exit(src.ask('query-migrate').get('error-desc', 'failed'))
    dst.status(('completed',))
    info = src.ask('query-migrate')
    print(json.dumps(info['ram']))
    dst.goes_on()
    dst.ask('stop')
    dst.consistent()
    with open(pattern, 'rb') as data:
        if dst.memory(PATTERN_AT, PATTERN_LEN) != data.read():
            sys.exit('the memory differs')
    for qemu in (src, dst):
        qemu.ask('quit')


def dies(source, destination, uri, pid):
    """The destination is killed while the VM migrates."""
    src, dst = Qemu(source), Qemu(destination)
    caps = [{'capability': 'events', 'state': True}]
    src.ask('migrate-set-capabilities', capabilities=caps)
    dst.ask('migrate-incoming', uri=uri)
    src.goes_on()
    src.ask('migrate-set-parameters', **{'max-bandwidth': 1 << 20})
    src.ask('migrate', uri=uri)
    src.status(('active',))
    os.kill(int(pid), signal.SIGKILL)
    src.status(('failed',))
    src.goes_on()
    src.ask('quit')


def main():
    """One of the verbs above."""
    verb, args = sys.argv[1], sys.argv[2:]
    if verb == 'disk':
        with open(args[0], 'wb') as disk:
            disk.write(BOOT.ljust(510, b'\0') + b'\x55\xaa' + bytes(2879 * 512))
    elif verb == 'pattern':
        with open(args[0], 'wb') as data:
            data.write(random.Random(1).randbytes(PATTERN_LEN))
    elif verb == 'go':
        go(*args)
    else:
        dies(*args)


main()
