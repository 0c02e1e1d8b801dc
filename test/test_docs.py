"""The documentation's own helpers, and that what the README points at is there."""

from __future__ import annotations

import ast
import glob
import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture
def convert(monkeypatch):
    """The conversion of docstrings, which Sphinx loads from docs/."""
    monkeypatch.syspath_prepend(os.path.join(ROOT, 'docs'))
    import docstrings

    return lambda text: '\n'.join(docstrings.convert(text.splitlines()))


def test_label_with_items_becomes_a_field_with_a_list(convert):
    assert convert(
        'Send.\n'
        '\n'
        'Arguments:\n'
        '    acks: how many,\n'
        '        or ACK_ALL.\n'
        '    timeout: ms.\n'
        'Raises: OSError when\n'
        '    it fails.\n'
    ) == (
        'Send.\n'
        '\n'
        ':Arguments: \n'
        '\n'
        '    - ``acks``: how many,\n'
        '      or ACK_ALL.\n'
        '\n'
        '    - ``timeout``: ms.\n'
        '\n'
        ':Raises: OSError when\n'
        '    it fails.\n'
    )


def test_bare_items_become_a_list_and_prose_stays(convert):
    assert convert('one: first\n    and more\ntwo: second') == (
        '\n- ``one``: first\n  and more\n\n- ``two``: second\n'
    )
    assert convert('Note: this is\nprose.') == 'Note: this is\nprose.\n'


def test_code_below_two_colons_keeps_its_lines(convert):
    code = 'So::\n\n    with one_ as it:\n        two: three\n\n    four\n\nProse.'
    assert convert(code) == code + '\n'


def test_definition_is_closed_and_underscores_are_no_references(convert):
    assert convert('Word\n    meaning\nThe ACK_ names, ``ACK_``.') == (
        'Word\n    meaning\n\nThe ACK\\_ names, ``ACK_``.\n'
    )


def test_what_the_readme_points_at_is_there():
    with open(os.path.join(ROOT, 'README.rst'), encoding='utf-8') as file:
        text = file.read()
    links = re.findall(r'`[^`<]*<([^`>]+)>`_', text) + re.findall(r'python3 (\S+\.py)', text)
    assert links
    assert [link for link in links if not os.path.exists(os.path.join(ROOT, link))] == []


def undescribed(body, prefix=''):
    """Yield the public classes, functions and methods of some code that have no docstring."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name[0] != '_':
            if not ast.get_docstring(node):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from undescribed(node.body, prefix + node.name + '.')


def test_everything_in_the_reference_is_described():
    """Fields and class attributes aside, which speak by their names and types."""
    missing = []
    for page in glob.glob(os.path.join(ROOT, 'docs', 'reference', '*.rst')):
        with open(page, encoding='utf-8') as file:
            modules = re.findall(r'automodule:: (\S+)', file.read())
        assert modules
        for module in modules:
            path = os.path.join(ROOT, *module.split('.')) + '.py'
            with open(path, encoding='utf-8') as file:
                tree = ast.parse(file.read())
            missing += undescribed(tree.body, module + '.')
    assert missing == []


def test_what_is_not_described_is_found():
    tree = ast.parse('class C:\n    """C."""\n    def m(self): pass\n    def _n(self): pass')
    assert list(undescribed(tree.body)) == ['C.m']
