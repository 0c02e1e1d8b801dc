"""The connections of a group: which node they lead to, when they are exchanged."""

from __future__ import annotations

import random

import pytest

from kafka.errors import Cancelled
from kafka.net.broker_connections import BrokerConnections
from kafka.net.node_connection import ConnectionState
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import MemoryCluster
from kafka.testing.faults import Delay, Hang
from test.simulation.loop import SimLoop


@pytest.fixture
def sim():
    with MemoryCluster(version='4.4', brokers=3, seed=1, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        settings = NetSettings(servers=parse_servers(cluster.bootstrap))
        pool = Pool(loop, settings, random.Random(5))
        loop.run(pool.bootstrap(), 60)
        cluster.move_coordinator('g', 2)
        yield cluster, loop, pool
        pool.close()
        loop.close()


def test_there_are_two_to_the_coordinator_beside_the_common_one(sim):
    cluster, loop, pool = sim
    rest, parking = (loop.run(pool.group_link('g', parks), 30) for parks in (False, True))
    assert rest.is_ready
    assert parking.is_ready
    assert {rest.node_id, parking.node_id} == {2}
    assert len({rest, parking, pool.link(2)}) == 3


@pytest.mark.parametrize('parks', [False, True])
def test_each_stays_the_same(sim, parks):
    cluster, loop, pool = sim
    assert loop.run(pool.group_link('g', parks), 30) is loop.run(pool.group_link('g', parks), 30)


def test_what_is_parked_holds_the_rest_not_up(sim):
    cluster, loop, pool = sim
    cluster.faults.add(Hang(), 'METADATA', node=2, times=1)
    parking = loop.run(pool.group_link('g', parks=True), 30)
    parked = loop.spawn(parking.request(MetadataRequest(topics=None), 20))
    loop.wait(lambda: parking.in_flight, 10)
    rest = loop.run(pool.group_link('g'), 30)
    assert loop.run(rest.request(MetadataRequest(topics=None)), 1).brokers
    assert not parked.done


@pytest.mark.parametrize('parks', [False, True])
def test_a_coordinator_that_moved_is_found_once_it_is_forgotten(sim, parks):
    cluster, loop, pool = sim
    before = loop.run(pool.group_link('g', parks), 30)
    cluster.move_coordinator('g', 0)
    assert loop.run(pool.group_link('g', parks), 30) is before
    pool.forget_coordinator(0, 'g')
    assert loop.run(pool.group_link('g', parks), 30).node_id == 0
    assert before.state is ConnectionState.CLOSED


def test_who_still_waits_at_a_former_coordinator_gets_the_answer(sim):
    cluster, loop, pool = sim
    before = loop.run(pool.group_link('g'), 30)
    cluster.faults.add(Delay(2.0), 'METADATA', node=2)
    asked = loop.spawn(before.request(MetadataRequest(topics=None)))
    loop.wait(lambda: before.in_flight, 10)
    cluster.move_coordinator('g', 0)
    pool.forget_coordinator(0, 'g')
    loop.run(pool.group_link('g'), 1)
    assert not asked.done
    loop.wait(lambda: asked.done, 10)
    assert asked.result().brokers
    loop.run(pool.group_link('g'), 30)
    assert before.state is ConnectionState.CLOSED


def test_a_broken_connection_is_opened_again(sim):
    cluster, loop, pool = sim
    before = loop.run(pool.group_link('g'), 30)
    cluster.kill(2)
    cluster.restart(2)
    loop.wait(lambda: not before.is_ready, 10)
    assert loop.run(pool.group_link('g'), 30) is before


def test_a_coordinator_that_metadata_do_not_list_is_asked_for_anew(sim):
    cluster, loop, pool = sim
    loop.run(pool.group_link('g'), 30)
    pool.cluster._brokers = {
        node_id: broker for node_id, broker in pool.cluster._brokers.items() if node_id != 2
    }
    assert loop.run(pool.group_link('g'), 30).node_id == 2


def test_one_that_is_closed_while_it_connects_is_asked_for_again(sim):
    cluster, loop, pool = sim
    loop.run(pool.coordinator(0, 'g'), 30)
    found = loop.spawn(pool.group_link('g'))
    table = pool._connections.of_group('g', False)
    loop.wait(lambda: table, 1)
    (link,) = table.values()
    link._connecting.add_done_callback(lambda task: link.close())
    loop.wait(lambda: found.done, 10)
    assert isinstance(found.exception, Cancelled)
    assert loop.run(pool.group_link('g'), 30).is_ready


def test_who_waits_for_a_turn_at_one_that_is_closed_may_ask_again(sim):
    """Somebody may close it to be connected anew."""
    cluster, loop, pool = sim
    link = loop.run(pool.group_link('g'), 30)
    link.throttled_until = loop.time() + 5
    asked = [loop.spawn(link.request(MetadataRequest(topics=None))) for _ in range(2)]
    loop.call_later(1, link.close)
    loop.wait(lambda: all(each.done for each in asked), 10)
    assert [type(each.exception) for each in asked] == [Cancelled, Cancelled]


def test_at_hand_is_only_what_is_known_and_connected(sim):
    cluster, loop, pool = sim
    assert pool.group_link_at_hand('g') is None
    loop.run(pool.coordinator(0, 'g'), 30)
    assert pool.group_link_at_hand('g') is None
    link = loop.run(pool.group_link('g'), 30)
    assert pool.group_link_at_hand('g') is link
    pool.cluster.set_coordinator(0, 'g', 77)
    assert pool.group_link_at_hand('g') is None


def test_any_broker_is_the_same_one_while_it_is_connected(sim):
    cluster, loop, pool = sim
    first = loop.run(pool.any_group_link('g'), 30)
    assert first is not pool.link(first.node_id)
    assert all(loop.run(pool.any_group_link('g'), 30) is first for _ in range(5))
    cluster.kill(first.node_id)
    loop.wait(lambda: not first.is_ready, 10)
    assert loop.run(pool.any_group_link('g'), 30).is_ready


def test_each_group_has_its_own(sim):
    cluster, loop, pool = sim
    cluster.move_coordinator('h', 2)
    link = loop.run(pool.group_link('g'), 30)
    assert loop.run(pool.group_link('h'), 30) is not link
    assert loop.run(pool.group_link('g'), 30) is link
    assert link.is_ready


class Changing(dict):
    """A turn of the loop adds to it whenever code of Python looks at its values."""

    def values(self):
        for count, value in enumerate(super().values()):
            self['added', count] = value
            yield value


def test_any_thread_may_ask_whether_a_connection_is_open_while_they_change(sim):
    cluster, loop, pool = sim
    loop.run(pool.group_link('g'), 30)
    connections = pool._connections
    groups = connections._groups.items()
    connections._groups = Changing({key: Changing(table) for key, table in groups})
    assert pool.is_connected


def test_any_thread_may_ask_whether_a_connection_is_open_while_a_spare_one_goes(sim, monkeypatch):
    cluster, loop, pool = sim
    looks = iter([pool.link(0), None])
    spare = property(lambda connections: next(looks))
    monkeypatch.setattr(BrokerConnections, 'spare', spare, raising=False)
    assert None not in pool._connections.all()
    monkeypatch.undo()


def test_after_close_nothing_is_left_open(sim):
    cluster, loop, pool = sim
    links = [loop.run(pool.group_link('g', parks), 30) for parks in (False, True)]
    assert len(pool._connections.all()) == 2 + len(pool._connections.common)
    pool.close()
    assert {each.state for each in links} == {ConnectionState.CLOSED}
