"""What each foreign client is asked to do, by verbs that all of them have.

Owns the steps and what must come out of them; the verbs are the clients' (with_*.py). Runs in the
environments of the clients.

A client has: ``producer(codec, idempotent, transactional_id)`` with ``send(topic, value, key,
partition, headers, timestamp)``, ``flush()`` and for transactions ``begin``, ``commit``, ``abort``,
``send_offsets(member, {(topic, partition): offset})``, and ``close()``; ``consumer(group, topic,
protocol)`` with ``poll(seconds)``, ``assignment()``, ``commit()``, ``close()``; ``read(topic,
partitions, committed)``, ``committed(group, topic, partitions)``, ``bounds(topic, partitions)``,
``at_time(topic, partition, ms)``, ``admin(checks, names)``. It is made from ``cluster``: addresses,
release, and for some steps a ``login``.
"""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import Any, Iterable, List, Optional, Set

from checking import Checks, Member, Record

SECONDS = 25.0
EPOCH_MS = 1_600_000_000_000
HEADERS, TIMESTAMPS = (0, 11), (0, 10)


# --- records and codecs -------------------------------------------------------------------------


def some_records(version: List[int], count: int = 150) -> List[Record]:
    """Return records for two partitions: with and without keys, null, empty, and large values."""
    made = []
    for number in range(count):
        partition, offset = number % 2, number // 2
        value: Optional[bytes] = b'value %06d ' % number * (1 + number % 7)
        if number % 31 == 5:
            value = None
        if number % 31 == 6:
            value = b''
        if number == 40:
            value = b'\0large\xff' * 20000
        key = None if number % 5 == 0 and value is not None else ('schlüssel %d' % number).encode()
        headers = (('n', b'%d' % number), ('n', b''), ('of', b'\xff')) if number % 3 == 0 else ()
        has_headers, has_time = (tuple(version) >= each for each in (HEADERS, TIMESTAMPS))
        made.append(
            Record(
                partition,
                offset,
                key,
                value,
                headers if has_headers else (),
                EPOCH_MS + number if has_time else -1,
            )
        )
    return made


def shown(records: Iterable[Record]) -> List[str]:
    """Return records as texts, sorted by place, large values by their hash."""
    lines = []
    for each in sorted(records, key=lambda record: record[:2]):
        value = each.value
        if value is not None and len(value) > 100:
            value = hashlib.sha1(value).hexdigest().encode()
        lines.append(
            '%d-%d %r %r %r %d'
            % (each.partition, each.offset, each.key, value, list(each.headers), each.timestamp)
        )
    return lines


def write(client: Any, checks: Checks, topic: str, codec: str) -> Any:
    """Write records with a codec and read them back."""
    records = some_records(client.version)
    producer = client.producer(codec)
    for each in records:
        given = {'headers': list(each.headers)} if each.headers else {}
        if each.timestamp >= 0:
            given['timestamp'] = each.timestamp
        producer.send(topic, each.value, each.key, each.partition, **given)
    producer.flush()
    producer.close()
    checks.records('what it wrote, read back', shown(client.read(topic, [0, 1])), shown(records))


def read(client: Any, checks: Checks, topic: str) -> Any:
    """Read the records that :func:`write` wrote in another client."""
    found, expected = client.read(topic, [0, 1]), some_records(client.version)
    checks.records('what another client wrote', shown(found), shown(expected))


def look_up(client: Any, checks: Checks, topic: str) -> Any:
    """Ask where a log begins and ends, and what has been there at a time."""
    producer = client.producer('none')
    for number in range(20):
        given = {'timestamp': EPOCH_MS + 1000 * number} if client.has_times else {}
        producer.send(topic, b'%d' % number, None, 1, **given)
        producer.flush()
    producer.close()
    checks.equal('bounds of the log', client.bounds(topic, [0, 1]), {0: (0, 0), 1: (0, 20)})
    if client.has_times:
        checks.equal('offset at a time', client.at_time(topic, 1, EPOCH_MS + 6500), 7)
        checks.equal('offset at the time of a record', client.at_time(topic, 1, EPOCH_MS), 0)
        checks.equal('offset behind all', client.at_time(topic, 1, EPOCH_MS * 2), None)
    found = [each.value for each in client.read(topic, [1], start=15)]
    checks.equal('records from 15 on', found, [b'%d' % number for number in range(15, 20)])


def make_by_use(client: Any, checks: Checks, topic: str) -> Any:
    """Write to a topic that nobody has created."""
    producer = client.producer('none')
    for number in range(10):
        producer.send(topic, b'%d' % number, None, 0)
    producer.flush()
    producer.close()
    found = [each.value for each in client.read(topic, [0])]
    checks.records('records', found, [b'%d' % number for number in range(10)])


# --- groups -------------------------------------------------------------------------------------


def group(client: Any, checks: Checks, topic: str, protocol: str) -> Any:
    """Read in a group of two; one leaves; the other goes on; a third one resumes."""
    name = 'group of ' + topic
    every = [0, 1, 2, 3]
    written: Set[bytes] = set()

    def fill(mark: str, count: int) -> Set[bytes]:
        producer = client.producer('none')
        values = {('%s %d' % (mark, number)).encode() for number in range(count)}
        for number, value in enumerate(sorted(values)):
            producer.send(topic, value, None, number % 4)
        producer.flush()
        producer.close()
        written.update(values)
        return values

    first_values = fill('first', 80)
    first = Member(client.consumer(name, topic, protocol))
    checks.becomes('partitions of one member alone', first.assignment, every, SECONDS)
    checks.becomes('what it reads', lambda: _values(first), sorted(first_values), SECONDS)
    first.do(first.consumer.commit)
    second = Member(client.consumer(name, topic, protocol))
    checks.becomes(
        'partitions of two members',
        lambda: (sorted(first.assignment() + second.assignment()), len(second.assignment())),
        (every, 2),
        SECONDS,
    )
    values = fill('second', 80)
    checks.becomes(
        'what two members read',
        lambda: sorted(_values(first, 80) + _values(second)),
        sorted(values),
        SECONDS,
    )
    checks.equal('who read some', (len(first.seen), len(second.seen)), (80 + 40, 40))
    for member in (first, second):
        member.do(member.consumer.commit)
    checks.equal(
        'committed offsets', client.committed(name, topic, every), dict.fromkeys(every, 40)
    )
    second.close()
    checks.becomes('partitions of the one that stayed', first.assignment, every, SECONDS)
    values = fill('third', 40)
    checks.becomes('what it reads', lambda: _values(first, 120), sorted(values), SECONDS)
    first.do(first.consumer.commit)
    first.close()
    values = fill('fourth', 20)
    third = Member(client.consumer(name, topic, protocol))
    checks.becomes(
        'what is read from committed offsets on',
        lambda: _values(third),
        sorted(values),
        SECONDS,
    )
    third.close()


def _values(member: Member, start: int = 0) -> List[bytes]:
    member.check()
    return sorted(each.value or b'' for each in member.seen[start:])


# --- idempotence, transactions, death -----------------------------------------------------------


def idempotence(client: Any, checks: Checks, topic: str) -> Any:
    """Write while answers are lost, and find each record once and in order."""
    producer = client.producer('none', idempotent=True)
    for number in range(60):
        producer.send(topic, b'%d' % number, None, 0)
        if number % 10 == 9:
            producer.flush()
    producer.close()
    found = [each.value for each in client.read(topic, [0])]
    checks.records('records', found, [b'%d' % number for number in range(60)])


def transactions(client: Any, checks: Checks, topic: str, source: str) -> Any:
    """Commit and abort, with offsets of a group too, and read what is committed."""

    def values(committed: bool) -> List[Optional[bytes]]:
        return [each.value for each in client.read(topic, [0, 1], committed=committed)]

    def send(mark: bytes) -> List[bytes]:
        for number in range(10):
            producer.send(topic, mark + b'%d' % number, None, number % 2)
        producer.flush()
        every = [mark + b'%d' % number for number in range(10)]
        return every[::2] + every[1::2]

    producer = client.producer('none', transactional_id='id of ' + topic)
    producer.begin()
    first = send(b'a')
    checks.records('committed while it is open', values(True), [])
    producer.commit()
    checks.records('committed', values(True), first)
    producer.begin()
    second = send(b'b')
    producer.abort()
    checks.records('committed, after an abort', values(True), first)
    by_partition = [first[:5] + second[:5], first[5:] + second[5:]]
    checks.records('everything', values(False), sum(by_partition, []))
    _offsets_in_transactions(client, checks, topic, source, producer)
    follower = client.producer('none', transactional_id='id of ' + topic)

    def write_as_the_old_one() -> None:
        producer.begin()
        producer.send(topic, b'c', None, 0)
        producer.commit()

    checks.raises('a producer whose id another one has', 'fenced', write_as_the_old_one)
    follower.begin()
    follower.send(topic, b'd', None, 0)
    follower.commit()
    follower.close()
    checks.records('committed, at the end', values(True)[5:], [b'd', *first[5:]])


def _offsets_in_transactions(
    client: Any, checks: Checks, topic: str, source: str, producer: Any
) -> None:
    name = 'group of ' + source
    plain = client.producer('none')
    for number in range(10):
        plain.send(source, b'%d' % number, None, 0)
    plain.flush()
    plain.close()
    member = Member(client.consumer(name, source, 'classic'))
    checks.becomes('what the group reads', lambda: len(_values(member)), 10, SECONDS)
    producer.begin()
    producer.send_offsets(member, {(source, 0): 4})
    producer.abort()
    checks.equal('offset after an abort', client.committed(name, source, [0]), {0: None})
    producer.begin()
    producer.send_offsets(member, {(source, 0): 7})
    producer.commit()
    checks.equal('offset after a commit', client.committed(name, source, [0]), {0: 7})
    member.close()


def death(client: Any, checks: Checks, topic: str, idempotent: bool) -> Any:
    """Write and read while the leader of the partition dies and comes back."""
    expected = [b'%d' % number for number in range(240)]
    consumer = Member(client.consumer('group of ' + topic, topic, 'classic'))
    producer = client.producer('none', idempotent=idempotent)
    began = time.monotonic()
    for number, value in enumerate(expected):
        producer.send(topic, value, None, 0)
        time.sleep(max(0.0, began + number * 0.01 - time.monotonic()))
    producer.flush()
    producer.close()
    found = [each.value for each in client.read(topic, [0])]
    if idempotent:
        checks.records('records', found, expected)
    else:  # it may have sent some twice
        checks.records('records', sorted(set(found), key=int), expected)
    checks.becomes(
        'what a group read meanwhile',
        lambda: sorted({each.value for each in consumer.seen}, key=int),
        expected,
        SECONDS,
    )
    consumer.close()


# --- for others -------------------------------------------------------------------------------


def fill(client: Any, checks: Checks, topic: str, texts: List[List[Any]], codec: str) -> Any:
    """Write [partition, key, value] for somebody else to read."""
    producer = client.producer(codec)
    for partition, key, value in texts:
        producer.send(topic, value.encode(), None if key is None else key.encode(), partition)
    producer.flush()
    producer.close()


def dump(client: Any, checks: Checks, topic: str, partitions: List[int]) -> Any:
    """Return [partition, offset, key, value] of all records that are committed."""
    committed = client.version >= [0, 11]
    return [
        [each.partition, each.offset, each.key and each.key.decode(), (each.value or b'').decode()]
        for each in client.read(topic, partitions, committed=committed)
    ]


def transact(client: Any, checks: Checks, topic: str, name: str, texts: List[str]) -> Any:
    """Write in a transaction, and commit it."""
    producer = client.producer('none', transactional_id=name)
    producer.begin()
    for text in texts:
        producer.send(topic, text.encode(), None, 0)
    producer.commit()
    producer.close()


# --- logins -----------------------------------------------------------------------------------


def log_in(client: Any, checks: Checks, topic: str, mechanisms: List[str], ca: str) -> Any:
    """Write and read over TLS as somebody who may, and fail as nobody and where one may not."""

    def logged_in(password: str) -> Any:
        login = {'mechanism': mechanism, 'user': 'someone', 'password': password, 'ca': ca}
        return type(client)({**client.cluster, 'login': login})

    for number, mechanism in enumerate(mechanisms):
        somebody = logged_in('secret')
        group_of_one(somebody, topic, 'group of ' + mechanism)
        found = len(somebody.read(topic, [0]))
        checks.equal('records written with ' + mechanism, found, 11 * number + 10)
        producer = somebody.producer('none')
        # kafka-python 2.0.2 asks for ever if it knows no other topic.
        producer.send(topic, b'allowed', None, 0)
        producer.flush()

        def trespass(producer: Any = producer) -> None:
            producer.send('forbidden', b'x', None, 0)
            producer.flush()

        # From 0.10.1 to 0.11 brokers call a topic unknown that one may not know of (KAFKA-5547):
        # clients wait for it as for one that is about to be made, a minute and longer.
        if not [0, 10, 1] <= client.version < [1, 0]:
            checks.raises('writing where one may not', 'authoriz', trespass)
        ask = logged_in('guessed').bounds
        checks.raises('a wrong password', '', partial(ask, topic, [0]))


# --- administration -----------------------------------------------------------------------------


def admin(client: Any, checks: Checks, topic: str) -> Any:
    """Do what the client can administer."""
    client.admin(checks, topic)


def group_of_one(client: Any, topic: str, name: str) -> None:
    """Write ten records, and read them in a group that commits."""
    producer = client.producer('none')
    for number in range(10):
        producer.send(topic, b'%d' % number, None, 0)
    producer.flush()
    producer.close()
    member = Member(client.consumer(name, topic, 'classic'))
    Checks().becomes('what a group reads', lambda: len(_values(member)) >= 10, True, SECONDS)
    member.do(member.consumer.commit)
    member.close()


STEPS = {
    'write': write,
    'read': read,
    'look_up': look_up,
    'make_by_use': make_by_use,
    'group': group,
    'idempotence': idempotence,
    'transactions': transactions,
    'death': death,
    'admin': admin,
    'fill': fill,
    'dump': dump,
    'transact': transact,
    'log_in': log_in,
}
