"""Programs patched by gevent and eventlet (test/patched.py) on real brokers and embedded ones."""

from __future__ import annotations

import pytest

from test.behaviour.test_patched import check_ticks, program, result
from test.integration.fixtures import fetch, values
from test.patched import KINDS

pytestmark = pytest.mark.integration


@pytest.mark.releases(since='0.9', some=('0.9.0.1', '4.4.0'))
@pytest.mark.parametrize('kind', KINDS)
def test_greenlets_share_a_producer(kind, cluster, client, topic):
    found = result(program(kind, 'shared', cluster.bootstrap, topic))
    assert found['error'] is None
    check_ticks(found)
    records = values(fetch(client, topic, 0))
    for name, offsets in enumerate(found['offsets']):
        assert [records[each] for each in offsets] == [
            b'%d-%d' % (name, number) for number in range(len(offsets))
        ]
    assert len(records) == 5 * 40 + 1000


@pytest.mark.releases(some=('0.8.2.2', '4.4.0'))
@pytest.mark.parametrize('kind', KINDS)
def test_clients_of_0_9_5(kind, cluster, client, topic):
    found = result(program(kind, 'clients_09', cluster.bootstrap, topic))
    assert found['error'] is None
    check_ticks(found)
    records = [each for index in (0, 1) for each in values(fetch(client, topic, index))]
    for name, count in enumerate((200, 200, 200, 100)):
        mine = {each for each in records if each.startswith(b'%d-' % name)}
        assert mine == {b'%d-%d' % (name, number) for number in range(count)}
    assert len(records) == 700
