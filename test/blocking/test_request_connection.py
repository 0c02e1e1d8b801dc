"""RequestConnection: structs and futures over a KafkaConnection; and rounds of such requests."""

from __future__ import annotations

import copy
import threading

import pytest

from kafka.blocking import exchange as rounds
from kafka.blocking import request_connection
from kafka.blocking.exchange import Request
from kafka.blocking.request_connection import (
    AHEAD_BYTES,
    RequestConnection,
    StructCarrier,
    ask_for,
)
from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka.future import Future
from kafka.protocol import KafkaProtocol, create_message
from kafka.protocol.commit import OffsetCommitResponse, OffsetCommitResponseTopic
from kafka.protocol.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka.protocol.later import MessagesLater
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka.protocol.versioned import (
    MetadataRequest_v0,
    MetadataResponse_v0,
    OffsetCommitRequest_v0,
    ProduceRequest_v0,
    ProduceResponse_v0,
)
from kafka.structs import FetchRequestPayload, ProduceRequestPayload
from test.fake_sockets import Broker, FakeNetwork, FakeSocket, Interrupted
from test.raising import Interruption

METADATA = MetadataRequest_v0(['t'])
NOTHING = MetadataResponse_v0([], [])
ANSWERS = {3: lambda _: MetadataResponse(brokers=[], topics=[])}


def connect(monkeypatch, *sockets):
    """Return a connection and the network it is on."""
    network = FakeNetwork(monkeypatch, *sockets)
    return RequestConnection('host', 9, 0, b'client', 5), network


def test_it_connects_when_it_is_asked_to_and_only_once(monkeypatch):
    conn, network = connect(monkeypatch)
    assert not conn.connected()
    assert network.calls == []
    conn.connect()
    conn.connect()
    assert conn.connected()
    assert network.calls == [((('host', 9), 5), {})]
    assert repr(conn) == '<RequestConnection host=host port=9>'


def test_response_completes_the_future_of_its_request_in_order(monkeypatch):
    conn, network = connect(monkeypatch, Broker(ANSWERS))
    one, two = conn.send(METADATA), conn.send(METADATA)
    assert not one.is_done
    assert conn.recv() == NOTHING
    assert one.value == NOTHING
    assert not two.is_done
    conn.recv()
    assert two.succeeded()
    assert conn.recv() is None
    assert network.made[0].sent[0] == METADATA.framed(1, 'client')


def test_answers_that_came_together_are_read_together_and_handed_out_one_by_one(monkeypatch):
    answers = [bytes([0, 0, 0, 12, 0, 0, 0, number]) + bytes(8) for number in (1, 2)]
    conn, network = connect(monkeypatch, FakeSocket(b''.join(answers)))
    one, two = conn.send(METADATA), conn.send(METADATA)
    assert conn.recv() == NOTHING
    assert not two.is_done
    assert conn.recv() == NOTHING
    assert (one.value, two.value) == (NOTHING, NOTHING)
    assert network.made[0].asked == [AHEAD_BYTES]


@pytest.mark.parametrize(('size', 'arrives'), [(1, False), (4096, True)])
def test_a_slow_answer_has_the_time_for_each_4096_bytes(monkeypatch, size, arrives):
    """The time-out is 5 seconds here, and each read takes 3."""
    body = MetadataResponse_v0([(1, 'h' * 20000, 9)], []).encode()
    data = (len(body) + 4).to_bytes(4, 'big') + b'\x00\x00\x00\x01' + body
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    conn, network = connect(monkeypatch, FakeSocket(*pieces))
    now = iter(range(0, 10**6, 3))
    monkeypatch.setattr('kafka.conn.time.monotonic', lambda: next(now))
    conn.send(METADATA)
    assert (conn.recv() is not None) is arrives
    assert network.made[0].closed is not arrives


def test_request_without_answer_is_done_at_once(monkeypatch):
    conn, network = connect(monkeypatch, Broker({0: lambda _: None}, {0: (0, 2)}))
    future = conn.send(ProduceRequest_v0(0, 5, [('t', [(0, b'')])]), expect_response=False)
    assert (future.succeeded(), future.value) == (True, None)
    assert conn.recv() is None


def test_broker_that_dropped_the_version_is_asked_in_a_later_one(monkeypatch):
    def commit(request):
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name='t', partitions=[])])

    broker = Broker({8: commit})
    conn, network = connect(monkeypatch, broker)
    future = conn.send(OffsetCommitRequest_v0('g', [('t', [(0, 1, None)])]))
    conn.recv()
    assert future.value.topics == [('t', [])]
    assert broker.requests[-1][0] == 8
    assert broker.requests[-1][1] >= 2
    assert conn.api_versions()[8] == (2, 10)


def test_request_that_the_broker_cannot_be_asked_fails_alone(monkeypatch):
    conn, network = connect(monkeypatch, Broker(ANSWERS, {3: (0, 13)}))
    waiting = conn.send(METADATA)
    refused = conn.send(OffsetCommitRequest_v0('g', []))
    assert isinstance(refused.exception, UnsupportedVersionError)
    assert conn.recv() == NOTHING
    assert waiting.succeeded()


@pytest.mark.parametrize('end', [b'', OSError('reset')])
def test_lost_connection_fails_everything_that_waits(monkeypatch, end):
    conn, network = connect(monkeypatch, FakeSocket(end), Broker(ANSWERS))
    futures = [conn.send(METADATA), conn.send(METADATA)]
    assert conn.recv() is None
    assert [type(future.exception) for future in futures] == [KafkaConnectionError] * 2
    assert not conn.connected()
    future = conn.send(METADATA)
    conn.recv()
    assert future.succeeded()


def test_connection_that_cannot_be_made_fails_the_future(monkeypatch):
    conn, network = connect(monkeypatch, OSError('refused'))
    assert isinstance(conn.send(METADATA).exception, KafkaConnectionError)
    with pytest.raises(KafkaConnectionError):
        connect(monkeypatch, OSError('refused'))[0].connect()


def test_response_that_cannot_be_read_fails_its_future_and_ends_the_connection(monkeypatch):
    body = b'\x00\x00\x00\x01' + b'\xff\xff\xff\xfe' * 2  # correlation id, impossible counts
    script = len(body).to_bytes(4, 'big') + body
    conn, network = connect(monkeypatch, FakeSocket(script))
    one, two = conn.send(METADATA), conn.send(METADATA)
    assert conn.recv() is None
    assert isinstance(one.exception, ProtocolError)
    assert isinstance(two.exception, KafkaConnectionError)
    assert network.made[0].closed


def test_closing_fails_what_waits_and_the_next_use_connects_again(monkeypatch):
    conn, network = connect(monkeypatch, FakeSocket(), Broker(ANSWERS))
    future = conn.send(METADATA)
    conn.close()
    assert isinstance(future.exception, KafkaConnectionError)
    conn.reinit()
    assert conn.connected()
    assert len(network.made) == 2


@pytest.mark.parametrize('duplicate', [RequestConnection.copy, copy.deepcopy])
def test_copy_is_not_connected(monkeypatch, duplicate):
    conn, network = connect(monkeypatch)
    conn.connect()
    copied = duplicate(conn)
    assert not copied.connected()
    assert (copied.host, copied.port, copied.afi, copied.client_id, copied.timeout) == (
        'host',
        9,
        0,
        b'client',
        5,
    )


def test_each_thread_has_a_socket_of_its_own(monkeypatch):
    conn, network = connect(monkeypatch, Broker(ANSWERS), Broker(ANSWERS))
    conn.connect()
    seen = []

    def work():
        seen.append(conn.connected())
        seen.append(conn.send(METADATA).is_done)
        seen.append(conn.recv())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert seen == [False, False, NOTHING]
    assert len(network.made) == 2
    assert network.made[0].sent == []


# --- asking -------------------------------------------------------------------------------------


class Scripted:
    """A connection whose futures come to be what the script says, one by each recv()."""

    def __init__(self, *script, sends=None):
        self.script, self.sends = list(script), sends
        self.sent, self.waiting, self.closed = [], [], False

    def send(self, request, **options):
        self.sent.append((request, options))
        if self.sends is not None:
            raise self.sends
        future = Future()
        self.waiting.append(future)
        return future

    def recv(self):
        step = self.script.pop(0)
        if step is None:
            return
        future = self.waiting.pop(0)
        future.failure(step) if isinstance(step, Exception) else future.success(step)

    def close(self):
        self.closed = True


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleeping moves."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    found = Clock()
    monkeypatch.setattr(request_connection, 'time', found)
    return found


def test_answer_is_waited_for_and_decoded(clock):
    assert ask_for(Scripted(None, None, 'answer'), 'request', str.upper, 5) == 'ANSWER'
    assert clock.now > 0


def test_failed_future_is_raised():
    with pytest.raises(KafkaTimeoutError):
        ask_for(Scripted(KafkaTimeoutError()), 'request', str, 5)


def test_answer_that_does_not_come_is_not_waited_for_without_end(clock):
    with pytest.raises(KafkaConnectionError, match='within 5 s'):
        ask_for(Scripted(*[None] * 6000), 'request', str, 5)
    assert ask_for(Scripted(*[None] * 6000, 'late'), 'request', str, None) == 'late'


def exchange(conns, wants_answers=True):
    """Send one request to each of {address: connection}; return {host: (answer, error)}."""
    requests = [Request(address, 0, 'request', []) for address in conns]

    def connect(address):
        if isinstance(conns[address], Exception):
            raise conns[address]
        return conns[address]

    outcomes = rounds.exchange(requests, connect, wants_answers, StructCarrier(5))
    return {o.request.address: (o.answer, o.error) for o in outcomes}


@pytest.mark.parametrize('count', [1, 2])
def test_the_handler_of_a_signal_asks_over_a_connection_of_its_own(monkeypatch, count):
    sock = Interrupted(ANSWERS)
    conn, network = connect(monkeypatch, sock, Broker(ANSWERS), Broker(ANSWERS))
    requests = [Request(('a', 1), 0, METADATA, []), Request(None, 1, METADATA, [])][:count]
    found = []

    def handle():
        found.append(ask_for(conn, METADATA, lambda answer: answer, 5))
        found.append(
            rounds.exchange(requests[:1], lambda _: conn, True, StructCarrier(5))[0].answer
        )

    sock.handler = handle
    outcomes = rounds.exchange(requests, lambda _: conn, True, StructCarrier(5))
    assert [outcomes[-1].answer, *found] == [NOTHING] * 3
    assert [len(made.requests) for made in network.made] == [1, 1, 1]
    assert [made.closed for made in network.made] == [False, True, True]
    assert ask_for(conn, METADATA, lambda answer: answer, 5) == NOTHING
    assert len(network.made) == 3


def test_everything_is_sent_before_an_answer_is_read():
    seen = []

    class Noting(Scripted):
        def send(self, request, **options):
            seen.append('send')
            return super().send(request, **options)

        def recv(self):
            seen.append('recv')
            super().recv()

    found = exchange({('a', 1): Noting('one'), ('b', 1): Noting('two')})
    assert found == {('a', 1): ('one', None), ('b', 1): ('two', None)}
    assert seen == ['send', 'send', 'recv', 'recv']


def test_failure_of_one_connection_leaves_the_others_alone():
    refused, gone, lost = KafkaConnectionError('1'), KafkaConnectionError('2'), Exception('3')
    found = exchange(
        {
            ('a', 1): refused,
            ('b', 1): Scripted(sends=gone),
            ('c', 1): Scripted(lost),
            ('d', 1): Scripted('fine'),
        }
    )
    assert found == {
        ('a', 1): (None, refused),
        ('b', 1): (None, gone),
        ('c', 1): (None, lost),
        ('d', 1): ('fine', None),
    }


def test_broker_without_address_is_a_failed_connection():
    ((answer, error),) = exchange({None: Scripted()}).values()
    assert isinstance(error, KafkaConnectionError)


def test_connection_that_stays_silent_is_given_up(clock):
    conn = Scripted(*[None] * 6000)
    ((answer, error),) = exchange({('a', 1): conn}).values()
    assert isinstance(error, KafkaConnectionError)
    assert conn.closed


def test_error_that_another_try_would_meet_is_raised_and_owed_answers_are_given_up():
    bad, owing = Scripted(ProtocolError('nonsense')), Scripted('never read')
    with pytest.raises(ProtocolError):
        exchange({('a', 1): bad, ('b', 1): owing})
    assert owing.closed


def test_answers_that_nobody_gives_are_not_waited_for():
    conn = Scripted()
    assert exchange({('a', 1): conn}, wants_answers=False) == {('a', 1): (None, None)}
    assert conn.sent == [('request', {'expect_response': False})]
    assert not conn.closed


# --- records ------------------------------------------------------------------------------------


def log_broker(monkeypatch):
    """Return a connection to a broker with one partition, and the batches written to it."""
    written = []

    def produce(request):
        written.append(bytes(request.topic_data[0].partition_data[0].records))
        part = PartitionProduceResponse(index=0, error_code=0, base_offset=7)
        return ProduceResponse(
            responses=[TopicProduceResponse(name='t', partition_responses=[part])]
        )

    def fetch(request):
        part = PartitionData(partition_index=0, error_code=0, high_watermark=2, records=written[-1])
        return FetchResponse(responses=[FetchableTopicResponse(topic='t', partitions=[part])])

    conn, _ = connect(monkeypatch, Broker({0: produce, 1: fetch}))
    return conn, written


@pytest.mark.parametrize('kind', ['later', 'bytes'])
def test_records_go_to_a_new_broker_and_come_back(monkeypatch, kind):
    conn, written = log_broker(monkeypatch)
    messages = [create_message(b'a', b'k'), create_message(b'b')]
    if kind == 'later':
        messages = MessagesLater((b'a', b'b'), (b'k', None), 0, None, lambda: 1 / 0)
    payload = ProduceRequestPayload('t', 0, messages)
    produced = conn.send(KafkaProtocol.encode_produce_request([payload]))
    conn.recv()
    assert produced.value == ProduceResponse_v0([('t', [(0, 0, 7)])])
    asked = conn.send(KafkaProtocol.encode_fetch_request([FetchRequestPayload('t', 0, 0, 4096)]))
    conn.recv()
    (answer,) = KafkaProtocol.decode_fetch_response(asked.value)
    assert answer[:4] == ('t', 0, 0, 2)
    assert [(m.offset, m.message.key, m.message.value) for m in answer.messages] == [
        (0, b'k', b'a'),
        (1, None, b'b'),
    ]
    assert written[0][16] == 2  # magic


def test_connections_are_given_up_where_sending_is_interrupted():
    owing, torn = Scripted('never read'), Scripted(sends=Interruption())
    with pytest.raises(Interruption):
        exchange({('a', 1): owing, ('b', 1): torn})
    assert (owing.closed, torn.closed) == (True, True)


def test_the_carrier_of_structs_says_how_long_it_waits():
    assert repr(StructCarrier(5)) == '<StructCarrier timeout=5>'
