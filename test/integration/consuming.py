"""Short ways for the tests of the modern KafkaConsumer on brokers: to poll until something is so.

Also what tests of groups of both protocols have in common: a listener that takes notes, and who has
which of the partitions of the topic ``wide`` (conftest.py). Owns helpers only; what is compared
stands in the tests. What is read was written by other clients (judges.py), what was committed is
read by them.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict

from kafka import ConsumerRebalanceListener

#: For anything that has to happen; a machine may be busy.
SECONDS = 60
POLL_MS = 100
#: Of the topic ``wide``.
PARTITIONS = 4


def take(consumer, count, seconds=SECONDS, **options):
    """Poll until exactly so many records came, and return them in the order of their coming."""
    found = []
    deadline = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < deadline, '%d records of %d' % (len(found), count)
        for records in consumer.poll(POLL_MS, **options).values():
            found += records
    assert len(found) == count, 'wanted %d, came %r' % (count, places(found)[-10:])
    return found


def nothing_comes(consumer, seconds=0.5):
    """Return whether polling for some time brings no record."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if consumer.poll(POLL_MS):
            return False
    return True


def until(condition, *consumers, seconds=SECONDS):
    """Poll all consumers in turn until a condition holds; return what they were given, by each."""
    found = defaultdict(list)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, [each.assignment() for each in consumers]
        for number, each in enumerate(consumers):
            for records in each.poll(20).values():
                found[number] += records
    return [found[number] for number in range(len(consumers))]


def places(records):
    """Return (partition, offset) of records."""
    return [(each.partition, each.offset) for each in records]


def values(records, partition=None):
    """Return the values of records, of one partition alone if it is given."""
    return [each.value for each in records if partition in (None, each.partition)]


def offsets(records, partition):
    """Return the offsets of the records of a partition."""
    return [each.offset for each in records if each.partition == partition]


# --- groups -------------------------------------------------------------------------------------


class Notes(ConsumerRebalanceListener):
    """Notes what it is told: ('assigned', 'revoked' or 'lost', partitions, thread)."""

    def __init__(self):
        self.told = []

    def note(self, what, partitions):
        found = {each.partition for each in partitions}
        self.told.append((what, found, threading.current_thread()))

    def on_partitions_revoked(self, revoked):
        self.note('revoked', revoked)

    def on_partitions_assigned(self, assigned):
        self.note('assigned', assigned)

    def on_partitions_lost(self, lost):
        self.note('lost', lost)

    def of(self, what):
        return [found for kind, found, _ in self.told if kind == what]


def owned(consumer):
    """Return the numbers of the partitions that a member has."""
    return {each.partition for each in consumer.assignment()}


def share(*members, count=PARTITIONS):
    """Whether each has some, as many as the others, none has what another has, none is missing."""
    parts = [len(each.assignment()) for each in members]
    every = set().union(*(each.assignment() for each in members))
    return sum(parts) == len(every) == count and max(parts) - min(parts) <= 1


def numbered(count, start=0):
    """Return the same numbers for each partition."""
    return {p: [b'%d' % n for n in range(start, start + count)] for p in range(PARTITIONS)}
