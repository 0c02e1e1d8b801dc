"""Who coordinates a group."""

from __future__ import annotations

import pytest

from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.testing.errors import COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST, NONE
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


def found(release, key_type, version, *keys):
    """Return the errors of keys, and whether they have texts."""
    request = FindCoordinatorRequest(key_type=key_type)
    if version < 4:
        request.key = keys[0]
        answer = Driver(release).ask(request, version=version)
        assert (answer.error_code == NONE) is (answer.node_id == 0)
        return [(answer.error_code, answer.error_message)]
    request.coordinator_keys = list(keys)
    answers = Driver(release).ask(request, version=version).coordinators
    return [(each.error_code, bool(each.error_message)) for each in answers]


@pytest.mark.parametrize(
    'release, version, text',
    [('0.11', 1, None), ('2.2', 2, None), ('2.3', 2, 'NONE'), ('2.8', 3, 'NONE')],
)
def test_even_no_error_has_a_text(release, version, text):
    for key_type in (0, 1):
        assert found(release, key_type, version, 'g') == [(NONE, text)]


def test_no_error_has_a_text_where_there_are_several_keys():
    assert found('4.4', 0, 4, 'a', 'b') == [(NONE, False), (NONE, False)]


@pytest.mark.parametrize('release', ['2.8', '3.9', '4.4'])
def test_an_unknown_type_of_key_is_refused(release):
    for version in range(1, 4):
        ((error, text),) = found(release, 9, version, 'g')
        assert (error, bool(text)) == (INVALID_REQUEST, True)
    if release != '2.8':
        assert found(release, 9, 4, 'a', 'b') == [(INVALID_REQUEST, True)] * 2


@pytest.mark.parametrize('release', ['0.11', '1.1', '2.2'])
def test_the_first_that_had_types_could_not_read_others(release):
    client = Driver(release).client()
    client.send(FindCoordinatorRequest(key='g', key_type=2), version=1)
    assert client.wire.is_closed


SHARE_KEY = 'g:' + 'A' * 22 + ':0'


@pytest.mark.parametrize(
    'release, version, key, error',
    [
        ('3.8', 5, SHARE_KEY, INVALID_REQUEST),
        ('3.9', 5, SHARE_KEY, INVALID_REQUEST),
        ('3.9', 6, SHARE_KEY, COORDINATOR_NOT_AVAILABLE),
        ('4.0', 6, SHARE_KEY, INVALID_REQUEST),
        ('4.4', 5, SHARE_KEY, INVALID_REQUEST),
        ('4.1', 6, SHARE_KEY, NONE),
        ('4.1', 6, 'a:' + SHARE_KEY, INVALID_REQUEST),
        ('4.4', 6, 'a:' + SHARE_KEY, NONE),
        ('4.4', 6, SHARE_KEY, NONE),
        ('4.4', 6, 'g', INVALID_REQUEST),
        ('4.4', 6, ' :' + 'A' * 22 + ':0', INVALID_REQUEST),
        ('4.4', 6, 'g:A:0', INVALID_REQUEST),
        ('4.4', 6, SHARE_KEY + 'x', INVALID_REQUEST),
    ],
)
def test_share_coordinators_are_known_by_version_6_of_releases_with_share_groups(
    release, version, key, error
):
    has_text = release == '3.8'  # there the type is unknown
    assert found(release, 2, version, key) == [(error, has_text)]
