"""One round of requests over several connections, in every way it can go wrong."""

from __future__ import annotations

import itertools

import pytest

from kafka.blocking.exchange import (
    Outcome,
    Request,
    address_of,
    ask,
    exchange,
    failed,
    in_order,
    request_tuples,
)
from kafka.errors import FailedPayloadsError, KafkaConnectionError, ProtocolError
from kafka.protocol import api
from kafka.protocol.commit import OffsetCommitRequest, OffsetCommitResponse
from kafka.protocol.frames import frame
from kafka.structs import BrokerMetadata, FetchRequest
from test.fake_sockets import Broker, Interrupted, connect

ADDRESSES = [('a', 1), ('b', 2), ('c', 3)]
REQUESTS = [Request(address, n, 'data%d' % n, []) for n, address in enumerate(ADDRESSES)]
GONE = KafkaConnectionError('gone')


class Connection:
    """Fails at one step, if any; knows whether an answer is still to come."""

    def __init__(self, trace, address, step=None, error=None):
        self.trace, self.address, self.step, self.error = trace, address, step, error
        self.owes = False

    def _do(self, step):
        self.trace.append((step, self.address[0]))
        if step == self.step:
            raise self.error

    def send(self, request_id, data):
        assert data == 'data%d' % request_id
        self.owes = True
        self._do('send')

    def recv(self, request_id):
        self._do('recv')
        self.owes = False
        return 'answer%d' % request_id

    def close(self):
        self.trace.append(('close', self.address[0]))
        self.owes = False


def run(failing=None, step=None, error=GONE, wants_answers=True):
    """Return (outcomes or the exception, trace, connections) of one round."""
    trace, conns = [], {}

    def connect(address):
        trace.append(('connect', address[0]))
        if (address, step) == (failing, 'connect'):
            raise error
        here = step if address == failing else None
        conns[address] = Connection(trace, address, here, error)
        return conns[address]

    try:
        result = exchange(REQUESTS, connect, wants_answers)
    except BaseException as caught:  # interrupts too
        result = caught
    return result, trace, list(conns.values())


def test_everything_is_sent_before_anything_is_read():
    outcomes, trace, _ = run()
    assert outcomes == [Outcome(r, 'answer%d' % r.request_id, None) for r in REQUESTS]
    assert [step for step, _ in trace] == ['connect', 'send'] * 3 + ['recv'] * 3


def test_requests_without_answers_are_not_waited_for():
    outcomes, trace, _ = run(wants_answers=False)
    assert outcomes == [Outcome(request, None, None) for request in REQUESTS]
    assert {step for step, _ in trace} == {'connect', 'send'}


@pytest.mark.parametrize(
    'failing, step', list(itertools.product(ADDRESSES, ['connect', 'send', 'recv']))
)
def test_connection_error_concerns_one_request(failing, step):
    outcomes, _, conns = run(failing, step)
    assert len(outcomes) == 3
    for request, answer, error in outcomes:
        if request.address == failing:
            assert (answer, error) == (None, GONE)
        else:
            assert (answer, error) == ('answer%d' % request.request_id, None)
    assert not any(conn.owes for conn in conns)


@pytest.mark.parametrize('error', [KeyboardInterrupt(), ProtocolError('x'), RuntimeError('x')])
@pytest.mark.parametrize(
    'failing, step', list(itertools.product(ADDRESSES, ['connect', 'send', 'recv']))
)
def test_any_other_error_leaves_no_answer_to_come(failing, step, error):
    result, _, conns = run(failing, step, error)
    assert result is error
    assert not any(conn.owes for conn in conns)


def test_connection_that_cannot_be_closed_hides_no_error():
    class Bare:
        def send(self, request_id, data):
            pass

        def recv(self, request_id):
            raise GONE

    outcomes = exchange(REQUESTS[:1], lambda address: Bare(), True)
    assert outcomes == [Outcome(REQUESTS[0], None, GONE)]


def commit(correlation_id):
    request = OffsetCommitRequest(group_id='g', topics=[])
    data = frame(api.encode_request(request, 0, correlation_id, 'c'))
    return Request(ADDRESSES[0], correlation_id, data, [])


@pytest.mark.parametrize('count', [1, 2])
def test_the_handler_of_a_signal_asks_over_a_connection_of_its_own(monkeypatch, count):
    answers = {8: lambda _: OffsetCommitResponse(topics=[])}
    ranges = {4: (0, 5), 8: (0, 9)}  # 4: of brokers with ZooKeeper
    sockets = [kind(answers, ranges=ranges) for kind in (Interrupted, Broker, Broker)]
    conn, network, sock = connect(monkeypatch, *sockets)
    found = []

    def handle():
        found.extend(exchange([commit(7)], lambda _: conn, True))
        found.append(ask(conn, 8, commit(8).data, bytes))

    conn.api_versions()
    sock.handler = handle
    requests = [commit(6), Request(None, 5, b'', [])][:count]
    outcomes = exchange(requests, lambda _: conn, True)
    answered = [outcomes[-1].answer, found[0].answer, found[1]]
    assert [int.from_bytes(answer[:4], 'big') for answer in answered] == [6, 7, 8]
    assert [made.closed for made in network.made] == [False, True, True]
    sock.handler = None
    assert exchange([commit(9)], lambda _: conn, True)[0].error is None
    assert len(network.made) == 3


def test_broker_without_an_address_is_a_connection_error():
    request = Request(None, 1, 'data1', [])
    ((_, answer, error),) = exchange([request], lambda address: pytest.fail('connects'), True)
    assert answer is None
    assert isinstance(error, KafkaConnectionError)


def test_addresses_are_text():
    assert address_of(BrokerMetadata(1, 'hóst'.encode(), 9)) == ('hóst', 9)
    assert address_of(BrokerMetadata(1, 'host', 9)) == ('host', 9)


@pytest.mark.parametrize('host', [None, b'', '', b'\xff\xfe'])
def test_a_host_that_is_none_gives_no_address(host):
    assert address_of(BrokerMetadata(1, host, 9)) is None


def test_a_leader_that_is_not_listed_has_no_address():
    assert address_of(BrokerMetadata(1, None, None)) is None
    assert address_of(BrokerMetadata(1, b'host', None)) is None


def test_payloads_are_listed_or_refused():
    payload = FetchRequest(b't', 0, 0, 0)
    assert request_tuples(iter([payload])) == [payload]
    for wrong in (None, 5, payload, [None]):
        with pytest.raises(TypeError, match='payloads'):
            request_tuples(wrong)


def test_responses_come_in_the_order_of_the_payloads():
    payloads = [FetchRequest(b't', p, 0, 0) for p in (2, 0)]
    assert in_order(payloads, {(b't', 0): 'zero', (b't', 2): None, (b't', 7): 'x'}) == [
        None,
        'zero',
    ]
    with pytest.raises(ProtocolError, match=r"b't', partition 0"):
        in_order(payloads, {(b't', 2): 'two'})


def test_failed_payload_knows_payload_and_cause():
    error = failed('payload', GONE)
    assert error == FailedPayloadsError('payload')
    assert str(error) == 'FailedPayloadsError: gone'
    assert (error.payload, error.__cause__) == ('payload', GONE)


def test_failed_payload_does_without_a_cause_that_is_no_exception():
    assert failed('payload', 'gone').__cause__ is None
