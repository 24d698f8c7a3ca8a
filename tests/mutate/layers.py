# SPDX-License-Identifier: GPL-2.0
"""How the faults of user space are built and tested: see run.

A worker has a copy of the sources and a build directory of its own; trial() puts a
file with a fault in it there, builds what depends on it, and says which test noticed.
"""
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import time

BUILD = os.environ.get('MUTATE_BUILD', '/build/mutate')


class Failure(Exception):
    """Nothing can be said of the tests."""


def call(cmd, limit=900, **kw):
    """(exit code, output); 124: it took too long."""
    with subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True, **kw) as p:
        try:
            out = p.communicate(timeout=limit)[0]
            return p.returncode, out.decode(errors='replace')
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            return 124, p.communicate()[0].decode(errors='replace')


def must(what, cmd, limit=900, **kw):
    """A step without which there is no verdict."""
    rc, out = call(cmd, limit, **kw)
    if rc:
        raise Failure('%s: exit code %d\n%s' % (what, rc, out[-2000:]))
    return out


def used(pid):
    """Processor time of a process so far, in ticks."""
    with open('/proc/%d/stat' % pid, encoding='utf-8') as f:
        part = f.read().rsplit(')', 1)[1].split()
    return int(part[11]) + int(part[12])


class Test:
    """
    A test program. Its limits are processor time and standing still, not time: others may
    keep the machine busy.
    """

    still = 30      # seconds in which a test that is not stuck uses some processor time

    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.cpu = 1.0
        self.endless = False

    def run(self, env):
        """0: it passes; 124: it has no end."""
        limit = int(10 * self.cpu) + 5
        with subprocess.Popen(['prlimit', '--core=0', '--cpu=%d' % limit, self.path], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as p:
            last, since = -1, time.monotonic()
            while True:
                try:
                    rc = p.wait(timeout=2)
                    return 124 if rc == -signal.SIGXCPU else rc
                except subprocess.TimeoutExpired:
                    now = used(p.pid)
                    if now != last:
                        last, since = now, time.monotonic()
                    elif time.monotonic() - since > self.still:
                        os.killpg(p.pid, signal.SIGKILL)
                        p.wait()
                        return 124

    def measure(self, env):
        """Run it, and set its limit by what it takes; False: it fails."""
        before = os.times()
        rc = self.run(env)
        after = os.times()
        self.cpu = (after.children_user + after.children_system -
                    before.children_user - before.children_system)
        return rc == 0


class Verdicts:
    """
    What earlier runs found, by the contents of the sources: a run that was broken off goes
    on, and what did not change is not run again.
    """

    def __init__(self, layer, top):
        self.layer = layer
        self.dir = os.path.join(BUILD, 'verdicts', layer)
        os.makedirs(self.dir, exist_ok=True)
        self.sums = {}
        for part in LAYERS[layer].copied:
            path = os.path.join(top, part)
            names = [path] if os.path.isfile(path) else [
                os.path.join(d, f) for d, _, files in os.walk(path) for f in files]
            for name in names:
                with open(name, 'rb') as f:
                    self.sums[os.path.relpath(name, top)] = hashlib.sha256(f.read()).hexdigest()

    def key(self, fault, test):
        """A fault that TEST noticed does not depend on the other tests."""
        kind, _, name = (test or '').partition(':')
        needs_vm = any(t.startswith('vm:') for t in fault.tests)
        text = [fault.path] + [k + t for k, t in fault.lines]
        for path in sorted(self.sums):
            base = os.path.basename(path)
            if kind in ('unit', 'contract', 'provider'):
                other = (re.fullmatch(r'test_\w+\.c', base) and
                         base != 'test_%s.c' % name.split()[0])
            else:
                other = Driver is LAYERS[self.layer] and not needs_vm and path.startswith(
                    ('tests/vm/', 'tools/model/', 'tools/rdma-core/'))
                if kind == 'kunit' and base.endswith('_kunit.c'):
                    other = (base.removeprefix('skua_') !=
                             re.match(r'(skua_)?(\w*)', name)[2] + '_kunit.c')
            if not other:
                text += [path, self.sums[path]]
        return hashlib.sha256('\n'.join(text).encode()).hexdigest()

    def known(self, fault):
        """(True, test or None) if there is a verdict for the sources as they are."""
        try:
            with open(os.path.join(self.dir, fault.name), encoding='utf-8') as f:
                old = json.load(f)
        except (OSError, ValueError):
            return False, None
        return old['key'] == self.key(fault, old['test']), old['test']

    def keep(self, fault, test):
        """A new verdict."""
        path = os.path.join(self.dir, fault.name)
        with open(path + '.new', 'w', encoding='utf-8') as f:
            json.dump({'key': self.key(fault, test), 'test': test}, f)
        os.rename(path + '.new', path)


class UserSpace:
    """A copy of the sources, their build and their tests."""

    name = None
    copied = []

    def __init__(self, top, number):
        self.dir = os.path.join(BUILD, '%s%d' % (self.name, number))
        self.src = os.path.join(self.dir, 'src')
        os.makedirs(self.src, exist_ok=True)
        # A second run in one checkout waits for the first
        self.lock = open(os.path.join(self.dir, '.lock'), 'w', encoding='utf-8')
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        # No CCACHE_BASEDIR: it makes targets in the lists of dependencies relative, and
        # what includes a header is not built again then
        self.env = dict(os.environ, CCACHE_DIR=os.path.join(BUILD, 'ccache'),
                        CCACHE_NOHASHDIR='1', TMPDIR='/tmp')
        self.env.pop('CCACHE_BASEDIR', None)
        must('copy', ['rsync', '-rcR', '--delete', *self.copied, self.src + '/'], cwd=top)
        self.tests = {}
        for t in self.all_tests():
            kind, name = t.split(':')
            self.tests[t] = Test(t, '%s/%s/test_%s' % (self.dir, kind, name))

    def all_tests(self):
        """Names of this layer's tests."""
        raise NotImplementedError

    def compile(self, tests):
        """Build these tests; (exit code, output)."""
        raise NotImplementedError

    def programs(self, part):
        """Names of the test programs of a directory of tests."""
        return sorted(f[5:-2] for f in os.listdir(os.path.join(self.src, part))
                      if f.startswith('test_') and f.endswith('.c'))

    def make(self, tests):
        """Build these tests; an error text, or None."""
        rc, text = self.compile(tests) if tests else (0, None)
        return text if rc else None

    def first_red(self, tests):
        """
        The first of these tests that fails, None: all pass. It has to fail twice: a few
        have to do with processes, and with time on a busy machine.
        """
        for t in tests:
            rc = self.tests[t].run(self.env)
            self.tests[t].endless = rc == 124
            if rc == 124 or (rc and self.tests[t].run(self.env)):
                return t
        return None

    def baseline(self):
        """Without a fault everything is built and passes; how long each test takes."""
        err = self.make(list(self.tests))
        if err:
            raise Failure('no build without a fault: ' + err[-2000:])
        for t in self.tests.values():
            if not t.measure(self.env) and not t.measure(self.env):
                raise Failure('%s fails without a fault' % t.name)

    def put(self, path, text):
        """A source file's new contents, surely newer than what was built."""
        time.sleep(0.02)
        with open(os.path.join(self.src, path), 'w', encoding='utf-8') as f:
            f.write(text)

    def trial(self, fault, text):
        """Which test notices the fault; None: none does."""
        for t in fault.tests:
            if t not in self.tests:
                raise Failure('there is no test ' + t)
        path = os.path.join(self.src, fault.path)
        with open(path, encoding='utf-8') as f:
            before = f.read()
        rest = sorted((t for t in self.tests if t not in fault.tests),
                      key=lambda t: self.tests[t].cpu)
        self.put(fault.path, text)
        try:
            red = self.notice(fault.tests) or self.notice(rest)
        finally:
            self.put(fault.path, before)
        if red:
            self.passes(red)
        return red and red + (' (no end)' if self.tests[red].endless else '')

    def notice(self, tests):
        """The first of these tests that fails with what is there now; None: all pass."""
        err = self.make(tests)
        if err:
            first = [t for t in err.split('\n') if 'error:' in t] or [err[-200:]]
            raise Failure('it does not compile: ' + first[0])
        return self.first_red(tests)

    def passes(self, test):
        """Without the fault again, the test that noticed it must pass."""
        err = self.make([test])
        if err:
            raise Failure('no build without the fault: ' + err[-2000:])
        if self.tests[test].run(self.env):
            raise Failure('%s fails with the fault, and without it, too' % test)


class Model(UserSpace):
    """The model with its unit and contract tests."""

    name = 'model'
    # Of the driver: recovery.c, which unit tests run in user space
    copied = ['tools/model', 'tools/dissector', 'include', 'uapi', 'drivers/net/ethernet/skua',
              'tests/unit', 'tests/contract', 'dkms.conf', 'Documentation/tlp.rst']

    def all_tests(self):
        return (['unit:' + t for t in self.programs('tests/unit')] +
                ['contract:' + t for t in self.programs('tests/contract')])

    def compile(self, tests):
        for kind in ('unit', 'contract'):
            out = os.path.join(self.dir, kind)
            names = ['%s/test_%s' % (out, t.split(':')[1]) for t in tests
                     if t.startswith(kind + ':')]
            if not names:
                continue
            if kind == 'unit':
                names.append(out + '/libskua.so')
            # The compiler's warnings are not what is to notice a fault
            rc, text = call(['make', '-s', '-C', 'tests/' + kind, 'O=' + out, 'CC=ccache cc',
                             'SHARED=1', 'CFLAGS=-O1 -fPIC -w'] + names,
                            cwd=self.src, env=self.env)
            if rc:
                return rc, text
        return 0, None


class Provider(UserSpace):
    """The provider with its tests; rdma-core's tree is read where it was built."""

    name = 'provider'
    copied = ['tools/rdma-core/providers/skua', 'include', 'tests/provider']

    def __init__(self, top, number):
        must('rdma-core', [os.path.join(top, 'tools/rdma-core/build'), '--inside', 'gcc'])
        super().__init__(top, number)

    def all_tests(self):
        return ['provider:' + t for t in self.programs('tests/provider')]

    def compile(self, tests):
        out = os.path.join(self.dir, 'provider')
        return call(['make', '-s', '-C', 'tests/provider', 'O=' + out, 'CC=ccache cc',
                     'CFLAGS=-O0 -w'] + ['%s/test_%s' % (out, t.split(':')[1]) for t in tests],
                    cwd=self.src, env=self.env)


class Driver:
    """Driver, and what its cases in VMs depend on; see vm.py."""

    copied = ['Kbuild', 'Kconfig', 'drivers', 'include', 'uapi', 'tools/scripts',
              'tools/model', 'tools/rdma-core', 'tests/vm']


LAYERS = {'model': Model, 'provider': Provider, 'driver': Driver}


def workers(layer, top, num):
    """So many workers of a layer whose tests pass as things are."""
    made = [LAYERS[layer](top, n) for n in range(num)]
    for w in made:
        w.baseline()
    return made
