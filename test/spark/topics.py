"""Topics of many kinds on a real broker, for two connectors to read.

Owns what is in them. Written by confluent-kafka, which is neither of the two: keys and values that
are null or empty, headers, every codec, transactions with aborts, gaps of compaction, a log that
begins late, and on brokers before 3.0 the formats v0 and v1.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, Optional

BEGAN = 1_700_000_000_000  # ms since 1970: of the first record where they have times
SECONDS = 60
KEPT = {'retention.ms': '-1'}  # times are old
#: Compaction comes within a second there; see :class:`servers.cluster.Cluster`.
SETTINGS = {'log.cleaner.backoff.ms': '200', 'log.initial.task.delay.ms': '100'}
CODECS = ('none', 'gzip', 'snappy', 'lz4', 'zstd')
#: By the format of messages: what ``message.format.version`` says for it.
FORMATS = {'v0': '0.9.0', 'v1': '0.10.2', 'v2': '2.8'}


def fill(cluster: Any, topic: str, records: Iterable[Dict[str, Any]], **config: Any) -> None:
    """Write records: partition, and what else ``Producer.produce`` takes."""
    from confluent_kafka import Producer  # late, as in all of this file: only jobs need it

    producer = Producer({'bootstrap.servers': cluster.bootstrap, 'linger.ms': 5, **config})
    for record in records:
        producer.produce(topic, **record)
        producer.poll(0)
    assert producer.flush(SECONDS) == 0


def make_plain(cluster: Any, topic: str) -> None:
    """Three partitions, 14 records each, a second between; keys and values may be null or empty."""
    cluster.create_topic(topic, 3, config=KEPT)
    records = [
        {
            'partition': number % 3,
            'key': (None, b'', b'key %d' % number)[number % 4 % 3],
            'value': None if number % 5 == 0 else b'' if number % 7 == 0 else b'%d' % number,
            'timestamp': BEGAN + number * 1000,
        }
        for number in range(42)
    ]
    fill(cluster, topic, records)


def make_empty(cluster: Any, topic: str) -> None:
    """Two partitions without a record."""
    cluster.create_topic(topic, 2, config=KEPT)


def make_headers(cluster: Any, topic: str) -> None:
    """Records with no headers, one, the same twice, without value, and not of ASCII."""
    cluster.create_topic(topic, 1, config=KEPT)
    kinds = [None, [('h', b'x')], [('h', b'x'), ('h', b'y')], [('n', None)], [('ä€', b'\x00\xff')]]
    fill(cluster, topic, [{'value': b'v', 'partition': 0, 'headers': each} for each in kinds])


def make_codecs(cluster: Any, topic: str, codecs: Iterable[str] = CODECS, **config: str) -> None:
    """A partition for each codec, in batches of several sizes."""
    codecs = list(codecs)
    cluster.create_topic(topic, len(codecs), config={**KEPT, **config})
    for partition, codec in enumerate(codecs):
        for size in (1, 3, 200):
            records = [
                {'partition': partition, 'key': b'%d' % each, 'value': b'value ' * each}
                for each in range(size)
            ]
            fill(cluster, topic, records, **{'compression.type': codec, 'linger.ms': 50})


def make_transactions(cluster: Any, topic: str) -> None:
    """Records that were committed, aborted, committed, and aborted at the end."""
    from confluent_kafka import Producer

    cluster.create_topic(topic, 2, config=KEPT)
    config = {'bootstrap.servers': cluster.bootstrap, 'transactional.id': topic}
    producer = Producer(config)
    producer.init_transactions(SECONDS)
    for number, is_good in enumerate((True, False, True, True, False)):
        producer.begin_transaction()
        for each in range(5):
            producer.produce(topic, b'%d of %d' % (each, number), partition=each % 2)
        producer.flush(SECONDS)
        end = producer.commit_transaction if is_good else producer.abort_transaction
        end(SECONDS)


def make_compacted(cluster: Any, topic: str) -> None:
    """A log of which compaction has taken records out of the middle."""
    config = {
        'cleanup.policy': 'compact',
        'segment.ms': '100',
        'min.cleanable.dirty.ratio': '0.01',
        'min.compaction.lag.ms': '0',
        'max.compaction.lag.ms': '500',
    }
    cluster.create_topic(topic, 1, config=config)
    for number in range(60):
        fill(
            cluster, topic, [{'partition': 0, 'key': b'%d' % (number % 7), 'value': b'x' * number}]
        )
        time.sleep(0.01)
    end = time.monotonic() + SECONDS
    while len(list(offsets_of(cluster, topic))) == 60:
        if time.monotonic() > end:
            raise TimeoutError('topic %s is not compacted' % topic)
        time.sleep(0.2)
        fill(cluster, topic, [{'partition': 0, 'key': b'last', 'value': b'x'}])


def offsets_of(cluster: Any, topic: str) -> Iterable[int]:
    """Yield the first 60 offsets that partition 0 has."""
    from confluent_kafka import Consumer, TopicPartition

    config = {'bootstrap.servers': cluster.bootstrap, 'group.id': topic}
    consumer = Consumer({**config, 'enable.partition.eof': True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message: Optional[Any] = consumer.poll(SECONDS)
            if message is None or message.error() or message.offset() >= 60:
                return
            yield message.offset()
    finally:
        consumer.close()


def make_trimmed(cluster: Any, topic: str) -> None:
    """Two partitions of ten; what stood before offset 4 of the first is deleted."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    cluster.create_topic(topic, 2, config=KEPT)
    fill(cluster, topic, [{'partition': n % 2, 'value': b'%d' % n} for n in range(20)])
    admin = AdminClient({'bootstrap.servers': cluster.bootstrap})
    for each in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        each.result(SECONDS)


def make_wide(cluster: Any, topic: str) -> None:
    """Twelve partitions, of which some have nothing."""
    cluster.create_topic(topic, 12, config=KEPT)
    records = [{'partition': n * n % 12, 'value': b'%d' % n} for n in range(30)]
    fill(cluster, topic, records)


def make_uneven(cluster: Any, topic: str) -> None:
    """Four partitions with 100, 10, 1 and 0 records."""
    cluster.create_topic(topic, 4, config=KEPT)
    sizes = enumerate((100, 10, 1))
    fill(
        cluster, topic, [{'partition': p, 'value': b'x'} for p, size in sizes for _ in range(size)]
    )


MAKERS = {
    'plain': make_plain,
    'empty': make_empty,
    'headers': make_headers,
    'codecs': make_codecs,
    'transactions': make_transactions,
    'compacted': make_compacted,
    'trimmed': make_trimmed,
    'wide': make_wide,
    'uneven': make_uneven,
}


def make_all(cluster: Any) -> None:
    """Make each kind of topic, by the name of the kind."""
    for name, make in MAKERS.items():
        make(cluster, name)


def make_formats(cluster: Any) -> None:
    """Make a topic for each format of messages, by its name. For brokers before 3.0."""
    for name, version in FORMATS.items():
        make_codecs(cluster, name, codecs_of(name), **{'message.format.version': version})


def codecs_of(format: str) -> List[str]:
    """Return the codecs that a format of messages knows."""
    return [each for each in CODECS if each != 'zstd' or format == 'v2']


# ---------------------------------------------------------------- changes


def numbered(partitions: int, count: int) -> List[Dict[str, Any]]:
    """Return so many records for each partition."""
    return [
        {'partition': partition, 'value': b'%d of %d' % (number, partition)}
        for partition in range(partitions)
        for number in range(count)
    ]


def change(bootstrap: str, kind: str, topic: str) -> None:
    """Change a topic of two partitions with ten records each.

    Arguments: kind: 'grow': two partitions more, and three records for each; 'recreate': the topic
    is deleted and made anew, with three records each; 'trim': five records each, of which the first
    three are deleted before anybody reads them.
    """
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, NewPartitions

    admin = AdminClient({'bootstrap.servers': bootstrap})
    servers = _Servers(bootstrap)
    if kind == 'grow':
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(SECONDS)
        _until(lambda: len(admin.list_topics(topic, SECONDS).topics[topic].partitions) == 4)
        fill(servers, topic, numbered(4, 3))
    elif kind == 'recreate':
        admin.delete_topics([topic])[topic].result(SECONDS)
        _until(lambda: _is_made(admin, topic))
        fill(servers, topic, numbered(2, 3))
    elif kind == 'trim':
        fill(servers, topic, numbered(2, 5))
        before = [TopicPartition(topic, each, 13) for each in (0, 1)]
        for each in admin.delete_records(before).values():
            each.result(SECONDS)
    else:
        raise ValueError(kind)


class _Servers:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap


def _is_made(admin: Any, topic: str) -> bool:
    """Try to make a topic, whose name may not be free yet."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    wanted = NewTopic(topic, 2, 1, config=KEPT)
    try:
        admin.create_topics([wanted])[topic].result(SECONDS)
    except KafkaException as error:
        if 'already exists' in str(error) or 'marked for deletion' in str(error):
            return False
        raise
    return True


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError('the topic does not change')
        time.sleep(0.1)
