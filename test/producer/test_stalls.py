"""Brokers that take nothing of what is ready for them, and where records go then (KIP-794)."""

from __future__ import annotations

from kafka.errors import KafkaError
from kafka.producer.plain_state import PlainState
from kafka.producer.stalls import Stalls
from test.producer.sending_by_hand import Rig


def test_a_broker_is_slow_after_the_limit():
    stalls = Stalls(5.0)
    stalls.stuck(1, 100.0)
    stalls.stuck(1, 103.0)
    stalls.stuck(2, 104.0)
    assert stalls.slow([1, 2], 104.9) == (frozenset(), 105.0)
    assert stalls.slow([1, 2], 105.0) == (frozenset([1]), 109.0)
    stalls.moved(1)
    assert stalls.slow([1, 2], 109.0) == (frozenset([2]), None)


def test_a_broker_for_which_nothing_is_left_is_not_slow():
    stalls = Stalls(5.0)
    stalls.stuck(1, 100.0)
    assert stalls.slow([], 106.0) == (frozenset(), None)
    assert stalls.slow([1], 107.0) == (frozenset(), None)


def test_without_a_limit_nobody_is_slow():
    stalls = Stalls(0.0)
    stalls.stuck(1, 0.0)
    assert stalls.slow([1], 1e9) == (frozenset(), None)


def stalled(**settings):
    """Node 2 leads partition 1, has two requests and answers nothing; another record waits."""
    rig = Rig(partitions=2, max_in_flight=2, **settings)
    rig.pool.cluster.leaders = {1: 2}
    rig.go(b'a', partition=1)
    rig.go(b'b', partition=1)
    rig.go(b'c', partition=1)
    return rig


def chosen(rig):
    """Return the partitions that are chosen for records without key, of many choices."""
    found = set()
    for _ in range(64):
        found.add(rig.topic.choose().topic_partition.partition)
        rig.topic.sticky.partition = None
    return found


def test_records_without_key_go_elsewhere_until_it_takes_something_again():
    rig = stalled(availability_timeout=5.0)
    rig.loop.advance(4.9)
    assert chosen(rig) == {0, 1}
    rig.loop.advance(0.2)
    assert chosen(rig) == {0}
    rig.pool.link(2).sent[0].respond()
    rig.loop.settle()
    assert chosen(rig) == {0, 1}


def test_metadata_do_not_make_them_forget():
    rig = stalled(availability_timeout=5.0)
    rig.loop.advance(5.1)
    rig.accumulator.update(rig.topic, range(3), range(3))
    assert chosen(rig) == {0, 2}


def test_where_all_are_slow_all_are_chosen():
    rig = stalled(availability_timeout=5.0)
    for _ in range(3):
        rig.go(b'd', partition=0)
    rig.loop.advance(5.1)
    assert chosen(rig) == {0, 1}


def test_without_the_option_nothing_is_avoided():
    rig = stalled()
    rig.loop.advance(60.0)
    assert chosen(rig) == {0, 1}


# --- what nobody asks about ----------------------------------------------------------------------


def boxed(rig, *values):
    rig.accumulator.open_box(rig.topic, rig.loop.now, rig.loop.now)
    for value in values:
        rig.topic.put_in_box(value)
    rig.loop.advance(0.01)


def test_what_is_in_a_box_when_all_ends_is_counted():
    rig = Rig(partitions=1, max_in_flight=0)
    boxed(rig, b'a')
    rig.accumulator.open_box(rig.topic, rig.loop.now, rig.loop.now)
    rig.topic.put_in_box(b'b')
    rig.send(b'c')
    rig.accumulator.open_box(rig.topic, rig.loop.now, rig.loop.now)
    rig.topic.put_in_box(b'd')
    assert rig.sender.abort(KafkaError('the end')) == 4
    assert rig.accumulator.is_empty()


class Refusing(PlainState):
    """A producer that may not send yet."""

    def may_send(self, batch):
        return False


def test_a_broker_that_is_not_given_what_waits_for_it_is_not_slow():
    rig = Rig(partitions=2, state=Refusing(), availability_timeout=1.0)
    rig.pool.cluster.leaders = {1: 2}
    rig.go(b'a', partition=1)
    for _ in range(5):
        rig.loop.advance(1.0)
        rig.go(b'b', partition=1)
    assert rig.sent == [] and chosen(rig) == {0, 1}
