"""What readers and writers have in common: lines, names, and what a version looks like."""

from __future__ import annotations

from kafka.protocol.emit import Code, Emitter, snake
from kafka.protocol.fetch import PartitionData
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import Cursor


def test_one_name_stands_for_one_value():
    code = Code()
    first, second = object(), object()
    assert [code.use('x', first), code.use('x', second), code.use('x', first)] == ['x', 'x_', 'x']


def test_lines_are_indented_when_they_are_to_be():
    code = Code()
    code.add('if x:')
    with code.indented():
        code.add('a')
        with code.indented(False):
            code.add('b')
    code.add('c')
    assert code.source == 'if x:\n    a\n    b\nc\n'


def test_a_variable_is_never_taken_twice_nor_one_of_the_code_s_own():
    emitter = Emitter(HeartbeatRequest, 0)
    with emitter.variable('topic') as outer, emitter.variable('topic') as inner:
        assert (outer, inner) == ('topic', 'topic_')
    for name in ('data', 'new', 'n'):
        with emitter.variable(name) as taken:
            assert taken == name + '_'
    with emitter.variable('topic') as again:
        assert again == 'topic'


def test_the_least_size_counts_what_a_version_carries():
    assert Emitter(HeartbeatRequest, 0).min_size(HeartbeatRequest) == 2 + 4 + 2
    assert Emitter(HeartbeatRequest, 3).min_size(HeartbeatRequest) == 2 + 4 + 2 + 2
    assert Emitter(HeartbeatRequest, 4).min_size(HeartbeatRequest) == 1 + 4 + 1 + 1 + 1
    assert Emitter(HeartbeatRequest, 0).min_size(Cursor, nullable=True) == 1


def test_fields_are_parted_into_placed_tagged_and_absent():
    emitter = Emitter(HeartbeatRequest, 0)
    emitter.version = 12
    plain, tagged, absent = emitter.split(PartitionData)
    assert plain[0].name == 'partition_index'
    assert [field.tag for field in tagged] == [0, 1, 2]
    assert absent == []
    emitter.version = 0
    assert 'last_stable_offset' in [field.name for field in emitter.split(PartitionData)[2]]


def test_names_in_snake_case():
    assert snake('PartitionData') == 'partition_data'
    assert snake('topics') == 'topics'
