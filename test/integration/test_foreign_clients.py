"""Clients that nobody here wrote, on embedded brokers of the newest release: part of test/foreign.

The whole, with more clients and releases, is ``python -m test.foreign``.
"""

from __future__ import annotations

import pytest

from kafka.testing import Cluster
from kafka.testing.releases import NEWEST
from test.foreign.clients import CLIENTS, Missing
from test.foreign.plan import STEPS
from test.foreign.running import BROKERS, SETTINGS, Place
from test.foreign.workers import Worker

pytestmark = [pytest.mark.integration, pytest.mark.embedded]

WANTED = ('confluent-kafka', 'kafka-python 3')
PART = ('write and read, zstd', 'group of two', 'transactions')


@pytest.fixture
def workers():
    """The clients, each in a process of its own."""
    made = []
    try:
        for client in CLIENTS:
            if client.name.startswith(WANTED):
                made.append(Worker(client))
        yield made
    except Missing as reason:
        pytest.skip('no foreign clients: %s' % reason)
    finally:
        for worker in made:
            worker.close()


def test_foreign_clients_read_what_they_write_share_groups_and_do_transactions(workers):
    steps = [each for each in STEPS if each.name in PART]
    assert len(steps) == len(PART)
    with Cluster(BROKERS, NEWEST, **SETTINGS) as cluster:
        place = Place(cluster, NEWEST, workers, workers[0])
        outcomes = [place.run(worker, step) for worker in workers for step in steps]
    assert [str(each) for each in outcomes if each.failed or each.absent] == []
    assert [each.passed for each in outcomes] == 2 * [3, 9, 9]
