"""What leaders know of producers, as small as it can be written: a model to test producers against.

Owns the log of one partition, the epochs, the last five batches, and connections on which requests
are answered in order, lost, or arrive long after the client has hung up. Written from the documents
of the protocol and what real brokers answered, not from the embedded broker, so that each may be
wrong by itself.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from test.producer.numbered import answer

SEQUENCES = 2**31


class Sent(NamedTuple):
    """A batch as it is on the wire: its numbers as they were when it was sent."""

    batch: object
    producer_id: int
    epoch: int
    base: int
    records: tuple


class Partition:
    """One partition's leader.

    Arguments: strict: whether a producer that is not known has to begin at 0.
    """

    def __init__(self, strict=False):
        self.log = []
        self.largest = 100  # records in a batch
        self.refused = set()  # records that break a rule
        self._strict = strict
        self._producers = {}  # id -> (epoch, deque of (base, count, offset))

    def produce(self, sent):
        """Return (code, offset) and append where that is 0."""
        count = len(sent.records)
        if count > self.largest:
            return 10, -1
        if self.refused.intersection(sent.records):
            return 87, -1
        known = self._producers.get(sent.producer_id)
        if known is None:
            if self._strict and sent.base:
                return 45, -1
        else:
            epoch, batches = known
            if sent.epoch < epoch:
                return 47, -1
            if sent.epoch > epoch:
                if sent.base:
                    return 45, -1
            else:
                for base, size, offset in batches:
                    if (base, size) == (sent.base, count):
                        return 0, offset
                base, size, _ = batches[-1]
                if sent.base != (base + size) % SEQUENCES:
                    return 45, -1
        if known is None or sent.epoch > known[0]:
            known = self._producers[sent.producer_id] = sent.epoch, deque(maxlen=5)
        offset = len(self.log)
        self.log.extend(sent.records)
        known[1].append((sent.base, count, offset))
        return 0, offset

    def forget(self):
        """Forget all producers, as after a long time."""
        self._producers.clear()


class Connection:
    """Requests on their way to a leader, and answers on their way back, each in order."""

    def __init__(self, partition):
        self._partition = partition
        self.requests = deque()
        self.answers = deque()

    def send(self, sent):
        """Send a batch."""
        self.requests.append(sent)

    def serve(self, code=0, applies=True):
        """Let the broker take the next request; with a code, answer that instead of the truth."""
        sent = self.requests.popleft()
        found, offset = self._partition.produce(sent) if applies else (0, -1)
        if code:
            found, offset = code, -1
        self.answers.append((sent.batch, answer(found, offset)))

    @property
    def unanswered(self):
        """The batches whose answers the client has not seen, in order."""
        return [batch for batch, _ in self.answers] + [sent.batch for sent in self.requests]
