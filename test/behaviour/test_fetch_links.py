"""The links of a pool that records are fetched over, beside those for everything else."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError, UnknownBrokerIdError
from kafka.net.node_connection import ConnectionState
from kafka.testing import MemoryCluster
from test.net.test_pool import pool_of
from test.simulation.loop import SimLoop


@pytest.fixture
def fetching():
    """Return a cluster in memory, a loop, a pool on it, and its ready link for fetches."""
    with MemoryCluster(version='4.4', brokers=3, seed=1, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(), 60)
        link = pool.fetch_link(1)
        loop.run(link.ready(), 10)
        yield cluster, loop, pool, link
        pool.close()
        loop.close()


def test_fetches_have_a_link_of_their_own_to_each_node(fetching):
    _, _, pool, link = fetching
    assert pool.fetch_link(1) is link and link.is_ready
    assert link not in (pool.link(1), pool.fetch_link(2))
    assert link not in pool.candidates(), 'nobody asks it for anything else'


def test_the_link_for_fetches_is_closed_with_the_others(fetching):
    _, _, pool, link = fetching
    pool.close()
    assert link.state is ConnectionState.CLOSED and not pool.is_connected
    with pytest.raises(IllegalStateError):
        pool.fetch_link(1)


def test_the_link_for_fetches_to_a_node_that_is_gone_is_closed(fetching):
    cluster, loop, pool, link = fetching
    cluster.kill(1)
    loop.wait(lambda: pool.cluster.broker_metadata(1) is None, 60)
    assert link.state is ConnectionState.CLOSED
    with pytest.raises(UnknownBrokerIdError):
        pool.fetch_link(1)


def test_beginning_anew_closes_the_links_beside_too(fetching):
    _, loop, pool, link = fetching
    of_group = loop.run(pool.group_link('g'), 10)
    loop.run(pool._rebootstrap(), 10)
    assert link.state is ConnectionState.CLOSED and of_group.state is ConnectionState.CLOSED
    assert pool.fetch_link(1) is not link
