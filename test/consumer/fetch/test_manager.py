"""The fetcher: who is asked when, what is fetched ahead, and what stops it."""

from __future__ import annotations

import pytest

from kafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafka.structs import TopicPartition
from test.consumer.fetching_by_hand import T0, T1, T2, Rig, batch


def test_everything_that_a_node_leads_is_asked_in_one_request():
    rig = Rig(3, leaders={2: 2})
    assert rig.open.asked == {T0: 0, T1: 0}
    assert rig.sent_to(2)[0].asked == {T2: 0}
    request = rig.open.request
    assert (request.max_wait_ms, request.min_bytes, request.isolation_level) == (500, 1, 0)
    assert request.topics[0].partitions[0].partition_max_bytes == 1048576


def test_options_go_into_the_request():
    rig = Rig(
        min_bytes=5, max_wait=0.2, read_committed=True, client_rack='r', max_partition_bytes=9
    )
    request = rig.open.request
    assert (request.min_bytes, request.max_wait_ms, request.isolation_level) == (5, 200, 1)
    assert request.rack_id == 'r' and rig.open.limits == {T0: 9}


def test_brokers_never_wait_as_long_as_the_request_may_take():
    assert Rig(max_wait=50.0, request_timeout=10.0).open.request.max_wait_ms == 5000


def test_what_is_fetched_is_handed_out_and_the_program_told():
    rig = Rig()
    assert not rig.fetcher.has_news()
    rig.answer({T0: batch(0, b'a', b'b')})
    assert rig.changes == 1 and rig.fetcher.has_news()
    assert rig.take() == [b'a', b'b']
    assert rig.take() is None and not rig.fetcher.has_news()


def test_a_parked_fetch_that_nobody_takes_stops_requests_to_its_node():
    rig = Rig(2, leaders={1: 2})
    rig.answer({T0: batch(0, b'a')})
    rig.loop.advance(60.0)
    assert rig.open is None
    assert rig.sent_to(2) and not rig.sent_to(2)[-1].is_answered, 'others go on'


def test_the_next_request_goes_when_the_last_fetch_is_taken_not_when_it_is_emptied():
    rig = Rig(2)
    rig.answer({T0: batch(0, b'a'), T1: batch(0, b'b')})
    first = rig.fetcher.next_fetch()
    rig.loop.settle()
    assert rig.open is None, 'one still waits'
    second = rig.fetcher.next_fetch()
    rig.loop.settle()
    assert rig.open.asked == {T0: 1, T1: 1}, 'behind what was fetched, not what was handed out'
    assert (first.partition, second.partition) == (T0, T1)


def test_a_second_fetch_of_a_partition_comes_behind_the_first():
    rig = Rig()
    rig.answer({T0: batch(0, b'a')})
    first = rig.fetcher.next_fetch()
    rig.loop.settle()
    rig.answer({T0: batch(1, b'b')})
    rig.fetcher.put_back(first)
    assert [rig.take(), rig.take()] == [[b'a'], [b'b']]


def test_a_fetch_that_is_taken_in_pieces_does_not_hold_up_the_next_request():
    rig = Rig()
    rig.answer({T0: batch(0, *[b'%d' % n for n in range(9)])})
    fetch = rig.fetcher.next_fetch()
    fetch.take(2)
    rig.fetcher.put_back(fetch)
    rig.loop.settle()
    assert rig.open.asked == {T0: 9}
    rig.answer({T0: batch(9, b'x')})
    rig.loop.advance(9.0)
    assert rig.open is None, 'but the one behind it does'


def test_one_request_is_in_flight_however_often_it_looks():
    rig = Rig()
    for _ in range(5):
        rig.look()
    assert len(rig.sent) == 1 and rig.fetcher.in_flight == 1


# ---------------------------------------------------------------- what still counts


def test_what_was_asked_before_a_seek_does_not_count():
    rig = Rig()
    rig.subscription.seek(T0, 50)
    rig.answer({T0: batch(0, b'a')})
    assert rig.take() is None
    assert rig.open.asked == {T0: 50}


def test_what_is_parked_is_dropped_by_a_seek_and_the_node_asked_again():
    rig = Rig()
    rig.answer({T0: batch(0, b'a')})
    rig.look()
    rig.subscription.seek(T0, 50)
    rig.look()
    assert not rig.fetcher.has_news()
    rig.loop.settle()
    assert rig.open.asked == {T0: 50}


def test_a_seek_back_to_the_same_offset_counts_as_one():
    rig = Rig()
    rig.subscription.seek(T0, 0)
    rig.answer({T0: batch(0, b'a')})
    assert rig.take() is None and rig.offset_asked() == 0


def test_a_late_answer_of_the_former_leader_does_not_count():
    rig = Rig()
    rig.leaders = {0: 2}
    rig.metadata()
    rig.loop.settle()
    rig.answer({T0: batch(0, b'a')}, node=2)
    rig.answer({T0: batch(0, b'a')}, node=1)
    assert [rig.take(), rig.take()] == [[b'a'], None]
    assert rig.sent_to(2)[-1].asked == {T0: 1}


def test_what_it_changes_itself_needs_no_second_look():
    rig = Rig(3)
    assert rig.state().current_leader == (1, 0)
    rig.epochs = dict.fromkeys(range(3), 1)
    rig.metadata()
    rig.loop.settle()
    assert rig.state().current_leader == (1, 1) and not rig.subscription.take_changed()


def test_what_is_no_longer_assigned_is_forgotten():
    rig = Rig(2)
    rig.answer({T0: batch(0, b'a')})
    rig.assign([1])
    assert rig.take() is None
    assert rig.open.forgotten == [T0] and rig.open.asked == {}


def test_a_paused_partition_is_not_asked_for_and_keeps_what_it_has():
    rig = Rig(2)
    rig.answer({T0: batch(0, b'a'), T1: batch(0, b'b')})
    rig.subscription.pause(T0)
    assert rig.take() == [b'b']
    assert not rig.fetcher.has_news()
    assert rig.open.forgotten == [T0] and rig.open.asked == {T1: 1}
    rig.subscription.resume(T0)
    assert rig.fetcher.has_news() and rig.take() == [b'a']


def test_a_partition_held_by_a_rebalance_is_like_a_paused_one():
    rig = Rig()
    rig.answer({T0: batch(0, b'a')})
    rig.subscription.hold([T0])
    assert rig.take() is None and rig.open is None
    rig.subscription.release([T0])
    assert rig.take() == [b'a']


def test_what_is_put_back_of_a_paused_partition_lets_others_come():
    rig = Rig(2)
    rig.answer({T0: batch(0, b'a'), T1: batch(0, b'b')})
    fetch = rig.fetcher.next_fetch()
    rig.subscription.pause(T0)
    rig.fetcher.put_back(fetch)
    assert rig.take() == [b'b']
    rig.subscription.resume(T0)
    assert rig.take() == [b'a']


def test_what_is_resumed_is_asked_for_at_once():
    rig = Rig(2)
    rig.subscription.pause(T1)
    rig.idle()
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    assert not rig.open.asked.get(T1)
    rig.subscription.resume(T1)
    rig.idle()
    assert T1 in rig.open.asked


# ---------------------------------------------------------------- sessions


def test_later_requests_name_what_has_changed():
    rig = Rig(3)
    assert rig.open.session == (0, 0)
    rig.answer({T1: batch(0, b'a')})
    rig.take()
    assert rig.open.session == (7, 1) and rig.open.asked == {T1: 1}


def test_a_lost_session_is_begun_anew_at_once():
    rig = Rig(2)
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    rig.answer(error_code=70, session_id=0)
    assert rig.open.session == (0, 0) and rig.open.asked == {T0: 1, T1: 0}


def test_a_broker_that_refuses_every_session_is_not_asked_in_a_circle():
    rig = Rig()
    for _ in range(2):
        rig.answer(error_code=71, session_id=0)
    assert rig.open is None
    rig.loop.advance(0.2)
    assert rig.open is not None


def test_an_error_of_the_whole_answer_is_followed_by_a_pause_and_a_refresh():
    rig = Rig()
    rig.answer(error_code=56)
    assert rig.open is None and rig.pool.refreshed == 1
    rig.loop.advance(0.2)
    assert rig.open.session[1] == 0


def test_without_sessions_everything_is_named():
    rig = Rig(2, use_sessions=False)
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    assert rig.open.session == (0, -1) and rig.open.asked == {T1: 0, T0: 1}, 'in turn'


def test_a_broker_before_1_1_has_no_sessions():
    rig = Rig(2, fetch=(0, 6))
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    assert rig.open.version == 6 and list(rig.open.asked) == [T1, T0]


def test_a_broker_that_throttles_and_says_nothing_is_left_alone():
    rig = Rig()
    rig.answer(session_id=0, is_bare=True, throttle_time_ms=2000)
    assert rig.open is None
    rig.loop.advance(1.9)
    assert rig.open is None
    rig.loop.advance(0.2)
    assert rig.open.asked == {T0: 0}


def test_ids_are_used_once_all_topics_have_one():
    topic_id = b'i' * 16
    rig = Rig(fetch=(4, 18), ids={'t': topic_id})
    assert rig.open.version == 18 and rig.open.request.topics[0].topic_id == topic_id
    rig.answer({T0: batch(0, b'a')}, ids={'t': topic_id})
    assert rig.take() == [b'a']
    assert Rig(fetch=(4, 18)).open.version == 12


def test_a_topic_made_anew_begins_anew():
    rig = Rig(fetch=(4, 18), ids={'t': b'i' * 16})
    rig.answer({T0: batch(0, b'a')}, ids={'t': b'i' * 16})
    rig.ids = {'t': b'j' * 16}
    before = rig.changes
    rig.metadata()
    rig.loop.settle()
    assert rig.state().awaiting_reset and rig.take() is None
    assert rig.changes > before, 'somebody has to find its position'


def test_closing_ends_the_session():
    rig = Rig()
    rig.idle()
    rig.fetcher.close()
    assert rig.sent[-1].session == (7, -1) and rig.sent[-1].asked == {}
    rig.fetcher.close()
    rig.sent[-2].respond()
    rig.loop.advance(10.0)
    assert len(rig.sent) == 3, 'and nothing follows'
    assert not rig.fetcher.errors


def test_closing_without_a_session_sends_nothing():
    rig = Rig(use_sessions=False)
    rig.fetcher.close()
    assert len(rig.sent) == 1


# ---------------------------------------------------------------- troubles with nodes


def test_a_node_that_cannot_be_reached_is_tried_again_after_a_pause():
    rig = Rig(0)
    rig.pool.fetch_link(1).refusal = KafkaConnectionError('no')
    rig.count = 1
    rig.metadata()
    rig.assign([0])
    rig.look()
    assert rig.pool.links[1].tries == 1 and rig.pool.refreshed == 1
    rig.loop.advance(20.0)
    assert 15 <= rig.pool.links[1].tries <= 40
    rig.pool.links[1].refusal = None
    rig.loop.advance(2.0)
    assert rig.open.asked == {T0: 0}


def test_what_no_retry_cures_reaches_the_program():
    rig = Rig(0)
    error = SaslAuthenticationFailedError('wrong')
    rig.pool.fetch_link(1).refusal = error
    rig.count = 1
    rig.metadata()
    rig.assign([0])
    rig.look()
    assert list(rig.fetcher.errors) == [error] and rig.fetcher.has_news() and rig.changes
    rig.loop.advance(10.0)
    assert len(rig.fetcher.errors) == 1, 'once until it is taken'


def test_a_request_without_answer_is_repeated_in_full_after_a_pause():
    rig = Rig()
    rig.idle()
    rig.sent[-1].fail()
    rig.loop.settle()
    assert rig.open is None and rig.pool.refreshed == 1
    rig.loop.advance(0.2)
    assert rig.open.session == (7, 0) and rig.open.asked == {T0: 0}


def test_pauses_grow_and_end_with_success():
    rig = Rig()
    begun = rig.loop.now
    for _ in range(6):
        rig.sent[-1].fail()
        rig.loop.settle()
        while rig.open is None:
            rig.loop.advance(0.01)
    assert 2.0 < rig.loop.now - begun < 4.5
    rig.idle()
    rig.sent[-1].fail()
    rig.loop.advance(0.13)
    assert rig.open is not None


def test_a_broker_without_a_version_of_ours_is_an_error():
    rig = Rig(fetch=(99, 100))
    assert isinstance(rig.fetcher.errors[0], UnsupportedVersionError)
    rig.loop.advance(5.0)
    assert not rig.sent


def test_a_leader_that_is_not_listed_makes_it_refresh_with_pauses():
    rig = Rig(leaders={0: 9})
    assert rig.pool.refreshed == 1
    rig.loop.advance(10.0)
    assert 8 < rig.pool.refreshed < 20


def test_without_a_leader_metadata_is_asked_for():
    rig = Rig(leaders={0: -1})
    assert rig.pool.wanted == ['t'] and rig.pool.refreshed == 1 and not rig.sent
    rig.loop.advance(10.0)
    assert rig.pool.refreshed == 1, 'the pool sees to it'
    rig.leaders = {}
    rig.metadata()
    rig.loop.settle()
    assert rig.open.asked == {T0: 0}


def test_a_topic_that_may_not_be_seen_is_an_error():
    rig = Rig(0)
    rig.pool.cluster.unauthorized_topics = {'secret'}
    rig.subscription.assign_from_user([TopicPartition('secret', 0)])
    rig.subscription.seek(TopicPartition('secret', 0), 0)
    rig.look()
    assert list(rig.fetcher.errors) == [TopicAuthorizationFailedError({'secret'})]


def test_a_mistake_of_ours_does_not_end_fetching(monkeypatch, caplog):
    rig = Rig()
    monkeypatch.setattr(rig.fetcher._response_handler, 'take', None)
    rig.answer({T0: batch(0, b'a')})
    assert 'not understood' in str(rig.fetcher.errors[0])
    monkeypatch.undo()
    rig.loop.advance(0.2)
    rig.answer({T0: batch(0, b'a')})
    assert rig.take() == [b'a']


def test_a_mistake_while_it_looks_does_not_end_fetching(monkeypatch, caplog):
    rig = Rig()
    monkeypatch.setattr(rig.fetcher._selection, 'review', None)
    rig.answer({T0: batch(0, b'a')})
    monkeypatch.undo()
    assert rig.take() == [b'a']
    rig.loop.advance(0.2)
    assert rig.open.asked == {T0: 1}


# ---------------------------------------------------------------- no circle


def test_a_broker_that_has_nothing_and_says_so_at_once_is_left_alone_for_longer_and_longer():
    rig = Rig()
    for _ in range(300):
        if rig.open is not None:
            rig.answer()
        rig.loop.advance(0.01)
    assert len(rig.sent) < 15, 'within three seconds'
    while rig.open is None:
        rig.loop.advance(0.01)
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    assert rig.open is not None, 'until it has something'
    rig.answer()
    rig.loop.advance(0.011)
    assert rig.open is not None, 'and then the pauses begin anew'


def test_a_broker_that_waits_as_it_should_is_asked_again_at_once():
    rig = Rig()
    for _ in range(5):
        rig.loop.advance(0.5)
        rig.answer()
        assert rig.open is not None


def test_who_has_nothing_new_is_asked_again_in_the_turn_of_its_answer():
    """Each turn of an idle consumer costs more than what is done in it."""
    rig = Rig(3)
    rig.idle()
    rig.loop.advance(0.5)
    rig.sent[-1].respond()
    rig.loop.run_ready()
    assert rig.open is not None and rig.open.asked == {}


def test_a_look_without_reason_takes_no_lock():
    rig = Rig(3)
    rig.idle()
    with rig.lock:  # of a kind that can not be taken twice
        rig.fetcher._review(rig.loop.now)


def test_without_waiting_there_is_a_pause_all_the_same():
    rig = Rig(max_wait=0.0)
    for _ in range(100):
        if rig.open is not None:
            rig.answer()
        rig.loop.advance(0.01)
    assert 8 <= len(rig.sent) <= 20, 'within a second'


# ---------------------------------------------------------------- the budget


def big(offset, size=1000):
    return batch(offset, b'x' * size)


def test_requests_ask_for_what_the_budget_has_left():
    rig = Rig(2, leaders={1: 2}, max_buffered_bytes=8000, max_bytes=5000)
    asked = [rig.sent_to(node)[0].request.max_bytes for node in (1, 2)]
    assert asked == [2000, 2000], 'two answers of each node have room'
    rig = Rig(max_buffered_bytes=8000, max_bytes=3000)
    assert rig.open.request.max_bytes == 3000


def test_a_request_asks_for_no_more_than_is_left():
    rig = Rig(max_buffered_bytes=8000)
    rig.answer({T0: big(0, 5432)})
    rig.fetcher.next_fetch()
    rig.loop.settle()
    assert rig.open.request.max_bytes == 8000 - rig.fetcher._buffer.used < 4000


@pytest.mark.parametrize('nodes', [1, 2, 3])
def test_the_budget_holds_whatever_comes_and_goes(nodes):
    leaders = {n: 1 + n % nodes for n in range(30)}
    budget = 20000
    rig = Rig(30, leaders=leaders, max_buffered_bytes=budget)
    ends = {TopicPartition('t', n): 0 for n in range(30)}
    taken, most = 0, 0
    for turn in range(80):
        for node in range(1, nodes + 1):
            sent = rig.sent_to(node)[-1]
            if sent.is_answered:
                continue
            parts, room = {}, sent.request.max_bytes
            for at in [at for at in ends if leaders[at.partition] == node]:
                data = big(ends[at])
                if parts and room < len(data):
                    break
                parts[at] = data
                room -= len(data)
                ends[at] += 1
            sent.respond(parts)
            rig.loop.settle()
            parked = rig.fetcher._buffer
            most = max(most, parked.used)
            assert parked.used <= budget + nodes * 1100
            assert parked.free >= -nodes * 1100
        if turn % 3 == 0:
            while rig.take():
                taken += 1
    assert taken > 100 and most > budget / 4


def test_nothing_is_asked_while_the_budget_is_used_up():
    rig = Rig(2, leaders={1: 2}, max_buffered_bytes=4000)
    rig.answer({T0: big(0, 5000)})
    fetch = rig.fetcher.next_fetch()
    rig.loop.settle()
    rig.sent_to(2)[-1].respond()
    rig.loop.advance(5.0)
    assert rig.open is None and rig.sent_to(2)[-1].is_answered
    rig.fetcher.done(fetch)
    rig.loop.settle()
    assert rig.open is not None and not rig.sent_to(2)[-1].is_answered


def test_bytes_count_until_all_that_lies_in_them_is_done_with():
    rig = Rig(2)
    rig.answer({T0: big(0), T1: big(0)})
    parked = rig.fetcher._buffer
    used = parked.used
    first, second = rig.fetcher.next_fetch(), rig.fetcher.next_fetch()
    rig.fetcher.done(first)
    assert parked.used == used > 2000
    rig.fetcher.done(second)
    assert parked.used == 0
    rig.fetcher.done(second)
    assert parked.used == 0


def test_what_is_parked_for_paused_partitions_goes_when_others_starve():
    rig = Rig(2, max_buffered_bytes=4000)
    rig.answer({T0: big(0, 3500), T1: big(0, 100)})
    rig.subscription.pause(T0)
    assert rig.take()
    rig.loop.settle()
    assert rig.open.asked == {T1: 1}
    assert rig.state(T0).fetch_offset == 0, 'to be fetched again'
    rig.subscription.resume(T0)
    assert rig.take() is None
    rig.idle()
    assert rig.open.asked[T0] == 0


def test_reserved_bytes_are_free_again_when_a_request_fails():
    rig = Rig(max_buffered_bytes=4000)
    assert rig.fetcher._buffer.free == 2000
    rig.sent[-1].fail()
    rig.loop.settle()
    assert rig.fetcher._buffer.free == 4000


# ---------------------------------------------------------------- hard limits (before 0.10.1)


def test_old_brokers_are_asked_for_as_much_as_the_budget_bears():
    rig = Rig(4, fetch=(0, 2), max_buffered_bytes=2_000_000)
    assert set(rig.open.limits.values()) == {250_000}
    assert rig.open.request.max_bytes


def test_old_brokers_are_asked_for_some_partitions_in_turn_where_the_budget_is_small():
    rig = Rig(4, fetch=(0, 2), max_buffered_bytes=300_000)
    assert list(rig.open.asked) == [T0, T1]
    rig.loop.advance(0.5)
    rig.answer()
    assert list(rig.open.asked) == [T2, TopicPartition('t', 3)]


def test_it_says_what_it_is():
    assert '1 requests in flight' in repr(Rig().fetcher)
