"""Who gets which records of a share partition, and what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.testing.errors import INVALID_RECORD_STATE, INVALID_REQUEST, NONE
from kafka.testing.groups.share_partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    LogRange,
    SharePartition,
    ShareRules,
    Wish,
)
from kafka.testing.timers import Timers, VirtualClock


class Shared:
    """A share partition of a log with batches of one size, and the members that read it."""

    def __init__(self, batch=5, end=100, start=0, **rules):
        self.timers = Timers(VirtualClock())
        self.batch, self.end, self.offered = batch, end, 0
        self.rules = {
            'max_deliveries': 5,
            'max_locks': 2000,
            'lock_seconds': 30.0,
            'can_renew': True,
            'throttles': True,
        }
        self.rules.update(rules)
        self.partition = SharePartition(
            self.timers, lambda: ShareRules(**self.rules), self._offer, start
        )

    def _offer(self):
        self.offered += 1

    def fetch(self, member='a', records=500, batch_size=500, strict=False, batches=None):
        offset = self.partition.next_fetch_offset
        if batches is None:
            first = offset - offset % self.batch
            batches = [(n, n + self.batch - 1) for n in range(first, self.end, self.batch)]
        ranges = [LogRange(*each) for each in batches]
        wish = Wish(member, records, batch_size, strict)
        return [tuple(each) for each in self.partition.acquire(wish, offset, ranges)]

    def tell(self, first, last, *types, member='a'):
        told = [Acknowledgement(first, last, list(types))]
        return self.partition.acknowledge(member, told)[0]


# ------------------------------------------------------------ acquiring


def test_a_member_gets_whole_batches_up_to_the_number_that_it_wants():
    assert Shared().fetch(records=7) == [(0, 9, 1)]


def test_another_member_gets_what_follows():
    shared = Shared()
    shared.fetch('a', records=5)
    assert shared.fetch('b', records=5) == [(5, 9, 1)]


def test_rows_are_not_longer_than_wanted_but_for_whole_batches():
    assert Shared().fetch(records=20, batch_size=7) == [(0, 9, 1), (10, 19, 1)]


def test_a_strict_member_never_gets_more_than_it_wants():
    shared = Shared()
    assert shared.fetch(records=3, strict=True) == [(0, 2, 1)]
    assert shared.fetch('b', records=3, strict=True) == [(3, 4, 1), (5, 5, 1)]
    assert shared.fetch('b', records=3, strict=True) == [(6, 8, 1)]


def test_no_more_records_are_in_flight_than_allowed():
    shared = Shared(max_locks=10)
    assert shared.fetch() == [(0, 9, 1)]
    assert not shared.partition.can_acquire
    assert shared.fetch('b') == []


def test_what_came_back_is_given_out_even_when_no_more_may_be_in_flight():
    shared = Shared(max_locks=10)
    shared.fetch()
    assert shared.tell(5, 9, RELEASE) == NONE
    assert shared.partition.can_acquire
    assert shared.fetch('b') == [(5, 9, 2)]


def test_a_group_begins_within_a_batch():
    assert Shared(start=3).fetch(records=2) == [(3, 4, 1)]


def test_offsets_that_the_log_has_no_record_of_are_no_part_of_the_group():
    shared = Shared()
    assert shared.fetch(batches=[(7, 9)]) == [(7, 9, 1)]
    assert shared.partition.start_offset == 7


def test_nothing_is_acquired_of_an_empty_log():
    assert Shared().fetch(batches=[]) == []


# ------------------------------------------------------------ acknowledging


def test_the_start_moves_behind_what_was_accepted():
    shared = Shared()
    shared.fetch(records=10)
    assert shared.tell(0, 3, ACCEPT) == NONE
    assert shared.partition.start_offset == 4


def test_the_start_stays_where_a_record_waits():
    shared = Shared()
    shared.fetch(records=10)
    shared.tell(1, 9, ACCEPT)
    assert shared.partition.start_offset == 0
    assert shared.partition.completed == 9


def test_what_is_stored_is_the_start_before_it_moved():
    shared = Shared()
    shared.fetch(records=10)
    assert shared.partition.stored_offset == -1
    shared.tell(0, 3, ACCEPT)
    assert (shared.partition.stored_offset, shared.partition.stored_completed) == (0, 4)
    shared.tell(4, 4, RELEASE)
    assert (shared.partition.stored_offset, shared.partition.stored_completed) == (4, 0)


@pytest.mark.parametrize('kind', [GAP, REJECT])
def test_gaps_and_what_was_rejected_do_not_come_again(kind):
    shared = Shared(end=10)
    shared.fetch()
    assert shared.tell(0, 9, kind) == NONE
    assert shared.partition.next_fetch_offset == 10


def test_what_was_released_comes_again_and_is_counted():
    shared = Shared()
    shared.fetch(records=5)
    shared.tell(0, 4, RELEASE)
    assert shared.offered == 1
    assert shared.fetch('b', records=5) == [(0, 4, 2)]


def test_every_record_may_have_a_type_of_its_own():
    shared = Shared()
    shared.fetch(records=5)
    assert shared.tell(0, 4, ACCEPT, RELEASE, REJECT, GAP, ACCEPT) == NONE
    assert shared.partition.start_offset == 1
    assert shared.fetch('b', records=1) == [(1, 1, 2), (5, 9, 1)][:1]


def test_neighbours_come_together_when_they_were_delivered_equally_often():
    shared = Shared()
    shared.fetch(records=5)
    shared.tell(1, 2, RELEASE)
    shared.tell(4, 4, RELEASE)
    assert shared.fetch('b', records=3) == [(1, 2, 2), (4, 4, 2)]


def test_before_4_2_each_of_them_comes_alone():
    shared = Shared(throttles=False)
    shared.fetch(records=5)
    shared.tell(1, 2, RELEASE)
    assert shared.fetch('b', records=2) == [(1, 1, 2), (2, 2, 2)]


def test_what_was_delivered_often_enough_is_given_up():
    shared = Shared(max_deliveries=2, end=5)
    for _ in range(2):
        shared.fetch()
        shared.tell(0, 4, RELEASE)
    assert shared.fetch() == []
    assert shared.partition.start_offset == 5


def test_records_that_fail_again_and_again_come_in_smaller_pieces_and_alone_at_last():
    shared = Shared(batch=8, end=8)
    counts = []
    for _ in range(4):
        (acquired,) = shared.fetch()
        counts.append(acquired)
        shared.tell(acquired[0], acquired[1], RELEASE)
    # From three deliveries on: half of the eight, then one.
    assert counts == [(0, 7, 1), (0, 7, 2), (0, 7, 3), (0, 3, 4)]
    assert shared.fetch() == [(0, 0, 5)]


def test_acknowledging_what_nobody_acquired_is_an_error():
    shared = Shared()
    assert shared.tell(0, 0, ACCEPT) == INVALID_RECORD_STATE


@pytest.mark.parametrize(('first', 'last'), [(4, 5), (5, 5), (7, 8)])
def test_acknowledging_behind_what_was_acquired_is_an_error(first, last):
    shared = Shared()
    shared.fetch(records=5)
    assert shared.tell(first, last, ACCEPT) == INVALID_REQUEST


@pytest.mark.parametrize('last', [2, 4])
def test_acknowledging_what_another_member_has_is_an_error(last):
    shared = Shared()
    shared.fetch(records=5)
    assert shared.tell(0, last, ACCEPT, member='b') == INVALID_RECORD_STATE


def test_acknowledging_twice_is_an_error():
    shared = Shared()
    shared.fetch(records=5)
    shared.tell(2, 2, ACCEPT)
    assert shared.tell(2, 2, ACCEPT) == INVALID_RECORD_STATE


def test_acknowledging_before_the_start_is_no_error():
    shared = Shared()
    shared.fetch(records=5)
    shared.tell(0, 4, ACCEPT)
    assert shared.tell(0, 4, ACCEPT) == NONE


def test_all_acknowledgements_of_a_partition_are_taken_or_none():
    shared = Shared()
    shared.fetch(records=5)
    told = [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(3, 9, [ACCEPT])]
    assert shared.partition.acknowledge('a', told)[0] == INVALID_REQUEST
    assert shared.partition.start_offset == 0
    assert shared.tell(0, 4, ACCEPT) == NONE


# ------------------------------------------------------------ time and sessions


def test_an_acquisition_ends_by_itself():
    shared = Shared(end=5)
    shared.fetch('a')
    shared.timers.advance(29.9)
    assert shared.fetch('b') == []
    shared.timers.advance(0.2)
    assert shared.offered == 1
    assert shared.tell(0, 4, ACCEPT) == INVALID_RECORD_STATE
    assert shared.fetch('b') == [(0, 4, 2)]


def test_after_the_last_delivery_the_end_of_the_time_gives_up():
    shared = Shared(end=5, max_deliveries=1)
    shared.fetch()
    shared.timers.advance(31)
    assert shared.partition.start_offset == 5


def test_renewing_begins_the_time_anew():
    shared = Shared(end=5)
    shared.fetch()
    shared.timers.advance(20)
    assert shared.tell(0, 4, RENEW) == NONE
    shared.timers.advance(20)
    assert shared.tell(0, 4, ACCEPT) == NONE


def test_only_what_was_renewed_lasts_longer():
    shared = Shared(end=5)
    shared.fetch()
    shared.timers.advance(20)
    shared.tell(3, 4, RENEW)
    shared.timers.advance(20)
    assert shared.fetch('b') == [(0, 2, 2)]


def test_renewing_may_be_forbidden():
    shared = Shared(can_renew=False)
    shared.fetch()
    assert shared.tell(0, 4, RENEW) == INVALID_RECORD_STATE


@pytest.mark.parametrize(('counts', 'count'), [(True, 2), (False, 1)])
def test_what_a_member_had_comes_back_when_its_session_ends(counts, count):
    shared = Shared(end=5)
    shared.fetch('a')
    shared.partition.release('b', counts)
    assert shared.fetch('b') == []
    shared.partition.release('a', counts)
    assert shared.fetch('b') == [(0, 4, count)]


def test_a_new_leader_knows_of_no_acquisitions():
    shared = Shared(end=5)
    shared.partition.led_in(3)
    shared.fetch()
    shared.partition.led_in(3)
    assert shared.fetch('b') == []
    shared.partition.led_in(4)
    assert shared.fetch('b') == [(0, 4, 1)]


def test_records_that_the_log_has_deleted_are_dealt_with():
    shared = Shared()
    shared.fetch(records=10)
    shared.partition.move_start(7)
    assert shared.partition.start_offset == 7
    assert shared.tell(0, 6, ACCEPT) == NONE
    assert shared.tell(7, 9, ACCEPT) == NONE
    assert shared.partition.start_offset == 10


def test_records_that_were_compacted_away_do_not_hold_up_the_group():
    shared = Shared(end=15)
    shared.fetch(records=15)
    shared.tell(0, 14, RELEASE)
    assert shared.fetch('b', batches=[(10, 14)]) == [(10, 14, 2)]
    shared.tell(10, 14, ACCEPT, member='b')
    assert shared.partition.start_offset == 15


def test_what_belongs_to_an_aborted_transaction_is_given_up():
    shared = Shared()
    acquired = shared.partition.acquire(Wish('a', 15, 500), 0, [LogRange(0, 14)])
    rest = shared.partition.give_up(LogRange(5, 9), acquired)
    assert [tuple(each) for each in rest] == [(0, 4, 1), (10, 14, 1)]
    assert shared.tell(5, 5, ACCEPT) == INVALID_RECORD_STATE
    assert shared.tell(0, 4, ACCEPT) == NONE
    assert shared.partition.start_offset == 10


def test_nothing_waits_for_a_partition_that_is_closed():
    shared = Shared()
    shared.fetch()
    shared.partition.close()
    assert shared.timers.next_time() is None


# ------------------------------------------------------------ any history

STEPS = st.lists(
    st.tuples(
        st.sampled_from('fetch accept release reject time leave'.split()),
        st.sampled_from('abc'),
        st.integers(0, 39),
        st.integers(1, 12),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans())
def test_no_record_is_with_two_members_or_lost(steps, strict):
    shared = Shared(batch=4, end=40, max_deliveries=3, max_locks=16)
    held, done, delivered = {}, set(), {}
    kinds = {'accept': ACCEPT, 'release': RELEASE, 'reject': REJECT}
    for what, member, offset, count in steps:
        if what == 'fetch':
            for first, last, times in shared.fetch(member, records=count, strict=strict):
                for each in range(first, last + 1):
                    assert each not in held
                    assert each not in done
                    assert times == delivered.get(each, 0) + 1 <= 3
                    held[each], delivered[each] = member, times
        elif what == 'time':
            shared.timers.advance(31)
            done |= {each for each in held if delivered[each] == 3}
            held.clear()
        elif what == 'leave':
            shared.partition.release(member, True)
            gone = {each for each in held if held[each] == member}
            done |= {each for each in gone if delivered[each] == 3}
            held = {each: held[each] for each in held if each not in gone}
        else:
            error = shared.tell(offset, offset, kinds[what], member=member)
            if held.get(offset) == member:
                assert error == NONE
                del held[offset]
                if what != 'release' or delivered[offset] == 3:
                    done.add(offset)
            elif offset >= shared.partition.start_offset:
                assert error != NONE
        start = shared.partition.start_offset
        assert all(each in done for each in range(start))
        assert start not in done
        assert shared.partition.locks <= 16 + 3
    # In the end everything comes to somebody.
    shared.timers.advance(31)
    for _ in range(500):
        for first, last, _ in shared.fetch('z'):
            shared.tell(first, last, ACCEPT, member='z')
    assert shared.partition.start_offset == 40
