"""KafkaConnection on real brokers: bytes made by hand in the layouts of 2013, answered in them.

The layouts are version 0 of the Kafka protocol guide. Releases that dropped version 0 must look the
same from here: the connection translates. What it does not recognise goes through untouched.
"""

from __future__ import annotations

import binascii
import struct

import pytest

from kafka import KafkaConnection
from kafka.common import ConnectionError
from test.integration.fixtures import retry

pytestmark = pytest.mark.integration

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18


@pytest.fixture
def connection(cluster):
    host, port = cluster.address(0)
    made = KafkaConnection(host, port, timeout=20)
    yield made
    made.close()


def text(value):
    """int16 length, then the bytes."""
    return struct.pack('>h', len(value)) + value.encode()


def framed(api_key, correlation_id, body, version=0):
    """A whole request: int32 length, header (api key, version, correlation id, client id), body."""
    head = struct.pack('>hhi', api_key, version, correlation_id) + text('by hand')
    return struct.pack('>i', len(head + body)) + head + body


def ask(connection, api_key, correlation_id, body):
    """Send one request and return its answer behind the correlation id."""
    connection.send(correlation_id, framed(api_key, correlation_id, body))
    answer = connection.recv(correlation_id)
    assert struct.unpack_from('>i', answer) == (correlation_id,)
    return bytes(answer[4:])


def message_set(*values):
    """Magic 0: int64 offset, int32 size, int32 crc, int8 magic, int8 attributes, key, value."""
    found = b''
    for value in values:
        body = struct.pack('>bbi', 0, 0, -1) + struct.pack('>i', len(value)) + value
        message = struct.pack('>I', binascii.crc32(body) & 0xFFFFFFFF) + body
        found += struct.pack('>qi', 0, len(message)) + message
    return found


def one_partition(topic, rest):
    """One topic with one partition, number 0, and what belongs to it."""
    return struct.pack('>i', 1) + text(topic) + struct.pack('>ii', 1, 0) + rest


def test_hand_made_requests_are_answered_in_the_layout_of_version_0(connection, topic):
    written = message_set(b'one', b'two')
    body = struct.pack('>hi', 1, 1000)  # acks, timeout
    body += one_partition(topic, struct.pack('>i', len(written)) + written)
    answer = ask(connection, PRODUCE, 7, body)
    # error 0, offset 0
    assert answer == one_partition(topic, struct.pack('>hq', 0, 0))

    body = struct.pack('>i', -1) + one_partition(topic, struct.pack('>qi', -1, 1))
    answer = ask(connection, LIST_OFFSETS, 8, body)
    # error 0, one offset: 2
    assert answer == one_partition(topic, struct.pack('>hiq', 0, 1, 2))

    body = struct.pack('>iii', -1, 1000, 1)  # replica, max wait, min bytes
    body += one_partition(topic, struct.pack('>qi', 0, 4096))
    answer = ask(connection, FETCH, 9, body)
    head = one_partition(topic, struct.pack('>hq', 0, 2))  # error 0, high water mark 2
    assert answer[: len(head)] == head
    (size,) = struct.unpack_from('>i', answer, len(head))
    assert answer[len(head) + 4 :] == _with_offsets(written)
    assert size == len(written)


def _with_offsets(entries):
    """The same message set as the broker returns it: offsets 0, 1, 2 … in place of zeros."""
    found, at, offset = b'', 0, 0
    while at < len(entries):
        (size,) = struct.unpack_from('>i', entries, at + 8)
        found += struct.pack('>q', offset) + entries[at + 8 : at + 12 + size]
        at, offset = at + 12 + size, offset + 1
    return found


def test_metadata_of_version_0_by_hand(cluster, connection, topic):
    answer = ask(connection, METADATA, 2**31 - 1, struct.pack('>i', 1) + text(topic))
    host, port = cluster.address(0)
    # one broker: id 0, host, port
    head = struct.pack('>ii', 1, 0) + text(host) + struct.pack('>i', port)
    # one topic: error 0, name, two partitions
    head += struct.pack('>ih', 1, 0) + text(topic) + struct.pack('>i', 2)
    assert answer[: len(head)] == head
    # each: error, partition, leader, one replica, one in sync
    assert len(answer) == len(head) + 2 * struct.calcsize('>hiiiiii')


def test_two_queued_answers_are_returned_by_two_calls(connection, topic):
    body = struct.pack('>i', 1) + text(topic)
    connection.send(1, framed(METADATA, 1, body))
    connection.send(2, framed(METADATA, 2, body))
    assert struct.unpack_from('>i', connection.recv(1)) == (1,)
    assert struct.unpack_from('>i', connection.recv(2)) == (2,)


@pytest.mark.releases(since='0.10')
def test_a_request_it_does_not_know_goes_through_untouched(connection):
    connection.send(5, framed(API_VERSIONS, 5, b''))
    answer = connection.recv(5)
    correlation_id, error, count = struct.unpack_from('>ihi', answer)
    assert (correlation_id, error) == (5, 0)
    assert len(answer) == struct.calcsize('>ihi') + count * struct.calcsize('>hhh')


@pytest.mark.releases(until='0.8')
def test_a_request_the_broker_does_not_know_ends_the_connection(connection):
    connection.send(5, framed(API_VERSIONS, 5, b''))
    with pytest.raises(ConnectionError):
        connection.recv(5)


def test_closed_connection_connects_again(connection, topic):
    body = struct.pack('>i', 1) + text(topic)
    first = ask(connection, METADATA, 1, body)
    connection.close()
    assert ask(connection, METADATA, 2, body) == first
    connection.reinit()
    assert ask(connection, METADATA, 3, body) == first
    copied = connection.copy()
    assert ask(copied, METADATA, 4, body) == first
    copied.close()


def test_produce_without_acks_has_no_answer(connection, topic):
    written = message_set(b'silent')
    body = struct.pack('>hi', 0, 1000)
    body += one_partition(topic, struct.pack('>i', len(written)) + written)
    connection.send(1, framed(PRODUCE, 1, body))
    body = struct.pack('>i', -1) + one_partition(topic, struct.pack('>qi', -1, 1))
    ids = iter(range(2, 1000))

    def written_now():
        answer = ask(connection, LIST_OFFSETS, next(ids), body)
        assert answer == one_partition(topic, struct.pack('>hiq', 0, 1, 1))

    retry(written_now, AssertionError)
