"""The connection to a coordinator: which node it leads to, and when it is exchanged."""

from __future__ import annotations

import random

import pytest

from kafka.coordinator.coordinator_link import CoordinatorLink
from kafka.net.link_parts import LinkState
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.metadata import MetadataRequest
from kafka.testing import MemoryCluster
from kafka.testing.faults import Delay
from test.simulation.loop import SimLoop


@pytest.fixture
def sim():
    with MemoryCluster(version='4.4', brokers=3, seed=1, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        settings = NetSettings(servers=parse_servers(cluster.bootstrap))
        pool = Pool(loop, settings, random.Random(5))
        loop.run(pool.bootstrap(), 60)
        cluster.move_coordinator('g', 2)
        link = CoordinatorLink(loop, pool, 'g', random.Random(6))
        yield cluster, loop, pool, link
        link.close()
        pool.close()
        loop.close()


def test_it_leads_to_the_coordinator_beside_the_connection_of_the_pool(sim):
    cluster, loop, pool, link = sim
    ready = loop.run(link.ready(), 30)
    assert ready.is_ready
    assert ready.node_id == 2
    assert ready is not pool.link(2)


def test_it_stays_the_same(sim):
    cluster, loop, pool, link = sim
    assert loop.run(link.ready(), 30) is loop.run(link.ready(), 30)


def test_a_coordinator_that_moved_is_found_once_it_is_forgotten(sim):
    cluster, loop, pool, link = sim
    before = loop.run(link.ready(), 30)
    cluster.move_coordinator('g', 0)
    assert loop.run(link.ready(), 30) is before
    link.forget()
    assert loop.run(link.ready(), 30).node_id == 0
    assert before.state is LinkState.CLOSED


def test_who_still_waits_at_a_former_coordinator_gets_the_answer(sim):
    cluster, loop, pool, link = sim
    before = loop.run(link.ready(), 30)
    cluster.faults.add(Delay(2.0), 'METADATA', node=2)
    asked = loop.spawn(before.request(MetadataRequest(topics=None)))
    cluster.move_coordinator('g', 0)
    link.forget()
    loop.run(link.ready(), 1)
    assert not asked.done
    loop.wait(lambda: asked.done, 10)
    assert asked.result().brokers
    loop.run(link.ready(), 30)
    assert before.state is LinkState.CLOSED


def test_a_broken_connection_is_opened_again(sim):
    cluster, loop, pool, link = sim
    before = loop.run(link.ready(), 30)
    cluster.kill(2)
    cluster.restart(2)
    loop.wait(lambda: not before.is_ready, 10)
    assert loop.run(link.ready(), 30) is before


def test_a_coordinator_that_metadata_do_not_list_is_asked_for_anew(sim):
    cluster, loop, pool, link = sim
    loop.run(link.ready(), 30)
    pool.cluster._brokers = {
        node_id: broker for node_id, broker in pool.cluster._brokers.items() if node_id != 2
    }
    assert loop.run(link.ready(), 30).node_id == 2


def test_any_broker_is_the_same_one_while_it_is_connected(sim):
    cluster, loop, pool, link = sim
    first = loop.run(link.ready_anywhere(), 30)
    assert all(loop.run(link.ready_anywhere(), 30) is first for _ in range(5))
    cluster.kill(first.node_id)
    loop.wait(lambda: not first.is_ready, 10)
    assert loop.run(link.ready_anywhere(), 30).is_ready


def test_after_close_nothing_is_left_open(sim):
    cluster, loop, pool, link = sim
    ready = loop.run(link.ready(), 30)
    link.close()
    assert ready.state is LinkState.CLOSED
    assert repr(link) == '<CoordinatorLink of g None>'
