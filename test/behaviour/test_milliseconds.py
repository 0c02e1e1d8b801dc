"""Times in milliseconds may be numbers of any type, fractions included, in the calls of every era.

kafka-python made an int of some of them; ``1000 * time.time()`` is a float, and numpy has numbers
of its own. Where a request carries a whole number the fraction is cut off.
"""

from __future__ import annotations

import fractions
import math

import pytest

from kafka import (
    KafkaClient,
    KafkaConsumer,
    KafkaProducer,
    SimpleConsumer,
    SimpleProducer,
)
from kafka.common import FetchRequest, OffsetRequest, ProduceRequest
from kafka.config import CONSUMER, PRODUCER, resolve
from kafka.consumer.bounded.ranges import Timestamp
from kafka.consumer.bounded.reader import BoundedReader
from kafka.errors import IllegalArgumentError
from kafka.evented.client import KafkaClient as EventedClient
from kafka.internals.validation import ArgumentTypeError, ArgumentValueError, as_milliseconds
from kafka.producer.two_phase_commit import PreparedTransactions
from kafka.protocol import create_message
from kafka.simple_client import SimpleClient
from kafka.structs import ListOffsetRequestPayload, OffsetAndTimestamp, TopicPartition
from kafka.testing import Cluster
from kafka.util import whole_ms

FIRST = TopicPartition('t', 0)
#: A number of a type of its own, as those of numpy are.
KINDS = [lambda ms: ms + 0.5, lambda ms: fractions.Fraction(2 * ms + 1, 2)]


@pytest.fixture(params=KINDS, ids=['float', 'other type'])
def ms(request):
    """Return a function that makes half a millisecond more of a time, as a number of some type."""
    return request.param


@pytest.fixture
def cluster():
    """The first record is of the time 1000."""
    with Cluster(version='4.4', topics={'t': 1}) as made:
        with KafkaProducer(bootstrap_servers=made.bootstrap) as producer:
            for moment in (1000, 2000):
                producer.send('t', b'v', timestamp_ms=moment).get(30)
        yield made


@pytest.fixture
def servers(cluster):
    return {'bootstrap_servers': cluster.bootstrap}


# --- the checks


def test_a_time_is_made_whole(ms):
    assert as_milliseconds('it', ms(3)) == whole_ms(ms(3), 'it') == 3
    assert type(as_milliseconds('it', ms(3))) is type(whole_ms(ms(3), 'it')) is int


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ArgumentValueError, match='it must be a finite number'):
        as_milliseconds('it', value)
    with pytest.raises(ValueError, match='it must be a finite number'):
        whole_ms(value, 'it')


@pytest.mark.parametrize('value', ['5', None, b'5', 5j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ArgumentTypeError, match='it must be int, not'):
        as_milliseconds('it', value)
    with pytest.raises(TypeError, match='it must be an int, not'):
        whole_ms(value, 'it')


# --- calls of 1.x to 3.x and later


def test_the_offset_at_a_time(servers, ms):
    with KafkaConsumer(**servers) as consumer:
        found = consumer.offsets_for_times({FIRST: ms(1000)}, timeout_ms=ms(30000))
        assert found == {FIRST: OffsetAndTimestamp(0, 1000, -1)}
        for wrong in (ms(-2), math.nan, True, '1000'):
            with pytest.raises(ValueError, match='topic t partition 0: the time must be'):
                consumer.offsets_for_times({FIRST: wrong})


def test_every_call_of_a_consumer_that_waits(servers, ms):
    long = {'timeout_ms': ms(30000)}
    with KafkaConsumer(group_id='g', auto_offset_reset='earliest', **servers) as consumer:
        consumer.bootstrap(**long)
        consumer.assign([FIRST])
        assert consumer.position(FIRST, **long) == 0
        assert len(consumer.poll(**long)[FIRST]) >= 1
        assert consumer.commit(**long)
        assert consumer.committed(FIRST, **long) >= 1
        assert consumer.beginning_offsets([FIRST], **long) == {FIRST: 0}
        assert consumer.end_offsets([FIRST], **long) == {FIRST: 2}
        assert consumer.topics(**long) == {'t'}
        consumer.close(**long)


def test_the_time_of_a_record(servers, ms):
    with KafkaProducer(**servers) as producer:
        assert producer.send('t', b'v', timestamp_ms=ms(5000)).get(30).timestamp == 5000
        with pytest.raises(ValueError, match='timestamp_ms'):
            producer.send('t', b'v', timestamp_ms=ms(-2))


def test_the_bounds_of_a_range(servers, ms):
    """The first record that is not older than the bound."""
    options = {'timeout_ms': ms(30000), 'cut_off_after_ms': ms(30000), **servers}
    with BoundedReader('t', Timestamp(ms(1999)), **options) as reader:
        assert [record.timestamp for record in reader] == [2000]
    with BoundedReader('t', Timestamp(ms(2000)), **options) as reader:
        assert list(reader) == []
    with pytest.raises(IllegalArgumentError):
        BoundedReader('t', Timestamp(math.inf), **servers)


def test_the_time_out_that_an_id_gets_when_its_producer_is_fenced(servers, ms):
    with PreparedTransactions(**servers) as prepared:
        assert prepared.fence(['id'], timeout_ms=ms(30000)) == {}


# --- options


def more_ms(options):
    """Return the options of a kind that are times, each with half a millisecond more."""
    found = resolve(options, {'bootstrap_servers': 'x'})
    return {
        name: value + 0.5
        for name, value in found.items()
        if name.endswith('_ms') and isinstance(value, (int, float)) and 0 < value < math.inf
    }


def test_every_option_of_a_transactional_producer(servers):
    """A transaction_timeout_ms with a fraction failed in InitProducerId."""
    options = more_ms(PRODUCER)
    assert {'transaction_timeout_ms', 'delivery_timeout_ms', 'retry_backoff_ms'} <= set(options)
    with KafkaProducer(transactional_id='id', **options, **servers) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send('t', b'v').get(30)
        producer.commit_transaction()


@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
def test_every_option_of_a_consumer_in_a_group(servers, protocol):
    options = more_ms(CONSUMER)
    assert {'session_timeout_ms', 'max_poll_interval_ms', 'fetch_max_wait_ms'} <= set(options)
    options['fetch_max_wait_ms'] = 10.5
    if protocol == 'consumer':  # the group's own settings say so
        del options['session_timeout_ms'], options['heartbeat_interval_ms']
    options.update(group_id='g', group_protocol=protocol, auto_offset_reset='earliest')
    with KafkaConsumer('t', **options, **servers) as consumer:
        assert len(next(iter(consumer.poll(30000.5).values()))) >= 1
        consumer.commit()


def test_an_evented_client(servers, ms):
    client = EventedClient(reconnect_backoff_ms=ms(50), request_timeout_ms=ms(30000), **servers)
    client.poll(timeout_ms=ms(1))
    assert client.await_ready(0, timeout_ms=ms(30000))
    client.close()


# --- 0.9.5 and SimpleClient


@pytest.fixture
def client(cluster):
    made = KafkaClient(cluster.bootstrap)
    yield made
    made.close()


def test_requests_of_0_9_5(client, ms):
    (stored,) = client.send_produce_request(
        [ProduceRequest(b't', 0, [create_message(b'v')])], timeout=ms(30000)
    )
    (fetched,) = client.send_fetch_request([FetchRequest(b't', 0, 0, 1000)], max_wait_time=ms(10))
    (found,) = client.send_offset_request([OffsetRequest(b't', 0, ms(1999), 1)])
    (same,) = client.send_offset_request([OffsetRequest(b't', 0, 1999, 1)])
    assert (stored.offset, fetched.error, found) == (2, 0, same)


def test_requests_of_a_simple_client(cluster, ms):
    client = SimpleClient(cluster.bootstrap)
    (found,) = client.send_list_offset_request([ListOffsetRequestPayload('t', 0, ms(1000))])
    assert (found.offset, found.timestamp) == (0, 1000)
    client.close()


def test_clients_of_0_9_5(client, ms):
    (stored,) = SimpleProducer(client, ack_timeout=ms(30000)).send_messages('t', b'v')
    assert stored.error == 0
    consumer = SimpleConsumer(client, 'g', 't', auto_commit_every_t=ms(60000))
    consumer.seek(0, 0)
    assert len(consumer.get_messages(2, timeout=30)) == 2
    consumer.stop()


def test_the_consumer_of_0_9_5(cluster, ms):
    names = ['socket_timeout_ms', 'fetch_wait_max_ms', 'refresh_leader_backoff_ms']
    names += ['auto_commit_interval_ms', 'consumer_timeout_ms']
    options = {name: ms(30000) for name in names}
    options['fetch_wait_max_ms'] = ms(10)
    consumer = KafkaConsumer(
        't',
        group_id='g',
        dialect='0.9.5',
        auto_commit_enable=True,
        auto_offset_reset='smallest',
        bootstrap_servers=cluster.bootstrap,
        **options,
    )
    assert next(consumer).offset == 0
    same = consumer.get_partition_offsets('t', 0, 1999, 1)
    assert consumer.get_partition_offsets('t', 0, ms(1999), 1) == same
    consumer.close()
