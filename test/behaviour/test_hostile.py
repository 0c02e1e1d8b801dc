"""KafkaProducer and servers that answer what no broker does: each record gets its outcome in time.

An outcome is the place in the log, or a documented error; never a success that nobody gave, and
never silence.
"""

from __future__ import annotations

import struct
import time
import tracemalloc

import pytest

from kafka import KafkaProducer
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    ProtocolError,
    UnknownError,
)
from kafka.protocol.produce import ProduceResponse
from kafka.protocol.transaction import InitProducerIdResponse
from kafka.testing import Cluster
from kafka.testing.faults import Cut, Slow
from test.hostile_servers import CLOSE, NEWEST, Broker, Unframed, produced, raw
from test.stored import stored

MIB = 1024 * 1024
LIMIT = 0.25  # seconds: delivery_timeout_ms
BUSY = 20.0  # how much longer everything may take on a busy machine


def producer_on(broker, **options):
    given = {
        'acks': 1,
        'enable_idempotence': False,
        'delivery_timeout_ms': LIMIT * 1000,
        'request_timeout_ms': 100,
        'max_block_ms': 1000,
        'retry_backoff_ms': 5,
        'reconnect_backoff_ms': 5,
        **options,
    }
    return KafkaProducer(bootstrap_servers=broker.address, **given)


def outcome(broker, **options):
    """Send three records; return the error that all of them end with, after checking the time."""
    began = time.monotonic()
    with producer_on(broker, **options) as producer:
        futures = [producer.send('t', b'%d' % number, partition=0) for number in range(3)]
        errors = {type(each.exception) for each in futures if wait(each)}
    assert time.monotonic() - began < 2 * LIMIT + BUSY
    assert all(each.is_done for each in futures)
    (error,) = errors
    return error


def wait(future):
    try:
        future.get(LIMIT + BUSY)
    except KafkaError:
        pass
    assert future.is_done
    return True


def framed(length, *rest):
    return lambda header, request: Unframed(struct.pack('>i', length) + b''.join(rest))


def other_id(header, request):
    return struct.pack('>i', header.correlation_id + 1) + bytes(40)


def nothing_for_it(header, request):
    return ProduceResponse(responses=[])


def an_answer_twice(header, request):
    body = struct.pack('>i', header.correlation_id) + bytes(4)
    return Unframed((struct.pack('>i', len(body)) + body) * 2)


# What a produce is answered with, and the errors in which that may end.
LIES = {
    'a frame of 2 GiB': (framed(2**31 - 1), KafkaError),
    'a frame of a negative length': (framed(-2), KafkaError),
    'an empty frame': (framed(0), KafkaError),
    'a frame that never ends': (framed(1000, b'x'), KafkaTimeoutError),
    'another correlation id': (other_id, KafkaError),
    'bytes without meaning': (raw(b'\xff' * 100), KafkaError),
    'a body that is too short': (raw(b'\x00'), KafkaError),
    'the same answer twice': (an_answer_twice, KafkaError),
    'success for another topic': (produced('other'), ProtocolError),
    'success for another partition': (produced('t', [7]), ProtocolError),
    'success for nothing': (nothing_for_it, ProtocolError),
    'an error that nobody knows': (produced('t', [0], 999), UnknownError),
    'a closed connection': (lambda header, request: CLOSE, KafkaConnectionError),
    'silence': (lambda header, request: None, KafkaTimeoutError),
}


@pytest.mark.parametrize('lie', list(LIES))
def test_a_lie_about_what_was_stored_ends_in_a_documented_error(lie):
    answer, error = LIES[lie]
    with Broker({0: answer}) as broker:
        found = outcome(broker)
    assert issubclass(found, (error, KafkaTimeoutError))


def test_success_for_more_than_was_sent_counts_for_what_was_sent():
    with Broker({0: produced('t', [0, 7])}) as broker, producer_on(broker) as producer:
        assert producer.send('t', b'v').get(BUSY).offset == 5


def test_a_throttle_of_weeks_holds_nothing_beyond_its_time():
    with Broker({0: produced(throttle_time_ms=2**31 - 1)}) as broker:
        with producer_on(broker) as producer:
            assert producer.send('t', b'v').get(BUSY).offset == 5
            began = time.monotonic()
            with pytest.raises(KafkaTimeoutError):
                producer.send('t', b'w').get(LIMIT + BUSY)
        assert time.monotonic() - began < LIMIT + BUSY


def test_a_long_frame_is_refused_before_there_is_memory_for_it():
    with Broker({0: framed(99 * MIB, bytes(100))}) as broker:
        tracemalloc.start()
        try:
            outcome(broker, receive_message_max_bytes=MIB)
            assert tracemalloc.get_traced_memory()[1] < 8 * MIB
        finally:
            tracemalloc.stop()


# ---------------------------------------------------------------- before anything is sent


def away(broker):
    return broker.metadata(host='nobody.invalid')


METADATA = {
    'bytes without meaning': lambda broker: b'\xff' * 64,
    'a leader that is no broker': lambda broker: broker.metadata(leader=99),
    'no leader': lambda broker: broker.metadata(leader=-1),
    'another topic': lambda broker: broker.metadata(name='other'),
    'a host that is no name': lambda broker: broker.metadata(host='a b\x00'),
    'a host without name': lambda broker: broker.metadata(host=''),
    'a port that is none': lambda broker: broker.metadata(port=-5),
}


@pytest.mark.parametrize('lie', list(METADATA))
def test_a_lie_about_the_cluster_ends_in_time(lie):
    broker = Broker({0: produced()})

    def answer(header, request):
        said = METADATA[lie](broker)
        return raw(said)(header, request) if isinstance(said, bytes) else said

    broker.answers[3] = answer
    with broker:
        began = time.monotonic()
        with pytest.raises(KafkaError) as raised:
            with producer_on(broker, bootstrap_timeout_ms=500) as producer:
                producer.send('t', b'v').get(LIMIT + BUSY)
        assert time.monotonic() - began < 3 * LIMIT + BUSY
    assert isinstance(raised.value, (KafkaTimeoutError, NoBrokersAvailable, ProtocolError))


def producer_id(**fields):
    return lambda header, request: InitProducerIdResponse(throttle_time_ms=0, **fields)


@pytest.mark.parametrize(
    'answer',
    [
        raw(b'\xff' * 64),
        producer_id(error_code=0, producer_id=-7, producer_epoch=0),
        producer_id(error_code=999, producer_epoch=-1),
        lambda header, request: CLOSE,
        lambda header, request: None,
    ],
)
def test_a_lie_about_the_producer_id_ends_in_an_error(answer):
    ranges = {**NEWEST, 22: (0, 5)}
    with Broker({0: produced(), 22: answer}, versions=ranges) as broker:
        assert issubclass(outcome(broker, acks='all', enable_idempotence=True), KafkaError)


# ---------------------------------------------------------------- cut and slow answers


def impatient(cluster, **options):
    return KafkaProducer(
        bootstrap_servers=cluster.bootstrap, retry_backoff_ms=1, reconnect_backoff_ms=1, **options
    )


def test_an_answer_that_is_cut_at_each_byte_loses_and_doubles_nothing():
    with Cluster(version='4.4', topics={'t': 1}) as cluster, impatient(cluster) as producer:
        for bytes_ in range(60):  # beyond its end it is cut before its last byte
            with cluster.faults.add(Cut(bytes_), 'Produce') as fault:
                producer.send('t', b'%d' % bytes_).get(60)
            assert fault.hits == 1
        assert stored(cluster) == [b'%d' % bytes_ for bytes_ in range(60)]


@pytest.mark.parametrize('api', ['ApiVersions', 'Metadata', 'InitProducerId'])
def test_an_answer_that_is_cut_before_the_first_record_is_asked_for_again(api):
    with Cluster(version='4.4', topics={'t': 1}) as cluster:
        for bytes_ in (0, 1, 3, 4, 5, 8, 9, 12, 20):
            cluster.faults.add(Cut(bytes_), api)
            with impatient(cluster) as producer:
                producer.send('t', b'%d' % bytes_).get(60)
        assert stored(cluster) == [b'%d' % each for each in (0, 1, 3, 4, 5, 8, 9, 12, 20)]


def test_an_answer_that_trickles_for_ever_is_given_up():
    with Cluster(version='4.4', topics={'t': 1}) as cluster:
        cluster.faults.add(Slow(2), 'Produce', times=None)
        producer = impatient(cluster, request_timeout_ms=300, delivery_timeout_ms=1000)
        with producer:
            began = time.monotonic()
            with pytest.raises(KafkaTimeoutError):
                producer.send('t', b'v').get(BUSY)
            assert time.monotonic() - began < 1 + BUSY
    assert set(stored(cluster)) <= {b'v'}
