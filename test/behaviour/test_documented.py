"""The tables of integration/documented.py name tests that exist, and all tests of examples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from test.integration import documented
from test.sources import ROOT

TESTS = Path(ROOT, 'test')
OWN = sorted((TESTS / 'integration').glob('test_documented_*.py'))
ROWS = documented.rows(documented.EXAMPLES) + documented.rows(documented.PROMISES)


def names_in(path):
    """Return the names of the test functions of a file."""
    tree = ast.parse(path.read_text(encoding='utf-8'))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith('test_')
    }


@pytest.mark.parametrize('row', ROWS, ids=lambda row: '%s: %s' % (row.place, row.what))
def test_the_test_of_a_row_exists(row):
    path, _, name = row.test.rpartition('::')
    files = [TESTS / path] if path else OWN
    assert sum(name in names_in(file) for file in files) == 1, row.test


def test_every_test_of_an_example_or_a_promise_is_in_a_row():
    named = {row.test for row in ROWS}
    assert set().union(*(names_in(path) for path in OWN)) - named == set()
