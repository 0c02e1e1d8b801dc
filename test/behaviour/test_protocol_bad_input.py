"""Bytes that are no message end in a documented error, with memory bounded by their length."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.protocol.admin.topics import CreateTopicsRequest
from kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.fetch import FetchResponse
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.primitives import MAX_ELEMENTS, MAX_TAGS, uvarint
from kafka.protocol.sasl import SaslAuthenticateRequest
from test.protocol.strategies import MESSAGES, instances

#: There are 150 messages, and three tests for each: a quarter of a profile's examples will do.
few = settings(max_examples=max(5, settings.default.max_examples // 4))

DOCUMENTED = (BufferUnderflowError, ProtocolError)

each_message = pytest.mark.parametrize('cls', MESSAGES, ids=lambda cls: cls.__name__)


def versions(cls):
    return st.integers(cls.min_version, cls.max_version)


def decode_or_refuse(cls, data, version):
    try:
        return cls.decode(data, version)
    except DOCUMENTED:
        return None


@each_message
def test_random_bytes_give_a_message_or_a_documented_error(cls):
    @few
    @given(st.binary(max_size=100), versions(cls))
    def check(data, version):
        message = decode_or_refuse(cls, data, version)
        if message is not None:
            again = cls.decode(message.encode(version), version)
            assert again.encode(version) == message.encode(version)  # NaN is never equal

    check()


@each_message
def test_a_message_cut_short_is_never_taken_for_a_whole_one(cls):
    @few
    @given(st.data(), versions(cls))
    def check(data, version):
        whole = data.draw(instances(cls, version)).encode(version)
        if whole:
            with pytest.raises(DOCUMENTED):
                cls.decode(whole[: data.draw(st.integers(0, len(whole) - 1))], version)

    check()


@each_message
def test_a_message_with_foreign_bytes_inside_is_read_or_refused(cls):
    """Lengths and counts that are huge, negative or endless, wherever they hit."""
    foreign = st.sampled_from(
        [b'\x7f\xff\xff\xff', b'\x80\x00\x00\x00', b'\xff\xff', b'\xff' * 6, b'\xfe\xff\xff\x7f']
    )

    @few
    @given(st.data(), versions(cls), foreign | st.binary(min_size=1, max_size=4))
    def check(data, version, put):
        whole = data.draw(instances(cls, version)).encode(version)
        at = data.draw(st.integers(0, len(whole)))
        decode_or_refuse(cls, whole[:at] + put + whole[at + len(put) :], version)

    check()


@pytest.mark.parametrize(
    'cls, version, data',
    [
        (MetadataRequest, 1, b'\x7f\xff\xff\xff'),
        (MetadataRequest, 9, b'\xff\xff\xff\xff\x0f' + b'\x00' * 50),
        (FetchResponse, 4, b'\x00\x00\x00\x00' + b'\x3b\x9a\xca\x00' + b'\x00' * 50),
        (FetchResponse, 12, b'\x00' * 10 + b'\x80\x94\xeb\xdc\x03' + b'\x00' * 50),
    ],
)
def test_a_count_beyond_the_bytes_is_refused_before_anything_is_allocated(cls, version, data):
    decode_or_refuse(cls, b'', version)  # compiles the reader
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match='elements, which exceeds'):
            cls.decode(data, version)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_a_count_is_measured_by_the_least_room_of_its_elements():
    """Each partition of a v4 response takes 30 bytes or more, so 1000 bytes hold no 34 of them."""
    topic = b'\x00\x01t'
    start = struct.pack('>ii', 0, 1) + topic
    with pytest.raises(ProtocolError, match='partitions has 34 elements'):
        FetchResponse.decode(start + struct.pack('>i', 34) + bytes(1000), 4)
    with pytest.raises(BufferUnderflowError, match='records has length'):
        one = struct.pack('>ihqq', 0, 0, 0, 0) + struct.pack('>ii', -1, 2_000_000_000)
        FetchResponse.decode(start + struct.pack('>i', 1) + one, 4)


def test_an_array_has_at_most_a_million_elements_however_small_they_are():
    """Objects take far more memory than their bytes do."""
    data = struct.pack('>i', MAX_ELEMENTS + 1) + bytes(2 * MAX_ELEMENTS + 2)
    with pytest.raises(ProtocolError, match='topics has 1000001 elements'):
        MetadataRequest.decode(data, 1)


@pytest.mark.parametrize(
    'data, words',
    [
        (b'\xff\xff\xff\xff\xff\x01', 'more than 5 bytes'),
        (b'\x80' * 1000, 'more than 5 bytes'),
        (b'\xff\xff\xff\xff\x7f', 'more than 32 bits'),
    ],
)
def test_an_endless_varint_is_refused(data, words):
    with pytest.raises(ProtocolError, match=words):
        MetadataRequest.decode(data, 9)


def test_a_varint_that_is_cut_off_ends_too_early():
    with pytest.raises(BufferUnderflowError):
        MetadataRequest.decode(b'\xff\xff', 9)


def tags(count):
    return uvarint(count) + b''.join(uvarint(tag) + b'\x00' for tag in range(100, 100 + count))


def test_tagged_fields_are_read_up_to_the_cap():
    body = ApiVersionsRequest('name', '1').encode(3)[:-1]
    assert len(ApiVersionsRequest.decode(body + tags(MAX_TAGS), 3).unknown_tags) == MAX_TAGS
    with pytest.raises(ProtocolError, match='10001 tagged fields; the maximum is 10000'):
        ApiVersionsRequest.decode(body + tags(MAX_TAGS + 1), 3)


def test_a_tag_may_not_appear_twice():
    body = ApiVersionsRequest('name', '1').encode(3)[:-1]
    with pytest.raises(ProtocolError, match='tagged field 9 is repeated'):
        ApiVersionsRequest.decode(body + b'\x02' + b'\x09\x00' * 2, 3)


def test_a_tagged_field_must_fill_its_length():
    body = ApiVersionsResponse(error_code=0, api_keys=[]).encode(3)[:-1]
    epoch = b'\x01\x01\x09' + bytes(9)  # one field, tag 1, 9 bytes, of which an int64 needs 8
    with pytest.raises(ProtocolError, match='1 bytes are left after .*finalized_features_epoch'):
        ApiVersionsResponse.decode(body + epoch, 3)


def test_a_tagged_field_may_not_reach_beyond_the_end():
    body = ApiVersionsRequest('name', '1').encode(3)[:-1]
    with pytest.raises(BufferUnderflowError, match='tagged field 9 has length 5'):
        ApiVersionsRequest.decode(body + b'\x01\x09\x05abc', 3)


def test_bytes_behind_the_end_are_refused():
    with pytest.raises(ProtocolError, match='1 bytes are left after MetadataRequest'):
        MetadataRequest.decode(b'\x00\x00\x00\x00\x00', 0)


def test_a_string_that_is_not_utf_8_is_refused():
    with pytest.raises(ProtocolError, match='not UTF-8'):
        FindCoordinatorRequest.decode(b'\x00\x02\xff\xff', 0)


@pytest.mark.parametrize(
    'cls, version, data',
    [
        (FindCoordinatorRequest, 0, b'\xff\xff'),  # a null string
        (FindCoordinatorRequest, 3, b'\x00\x00\x00'),  # a null compact string
        (SaslAuthenticateRequest, 0, b'\xff\xff\xff\xff'),  # null bytes
        (MetadataRequest, 0, b'\xff\xff\xff\xff'),  # a null array
        (FindCoordinatorRequest, 0, b'\xff\xfe'),  # a string of length -2
        (MetadataRequest, 1, b'\xff\xff\xff\xfe'),  # -2 elements, though null is fine
    ],
)
def test_negative_lengths_are_refused_unless_they_mean_an_allowed_null(cls, version, data):
    with pytest.raises(ProtocolError):
        cls.decode(data, version)


@pytest.mark.parametrize('version', [-1, MetadataResponse.max_version + 1])
def test_unknown_versions_are_refused_both_ways(version):
    with pytest.raises(ProtocolError, match='versions 0 to'):
        MetadataResponse.decode(b'', version)
    with pytest.raises(ProtocolError, match='versions 0 to'):
        MetadataRequest(topics=[]).encode(version)
    with pytest.raises(ProtocolError, match='versions 0 to'):
        CreateTopicsRequest.decode_source(version)
