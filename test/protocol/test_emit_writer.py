"""The code that writes is flat: one call of struct for neighbours, and nested structs in place."""

from __future__ import annotations

from kafka.protocol.fetch import FetchRequest
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import MetadataResponse


def test_neighbours_of_fixed_width_are_written_in_one_call_with_the_length_behind_them():
    source = FetchRequest.encode_source(11)
    assert 'write(pack_iiiibiii(' in source
    assert source.count('def ') == 1


def test_each_tagged_field_has_a_function_of_its_own():
    assert FetchRequest.encode_source(18).count('\n\n\ndef write_') == 4


def test_arrays_of_numbers_are_written_in_one_call():
    assert 'write(pack_int32s[len(isr_nodes)](*isr_nodes))' in MetadataResponse.encode_source(0)


def test_the_empty_tagged_section_is_written_with_its_neighbours():
    assert 'fetch_partition.partition_max_bytes, 0))' in FetchRequest.encode_source(12)


def test_only_what_a_version_can_not_carry_is_checked():
    refusal = 'if message.group_instance_id is not None:\n        raise off_wire('
    assert refusal in HeartbeatRequest.encode_source(2)
    assert 'group_instance_id' in HeartbeatRequest.encode_source(3)
    assert refusal not in HeartbeatRequest.encode_source(3)
