"""The fetcher while positions are being found: it connects, and lets no broker wait for long."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from test.consumer.fetching_by_hand import T0, T1, Rig


def test_brokers_do_not_wait_long_while_positions_are_found():
    """What is found is asked for with the next request."""
    rig = Rig(2)
    rig.subscription.need_offset_reset(T1)
    rig.idle()
    assert rig.open.request.max_wait_ms == 10
    rig.subscription.seek(T1, 0)
    rig.loop.advance(0.01)
    rig.answer()
    assert rig.open.request.max_wait_ms == 500 and T1 in rig.open.asked


def test_a_position_that_is_not_found_for_long_changes_nothing():
    rig = Rig(2)
    rig.subscription.need_offset_reset(T1)
    rig.idle()
    while rig.open.request.max_wait_ms == 10:
        assert rig.loop.now < 1002.0
        rig.loop.advance(0.01)
        rig.answer()
    assert len(rig.sent) > 50 and rig.open.request.max_wait_ms == 500


def test_it_connects_while_the_first_position_is_found():
    rig = Rig(0)
    rig.count = 2
    rig.leaders = {1: 2}
    rig.metadata()
    rig.subscription.assign_from_user([T0, T1])
    rig.subscription.pause(T1)
    rig.look()
    assert rig.pool.links[1].tries == 1 and rig.sent == []
    assert 2 not in rig.pool.links, 'nobody reads that yet'
    rig.subscription.seek(T0, 0)
    rig.look()
    assert rig.pool.links[1].tries == 1 and rig.open.asked == {T0: 0}


def test_a_node_that_refuses_while_positions_are_found_is_left_alone_for_a_while():
    rig = Rig(0)
    rig.pool.fetch_link(1).refusal = KafkaConnectionError('no')
    rig.count = 1
    rig.metadata()
    rig.subscription.assign_from_user([T0])
    for _ in range(5):
        rig.subscription.need_offset_reset(T0)
        rig.look()
    assert rig.pool.links[1].tries == 1 and rig.pool.refreshed == 1
