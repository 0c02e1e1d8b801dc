"""The JSON of assignments and offsets: what is read, what is refused, and how it is written.

WRITTEN and the table of READ are what the classes of spark-sql-kafka-0-10 4.2.0 answer.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kafka.errors import InvalidOptionError, KafkaConfigurationError
from kafka.spark.offsets import (
    embedded_start,
    offset_tree,
    offsets_json,
    parse_assignment,
    parse_offsets,
)
from kafka.structs import TopicPartition

WRITTEN = [
    '{"t":{"0":1}}',
    '{"a.b-c_D":{"0":9223372036854775807,"1":-1,"2":-2}}',
    '{"alpha":{"0":0},"delta":{"0":0},"beta":{"0":0},"gamma":{"0":0}}',
    '{"t":{"0":0,"16":16,"33":33,"65536":65536,"70000":70000,"3":3,"100":100}}',
    '{"t":{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":10,"11":11}}',
    # Four names of one hash: in the order in which they were put.
    '{"AaAa":{"0":0},"AaBB":{"0":0},"BBAa":{"0":0},"BBBB":{"0":0}}',
    # Four in one bucket, two of them with hashes that are negative.
    '{"gfgdfaec":{"0":0},"ddhhgcdc":{"0":0},"hggghcfb":{"0":0},"fbdeebbh":{"0":0}}',
    # Eleven topics fit a table of sixteen, but putting the last of them twice makes it larger.
    '{%s}' % ','.join('"t%d":{"0":0}' % each for each in (4, 5, 6, 10, 7, 8, 9, 0, 1, 2, 3)),
    '{%s}' % ','.join('"t%d":{"0":0,"1":1}' % each for each in (4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3)),
]

READ: Dict[str, Optional[Dict[str, int]]] = {
    '{"t":{"0":23,"1":-2}}': {'t-0': 23, 't-1': -2},
    ' {"t" : {"0":\n1} } ': {'t-0': 1},
    '{}': {},
    '{"t":{}}': {},
    '{"t":{"0":1,"0":2}}': {'t-0': 2},
    '{"t":{"00":1,"0":2}}': {'t-0': 2},
    '{"t":{"0":1},"t":{"1":2}}': {'t-1': 2},
    '{"t":{"0":1.0}}': {'t-0': 1},
    '{"t":{"0":1e3}}': {'t-0': 1000},
    '{"t":{"+1":1}}': {'t-1': 1},
    '{"t":{"00":1}}': {'t-0': 1},
    '{"t":{"0":9223372036854775807}}': {'t-0': 2**63 - 1},
    '': None,
    '[]': None,
    'earliest': None,
    "{'t':{'0':1}}": None,
    '{"t":{"0":1,}}': None,
    '{"t":{"0":01}}': None,
    '{"t":{"0":NaN}}': None,
    '{"t":{"0":Infinity}}': None,
    '{"t":{"0":"1"}}': None,
    '{"t":{"0":true}}': None,
    '{"t":{"x":1}}': None,
    '{"t":{" 1":1}}': None,
    '{"t":{"99999999999":1}}': None,
    '{"t":[0,1]}': None,
    '{"t":{"0":1},"u":5}': None,
    '{"t":{"0":{"1":2}}}': None,
    # These the JVM connector takes for something that nobody can have meant.
    'null': None,
    '{"t":null}': None,
    '{"t":{"0":null}}': None,
    '{"t":{"0":1.5}}': None,
    '{"t":{"-1":1}}': None,
    '{"t":{"0":99999999999999999999}}': None,
    '{"t":{"0":1}} x': None,
}

ASSIGNED: Dict[str, Any] = {
    '{"t":[1,0],"a":[7]}': ['a-7', 't-0', 't-1'],
    '{"t":[0,0]}': ['t-0'],
    '{"t":[0.0]}': ['t-0'],
    '{"t":[0],"t":[1]}': ['t-1'],
    '{"t":[]}': [],
    '{}': [],
    '{"t":["0"]}': None,
    '{"t":[true]}': None,
    '{"t":0}': None,
    '{"t":{"0":1}}': None,
    '': None,
    # Taken by the JVM connector for partitions 1, -1, 0 and 1215752191.
    '{"t":[1.7]}': None,
    '{"t":[-1]}': None,
    '{"t":[null]}': None,
    '{"t":[99999999999]}': None,
}

topics = some.text('abAB.-_0123', min_size=1, max_size=6)
partitions = some.builds(TopicPartition, topics, some.integers(0, 40) | some.integers(0, 2**31 - 1))
numbers = some.integers(-(2**63), 2**63 - 1)
offsets = some.dictionaries(partitions, numbers, max_size=40)


def named(found: Any) -> Any:
    if isinstance(found, dict):
        return {'%s-%d' % each: value for each, value in found.items()}
    return ['%s-%d' % each for each in found]


@pytest.mark.parametrize('text', WRITTEN)
def test_offsets_are_written_byte_by_byte_as_the_jvm_connector_writes_them(text: str) -> None:
    assert offsets_json(parse_offsets(text)) == text


@pytest.mark.parametrize('text', READ)
def test_offsets_are_read_as_the_jvm_connector_reads_them(text: str) -> None:
    if READ[text] is not None:
        assert named(parse_offsets(text)) == READ[text]
        return
    with pytest.raises(InvalidOptionError, match=r'startingOffsets must be JSON such as \{"topicA'):
        parse_offsets(text, 'startingOffsets')


@pytest.mark.parametrize('text', ASSIGNED)
def test_an_assignment_is_read_as_the_jvm_connector_reads_it(text: str) -> None:
    if ASSIGNED[text] is not None:
        assert named(parse_assignment(text)) == ASSIGNED[text]
        return
    with pytest.raises(InvalidOptionError, match='assign must be JSON such as'):
        parse_assignment(text)


def test_whole_numbers_are_ints_however_they_were_written() -> None:
    assert [type(each) for each in parse_offsets('{"t":{"0":1.0}}').values()] == [int]
    assert type(parse_assignment('{"t":[2.0]}')[0].partition) is int


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidOptionError):
        parse_offsets('{"t":' * 100000)


def test_an_error_shows_the_beginning_of_a_long_text_and_is_of_both_kinds() -> None:
    with pytest.raises(KafkaConfigurationError) as caught:
        parse_offsets('x' * 10000, 'endingOffsets')
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 250


@given(offsets)
def test_offsets_are_the_same_when_they_were_written_and_read(
    expected: Dict[TopicPartition, int],
) -> None:
    text = offsets_json(expected)
    assert parse_offsets(text) == expected
    assert ' ' not in text
    assert embedded_start(text) is None


@given(offsets, offsets)
def test_what_was_hidden_is_found_and_nobody_else_sees_it(
    now: Dict[TopicPartition, int], before: Dict[TopicPartition, int]
) -> None:
    text = offsets_json(now, before)
    hidden = {each: offset for each, offset in before.items() if each in now}
    assert embedded_start(text) == (hidden or None)
    assert parse_offsets(text) == now
    assert embedded_start(json.dumps(json.loads(text))) == (hidden or None)


@given(offsets, offsets)
def test_the_tree_of_offsets_is_written_by_json_as_the_text_is(
    now: Dict[TopicPartition, int], before: Dict[TopicPartition, int]
) -> None:
    tree = offset_tree(now, before)
    assert json.dumps(tree, separators=(',', ':')) == offsets_json(now, before)


@given(
    some.recursive(
        some.none() | some.booleans() | some.floats() | some.text(),
        lambda each: some.lists(each) | some.dictionaries(some.text(), each),
    )
)
def test_any_other_json_is_refused_or_read_never_another_error(tree: Any) -> None:
    for parse in (parse_offsets, parse_assignment, embedded_start):
        try:
            parse(json.dumps(tree))
        except InvalidOptionError:
            pass


def test_each_partition_has_one_key_and_the_start_is_a_topic_without_partitions() -> None:
    """A tool that adds up the offsets of a progress report counts none twice."""
    now = {TopicPartition('t', 0): 9, TopicPartition('t', 1): 8, TopicPartition('u', 3): 0}
    before = {TopicPartition('t', 0): 4, TopicPartition('t', 1): 5, TopicPartition('u', 3): 0}
    text = offsets_json(now, {**before, TopicPartition('gone', 0): 1})
    began = '(the first batch began at t:0=4,1=5;u:3=0)'
    assert text == '{"t":{"0":9,"1":8},"u":{"3":0},"%s":{}}' % began
    assert embedded_start(text) == before


@pytest.mark.parametrize(
    'text, start',
    [
        ('{"t":{"0":9,"01":5,"1":8}}', {TopicPartition('t', 1): 5}),
        ('{"t":{"0":1,"0":2,"1":3}}', {TopicPartition('t', 0): 1}),
        ('{"t":{"00":0,"0":0}}', {TopicPartition('t', 0): 0}),
    ],
)
def test_the_start_is_read_as_the_first_releases_wrote_it(text: str, start: Any) -> None:
    assert embedded_start(text) == start
