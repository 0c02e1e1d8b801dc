"""Rows of Spark become records: columns, order, tombstones, and what is said of bad rows."""

from __future__ import annotations

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import IllegalStateError, KafkaConfigurationError
from kafka.partitioner.hashed import murmur2
from kafka.producer.rows import Rows
from kafka.spark import clients, writing
from kafka.spark.writing import (
    RowLayout,
    SharedOutlet,
    UnwritableRowError,
    layout_of,
)
from kafka.testing import Cluster

pa = pytest.importorskip('pyarrow')

HEADERS = 'array<struct<key:string,value:binary>>'
HEADERS_ARROW = pa.list_(pa.struct([('key', pa.string()), ('value', pa.binary())]))
PARTITIONS = 3


@pytest.fixture
def cluster():
    with Cluster(topics={'t': PARTITIONS, 'u': 1}) as cluster:
        yield cluster
        clients.close_all()


@pytest.fixture
def config(cluster):
    return {
        'bootstrap_servers': cluster.bootstrap,
        'max_block_ms': 10000,
        'allow_auto_create_topics': False,
    }


@pytest.fixture
def stored(cluster):
    """Return a function that tells (key, value, headers) of what is stored, by partition."""

    def read(topic='t'):
        found = {}
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap) as consumer:
            places = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning()
            while any(consumer.position(place) < ends[place] for place in places):
                for place, records in consumer.poll(1000).items():
                    rows = [(each.key, each.value, each.headers) for each in records]
                    found.setdefault(place.partition, []).extend(rows)
        return found

    return read


def everything(stored):
    return sorted(row for rows in stored.values() for row in rows)


def write_batches(batches, layout, config, task=None):
    return writing.write_batches(batches, layout, SharedOutlet(config), task)


def write_rows(rows, layout, config, task=None):
    return writing.write_rows(rows, layout, SharedOutlet(config), task)


def shared(config):
    """Return the producer that the tasks of this process share."""
    loan = clients.producer(config)
    loan.give_back()
    return loan.producer


def batch(**columns):
    return pa.record_batch(columns)


VALUE = RowLayout(value=0, given_topic='t')


# ------------------------------------------------------------ columns


def test_columns_are_found_by_name_in_any_order():
    columns = [
        ('partition', 'int'),
        ('value', 'binary'),
        ('headers', HEADERS),
        ('topic', 'string'),
        ('key', 'string'),
    ]
    assert layout_of(columns, None) == RowLayout(1, key=4, headers=2, partition=0, topic=3)


def test_other_columns_are_passed_over():
    columns = [('offset', 'bigint'), ('value', 'string'), ('timestamp', 'timestamp')]
    assert layout_of(columns, 't') == RowLayout(1, given_topic='t')


def test_names_of_columns_are_compared_with_case():
    with pytest.raises(KafkaConfigurationError, match='value'):
        layout_of([('Value', 'string')], 't')


def test_the_option_goes_before_the_column_whatever_its_type():
    assert layout_of([('topic', 'int'), ('value', 'string')], 't') == RowLayout(1, given_topic='t')


@pytest.mark.parametrize('name', ['value', 'other'])
def test_two_columns_of_one_name_are_refused(name):
    columns = [('value', 'string'), (name, 'int'), ('other', 'int')]
    with pytest.raises(KafkaConfigurationError, match="two columns '%s'" % name):
        layout_of(columns, 't')


def test_no_topic_is_refused():
    with pytest.raises(
        KafkaConfigurationError, match=r"option topic.*'topic'.*columns: key, value"
    ):
        layout_of([('key', 'string'), ('value', 'string')], None)


def test_no_value_is_refused():
    with pytest.raises(KafkaConfigurationError, match=r"'value'.*missing.*columns: none"):
        layout_of([], 't')


@pytest.mark.parametrize(
    'name, found, allowed',
    [
        ('value', 'int', 'string or binary'),
        ('key', 'bigint', 'string or binary'),
        ('key', 'void', 'string or binary'),
        ('topic', 'binary', 'string'),
        ('topic', 'string collate UTF8_LCASE', 'string'),
        ('partition', 'bigint', 'int'),
        ('partition', 'string', 'int'),
        ('headers', 'map<string,binary>', HEADERS),
        ('headers', 'array<struct<key:string,value:string>>', HEADERS),
        ('headers', 'array<struct<name:string,value:binary>>', HEADERS),
    ],
)
def test_a_column_of_another_type_is_refused(name, found, allowed):
    columns = {'value': 'string', 'topic': 'string', name: found}
    with pytest.raises(KafkaConfigurationError) as refused:
        layout_of(list(columns.items()), None)
    assert "'%s' has the type %s; it must be %s" % (name, found, allowed) in str(refused.value)


def test_names_of_fields_in_headers_are_compared_without_case():
    found = layout_of([('value', 'string'), ('headers', HEADERS.replace('key', 'Key'))], 't')
    assert found.headers == 1


# ------------------------------------------------------------ Arrow


@pytest.mark.parametrize('kind', [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize('numpy', [True, False])
def test_text_and_bytes_are_stored_as_bytes(config, stored, monkeypatch, kind, numpy):
    monkeypatch.setattr(writing, 'has_numpy', lambda: numpy)
    column = pa.array(['a', None, 'ä', ''], pa.string()).cast(kind)
    assert write_batches([batch(v=column, k=column)], VALUE._replace(key=1), config) == 4
    assert sorted(row[:2] for rows in stored().values() for row in rows if row[0]) == [
        (b'a', b'a'),
        ('ä'.encode(), 'ä'.encode()),
    ]
    rest = [row[:2] for rows in stored().values() for row in rows if not row[0]]
    assert len(rest) == 2 and (None, None) in rest and (b'', b'') in rest


def test_null_values_are_tombstones(config, stored):
    write_batches(
        [batch(k=pa.array([b'a', b'b']), v=pa.array([None, None], pa.binary()))],
        RowLayout(value=1, key=0, given_topic='t'),
        config,
    )
    assert everything(stored()) == [(b'a', None, []), (b'b', None, [])]


def test_keys_choose_the_partition_as_the_java_client_does(config, stored):
    keys = [b'key-%d' % each for each in range(20)]
    write_batches([batch(v=keys, k=keys)], VALUE._replace(key=1), config)
    for partition, rows in stored().items():
        assert {(murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key, _, _ in rows} == {partition}


def test_a_null_partition_leaves_the_choice_to_the_key(config, stored):
    key = b'a'
    hashed = (murmur2(key) & 0x7FFFFFFF) % PARTITIONS
    other = (hashed + 1) % PARTITIONS
    wishes = pa.array([None, other, hashed, None], pa.int32())
    values = [b'0', b'1', b'2', b'3']
    layout = RowLayout(value=0, key=1, partition=2, given_topic='t')
    write_batches([batch(v=values, k=[key] * 4, p=wishes)], layout, config)
    assert {p: [value for _, value, _ in rows] for p, rows in stored().items()} == {
        hashed: [b'0', b'2', b'3'],
        other: [b'1'],
    }


def test_headers_are_those_of_the_row(config, stored):
    headers = [None, [], [{'key': 'x', 'value': b'1'}, {'key': 'x', 'value': None}]]
    columns = batch(v=[b'0', b'1', b'2'], h=pa.array(headers, HEADERS_ARROW))
    write_batches([columns.slice(1)], VALUE._replace(headers=1), config)
    assert everything(stored()) == [(None, b'1', []), (None, b'2', [('x', b'1'), ('x', None)])]


def test_headers_of_a_null_row_are_none_even_if_arrow_has_some_there(config, stored):
    some = pa.array([[{'key': 'x', 'value': b'1'}], [{'key': 'y', 'value': b'2'}]], HEADERS_ARROW)
    hidden = pa.ListArray.from_arrays(some.offsets, some.values, mask=pa.array([True, False]))
    columns = pa.record_batch([pa.array([b'0', b'1']), hidden], names=['v', 'h'])
    write_batches([columns], VALUE._replace(headers=1), config)
    assert everything(stored()) == [(None, b'0', []), (None, b'1', [('y', b'2')])]


def test_each_row_goes_to_the_topic_that_it_names(config, stored):
    columns = batch(t=['t', 'u', 't', 'u'], v=[b'0', b'1', b'2', b'3'], p=[0, 0, 0, 0])
    columns = columns.set_column(2, 'p', pa.array([0, 0, 0, 0], pa.int32()))
    write_batches([columns], RowLayout(value=1, topic=0, partition=2), config)
    assert stored('t') == {0: [(None, b'0', []), (None, b'2', [])]}
    assert stored('u') == {0: [(None, b'1', []), (None, b'3', [])]}


def test_the_order_of_rows_is_kept_over_slices_and_batches(config, stored, monkeypatch):
    monkeypatch.setattr(writing, '_MOST_ROWS', 7)
    batches = [batch(v=[b'%d' % (start + i) for i in range(50)]) for start in range(0, 200, 50)]
    partition = pa.array([1] * 50, pa.int32())
    batches = [each.append_column('p', partition) for each in batches]
    assert write_batches(batches, VALUE._replace(partition=1), config) == 200
    assert [int(value) for _, value, _ in stored()[1]] == list(range(200))


def test_batches_of_many_bytes_are_cut_by_them(monkeypatch):
    sizes = []
    monkeypatch.setattr(writing, '_MOST_BYTES', 1000)
    monkeypatch.setattr(
        writing._Task, 'put_arrow', lambda self, batch, layout: sizes.append(batch.num_rows)
    )
    write_batches([batch(v=[b'%0100d' % i for i in range(100)])], VALUE, {})
    assert sum(sizes) == 100 and 5 <= max(sizes) <= 10


def test_no_rows_need_no_producer():
    nobody = {'bootstrap_servers': 'nobody.invalid:1'}
    assert write_batches([], VALUE, nobody) == 0
    assert write_batches([batch(v=pa.array([], pa.binary()))], VALUE, nobody) == 0


def test_the_next_task_has_the_same_producer(config):
    write_batches([batch(v=[b'0'])], VALUE, config)
    first = shared(config)
    write_batches([batch(v=[b'1'])], VALUE, config)
    assert shared(config) is first


def test_a_task_that_fails_takes_its_producer_from_nobody(config, stored):
    """Two tasks of one process: a row of one is refused while the other is sending."""
    config = {**config, 'linger_ms': 50}

    def others():
        yield batch(v=[b'0', b'1'])
        with pytest.raises(UnwritableRowError):
            write_batches([batch(v=[b'x' * 2000000])], VALUE, config)
        yield batch(v=[b'2'])

    assert write_batches(others(), VALUE, config) == 3
    assert everything(stored()) == [(None, b'0', []), (None, b'1', []), (None, b'2', [])]


def test_rows_that_flush_leaves_are_waited_for(config, stored, monkeypatch):
    """It returns at once where somebody closes the producer."""
    monkeypatch.setattr(shared(config), 'flush', lambda: None)
    assert write_batches([batch(v=[b'0', b'1'])], VALUE, config) == 2
    assert everything(stored()) == [(None, b'0', []), (None, b'1', [])]


def test_rows_that_somebody_drops_are_not_counted_as_stored(config, monkeypatch):
    config = {**config, 'linger_ms': 5000}
    made = shared(config)
    monkeypatch.setattr(made, 'flush', lambda: made.close(0))
    with pytest.raises(UnwritableRowError, match='row 0 of'):
        write_batches([batch(v=[b'0'])], VALUE, config)


# ------------------------------------------------------------ rows


def test_rows_are_stored_like_arrow(config, stored):
    layout = RowLayout(value=0, key=1, headers=2, partition=3, topic=4)
    rows = [
        ('a', bytearray(b'k'), [('x', bytearray(b'1')), ('y', None)], 1, 't'),
        (None, None, None, 1, 't'),
        (b'c', 'k', [], 1, 't'),
    ]
    assert write_rows(rows, layout, config) == 3
    assert stored() == {
        1: [(b'k', b'a', [('x', b'1'), ('y', None)]), (None, None, []), (b'k', b'c', [])]
    }


def test_many_rows_are_sent_by_slices(config, stored, monkeypatch):
    monkeypatch.setattr(writing, '_MOST_ROWS', 7)
    rows = [('%d' % number, 2) for number in range(30)]
    assert write_rows(rows, VALUE._replace(partition=1), config) == 30
    assert [int(value) for _, value, _ in stored()[2]] == list(range(30))


def test_columns_of_nulls_are_as_good_as_none(config, stored):
    layout = RowLayout(value=0, key=1, headers=2, partition=3, given_topic='t')
    write_rows([(b'0', None, None, None)], layout, config)
    assert everything(stored()) == [(None, b'0', [])]


@pytest.mark.parametrize('is_arrow', [True, False])
def test_rows_without_a_key_keep_their_order_with_those_that_have_one(config, stored, is_arrow):
    """In each partition, also where a slice has no key at all."""
    layout = RowLayout(value=0, key=1, given_topic='t')
    slices = [
        [(b'%d' % number, None if number % 3 else b'k%d' % number) for number in range(60)],
        [(b'%d' % number, None) for number in range(60, 80)],
        [(b'%d' % number, b'k%d' % number) for number in range(80, 120)],
    ]
    if is_arrow:
        batches = [
            batch(v=[value for value, _ in some], k=pa.array([key for _, key in some], pa.binary()))
            for some in slices
        ]
        assert write_batches(batches, layout, config) == 120
    else:
        assert write_rows([row for some in slices for row in some], layout, config) == 120
    for rows in stored().values():
        numbers = [int(value) for _, value, _ in rows]
        assert numbers == sorted(numbers)


# ------------------------------------------------------------ what cannot be stored


def test_a_null_topic_is_told_with_its_row_and_nothing_of_its_slice_is_sent(config, stored):
    columns = batch(t=['t', 't', None], v=[b'0', b'1', b'2'])
    with pytest.raises(UnwritableRowError, match=r'KAFKA_NULL_TOPIC_IN_DATA') as refused:
        write_batches([columns], RowLayout(value=1, topic=0), config, task=5)
    assert "row 2 of Spark's partition 5 (counted from 0)" in str(refused.value)
    assert 'option topic' in str(refused.value)
    assert isinstance(refused.value, IllegalStateError)
    assert stored() == {}


def test_rows_are_counted_over_all_batches_of_the_task(config):
    rows = [[b'0', b'1'], [b'2', b'3' * 2000]]
    with pytest.raises(UnwritableRowError, match=r'row 3 of.*partition 0 .*topic t,.*2034 bytes'):
        write_batches(
            [batch(v=each) for each in rows], VALUE, {**config, 'max_request_size': 1000}, task=0
        )


def test_rows_without_topic_are_counted_over_all_batches_too(config):
    batches = [batch(t=['t', 't'], v=[b'0', b'1']), batch(t=['t', None], v=[b'2', b'3'])]
    with pytest.raises(UnwritableRowError, match='row 3 .*null topic'):
        write_batches(batches, RowLayout(value=1, topic=0), config)


def test_a_row_among_those_of_several_topics_is_found(config):
    columns = batch(t=['t', 'u', 't', 'u'], v=[b'0', b'1', b'2', b'3' * 2000])
    with pytest.raises(UnwritableRowError, match=r'row 3 of.*topic u'):
        write_batches(
            [columns], RowLayout(value=1, topic=0), {**config, 'max_request_size': 1000}, task=0
        )


def test_a_partition_that_there_is_not_is_told_with_its_row(config):
    columns = batch(v=[b'0', b'1'], p=pa.array([0, 9], pa.int32()))
    with pytest.raises(UnwritableRowError, match=r'row 1 .*partition 9: the topic t has 0 to 2'):
        write_batches([columns], VALUE._replace(partition=1), config)


@pytest.mark.parametrize('header', [None, {'key': None, 'value': b'x'}])
def test_a_header_without_a_name_is_told_with_its_row(config, header):
    columns = batch(v=[b'0', b'1'], h=pa.array([[], [header]], HEADERS_ARROW))
    with pytest.raises(UnwritableRowError, match=r'row 1 .*header without a name'):
        write_batches([columns], VALUE._replace(headers=1), config)
    row = header and (header['key'], header['value'])
    with pytest.raises(UnwritableRowError, match=r'row 1 .*header without a name'):
        write_rows([(b'0', []), (b'1', [row])], VALUE._replace(headers=1), config)


@pytest.mark.parametrize('count', [2, 20000])
@pytest.mark.parametrize('column, what', [('t', 'a topic'), ('h', 'the name of a header')])
def test_a_text_that_is_no_utf_8_is_told_with_its_row(config, column, what, count):
    """Text of Spark may be any bytes, as CAST(X'ff' AS STRING) makes it."""
    texts = pa.array([b't'] * (count - 1) + [b'\xff'], pa.binary()).view(pa.string())
    layout, columns = VALUE._replace(topic=1, given_topic=None), {'t': texts}
    if column == 'h':
        layout = VALUE._replace(headers=1)
        pairs = pa.StructArray.from_arrays([texts, texts.view(pa.binary())], ['key', 'value'])
        edges = pa.array(range(count + 1), pa.int32())
        columns = {'h': pa.ListArray.from_arrays(edges, pairs)}
    rows = batch(v=[b'v'] * count, **columns)
    told = 'row %d of .*partition 4 .*: %s is not UTF-8 text' % (count - 1, what)
    with pytest.raises(UnwritableRowError, match=told):
        write_batches([rows], layout, config, task=4)


@pytest.mark.parametrize('topic, what', [('none', 'not known'), ('no topic', 'letters')])
def test_a_topic_that_cannot_be_had_is_told(config, topic, what):
    with pytest.raises(UnwritableRowError, match=r'row 0 .*topic %s.*%s' % (topic, what)):
        write_batches(
            [batch(v=[b'0'])],
            VALUE._replace(given_topic=topic),
            {**config, 'max_block_ms': 50},
        )


def test_what_the_broker_refuses_is_told_with_its_row(cluster, config):
    cluster.create_topic('small', 1, configs={'max.message.bytes': '2000'})
    rows = [b'0' * 100] * 10 + [b'1' * 3000] + [b'2' * 100] * 10
    with pytest.raises(UnwritableRowError, match=r'row 10 of.*topic small.*TooLarge') as failed:
        write_batches([batch(v=rows)], VALUE._replace(given_topic='small'), config, task=0)
    assert '111' not in str(failed.value)


def test_a_task_that_failed_leaves_no_records_and_the_next_has_another_producer(config, stored):
    slow = {**config, 'linger_ms': 60000}

    def batches():
        yield batch(v=[b'early'])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_batches(batches(), VALUE, slow)
    assert write_batches([batch(v=[b'again'])], VALUE, slow) == 1
    assert everything(stored()) == [(None, b'again', [])]


@pytest.mark.parametrize(
    'task, name', [(3, r'kafka\.max\.request\.size'), (None, 'max_request_size')]
)
def test_errors_name_options_as_they_were_given(config, task, name):
    with pytest.raises(UnwritableRowError, match=r'%s is 1048576' % name):
        write_batches([batch(v=[b'x' * 2000000])], VALUE, config, task)


def test_errors_show_no_secrets(config):
    secret = {**config, 'sasl_plain_username': 'me', 'sasl_plain_password': 'geheim'}
    with pytest.raises(UnwritableRowError) as failed:
        write_batches([batch(t=pa.array([None], pa.string()))], RowLayout(0, topic=0), secret)
    assert 'geheim' not in repr(failed.value) + str(failed.value)


def test_outcomes_are_looked_at_while_the_task_goes_on(config):
    with writing._Task(VALUE, SharedOutlet(config), None) as task:
        for _ in range(3):
            task.put(Rows([b'0']), None)
            shared(config).flush()
            task.put(Rows([b'0']), None)
            assert len(task._waiting) <= 1


def test_a_task_ends_with_the_first_row_that_is_given_up(cluster, config):
    cluster.create_topic('small', 1, configs={'max.message.bytes': '2000'})
    read = []

    def batches():
        for number in range(10):
            if number:
                shared(config).flush()
            read.append(number)
            yield batch(v=[b'0' * 3000])

    with pytest.raises(UnwritableRowError, match='row 0 '):
        write_batches(batches(), VALUE._replace(given_topic='small'), config)
    assert read == [0, 1]


def test_all_rows_are_stored_once_and_in_order_although_the_broker_goes_away(
    cluster, config, stored
):
    values = [b'%d' % number for number in range(6000)]

    def batches():
        for number in range(6):
            if number == 2:
                cluster.kill(0)
            if number == 4:
                cluster.restart(0)
            some = pa.array(values[1000 * number : 1000 * number + 1000])
            yield batch(v=some, p=pa.array([1] * 1000, pa.int32()))

    layout = VALUE._replace(partition=1)
    assert write_batches(batches(), layout, {**config, 'max_block_ms': 30000}) == 6000
    assert [value for _, value, _ in stored()[1]] == values


@pytest.mark.parametrize('count', [30, 3000])
def test_many_and_few_rows_are_stored_alike(config, stored, count):
    values = [None if number % 7 == 0 else b'%d' % number for number in range(count)]
    keys = [b'key-%d' % (number % 50) for number in range(count)]
    headers = [None if number % 3 else [{'key': 'h', 'value': None}] for number in range(count)]
    columns = batch(v=values, k=keys, h=pa.array(headers, HEADERS_ARROW), t=['t'] * count)
    layout = RowLayout(value=0, key=1, headers=2, topic=3)
    assert write_batches([columns], layout, config) == count
    expected = {}
    for key, value, header in zip(keys, values, headers):
        row = key, value, [('h', None)] if header else []
        expected.setdefault((murmur2(key) & 0x7FFFFFFF) % PARTITIONS, []).append(row)
    assert stored() == expected


def test_many_rows_of_several_topics_find_theirs(config, stored):
    topics = ['t' if number % 3 else 'u' for number in range(2000)]
    columns = batch(v=[b'%d' % number for number in range(2000)], t=topics)
    write_batches([columns], RowLayout(value=0, topic=1), config)
    assert sorted(int(value) for _, value, _ in stored('u')[0]) == list(range(0, 2000, 3))
    assert len(everything(stored('t'))) == 2000 - len(range(0, 2000, 3))


def test_many_rows_one_of_which_has_no_topic_are_refused(config, stored):
    columns = batch(v=[b'x'] * 2000, t=['t'] * 1500 + [None] + ['t'] * 499)
    with pytest.raises(UnwritableRowError, match='row 1500 '):
        write_batches([columns], RowLayout(value=0, topic=1), config)
    assert stored() == {}


def test_a_row_that_is_too_large_among_many_is_told_with_its_place(config, stored):
    columns = batch(v=[b'x'] * 1500 + [b'y' * 2000] + [b'x'] * 499, k=[b'k'] * 2000)
    with pytest.raises(UnwritableRowError, match=r'row 3500 of.*topic t.*2035 bytes'):
        write_batches(
            [batch(v=[b'x'] * 2000, k=[b'k'] * 2000), columns],
            VALUE._replace(key=1),
            {**config, 'max_request_size': 1500},
            task=0,
        )
