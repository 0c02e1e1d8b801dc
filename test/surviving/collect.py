"""Write down what must survive: ``python -m test.surviving.collect VERSION=FOLDER ...``.

The folders hold releases of kafka-python (``pip install --target FOLDER --no-deps``), whose sources
are parsed for names, never imported. A name is kept if the package has it today; names that the
documentation, the README and the examples import come on top. What the lists have already stays.
"""

from __future__ import annotations

import ast
import base64
import importlib
import inspect
import pickle
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES, LOGGERS, PICKLES = (HERE / name for name in ('names.txt', 'loggers.txt', 'pickles.txt'))
_IMPORT = re.compile(
    r'^\s*(?:from (kafka[\w.]*) import \(?([\w, ]+?)\)?|import (kafka[\w.]*))\s*$', re.MULTILINE
)
_WHOLE = re.compile(r'\(\s*([^)]*?),?\s*\)')


def modules_in(folder, word=''):
    """Yield (module, tree) for each module of a release whose text has a word."""
    for path in sorted(Path(folder, 'kafka').rglob('*.py')):
        parts = path.relative_to(folder).with_suffix('').parts
        name = '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)
        if '.vendor' in name:
            continue
        text = path.read_text(encoding='utf-8')
        if word not in text:
            continue
        try:
            yield name, ast.parse(text)
        except SyntaxError:  # ``async`` as a name, before Python 3.7
            yield name, ast.parse(re.sub(r'\basync\b', 'async_', text))


def bound_in(body):
    """Yield the names that the statements of a module bind; modules of others left out."""
    for each in body:
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            yield each.name
        elif isinstance(each, ast.Assign):
            for target in each.targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
        elif isinstance(each, ast.ImportFrom):
            if each.level or (each.module or '').split('.')[0] == 'kafka':
                yield from (alias.asname or alias.name for alias in each.names)
        elif isinstance(each, (ast.If, ast.Try)):
            handlers = [part for handler in getattr(each, 'handlers', ()) for part in handler.body]
            yield from bound_in([*each.body, *each.orelse, *handlers])


def exists(module, name=None):
    """Return True if the package has a module, or a name in it, today."""
    try:
        loaded = importlib.import_module(module)
        return name is None or hasattr(loaded, name)
    except ImportError:
        return False


def names_of_releases(releases):
    """Return {(module, name): [release, ...]}; the name of a module itself is ''."""
    found = {}
    for release, folder in releases.items():
        for module, tree in modules_in(folder):
            for name in ['', *dict.fromkeys(bound_in(tree.body))]:
                if name != '*' and not name.startswith('__') and exists(module, name or None):
                    found.setdefault((module, name), []).append(release)
    return found


def names_in_texts():
    """Return {(module, name)} of what documentation and examples import."""
    found = set()
    paths = [ROOT / 'README.rst', *ROOT.glob('docs/*.rst'), *ROOT.glob('examples/**/*.py')]
    for path in paths:
        text = _WHOLE.sub(lambda part: ' '.join(part[1].split()), path.read_text(encoding='utf-8'))
        for module, names, alone in _IMPORT.findall(text):
            for name in re.findall(r'\w+', re.sub(r' as \w+', '', names)) or ['']:
                if exists(module or alone, name or None):
                    found.add((module or alone, name))
    return found


def loggers_of(releases):
    """Return the names of loggers that releases have and the package has today."""
    wanted = set()
    for folder in releases.values():
        for module, tree in modules_in(folder):
            wanted |= set(loggers_in(module, tree))
    return wanted & loggers_today()


def loggers_today():
    """Return the names of the package's loggers."""
    return {
        name for module, tree in modules_in(ROOT, 'getLogger') for name in loggers_in(module, tree)
    }


def loggers_in(module, tree):
    """Yield the names that a module passes to logging.getLogger()."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, 'attr', '') == 'getLogger':
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield argument.value
                elif getattr(argument, 'id', '') == '__name__':
                    yield module


def pickled():
    """Yield (what it is, pickle) for values that programs keep: structs, errors, partitioners."""
    structs = importlib.import_module('kafka.structs')
    for name, kind in sorted(vars(structs).items()):
        if inspect.isclass(kind) and issubclass(kind, tuple):
            yield 'structs.%s' % name, _dump(kind, [7] * len(kind._fields))
    errors = importlib.import_module('kafka.errors')
    for name in sorted(set(dir(errors))):
        kind = getattr(errors, name)
        if inspect.isclass(kind) and issubclass(kind, BaseException):
            yield 'errors.%s' % name, _dump(kind, ['text'])
    for module in ('hashed', 'roundrobin', 'default'):
        loaded = importlib.import_module('kafka.partitioner.%s' % module)
        for name, kind in sorted(vars(loaded).items()):
            if inspect.isclass(kind) and name.endswith('Partitioner'):
                yield 'partitioner.%s' % name, _dump(kind, [[0, 1, 2]])


def _dump(kind, arguments):
    try:
        return pickle.dumps(kind(*arguments), 2)
    except (TypeError, ValueError, AttributeError, pickle.PicklingError):
        return None  # it cannot be made so, or not be pickled today


def write(path, lines):
    """Add lines to those that a file has."""
    old = path.read_text(encoding='utf-8').splitlines() if path.exists() else []
    path.write_text(''.join(each + '\n' for each in sorted({*old, *lines})), encoding='utf-8')


def main(arguments):
    """Write the lists."""
    releases = dict(each.split('=', 1) for each in arguments)
    names = set(names_of_releases(releases)) | names_in_texts()
    write(NAMES, ['%s %s' % pair if pair[1] else pair[0] for pair in names])
    write(LOGGERS, loggers_of(releases))
    write(
        PICKLES,
        ['%s %s' % (what, base64.b64encode(data).decode()) for what, data in pickled() if data],
    )


if __name__ == '__main__':
    main(sys.argv[1:])
