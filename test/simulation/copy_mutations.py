"""Mistakes in copying exactly once, each of which the simulation of copies has to find.

Each function makes one, with a monkeypatch. Owns the mistakes; test_copy_mutations.py looks for
them, and ``python -m test.simulation.copy_mutations NAME ...`` tells which seed finds one.
"""

from __future__ import annotations

import sys

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.partition_state import TopicPartitionState
from kafka.coordinator.commits import manager as offset_commits
from kafka.exactly_once import ExactlyOnce, _State
from kafka.producer.kafka import KafkaProducer
from kafka.structs import ConsumerGroupMetadata
from test.simulation.copy_runs import run_copy
from test.simulation.mutations import search


def commit_no_offsets(patch):
    patch.setattr(KafkaProducer, 'send_offsets_to_transaction', lambda self, *arguments: None)


def do_not_go_back(patch):
    def go_back(self):
        self._polled, self._batch = [], None

    patch.setattr(ExactlyOnce, '_go_back', go_back)


def commit_as_nobody(patch):
    """The group fences nobody then."""
    real = ExactlyOnce._next_batch

    def next_batch(self):
        batch = real(self)
        return batch and batch._replace(who=ConsumerGroupMetadata(batch.who.group_id))

    patch.setattr(ExactlyOnce, '_next_batch', next_batch)
    patch.setattr(ExactlyOnce, '_is_thrown_out', lambda self, batch: False)


def say_who_at_the_end(patch):
    """Who the member is when offsets are sent, not when the records were handed out."""
    real = KafkaProducer.send_offsets_to_transaction

    def send_offsets(self, offsets, who):
        real(self, offsets, consumers[who.group_id].group_metadata())

    consumers = {}
    init = ExactlyOnce._transaction

    def transaction(self, transform, batch):
        consumers[batch.who.group_id] = self._consumer
        return init(self, transform, batch)

    patch.setattr(ExactlyOnce, '_transaction', transaction)
    patch.setattr(KafkaProducer, 'send_offsets_to_transaction', send_offsets)


def begin_at_offsets_that_may_change(patch):
    """Offsets of an open transaction are not waited for."""
    real = offset_commits.fetch_request

    def fetch_request(*arguments):
        request = real(*arguments)
        request.require_stable = False
        return request

    patch.setattr(offset_commits, 'fetch_request', fetch_request)


def commit_behind_what_comes_next(patch):
    real = ExactlyOnce._offset_behind

    def offset_behind(self, partition, last):
        found = real(self, partition, last)
        return found._replace(offset=found.offset + 1)

    patch.setattr(ExactlyOnce, '_offset_behind', offset_behind)


def go_on_after_a_transform_that_failed(patch):
    def give_up(self):
        if self._state is _State.OPEN:
            self._move(_State.COMMITTING)
            self._commit()

    patch.setattr(ExactlyOnce, '_give_up', give_up)


def copy_what_was_aborted(patch):
    real = CompletedFetch.__init__

    def init(self, *args, **named):
        real(self, *args, **{**named, 'read_committed': False})

    patch.setattr(CompletedFetch, '__init__', init)


def begin_at_the_beginning(patch):
    real = TopicPartitionState.begin_at

    def begin_at(self, token, committed):
        return real(self, token, committed._replace(offset=0, leader_epoch=-1))

    patch.setattr(TopicPartitionState, 'begin_at', begin_at)


#: So many seeds a mistake has, beside the one that found it when this was written.
MOST = 300
#: Each mistake, and that seed.
MUTATIONS = {
    commit_no_offsets: 0,
    do_not_go_back: 2,
    commit_as_nobody: 3,
    say_who_at_the_end: 19,
    begin_at_offsets_that_may_change: 58,
    commit_behind_what_comes_next: 0,
    go_on_after_a_transform_that_failed: 0,
    copy_what_was_aborted: 0,
    begin_at_the_beginning: 0,
}

if __name__ == '__main__':
    search(MUTATIONS, run_copy, sys.argv[1:])
