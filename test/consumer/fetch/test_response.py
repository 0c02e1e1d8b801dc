"""What the parts of an answer do: records, hints, errors, and what no longer counts."""

from __future__ import annotations

import pytest

from kafka.consumer.fetch.error_actions import too_large
from kafka.consumer.subscription_state import Phase
from kafka.errors import (
    CorruptRecordError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)
from kafka.protocol.fetch import DivergingEpoch, LeaderIdAndEpoch, NodeEndpoint, PartitionData
from test.consumer.fetching_by_hand import T0, T1, Rig, batch


def part(records=b'', index=0, code=0, **more):
    more.setdefault('high_watermark', 100)
    return PartitionData(partition_index=index, error_code=code, records=records, **more)


def hint(leader, epoch, code=6):
    told = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    return part(code=code, current_leader=told)


def test_what_is_known_of_the_log_goes_into_the_state():
    rig = Rig(fetch=(4, 12))
    rig.answer({T0: part(high_watermark=9, last_stable_offset=7, log_start_offset=3)})
    state = rig.state()
    assert (state.highwater, state.last_stable_offset, state.log_start_offset) == (9, 7, 3)
    rig.idle()
    assert state.highwater == 9, 'what was not told stays'


def test_what_was_fetched_is_asked_behind_the_last_batch():
    rig = Rig()
    rig.answer({T0: batch(0, b'a', epoch=3) + batch(7, b'b', b'c', epoch=4)})
    assert (rig.state().fetch_offset, rig.state().fetch_epoch) == (9, 4)
    assert rig.state().position == 0


def test_half_a_batch_behind_whole_ones_is_left_out():
    rig = Rig()
    rig.answer({T0: batch(0, b'a') + batch(1, b'b')[:-1]})
    assert rig.take() == [b'a'] and rig.open.asked == {T0: 1}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize('code', [3, 6, 9, 56, 74, 78, 100, 103])
def test_old_metadata_are_refreshed_and_the_partition_left_alone_for_a_while(code):
    rig = Rig(2)
    rig.answer({T0: code})
    assert rig.pool.refreshed == 1 and rig.pool.wanted == ['t']
    rig.loop.advance(0.02)
    assert rig.open.forgotten == [T0] and rig.open.asked == {}, 'the other goes on'
    rig.loop.advance(0.2)
    rig.answer()
    rig.loop.advance(0.02)
    assert rig.open.asked == {T0: 0} and not rig.fetcher.errors


@pytest.mark.parametrize('code', [75, -1])
def test_some_errors_pass_without_metadata(code):
    rig = Rig()
    rig.answer({T0: code})
    assert rig.pool.refreshed == 0 and rig.open is None
    rig.loop.advance(0.2)
    assert rig.offset_asked() == 0


@pytest.mark.parametrize('code', [3, 75, 2])
def test_an_error_that_stays_is_asked_about_with_growing_pauses(code):
    rig = Rig()
    for _ in range(2000):
        if rig.open is not None:
            rig.open.respond({T0: code})
        rig.loop.advance(0.01)
    assert 15 < len(rig.sent) < 35, 'within twenty seconds'


def test_what_only_the_program_can_cure_is_told_and_the_position_stays():
    rig = Rig(2)
    rig.answer({T0: 29, T1: 2})
    denied, corrupt = rig.fetcher.errors
    assert denied == TopicAuthorizationFailedError({'t'})
    assert isinstance(corrupt, CorruptRecordError)
    assert rig.state().position == 0 and rig.changes


def test_an_error_that_is_not_taken_is_told_once():
    rig = Rig()
    rig.answer({T0: 29})
    rig.loop.advance(0.5)
    rig.answer({T0: 29})
    assert len(rig.fetcher.errors) == 1
    rig.fetcher.errors.clear()
    rig.loop.advance(1.0)
    rig.answer({T0: 29})
    assert len(rig.fetcher.errors) == 1


# ---------------------------------------------------------------- out of range


def test_out_of_range_is_reset_by_the_policy():
    rig = Rig()
    rig.answer({T0: 1})
    assert rig.state().awaiting_reset and rig.changes and not rig.fetcher.errors


def test_out_of_range_without_policy_is_told_until_the_program_seeks():
    rig = Rig(2, policy='none')
    rig.answer({T0: 1, T1: 1})
    (error,) = rig.fetcher.errors
    assert isinstance(error, OffsetOutOfRangeError)
    assert error.args == ({T0: 0, T1: 0},)
    assert rig.state().position == 0
    rig.fetcher.errors.clear()
    rig.subscription.seek(T0, 5)
    rig.look()
    rig.loop.advance(0.3)
    assert T0 in rig.sent[-1].asked or T0 in rig.sent[-2].asked


def test_out_of_range_of_what_is_fetched_ahead_waits_until_all_before_it_is_handed_out():
    rig = Rig()
    rig.answer({T0: batch(0, b'a')})
    fetch = rig.fetcher.next_fetch()
    rig.loop.settle()
    rig.answer({T0: 1})
    assert not rig.state().awaiting_reset, 'the record in the hands of the program is not skipped'
    assert [record.value for record in fetch.take()] == [b'a']
    rig.state().consumed(1, 0)
    rig.fetcher.done(fetch)
    rig.loop.advance(0.3)
    rig.answer({T0: 1})
    assert rig.state().awaiting_reset


def test_a_follower_that_lags_is_no_reason_to_reset():
    rig = Rig(fetch=(4, 12))
    rig.answer({T0: part(preferred_read_replica=2)})
    rig.answer({T0: 1}, node=2)
    assert rig.state().phase is Phase.FETCHING and rig.state().preferred_replica is None
    rig.loop.advance(0.1)
    assert rig.offset_asked() == 0


# ---------------------------------------------------------------- followers


def test_a_nearer_replica_is_asked_at_once():
    rig = Rig()
    rig.answer({T0: part(preferred_read_replica=2)})
    assert rig.sent_to(2)[-1].asked == {T0: 0} and rig.open is None
    rig.answer({T0: batch(0, b'a')}, node=2)
    assert rig.take() == [b'a']
    assert rig.sent_to(2)[-1].asked == {T0: 1}


def test_a_nearer_replica_that_does_not_answer_is_given_up():
    rig = Rig()
    rig.answer({T0: part(preferred_read_replica=2)})
    rig.sent_to(2)[-1].fail()
    rig.loop.advance(0.1)
    assert rig.offset_asked() == 0


def test_a_nearer_replica_that_has_it_no_more_is_given_up():
    rig = Rig()
    rig.answer({T0: part(preferred_read_replica=2)})
    rig.answer({T0: 6}, node=2)
    rig.loop.advance(0.2)
    assert rig.offset_asked() == 0 and len(rig.sent_to(2)) == 1


def test_after_its_time_the_leader_is_asked_again():
    rig = Rig(metadata_max_age=60.0)
    rig.answer({T0: part(preferred_read_replica=2)})
    rig.loop.advance(60.0)
    assert rig.open is not None


# ---------------------------------------------------------------- leaders


def test_a_leader_who_is_named_is_asked_at_once():
    rig = Rig(fetch=(4, 16))
    rig.answer({T0: hint(2, 5)})
    assert rig.sent_to(2)[-1].asked == {T0: 0}
    assert rig.pool.refreshed == 1, 'all the same'
    assert rig.sent_to(2)[-1].request.topics[0].partitions[0].current_leader_epoch == 5


def test_a_leader_nobody_knew_is_reached_by_the_address_that_came_along():
    rig = Rig(fetch=(4, 18), ids={'t': b'i' * 16})
    at = NodeEndpoint(node_id=9, host='h9', port=9092)
    rig.answer({T0: hint(9, 5)}, ids={'t': b'i' * 16}, node_endpoints=[at])
    assert rig.sent_to(9)[-1].asked or rig.sent_to(9)[-1].request.topics


def test_an_older_leader_is_not_believed():
    rig = Rig(fetch=(4, 16))
    rig.epochs = {0: 5}
    rig.metadata()
    rig.look()
    rig.answer({T0: hint(2, 4, code=74)})
    assert not rig.sent_to(2) and rig.open is None


def test_a_log_that_was_cut_is_validated():
    rig = Rig()
    rig.answer({T0: batch(0, b'a', epoch=3)})
    rig.take()
    rig.answer({T0: part(diverging_epoch=DivergingEpoch(epoch=2, end_offset=0))})
    assert rig.state().phase is Phase.AWAIT_VALIDATION
    rig.loop.advance(5.0)
    assert rig.open is None or T0 not in rig.open.asked


def test_a_log_that_was_cut_where_nothing_can_be_validated_is_fetched_from_the_position():
    rig = Rig()
    state = rig.state()
    before = state.token
    rig.answer({T0: part(diverging_epoch=DivergingEpoch(epoch=2, end_offset=0))})
    assert state.token != before and state.fetch_offset == 0
    rig.loop.advance(0.3)
    assert rig.open is not None


# ---------------------------------------------------------------- too large


@pytest.mark.parametrize('fetch', [(0, 2), (4, 12)])
def test_a_message_that_was_cut_off_is_asked_for_with_twice_the_limit(fetch):
    rig = Rig(fetch=fetch, max_partition_bytes=100, max_bytes=300)
    rig.answer({T0: batch(0, b'x' * 250)[:100]})
    assert rig.open.limits == {T0: 200} and rig.open.asked == {T0: 0}
    rig.answer({T0: batch(0, b'x' * 250)[:200]})
    assert rig.open.limits == {T0: 300}
    rig.answer({T0: batch(0, b'x' * 250)[:300]})
    assert list(rig.fetcher.errors) == [too_large(T0, 0, 300)]
    assert isinstance(rig.fetcher.errors[0], RecordTooLargeError)
    assert rig.open is None, 'not at once again'
    rig.loop.advance(0.2)
    assert rig.offset_asked() == 0


def test_the_larger_limit_stays_and_is_for_that_partition_alone():
    rig = Rig(2, fetch=(0, 2), max_partition_bytes=100, max_bytes=1000)
    rig.answer({T0: batch(0, b'x' * 120, magic=1)[:100]})
    rig.answer({T0: batch(0, b'x' * 120, magic=1)})
    rig.take()
    assert rig.open.limits == {T0: 200, T1: 100}


def test_what_is_too_large_is_told_behind_what_comes_before_it():
    rig = Rig(fetch=(0, 2), max_partition_bytes=100, max_bytes=100)
    rig.answer({T0: batch(0, b'a', magic=1)})
    fetch = rig.fetcher.next_fetch()
    rig.loop.settle()
    rig.answer({T0: batch(1, b'x' * 250, magic=1)[:100]})
    assert not rig.fetcher.errors
    rig.state().consumed(1)
    rig.fetcher.done(fetch)
    rig.loop.advance(0.3)
    rig.answer({T0: batch(1, b'x' * 250, magic=1)[:100]})
    assert isinstance(rig.fetcher.errors[0], RecordTooLargeError)


# ---------------------------------------------------------------- what cannot be read


def test_what_cannot_be_read_is_parked_once_and_asked_for_again_after_a_seek():
    rig = Rig()
    data = bytearray(batch(0, b'a'))
    data[16] = 9  # a magic that there is not
    rig.answer({T0: bytes(data)})
    rig.loop.advance(30.0)
    assert len(rig.sent) == 1
    fetch = rig.fetcher.next_fetch()
    with pytest.raises(CorruptRecordError):
        fetch.take()
    rig.loop.advance(30.0)
    assert len(rig.sent) == 1
    rig.fetcher.done(fetch)
    rig.subscription.seek(T0, 1)
    rig.look()
    assert rig.open.asked == {T0: 1}
