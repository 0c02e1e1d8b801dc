"""Mistakes in the division of turns between threads, each of which the simulation has to find.

Each function makes one, with a monkeypatch. Owns the mistakes; test_worker_seeds.py looks for them,
and ``python -m test.simulation.worker_mutations NAME ...`` tells which seed finds one.
"""

from __future__ import annotations

import sys
import threading

from kafka.net.loop.loop import Loop
from kafka.producer.record_accumulator import RecordAccumulator
from test.simulation.mutations import search
from test.simulation.worker_runs import run_workers


def run_turns_in_every_thread(patch):
    def wait(self, done, deadline, begin):
        return self._wait_driving(done, deadline, begin, threading.get_ident())

    patch.setattr(Loop, '_wait_for_others', wait)


def leave_a_change_half_done(patch):
    def repair(self):
        self.is_changing = False

    patch.setattr(RecordAccumulator, '_repair', repair)


#: So many seeds a mistake has, beside the one that found it when this was written.
MOST = 50
#: Each mistake, and that seed.
MUTATIONS = {run_turns_in_every_thread: 0, leave_a_change_half_done: 3}

if __name__ == '__main__':
    search(MUTATIONS, run_workers, sys.argv[1:])
