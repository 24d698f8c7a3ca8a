#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Run rdma-core's own test suite on one device, each test in a process of its own.

    suite.py [-s CAP,...] SUITE DEVICE GID [PATTERN]...

SUITE is a directory with the distribution's unmodified "tests" package. All is
imported once; each test runs in a fork, so that one that dies or hangs takes
nothing with it. A test that the suite skips counts as failed unless
pyverbs.skips names it with a reason that is not ours; with -s, for devices that lack
these capabilities, it may skip what it likes, and those that pyverbs.lacks names must fail:
they do not ask whether the device can do what they need.
"""
import io
import os
import re
import resource
import signal
import sys
import time
import unittest

LIMIT = 180
HERE = os.path.dirname(os.path.abspath(__file__))


def load(suite, dev, gid):
    """Import the suite as its own runner does."""
    sys.path[:0] = [suite, os.path.join(suite, 'tests')]
    sys.argv[1:] = ['--dev', dev, '--port', '1', '--gid', gid]
    from args_parser import parser
    parser.parse_args()
    loader = unittest.TestLoader()
    found = []
    for fn in sorted(os.listdir(os.path.join(suite, 'tests'))):
        m = re.fullmatch(r'(test_\w+)\.py', fn)
        if m:
            found.append(loader.loadTestsFromName('tests.' + m.group(1)))
    return flatten(found)


def flatten(tests):
    for t in tests:
        if isinstance(t, unittest.TestSuite):
            yield from flatten(t)
        else:
            yield t


def known_skips():
    """Lines KERNEL PATTERN REASON: what cannot run here, whatever the NIC does."""
    skips = []
    with open(os.path.join(HERE, 'pyverbs.skips'), encoding='utf-8') as f:
        for line in f:
            if line.strip() and line[0] != '#':
                kernel, pattern, reason = line.split(None, 2)
                if kernel == '*' or os.uname().release.startswith(kernel):
                    skips.append((re.compile(pattern), reason.strip()))
    return skips


def known_lacks(caps):
    """Lines CAPABILITY PATTERN REASON: what fails on a device without it."""
    lacks = []
    with open(os.path.join(HERE, 'pyverbs.lacks'), encoding='utf-8') as f:
        for line in f:
            if line.strip() and line[0] != '#':
                cap, pattern, reason = line.split(None, 2)
                if cap in caps:
                    lacks.append((re.compile(pattern), f'needs {cap}: {reason.strip()}'))
    return lacks


def child(test, out):
    """Runs in the fork; the exit code tells the result."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = unittest.TestResult()
    test.run(result)
    sys.stdout.flush()
    for _, text in result.errors + result.failures:
        os.write(out, text.encode())
    for _, reason in result.skipped:
        os.write(out, b'\nSKIP ' + str(reason).replace('\n', ' ').encode())
    # Parts of a test may skip while others fail
    os._exit(1 if result.errors or result.failures else 77 if result.skipped else 0)


def wait(pid):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def run(test):
    """One test: 'ok', 'skip', 'fails' or 'not ok' (no orderly end), and what it printed."""
    r = os.memfd_create('out')
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            child(test, r)
        finally:
            os._exit(2)
    rc = wait(pid)
    text = os.pread(r, 1 << 20, 0).decode(errors='replace')
    os.close(r)
    if rc is None:
        return 'not ok', text + f'\nno end within {LIMIT} s'
    if rc < 0:
        return 'not ok', text + f'\nended by signal {-rc}'
    if rc == 1:
        return 'fails', text
    if rc == 77:
        return 'skip', text.rsplit('SKIP ', 1)[1].strip()
    return ('ok' if rc == 0 else 'not ok'), text


def main():
    args = sys.argv[1:]
    may_skip = args[0] == '-s'
    lacks = known_lacks(args[1].split(',')) if may_skip else []
    suite, dev, gid, *patterns = args[2 * may_skip:]
    skips = known_skips()
    failed = 0
    # What importing prints is nobody's result
    stdout, sys.stdout = sys.stdout, io.StringIO()
    tests = list(load(suite, dev, gid))
    sys.stdout = stdout
    for test in tests:
        name = test.id().removeprefix('tests.')
        if patterns and not any(re.search(p, name) for p in patterns):
            continue
        start = time.monotonic()
        known = next((why for pat, why in skips if pat.search(name)), None)
        lack = next((why for pat, why in lacks if pat.search(name)), None)
        result, text = run(test)
        if result == 'fails' and lack:
            result, text = 'skip', lack
        elif result == 'fails':
            result = 'not ok'
        if result == 'skip' and known:
            print(f'skip {name}: {known}')
        elif result == 'skip' and may_skip:
            print(f'skip {name}: {text}')
        elif result == 'skip':
            print(f'not ok {name} is skipped: {text}')
            failed += 1
        elif result == 'ok' and (known or lack):
            print(f'not ok {name} passes, yet pyverbs.{"skips" if known else "lacks"} names it')
            failed += 1
        else:
            print(f'{result} {name}')
        if result == 'not ok':
            failed += 1
            print('\n'.join('# ' + line for line in text.splitlines()[-25:]))
        print(f'# {time.monotonic() - start:.1f} s', flush=True)
    return failed != 0


sys.exit(main())
