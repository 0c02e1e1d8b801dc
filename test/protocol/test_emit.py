"""The generated code is flat: one call of struct for neighbours, and nested structs in place."""

from __future__ import annotations

from kafka.protocol.emit import Code, snake
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchResponse
from kafka.protocol.group import HeartbeatRequest


def test_neighbours_of_fixed_width_are_read_in_one_call_with_the_length_behind_them():
    source = FetchResponse.decode_source(11)
    assert (
        'message.throttle_time_ms, message.error_code, message.session_id, n = unpack_ihii('
        in source
    )
    assert source.count('def ') == 1


def test_neighbours_of_fixed_width_are_written_in_one_call_with_the_length_behind_them():
    source = FetchRequest.encode_source(11)
    assert 'write(pack_iiiibiii(' in source
    assert source.count('def ') == 1


def test_a_flexible_length_is_read_with_its_neighbours_when_it_has_one_byte():
    assert 'unpack_ihiB(data, pos)' in FetchResponse.decode_source(12)


def test_each_tagged_field_has_a_function_of_its_own():
    assert FetchResponse.decode_source(16).count('\n\n\ndef read_') == 4
    assert FetchRequest.encode_source(18).count('\n\n\ndef write_') == 4


def test_code_is_compiled_on_first_use_and_kept():
    HeartbeatRequest.encoders.clear()
    request = HeartbeatRequest('g', 1, 'm')
    request.encode(2)
    writer = HeartbeatRequest.encoders[2]
    request.encode(2)
    assert list(HeartbeatRequest.encoders) == [2]
    assert HeartbeatRequest.encoders[2] is writer


def test_constructors_are_compiled_on_first_use():
    FetchPartition(0, fetch_offset=0, partition_max_bytes=0)
    assert FetchPartition.__init__.__qualname__ == 'FetchPartition.__init__'


def test_one_name_stands_for_one_value():
    code = Code()
    first, second = object(), object()
    assert [code.use('x', first), code.use('x', second), code.use('x', first)] == ['x', 'x_', 'x']


def test_names_in_snake_case():
    assert snake('PartitionData') == 'partition_data'
    assert snake('TopicPartitions') == 'topic_partitions'
    assert snake('topics') == 'topics'
