"""What leaders remember of producers with an id."""

from __future__ import annotations

from typing import Tuple, Union

import pytest

from kafka.testing.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_PRODUCER_ID,
)
from kafka.testing.logs import producer_states
from kafka.testing.logs.partition_log import Batch
from kafka.testing.logs.producer_states import (
    Appended,
    States,
    check,
    check_marker,
    forget_expired,
    remember,
    remember_marker,
)

LAST = 2**31 - 1
DAY_MS = 24 * 3600 * 1000


def batch(sequence: int, count: int = 1, epoch: int = 0, transactional: bool = False) -> Batch:
    return Batch(0, count - 1, -1, 2, b'', 7, epoch, sequence, transactional)


class Leader:
    """Checks and remembers, as appending does."""

    def __init__(self, *release: int) -> None:
        self.release: Tuple[int, ...] = release or (4, 4)
        self.states: States = {}
        self.end = 0

    def write(self, written: Batch) -> Union[int, Appended]:
        found = check(self.states, written, self.release)
        if found == NONE:
            remember(self.states, written, self.end, 0)
            self.end += written.last_offset + 1
        return found


def test_one_step_for_each_record() -> None:
    leader = Leader()
    assert [leader.write(batch(0, 3)), leader.write(batch(3)), leader.write(batch(4, 2))] == [0] * 3


@pytest.mark.parametrize('sequence', [2, 9, 3])
def test_a_gap_or_a_repeat_of_other_size(sequence: int) -> None:
    leader = Leader()
    leader.write(batch(0, 2))
    leader.write(batch(2, 2))
    assert leader.write(batch(sequence, 3)) == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_repeat_among_the_last_five() -> None:
    leader = Leader()
    for sequence in range(6):
        leader.write(batch(sequence))
    found = leader.write(batch(1))
    assert isinstance(found, Appended) and found.base_offset == 1
    assert leader.write(batch(0)) == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_0_11_remembers_one_batch() -> None:
    leader = Leader(0, 11)
    leader.write(batch(0))
    leader.write(batch(1))
    assert isinstance(leader.write(batch(1)), Appended)
    assert leader.write(batch(0)) == OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ('release', 'error'),
    [
        ((0, 11), OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((2, 3), UNKNOWN_PRODUCER_ID),
        ((2, 4), UNKNOWN_PRODUCER_ID),
        ((2, 8), NONE),
        ((4, 3), NONE),
    ],
)
def test_a_producer_that_nobody_knows(release: Tuple[int, ...], error: int) -> None:
    assert Leader(*release).write(batch(5)) == error
    assert Leader(*release).write(batch(0)) == NONE


def test_a_sequence_goes_on_at_0_after_the_last() -> None:
    leader = Leader()
    leader.write(batch(LAST - 1, 3))
    assert leader.write(batch(0)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.write(batch(1)) == NONE


def test_a_new_epoch_begins_at_0() -> None:
    leader = Leader()
    leader.write(batch(0))
    assert leader.write(batch(1, epoch=5)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.write(batch(0, epoch=5)) == NONE
    assert leader.write(batch(1, epoch=4)) == INVALID_PRODUCER_EPOCH


def test_no_plain_batch_inside_a_transaction() -> None:
    leader = Leader()
    leader.write(batch(0, transactional=True))
    assert leader.write(batch(1)) == INVALID_TXN_STATE
    assert leader.write(batch(2)) == OUT_OF_ORDER_SEQUENCE_NUMBER  # is looked at first
    remember_marker(leader.states, 7, 0, 0, 0)
    assert leader.write(batch(1)) == NONE


def test_a_marker_of_a_new_epoch_fences_the_old_one() -> None:
    leader = Leader()
    leader.write(batch(0, transactional=True))
    remember_marker(leader.states, 7, 1, 0, 0)
    assert leader.write(batch(1, transactional=True)) == INVALID_PRODUCER_EPOCH
    assert leader.write(batch(1, epoch=1)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.write(batch(0, epoch=1)) == NONE


def test_markers_of_fenced_coordinators_and_producers() -> None:
    states: States = {}
    assert check_marker(states, 7, 1, 5) == NONE
    remember_marker(states, 7, 1, 5, 0)
    assert check_marker(states, 7, 0, 5) == INVALID_PRODUCER_EPOCH
    assert check_marker(states, 7, 1, 4) == TRANSACTION_COORDINATOR_FENCED
    assert check_marker(states, 7, 1, 5) == NONE


@pytest.mark.parametrize(('release', 'days'), [((4, 3), 1), ((3, 4), 1), ((2, 8), 7)])
def test_idle_producers_are_forgotten(release: Tuple[int, ...], days: int) -> None:
    leader = Leader(*release)
    leader.write(batch(0))
    forget_expired(leader.states, 7, release, days * DAY_MS, 0)
    assert 7 in leader.states
    forget_expired(leader.states, 7, release, days * DAY_MS + 1, 0)
    assert 7 not in leader.states


@pytest.mark.parametrize(('release', 'is_known'), [((2, 4), False), ((2, 5), True)])
def test_producers_went_with_their_last_record(release: Tuple[int, ...], is_known: bool) -> None:
    leader = Leader(*release)
    leader.write(batch(0, 3))
    forget_expired(leader.states, 7, release, 0, 2)
    assert 7 in leader.states
    forget_expired(leader.states, 7, release, 0, 3)
    assert (7 in leader.states) is is_known


def test_nobody_is_forgotten_in_a_transaction() -> None:
    leader = Leader()
    leader.write(batch(0, transactional=True))
    forget_expired(leader.states, 7, (4, 3), 9 * DAY_MS, 0)
    assert 7 in leader.states


def test_there_are_not_too_many_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_states, 'MOST_PRODUCERS', 4)
    leader = Leader()
    for producer_id in range(5):
        written = batch(0)._replace(producer_id=producer_id)
        remember(leader.states, written, 0, producer_id)
    producer_states.forget_many(leader.states)
    assert sorted(leader.states) == [2, 3, 4]
