"""KafkaProducer on embedded brokers of several releases, over sockets."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time

import pytest

import kafka
from kafka import KafkaProducer
from kafka.codec import has_lz4, has_snappy, has_zstd
from kafka.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NoBrokersAvailable,
    UnsupportedForMessageFormatError,
)
from kafka.partitioner import Murmur2Partitioner
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import Cluster
from kafka.testing.faults import Hang
from test.stored import stored_records

RELEASES = ['0.9', '0.10.2', '0.11', '2.8', '4.4']
SINCE = {'lz4': 1, 'zstd': 3}  # which of the releases take the codec
HAS = {'snappy': has_snappy, 'lz4': has_lz4, 'zstd': has_zstd}


@pytest.fixture(params=RELEASES)
def old_and_new(request):
    with Cluster(version=request.param, topics={'t': 3, 'one': 1}) as running:
        running.release = request.param
        yield running


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 3, 'one': 1}) as running:
        yield running


@pytest.fixture
def producer(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as made:
        yield made


def stored(cluster, topic, partition=0):
    """Return (offset, timestamp, key, value, headers) of what is in a partition."""
    return [
        (r.offset, r.timestamp, r.key, r.value, list(r.headers or ()))
        for r in stored_records(cluster, topic, partition)
    ]


def offline(**options):
    return KafkaProducer(
        bootstrap_servers='127.0.0.1:1', api_version=(2, 8), max_block_ms=100, **options
    )


# --- every release and codec --------------------------------------------------------------------


@pytest.mark.parametrize('codec', [None, 'gzip', 'snappy', 'lz4', 'zstd'])
def test_each_release_stores_each_codec(old_and_new, codec):
    if codec in HAS and not HAS[codec]():
        pytest.skip('no package for %s' % codec)
    if RELEASES.index(old_and_new.release) < SINCE.get(codec, 0):
        pytest.skip('%s came after %s' % (codec, old_and_new.release))
    topic = 'codec-%s' % codec
    with KafkaProducer(
        bootstrap_servers=old_and_new.bootstrap, compression_type=codec, linger_ms=5
    ) as producer:
        futures = [
            producer.send(topic, b'value %d' % n, b'key %d' % (n % 3), partition=0)
            for n in range(300)
        ]
        many = producer.send_many(topic, [b'many %d' % n for n in range(300)], partition=0)
        producer.flush(timeout=30)
        assert [future.get(timeout=30).offset for future in futures] == list(range(300))
        assert [metadata.offset for metadata in many.get(30)] == list(range(300, 600))
    found = stored(old_and_new, topic)
    assert [(row[2], row[3]) for row in found[:300]] == [
        (b'key %d' % (n % 3), b'value %d' % n) for n in range(300)
    ]
    assert [row[3] for row in found[300:]] == [b'many %d' % n for n in range(300)]


def test_what_a_release_can_store(old_and_new):
    index = RELEASES.index(old_and_new.release)
    with KafkaProducer(bootstrap_servers=old_and_new.bootstrap) as producer:
        assert (
            producer.config['api_version'][:2]
            == tuple(int(part) for part in old_and_new.release.split('.'))[:2]
        )
        assert producer.config['enable_idempotence'] is (index >= 2)
        metadata = producer.send('what', b'v', b'k', partition=0, timestamp_ms=9999999).get(30)
        assert metadata[:4] == ('what', 0, TopicPartition('what', 0), 0)
        assert metadata.timestamp == 9999999
        assert (metadata.serialized_key_size, metadata.serialized_value_size) == (1, 1)
        headers = [('h', b'x')]
        if index < 2:
            with pytest.raises(UnsupportedForMessageFormatError, match='headers'):
                producer.send('what', b'v', headers=headers)
        else:
            assert producer.send('what', b'v', headers=headers).get(30).serialized_header_size == 2
            assert stored(old_and_new, 'what')[1][4] == headers
        if index:
            assert stored(old_and_new, 'what')[0][1] == 9999999


def test_a_tombstone(producer, cluster):
    metadata = producer.send('one', key=b'k').get(30)
    assert metadata.serialized_value_size == -1
    assert stored(cluster, 'one')[metadata.offset][2:4] == (b'k', None)


def test_without_acknowledgements(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=0) as producer:
        assert producer.send('acks0', b'v', partition=0).get(30).offset == -1
        deadline = time.monotonic() + 30
        while not stored(cluster, 'acks0') and time.monotonic() < deadline:
            threading.Event().wait(0.005)
    assert [row[3] for row in stored(cluster, 'acks0')] == [b'v']


def test_what_nobody_asks_about_is_stored_all_the_same(producer, cluster):
    for n in range(500):
        producer.send_and_forget('forget', b'%d' % n)
    producer.flush(30)
    assert [row[3] for row in stored(cluster, 'forget')] == [b'%d' % n for n in range(500)]


def test_keys_go_where_java_sends_them(producer, cluster):
    keys = [b'k%d' % n for n in range(50)]
    by_one = [producer.send('t', b'v', key).get(30).partition for key in keys]
    by_many = [m.partition for m in producer.send_many('t', [b'v'] * 50, keys).get(30)]
    assert by_one == by_many == [Murmur2Partitioner(range(3)).partition(key) for key in keys]


def test_texts_and_their_serializers(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        key_serializer=str.encode,
        value_serializer=lambda value: value.upper().encode(),
    ) as producer:
        producer.send('texts', 'ä', key='k').get(30)
        producer.send_many('texts', ['b', 'c'], keys=['k', 'k']).get(30)
        producer.send_and_forget('texts', 'd', 'k')
        producer.flush(30)
    assert [row[2:4] for row in stored(cluster, 'texts')] == [
        (b'k', 'Ä'.encode()),
        (b'k', b'B'),
        (b'k', b'C'),
        (b'k', b'D'),
    ]


def test_serializers_with_methods_of_2_x_and_3_x():
    calls = []

    class Second:
        def serialize(self, topic, data):
            calls.append((topic, data))
            return data.encode()

        def close(self):
            calls.append('closed')

    class Third:
        def serialize(self, topic, headers, data):
            calls.append((topic, headers, data))
            return data.encode()

    with Cluster(topics={'u': 1}) as cluster:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap, key_serializer=Second(), value_serializer=Third()
        )
        producer.send('u', 'v', 'k', headers=[('h', b'')]).get(30)
        producer.close()
    assert calls == [('u', 'k'), ('u', [('h', b'')], 'v'), 'closed']


def test_partitioners_of_the_program(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, partitioner=lambda key, all_of_them, available: 2
    ) as producer:
        assert producer.send('t', b'v', b'k').get(30).partition == 2
        assert [m.partition for m in producer.send_many('t', [b'v'] * 3).get(30)] == [2, 2, 2]
        assert producer.send('t', b'v', partition=0).get(30).partition == 0
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, partitioner=lambda *arguments: 7
    ) as producer, pytest.raises(AssertionError, match='returned 7'):
        producer.send('t', b'v')


class Alternating:
    """A partitioner of 3.0 that goes on to the next partition with each batch."""

    def __init__(self):
        self.now, self.told = 0, []

    def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
        return self.now

    def on_new_batch(self, topic, cluster, prev_partition):
        self.told.append((topic, prev_partition))
        self.now = (self.now + 1) % 3


def test_partitioners_of_3_0_hear_of_new_batches(cluster):
    partitioner = Alternating()
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        partitioner=partitioner,
        batch_size=1000,
        linger_ms=600_000,
    ) as producer:
        futures = [producer.send('t', b'x' * 400) for _ in range(5)]
        producer.send('t', b'v', partition=2)
        producer.flush(60)
        assert [future.get(0).partition for future in futures] == [1, 1, 2, 2, 0]
    assert partitioner.told == [('t', 0), ('t', 1), ('t', 2)]


def test_the_fourth_argument_is_a_partition_or_headers(producer, cluster):
    assert producer.send('t', b'v', None, 2).get(30).partition == 2
    old = producer.send('t', b'v', b'k', 1, 12345).get(30)
    assert (old.partition, old.timestamp) == (1, 12345)
    new = producer.send('t', b'v', b'k', [('h', b'x')], 1).get(30)
    assert (new.partition, new.serialized_header_size) == (1, 2)


def test_interceptors_see_records_and_outcomes(cluster):
    seen = []

    class Interceptor:
        def on_send(self, record):
            return record._replace(value=record.value + b'!')

        def on_acknowledgement(self, stored, error):  # given by position: any name does
            seen.append((stored and stored.topic, error))

    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, interceptors=[Interceptor()], max_request_size=1000
    ) as producer:
        producer.send('seen', b'v', partition=0).get(30)
        producer.send('seen', b'v' * 2000)
    assert stored(cluster, 'seen')[0][3] == b'v!'
    assert seen[0] == ('seen', None) and isinstance(seen[1][1], MessageSizeTooLargeError)


def test_callbacks_run_and_may_not_wait(producer):
    happened = []
    is_over = threading.Event()

    def wait(metadata):
        try:
            producer.send('t', b'w').get(5)
        except IllegalStateError as error:
            happened.append(error)
        is_over.set()

    producer.send('t', b'v').add_callback(happened.append).add_callback(wait)
    assert is_over.wait(30)
    assert happened[0].topic == 't' and 'callback' in str(happened[1])


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'arguments, error, text',
    [
        ({'value': None}, ValueError, 'key or value'),
        ({'value': 'text'}, TypeError, 'value must be bytes, not str'),
        ({'key': 5}, TypeError, 'key must be bytes, not int'),
        ({'partition': -1}, ValueError, 'partition -1'),
        ({'partition': 99}, ValueError, 'partition 99: the topic t has 0 to 2'),
        ({'partition': '1'}, TypeError, 'partition must be int'),
        ({'headers': 'h'}, TypeError, 'headers must be'),
        ({'headers': [('h', 'x')]}, TypeError, 'str, str'),
        ({'headers': [('h', b'', b'')]}, TypeError, 'headers'),
        ({'timestamp_ms': -1}, ValueError, 'timestamp_ms'),
        ({'timestamp_ms': 2**63}, ValueError, 'timestamp_ms'),
        ({'timestamp_ms': 'now'}, TypeError, 'timestamp_ms'),
        ({'topic': ''}, ValueError, 'topic'),
        ({'topic': 'a b'}, ValueError, "topic 'a b'"),
        ({'topic': '..'}, ValueError, 'topic'),
        ({'topic': 'x' * 250}, ValueError, 'topic'),
        ({'topic': b'bytes'}, TypeError, 'topic must be str, not bytes'),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once_each_time(producer, arguments, error, text):
    for _ in range(2):
        with pytest.raises(error, match=text) as caught:
            producer.send(**{'topic': 't', 'value': b'v', **arguments})
        assert isinstance(caught.value, AssertionError)


def test_a_record_that_is_too_large_fails_or_raises(cluster, producer):
    future = producer.send('t', b'x' * 2_000_000)
    assert future.is_done and isinstance(future.exception, MessageSizeTooLargeError)
    with pytest.raises(MessageSizeTooLargeError, match='max_request_size is 1048576'):
        future.get()
    with pytest.raises(MessageSizeTooLargeError, match='record 1 of 2.*none was sent'):
        producer.send_many('t', [b'x', b'x' * 2_000_000])
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, raise_on_too_large=True
    ) as other, pytest.raises(MessageSizeTooLargeError):
        other.send('t', b'x' * 2_000_000)


def test_what_is_too_large_for_the_broker_alone_is_split(cluster):
    cluster.create_topic('small', 1, configs={'max.message.bytes': '2000'})
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, batch_size=100_000, linger_ms=50
    ) as producer:
        futures = [producer.send('small', b'%d' % n * 100) for n in range(60)]
        assert [future.get(30).offset for future in futures] == list(range(60))
        with pytest.raises(MessageSizeTooLargeError):
            producer.send('small', b'x' * 5000).get(30)
        assert producer.send('small', b'after').get(30).offset == 60
    assert [row[3] for row in stored(cluster, 'small')][:60] == [b'%d' % n * 100 for n in range(60)]


def test_many_with_too_few_keys(producer):
    with pytest.raises(ValueError, match='2 keys for 3 values'):
        producer.send_many('t', [b'a', b'b', b'c'], [b'a', b'b'])
    with pytest.raises(ValueError, match=r'key or value \(record 1\)'):
        producer.send_many('t', [b'a', None])
    assert list(producer.send_many('t', [])) == []


def test_a_serializer_that_raises(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, value_serializer=lambda value: 1 / value
    ) as producer, pytest.raises(ZeroDivisionError):
        producer.send('t', 0)


def test_an_unknown_topic_that_nobody_creates():
    with Cluster(auto_create_topics=False) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, max_block_ms=300
    ) as producer:
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(KafkaTimeoutError, match='topic nope'):
                producer.send('nope', b'v')
            assert 0.3 <= time.monotonic() - began < 5
        with pytest.raises(KafkaTimeoutError):
            producer.partitions_for('nope')
        with pytest.raises(KafkaTimeoutError):
            producer.send('nope', b'v', partition=0)


def test_nobody_there():
    with pytest.raises(NoBrokersAvailable) as caught:
        KafkaProducer(bootstrap_servers='127.0.0.1:1', bootstrap_timeout_ms=100)
    assert caught.value.attempts


def test_without_brokers_but_with_a_version():
    producer = offline()
    try:
        with pytest.raises(KafkaTimeoutError):
            producer.send('t', b'v')
        assert not producer.bootstrap_connected()
    finally:
        producer.close()


def test_its_parts_have_the_private_names_of_1_x(producer):
    future = producer.send('t', b'v')
    future.get(10)
    assert 't' in producer._metadata.topics()
    assert producer._sender.in_flight == len(producer._accumulator.held) == 0


@pytest.mark.parametrize('name', ['lingerms', 'batchsize'])
def test_unknown_options(name):
    with pytest.raises(AssertionError, match='did you mean') as caught:
        offline(**{name: 1})
    assert isinstance(caught.value, KafkaConfigurationError)


# --- memory, time, ends -------------------------------------------------------------------------


def test_a_stalled_broker_blocks_then_times_out():
    with Cluster(topics={'t': 1}) as cluster:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap, buffer_memory=100_000, max_block_ms=1000
        )
        producer.send('t', b'v').get(30)
        cluster.pause(cluster.nodes[0])
        began, count = time.monotonic(), 0
        with pytest.raises(KafkaTimeoutError, match='buffer_memory'):
            while time.monotonic() - began < 30:
                producer.send('t', b'x' * 900)
                count += 1
        assert 40 < count < 120
        with pytest.raises(KafkaTimeoutError, match='buffer_memory'):
            producer.send_many('t', [b'x' * 900] * 200)
        with pytest.raises(KafkaTimeoutError, match='buffer_memory'):
            for _ in range(100_000):
                producer.send_and_forget('t', b'x' * 900)
        cluster.resume(cluster.nodes[0])
        producer.flush(60)  # also what waits in front of batches that found no memory
        assert producer.send('t', b'after').get(30).offset > count
        producer.close()


def test_who_waits_for_memory_goes_on_when_there_is_some():
    with Cluster(topics={'t': 1}) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, buffer_memory=20_000, batch_size=2000
    ) as producer:
        threads = [
            threading.Thread(target=lambda: [producer.send('t', b'x' * 500) for _ in range(200)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.send_many('t', [b'x' * 500] * 200)
        producer.flush(60)
        assert len(stored(cluster, 't')) == 800


def test_flush_gives_up_in_time(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send('t', b'v').get(30)
        cluster.faults.add(Hang(), 'Produce')
        producer.send('t', b'v')
        with pytest.raises(KafkaTimeoutError) as caught:
            producer.flush(timeout=0.05)
        assert isinstance(caught.value, AssertionError)
        producer.close(timeout=0)


def test_what_is_left_at_the_end_fails(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=10_000)
    producer.send('t', b'v', partition=0)
    future = producer.send('t', b'v', partition=1)
    producer.close(timeout=0)
    with pytest.raises(IllegalStateError):
        future.get(5)
    producer.close()
    with pytest.raises(IllegalStateError) as caught:
        producer.send('t', b'v')
    assert isinstance(caught.value, AssertionError)
    with pytest.raises(IllegalStateError):
        producer.send_and_forget('t', b'v')
    with pytest.raises(IllegalStateError):
        producer.send_many('t', [b'v'])
    producer.flush()


def test_closing_sends_what_lingers(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000)
    future = producer.send('one', b'lingers')
    began = time.monotonic()
    producer.close()
    assert future.get().offset >= 0 and time.monotonic() - began < 20
    with pytest.raises(ValueError, match='timeout'):
        producer.close(timeout=-1)


def test_closing_in_a_callback(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    is_over = threading.Event()

    def close(metadata):
        producer.close()
        is_over.set()

    producer.send('t', b'v').add_callback(close)
    assert is_over.wait(30)
    with pytest.raises(IllegalStateError):
        producer.send('t', b'v')


def test_one_thread_from_the_beginning_to_the_end():
    producer = offline(client_id='mine')
    names = [thread.name for thread in threading.enumerate()]
    assert names.count('mine-network-thread') == 1
    producer.close()
    assert 'mine-network-thread' not in [thread.name for thread in threading.enumerate()]


def test_a_producer_that_is_forgotten_ends():
    producer = offline(client_id='forgotten')
    del producer
    gc.collect()
    assert 'forgotten-network-thread' not in [thread.name for thread in threading.enumerate()]


def test_client_ids_count():
    first, second = offline(), offline()
    numbers = [int(p.config['client_id'].rpartition('-')[2]) for p in (first, second)]
    assert numbers[1] == numbers[0] + 1
    first.close()
    second.close()


def test_a_pickled_producer_is_its_options(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id='pickled') as producer:
        copy = pickle.loads(pickle.dumps(producer))
        with copy:
            assert copy.send('t', b'v').get(30).topic == 't'
            assert copy.config == producer.config and copy is not producer


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')
def test_the_child_of_a_fork_is_told(producer):
    producer.send('t', b'v').get(30)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = []
            for call in (producer.send, producer.send_and_forget):
                try:
                    call('t', b'v')
                except IllegalStateError as error:
                    text.append(str(error))
            text.append('connected: %s' % producer.bootstrap_connected())
            producer.close()
            os.write(writer, '|'.join(text).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = b''
    while True:
        piece = os.read(reader, 10_000)
        if not piece:
            break
        said += piece
    os.close(reader)
    os.waitpid(child, 0)
    assert said.count(b'make a new one') == 2
    assert said.endswith(b'connected: False')
    assert producer.send('t', b'v').get(30).topic == 't'


# --- transactions -------------------------------------------------------------------------------


@pytest.mark.parametrize('release', ['0.11', '2.8', '4.4'])
def test_transactions_commit_and_abort(release):
    with Cluster(version=release, topics={'t': 2}) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id='x', linger_ms=2
    ) as producer:
        with pytest.raises(KafkaError):
            producer.send('t', b'too early')
        producer.init_transactions()
        producer.begin_transaction()
        aborted = [producer.send('t', b'aborted %d' % n, partition=n % 2) for n in range(6)]
        aborted[0].get(30)
        producer.abort_transaction()
        assert all(future.is_done for future in aborted)
        producer.begin_transaction()
        futures = [producer.send('t', b'committed %d' % n, partition=n % 2) for n in range(6)]
        producer.send_offsets_to_transaction(
            {TopicPartition('t', 0): OffsetAndMetadata(5, '')}, 'group'
        )
        producer.commit_transaction()
        assert all(future.succeeded() for future in futures)
        with pytest.raises(KafkaError):
            producer.send('t', b'too late')


def test_what_is_no_transactional_producer(producer):
    for call in (
        producer.init_transactions,
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
    ):
        with pytest.raises(IllegalStateError, match='transactional_id'):
            call()


# --- names --------------------------------------------------------------------------------------


def test_whether_brokers_are_connected(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    assert producer.bootstrap_connected()
    producer.close()
    assert not producer.bootstrap_connected()


def test_names_of_the_document(producer):
    assert kafka.KafkaProducer is KafkaProducer
    assert KafkaProducer.max_usable_produce_magic((0, 10)) == 1
    assert producer._max_usable_produce_magic() == 2
    assert producer.partitions_for('t') == {0, 1, 2}
    assert 'open' in repr(producer) and KafkaProducer.DEFAULT_CONFIG['batch_size'] == 16384
