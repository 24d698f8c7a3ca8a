# SPDX-License-Identifier: GPL-2.0
"""How the faults of each layer are built and tested: see run.

A worker has a copy of the sources and a build directory of its own; trial() puts a
file with a fault in it there, builds what depends on it, and says which test noticed.
"""
import fcntl
import os
import signal
import subprocess

BUILD = os.environ.get('MUTATE_BUILD', '/build/mutate')
TEST_TIME = 100     # seconds; the longest test takes a tenth of it


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


class UserSpace:
    """The model with its unit and contract tests, in a build directory of its own."""

    copied = ['tools/model', 'include', 'uapi', 'tests/unit', 'tests/contract', 'dkms.conf']

    def __init__(self, top, number):
        self.dir = os.path.join(BUILD, '%s%d' % (self.__class__.__name__.lower(), number))
        self.src = os.path.join(self.dir, 'src')
        os.makedirs(self.src, exist_ok=True)
        # A second run in one checkout waits for the first
        self.lock = open(os.path.join(self.dir, '.lock'), 'w', encoding='utf-8')
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        # No CCACHE_BASEDIR: it makes targets in the lists of dependencies relative, and
        # what includes a header is not built again then
        self.env = dict(os.environ, CCACHE_DIR=os.path.join(BUILD, 'ccache'),
                        CCACHE_NOHASHDIR='1')
        must('copy', ['rsync', '-rcR', '--delete', *self.copied, self.src + '/'], cwd=top)
        self.tests = self.all_tests()

    def all_tests(self):
        """Names of this layer's tests, the quick ones first."""
        unit = sorted(f[5:-2] for f in os.listdir(self.src + '/tests/unit')
                      if f.startswith('test_') and f.endswith('.c'))
        unit.sort(key=lambda t: t.startswith(('rc_', 'u', 'pace', 'mcast')))
        return ['unit:' + t for t in unit] + ['contract:tables', 'contract:wqe',
                                              'contract:ring']

    def make(self, tests):
        """Build these tests; an error text, or None."""
        for kind in ('unit', 'contract'):
            names = [t.split(':')[1] for t in tests if t.startswith(kind + ':')]
            out = os.path.join(self.dir, kind)
            if not names:
                continue
            rc, text = call(['make', '-s', '-C', 'tests/' + kind, 'O=' + out, 'CC=ccache cc',
                             'CFLAGS=-O1'] + ['%s/test_%s' % (out, n) for n in names],
                            cwd=self.src, env=self.env)
            if rc:
                return text
        return None

    def first_red(self, tests):
        """
        The first of these tests that fails, None: all pass. It has to fail twice: a few
        have to do with processes, and with time on a busy machine.
        """
        for t in tests:
            kind, name = t.split(':')
            cmd = ['%s/%s/test_%s' % (self.dir, kind, name)]
            rc, _ = call(cmd, TEST_TIME, env=self.env)
            if rc == 124:
                return t + ' (no end)'
            if rc and call(cmd, TEST_TIME, env=self.env)[0]:
                return t
        return None

    def baseline(self, tests):
        """Without a fault everything is built and passes."""
        err = self.make(tests)
        if err:
            raise Failure('no build without a fault: ' + err[-2000:])
        red = self.first_red(tests)
        if red:
            raise Failure('%s fails without a fault' % red)

    def put(self, path, text):
        """A source file's new contents."""
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
        self.put(fault.path, text)
        try:
            for tests in (fault.tests, [t for t in self.tests if t not in fault.tests]):
                err = self.make(tests)
                if err:
                    first = [t for t in err.split('\n') if 'error:' in t] or [err[-200:]]
                    raise Failure('it does not compile: ' + first[0])
                red = self.first_red(tests)
                if red:
                    return red
            return None
        finally:
            self.put(fault.path, before)


class Model(UserSpace):
    """Faults of tools/model."""


class Provider(UserSpace):
    """The provider with its tests; rdma-core's tree is read where it was built."""

    copied = ['tools/rdma-core/providers/skua', 'include', 'tests/provider']

    def __init__(self, top, number):
        must('rdma-core', [os.path.join(top, 'tools/rdma-core/build'), '--inside', 'gcc'])
        super().__init__(top, number)

    def all_tests(self):
        names = sorted(f[5:-2] for f in os.listdir(self.src + '/tests/provider')
                       if f.startswith('test_') and f.endswith('.c'))
        names.sort(key=lambda t: t in ('random', 'cq'))
        return ['provider:' + t for t in names]

    def make(self, tests):
        out = os.path.join(self.dir, 'provider')
        names = [t.split(':')[1] for t in tests]
        if not names:
            return None
        # The compiler's warnings are not what is to notice a fault
        rc, text = call(['make', '-s', '-C', 'tests/provider', 'O=' + out, 'CC=/usr/bin/cc',
                         'CFLAGS=-O0 -w'] + ['%s/test_%s' % (out, n) for n in names],
                        cwd=self.src, env=self.env)
        return text if rc else None


def workers(layer, top, faults, num):
    """So many workers of a layer whose tests pass as things are."""
    os.makedirs(BUILD, exist_ok=True)
    kind = {'model': Model, 'provider': Provider}[layer]
    made = [kind(top, n) for n in range(num)]
    named = sorted({t for f in faults for t in f.tests})
    made[0].baseline(named)
    for w in made[1:]:
        w.make(named)
    return made
