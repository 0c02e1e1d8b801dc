"""poll_arrow() hands out what poll() would, and moves positions like it."""

from __future__ import annotations

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer import fetch_collector
from kafka.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaConfigurationError,
    ProtocolError,
)
from kafka.testing import Cluster
from test.consumer.written_logs import flip_last, numbered, write

pytest.importorskip('pyarrow')
T0, T1 = TopicPartition('t', 0), TopicPartition('t', 1)
#: The first time in ms that is too late for a timestamp in ns.
FAR = (1 << 63) // 10**6 + 1


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2}) as running:
        yield running


@pytest.fixture
def make(cluster):
    made = []

    def give(**options):
        options = {'group_id': None, 'auto_offset_reset': 'earliest', **options}
        made.append(KafkaConsumer(bootstrap_servers=cluster.bootstrap, **options))
        made[-1].assign([T0])
        return made[-1]

    yield give
    for consumer in made:
        consumer.close()


@pytest.fixture(params=['numpy', 'objects'])
def way(request, monkeypatch):
    """With numpy, and without."""
    if request.param == 'objects':
        monkeypatch.setattr(fetch_collector, 'has_numpy', lambda: False)
    else:
        pytest.importorskip('numpy')


def log(cluster, partition=0):
    return cluster.state.topics['t'].partitions[partition].log


def polled(consumer, count):
    """Return so many offsets, and the values with them."""
    offsets, values = [], []
    while len(offsets) < count:
        batch = consumer.poll_arrow(5000)
        assert batch is not None
        assert batch.num_rows
        offsets += batch['offset'].to_pylist()
        values += batch['value'].to_pylist()
    return offsets, values


def test_records_come_as_arrow_batches(cluster, make, way):
    for start in (0, 10):
        write(log(cluster), *numbered(10, start=start))
    consumer = make()
    assert polled(consumer, 20) == ([*range(20)], numbered(20))
    assert consumer.position(T0) == 20
    assert consumer.poll_arrow(0) is None


def test_records_before_the_position_are_not_there(cluster, make, way):
    write(log(cluster), *numbered(10))
    consumer = make()
    consumer.seek(T0, 7)
    assert polled(consumer, 3)[0] == [7, 8, 9]


def test_nothing_is_lost_beside_poll_and_iteration(cluster, make, way):
    write(log(cluster), *numbered(10))
    consumer = make()
    assert next(consumer).offset == 0
    (records,) = consumer.poll(5000, max_records=2).values()
    assert [each.offset for each in records] == [1, 2]
    assert next(consumer).offset == 3
    assert polled(consumer, 6)[0] == [4, 5, 6, 7, 8, 9]


def test_columns_are_those_that_are_wanted(cluster, make, way):
    write(log(cluster), (b'k', b'v', [('h', b'1')]))
    batch = make().poll_arrow(5000, ['headers', 'key'], 'us')
    assert batch.to_pylist() == [{'headers': [{'key': 'h', 'value': b'1'}], 'key': b'k'}]


def test_a_damaged_batch_is_an_error_at_its_place(cluster, make, way):
    write(log(cluster), *numbered(5))
    write(log(cluster), *numbered(5), damage=flip_last)
    consumer = make()
    assert polled(consumer, 5)[0] == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match='offset 5 of partition 0'):
            consumer.poll_arrow(5000)
    assert consumer.position(T0) == 5


def test_a_time_that_the_unit_does_not_reach_is_an_error_at_its_place(cluster, make, way):
    write(log(cluster), *numbered(3))
    write(log(cluster), *numbered(3), at=FAR - 1)
    write(log(cluster, 1), *numbered(3))
    consumer = make()
    consumer.assign([T0, T1])
    found, failed = {0: [], 1: []}, 0
    while failed < 3 or not found[1]:
        try:
            batch = consumer.poll_arrow(5000, timestamp_unit='ns')
        except ProtocolError as error:
            assert error.failed_at == (T0, 4)
            failed += 1
        else:
            found[batch['partition'][0].as_py()] += batch['offset'].to_pylist()
    assert found == {0: [0, 1, 2, 3], 1: [0, 1, 2]}
    consumer.seek(T0, 5)
    with pytest.raises(ProtocolError):
        consumer.poll_arrow(5000, timestamp_unit='ns')
    assert polled(consumer, 1)[0] == [5]


def test_records_that_iteration_had_under_way_fail_at_their_place_too(cluster, make):
    write(log(cluster), *numbered(3), at=FAR - 1)
    consumer = make()
    assert next(consumer).offset == 0
    with pytest.raises(ProtocolError, match='offset 1') as raised:
        consumer.poll_arrow(5000, timestamp_unit='ns')
    assert raised.value.failed_at == (T0, 1)
    assert consumer.position(T0) == 1


def test_what_is_paused_does_not_come(cluster, make):
    write(log(cluster), *numbered(5))
    consumer = make()
    consumer.pause(T0)
    assert consumer.poll_arrow(50) is None
    consumer.resume(T0)
    assert polled(consumer, 5)[0] == [0, 1, 2, 3, 4]


def test_deserializers_are_refused(make):
    with pytest.raises(KafkaConfigurationError, match='leave out deserializers'):
        make(value_deserializer=bytes.decode).poll_arrow()


def test_a_closed_consumer_has_none(make):
    consumer = make()
    consumer.close()
    with pytest.raises(IllegalStateError):
        consumer.poll_arrow()


def test_ctrl_c_in_the_middle_of_a_poll_loses_no_record(cluster, make, way, monkeypatch):
    write(log(cluster), *numbered(20))
    consumer, whole = make(), fetch_collector.take_arrow

    def torn(fetch, maker):
        whole(fetch, maker)
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_collector, 'take_arrow', torn)
    with pytest.raises(KeyboardInterrupt):
        polled(consumer, 20)
    monkeypatch.setattr(fetch_collector, 'take_arrow', whole)
    assert polled(consumer, 20)[0] == list(range(20))


def test_what_was_moved_while_it_was_taken_is_not_handed_out(cluster, make, way, monkeypatch):
    """A reset in a turn of the loop counts more than what was fetched before it."""
    write(log(cluster), *numbered(20))
    consumer, whole = make(), fetch_collector.take_arrow

    def moved(fetch, maker):
        batch = whole(fetch, maker)
        monkeypatch.setattr(fetch_collector, 'take_arrow', whole)
        with consumer._engine.lock:
            consumer._engine.subscription.seek(T0, 15)
        return batch

    monkeypatch.setattr(fetch_collector, 'take_arrow', moved)
    assert polled(consumer, 5)[0] == list(range(15, 20))
