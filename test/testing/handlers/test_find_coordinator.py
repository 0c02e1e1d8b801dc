"""Who coordinates a group."""

from __future__ import annotations

import pytest

from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.testing.errors import COORDINATOR_NOT_AVAILABLE, NONE
from test.testing.drive import Driver


@pytest.fixture
def driver():
    return Driver(brokers=3)


@pytest.mark.parametrize('version', range(4))
def test_one_key_is_answered_at_the_top(driver, version):
    answer = driver.ask(FindCoordinatorRequest(key='g'), version=version)
    node = driver.state.nodes[driver.state.coordinator_of('g')]
    assert answer.error_code == NONE
    assert (answer.node_id, answer.host, answer.port) == (node.node_id, node.host, node.port)


@pytest.mark.parametrize('version', [4, 5, 6])
def test_several_keys_are_answered_in_their_order(driver, version):
    keys = ['a', 'b', 'c', 'd']
    answer = driver.ask(FindCoordinatorRequest(coordinator_keys=keys), version=version)
    assert [each.key for each in answer.coordinators] == keys
    assert [each.node_id for each in answer.coordinators] == [
        driver.state.coordinator_of(key) for key in keys
    ]


def test_every_node_gives_the_same_answer(driver):
    request = FindCoordinatorRequest(key='g')
    assert len({driver.ask(request, version=3, node=n).node_id for n in range(3)}) == 1


def test_a_moved_coordinator_is_found(driver):
    for node in range(3):
        driver.state.moved_coordinators['g'] = node
        assert driver.ask(FindCoordinatorRequest(key='g'), version=1).node_id == node


@pytest.mark.parametrize('version', [3, 4])
def test_there_may_be_none(driver, version):
    for node in range(3):
        driver.state.node_died(node)
    if version == 3:
        found = driver.ask(FindCoordinatorRequest(key='g'), version=3)
    else:
        found = driver.ask(FindCoordinatorRequest(coordinator_keys=['g']), version=4)
        (found,) = found.coordinators
    assert (found.error_code, found.node_id) == (COORDINATOR_NOT_AVAILABLE, -1)
