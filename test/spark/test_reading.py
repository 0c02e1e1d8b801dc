"""What a task reads of an embedded cluster, as Arrow batches."""

from __future__ import annotations

import logging

import pytest

from kafka.consumer.bounded.ranges import OffsetRange
from kafka.errors import KafkaTimeoutError, ProtocolError
from kafka.spark import clients, reading
from kafka.spark.progress import DataLossError
from kafka.spark.ranges import TaskRange
from kafka.spark.reading import read_at_most, read_range
from kafka.spark.rows import COLUMNS
from kafka.testing import Cluster
from test.consumer.written_logs import write
from test.record.batches import AnyBytes
from test.spark.embedded import fill, options_of

pa = pytest.importorskip('pyarrow', reason='no pyarrow: install the extra arrow')
BEGAN = 1_700_000_000_000
ALL = tuple(COLUMNS)


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 1, 'h': 1, 'cut': 1}) as made:
        fill(made, 't', 0, [b'%d' % n for n in range(10)], key=b'k', timestamp_ms=BEGAN)
        fill(made, 'h', 0, [b'v'], headers=[('a', b'1'), ('b', b'')])
        yield made


@pytest.fixture(autouse=True)
def forget():
    yield
    clients.close_all()


def table(cluster, task, columns=ALL, **more):
    return pa.Table.from_batches(list(read_range(task, options_of(cluster, 't', **more), columns)))


def test_rows_have_the_columns_of_the_jvm_connector(cluster):
    got = table(cluster, TaskRange('t', 0, 2, 4))
    assert got.schema.field('timestamp').type == pa.timestamp('us', tz='UTC')
    first = got.set_column(5, 'timestamp', got['timestamp'].cast(pa.int64())).slice(0, 1)
    assert first.to_pylist() == [
        {
            'key': b'k',
            'value': b'2',
            'topic': 't',
            'partition': 0,
            'offset': 2,
            'timestamp': (BEGAN + 2) * 1000,
            'timestampType': 0,
        }
    ]
    assert all(field.nullable for field in got.schema)
    assert got.num_rows == 2


def test_columns_come_in_the_order_that_was_asked(cluster):
    got = table(cluster, TaskRange('t', 0, 0, 3), ('timestampType', 'value'))
    assert got.column_names == ['timestampType', 'value']
    assert got['value'].to_pylist() == [b'0', b'1', b'2']


def test_headers_are_pairs_of_text_and_bytes(cluster):
    got = table(cluster, TaskRange('h', 0, 0, 1), ('headers',))
    assert got['headers'].to_pylist() == [[{'key': 'a', 'value': b'1'}, {'key': 'b', 'value': b''}]]
    element = pa.struct([pa.field('key', pa.string()), pa.field('value', pa.binary())])
    assert got.schema.field('headers').type == pa.list_(pa.field('element', element))


@pytest.mark.parametrize('task', [None, TaskRange('t', 0, 3, 3)])
def test_nothing_to_read_asks_nobody(cluster, task):
    options = options_of(cluster, 't', config={'bootstrap_servers': '127.0.0.1:1'})
    assert list(read_range(task, options, ALL)) == []


def test_tasks_share_the_connections_of_their_process(cluster):
    table(cluster, TaskRange('t', 0, 0, 3))
    kept = [client for _, client in clients._idle]
    table(cluster, TaskRange('t', 0, 3, 6))
    assert [client for _, client in clients._idle] == kept


def test_a_task_that_is_ended_early_leaves_nothing_that_waits(cluster):
    batches = read_range(TaskRange('t', 0, 0, 10), options_of(cluster, 't'), ALL)
    assert next(batches).num_rows
    before = len(clients._idle)
    batches.close()
    assert len(clients._idle) == before, 'its client is closed'


def test_offsets_that_are_gone_fail_the_task(cluster):
    cut(cluster)
    text = (
        r'\[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE\] topic cut, partition 0: offsets 0 to 3'
        r' are gone: its log begins at 4 now\. .* set failOnDataLoss to false$'
    )
    with pytest.raises(DataLossError, match=text):
        table(cluster, TaskRange('cut', 0, 0, 6))


def test_a_range_from_the_earliest_begins_where_the_log_does_by_now(cluster, caplog):
    cut(cluster)
    with caplog.at_level(logging.WARNING, logger='kafka.spark'):
        got = table(cluster, TaskRange('cut', 0, 0, 6, True))
    assert got['offset'].to_pylist() == [4, 5]
    assert caplog.text == ''


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(reading, 'CUT_OFF_AFTER_MS', 300)


def test_a_log_that_ends_within_a_range_fails_the_task_soon(cluster, hasty):
    with pytest.raises(DataLossError, match='t, partition 0: offsets 10 to 11 are gone: .* at 10'):
        table(cluster, TaskRange('t', 0, 8, 12))


def test_or_that_is_passed_over_and_told(cluster, hasty, caplog):
    with caplog.at_level(logging.WARNING, logger='kafka.spark'):
        got = table(cluster, TaskRange('t', 0, 8, 12), fail_on_data_loss=False)
    assert got['offset'].to_pylist() == [8, 9]
    assert 'topic=t partition=0 offsets 10 to 11 are gone' in caplog.text


def test_a_log_that_was_cut_off_is_told_so_however_short_the_timeout_is(cluster):
    with pytest.raises(DataLossError, match='its log ends at 10'):
        table(cluster, TaskRange('t', 0, 8, 12), poll_timeout_ms=300)


def test_a_task_that_gets_nothing_names_the_option(cluster):
    with pytest.raises(KafkaTimeoutError, match=r'\(kafkaConsumer.pollTimeoutMs is 400\)'):
        table(cluster, TaskRange('nope', 0, 8, 12), poll_timeout_ms=400)


def test_or_they_are_passed_over_and_told(cluster, caplog):
    cut(cluster)
    with caplog.at_level(logging.WARNING, logger='kafka.spark'):
        got = table(cluster, TaskRange('cut', 0, 0, 6), fail_on_data_loss=False)
    assert got['offset'].to_pylist() == [4, 5]
    assert 'topic=cut partition=0 offsets 0 to 3 are gone' in caplog.text


def cut(cluster):
    """Let topic cut have offsets 4 to 5 and no others."""
    log = cluster.state.topics['cut'].partitions[0].log
    if log.end_offset == 0:
        fill(cluster, 'cut', 0, [b'%d' % n for n in range(6)])
        log.delete_before(4)
    assert OffsetRange('cut', 0, log.start_offset, log.end_offset) == ('cut', 0, 4, 6)


LARGE = [b'x' * 1000000] * 5


@pytest.mark.parametrize('columns', [('value',), ('offset', 'value')])
def test_what_the_driver_reads_is_bounded_by_bytes(cluster, columns, monkeypatch):
    monkeypatch.setattr(reading, 'BATCH_BYTES', 500000)  # however quickly they come, one in each
    fill(cluster, 'h', 0, LARGE)
    tasks = [TaskRange('h', 0, 1, 4), TaskRange('h', 0, 4, 6), TaskRange('t', 0, 2, 4)]
    found, left = read_at_most(tasks, options_of(cluster, 't'), columns, 1500000)
    assert [each.num_rows for each in found] == [1, 1]
    assert {each.schema.names == list(columns) for each in found} == {True}
    assert left == {('h', 0): 3, ('t', 0): 2}


def test_what_the_driver_reads_is_read_to_its_end_if_it_is_small(cluster):
    tasks = [TaskRange('t', 0, 2, 4), TaskRange('t', 0, 4, 7)]
    found, left = read_at_most(tasks, options_of(cluster, 't'), ('value',), 1000000)
    assert [each for batch in found for each in batch[0].to_pylist()] == [
        b'2',
        b'3',
        b'4',
        b'5',
        b'6',
    ]
    assert left == {}


def test_records_of_brokers_before_0_10_have_the_time_of_java():
    with Cluster(version='0.9.0.1', topics={'t': 1}) as old:
        fill(old, 't', 0, [b'a'])
        options = options_of(old, 't')
        (batch,) = read_range(TaskRange('t', 0, 0, 1), options, ('timestamp', 'timestampType'))
        assert batch.column(0).cast(pa.int64()).to_pylist() == [-1000]
        assert batch.column(1).to_pylist() == [-1]


def test_a_time_that_spark_cannot_hold_says_how_to_read_without_it(cluster):
    cluster.create_topic('late', configs={'message.timestamp.after.max.ms': str(2**63 - 1)})
    fill(cluster, 'late', 0, [b'v'], timestamp_ms=2**60)
    asked = options_of(cluster, 'late')
    with pytest.raises(ProtocolError, match=r"can hold: request the other columns: \.schema\('"):
        list(read_range(TaskRange('late', 0, 0, 1), asked, ALL))
    (batch,) = read_range(TaskRange('late', 0, 0, 1), asked, ('value', 'offset'))
    assert batch.num_rows == 1


def test_a_header_name_that_is_not_utf_8_hides_no_row(cluster):
    """Spark gets text that is UTF-8 and all rows of the batch."""
    names = [AnyBytes(b'Z\xe4hler') if number == 1 else 'Zaehler' for number in range(3)]
    values = [(None, b'%d' % number, [(name, b'x')]) for number, name in enumerate(names)]
    write(cluster.state.topics['cut'].partitions[0].log, *values)
    asked = options_of(cluster, 'cut', include_headers=True)
    (batch,) = read_range(TaskRange('cut', 0, 0, 3), asked, ('value', 'headers'))
    batch.validate(full=True)
    assert batch.column(0).to_pylist() == [b'0', b'1', b'2']
    found = [headers[0]['key'] for headers in batch.column(1).to_pylist()]
    assert found == ['Zaehler', 'Z\ufffdhler', 'Zaehler']
