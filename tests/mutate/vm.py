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
            # several files make one module here
            if not module.startswith('skua_'):
                module = 'skua_en_kunit' if module.startswith('en_') else 'skua_kunit'
            live = bool(re.search(r'#include "(live|pair)\.h"', text))
            for name in re.findall(r'struct kunit_suite \w+ = \{\s*\.name = "(\w+)"', text):
                found[name] = (module, live)
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
    directory of its modules, and what is tried. The directory `base' has all modules, the
    others those that a fault changes.
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
            if s.split('.')[0] not in self.suites:
                raise layers.Failure('there is no suite ' + s)
        modules = {self.suites[s.split('.')[0]][0] for s in named}
        all_of = named + [s for s, (m, _) in self.suites.items()
                          if m in modules and s not in named]
        of = [self.suites[s.split('.')[0]] for s in all_of]
        return ['live' if any(live for _, live in of) else 'kunit',
                ' '.join('%s:%s' % (module, s) for (module, _), s in zip(of, all_of))]

    def modroot(self, to, changed):
        """The modules as the guest wants them on the kernel of the distribution."""
        to = os.path.join(self.mods, to, 'modroot')
        shutil.copytree('/build/modules-%s/modroot' % self.stock, to, symlinks=True)
        for path in set(self.tree('vm').base) | set(changed):
            shutil.copy(path, '%s/lib/modules/%s/updates/' % (to, self.stock))

    def keep(self, vm, to, changed):
        """Modules for a VM of a group or for one with the suites."""
        if vm:
            self.modroot(to, changed)
            return
        os.makedirs(os.path.join(self.mods, to), exist_ok=True)
        for path in changed:
            shutil.copy(path, os.path.join(self.mods, to))

    def line(self, fault):
        """What the VM is to do about a fault."""
        if is_vm(fault):
            return '\t'.join([fault.name, 'vm', fault.name] + fault.tests[0].split(':', 2)[1:])
        kind, items = self.kunit(fault)
        return '\t'.join([fault.name, kind, fault.name, items])

    def prepare(self, faults, apply, report):
        """Build all; the list for the VMs."""
        shutil.rmtree(self.mods, ignore_errors=True)
        os.makedirs(self.mods)
        for vm in sorted({is_vm(f) for f in faults}):
            self.keep(vm, 'base', self.tree('vm' if vm else 'kunit').base)
        todo = []
        for fault in faults:
            tree = self.tree('vm' if is_vm(fault) else 'kunit')
            try:
                line = self.line(fault)
                self.keep(is_vm(fault), fault.name, tree.build(fault.path, apply(fault)))
                todo.append(line)
            except layers.Failure as why:
                report.none(fault, why)
        write_lines('todo', todo)
        write_lines('held', [])


def is_vm(fault):
    """Whether a case of a VM group is to notice it, not a KUnit suite."""
    return fault.tests[0].startswith('vm:')


def write_lines(name, lines):
    """The list for the VMs, or what they found that is not believed yet."""
    with open(os.path.join(DIR, name), 'w', encoding='utf-8') as f:
        f.writelines(t + '\n' for t in lines)


def read_lines(name):
    """The same."""
    with open(os.path.join(DIR, name), encoding='utf-8') as f:
        return f.read().splitlines()


def without(line, test):
    """A line of `todo' that tries TEST alone, without a fault."""
    _, kind, _, *what = line.split('\t')
    if kind != 'vm':
        suite = re.match(r'kunit:([\w.]+)', test)
        named = [t for t in what[0].split() if suite and t.endswith(':' + suite[1])]
        what = [' '.join(named) or what[0]]
    return '\t'.join(['without ' + ':'.join([kind] + what), kind, 'base'] + what)


def collect(path, found, none):
    """
    Verdicts of a VM. A test that noticed faults is run once more without a fault: only if
    it passes then, it was the faults that it noticed.
    """
    with open(path, encoding='utf-8') as f:
        results = dict(t.rstrip('\n').split('\t') for t in f)
    todo = {t.split('\t')[0]: t for t in read_lines('todo')}
    held = [t.split('\t') for t in read_lines('held')]
    again = []
    for name, test in results.items():
        line = todo.pop(name)
        mine = [(fault, seen) for fault, seen, by in held if by == name]
        held = [t for t in held if t[2] != name]
        if name.startswith('without '):
            for fault, seen in mine:
                if test:
                    none(fault, '%s; without the fault, too: %s' % (seen, test))
                else:
                    found(fault, seen)
        elif test:
            again.append(without(line, test))
            held.append([name, test, again[-1].split('\t')[0]])
        else:
            found(name, None)
    # Soon, while the machine is as busy as it was. Not first: who comes first and gets no
    # verdict has stopped the kernel.
    todo.update((t.split('\t')[0], t) for t in again)
    write_lines('todo', todo.values())
    write_lines('held', ['\t'.join(t) for t in held])
