"""BoundedReader on brokers: ranges of offsets and times, without a group, as records and in Arrow.

What is read was written by confluent-kafka.
"""

from __future__ import annotations

import pytest

from kafka.consumer.bounded.ranges import OffsetRange, Timestamp
from kafka.consumer.bounded.reader import BoundedReader
from kafka.structs import TopicPartition
from test.integration.consuming import offsets, values
from test.integration.oracles import Confluent

pytestmark = [pytest.mark.integration, pytest.mark.releases(since='0.8')]

PAIRS = [(b'key %d' % i, b'value %d ' % i + b'and so on ' * (i % 7)) for i in range(200)]


def needs(since, *values):
    return pytest.param(*values, marks=pytest.mark.releases(since=since))


every_codec = pytest.mark.parametrize(
    'codec', ['none', 'gzip', 'snappy', needs('0.10', 'lz4'), needs('2.1', 'zstd')]
)


@pytest.fixture
def reader(cluster):
    """Return a function that makes a reader, closed at the end."""
    made = []

    def give(*what, **options):
        made.append(BoundedReader(*what, bootstrap_servers=cluster.bootstrap, **options))
        return made[-1]

    yield give
    for each in made:
        each.close()


@every_codec
def test_a_topic_is_read_to_its_end_and_no_further(cluster, reader, topic, fill, codec):
    Confluent(cluster).write(topic, codec, PAIRS)
    Confluent(cluster).write(topic, codec, PAIRS[:50], partition=1)
    one = reader(topic)
    assert {each.partition: each.stop for each in one.ranges()} == {0: 200, 1: 50}
    fill({topic: {0: [b'later']}})
    found = list(one)
    assert [(r.key, r.value) for r in found if r.partition == 0] == PAIRS
    assert [(r.key, r.value) for r in found if r.partition == 1] == PAIRS[:50]


@every_codec
def test_ranges_may_begin_and_end_in_the_middle_of_batches(cluster, reader, topic, codec):
    Confluent(cluster).write(topic, codec, PAIRS)
    place = TopicPartition(topic, 0)
    for start, stop in ((0, 1), (13, 190), (199, 200), (50, 50)):
        found = list(reader({place: (start, stop)}))
        assert offsets(found, 0) == list(range(start, stop))


@pytest.mark.releases(since='0.10.1')
def test_bounds_may_be_times(cluster, reader, topic):
    from confluent_kafka import Producer  # late: only runs on brokers need it

    producer = Producer(Confluent(cluster).config)
    for n in range(10):
        producer.produce(topic, b'%d' % n, partition=0, timestamp=1_000_000 + 1000 * n)
    assert producer.flush(30) == 0
    found = list(reader(topic, start=Timestamp(1_002_500), stop=Timestamp(1_006_000)))
    assert values(found) == [b'3', b'4', b'5']


@pytest.mark.releases(since='0.11')
def test_aborted_records_are_passed_over(cluster, reader, topic, new_name):
    Confluent(cluster).transact(
        topic, new_name(), [([b'one'], 'commit'), ([b'gone'], 'abort'), ([b'two'], 'commit')]
    )
    found = list(reader(topic, isolation_level='read_committed'))
    assert values(found) == [b'one', b'two']
    assert values(list(reader(topic))) == [b'one', b'gone', b'two']


@every_codec
def test_arrow_batches_have_the_same_records(cluster, reader, topic, codec):
    pytest.importorskip('pyarrow', reason='the package pyarrow is not installed')
    Confluent(cluster).write(topic, codec, PAIRS)
    rows = []
    for batch in reader([OffsetRange(topic, 0, 10, 150)]).arrow():
        rows += zip(*(batch[name].to_pylist() for name in ('offset', 'key', 'value')))
    assert rows == [(n, *PAIRS[n]) for n in range(10, 150)]


@pytest.mark.brokers(3)
@pytest.mark.thorough
@pytest.mark.releases(some=('0.11.0.3', '4.4.0'))
def test_a_leader_that_is_killed_costs_nothing(cluster, reader, fill, new_name):
    name = new_name()
    cluster.create_topic(name, 3, 3)
    fill({name: {p: [b'%d' % n for n in range(500)] for p in range(3)}})
    one = reader(name, max_partition_fetch_bytes=500, fetch_max_bytes=500, request_timeout_ms=5000)
    found = one.read(50)
    cluster.kill(cluster.wait_for_leader(name, 0))
    found += list(one)
    assert all(offsets(found, p) == list(range(500)) for p in range(3))
