"""The sources of the repository as syntax trees, for test_architecture.py.

Owns the reading: modules, their imports, their functions. What is asked of them stands there.
"""

from __future__ import annotations

import ast
import os
import re
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Module(NamedTuple):
    """One source file: its dotted name, its path from the root, its text and its syntax tree."""

    name: str
    path: str
    text: str
    tree: ast.Module


class Import(NamedTuple):
    """One imported thing; `late` when the statement stands inside a function."""

    target: str
    late: bool
    for_types: bool


def parse(path, text):
    """Return the module that stands at `path` from the root."""
    name = re.sub(r'(/__init__)?\.py$', '', path).replace('/', '.')
    return Module(name, path, text, ast.parse(text))


def read_tree(*folders):
    """Return every module below `folders`, sorted by path.

    Not those of ``test/programs``: programs of other years, some of which are no Python 3.
    """
    found = []
    programs = os.path.join(ROOT, 'test', 'programs')
    for folder in folders:
        for directory, _, files in os.walk(os.path.join(ROOT, folder)):
            if 'kafka-bin' in directory or '_build' in directory:
                continue
            if directory.startswith(programs):
                continue
            for file in files:
                if file.endswith('.py'):
                    full = os.path.join(directory, file)
                    with open(full, encoding='utf-8') as source:
                        found.append(parse(os.path.relpath(full, ROOT), source.read()))
    return sorted(found, key=lambda module: module.path)


def imports(module, names):
    """Return the imports of `module`; `names` tells which names inside packages are modules."""
    found = []

    def visit(node, late, for_types):
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, late, for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            for alias in node.names:
                inner = '%s.%s' % (base, alias.name)
                found.append(Import(inner if inner in names else base, late, for_types))
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        typing = node.body if _asks_for_types(node) else []
        for child in ast.iter_child_nodes(node):
            visit(child, late or inside, for_types or child in typing)

    visit(module.tree, False, False)
    return found


def _asks_for_types(node):
    return isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.dump(node.test)


def _absolute(module, node):
    if not node.level:
        return node.module
    package = module.name.split('.')
    if not module.path.endswith('__init__.py'):
        package = package[:-1]
    package = package[: len(package) - node.level + 1]
    return '.'.join(package + ([node.module] if node.module else []))


def functions(tree, prefix=''):
    """Yield (qualified name, node) for every function, methods and inner ones included."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        name = prefix + node.name if named else prefix
        if named and not isinstance(node, ast.ClassDef):
            yield name, node
        yield from functions(node, name + '.' if named else prefix)
