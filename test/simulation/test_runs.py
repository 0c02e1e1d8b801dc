"""Producers among brokers where much goes wrong: some seeds, and proof that mistakes are seen.

All seeds are in test_seeds.py. A mutation is a mistake put into one of the
machines; within a few seeds the simulation or the model of leaders has to notice each.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kafka.producer import sequence_numbers as sequences
from kafka.producer import transaction_state
from kafka.producer.in_flight_batches import InFlightBatches
from kafka.producer.produce_errors import ProduceAction, ProduceReaction, ProduceVerdict
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sequence_numbers import Sequences
from kafka.producer.transaction_errors import CallKind, CallOutcome
from kafka.producer.transaction_state import TransactionState
from kafka.protocol.produce_template import ProduceTemplate
from test.producer.test_sequence_numbers_by_model import walk
from test.raising import Interruption
from test.simulation import loop
from test.simulation.__main__ import main
from test.simulation.checks import Wrong
from test.simulation.copy_runs import run_copy
from test.simulation.group_runs import run_group
from test.simulation.producer import HAS_POINTS
from test.simulation.runs import run

ROOT = Path(__file__).parents[2]
SEEDS = range(12)
#: So many seeds are tried on each mutation.
MOST = 100


@pytest.mark.parametrize('seed', SEEDS)
def test_seed(seed):
    run(seed)


def test_a_seed_repeats():
    random.seed(1)  # chance that belongs to nobody must not matter
    one = [run(seed).history for seed in SEEDS]
    random.seed(2)
    other = [run(seed).history for seed in SEEDS]
    assert one == other
    assert len(set(one)) == len(SEEDS)


@pytest.mark.parametrize('hash_seed', ['1', '2'])
def test_a_seed_repeats_in_another_process(hash_seed):
    """A set has another order there, and objects other addresses."""
    ended = subprocess.run(
        [sys.executable, '-m', 'test.simulation', '--seeds', str(len(SEEDS))],
        capture_output=True,
        env=dict(os.environ, PYTHONHASHSEED=hash_seed),
        cwd=ROOT,
        timeout=120,
        check=True,
    )
    here = hashlib.sha256(b''.join(run(seed).history.encode() for seed in SEEDS))
    assert ended.stdout.split()[-1].decode() == here.hexdigest()[:16]


@pytest.mark.once
@pytest.mark.parametrize('kind, run_one', [('--groups', run_group), ('--copies', run_copy)])
def test_a_seed_of_a_group_repeats_in_another_process(kind, run_one):
    ended = subprocess.run(
        [sys.executable, '-m', 'test.simulation', kind, '--seeds', '4'],
        capture_output=True,
        env=dict(os.environ, PYTHONHASHSEED='3'),
        cwd=ROOT,
        timeout=120,
        check=True,
    )
    random.seed(3)
    here = hashlib.sha256(b''.join(run_one(seed).history.encode() for seed in range(4)))
    assert ended.stdout.split()[-1].decode() == here.hexdigest()[:16]


def test_a_failure_says_how_to_repeat_it(monkeypatch, capsys):
    def broken(self, batch, response):
        return ProduceVerdict(ProduceAction.DONE, base_offset=0)  # whatever the broker says

    monkeypatch.setattr(TransactionState, 'on_produced', broken)
    assert main(['--seeds', '3', '--most', '1']) == 1
    assert 'repeat it: python -m test.simulation --seed' in capsys.readouterr().out


# ---------------------------------------------------------------- mutations


def numbers_again(monkeypatch):
    """A batch that is tried again gets a new number."""
    stamp = Sequences.stamp

    def mutated(self, batch):
        numbered = self._numbered.pop(id(batch), None)
        if numbered is not None:
            self._partitions[batch.topic_partition].outstanding.remove(numbered)
        stamp(self, batch)

    monkeypatch.setattr(Sequences, 'stamp', mutated)


def begins_with_many(monkeypatch):
    """The first batch of an epoch does not go alone."""
    monkeypatch.setattr(sequences, 'MOST_IN_FLIGHT', 5)
    init = Sequences.__init__

    def mutated(self, is_transactional):
        init(self, is_transactional)
        self.begins_at_zero = True

    monkeypatch.setattr(Sequences, '__init__', mutated)


def renumbers_what_is_on_the_wire(monkeypatch):
    """Batches get other numbers while some of their partition are on the wire."""
    monkeypatch.setattr(sequences._Partition, 'is_on_wire', property(lambda self: False))


def fails_for_others(monkeypatch):
    """A batch that is refused for the sake of another one fails."""
    monkeypatch.setattr(Sequences, 'judge', lambda self, batch, response: ProduceReaction.FAIL)


def takes_every_answer_for_good(monkeypatch):
    """A lost request counts as stored."""

    def mutated(self, batch, error):
        self.sequences.on_stored(batch, 0)
        return ProduceVerdict(ProduceAction.DONE, base_offset=0)

    monkeypatch.setattr(TransactionState, 'on_lost', mutated)


def commits_before_all_is_stored(monkeypatch):
    """EndTxn does not wait for batches."""
    needs = TransactionState.needs
    monkeypatch.setattr(TransactionState, 'needs', lambda self, is_flushed: needs(self, True))


def turns_a_commit_into_an_abort(monkeypatch):
    """A commit whose answer was lost is tried again as an abort."""
    end = transaction_state.calls.end

    def mutated(caller, commits):
        mutated.calls += 1
        return end(caller, commits and mutated.calls % 2 == 1)

    mutated.calls = 0
    monkeypatch.setattr(transaction_state.calls, 'end', mutated)


def sends_before_partitions_are_added(monkeypatch):
    """Batches do not wait for AddPartitionsToTxn (version 1)."""
    monkeypatch.setattr(
        TransactionState, 'may_send', lambda self, batch: self.sequences.may_send(batch)
    )
    monkeypatch.setattr(transaction_state, 'SENDING', frozenset())


def takes_a_fence_for_success(monkeypatch):
    """A newer producer is not noticed."""
    outcome_of = transaction_state.outcome_of

    def mutated(call, code):
        return CallOutcome.DONE if code in (47, 90) else outcome_of(call, code)

    def mutated_end(code, commits):
        return mutated(CallKind.END, code)

    monkeypatch.setattr(transaction_state, 'outcome_of', mutated)
    monkeypatch.setattr(transaction_state, 'outcome_of_end', mutated_end)


def ends_before_the_coordinator_says_so(monkeypatch):
    """EndTxn that has to be tried again counts as carried out."""
    outcome_of_end = transaction_state.outcome_of_end

    def mutated(code, commits):
        outcome = outcome_of_end(code, commits)
        return CallOutcome.DONE if outcome in (CallOutcome.RETRY, CallOutcome.REFIND) else outcome

    monkeypatch.setattr(transaction_state, 'outcome_of_end', mutated)


def takes_each_answer_for_the_expected(monkeypatch):
    """Of a record that was sent alone every answer says that it is stored."""
    monkeypatch.setattr(ProduceTemplate, 'read', lambda self, data, number: (0, -1, 0))


def keeps_the_memory(monkeypatch):
    """A batch that is split, or failed, keeps its memory."""

    def finish(self, batch):
        if batch in self._held:
            self._release(batch)
        self._incomplete.pop(batch, None)

    monkeypatch.setattr(RecordAccumulator, '_finish', finish)


def leaves_futures_alone(monkeypatch):
    """A batch whose time is over is forgotten in silence."""
    forgotten = set()

    def give_up(self, batch, error):
        if batch not in forgotten:
            forgotten.add(batch)
            self._state.give_up(batch, error)

    monkeypatch.setattr(InFlightBatches, 'give_up', give_up)


def repairs_nothing(monkeypatch):
    """What an exception has left half done stays so."""
    monkeypatch.setattr(RecordAccumulator, '_repair', lambda self: None)


def forgets_what_comes_from_inside(monkeypatch):
    """A record that was sent in the middle of a change is never placed."""
    monkeypatch.setattr(RecordAccumulator, '_place', lambda self, deferred: None)


def sends_again_what_was_placed(monkeypatch):
    """A record whose call was ended is put into a batch once more."""
    append = RecordAccumulator.append

    def mutated(self, *arguments):
        try:
            return append(self, *arguments)
        except Interruption:
            append(self, *arguments)
            append(self, *arguments)
            raise

    monkeypatch.setattr(RecordAccumulator, 'append', mutated)


BY_SIMULATION = [
    numbers_again,
    fails_for_others,
    takes_every_answer_for_good,
    commits_before_all_is_stored,
    turns_a_commit_into_an_abort,
    sends_before_partitions_are_added,
    takes_a_fence_for_success,
    ends_before_the_coordinator_says_so,
    takes_each_answer_for_the_expected,
    keeps_the_memory,
    leaves_futures_alone,
    *(
        [repairs_nothing, forgets_what_comes_from_inside, sends_again_what_was_placed]
        if HAS_POINTS
        else []
    ),
]
BY_MODEL = [begins_with_many, renumbers_what_is_on_the_wire]


@pytest.mark.parametrize('mutation', BY_SIMULATION)
def test_the_simulation_finds(mutation, monkeypatch):
    mutation(monkeypatch)
    monkeypatch.setattr(loop, 'MAX_STEPS', 50_000)  # what spins is found, too
    with pytest.raises(Wrong):
        for seed in range(MOST):
            run(seed)


@pytest.mark.parametrize('mutation', BY_MODEL)
def test_the_model_of_leaders_finds(mutation, monkeypatch):
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(MOST):
            walk(seed)
