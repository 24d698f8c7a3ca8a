# SPDX-License-Identifier: GPL-2.0
"""Modules with faults in them, for the VMs of tests/mutate/driver."""
import glob
import hashlib
import os
import re
import shutil
import time

import layers

DIR = os.path.join(layers.BUILD, 'driver')
CORE = 'drivers/net/ethernet/skua'
IB = 'drivers/infiniband/hw/skua'


def sums(root):
    """Path and contents of each module."""
    found = {}
    for path in glob.glob(root + '/drivers/**/*.ko', recursive=True):
        with open(path, 'rb') as f:
            found[path] = hashlib.sha256(f.read()).digest()
    return found


def suites(top):
    """Of each KUnit suite its module, and whether it needs a function that is up."""
    found = {}
    for part in (CORE, IB):
        for path in sorted(glob.glob('%s/%s/tests/*_kunit.c' % (top, part))):
            with open(path, encoding='utf-8') as f:
                text = f.read()
            module = os.path.basename(path)[:-2]
            # several files make one module there
            if not module.startswith('skua_'):
                module = 'skua_kunit'
            found[re.search(r'\.name = "(\w+)"', text)[1]] = (
                module, bool(re.search(r'#include "(live|pair)\.h"', text)))
    return found


class Tree:
    """A copy of the driver's sources, built against one kernel."""

    def __init__(self, top, name, kernel):
        self.src = os.path.join(DIR, name)
        self.kernel = kernel
        os.makedirs(self.src, exist_ok=True)
        layers.must('copy', [
            'rsync', '-rcR', '--delete', '--filter=P *.o', '--filter=P *.ko',
            '--filter=P *.mod*', '--filter=P .*', '--filter=P Module.symvers',
            '--filter=P modules.order', '--filter=P *.a', 'Kbuild', 'Kconfig', 'drivers',
            'include', 'uapi', 'tools/scripts', self.src + '/'], cwd=top)
        err = self.make()
        if err:
            raise layers.Failure('no build without a fault: ' + err[-2000:])
        self.base = sums(self.src)

    def make(self):
        """Build; an error text, or None."""
        rc, text = layers.call(['make', '-s', '-C', self.kernel, 'M=' + self.src, 'KCFLAGS=-w',
                                'modules'])
        return text if rc else None

    def put(self, path, text):
        """A source file's new contents, surely newer than what was built."""
        time.sleep(0.02)
        with open(os.path.join(self.src, path), 'w', encoding='utf-8') as f:
            f.write(text)

    def build(self, path, text):
        """Modules that are others with the fault."""
        with open(os.path.join(self.src, path), encoding='utf-8') as f:
            before = f.read()
        self.put(path, text)
        try:
            err = self.make()
            if err:
                first = [t for t in err.split('\n') if 'error:' in t] or [err[-200:]]
                raise layers.Failure('it does not compile: ' + first[0])
            changed = [p for p, s in sums(self.src).items() if self.base.get(p) != s]
            if not changed:
                raise layers.Failure('the compiler makes the same of it')
            return changed
        finally:
            self.put(path, before)


class Driver:
    """
    What the VMs are to try goes into the file `todo', a line for each fault: name, kind,
    directory of its modules, and what is tried. First comes the driver without a fault:
    there all must pass.
    """

    def __init__(self, top, kernel):
        self.top = top
        self.mods = os.path.join(DIR, 'mods')
        self.kernel = kernel
        self.suites = suites(top)
        with open('/etc/skua-tree', encoding='utf-8') as f:
            self.stock = re.search(r'KV_STOCK=(\S+)', f.read())[1]
        self.trees = {}

    def tree(self, kind):
        """Made when it is needed."""
        if kind not in self.trees:
            self.trees[kind] = Tree(self.top, 'src-' + kind, self.kernel + '/build'
                                    if kind == 'kunit' else
                                    '/usr/lib/modules/%s/build' % self.stock)
        return self.trees[kind]

    def kunit(self, fault):
        """
        Kind and suites for the guest: those named, then the others of their modules. A
        function that is up is made only for suites that need it: that takes time.
        """
        named = [t[6:] for t in fault.tests]
        for s in named:
            if s not in self.suites:
                raise layers.Failure('there is no suite ' + s)
        modules = {self.suites[s][0] for s in named}
        all_of = named + [s for s, (m, _) in self.suites.items()
                          if m in modules and s not in named]
        kind = 'live' if any(self.suites[s][1] for s in all_of) else 'kunit'
        return [kind, ' '.join('%s:%s' % (self.suites[s][0], s) for s in all_of)]

    def modroot(self, name, changed):
        """The modules as the guest wants them on the kernel of the distribution."""
        to = os.path.join(self.mods, name, 'modroot')
        shutil.copytree('/build/modules-%s/modroot' % self.stock, to, symlinks=True)
        for path in set(self.tree('vm').base) | set(changed):
            shutil.copy(path, '%s/lib/modules/%s/updates/' % (to, self.stock))

    def line(self, fault, changed):
        """What the VM needs for a fault, or for none (changed is empty); its line."""
        vm = fault.tests[0].startswith('vm:')
        to = 'base' if not changed else fault.name
        if vm and not os.path.exists(os.path.join(self.mods, to, 'modroot')):
            self.modroot(to, changed)
        elif not vm:
            os.makedirs(os.path.join(self.mods, to), exist_ok=True)
            for path in changed or self.tree('kunit').base:
                shutil.copy(path, os.path.join(self.mods, to))
        if vm:
            return '\t'.join([fault.name, 'vm', to] + fault.tests[0].split(':', 2)[1:])
        kind, items = self.kunit(fault)
        return '\t'.join([fault.name, kind, to, items])

    def prepare(self, faults, baseline, apply, report):
        """Build all; the list for the VMs. @baseline: of these faults' tests."""
        shutil.rmtree(self.mods, ignore_errors=True)
        os.makedirs(self.mods)
        todo = [self.line(f, []) for f in baseline]
        for fault in faults:
            tree = self.tree('vm' if fault.tests[0].startswith('vm:') else 'kunit')
            try:
                todo.append(self.line(fault, tree.build(fault.path, apply(fault))))
            except layers.Failure as why:
                report.none(fault, why)
        write_todo(todo)


def write_todo(lines):
    """The list for the VMs."""
    with open(os.path.join(DIR, 'todo'), 'w', encoding='utf-8') as f:
        f.writelines(t + '\n' for t in lines)


def collect(path, tell):
    """Verdicts of a VM; what they are about need not be tried any more."""
    with open(path, encoding='utf-8') as f:
        results = dict(t.rstrip('\n').split('\t') for t in f)
    with open(os.path.join(DIR, 'todo'), encoding='utf-8') as f:
        todo = f.read().splitlines()
    # in order, and not what comes after tests that fail without a fault
    go_on = all(tell(name, test or None) for name, test in results.items())
    write_todo([t for t in todo if go_on and t.split('\t')[0] not in results])
