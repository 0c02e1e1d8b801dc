"""Batches and answers for the tests of sequence numbers and transactions: values, no behaviour."""

from __future__ import annotations

from kafka.protocol.produce import PartitionProduceResponse
from kafka.structs import TopicPartition

PLACE = TopicPartition('t', 0)


class Batch:
    """Has what is numbered, and remembers each number it was given."""

    def __init__(self, count=1, place=PLACE, name=''):
        self.topic_partition = place
        self.record_count = count
        self.name = name
        self.stamps = []

    def __repr__(self):
        return '<Batch %s %s>' % (self.name, self.stamps[-1:])

    def restamp(self, producer_id, producer_epoch, base_sequence, is_transactional):
        """Carry these numbers."""
        self.stamps.append((producer_id, producer_epoch, base_sequence))
        self.is_transactional = is_transactional

    @property
    def epoch(self):
        """The epoch it has now."""
        return self.stamps[-1][1]

    @property
    def base(self):
        """The number of its first record now."""
        return self.stamps[-1][2]


def answer(code=0, offset=-1, **fields):
    """Return the answer about one partition."""
    return PartitionProduceResponse(index=0, error_code=code, base_offset=offset, **fields)
