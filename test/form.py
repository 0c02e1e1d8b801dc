"""Figures of the package's form, and where each thing that counts stands.

    python3 -m test.form              the figures
    python3 -m test.form --where      and each place

Read from the source alone, but for two: uses of another object's private names are ruff's (SLF001),
and what one poll() and one send().get() pass through is found by making them. ``LIMITS`` has what
is allowed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path

from test.sources import imports, read_tree

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'kafka'
#: Figures that have one. The others are only reported.
LIMITS = {
    'private bases with one subclass': 0,
    'NotImplementedError in a private base with one subclass': 0,
    'uses of private names of others': 40,
    'uses of private names without a reason': 0,
    'collaborators that are given their owner': 0,
    'parameters at seams that are Any, per cent': 5.0,
    'bare error codes': 0,
    'class names that are there twice': 0,
    'modules at the top level': 20,
    'places that make a Loop or a Pool': 1,
}
#: Why a private name of another object is used, by that name.
REASONS = {
    # Python's own.
    '_getframe': 'documented by sys; there is no other way to a frame',
    '_current_frames': 'documented by sys; there is no other way to the frames of threads',
    '_is_owned': 'of RLock: only threading.Condition has a public way to ask',
    '_run_module_as_main': 'of runpy: what "python -m" does, with the script as __main__',
    # PySpark's.
    '_get_j_spark_session_class': 'PySpark has no public way to the active session of a thread',
    '_jvm': 'as above',
    # What programs of earlier releases replace or call, under the names of those releases.
    '_send_broker_aware_request': 'a seam of 0.9.5: programs replace it',
    '_send_messages': 'a seam of 0.9.5: programs replace it',
    '_decode_message_set_iter': 'a seam of 0.9.5: programs replace it',
    '_encode_message_set': 'a seam of 0.9.5: programs replace it',
    '_cleanup_func': 'the attribute of 0.9.5',
    '_metadata': 'the attribute of 1.x to 3.x',
    '_sock': 'the attribute of 0.9.5; a method would cost a call for each request',
    '_client': 'the attribute of coordinators of 1.x, which their timers read',
    '_subscription': 'the attribute of coordinators of 1.x, which their timers read',
    # Within one module or one class, which the rule of the linter does not see.
    '_assign': 'a function of the same module, which pickles name',
    '_process': 'a function for the end of a process, in the module of the class',
    '_settle': 'of the coordinator in whose module its heartbeats are',
    '_error': 'of the coordinator in whose module its heartbeats are',
    '_accumulator': 'functions for the end of the interpreter, in the module of the class',
    '_closing': 'as above',
    '_abandon': 'functions for forks, in the module of the class',
    '_values': 'of the struct whose descriptor it is, in the module of both',
    '_current': 'whether a program has replaced it: nobody else asks',
    # Batches settle the futures of records; nobody else may.
    '_add': 'called by the batch of a future alone',
    '_tell': 'called by the batch of a future alone',
    '_place': 'called by the batch of a future alone',
}
#: Where class names need not be unique (house rules), besides messages of the protocol.
EXEMPT = ('testing', 'dialects', 'evented', 'structs', 'protocol', 'vendor')
#: The tables of error codes, and what writes brokers' answers.
ERROR_TABLES = ('broker_errors.py', 'protocol/error_codes.py', 'testing/')
#: Where a code is another protocol's.
OTHER_CODES = ('net/proxy.py',)
#: Classes that promised constructors of 1.x give their owner; they refer to it weakly.
GIVEN_OWNERS_IN_1_X = ('HeartbeatTask', 'AutoCommitTask')
#: Parameters of these names are what rooms hand each other.
SEAMS = frozenset(
    'accumulator broker client cluster connection coordinator engine fetcher loop membership pool'
    ' sender session state transport'.split()
)
_CODE = re.compile(r'(^|_)(error_code|errno|code)$')


def room_of(module):
    """Return the folder of a module below the package, '' for one at the top level."""
    parts = module.path.split('/')
    return parts[1] if len(parts) > 2 else ''


def at(module, node, text):
    """Return a place as text."""
    return '%s:%d: %s' % (module.path, node.lineno, text)


def classes_of(package):
    """Yield (module, class) for all classes that are not inside of functions or classes."""
    for module in package:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                yield module, node


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, 'id', '')


def _uses(node):
    """Return the names of classes that a node makes, raises or catches."""
    found = []
    if isinstance(node, ast.Call):
        found = [node.func]
    elif isinstance(node, ast.Raise) and node.exc is not None:
        found = [node.exc]
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        found = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return [_name(each) for each in found]


class Classes:
    """The classes of the package by their full names, such as ``kafka.conn.KafkaConnection``."""

    def __init__(self, package):
        names = {module.name for module in package}
        self.all = {'%s.%s' % (m.name, c.name): (m, c) for m, c in classes_of(package)}
        self.subclasses = collections.defaultdict(set)
        self.used = set()  # made, raised or caught: these are more than a part of another class
        promised = set((ROOT / 'test/surviving/names.txt').read_text('utf-8').split())
        pickles = (ROOT / 'test/surviving/pickles.txt').read_text('utf-8')
        promised |= set(re.findall(r'(?m)^[\w.]*\.(\w+) ', pickles))
        self._imported = {m.name: self._imports_of(m, names) for m in package}
        for module in package:
            known = self._known_in(module)
            self.used |= {full for name, full in known.items() if name in promised}
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    for base in node.bases:
                        base = base.value if isinstance(base, ast.Subscript) else base
                        full = '%s.%s' % (module.name, node.name)
                        self.subclasses[known.get(_name(base), '')].add(full)
                else:
                    self.used |= {known[name] for name in _uses(node) if name in known}

    @staticmethod
    def _imports_of(module, names):
        """Return {name in a module: (module, name there)} of what it imports by name."""
        found = {}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module in names:
                for alias in node.names:
                    found[alias.asname or alias.name] = node.module, alias.name
        return found

    def _known_in(self, module):
        """Return by name in a module the full names of the classes that it has or imports."""
        known = {c.name: '%s.%s' % (module.name, c.name) for _, c in classes_of([module])}
        for name, origin in self._imported[module.name].items():
            # Where it is made: kafka.errors imports its classes from elsewhere.
            seen = set()
            while origin not in seen and origin[1] in self._imported[origin[0]]:
                seen.add(origin)
                origin = self._imported[origin[0]][origin[1]]
            if '.'.join(origin) in self.all:
                known[name] = '.'.join(origin)
        return known

    def for_one(self):
        """Yield (module, class, subclass) for each base that is there for one class alone."""
        for full, (module, each) in self.all.items():
            if len(self.subclasses[full]) == 1 and full not in self.used:
                (subclass,) = self.subclasses[full]
                if not self._are_fields(each, self.all[subclass][1]):
                    yield module, each, subclass

    @staticmethod
    def _are_fields(each, subclass):
        """Return True for a NamedTuple below a class with a constructor.

        A NamedTuple may have no ``__new__``; typed fields and a constructor take two classes.
        """
        is_tuple = [_name(base) for base in each.bases] == ['NamedTuple']
        made = {node.name for node in subclass.body if isinstance(node, ast.FunctionDef)}
        return is_tuple and '__new__' in made


def bases_with_one_subclass(package):
    """Yield private bases that exist for one class."""
    for module, each, subclass in Classes(package).for_one():
        yield at(module, each, '%s, for %s' % (each.name, subclass))


def not_implemented(package):
    """Yield methods that raise NotImplementedError in a private base with one subclass."""
    for module, each, _ in Classes(package).for_one():
        for node in ast.walk(each):
            if isinstance(node, ast.Raise) and 'NotImplementedError' in ast.dump(node):
                yield at(module, node, each.name)


def private_uses():
    """Yield the uses of another object's private names, which ruff finds."""
    command = [sys.executable, '-m', 'ruff', 'check', '--select', 'SLF001', '--ignore-noqa']
    command += ['--output-format', 'json', '--exit-zero', '--no-cache', str(PACKAGE)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    for each in found:
        path = Path(each['filename']).relative_to(ROOT).as_posix()
        if not path.startswith('kafka/testing/'):
            yield '%s:%d: %s' % (path, each['location']['row'], each['message'])


def without_reason(uses):
    """Yield the uses of private names that REASONS does not list."""
    for each in uses:
        if each.split('`')[1] not in REASONS:
            yield each


def given_owners(package):
    """Yield calls of a class in which an object gives itself away, as a part does to its owner."""
    for module in package:
        if room_of(module) == 'testing':
            continue
        for node in ast.walk(module.tree):
            if not isinstance(node, (ast.Assign, ast.AnnAssign)):
                continue
            if not isinstance(node.value, ast.Call):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_kept = any(_name(getattr(t, 'value', None)) == 'self' for t in targets)
            arguments = [*node.value.args, *(k.value for k in node.value.keywords)]
            if _name(node.value.func) in GIVEN_OWNERS_IN_1_X:
                continue
            if is_kept and any(_name(each) == 'self' for each in arguments):
                if _name(node.value.func).lstrip('_')[:1].isupper():
                    yield at(module, node, ast.unparse(node.value))


def parameters_at_seams(package):
    """Return places of parameters that are Any, and how many there are at all."""
    wrong, count = [], 0
    for module in package:
        if room_of(module) == 'testing':
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for each in [*node.args.args, *node.args.kwonlyargs]:
                    if each.arg.lstrip('_') in SEAMS and each.annotation is not None:
                        count += 1
                        if _name(each.annotation) == 'Any':
                            wrong.append(at(module, each, '%s: Any' % each.arg))
    return wrong, count


def bare_codes(package):
    """Yield comparisons of an error code with a number other than 0."""
    for module in package:
        if any(module.path.startswith('kafka/' + table) for table in ERROR_TABLES + OTHER_CODES):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare) and _CODE.search(_name(node.left)):
                for each in node.comparators:
                    numbers = [n.value for n in ast.walk(each) if isinstance(n, ast.Constant)]
                    if any(type(n) is int and n != 0 for n in numbers):
                        yield at(module, node, ast.unparse(node))


def twice(package):
    """Yield class names that are there more than once, but for promised ones."""
    promised = set((ROOT / 'test/surviving/names.txt').read_text('utf-8').splitlines())
    places = collections.defaultdict(list)
    for module, each in classes_of(package):
        if '%s %s' % (module.name, each.name) in promised:
            continue
        if room_of(module) not in EXEMPT and not each.name.startswith('_'):
            places[each.name].append(module.path)
    for name, paths in sorted(places.items()):
        if len(paths) > 1:
            yield '%s: %s' % (name, ', '.join(paths))


def top_level(package):
    """Yield the modules at the top level, but for those that stand for another one."""
    for module in package:
        if not room_of(module) and 'sys.modules[__name__] =' not in module.text:
            yield module.path


def makers(package):
    """Yield functions that call Loop or Pool, and each such call outside of a function."""
    for module in package:
        for function in [*functions_of(module.tree), module.tree]:
            calls = [each for each in own_nodes(function) if isinstance(each, ast.Call)]
            made = [each for each in calls if _name(each.func) in ('Loop', 'Pool')]
            if made:
                yield at(module, made[0], ' and '.join(ast.unparse(each.func) for each in made))


def functions_of(tree):
    """Return the functions of a tree, those inside others too."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def own_nodes(function):
    """Yield what is inside a function or module, but not inside a function within."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting.extend(ast.iter_child_nodes(node))


def importers(package):
    """Return by module which modules import it."""
    names = {module.name for module in package}
    found = collections.defaultdict(set)
    for module in package:
        for each in imports(module, names):
            if each.target in names and each.target != module.name:
                found[each.target].add(module.name)
    return found


def comment_share(package):
    """Return lines with a comment per line of code, in per cent."""
    comments = code = 0
    for module in package:
        lines = set()
        with open(ROOT / module.path, 'rb') as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT:
                    comments += 1
                elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING):
                    lines.add(token.start[0])
        code += len(lines)
    return 100.0 * comments / code


def passed_through():
    """Return how many files one poll() with a record, and one send().get(), run code of.

    In the thread that calls, which is the main one and so runs turns of the loop.
    """
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.testing import Cluster

    def files_of(call):
        found = set()

        def note(frame, event, argument):
            path = Path(frame.f_code.co_filename)
            if PACKAGE in path.parents and PACKAGE / 'testing' not in path.parents:
                found.add(path)

        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
        return len(found)

    with Cluster(topics={'t': 1}) as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for _ in range(3):
                producer.send('t', b'1').get(10)
            sent = files_of(lambda: producer.send('t', b'1').get(10))
            with KafkaConsumer(
                't', bootstrap_servers=cluster.bootstrap, auto_offset_reset='earliest'
            ) as consumer:
                while not consumer.poll(1000):
                    pass
                producer.send('t', b'1').get(10)
                polled = files_of(lambda: consumer.poll(5000))
    return polled, sent


def figures():
    """Return [(name, figure, places)]; places may be empty."""
    package = read_tree('kafka')
    wrong, count = parameters_at_seams(package)
    uses = list(private_uses())
    lists = [
        ('private bases with one subclass', bases_with_one_subclass(package)),
        ('NotImplementedError in a private base with one subclass', not_implemented(package)),
        ('uses of private names of others', uses),
        ('uses of private names without a reason', without_reason(uses)),
        ('collaborators that are given their owner', given_owners(package)),
        ('bare error codes', bare_codes(package)),
        ('class names that are there twice', twice(package)),
        ('modules at the top level', top_level(package)),
        ('places that make a Loop or a Pool', makers(package)),
    ]
    found = [(name, len(places), places) for name, places in ((n, list(p)) for n, p in lists)]
    found.append(('parameters at seams that are Any, per cent', 100.0 * len(wrong) / count, wrong))
    users = importers(package)
    alone = sorted(name for name, by in users.items() if len(by) == 1)
    found.append(('files', len(package), []))
    found.append(('modules that one other imports', len(alone), alone))
    polled, sent = passed_through()
    found.append(('files that one poll() passes through', polled, []))
    found.append(('files that one send().get() passes through', sent, []))
    found.append(('comments per line of code, per cent', comment_share(package), []))
    return found


def main(arguments=None):
    """Print the figures; return how many are above their limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--where', action='store_true', help='print each place')
    given = parser.parse_args(arguments)
    above = 0
    for name, figure, places in figures():
        limit = LIMITS.get(name)
        text = '%.1f' % figure if isinstance(figure, float) else '%d' % figure
        is_above = limit is not None and figure > limit
        above += is_above
        note = '' if limit is None else '   (at most %g%s)' % (limit, ', ABOVE' if is_above else '')
        sys.stdout.write('%7s  %s%s\n' % (text, name, note))
        if given.where:
            sys.stdout.writelines('           %s\n' % place for place in places)
    return above


if __name__ == '__main__':
    sys.exit(1 if main() else 0)
