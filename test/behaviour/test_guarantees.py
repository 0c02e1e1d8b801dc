"""docs/guarantees.rst: each test that a row names exists."""

from __future__ import annotations

import ast
import os
import re

import pytest

from test.sources import ROOT

# Says the same on every Python.
pytestmark = pytest.mark.once

with open(os.path.join(ROOT, 'docs', 'guarantees.rst'), encoding='utf-8') as _page:
    NAMED = sorted(set(re.findall(r'``(test/[\w/]+\.py)::(\w+)``', _page.read())))


@pytest.mark.parametrize('path, name', NAMED)
def test_the_test_of_a_guarantee_exists(path, name):
    with open(os.path.join(ROOT, path), encoding='utf-8') as source:
        tree = ast.parse(source.read())
    assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


def test_each_row_names_a_test():
    with open(os.path.join(ROOT, 'docs', 'guarantees.rst'), encoding='utf-8') as page:
        rows = page.read().split('   * - ')[1:]
    wanting = [row for row in rows if '``test/' not in row and not row.startswith('configuration')]
    assert not wanting
    assert len(rows) > 15
