# SPDX-License-Identifier: GPL-2.0
"""
The form that files of this project have upstream: another path, without what is there for
older kernels or for other programs, and at first without the features that later patches add.

The rules are in "form", see there.
"""
import fnmatch
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
# What a build in place or an editor leaves beside the sources
BUILT = re.compile(r'(\.(o|a|ko|mod|mod\.c|orig|rej)|~|/\.[^/]*|modules\.order|Module\.symvers)$')


class Fault(Exception):
    """What is wrong with a list, a rule or a file"""


def entries(path):
    """(line number, words, indented lines below) of each entry of a list"""
    found = []
    for n, line in enumerate(path.read_text(encoding='utf-8').split('\n'), 1):
        if line.startswith('\t'):
            found[-1][2].append(line[1:])
        elif not line.strip():
            if found:
                found[-1][2].append('')
        elif not line.startswith('#'):
            found.append((n, line.split(), []))
    for _, _, below in found:
        while below and not below[-1]:
            below.pop()
    return found


def conditional(line):
    """What a line is to conditional compilation: (directive, the rest), or None"""
    m = re.match(r'\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)', line)
    return m and (m.group(1), re.sub(r'\s*/\*.*?\*/\s*$', '', m.group(2)))


class Defined:
    """Which macros are known to be defined, or not to be"""

    def __init__(self):
        self.rules = []

    def add(self, pattern, value):
        self.rules.append((pattern, value))

    def known(self, name):
        return next((v for p, v in self.rules if fnmatch.fnmatchcase(name, p)), None)

    def decide(self, directive, rest):
        """(True, False or None if it cannot be told, what remains of the condition)"""
        if directive in ('ifdef', 'ifndef'):
            value = self.known(rest)
            return (None if value is None else value == (directive == 'ifdef')), rest
        if directive != 'if':
            return None, rest
        parts = []
        for part in rest.split(' && '):
            m = re.fullmatch(r'(!?)defined\((\w+)\)', part)
            value = self.known(m.group(2)) if m else None
            if value is None:
                parts.append(part)
            elif value == bool(m.group(1)):
                return False, rest
        return (None if parts else True), ' && '.join(parts)


def resolve(text, defined, name):
    """@text without the conditionals that @defined decides, and without what they leave out"""
    out, stack = [], []     # stack: True or False: decided, this branch; None: stays

    def live():
        return all(s is not False for s in stack)

    for n, line in enumerate(text.split('\n'), 1):
        cond = conditional(line)
        if not cond:
            if live():
                out.append(line)
            continue
        directive, rest = cond
        if directive.startswith('if'):
            value, left = defined.decide(directive, rest)
            if value is None and live():
                out.append(line.replace(rest, left))
            stack.append(value)
            continue
        if not stack:
            raise Fault(f'{name}:{n}: #{directive} without an #if')
        top = stack[-1]
        if directive == 'endif':
            stack.pop()
        elif top is not None:
            if directive == 'elif':
                raise Fault(f'{name}:{n}: #elif of a condition that is decided')
            stack[-1] = not top
        if top is None and live():
            out.append(line)
    if stack:
        raise Fault(f'{name}: an #if has no #endif')
    return '\n'.join(out)


def hunks(lines):
    """The hunks of a change, which an empty line separates"""
    found = [[]]
    for line in lines:
        if line:
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [h for h in found if h]


def matches(text, at, hunk):
    """The end of @hunk in the lines @text if it begins at line @at, and what it makes of them"""
    new, skip = [], None
    for line in hunk:
        kind, rest = line[0], line[1:]
        if kind == '+':
            new.append(rest)
        elif rest.strip() == '...':
            skip = kind
        elif kind not in ' -':
            raise Fault(f'a hunk has the line "{line}"')
        else:
            start = at
            while skip and at < len(text) and text[at] != rest:
                at += 1
            if at >= len(text) or text[at] != rest:
                return None
            new += text[start:at] if skip == ' ' else []
            new += [rest] if kind == ' ' else []
            skip, at = None, at + 1
    return at, new


def change(text, below, name):
    """
    @text with the hunks in @below. A line of a hunk is that of a file behind one character:
    "-" for those that go, "+" for those that come, a blank for others. "..." is any number of
    lines. Each hunk must fit in one place.
    """
    lines = text.split('\n')
    for hunk in hunks(below):
        places = [(at, m) for at in range(len(lines)) if (m := matches(lines, at, hunk))]
        if len(places) != 1:
            raise Fault(f'{name}: a change fits in {len(places)} places instead of one:\n\t' +
                        '\n\t'.join(hunk))
        at, (end, new) = places[0]
        lines[at:end] = new
    return '\n'.join(lines)


def tidy(text):
    """No two empty lines, and none after a brace opens or before it closes"""
    text = re.sub(r'\n{3,}', '\n\n', text)
    text = re.sub(r'^([^\n]*\{\n)\n', r'\1', text, flags=re.M)
    return re.sub(r'\n\n(\};?\n)', r'\n\1', text)


class Form:
    """The rules for one tree"""

    def __init__(self, tree):
        self.renames, self.words, self.leave, self.changes = [], [], [], []
        self.defined = Defined()
        here = None
        for n, words, below in entries(HERE / 'form'):
            what, args = words[0], words[1:]
            if what == 'tree':
                here = args[0]
            elif here != tree:
                continue
            elif what == 'rename':
                self.renames.append(args)
            elif what == 'word':
                self.words.append(args)
            elif what == 'leave':
                self.leave += args
            elif what in ('define', 'undefine'):
                for pattern in args:
                    self.defined.add(pattern, what == 'define')
            elif what == 'change':
                tag = args[1] if args[0] == 'until' else None
                self.changes.append((args[-1], tag, below))
            else:
                raise Fault(f'form:{n}: "{what}" is no rule')
        self.tags = {tag for _, tag, _ in self.changes if tag}
        self.used = set()

    def sources(self):
        """The files of the project that belong upstream"""
        found = []
        for old, _ in self.renames:
            base = TOP / old
            paths = sorted(base.rglob('*')) if base.is_dir() else [base]
            found += [str(p.relative_to(TOP)) for p in paths
                      if p.is_file() and not BUILT.search(str(p))]
        return [f for f in dict.fromkeys(found)
                if not any(fnmatch.fnmatchcase(f, p) for p in self.leave)]

    def path(self, source):
        """Where @source is upstream"""
        for old, new in self.renames:
            if source.startswith(old):
                return new.removesuffix('.') + source[len(old):]
        raise Fault(f'form: no rule for the path of {source}')

    def content(self, source, released):
        """What @source is upstream when the features @released have been added"""
        whole = (TOP / source).read_text(encoding='utf-8')
        text = resolve(whole, self.defined, source)
        for i, (pattern, tag, below) in enumerate(self.changes):
            if pattern == source and tag not in released:
                text = change(text, below, source)
                self.used.add(i)
        if text != whole:
            text = tidy(text)
        for old, new in self.words:
            text = text.replace(old, new)
        return text
