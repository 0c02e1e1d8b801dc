"""How many tasks a topology has, and what it lacks."""

from __future__ import annotations

import pytest

from kafka.protocol.streams import (
    CopartitionGroup,
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTopology,
    TopicInfo,
)
from kafka.testing.groups.streams_topology import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    InvalidTopology,
    configure,
    size_of,
    sources_of,
    stateful_parts,
)


def info(name, partitions=0):
    return TopicInfo(name=name, partitions=partitions, replication_factor=0, topic_configs=[])


def part(name='0', sources=('in',), sinks=(), state=(), repartitions=(), copartitions=()):
    return StreamsGroupHeartbeatSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=[],
        state_changelog_topics=[info(each) for each in state],
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartitions),
        copartition_groups=[
            CopartitionGroup(
                source_topics=list(sources),
                source_topic_regex=[],
                repartition_source_topics=list(repartitions),
            )
            for sources, repartitions in copartitions
        ],
    )


def topology(*parts):
    return StreamsGroupHeartbeatTopology(epoch=0, subtopologies=list(parts))


def test_a_part_has_as_many_tasks_as_its_largest_topic_partitions():
    found = configure(topology(part(sources=['a', 'b'])), {'a': 2, 'b': 5})
    assert (found.tasks, found.is_ready) == ({'0': 5}, True)


def test_a_source_topic_must_be_there():
    found = configure(topology(part(sources=['a', 'b'])), {'a': 2})
    assert found.problem.status == MISSING_SOURCE_TOPICS
    assert 'b' in found.problem.text


def test_changelogs_are_missing_until_they_are_there():
    wanted = topology(part(state=['store']))
    found = configure(wanted, {'in': 3})
    assert found.problem.status == MISSING_INTERNAL_TOPICS
    assert [(each.name, each.partitions) for each in found.missing] == [('store', 3)]
    assert configure(wanted, {'in': 3, 'store': 3}).is_ready


def test_a_changelog_with_another_number_of_partitions_is_wrong():
    found = configure(topology(part(state=['store'])), {'in': 3, 'store': 2})
    assert found.problem.status == INCORRECTLY_PARTITIONED_TOPICS


def test_a_repartition_topic_has_as_many_partitions_as_its_writers_read():
    wanted = topology(
        part('0', sinks=['mid']), part('1', sources=[], repartitions=[info('mid')], state=['s'])
    )
    found = configure(wanted, {'in': 4})
    assert [(each.name, each.partitions) for each in found.missing] == [('mid', 4), ('s', 4)]
    assert configure(wanted, {'in': 4, 'mid': 4, 's': 4}).tasks == {'0': 4, '1': 4}


def test_a_repartition_topic_may_have_a_number_of_its_own():
    wanted = topology(
        part('0', sinks=['mid']), part('1', sources=[], repartitions=[info('mid', 7)])
    )
    assert configure(wanted, {'in': 4, 'mid': 7}).tasks == {'0': 4, '1': 7}


def test_repartition_topics_that_wait_for_each_other_are_an_error():
    wanted = topology(
        part('0', sources=[], sinks=['a'], repartitions=[info('b')]),
        part('1', sources=[], sinks=['b'], repartitions=[info('a')]),
    )
    with pytest.raises(InvalidTopology, match='cannot be counted'):
        configure(wanted, {})


def test_topics_that_are_read_side_by_side_have_the_same_number_of_partitions():
    wanted = topology(part(sources=['a', 'b'], copartitions=[((0, 1), ())]))
    assert configure(wanted, {'a': 2, 'b': 2}).is_ready
    found = configure(wanted, {'a': 2, 'b': 3})
    assert found.problem.status == INCORRECTLY_PARTITIONED_TOPICS


def test_a_repartition_topic_follows_the_topic_at_its_side():
    wanted = topology(
        part('0', sinks=['mid']),
        part('1', sources=['other'], repartitions=[info('mid')], copartitions=[((0,), (0,))]),
    )
    found = configure(wanted, {'in': 4, 'other': 6})
    assert [(each.name, each.partitions) for each in found.missing] == [('mid', 6)]


def test_a_copartition_group_names_topics_that_there_are():
    with pytest.raises(InvalidTopology, match='names a topic that its subtopology lacks'):
        configure(topology(part(copartitions=[((3,), ())])), {'in': 1})


def test_parts_with_changelogs_keep_state():
    assert stateful_parts(topology(part('0'), part('1', state=['s']))) == {'1'}


def test_what_a_part_reads_is_counted_and_measured():
    made = part(repartitions=[info('mid')])
    assert sources_of(made) == ['in', 'mid']
    assert size_of(topology(made)) > size_of(topology()) + len('mid')
