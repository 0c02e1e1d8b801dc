"""The second look at a request: as strict readers see it, but for what brokers overlook."""

from __future__ import annotations

import random
import struct

import pytest

from kafka.errors import BufferUnderflowError, KafkaError, ProtocolError
from kafka.protocol.admin.partitions import (
    AlterPartitionReassignmentsRequest as ReplicasRequest,
)
from kafka.protocol.admin.partitions import (
    ReassignablePartition as Replicas,
)
from kafka.protocol.admin.partitions import (
    ReassignableTopic,
)
from kafka.protocol.api import ApiKey, decode_request, encode_request, request_class
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.testing.lenient_reader import TooManyParts, read_leniently
from test.testing.filled_messages import filled


def every_request():
    for key in ApiKey:
        cls = request_class(key)
        for version in range(cls.min_version, cls.max_version + 1):
            yield encode_request(filled(cls, version), version, 7, 'me')


def metadata(body, version=0, client_id=b'\x00\x01x'):
    return struct.pack('>hhi', 3, version, 7) + client_id + body


def test_a_good_request_of_any_version_is_read_as_strict_readers_do():
    for data in every_request():
        assert read_leniently(data) == decode_request(data)


def test_damaged_requests_that_strict_readers_take_are_read_alike():
    chance = random.Random(1)
    taken = 0
    for data in every_request():
        damaged = bytearray(data)
        damaged[chance.randrange(8, len(data))] = chance.choice([0, 1, 2, 127, 255])
        try:
            strict = decode_request(bytes(damaged))
        except KafkaError:
            continue
        taken += 1
        assert read_leniently(bytes(damaged)) == strict
    assert taken > 50


def test_bytes_behind_the_last_field_are_left_out():
    for data in every_request():
        assert read_leniently(data + b'more') == decode_request(data)


def test_text_that_is_no_utf_8_is_replaced():
    header, request = read_leniently(metadata(b'\0\0\0\1\0\2a\xff', client_id=b'\0\1\xff'))
    assert header.client_id == '\ufffd'
    assert request.topics[0].name == 'a\ufffd'


def test_any_negative_length_is_null_where_there_is_null():
    header, request = read_leniently(metadata(struct.pack('>iB', -5, 1), 4, b'\xff\xf0'))
    assert (header.client_id, request.topics) == (None, None)


@pytest.mark.parametrize('body', [struct.pack('>i', -1), struct.pack('>ih', 1, -1)])
def test_null_is_refused_where_there_is_none(body):
    with pytest.raises(ProtocolError, match='null'):
        read_leniently(metadata(body))


def test_null_texts_may_be_empty_ones():
    _, request = read_leniently(metadata(struct.pack('>ih', 1, -7)), takes_null=True)
    assert request == MetadataRequest(topics=[MetadataRequestTopic(name='')])


@pytest.mark.parametrize('length', [0, 1, 2, 9])
def test_a_request_that_ends_too_early_is_refused(length):
    data = metadata(struct.pack('>ih', 1, 5) + b'a')
    for end in (length, len(data)):
        with pytest.raises(BufferUnderflowError):
            read_leniently(data[:end])


def test_a_count_takes_no_more_elements_than_bytes_are_there():
    with pytest.raises(ProtocolError, match='2147483647 elements'):
        read_leniently(metadata(b'\x7f\xff\xff\xff'))


def test_a_known_tag_is_read_whatever_follows_it_in_its_section():
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[], cluster_id='ab')
    data = encode_request(request, 12, 7, 'me')
    longer = data.replace(b'\x00\x03\x03ab', b'\x00\x05\x03ab??')
    assert longer != data
    assert read_leniently(longer)[1] == request


@pytest.mark.parametrize(
    'request_, version, parts',
    [
        (MetadataRequest(topics=[MetadataRequestTopic(name='t')] * 5), 1, 5),
        (FindCoordinatorRequest(coordinator_keys=['a', 'b', 'c']), 4, 3),
        (ReplicasRequest(topics=[ReassignableTopic('t', [Replicas(0, [1, 2])] * 2)]), 0, 7),
    ],
)
def test_items_of_lists_are_counted(request_, version, parts):
    data = encode_request(request_, version, 7, 'me')
    assert read_leniently(data, most_parts=parts)[1] == request_
    with pytest.raises(TooManyParts):
        read_leniently(data, most_parts=parts - 1)


def test_of_tags_that_come_twice_the_last_counts():
    tail = b'\1\0\0' + b'\2' + b'\x32\1a' + b'\x32\1b'  # booleans; two fields of tag 50
    _, request = read_leniently(metadata(b'\0' + b'\1' + tail, 9))
    assert request.unknown_tags == {50: b'b'}


def test_more_tags_than_there_can_be_are_refused():
    with pytest.raises(ProtocolError, match='tagged fields'):
        read_leniently(metadata(b'\x91\x4e', 9))  # 10001 of them


def test_tags_are_counted():
    request = MetadataRequest(topics=[])
    request.unknown_tags = dict.fromkeys(range(50, 60), b'')
    data = encode_request(request, 9, 7, 'me')
    assert read_leniently(data, most_parts=10)[1] == request
    with pytest.raises(TooManyParts):
        read_leniently(data, most_parts=9)


def test_a_request_may_be_read_as_of_an_older_version():
    newest = encode_request(MetadataRequest(topics=[]), 4, 7, 'me')
    header, request = read_leniently(newest, 0)
    assert (header.api_version, request) == (0, MetadataRequest(topics=[]))
