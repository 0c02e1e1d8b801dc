"""Producers among brokers where much goes wrong: some seeds, and proof that mistakes are seen.

All of it is ``python -m test.simulation --seeds 2000``. A mutation is a mistake put into one of the
machines; within a few seeds the simulation or the model of leaders has to notice each.
"""

from __future__ import annotations

import pytest

from kafka.producer.transaction_state import TransactionState
from kafka.producer.verdicts import Action, Verdict
from test.simulation.__main__ import main
from test.simulation.runs import Run, run

SEEDS = range(12)
#: So many seeds are tried on each mutation.
MOST = 60


@pytest.mark.parametrize('seed', SEEDS)
def test_seed(seed):
    run(seed)


def test_a_seed_repeats():
    one, other = Run(5), Run(5)
    one.go()
    other.go()
    assert [[v for v, _ in one.sent[p]] for p in one.sent] == [
        [v for v, _ in other.sent[p]] for p in other.sent
    ]
    assert [str(f.exception) for _, f in one.sent[0]] == [
        str(f.exception) for _, f in other.sent[0]
    ]


def test_a_failure_says_how_to_repeat_it(monkeypatch, capsys):
    def broken(self, batch, response):
        return Verdict(Action.DONE, base_offset=0)  # whatever the broker says

    monkeypatch.setattr(TransactionState, 'on_produced', broken)
    assert main(['--seeds', '3', '--most', '1']) == 1
    assert 'repeat it: python -m test.simulation --seed' in capsys.readouterr().out
