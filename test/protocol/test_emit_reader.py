"""The code that reads is flat: one call of struct for neighbours, and nested structs in place."""

from __future__ import annotations

from kafka.protocol.fetch import FetchResponse
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import DescribeTopicPartitionsRequest, MetadataResponse


def test_neighbours_of_fixed_width_are_read_in_one_call_with_the_length_behind_them():
    source = FetchResponse.decode_source(11)
    assert (
        'message.throttle_time_ms, message.error_code, message.session_id, n = unpack_ihii('
        in source
    )
    assert source.count('def ') == 1


def test_a_flexible_length_is_read_with_its_neighbours_when_it_has_one_byte():
    assert 'unpack_ihiB(data, pos)' in FetchResponse.decode_source(12)


def test_each_tagged_field_has_a_function_of_its_own():
    assert FetchResponse.decode_source(16).count('\n\n\ndef read_') == 4


def test_arrays_of_numbers_are_read_in_one_call():
    assert 'isr_nodes = list(unpack_int32s[n](data, pos))' in MetadataResponse.decode_source(0)


def test_lengths_and_counts_are_checked_before_they_are_used():
    source = HeartbeatRequest.decode_source(3)
    assert source.count('stop = pos + n') == source.count('if n < 0 or stop > end:') == 3
    source = MetadataResponse.decode_source(12)
    assert source.count('for _ in range(n)') < source.count('n > 1000000 or n > (end - pos) // ')


def test_a_nullable_struct_is_read_behind_its_byte():
    source = DescribeTopicPartitionsRequest.decode_source(0)
    assert 'if n < 0:\n        message.cursor = None\n    else:' in source
