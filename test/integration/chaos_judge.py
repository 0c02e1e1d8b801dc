"""What must hold of a log after chaos (chaos.py), given what a producer was told.

Owns the records that the programs of chaos write, the reading of them by confluent-kafka, and the
judgement. Pure but for read_log().
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

KEYS = 997
FILLING = b'.' * 80


def key_of(number: int) -> bytes:
    """Return the key of a record."""
    return b'key-%d' % (number % KEYS)


def value_of(number: int, transaction: int = 0) -> bytes:
    """Return the value of a record: its number, and which transaction it is sent in, 0 for none."""
    return b'%09d %06d %s' % (number, transaction, FILLING)


class Found(NamedTuple):
    """A record as it stands in a log."""

    offset: int
    key: bytes
    number: int
    transaction: int


class Told(NamedTuple):
    """What the producer said of a record: where it is, or the error; neither: it said nothing."""

    partition: int = -1
    offset: int = -1
    error: Optional[str] = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether it said that the record is stored."""
        return self.error is None and self.partition >= 0

    @property
    def is_resolved(self) -> bool:
        """Whether it said anything."""
        return self.error is not None or self.partition >= 0


class Transaction(NamedTuple):
    """A transaction. end: 'committed', 'aborted', or 'unknown' if nobody could say."""

    numbers: range
    end: str


class Judgement(NamedTuple):
    """Counts of records, all of which but the first three have to be 0.

    uncertain: stored though it was said that they failed, or that nobody knows; halves: of
    transactions of which not all or nothing can be seen; elsewhere: not where the producer said;
    foreign: that nobody sent so.
    """

    stored: int
    acknowledged: int
    uncertain: int
    failed: int
    lost: int
    duplicated: int
    disordered: int
    aborted: int
    halves: int
    elsewhere: int
    foreign: int
    unresolved: int

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong; a record that failed, and said so, is not."""
        return not any(self[4:])

    def __str__(self) -> str:
        return ', '.join('%s %d' % pair for pair in zip(self._fields, self))


Logs = Dict[int, List[Found]]


def judge(logs: Logs, told: Dict[int, Told]) -> Judgement:
    """Compare logs by partition with what an idempotent producer said of each record."""
    places: Dict[int, List[Tuple[int, int]]] = {}
    foreign = elsewhere = 0
    for partition, log in logs.items():
        for found in log:
            foreign += found.key != key_of(found.number) or found.number not in told
            places.setdefault(found.number, []).append((partition, found.offset))
    for number, each in told.items():
        if each.is_acknowledged and each.offset >= 0 and number in places:
            elsewhere += (each.partition, each.offset) not in places[number]
    good = {number for number, each in told.items() if each.is_acknowledged}
    return Judgement(
        stored=sum(map(len, logs.values())),
        acknowledged=len(good),
        uncertain=len(set(places) - good),
        failed=sum(each.error is not None for each in told.values()),
        lost=len(good - set(places)),
        duplicated=sum(len(found) - 1 for found in places.values()),
        disordered=disorder(logs),
        aborted=0,
        halves=0,
        elsewhere=elsewhere,
        foreign=foreign,
        unresolved=sum(not each.is_resolved for each in told.values()),
    )


def judge_transactions(
    logs: Logs, transactions: Dict[int, Transaction], unresolved: int
) -> Judgement:
    """Compare what a reader of committed records sees with how transactions ended.

    A number may be sent in many transactions, until one is committed.
    """
    seen: Dict[int, Set[int]] = {}
    times: Counter[int] = Counter()
    foreign = 0
    for log in logs.values():
        for found in log:
            times[found.number] += 1
            seen.setdefault(found.transaction, set()).add(found.number)
            own = transactions.get(found.transaction)
            is_own = own is not None and found.number in own.numbers
            foreign += not is_own or found.key != key_of(found.number)
    sums: Counter[str] = Counter()
    for name, (numbers, end) in transactions.items():
        visible = len(seen.get(name, ()))
        sums[end] += visible
        sums['sent ' + end] += len(numbers)
        if end == 'committed':
            sums['lost'] += len(numbers) - visible
        if end != 'aborted' and visible not in (0, len(numbers)):
            sums['halves'] += visible
    return Judgement(
        stored=sum(times.values()),
        acknowledged=sums['sent committed'],
        uncertain=sums['unknown'],
        failed=sums['sent aborted'],
        lost=sums['lost'],
        duplicated=sum(count - 1 for count in times.values()),
        disordered=disorder(logs),
        aborted=sums['aborted'],
        halves=sums['halves'],
        elsewhere=0,
        foreign=foreign,
        unresolved=unresolved,
    )


def disorder(logs: Logs) -> int:
    """Count the records that stand behind a later one, or a like one, of their key."""
    count = 0
    for log in logs.values():
        latest: Dict[bytes, int] = {}
        for found in log:
            count += latest.get(found.key, -1) > found.number
            latest[found.key] = max(latest.get(found.key, -1), found.number)
    homes = Counter(key for log in logs.values() for key in {found.key for found in log})
    return count + sum(homes[key] > 1 for key in homes)


def read_log(bootstrap: str, topic: str, partition: int, seconds: float = 180) -> List[Found]:
    """Return the committed records of a partition as confluent-kafka reads them."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition  # late: the judge's alone

    options: Dict[str, Any] = {
        'bootstrap.servers': bootstrap,
        'group.id': 'judge',
        'enable.auto.commit': False,
        'enable.partition.eof': True,
        'isolation.level': 'read_committed',
        'log_level': 0,
    }
    consumer = Consumer(options)
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: List[Found] = []
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(2000, 0.5):
                error = message.error()
                if error is None:
                    found.append(_found(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                elif error.fatal() or not error.retriable():
                    raise AssertionError('the judge cannot read: %s' % error)
    finally:
        consumer.close()
    raise AssertionError('%d records read, and no end in %s s' % (len(found), seconds))


def _found(message: Any) -> Found:
    number, transaction, _ = message.value().split(b' ')
    return Found(message.offset(), message.key(), int(number), int(transaction))
