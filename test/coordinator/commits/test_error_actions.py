"""What each error code means for a commit, and for the look-up of committed offsets."""

from __future__ import annotations

import pickle

import pytest

from kafka import errors
from kafka.coordinator.commits.error_actions import (
    COMMIT,
    FETCH,
    OffsetErrorAction,
    commit_trouble,
    fetch_trouble,
    named,
)
from kafka.errors import CommitFailedError, CommitInRebalanceError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata, TopicPartition

P0, P1, P2 = (TopicPartition('t', number) for number in range(3))
OFFSETS = {P0: OffsetAndMetadata(5, 'x', -1), P1: OffsetAndMetadata(6, '', -1)}

COMMIT_TABLE = {
    OffsetErrorAction.RETRY: {14},
    OffsetErrorAction.LOOK: {3},
    OffsetErrorAction.REFRESH: {100},
    OffsetErrorAction.REFIND: {7, 15, 16},
    OffsetErrorAction.MOVED: {22, 25, 27, 69, 110},
    OffsetErrorAction.WAIT_EPOCH: {113},
    OffsetErrorAction.FENCED: {82},
    OffsetErrorAction.SURFACE: {12, 28, 29, 30, 35},
    OffsetErrorAction.DONE: {0},
}
FETCH_TABLE = {
    OffsetErrorAction.ABSENT: {3},
    OffsetErrorAction.RETRY: {14, 88},
    OffsetErrorAction.REFRESH: {100},
    OffsetErrorAction.REFIND: {7, 15, 16},
    OffsetErrorAction.MOVED: {22, 25},
    OffsetErrorAction.WAIT_EPOCH: {113},
    OffsetErrorAction.SURFACE: {29, 30, 35},
    OffsetErrorAction.DONE: {0},
}


def commit(codes, generation=3, offsets=OFFSETS):
    return commit_trouble('g', offsets, codes, generation)


@pytest.mark.parametrize('table, expected', [(COMMIT, COMMIT_TABLE), (FETCH, FETCH_TABLE)])
def test_the_table(table, expected):
    found = {}
    for code, action in table.items():
        found.setdefault(action, set()).add(code)
    assert found == expected


def test_nothing_follows_when_all_was_stored():
    assert commit({P0: 0, P1: 0}) is None


@pytest.mark.parametrize('code', [14, 15, 16, 7, 3, 100, 113, 56, 13, -2])
def test_what_may_be_tried_again(code):
    trouble = commit({P0: code, P1: 0})
    assert trouble.may_repeat is (code != -2)
    assert trouble.partitions == {P0}


@pytest.mark.parametrize('code', [22, 25, 69, 110, 113])
def test_a_group_that_moved_on_is_a_failed_commit_with_its_code(code):
    error = commit({P0: code, P1: code}).error
    assert type(error) is CommitFailedError
    assert error.errno_of_group == code
    assert not error.retriable
    assert 'group g refuses the offsets of t-0, t-1' in str(error)
    assert 'max_poll_interval_ms' in str(error)
    assert pickle.loads(pickle.dumps(error)).errno_of_group == code


def test_a_rebalance_is_told_by_both_names_that_eras_have_for_it():
    error = commit({P0: 27, P1: 27}).error
    assert type(error) is CommitInRebalanceError
    assert isinstance(error, CommitFailedError)
    assert isinstance(error, RebalanceInProgressError)
    assert error.errno_of_group == error.errno == 27
    assert 'Commit again after the next poll()' in str(error)
    assert errors.kafka_errors[27] is RebalanceInProgressError


def test_a_fenced_instance_is_over():
    trouble = commit({P0: 82, P1: 82})
    assert trouble.action is OffsetErrorAction.FENCED
    assert isinstance(trouble.error, errors.FencedInstanceIdError)
    assert trouble.error.fatal


def test_a_text_that_is_too_long_is_told_with_its_size_and_its_partition():
    offsets = {P0: OffsetAndMetadata(5, 'é' * 3000, -1), P1: OffsetAndMetadata(5, 'y', -1)}
    error = commit({P0: 12, P1: 0}, offsets=offsets).error
    assert isinstance(error, errors.OffsetMetadataTooLargeError)
    assert 'offsets of t-0: the metadata text has 6000 bytes' in str(error)
    assert '4096' in str(error)
    assert 'é' not in str(error)


def test_a_commit_of_nobody_to_a_group_with_members_is_told_so():
    error = commit({P0: 25, P1: 25}, generation=-1).error
    assert isinstance(error, CommitFailedError)
    assert 'it has members, so it takes no commits of others' in str(error)


def test_a_member_of_a_new_group_on_an_old_version_is_told_so():
    error = commit({P0: 35, P1: 35}).error
    assert isinstance(error, errors.UnsupportedVersionError)
    assert 'newer version of OffsetCommit' in str(error)


def test_the_worst_of_several_codes_decides():
    """What is over is over; what can only be raised is raised before others are tried again."""
    for codes, decides in [
        ((14, 29), 29),
        ((3, 22), 22),
        ((82, 22), 82),
        ((14, 16), 16),
        ((0, 14), 14),
    ]:
        assert commit(dict(zip((P0, P1), codes))).code == decides


def test_a_code_that_nobody_knows_is_raised():
    trouble = commit({P0: 9999, P1: 0})
    assert trouble.action is OffsetErrorAction.SURFACE
    assert trouble.error.errno == 9999


def test_a_partition_that_the_answer_leaves_out_is_told():
    trouble = commit({P0: 0})
    assert not trouble.may_repeat
    assert 'left t-1 out of its answer to OffsetCommit' in str(trouble.error)


# ---------------------------------------------------------------- look-up


def test_offsets_that_are_told():
    assert fetch_trouble('g', [P0, P1], 0, {P0: 0, P1: 3}) is None


def test_an_offset_that_a_transaction_may_change_is_waited_for():
    trouble = fetch_trouble('g', [P0, P1], 0, {P0: 88, P1: 0})
    assert trouble.action is OffsetErrorAction.RETRY
    assert trouble.partitions == {P0}
    assert 'group g does not tell the offsets of t-0' in str(trouble.error)


def test_an_error_of_the_whole_is_about_all():
    trouble = fetch_trouble('g', [P0, P1], 30, {})
    assert isinstance(trouble.error, errors.GroupAuthorizationFailedError)
    assert trouble.partitions == {P0, P1}
    assert not trouble.may_repeat


def test_a_partition_that_the_look_up_leaves_out_is_told():
    trouble = fetch_trouble('g', [P0, P1], 0, {P0: 0})
    assert 'left t-1 out of its answer to OffsetFetch' in str(trouble.error)


def test_many_partitions_are_named_by_the_first():
    assert named([P2, P1, P0]) == 't-0, t-1, t-2'
    assert named([TopicPartition('t', number) for number in range(9)]) == (
        't-0, t-1, t-2 and 6 more'
    )
