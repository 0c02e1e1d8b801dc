"""Fetch sessions: what a request names, and what an answer makes of the session."""

from __future__ import annotations

import random

import pytest

from kafka.consumer.fetch.session import (
    MAX_EPOCH,
    TRANSITIONS,
    FetchSession,
    FetchSessionOutcome,
    FetchSessionState,
    WantedPartition,
)
from kafka.errors import IllegalStateError
from kafka.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafka.structs import TopicPartition
from kafka.testing.fetch_sessions import FetchSessions

A, B, C = (TopicPartition('t', n) for n in range(3))
ID, OTHER_ID = b'i' * 16, b'o' * 16


def wanted(offset=0, **more):
    return WantedPartition(offset, 1000, **more)


def session_of(*partitions, **more):
    made = FetchSession()
    for partition in partitions:
        made.want(partition, wanted(**more))
    return made


def opened(*partitions, **more):
    """Return a session 7 of which the broker knows everything."""
    made = session_of(*partitions, **more)
    made.plan(True, 'topic_id' in more)
    assert made.on_response(0, 7, partitions) is FetchSessionOutcome.TAKEN
    return made


def named(plan):
    return [partition for partition, _ in plan.partitions]


def test_the_first_request_names_everything_and_wants_a_session():
    plan = session_of(A, B).plan(True, False)
    assert (plan.session_id, plan.epoch, named(plan)) == (0, 0, [A, B])


def test_the_next_requests_name_what_has_changed():
    session = opened(A, B)
    session.want(B, wanted(5))
    plan = session.plan(True, False)
    assert (plan.session_id, plan.epoch) == (7, 1)
    assert plan.partitions == [(B, wanted(5))] and plan.forgotten == []
    session.on_response(0, 7, [])
    plan = session.plan(True, False)
    assert (plan.epoch, plan.partitions) == (2, [])


def test_what_is_no_longer_wanted_is_forgotten_once():
    session = opened(A, B)
    session.drop(A)
    plan = session.plan(True, False)
    assert named(plan) == [] and [each[0] for each in plan.forgotten] == [A]
    session.on_response(0, 7, [])
    assert session.plan(True, False).forgotten == []


def test_what_comes_and_goes_between_two_requests_is_not_named():
    session = opened(A)
    session.want(B, wanted())
    session.drop(B)
    plan = session.plan(True, False)
    assert (plan.partitions, plan.forgotten) == ([], [])


def test_what_went_and_came_back_the_same_is_not_named():
    session = opened(A)
    session.drop(A)
    session.want(A, wanted())
    plan = session.plan(True, False)
    assert (plan.partitions, plan.forgotten) == ([], [])


@pytest.mark.parametrize('change', [{'offset': 1}, {'leader_epoch': 3}])
def test_each_thing_that_a_broker_is_told_makes_it_be_named_again(change):
    session = opened(A)
    session.want(A, wanted(**change))
    assert session.plan(True, False).partitions == [(A, wanted(**change))]


def test_the_token_is_not_told_but_kept():
    session = opened(A)
    session.want(A, wanted(token=9))
    assert session.asked(A).token == 0
    assert session.plan(True, False).partitions == []
    assert session.asked(A).token == 9


def test_what_was_asked_does_not_change_before_the_next_request():
    session = session_of(A)
    session.plan(True, False)
    session.want(A, wanted(5))
    session.want(B, wanted())
    assert session.asked(A) == wanted(0) and session.asked(B) is None


def test_what_is_wanted_behind_the_request_makes_it_outdated():
    session = session_of(A)
    assert session.is_outdated
    session.plan(True, False)
    assert not session.is_outdated
    session.want(A, wanted(token=3))
    session.drop(B)
    assert not session.is_outdated, 'the broker is told the same'
    session.want(B, wanted())
    assert session.is_outdated
    session.drop(B)
    assert not session.is_outdated
    session.want(A, wanted(1))
    assert session.is_outdated
    session.drop(A)
    assert not session.is_outdated, 'to be forgotten is not urgent'


def test_what_is_dropped_while_it_is_asked_for_was_asked_all_the_same():
    session = session_of(A)
    session.plan(True, False)
    session.drop(A)
    assert session.asked(A) == wanted(0)


def test_a_topic_made_anew_is_forgotten_and_asked_for_in_one_request():
    session = opened(A, topic_id=ID)
    session.want(A, wanted(topic_id=OTHER_ID))
    plan = session.plan(True, True)
    assert plan.forgotten == [(A, ID)] and plan.partitions == [(A, wanted(topic_id=OTHER_ID))]


def test_a_topic_made_anew_is_only_asked_for_where_it_goes_by_its_name():
    """Brokers add first and forget then, and the name is the same."""
    session = session_of(A, topic_id=ID)
    session.plan(True, False)
    session.on_response(0, 7, [A])
    session.want(A, wanted(topic_id=OTHER_ID))
    plan = session.plan(True, False)
    assert plan.forgotten == [] and plan.partitions == [(A, wanted(topic_id=OTHER_ID))]


def test_ids_are_used_when_all_have_one():
    session = session_of(A, topic_id=ID)
    assert session.all_have_ids
    session.want(B, wanted())
    assert not session.all_have_ids
    session.drop(B)
    assert session.all_have_ids
    session.want(B, wanted())
    session.want(B, wanted(topic_id=ID))
    assert session.all_have_ids


def test_a_change_from_ids_to_names_begins_a_new_session_in_place_of_the_old():
    session = opened(A, topic_id=ID)
    session.want(B, wanted())
    plan = session.plan(True, False)
    assert (plan.session_id, plan.epoch, named(plan)) == (7, 0, [A, B])
    session.on_response(0, 8, [A, B])
    assert session.plan(True, False)[:2] == (8, 1)


def test_names_of_ids_are_known():
    session = session_of(A, topic_id=ID)
    assert session.topic_of(ID) == 't' and session.topic_of(OTHER_ID) is None
    session.plan(True, True)
    assert session.topic_of(ID) == 't'


@pytest.mark.parametrize(
    'code, old_id, outcome',
    [
        (70, 0, FetchSessionOutcome.START_OVER),  # FETCH_SESSION_ID_NOT_FOUND: there is none to end
        (71, 7, FetchSessionOutcome.START_OVER),  # INVALID_FETCH_SESSION_EPOCH
        (106, 7, FetchSessionOutcome.START_OVER),  # FETCH_SESSION_TOPIC_ID_ERROR
        (-1, 7, FetchSessionOutcome.FAILED),
        (56, 7, FetchSessionOutcome.FAILED),
    ],
)
def test_an_error_of_the_whole_answer_begins_anew(code, old_id, outcome):
    session = opened(A)
    session.plan(True, False)
    assert session.on_response(code, 0, []) is outcome
    plan = session.plan(True, False)
    assert (plan.session_id, plan.epoch, named(plan)) == (old_id, 0, [A])


def test_without_an_answer_it_begins_anew_and_ends_the_old_one():
    session = opened(A)
    session.plan(True, False)
    session.on_error()
    assert session.plan(True, False)[:2] == (7, 0)


def test_a_broker_without_room_is_asked_for_everything_each_time():
    session = session_of(A)
    session.plan(True, False)
    assert session.on_response(0, 0, [A]) is FetchSessionOutcome.TAKEN
    plan = session.plan(True, False)
    assert (plan.session_id, plan.epoch, named(plan)) == (0, 0, [A])


def test_a_session_that_the_broker_ends_is_begun_anew():
    session = opened(A)
    session.plan(True, False)
    assert session.on_response(0, 0, []) is FetchSessionOutcome.TAKEN
    assert session.plan(True, False)[:2] == (0, 0)


def test_another_session_than_the_one_that_was_meant_is_ended():
    session = opened(A)
    session.plan(True, False)
    assert session.on_response(0, 8, []) is FetchSessionOutcome.START_OVER
    assert session.plan(True, False)[:2] == (8, 0)


@pytest.mark.parametrize('answered', [[A], [A, B, C], [A, C], []])
def test_an_answer_to_everything_tells_of_everything(answered):
    session = session_of(A, B)
    session.plan(True, False)
    assert session.on_response(0, 7, answered) is FetchSessionOutcome.START_OVER
    assert session.plan(True, False)[:2] == (7, 0)


def test_an_answer_to_changes_tells_of_nothing_else():
    session = opened(A)
    session.plan(True, False)
    assert session.on_response(0, 7, [B]) is FetchSessionOutcome.START_OVER


def test_a_broker_that_throttles_may_say_nothing():
    session = session_of(A)
    session.plan(True, False)
    assert session.on_response(0, 0, [], is_throttled=True) is FetchSessionOutcome.EMPTY
    assert session.plan(True, False)[:2] == (0, 0)


def test_epochs_begin_at_1_again_behind_the_last():
    session = opened(A)
    session.epoch = MAX_EPOCH
    session.plan(True, False)
    session.on_response(0, 7, [])
    assert session.epoch == 1


@pytest.mark.parametrize('uses, has', [(False, True), (True, False)])
def test_without_sessions_everything_is_named_always(uses, has):
    session = FetchSession(uses)
    session.want(A, wanted())
    for _ in range(2):
        plan = session.plan(has, False)
        assert (plan.session_id, plan.epoch, named(plan)) == (0, -1, [A])
        assert session.on_response(0, 0, [A]) is FetchSessionOutcome.TAKEN


def test_who_gave_records_has_its_turn_behind_the_others():
    session = session_of(A, B, C)
    session.served(A)
    assert session.wanted() == [B, C, A]
    assert named(session.plan(False, False)) == [B, C, A]


def test_a_request_for_a_part_comes_to_all_in_turn():
    session = session_of(A, B, C)
    seen = []
    for _ in range(3):
        plan = session.plan(False, False, at_most=2)
        seen.append(named(plan))
        session.on_response(0, 0, named(plan))
    assert seen == [[A, B], [C, A], [B, C]]
    assert session.asked(A) is None, 'it was not in the last request'


def test_one_partition_is_named_at_least():
    assert named(session_of(A, B).plan(False, False, at_most=0)) == [A]


def test_a_new_offset_keeps_the_place_in_the_order():
    session = session_of(A, B)
    session.want(A, wanted(5))
    assert session.wanted() == [A, B]


def test_closing_tells_which_session_to_end():
    session = opened(A)
    assert session.close() == 7
    assert session.close() is None
    assert FetchSession().close() is None


def test_transitions_are_complete_and_others_are_refused():
    assert set(TRANSITIONS) == set(FetchSessionState)
    session = session_of(A)
    session.plan(True, False)
    with pytest.raises(IllegalStateError, match='asked for everything cannot become asked for'):
        session.plan(True, False)
    with pytest.raises(IllegalStateError, match='closed cannot become'):
        session.close()
        session.plan(True, False)


def test_it_says_what_it_is():
    assert repr(opened(A)) == '<FetchSession 7 epoch=1 open, 1 partitions>'
    assert len(opened(A, B)) == 2


def request_of(plan):
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=[
            FetchTopic(
                topic=at.topic,
                partitions=[
                    FetchPartition(
                        partition=at.partition, fetch_offset=each.offset, partition_max_bytes=1
                    )
                ],
            )
            for at, each in plan.partitions
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=at.topic, partitions=[at.partition]) for at, _ in plan.forgotten
        ],
    )


@pytest.mark.parametrize('seed', range(20))
def test_the_broker_thinks_of_what_is_wanted_whatever_happens(seed):
    """Client and broker side, each by its own tables, with answers that are lost now and then."""
    chance = random.Random(seed)
    broker = FetchSessions(random.Random(seed), lambda: 0.0)
    session, want = FetchSession(), {}
    for _ in range(200):
        for _ in range(chance.randrange(4)):
            at = TopicPartition('t', chance.randrange(6))
            if chance.random() < 0.3:
                want.pop(at, None)
                session.drop(at)
            else:
                want[at] = chance.randrange(5)
                session.want(at, wanted(want[at]))
        if not want:
            continue
        request = request_of(session.plan(True, False))
        fate = chance.random()
        if fate < 0.1:  # it never came
            session.on_error()
            continue
        opened = broker.open(request, 12)
        if isinstance(opened, int):
            assert session.on_response(opened, 0, []) is FetchSessionOutcome.START_OVER
            continue
        there = {(each.topic, each.asked.partition): each for each in opened.partitions}
        assert {at: each.asked.fetch_offset for at, each in there.items()} == want
        found = [
            (
                each,
                PartitionData(partition_index=at[1], error_code=0, high_watermark=9, records=b''),
            )
            for at, each in there.items()
        ]
        session_id, kept = opened.finish(found)
        if fate < 0.2:
            session.on_error()
            continue
        told = [TopicPartition(each.topic, each.asked.partition) for each, _ in kept]
        assert session.on_response(0, session_id, told) is FetchSessionOutcome.TAKEN
