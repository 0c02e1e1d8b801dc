"""Which requests go wrong, how, and by which chance."""

from __future__ import annotations

import math

import pytest

from kafka.errors import KafkaError
from kafka.protocol.api import decode_response
from kafka.protocol.api_versions import ApiVersionsResponse
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.session import Role, Session
from kafka.testing.calls import HANDLERS
from kafka.testing.faults import (
    Corrupt,
    Cut,
    Delay,
    DropRequest,
    DropResponse,
    Error,
    ErrorAfterApplying,
    Hang,
    OneOf,
    Slow,
    Throttle,
    Truncate,
    api_key,
)
from test.testing.drive import Driver


@pytest.fixture
def driver():
    return Driver(brokers=2)


@pytest.fixture
def faults(driver):
    return driver.state.control.faults


@pytest.fixture
def applied(monkeypatch):
    """Count what is applied."""
    calls, original = [], HANDLERS[3]
    monkeypatch.setitem(HANDLERS, 3, lambda call: calls.append(call) or original(call))
    return calls


REQUEST = MetadataRequest(topics=[MetadataRequestTopic(name='t')])


def send(driver, node=0):
    client = driver.client(node)
    client.send(REQUEST)
    return client


def whole(driver):
    """Return the bytes of the answer without a fault."""
    client = driver.client(0)
    client.send(REQUEST)
    return bytes(client.wire.written)


def code_of(client):
    return client.receive().topics[0].error_code


# --- actions ------------------------------------------------------------------------------------


def test_an_error_is_answered_and_nothing_is_done(driver, faults, applied):
    faults.add(Error(7), 'Metadata')
    assert code_of(send(driver)) == 7
    assert (applied, driver.state.topics) == ([], {})


def test_an_unsupported_version_of_api_versions_is_told_in_version_0(driver, faults):
    faults.add(Error(35), 'ApiVersions')
    client = driver.client()
    client.connection.receive_data(Session(Role.CLIENT).negotiate())
    _, answer = decode_response(ApiVersionsResponse, bytes(client.wire.written[4:]), 0)
    assert answer.error_code == 35


def test_an_error_after_applying_is_answered_although_it_is_done(driver, faults, applied):
    faults.add(ErrorAfterApplying(7), 'Metadata')
    assert code_of(send(driver)) == 7
    assert list(driver.state.topics) == ['t']


def test_a_dropped_request_is_not_applied(driver, faults, applied):
    faults.add(DropRequest(), 'Metadata')
    client = send(driver)
    assert (client.wire.is_closed, client.wire.written, applied) == (True, b'', [])


def test_a_dropped_response_was_applied(driver, faults, applied):
    faults.add(DropResponse(), 'Metadata')
    client = send(driver)
    assert (client.wire.is_closed, client.wire.written, len(applied)) == (True, b'', 1)


def test_a_hanging_request_is_neither_applied_nor_answered(driver, faults, applied):
    faults.add(Hang(), 'Metadata')
    client = send(driver)
    driver.advance(1e6)
    assert (client.wire.is_closed, client.wire.written, applied) == (False, b'', [])


def test_a_hanging_connection_ends_when_the_client_closes_it(driver, faults, applied):
    faults.add(Hang(), 'Metadata')
    client = send(driver)
    client.send(MetadataRequest(topics=[]))
    assert client.connection.wants_data
    assert client.receive() is None
    client.connection.receive_data(b'')
    assert client.wire.is_closed


def test_a_delayed_answer_was_applied_at_once(driver, faults, applied):
    faults.add(Delay(2.0), 'Metadata')
    client = send(driver)
    assert len(applied) == 1
    driver.advance(1.9)
    assert client.receive() is None
    driver.advance(0.1)
    assert client.receive() is not None


def test_requests_behind_a_delayed_answer_wait_too(driver, faults):
    faults.add(Delay(2.0), 'Metadata')
    client = send(driver)
    client.send(FindCoordinatorRequest(coordinator_keys=['g']))
    assert client.receive() is None
    driver.advance(2.0)
    assert [type(client.receive()).__name__ for _ in range(2)] == [
        'MetadataResponse',
        'FindCoordinatorResponse',
    ]


def test_a_delayed_answer_to_a_client_that_left_is_dropped(driver, faults):
    faults.add(Delay(2.0), 'Metadata')
    client = send(driver)
    client.connection.close()
    driver.advance(3.0)
    assert client.wire.written == b''


@pytest.mark.parametrize('sent, length', [(-1, None), (0, 0), (3, 3), (10, 10), (10**6, -1)])
def test_a_frame_is_cut_and_the_connection_closed(driver, faults, sent, length):
    whole(driver)
    full = whole(driver)
    faults.add(Cut(sent), 'Metadata')
    client = send(driver)
    wanted = {None: len(full) // 2, -1: len(full) - 1}.get(length, length)
    assert client.wire.written == full[:wanted]
    assert client.wire.is_closed


def test_a_truncated_answer_is_a_whole_frame_that_cannot_be_read(driver, faults):
    whole(driver)
    full = whole(driver)
    faults.add(Truncate(2), 'Metadata')
    client = send(driver)
    assert client.wire.written[4:] == full[4:-2]
    assert int.from_bytes(client.wire.written[:4], 'big') == len(full) - 6
    assert not client.wire.is_closed
    with pytest.raises(KafkaError):
        client.receive()


def test_a_corrupt_answer_differs_behind_the_correlation_id(driver, faults):
    whole(driver)
    full = whole(driver)
    faults.add(Corrupt(3), 'Metadata')
    written = bytes(send(driver).wire.written)
    assert written[:8] == full[:8]
    assert len(written) == len(full)
    assert sum(a != b for a, b in zip(written, full)) == 3


def test_a_slow_answer_trickles(driver, faults):
    whole(driver)
    full = whole(driver)
    faults.add(Slow(bytes_per_second=100), 'Metadata')
    client = send(driver)
    assert len(client.wire.written) == 5
    driver.advance(0.5)
    assert 45 <= len(client.wire.written) <= 60
    driver.advance(10)
    assert client.wire.written == full


@pytest.mark.parametrize('release, comes_at_once', [('1.1', False), ('2.0', True)])
def test_a_throttled_client_waits_by_itself_since_2_0(release, comes_at_once):
    driver = Driver(release)
    driver.state.control.faults.add(Throttle(3000), 'Metadata')
    client = send(driver)
    assert bool(client.wire.written) is comes_at_once
    client.send(REQUEST)
    answers = [client.receive()]
    driver.advance(2.9)
    answers.append(client.receive())
    driver.advance(0.2)
    answers += [client.receive(), client.receive()]
    found = [each.throttle_time_ms for each in answers if each is not None]
    assert found == [3000, 0]
    assert [each is not None for each in answers[:2]] == [comes_at_once, False]


# --- rules --------------------------------------------------------------------------------------


def test_a_fault_hits_once_unless_told_otherwise(driver, faults):
    rule = faults.add(Error(7), 'Metadata')
    assert [code_of(send(driver)) for _ in range(2)] == [7, 3]
    assert rule.hits == 1


@pytest.mark.parametrize('times, hits', [(2, 2), (None, 4)])
def test_a_fault_hits_so_many_times(driver, faults, times, hits):
    rule = faults.add(Error(7), 'Metadata', times=times)
    for _ in range(4):
        send(driver)
    assert rule.hits == hits


def test_a_fault_hits_its_api_and_node_only(driver, faults):
    rule = faults.add(Error(7), 'Metadata', node=1, times=None)
    send(driver, 0)
    driver.ask(FindCoordinatorRequest(coordinator_keys=['g']), node=1)
    assert rule.hits == 0
    send(driver, 1)
    assert rule.hits == 1


def test_a_fault_of_no_api_hits_all(driver, faults):
    rule = faults.add(Delay(0), times=None)
    send(driver)
    driver.ask(FindCoordinatorRequest(coordinator_keys=['g']))
    assert rule.hits == 2


def test_a_fault_can_be_put_off(driver, faults):
    faults.add(Error(7), 'Metadata', skip=2)
    send(driver)
    assert [code_of(send(driver)) for _ in range(3)] == [0, 7, 0]


def test_a_fault_can_be_chosen_by_the_request(driver, faults):
    rule = faults.add(Error(7), where=lambda call: call.request.topics == [], times=None)
    send(driver)
    assert rule.hits == 0
    driver.ask(MetadataRequest(topics=[]))
    assert rule.hits == 1


def test_several_faults_hit_one_request(driver, faults):
    faults.add(Delay(1.0), 'Metadata')
    faults.add(Error(7), 'Metadata')
    client = send(driver)
    assert client.receive() is None
    driver.advance(1.0)
    assert code_of(client) == 7


def test_a_fault_ends_with_its_block(driver, faults):
    with faults.add(Error(7), 'Metadata', times=None) as rule:
        send(driver)
    send(driver)
    assert rule.hits == 1
    faults.remove(rule)


def test_all_faults_can_be_forgotten(driver, faults):
    rule = faults.add(Error(7), times=None)
    faults.clear()
    send(driver)
    assert rule.hits == 0


def pattern(seed_of_rules, count=60):
    driver = Driver()
    faults = driver.state.control.faults
    faults._chance.seed(seed_of_rules)
    faults.schedule([DropRequest(), Error(7), Delay(0.1)], 0.5, 'Metadata')
    found = []
    for _ in range(count):
        client = send(driver)
        driver.advance(0.1)
        found.append('closed' if client.wire.is_closed else code_of(client))
    return found


def test_chance_repeats_with_its_seed():
    assert pattern(1) == pattern(1)
    assert pattern(1) != pattern(2)
    assert set(pattern(1)) == {'closed', 7, 0, 3}  # 3: the topic is about to be created


def test_a_probability_is_kept(driver, faults):
    rule = faults.add(Delay(0), 'Metadata', times=None, probability=0.25)
    for _ in range(400):
        send(driver)
    assert 60 < rule.hits < 140


def test_one_of_several_actions_is_taken(driver, faults):
    faults.add(OneOf((Error(7), Error(8))), 'Metadata', times=None)
    assert {code_of(send(driver)) for _ in range(30)} == {7, 8}


@pytest.mark.parametrize('action', [None, 6, Error])
def test_what_is_no_action_is_refused(faults, action):
    with pytest.raises(TypeError, match='must be one such as'):
        faults.add(action)


@pytest.mark.parametrize(
    'action',
    [
        Error(2**15),
        Error('NOT_LEADER'),
        ErrorAfterApplying(None),
        Delay(-1),
        Delay(math.nan),
        Delay('1'),
        Cut(-2),
        Truncate(0),
        Corrupt(0),
        Slow(0),
        Slow(-5),
        Throttle(-1),
        Throttle(2**31),
        OneOf([]),
        OneOf([Delay(-1)]),
    ],
)
def test_an_action_that_cannot_be_meant_is_refused(faults, action):
    with pytest.raises(ValueError, match='must (not )?be'):
        faults.add(action)


@pytest.mark.parametrize('probability', [-0.1, 1.1, float('nan')])
def test_what_is_no_probability_is_refused(faults, probability):
    with pytest.raises(ValueError, match='between 0 and 1'):
        faults.add(Error(6), probability=probability)


@pytest.mark.parametrize('name', ['ListOffsets', 'list_offsets', 'LIST_OFFSETS', 'listoffsets', 2])
def test_an_api_has_its_names(name):
    assert api_key(name) == 2


@pytest.mark.parametrize('name', ['Offsets', '', 4, -1, None])
def test_what_is_no_api_is_refused(faults, name):
    with pytest.raises(ValueError, match='unknown API'):
        api_key(name)
