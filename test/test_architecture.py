"""The plan of the house, checked: which floor may use which, who may touch the world, and sizes.

The tables come first and are the law; an exception stands in its table with the reason beside it.
A rule is a function from a module to a list of complaints. Each rule is run over the tree and, at
the end, over a snippet that breaks it, so that a rule which has gone blind is noticed.
"""

from __future__ import annotations

import ast
import functools
import glob
import os
import re
import subprocess
import sys

import pytest

from test.aliases import ALIASES, path_of, text_of
from test.floors import FLOOR, FOR_USERS_ONLY, HEIGHT
from test.sources import ROOT, functions, imports, parse, read_tree
from test.tolerated import (
    BROAD_EXCEPTS,
    LATE_IMPORTS,
    LONG_FILES,
    LONG_FUNCTIONS,
    MANY_METHODS,
)

# The rules are the same on every Python, and the tree takes long to read.
pytestmark = pytest.mark.once

# --- who may touch the world --------------------------------------------------------------------

OUTSIDE = {'net', 'drivers', 'clients', 'faces'}

# What -> (floors, modules) that may use it.
MAY_USE = {
    # The embedded broker serves all its connections in one thread.
    # And stands in for connections of blocking clients where there are none.
    'socket': (
        set(),
        {
            'kafka.conn',
            'kafka.net.addresses',
            'kafka.net.blocking',
            'kafka.net.idle_check',
            'kafka.net.loop.selector',
            'kafka.net.resolver',
            'kafka.net.transport',
            'kafka.evented.stepped_socket',
            'kafka.testing.memory',
            'kafka.testing.server',
        },
    ),
    # It encrypts bytes there, without a socket.
    'ssl': (
        set(),
        {
            'kafka.net.sasl.oidc',
            'kafka.net.security',
            'kafka.net.tls',
            'kafka.testing.security.tls',
        },
    ),
    # Programs get it by a name of 1.3.
    'selectors': (
        set(),
        {'kafka.net.loop.selector', 'kafka.testing.server', 'kafka.vendor.selectors34'},
    ),
    'select': (set(), {'kafka.net.idle_check', 'kafka.net.loop.selector'}),
    'asyncio': (set(), set()),
    # 0.9.5's own worker thread and its timer; what drives a loop that no caller drives; look-ups of
    # names, which block.
    'threading.Thread': (
        set(),
        {
            'kafka.blocking.worker_processes',
            'kafka.metrics.metrics',
            'kafka.net.loop.executor',
            'kafka.net.loop.loop',
            'kafka.producer.base',
            'kafka.testing.server',
            'kafka.util',
        },
    ),
    'threading.Timer': (set(), set()),
    # 0.9.5's consumer that reads in several processes.
    'multiprocessing': (set(), {'kafka.blocking.worker_processes', 'kafka.consumer.multiprocess'}),
    # A certificate is made by the program openssl where no package can.
    'subprocess': (set(), {'kafka.testing.security.certificates'}),
    # Messages of 1.x and records of 1.4 are stamped where they are made, and a cluster of 1.x is
    # made without a clock.
    'time': (
        OUTSIDE,
        {
            'kafka.cluster',
            'kafka.metrics.clock',
            'kafka.protocol.message',
            'kafka.record.batch_builders',
        },
    ),
    # A message without key may go anywhere.
    'random': (OUTSIDE, {'kafka.partitioner.default', 'kafka.partitioner.sticky'}),
    # The timer of 0.9.5 and futures log what a callback raises: nobody waits for it. Options that
    # are deprecated, or give way, are told where they are read. An assignor has class methods, and
    # no other module could tell of topics that it leaves out.
    'logging': (
        OUTSIDE,
        {
            'kafka.config.contradictions',
            'kafka.config.resolution',
            'kafka.coordinator.assignors.abstract',
            'kafka.future',
            'kafka.metrics.metrics',
            'kafka.producer.future',
            'kafka.internals.logging_setup',
            'kafka.internals.program_errors',
            'kafka.util',
        },
    ),
    # The compiler writes one function per message and version; a program that is run is code.
    'exec': (set(), {'kafka.protocol.compiler', 'kafka.cli.program'}),
    'eval': (set(), set()),
    # Names and optional packages that are resolved on first use.
    'importlib': (
        set(),
        {
            'kafka',
            'kafka.cli.import_hook',
            'kafka.cli.old_source',
            'kafka.cli.program',
            'kafka.client',
            'kafka.consumer',
            'kafka.internals.lazy_imports',
            # The class queue.Queue where gevent or eventlet has replaced it.
            'kafka.blocking.message_queue',
        },
    ),
}

SPARK = ('active_session', 'listener', 'sink', 'source', 'stream', 'takeover')
# Packages that need not be installed, but for six, each known to one file as a rule; PySpark to
# those of its classes.
OPTIONAL = {
    'backports': 'kafka.codec',
    'botocore': 'kafka.net.sasl.msk',
    'crc32c': 'kafka.record.crc32c',
    'fissix': 'kafka.cli.python2',
    'gssapi': 'kafka.net.sasl.gssapi',
    'google_crc32c': 'kafka.record.crc32c',
    'isal': 'kafka.codec',
    'lz4': 'kafka.codec',
    'numpy': 'kafka.record.vectors',
    'pyarrow': {'kafka.codec', 'kafka.record.vectors'},  # codecs, and columns
    'pyspark': {'kafka.spark.' + name for name in SPARK},
    'pytest': 'kafka.testing.pytest_plugin',
    'six': 'kafka.vendor.six',
    'snappy': 'kafka.codec',
    'xxhash': 'kafka.codec',
    'zstandard': 'kafka.codec',
}
STANDARD = getattr(sys, 'stdlib_module_names', None)  # since Python 3.10
FOR_TYPES = {'typing_extensions'}  # read by type checkers, which bring it; never loaded

MAX_FILE, MAX_FUNCTION, MAX_METHODS = 1400, 60, 30

TOP_LEVEL = {
    # the rooms
    'kafka',
    'test',
    'docs',
    'servers',
    'examples',
    'benchmarks',
    'pyspark_kafka',
    # what users read and run
    'README.rst',
    'LICENSE',
    'CHANGES',
    'CONTRIBUTING.rst',
    'build_integration.sh',
    # what tools need
    'setup.py',
    'pyproject.toml',
    'tox.ini',
    '.ci',
    '.gitignore',
}


# --- the rules: module (and the names of all modules) -> complaints -----------------------------


def floor_of(name):
    """Return the floor of a module, or None where the table is silent."""
    if name == 'kafka':
        return FLOOR['kafka']
    while name.count('.'):
        if name in FLOOR:
            return FLOOR[name]
        name = name.rpartition('.')[0]
    return None


def every_module_has_a_floor(module, names):
    """A new file says where it stands."""
    return [] if floor_of(module.name) else ['%s: no floor in the table' % module.path]


def says_pure(module):
    """Tell whether a module says of itself that it touches nothing."""
    return (ast.get_docstring(module.tree) or '').endswith('Pure.')


@functools.lru_cache(None)
def pure():
    """Return the names of the modules that say so."""
    return {each.name for each in package() if says_pure(each)}


def imports_go_down(module, names):
    """A floor imports itself, lower ones, and what is pure; machines and net know no other."""
    here = floor_of(module.name)
    complaints = []
    for target in {i.target for i in imports(module, names)} - pure():
        there = floor_of(target) if target.split('.')[0] == 'kafka' else None
        if there is None or here is None or here == there or says_pure(module):
            continue
        if HEIGHT[there] >= HEIGHT[here]:
            complaints.append('%s (%s) imports %s (%s)' % (module.path, here, target, there))
    return complaints


# What a pure module uses none of, not even through what it imports.
TOUCHES = {'socket', 'ssl', 'selectors', 'select', 'asyncio', 'threading', 'multiprocessing'}
TOUCHES |= {'subprocess', 'signal', 'time', 'random', 'logging', 'concurrent', 'queue', 'secrets'}
# Folders of pure modules and of others: whoever makes one touch something has to take the word out.
HAVE_BOTH = ('kafka.consumer.', 'kafka.coordinator.', 'kafka.offsets.', 'kafka.producer.')
# It waits for a lock that it is given.
BLOCKS = {'kafka.producer.bounded_lock'}
# It imports what is needed late, once, under a lock.
PURE_ENOUGH = {'kafka.internals.lazy_imports'}


@functools.lru_cache(None)
def touched():
    """Return {name: (what it touches, through which modules)} of modules that touch anything."""
    targets = {
        each.name: {i.target for i in imports(each, names()) if not i.for_types}
        for each in package()
        if each.name not in PURE_ENOUGH
    }
    found, has_changed = {}, True
    while has_changed:
        before = len(found)
        for name, imported in targets.items():
            direct = {target.split('.')[0] for target in imported} & TOUCHES
            through = [each for each in sorted(imported) if each in found]
            if name not in found and direct:
                found[name] = (min(direct), ())
            elif name not in found and through:
                what, way = found[through[0]]
                found[name] = (what, (through[0], *way))
        has_changed = len(found) > before
    return found


def pure_modules_touch_nothing(module, names):
    """A reader of "Pure." may rely on it."""
    said = len(re.findall(r'\bPure\.', ast.get_docstring(module.tree) or ''))
    if said != says_pure(module):
        return ['%s: "Pure." is said once, at the end of the docstring' % module.path]
    if not said:
        is_silent = module.name.startswith(HAVE_BOTH) and not module.path.endswith('__init__.py')
        if is_silent and module.name not in {*touched(), *BLOCKS}:
            return ['%s touches nothing: say "Pure." at the end of the docstring' % module.path]
        return []
    complaints = []
    for target in sorted({i.target for i in imports(module, names) if not i.for_types}):
        if target.split('.')[0] in TOUCHES:
            complaints.append('%s says "Pure." and imports %s' % (module.path, target))
        elif target in touched():
            what, way = touched()[target]
            chain = ' -> '.join((target, *way, what))
            complaints.append('%s says "Pure." and imports %s' % (module.path, chain))
    return complaints


def faces_are_imported_by_nobody(module, names):
    """What is made for users is no part of the engine; faces may know each other."""
    if floor_of(module.name) == 'faces':
        return []
    targets = {i.target for i in imports(module, names)} & FOR_USERS_ONLY
    return ['%s imports the face %s' % (module.path, target) for target in sorted(targets)]


def the_world_is_touched_by_few(module, names):
    """Sockets, threads, clocks, chance, logs and code made from text have their places."""
    used = {i.target for i in imports(module, names | set(MAY_USE))}
    used |= {target.split('.')[0] for target in used}
    aliases = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.add('%s.%s' % (aliases.get(node.value.id, node.value.id), node.attr))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            used.add(node.func.id)
    return [
        '%s may not use %s' % (module.path, thing)
        for thing, (floors, modules) in sorted(MAY_USE.items())
        if thing in used and module.name not in modules and floor_of(module.name) not in floors
    ]


def other_packages_are_declared(module, names):
    """The standard library is enough; an optional package is known to one file."""
    complaints = []
    found = {(i.target.split('.')[0], i.for_types) for i in imports(module, names)}
    targets = {i.target for i in imports(module, names)}
    if (
        'importlib',
        False,
    ) in found or 'kafka.internals.lazy_imports' in targets:  # they take names as text
        texts = {n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant)}
        found |= {(t, False) for t in map(_top, texts) if t in OPTIONAL}
    for top, for_types in sorted(found):
        if for_types and top in FOR_TYPES:
            continue
        if top in OPTIONAL:
            if module.name not in _homes(OPTIONAL[top]):
                complaints.append('%s: %s belongs to %s' % (module.path, top, OPTIONAL[top]))
        elif STANDARD and top not in STANDARD | {'kafka'}:
            complaints.append('%s: %s is no requirement' % (module.path, top))
    return complaints


def _homes(modules):
    return modules if isinstance(modules, set) else {modules}


def _top(value):
    return value.split('.')[0] if isinstance(value, str) else None


def imports_stand_at_the_top(module, names):
    """A late import hides a dependency."""
    return [
        '%s imports %s inside a function' % (module.path, i.target)
        for i in imports(module, names)
        if i.late and '%s: %s' % (module.path, i.target) not in LATE_IMPORTS
    ]


def modules_introduce_themselves(module, names):
    """A docstring says what the file owns; annotations are text, because 3.8 must read them."""
    if not module.text.strip() and module.path.startswith('test/'):
        return []  # the mark of a package, nothing more
    complaints = []
    if not ast.get_docstring(module.tree):
        complaints.append('%s has no docstring' % module.path)
    code = [n for n in module.tree.body if not isinstance(n, ast.Expr)]
    # An example is a program as its user writes it.
    if (
        code
        and not module.path.startswith('examples/')
        and not (
            isinstance(code[0], ast.ImportFrom)
            and code[0].module == '__future__'
            and 'annotations' in {alias.name for alias in code[0].names}
        )
    ):
        complaints.append('%s lacks from __future__ import annotations' % module.path)
    return complaints


def code_has_its_test(module, names):
    """Where there is code there is a test: of its name, or one that imports it.

    Or it helps a module that has one. Declarations are compared with upstream.
    """
    # A look-up of old names beside declarations is tested with the names.
    has_code = any(function != '__getattr__' for function, _ in functions(module.tree))
    return ['%s: no test' % module.path] if has_code and module.name not in with_a_test() else []


def has_test_of_its_name(module):
    """test/a/test_b.py, or test/a/test_b_some_aspect.py, for kafka/a/b.py."""
    folder, name = os.path.split(module.path.replace('__init__', 'init')[len('kafka/') : -3])
    files = os.path.join(ROOT, 'test', folder, 'test_' + name)
    return bool(glob.glob(files + '.py') + glob.glob(files + '_*.py'))


@functools.lru_cache(maxsize=None)
def with_a_test():
    """Return the names of the modules that have a test, and of those that help them.

    What a helper imports of its own folder helps too.
    """
    found = {each.target for test in read_tree('test') for each in imports(test, names())}
    found.update(each.name for each in package() if has_test_of_its_name(each))
    used = {each.name: {some.target for some in imports(each, names())} for each in package()}
    waiting = [helper for each in found for helper in used.get(each, ())]
    while waiting:
        helper = waiting.pop()
        found.add(helper)
        folder = helper.rpartition('.')[0]
        beside = {each for each in used.get(helper, ()) if each.rpartition('.')[0] == folder}
        waiting.extend(beside - found)
    # Handlers of the embedded broker are found by the number of their API: tests send them messages
    # of the modules that they import.
    sent = {
        each.target
        for test in read_tree('test/testing')
        for each in imports(test, names())
        if each.target.startswith('kafka.protocol.') and each.target not in OF_EVERY_MESSAGE
    }
    handlers = {each for each in used if each.startswith('kafka.testing.handlers.')}
    return found | {each for each in handlers if used[each] & sent}


#: Modules of the protocol that say nothing of which messages are handled.
OF_EVERY_MESSAGE = {'kafka.protocol.wire', 'kafka.protocol.session', 'kafka.protocol.api'}


#: Folders of tests that are no image of the package, and tests of the tree itself.
OF_THEIR_OWN = {'behaviour', 'integration', 'simulation', 'spark', 'surviving', 'testing'}
OF_THE_TREE = {'test_architecture', 'test_collecting', 'test_docs', 'test_interrupting'}


def a_test_has_the_name_of_its_module(module, names):
    """A test has the name of what it tests; what several packages do is in test/behaviour."""
    folder, name = os.path.split(module.path[:-3])
    top, _, inner = folder.partition('/')
    if top != 'test' or not name.startswith('test_') or name in OF_THE_TREE:
        return []
    if inner.split('/')[0] in OF_THEIR_OWN:
        return []
    words = name[len('test_') :].replace('init', '__init__').split('_')
    places = [os.path.join('kafka', inner), folder, inner or 'servers']
    for count in range(len(words), 0, -1):
        for place in places:
            path = os.path.join(ROOT, place, '_'.join(words[:count]))
            if os.path.exists(path + '.py') or os.path.isdir(path):
                return []
    return ['%s: tests no module of that name; does it belong to test/behaviour?' % module.path]


def files_are_short(module, names):
    """A file is one class with its helpers: few are longer than this."""
    lines = len(module.text.splitlines())
    if lines <= MAX_FILE or module.path in LONG_FILES:
        return []
    return ['%s has %d lines' % (module.path, lines)]


def functions_are_short(module, names):
    """A function fits a screen."""
    return [
        '%s: %s has %d lines' % (module.path, name, length)
        for name, node in functions(module.tree)
        for length in [node.end_lineno - node.lineno + 1]
        if length > MAX_FUNCTION and '%s: %s' % (module.path, name) not in LONG_FUNCTIONS
    ]


def classes_are_narrow(module, names):
    """A class that does everything has no name that tells what."""
    complaints = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            public = [
                n
                for n in node.body
                if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name[0] != '_'
            ]
            if (
                len(public) > MAX_METHODS
                and '%s: %s' % (module.path, node.name) not in MANY_METHODS
            ):
                complaints.append('%s: %s has %d methods' % (module.path, node.name, len(public)))
    return complaints


def excepts_name_errors(module, names):
    """``except Exception`` without ``raise`` swallows the mistakes of the one who wrote it."""
    complaints = []
    for name, node in [*functions(module.tree), ('', module.tree)]:
        for child in _own(node):
            if not isinstance(child, ast.ExceptHandler) or _raises_again(child):
                continue
            kinds = child.type.elts if isinstance(child.type, ast.Tuple) else [child.type]
            broad = [k for k in kinds if k is None or _last(k) in ('Exception', 'BaseException')]
            if broad and '%s: %s' % (module.path, name) not in BROAD_EXCEPTS:
                complaints.append('%s: %s catches everything' % (module.path, name or 'module'))
    return complaints


def _own(node):
    """Yield what is below `node` without the functions inside it, which are asked by themselves."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
            yield from _own(child)


def _raises_again(handler):
    return isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None


def _last(node):
    return getattr(node, 'id', None) or getattr(node, 'attr', None)


def nothing_is_left_to_do(module, names):
    """What remains to be done is an issue, not a comment."""
    found = re.findall(r'#.*\b(TO[D]O|FIX[M]E|XX[X])\b', module.text)
    return ['%s has a %s' % (module.path, word) for word in found]


FOR_THE_PACKAGE = [
    every_module_has_a_floor,
    imports_go_down,
    pure_modules_touch_nothing,
    faces_are_imported_by_nobody,
    the_world_is_touched_by_few,
    other_packages_are_declared,
    imports_stand_at_the_top,
    classes_are_narrow,
    excepts_name_errors,
    code_has_its_test,
]
FOR_EVERY_FILE = [
    modules_introduce_themselves,
    files_are_short,
    functions_are_short,
    nothing_is_left_to_do,
    a_test_has_the_name_of_its_module,
]


def circles(modules):
    """Return each module that reaches itself through imports made while loading."""
    names = {module.name for module in modules}
    edges = {
        module.name: {
            i.target
            for i in imports(module, names)
            if i.target in names and not i.late and not i.for_types
        }
        for module in modules
    }
    return [name for name in sorted(names) if _reaches(edges, name, name)]


def _reaches(edges, start, goal):
    seen, waiting = set(), [start]
    while waiting:
        for target in edges[waiting.pop()]:
            if target == goal:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


# --- the tree keeps the rules -------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def package():
    """Return the modules of the package: when asked, because to read them takes seconds.

    Not those that stand for others.
    """
    return [module for module in read_tree('kafka') if module.name not in ALIASES]


@functools.lru_cache(maxsize=None)
def everything():
    """Return all modules that there are."""
    rooms = ('test', 'servers', 'examples', 'benchmarks', 'docs', 'pyspark_kafka')
    return package() + read_tree(*rooms)


@functools.lru_cache(maxsize=None)
def names():
    """Return the names of the package's modules."""
    return {module.name for module in package()}


@pytest.mark.parametrize('rule', FOR_THE_PACKAGE)
def test_package(rule):
    assert [complaint for module in package() for complaint in rule(module, names())] == []


@pytest.mark.parametrize('rule', FOR_EVERY_FILE)
def test_every_file(rule):
    assert [complaint for module in everything() for complaint in rule(module, names())] == []


def test_tables_name_modules_that_exist():
    named = {*FLOOR, *FOR_USERS_ONLY}.union(*map(_homes, OPTIONAL.values()))
    named.update(*[modules for _, modules in MAY_USE.values()])
    assert named - names() == set()


def test_no_import_circles():
    assert circles(package()) == []


def test_exceptions_are_still_needed():
    """An exception whose subject is gone, or keeps the rule by now, is deleted."""
    modules = {module.path: module for module in everything()}
    for table in (LONG_FILES, LONG_FUNCTIONS, MANY_METHODS, LATE_IMPORTS, BROAD_EXCEPTS):
        for key, reason in list(table.items()):
            module = modules.get(key.split(':')[0])
            assert module is not None, key
            assert reason
            rules = FOR_THE_PACKAGE + FOR_EVERY_FILE
            del table[key]
            try:
                assert any(rule(module, names()) for rule in rules), key
            finally:
                table[key] = reason


def tracked():
    """Return the paths that git keeps, or None outside a work tree."""
    if not os.path.exists(os.path.join(ROOT, '.git')):
        return None
    return subprocess.check_output(['git', 'ls-files'], cwd=ROOT, text=True).splitlines()


@pytest.mark.skipif(tracked() is None, reason='not a git work tree')
def test_top_level():
    """The first page of the repository shows the rooms and nothing else."""
    assert {path.split('/')[0] for path in tracked()} == TOP_LEVEL


@pytest.mark.parametrize('alias', ALIASES)
def test_aliases_are_those_of_their_table(alias):
    """``python3 -m test.aliases`` writes them."""
    assert path_of(alias).read_text(encoding='utf-8') == text_of(alias)


# --- each rule can fail -------------------------------------------------------------------------

WIRE, NET, CLIENT = 'kafka/protocol/x.py', 'kafka/conn.py', 'kafka/client.py'
LONG = '\n'.join(['def f():'] + ['    pass'] * MAX_FUNCTION)
WIDE = '\n'.join(['class C:'] + ['    def m%d(self): pass' % i for i in range(MAX_METHODS + 1)])

OFFENCES = [
    (every_module_has_a_floor, 'kafka/strange.py', ''),
    (imports_go_down, WIRE, 'import kafka.conn'),
    (imports_go_down, WIRE, 'from kafka import client'),
    (imports_go_down, WIRE, 'from ..conn import KafkaConnection'),
    (imports_go_down, WIRE, 'def f():\n    import kafka.client'),
    (imports_go_down, NET, 'from kafka.client import KafkaClient'),
    (imports_go_down, NET, 'from kafka.partitioner import hashed'),
    (imports_go_down, NET, 'from kafka.coordinator import member'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure."""\nimport time'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure.\n\nB."""'),
    (pure_modules_touch_nothing, 'kafka/producer/sequence_numbers.py', '"""A."""'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure.\n\nB. Pure."""'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure."""\nfrom threading import Thread'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure."""\nimport kafka.util'),
    (pure_modules_touch_nothing, WIRE, '"""A. Pure."""\nimport kafka.producer.sender'),
    (imports_go_down, 'kafka/partitioner/hashed.py', 'import kafka.conn'),
    (imports_go_down, 'kafka/errors.py', 'from kafka.protocol import api'),
    (faces_are_imported_by_nobody, CLIENT, 'from kafka.common import KafkaMessage'),
    (faces_are_imported_by_nobody, CLIENT, 'from kafka import SimpleConsumer'),
    (the_world_is_touched_by_few, WIRE, 'import socket'),
    (the_world_is_touched_by_few, WIRE, 'from socket import create_connection'),
    (the_world_is_touched_by_few, WIRE, 'import time as clock'),
    (the_world_is_touched_by_few, WIRE, 'exec("pass")'),
    (the_world_is_touched_by_few, WIRE, 'def f():\n    import logging.handlers'),
    (the_world_is_touched_by_few, CLIENT, 'import socket'),
    (the_world_is_touched_by_few, NET, 'import threading as t\nclass W(t.Thread): pass'),
    (the_world_is_touched_by_few, NET, 'from threading import Thread'),
    (other_packages_are_declared, WIRE, 'import requests'),
    (other_packages_are_declared, WIRE, 'import typing_extensions'),
    (other_packages_are_declared, WIRE, 'import importlib\nimportlib.import_module("lz4.frame")'),
    (other_packages_are_declared, WIRE, 'try:\n    import lz4.frame\nexcept ImportError: pass'),
    (imports_stand_at_the_top, WIRE, 'def f():\n    import struct'),
    (modules_introduce_themselves, WIRE, '"""Owns x."""\nimport struct'),
    (modules_introduce_themselves, WIRE, 'from __future__ import annotations'),
    (files_are_short, WIRE, '\n' * (MAX_FILE + 1)),
    (functions_are_short, WIRE, LONG),
    (
        functions_are_short,
        WIRE,
        'class C:\n' + LONG.replace('def', '    def').replace('pass', ' 1'),
    ),
    (classes_are_narrow, WIRE, WIDE),
    (excepts_name_errors, WIRE, 'try: pass\nexcept: pass'),
    (excepts_name_errors, WIRE, 'def f():\n  try: pass\n  except (OSError, Exception): pass'),
    (excepts_name_errors, WIRE, 'try: pass\nexcept builtins.BaseException: pass'),
    (code_has_its_test, WIRE, 'def f(): pass'),
    (a_test_has_the_name_of_its_module, 'test/producer/test_strange.py', ''),
    (a_test_has_the_name_of_its_module, 'test/test_strange.py', ''),
    (nothing_is_left_to_do, WIRE, 'x = 1  # TO' + 'DO: two'),
]


@pytest.mark.parametrize('rule, path, text', OFFENCES)
def test_rule_can_fail(rule, path, text):
    if rule is other_packages_are_declared and STANDARD is None and 'lz4' not in text:
        pytest.skip('Python lists its own modules since 3.10')
    assert rule(parse(path, text), names() | {'kafka.client', 'kafka.conn', 'kafka.common'})


def test_every_rule_has_an_offence():
    assert {rule for rule, _, _ in OFFENCES} == {*FOR_THE_PACKAGE, *FOR_EVERY_FILE}


def test_rules_are_silent_about_good_code():
    good = (
        '"""Owns x."""\nfrom __future__ import annotations\n'
        'import struct\nfrom kafka.errors import ProtocolError\n'
        'def f(data):\n'
        '    try:\n        return struct.unpack(">h", data)\n'
        '    except struct.error as error:\n        raise ProtocolError() from error\n'
        '    except Exception:\n        data.close()\n        raise\n'
    )
    module = parse('kafka/protocol/wire.py', good)
    for rule in FOR_THE_PACKAGE + FOR_EVERY_FILE:
        assert rule(module, names()) == [], rule.__name__


def test_circle_is_seen_and_type_imports_make_none():
    a = parse('kafka/a.py', 'import kafka.b')
    assert circles([a, parse('kafka/b.py', 'from kafka import a')]) == ['kafka.a', 'kafka.b']
    assert circles([a, parse('kafka/b.py', 'def f():\n    import kafka.a')]) == []
    for_types = 'if TYPE_CHECKING:\n    import kafka.a\nelse:\n    %s'
    assert circles([a, parse('kafka/b.py', for_types % 'pass')]) == []
    assert len(circles([a, parse('kafka/b.py', for_types % 'import kafka.a')])) == 2
