"""The page about foreign clients: what it shows of outcomes, and that nothing is missing in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.foreign.clients import CLIENTS
from test.foreign.console import OLDEST, TOOL_STEPS
from test.foreign.plan import STEPS
from test.foreign.running import Outcome
from test.foreign.table import page

DOCUMENT = Path(__file__).resolve().parent.parent.parent / 'docs' / 'foreign_clients.rst'
STEP = STEPS[0].name


@pytest.fixture
def lines():
    """The page about a client that did, did not, failed and was not asked."""
    outcomes = [
        Outcome('one', '4.4', STEP, 3),
        Outcome('one', '2.8', STEP, absent='it cannot'),
        Outcome('one', '4.0', STEP, 1, failed='expected 1, found 2'),
    ]
    return page(outcomes, ['one'], ['0.9', '2.8', '4.0', '4.4']).splitlines()


@pytest.mark.parametrize('row', ['one', STEP])
def test_a_cell_is_the_number_of_checks_or_says_why_there_are_none(lines, row):
    (line,) = [each for each in lines if each.startswith(row + '  ')]
    assert line[len(row) :].split() == ['?', '–', '**1', 'failed**', '3']


def test_reasons_stand_below_the_table(lines):
    assert '- %s, up to 2.8: it cannot' % STEP in lines
    failed = '- failed: one on 4.0, %s: FAILED after 1 checks: expected 1, found 2' % STEP
    assert failed in lines


def test_the_page_tells_of_all_clients_and_steps_and_none_failed():
    text = DOCUMENT.read_text(encoding='utf-8')
    names = [each.name for each in (*CLIENTS, *STEPS, *TOOL_STEPS)] + list(OLDEST)
    assert [name for name in names if name not in text] == []
    assert '?' not in text and 'failed' not in text
