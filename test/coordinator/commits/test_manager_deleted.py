"""Offsets of topics that were deleted, and of partitions whose offset cannot be told yet."""

from __future__ import annotations

import pytest

from kafka import errors
from test.coordinator.commits.test_manager import P0, P1, Rig, at


@pytest.fixture
def rig():
    return Rig()


def test_an_id_that_is_refused_is_not_sent_again_where_metadata_keep_it(rig):
    rig.broker.ids['t'] = b'i' * 16
    rig.broker.script = [100]
    rig.commit({P0: at(5)})
    rig.commit({P0: at(6)})
    assert [version for _, version in rig.broker.asked] == [10, 9, 9]
    assert rig.broker.at == [0.0, 0.0, 0.0]


@pytest.mark.parametrize('retries', [True, False])
def test_a_commit_for_a_deleted_topic_fails_at_once(rig, retries):
    rig.broker.ids['t'] = b'i' * 16
    rig.broker.script = [100, 3]
    rig.broker.known = []
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='t-0'):
        rig.commit({P0: at(5)}, retries=retries)
    assert rig.loop.time() == 1000.0 or not retries


def test_a_deleted_topic_holds_up_no_commit_for_others(rig):
    rig.broker.ids['t'] = b'i' * 16
    rig.broker.script = [{P1: 100}, 3]
    rig.broker.known = [0]
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='t-1'):
        rig.commit({P0: at(5), P1: at(6)})
    assert rig.broker.offsets == [{0: 5, 1: 6}, {1: 6}]


def test_the_offset_of_a_deleted_topic_is_an_error_at_once(rig):
    rig.broker.ids['t'] = b'i' * 16
    rig.broker.script = [100, 3]  # 3: nothing is committed
    rig.broker.known = []
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='t-0'):
        rig.fetch([P0])
    assert rig.broker.at == [0.0, 0.0]


def test_a_topic_known_as_deleted_has_no_offsets(rig):
    rig.broker.deleted_topics = frozenset(['t'])
    rig.broker.script = [3]
    rig.broker.known = []
    with pytest.raises(errors.UnknownTopicOrPartitionError, match='t-0'):
        rig.fetch([P0])


def test_nothing_committed_is_no_error_where_the_topic_exists_again(rig):
    rig.broker.deleted_topics = frozenset(['t'])
    rig.broker.script = [3]
    assert rig.fetch([P0]) == {P0: None}


def test_an_offset_that_cannot_be_told_yet_does_not_hold_up_the_others(rig):
    rig.broker.script = [{P0: 88}]
    told = rig.end(rig.loop.spawn(rig.commits.fetch_each([P0, P1], 10.0)))
    assert list(told.found) == [P1]
    assert isinstance(told.failed[P0], errors.UnstableOffsetCommitError)
    assert rig.broker.at == [0.0]


def test_what_the_group_cannot_tell_as_a_whole_is_asked_again(rig):
    rig.broker.script = [14]
    told = rig.end(rig.loop.spawn(rig.commits.fetch_each([P0, P1], 10.0)))
    assert sorted(told.found) == [P0, P1]
