"""An idle consumer lets brokers wait longer, and nothing else has to wait for that."""

from __future__ import annotations

from test.consumer.fetching_by_hand import T0, T1, Rig, batch


def quiet(partitions=1, idle_wait=2.0, **more):
    """A fetcher whose broker waits for the longest time by now."""
    rig = Rig(partitions, idle_wait=idle_wait, **more)
    for _ in range(3):
        idle(rig)
    return rig


def idle(rig):
    rig.loop.advance(rig.open.request.max_wait_ms / 1000)
    rig.answer()


def waits(rig):
    return [sent.request.max_wait_ms for sent in rig.sent]


def test_a_broker_that_waits_in_vain_waits_longer_the_next_time():
    rig = quiet()
    idle(rig)
    assert waits(rig) == [500, 1000, 2000, 2000, 2000]


def test_a_record_ends_it():
    rig = quiet()
    rig.loop.advance(0.1)
    rig.answer({T0: batch(0, b'a')})
    rig.take()
    assert waits(rig)[-1] == 500


def test_an_answer_that_comes_early_ends_it():
    rig = quiet()
    rig.loop.advance(0.1)
    rig.answer()
    rig.loop.advance(0.02)
    assert waits(rig)[-1] == 500


def test_an_error_ends_it():
    rig = quiet()
    rig.open.fail()
    rig.loop.settle()
    rig.loop.advance(0.2)
    assert waits(rig)[-1] == 500


def test_without_an_idle_wait_it_is_always_the_same():
    assert set(waits(quiet(idle_wait=0.0))) == {500}


def test_a_broker_without_sessions_may_not_tell_of_a_new_leader_and_waits_as_usual():
    assert set(waits(quiet(fetch=(4, 6)))) == {500}


def test_it_is_half_the_time_of_a_request_at_most():
    assert max(waits(quiet(request_timeout=3.0))) == 1500


def test_a_seek_does_not_wait_for_it():
    rig = quiet(2)
    rig.subscription.seek(T1, 5)
    rig.look()
    assert rig.pool.links[1].closed == 1
    assert rig.open.session == (7, 0)  # all over again, in place of the old one
    assert rig.open.asked == {T0: 0, T1: 5}
    assert rig.open.request.max_wait_ms == 500
    assert rig.pool.refreshed == 0, 'nothing is wrong with the broker'
    rig.answer({T1: batch(5, b'f')})
    assert rig.take() == [b'f']


def test_nor_does_a_partition_that_is_resumed():
    rig = Rig(2, idle_wait=2.0)
    rig.subscription.pause(T1)
    for _ in range(4):
        idle(rig)
    assert rig.open.request.max_wait_ms == 2000
    rig.subscription.resume(T1)
    rig.look()
    assert rig.open.asked == {T0: 0, T1: 0}


def test_nor_does_a_partition_that_is_assigned():
    rig = Rig(2, idle_wait=2.0)
    rig.assign([0])
    for _ in range(4):
        idle(rig)
    rig.assign([0, 1])
    rig.look()
    assert rig.open.asked == {T0: 0, T1: 0}


def test_what_is_wanted_no_more_lets_it_wait():
    rig = quiet(2)
    rig.subscription.pause(T1)
    rig.look()
    assert rig.pool.links[1].closed == 0
    assert rig.open.request.max_wait_ms == 2000


def test_a_usual_wait_is_not_given_up():
    rig = Rig(2, idle_wait=2.0)
    rig.loop.advance(0.2)
    rig.subscription.seek(T1, 5)
    rig.look()
    assert rig.pool.links[1].closed == 0


def test_it_is_given_up_once():
    rig = quiet(2)
    rig.subscription.seek(T1, 5)
    rig.fetcher.look()
    rig.fetcher.look()
    rig.loop.settle()
    assert rig.pool.links[1].closed == 1
    assert rig.open.asked == {T0: 0, T1: 5}
