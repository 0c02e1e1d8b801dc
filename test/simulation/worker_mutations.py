"""Mistakes in the division of turns between threads, each of which the simulation has to find.

Each function makes one, with a monkeypatch. Owns the mistakes; test_worker_seeds.py looks for them,
and ``python -m test.simulation.worker_mutations NAME ...`` tells which seed finds one.
"""

from __future__ import annotations

import sys

from kafka.net.loop.loop import Loop
from kafka.net.node_connection import NodeConnection
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sequence_numbers import Sequences
from kafka.producer.single_batch_path import SingleBatchPath
from test.simulation.mutations import search
from test.simulation.worker_runs import run_workers


def run_turns_in_every_thread(patch):
    def wait(self, done, deadline, first, me):
        return self._wait_driving(done, deadline, first, me)

    patch.setattr(Loop, '_wait_for_others', wait)


def leave_a_change_half_done(patch):
    def repair(self):
        self.is_changing = False

    patch.setattr(RecordAccumulator, '_repair', repair)


def leave_an_attempt_half_done(patch):
    patch.setattr(SingleBatchPath, 'mend', lambda self: None)


def take_an_ended_request_for_one_in_flight(patch):
    patch.setattr(NodeConnection, 'resume_made', lambda self, template, timeout: True)


def leave_a_number_half_done(patch):
    patch.setattr(Sequences, 'restore', lambda self, batch: False)


#: So many seeds a mistake has, beside the one that found it when this was written.
MOST = 200
#: Each mistake, and that seed.
MUTATIONS = {
    run_turns_in_every_thread: 0,
    leave_a_change_half_done: 3,
    leave_an_attempt_half_done: 1,
    take_an_ended_request_for_one_in_flight: 61,
    leave_a_number_half_done: 22,
}

#: Those that are found only where threads send records themselves.
OF_ATTEMPTS = (
    leave_an_attempt_half_done,
    take_an_ended_request_for_one_in_flight,
    leave_a_number_half_done,
)

if __name__ == '__main__':
    search(MUTATIONS, run_workers, sys.argv[1:])
