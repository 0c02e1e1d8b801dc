"""Offsets as the embedded cluster keeps them: in groups, in transactions, and how much of them."""

from __future__ import annotations

import pytest

from ..drive import Driver

NOW_MS = 1_600_000_000_000  # when the virtual clock begins


@pytest.fixture
def offsets():
    driver = Driver('4.4')
    driver.state.create_topic('t', 2)
    return driver.state.offsets


def test_the_last_commit_counts(offsets):
    offsets.commit('g', 't', 0, 5, 1, 'a', NOW_MS)
    offsets.commit('g', 't', 0, 3, 2, 'b', NOW_MS)
    stored = offsets.fetch('g', 't', 0)
    assert (stored.offset, stored.leader_epoch, stored.metadata) == (3, 2, 'b')


def test_groups_and_partitions_are_separate(offsets):
    offsets.commit('g', 't', 0, 5, -1, '', NOW_MS)
    assert offsets.fetch('g', 't', 1) is None
    assert offsets.fetch('h', 't', 0) is None
    assert {key: each.offset for key, each in offsets.fetch_all('g').items()} == {('t', 0): 5}


def test_a_pending_offset_shows_when_its_transaction_commits(offsets):
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    assert offsets.has_pending('g', 't', 0)
    assert offsets.fetch('g', 't', 0) is None
    assert offsets.end_pending(7, True) == ['g']
    assert offsets.fetch('g', 't', 0).offset == 5
    assert not offsets.has_pending('g', 't', 0)


def test_a_pending_offset_goes_when_its_transaction_aborts(offsets):
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    offsets.end_pending(7, False)
    assert offsets.fetch('g', 't', 0) is None
    assert not offsets.has_pending('g', 't', 0)


def test_transactions_of_other_producers_stay_open(offsets):
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    offsets.add_pending(8, 'g', 't', 0, 6, -1, '', NOW_MS)
    offsets.end_pending(7, True)
    assert offsets.has_pending('g', 't', 0)


def test_a_plain_commit_meanwhile_survives_the_transaction(offsets):
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    offsets.commit('g', 't', 0, 9, -1, '', NOW_MS)
    offsets.end_pending(7, True)
    assert offsets.fetch('g', 't', 0).offset == 9


def test_a_plain_commit_before_does_not(offsets):
    offsets.commit('g', 't', 0, 9, -1, '', NOW_MS)
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    offsets.end_pending(7, True)
    assert offsets.fetch('g', 't', 0).offset == 5


def test_a_deleted_offset_is_gone_from_transactions_too(offsets):
    offsets.commit('g', 't', 0, 9, -1, '', NOW_MS)
    offsets.add_pending(7, 'g', 't', 0, 5, -1, '', NOW_MS)
    assert offsets.delete('g', 't', 0)
    assert not offsets.delete('g', 't', 0)
    offsets.end_pending(7, True)
    assert offsets.fetch('g', 't', 0) is None


def test_a_deleted_group_leaves_nothing(offsets):
    offsets.commit('g', 't', 0, 9, -1, 'text', NOW_MS)
    offsets.add_pending(7, 'g', 't', 1, 5, -1, 'text', NOW_MS)
    offsets.delete_group('g')
    assert offsets.groups == []
    assert offsets._used == 0


def test_what_is_stored_is_counted_once(offsets):
    for offset in range(10):
        offsets.commit('g', 't', 0, offset, -1, 'x' * 100, NOW_MS)
        offsets.add_pending(1, 'g', 't', 0, offset, -1, 'x' * 100, NOW_MS)
    used = offsets._used
    assert used == 2 * offsets.fetch('g', 't', 0).size
    offsets.end_pending(1, True)
    assert offsets._used == used // 2


@pytest.mark.parametrize(('version', 'days'), [('0.9', 1), ('1.1', 1), ('2.0', 7), ('4.4', 7)])
def test_offsets_age_as_the_release_has_it(version, days):
    driver = Driver(version)
    driver.state.create_topic('t', 1)
    offsets = driver.state.offsets
    offsets.commit('g', 't', 0, 5, -1, '', NOW_MS)
    offsets.expire('g', NOW_MS + days * 86400000 - 1, None)
    assert offsets.groups == ['g']
    offsets.expire('g', NOW_MS + days * 86400000, None)
    assert offsets.groups == []


def test_the_age_can_be_set():
    driver = Driver('4.4', offsets_retention_minutes=1)
    driver.state.create_topic('t', 1)
    driver.state.offsets.commit('g', 't', 0, 5, -1, '', NOW_MS)
    driver.state.offsets.expire('g', NOW_MS + 60000, None)
    assert driver.state.offsets.groups == []
