"""BrokerConnection, driven by its caller: scripted sockets, then the embedded broker."""

from __future__ import annotations

import errno
import logging
import socket
import time

import pytest

from kafka.common import ConnectionError as KafkaConnectionError
from kafka.common import NodeNotReadyError, TooManyInFlightRequests
from kafka.conn import BrokerConnection, ConnectionStates, InFlightRequest
from kafka.errors import (
    CorrelationIdError,
    RequestTimedOutError,
    UnknownError,
    UnrecognizedBrokerVersion,
    UnsupportedVersionError,
)
from kafka.protocol.admin import ApiVersionRequest, ListGroupsRequest
from kafka.protocol.api import RequestHeader
from kafka.protocol.commit import GroupCoordinatorRequest, GroupCoordinatorResponse
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.frames import frame
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.message import Message
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.offset import OffsetRequest
from kafka.protocol.produce import ProduceRequest
from kafka.testing import Cluster
from test.hostile_servers import nobody

BUSY = BlockingIOError(errno.EAGAIN, 'busy')


class Script:
    """A socket with the methods that a connection may count on, and none besides."""

    def __init__(self):
        self.connects = []  # codes
        self.sends = []  # how many bytes each call takes; all of them without an entry
        self.receives = []  # bytes, or errors to raise; nothing is there without an entry
        self.sent = b''
        self.closes = 0
        self.options = []
        self.blocking = []
        self.made = []

    def setsockopt(self, *option):
        self.options.append(option)

    def setblocking(self, flag):
        self.blocking.append(flag)

    def connect_ex(self, address):
        self.made.append(address)
        return self.connects.pop(0) if self.connects else 0

    def send(self, data):
        taken = self.sends.pop(0) if self.sends else len(data)
        if isinstance(taken, Exception):
            raise taken
        self.sent += bytes(data[:taken])
        return taken

    def recv(self, size):
        item = self.receives.pop(0) if self.receives else BUSY
        if isinstance(item, Exception):
            raise item
        if len(item) > size:
            self.receives.insert(0, item[size:])
        return item[:size]

    def close(self):
        self.closes += 1


@pytest.fixture
def sock(monkeypatch):
    script = Script()
    monkeypatch.setattr(socket, 'socket', lambda family, kind: script)
    return script


@pytest.fixture
def conn(sock):
    return BrokerConnection('localhost', 9092, socket.AF_INET)


def answer(correlation_id, body):
    return frame(correlation_id.to_bytes(4, 'big') + body)


EMPTY = MetadataResponse[0]([], [])


@pytest.mark.parametrize(
    ('codes', 'states'),
    [
        ([errno.EINPROGRESS, errno.EALREADY], ['CONNECTING', 'CONNECTING']),
        ([0], ['CONNECTED']),
        ([errno.EINPROGRESS, errno.ECONNRESET], ['CONNECTING', 'DISCONNECTED']),
        (
            [errno.EINPROGRESS, errno.EALREADY, errno.EISCONN],
            ['CONNECTING', 'CONNECTING', 'CONNECTED'],
        ),
    ],
)
def test_each_connect_is_one_connect_ex(sock, conn, codes, states):
    sock.connects = list(codes)
    assert conn.state is ConnectionStates.DISCONNECTED
    for state in states:
        assert conn.connect() is getattr(ConnectionStates, state)
    assert sock.made == [('localhost', 9092)] * len(codes)
    assert sock.sent == b''


def test_an_attempt_that_takes_too_long_is_given_up(sock, conn):
    sock.connects = [errno.EINPROGRESS, errno.EALREADY]
    conn.connect()
    conn.last_attempt = 0
    assert conn.connect() is ConnectionStates.DISCONNECTED
    assert sock.closes == 1


def test_blacked_out(conn):
    assert conn.blacked_out() is False
    conn.last_attempt = time.time()
    assert conn.blacked_out() is True
    conn.state = ConnectionStates.CONNECTED
    assert conn.blacked_out() is False


def test_what_a_program_assigns_holds_from_the_next_attempt(sock, conn):
    sock.connects = [errno.ECONNREFUSED, 0]
    conn.connect()
    conn.hostname, conn.port = 'other', 9093
    conn.config = dict(conn.config, send_buffer_bytes=7)
    conn.connect()
    assert sock.made == [('localhost', 9092), ('other', 9093)]
    assert conn.host == 'other' and conn.connected()
    assert sock.options[-1] == (socket.SOL_SOCKET, socket.SO_SNDBUF, 7)


def test_an_assigned_address_family_holds_from_the_next_attempt(monkeypatch, sock, conn):
    asked = []
    monkeypatch.setattr(
        socket,
        'getaddrinfo',
        lambda *where: asked.append(where) or [(socket.AF_INET, 1, 6, '', ('127.0.0.9', 9092))],
    )
    conn.afi = socket.AF_UNSPEC
    conn.connect()
    assert asked == [('localhost', 9092, 0, socket.SOCK_STREAM)]
    assert sock.made == [('127.0.0.9', 9092)]


def test_assigned_options_hold_for_the_next_request(sock, conn):
    """The time-out of a write, and the client id of a request for the versions."""
    waits = []
    sock.settimeout = waits.append
    conn.connect()
    conn.config = dict(conn.config, request_timeout_ms=1500, client_id='renamed')
    conn.send(MetadataRequest[0]([]), expect_response=False)
    assert waits == [1.5]
    with pytest.raises(UnrecognizedBrokerVersion):
        conn.check_version(timeout=0)
    assert waits == [1.5, 1.5] and sock.sent.count(b'renamed') >= 2


def test_a_socket_that_cannot_be_created_for_the_next_try_is_told_with_its_cause(
    monkeypatch, sock, conn
):
    """A broker that closes at ApiVersions is asked again on another socket."""
    conn.connect()
    sock.receives = [b'']

    def refuse(*_):
        raise OSError(errno.EMFILE, 'Too many open files')

    monkeypatch.setattr(socket, 'socket', refuse)
    with pytest.raises(UnrecognizedBrokerVersion, match='cannot create a socket: .*Too many open'):
        conn.check_version(1)
    (attempt,) = conn.attempts
    assert attempt.stage == 'TCP' and conn.disconnected() and sock.closes == 1
    assert str(attempt.error) == (
        'ConnectionError: %s: cannot create a socket: [Errno 24] Too many open files' % conn
    )


def test_connecting_logs_errors_of_the_socket_for_debugging(caplog, sock, conn):
    conn.asks_versions = True
    conn.connect()
    sock.receives = [ConnectionResetError('reset')]

    def close():
        raise OSError('closed already')

    sock.close = close
    with caplog.at_level(logging.DEBUG, 'kafka.conn'):
        conn.connect()
    told = [each.getMessage() for each in caplog.records if each.name == 'kafka.conn']
    assert told[:2] == ['%s: reset' % conn, '%s: closing the socket: closed already' % conn]


class Counting:
    """A socket that a program puts in the place of the connection's, to count the bytes sent."""

    def __init__(self, sock):
        self._sock = sock
        self.sent_bytes = 0

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def send(self, data):
        sent = self._sock.send(data)
        self.sent_bytes += sent
        return sent


def test_programs_of_1_x_read_and_replace_the_socket(sock):
    seen = []
    conn = BrokerConnection(
        'localhost', 9092, socket.AF_INET, state_change_callback=lambda c: seen.append(c._sock)
    )
    assert conn._sock is None
    conn.connect()
    assert seen == [sock, sock]
    conn._sock = counting = Counting(sock)
    assert conn._sock is conn.sock is counting
    future = conn.send(MetadataRequest[0]([]))
    assert counting.sent_bytes == len(sock.sent) > 0
    sock.receives = [answer(1, EMPTY.encode())]
    conn.recv()
    assert future.succeeded()
    conn.close()
    assert conn._sock is None and sock.closes == 1


def test_what_programs_of_1_4_ask_for_besides():
    conn = BrokerConnection('localhost', 9092, socket.AF_INET, node_id=7)
    assert conn.node_id == 7
    assert conn.state is not ConnectionStates.AUTHENTICATING


def test_predicates_look_at_the_state_alone(conn):
    for name, truths in {
        'DISCONNECTED': (False, False, True),
        'CONNECTING': (False, True, False),
        'HANDSHAKE': (False, True, False),
        'CONNECTED': (True, False, False),
    }.items():
        conn.state = getattr(ConnectionStates, name)
        assert (conn.connected(), conn.connecting(), conn.disconnected()) == truths


def test_can_send_more_counts_whatever_is_there(conn):
    for _ in range(conn.config['max_in_flight_requests_per_connection']):
        assert conn.can_send_more() is True
        conn.in_flight_requests.append('foo')
    assert conn.can_send_more() is False


@pytest.mark.parametrize(
    ('state', 'error'),
    [
        (ConnectionStates.CONNECTING, NodeNotReadyError),
        (ConnectionStates.HANDSHAKE, NodeNotReadyError),
        (ConnectionStates.DISCONNECTED, KafkaConnectionError),
        (ConnectionStates.CONNECTED, TooManyInFlightRequests),
    ],
)
def test_what_cannot_be_sent_fails_before_it_is_looked_at(conn, state, error):
    conn.state = state
    conn.in_flight_requests.extend(['foo'] * 5)
    future = conn.send('foobar')
    assert future.failed() is True
    assert isinstance(future.exception, error)


def expected_bytes(request, correlation_id=1):
    client_id = BrokerConnection.DEFAULT_CONFIG['client_id']
    header = RequestHeader(request, correlation_id=correlation_id, client_id=client_id)
    return frame(header.encode() + request.encode())


def test_a_request_is_one_frame_however_the_socket_takes_it(sock, conn):
    conn.connect()
    request = MetadataRequest[0]([])
    size = len(expected_bytes(request)) - 4
    sock.sends = [4, size // 3, size // 3, size // 3, size % 3]
    future = conn.send(request)
    assert sock.sent == expected_bytes(request)
    assert not future.is_done
    (entry,) = conn.in_flight_requests
    assert isinstance(entry, InFlightRequest)
    assert entry.request is request
    assert entry.response_type is MetadataResponse[0]
    assert (entry.correlation_id, entry.future) == (1, future)
    assert time.time() - entry.timestamp < 60
    assert sock.blocking[-1] is False


def test_a_request_without_an_answer(sock, conn):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]), expect_response=False)
    assert (future.succeeded(), future.value, len(conn.in_flight_requests)) == (True, None, 0)
    assert conn.send(ProduceRequest[0](0, 1, [])).succeeded()  # the request knows


def test_an_error_in_writing_closes_once(sock, conn):
    conn.connect()
    sock.sends = [4, ConnectionResetError()]
    future = conn.send(MetadataRequest[0]([]))
    assert isinstance(future.exception, KafkaConnectionError)
    assert sock.closes == 1
    assert conn.state is ConnectionStates.DISCONNECTED


def test_a_value_that_cannot_be_sent_is_raised_and_changes_nothing(sock, conn):
    conn.connect()
    with pytest.raises(ValueError):
        conn.send(ProduceRequest[0](1, 'soon', []))
    assert conn.connected()
    assert (sock.sent, len(conn.in_flight_requests)) == (b'', 0)


@pytest.mark.parametrize('pieces', [1, 4, 5, 1000])
def test_recv_returns_the_response_and_completes_its_future(sock, conn, pieces):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    data = answer(1, EMPTY.encode())
    for start in range(0, len(data), pieces):
        sock.receives += [data[start : start + pieces], BUSY]
    found = [response for response in (conn.recv() for _ in range(2 * len(data))) if response]
    assert found == [EMPTY]
    assert future.value is found[0]
    assert not conn.in_flight_requests
    assert conn.recv() is None


def test_correlation_ids_count_up_and_around(sock, conn):
    conn.connect()
    conn._correlation_id = 2**31 - 2
    for expected in (2**31 - 1, 0, 1):
        conn.send(MetadataRequest[0]([]))
        assert conn.in_flight_requests[-1].correlation_id == expected


@pytest.mark.parametrize('end', [b'', ConnectionResetError()])
def test_an_end_of_the_stream_closes_within_the_call(sock, conn, end):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    sock.receives = [end]
    assert conn.connected()
    assert conn.recv() is None
    assert conn.disconnected()
    assert isinstance(future.exception, KafkaConnectionError)
    assert sock.closes == 1
    assert conn.last_failure > 0


def test_a_peer_that_goes_away_is_noticed_by_recv():
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen(5)
    conn = BrokerConnection('127.0.0.1', listener.getsockname()[1], socket.AF_INET)
    while not conn.connected():
        conn.connect()
    conn.send(MetadataRequest[0]([]))
    listener.close()
    assert conn.connected()
    conn.recv()
    assert conn.disconnected()


def test_an_answer_to_something_else_fails_and_closes(sock, conn):
    conn.connect()
    first, second = (conn.send(MetadataRequest[0]([])) for _ in range(2))
    sock.receives = [answer(7, EMPTY.encode())]
    assert conn.recv() is None
    assert isinstance(first.exception, CorrelationIdError)
    assert second.failed()
    assert conn.disconnected()


@pytest.mark.parametrize(('version', 'is_taken'), [((0, 8, 2), True), ((0, 9), False)])
def test_brokers_of_0_8_2_answer_for_coordinators_with_0(sock, version, is_taken):
    conn = BrokerConnection('localhost', 9092, socket.AF_INET, api_version=version)
    conn.connect()
    future = conn.send(GroupCoordinatorRequest[0]('group'))
    response = GroupCoordinatorResponse[0](0, 1, 'host', 9)
    sock.receives = [answer(0, response.encode())]
    assert conn.recv() == (response if is_taken else None)
    assert future.succeeded() is is_taken


def test_an_answer_that_cannot_be_read(sock, conn):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    sock.receives = [answer(1, b'\0\0\0\x05')]
    assert conn.recv() is None
    assert isinstance(future.exception, UnknownError)
    assert conn.disconnected()


def test_an_answer_that_is_late(sock, conn):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    assert not conn.requests_timed_out()
    conn.in_flight_requests[0] = conn.in_flight_requests[0]._replace(timestamp=1)
    assert conn.requests_timed_out()
    assert conn.recv() is None
    assert conn.disconnected()
    conn.in_flight_requests.append('foo')
    assert not conn.requests_timed_out()
    assert isinstance(future.exception, (RequestTimedOutError, type(None)))


def test_requests_that_fail_together_have_errors_of_their_own(sock, conn):
    """Or each that is raised would add to the traceback of all."""
    conn.connect()
    futures = [conn.send(MetadataRequest[0]([])) for _ in range(3)]
    conn.close(KafkaConnectionError('gone'))
    assert {str(future.exception) for future in futures} == {'ConnectionError: gone'}
    assert len({id(future.exception) for future in futures}) == 3


def test_close_fails_what_waits_with_the_error_given(sock, conn):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    error = ValueError('mine')
    conn.close(error)
    conn.close()
    assert future.exception is error
    assert sock.closes == 1
    assert conn.connect() is ConnectionStates.CONNECTED


def test_what_waits_fails_when_it_is_not_connected(sock, conn):
    conn.connect()
    future = conn.send(MetadataRequest[0]([]))
    conn.state = ConnectionStates.DISCONNECTED
    assert conn.recv() is None
    assert isinstance(future.exception, KafkaConnectionError)


def test_a_state_that_was_assigned_needs_a_socket_to_send(conn):
    conn.state = ConnectionStates.CONNECTED
    assert isinstance(conn.send(MetadataRequest[0]([])).exception, KafkaConnectionError)
    conn.state = ConnectionStates.CONNECTED
    assert conn.recv() is None
    assert conn.disconnected()


def test_each_change_of_state_is_told(sock):
    seen = []
    conn = BrokerConnection(
        'localhost',
        9092,
        socket.AF_INET,
        state_change_callback=lambda conn: seen.append(conn.state),
        no_such_option=1,
        receive_buffer_bytes=4096,
    )
    conn.connect()
    conn.close()
    states = ConnectionStates
    assert seen == [
        states.CONNECTING,
        states.CONNECTED,
        states.DISCONNECTING,
        states.DISCONNECTED,
    ]
    assert (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096) in sock.options
    assert repr(conn) == str(conn) == '<BrokerConnection host=localhost/localhost port=9092>'


def test_a_name_with_several_addresses(sock, monkeypatch):
    found = [
        (socket.AF_INET6, 1, 6, '', ('::1', 9092, 0, 0)),
        (socket.AF_INET, 1, 6, '', ('127.0.0.1', 9092)),
    ]
    monkeypatch.setattr(socket, 'getaddrinfo', lambda *arguments: list(found))
    conn = BrokerConnection('localhost', 9092, socket.AF_UNSPEC)
    sock.connects = [errno.ECONNREFUSED] * 3
    for _ in range(3):
        conn.connect()
    assert [address[0] for address in sock.made] == ['::1', '127.0.0.1', '::1']
    assert repr(conn) == '<BrokerConnection host=localhost/::1 port=9092>'


def test_a_name_that_cannot_be_resolved(monkeypatch):
    def fail(*arguments):
        raise socket.gaierror(-2, 'Name or service not known')

    monkeypatch.setattr(socket, 'getaddrinfo', fail)
    conn = BrokerConnection('nowhere', 9092, socket.AF_UNSPEC)
    with pytest.raises(socket.gaierror, match='nowhere:9092'):
        conn.connect()
    assert conn.disconnected()


def test_programs_of_1_3_get_lists_and_complete_futures_themselves(sock, conn):
    assert conn.connect_blocking(timeout=5) is True
    future = conn.send(MetadataRequest[0]([]), blocking=True)
    assert conn.send_pending_requests() is True
    assert conn.recv() == []
    sock.receives = [answer(1, EMPTY.encode())]
    ((response, of),) = conn.recv()
    assert (response, of, of.is_done) == (EMPTY, future, False)
    assert conn.connection_delay() > 10**6
    conn.close()
    assert 0 <= conn.connection_delay() <= 50


# ---------------------------------------------------------------- brokers


@pytest.fixture(params=['0.8.2', '0.9', '0.10.0', '2.8', '4.4'])
def broker(request):
    with Cluster(version=request.param) as cluster:
        yield request.param, cluster.bootstrap


def ask(conn, request):
    future = conn.send(request)
    ends_at = time.monotonic() + 20
    while not future.is_done and time.monotonic() < ends_at:
        if conn.recv() is None:
            time.sleep(0.001)
    assert future.is_done
    if future.failed():
        raise future.exception
    return future.value


def connected_to(address, **configs):
    host, port = address.rsplit(':', 1)
    conn = BrokerConnection(host, int(port), socket.AF_INET, **configs)
    assert conn._connect_within(20)
    return conn


def test_versions_of_brokers_and_what_is_translated(broker):
    """A program of 1.2.1 writes, reads and looks up offsets at brokers of every age."""
    release, address = broker
    conn = connected_to(address)
    try:
        version = conn.check_version(timeout=20)
        numbers = tuple(map(int, release.split('.')))
        assert version >= numbers[:2]
        assert version == ('0.10' if release == '0.10.0' else release)
        assert conn.connected()
        assert ask(conn, MetadataRequest[0](['topic'])).topics
        ends_at = time.monotonic() + 20
        while time.monotonic() < ends_at:
            ((error, _, partitions),) = ask(conn, MetadataRequest[0](['topic'])).topics
            if error == 0 and partitions and partitions[0][2] >= 0:
                break
        messages = [(0, Message(b'value').encode())]
        produced = ask(conn, ProduceRequest[0](1, 5000, [('topic', [(0, messages)])]))
        assert produced.topics == [('topic', [(0, 0, 0)])]
        asked = FetchRequest[0](-1, 100, 1, [('topic', [(0, 0, 10000)])])
        ((_, ((partition, error, highwater, found),)),) = ask(conn, asked).topics
        assert (partition, error, highwater) == (0, 0, 1)
        assert [(offset, message.value) for offset, _, message in found] == [(0, b'value')]
        latest = ask(conn, OffsetRequest[0](-1, [('topic', [(0, -1, 1)])]))
        assert latest.topics == [('topic', [(0, 0, [1])])]
    finally:
        conn.close()


def test_a_version_between_is_lifted_to_what_there_is():
    """ListOffsets 1 and JoinGroup 0 are translated or served; an unknown API says so."""
    with Cluster(version='4.4') as cluster:
        conn = connected_to(cluster.bootstrap)
        try:
            assert conn.versions is None
            conn.check_version(timeout=20)
            assert conn.versions == conn.get_api_versions()
            assert ask(conn, HeartbeatRequest[0]('group', 1, 'me')).error_code in (15, 16, 25)
            assert ask(conn, ListGroupsRequest[0]()).error_code == 0
            assert ask(conn, ApiVersionRequest[0]()).error_code == 0
            conn._framing.ranges.pop(12)
            future = conn.send(HeartbeatRequest[0]('group', 1, 'me'))
            assert isinstance(future.exception, UnsupportedVersionError)
        finally:
            conn.close()


def test_a_peer_that_says_nothing_has_no_version():
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen(5)
    conn = BrokerConnection('127.0.0.1', listener.getsockname()[1], socket.AF_INET)
    try:
        with pytest.raises(UnrecognizedBrokerVersion):
            conn.check_version(timeout=1)
        listener.close()
        with pytest.raises(NodeNotReadyError):
            conn.check_version(timeout=0.1)
    finally:
        listener.close()


def test_only_the_last_attempts_are_kept():
    with nobody() as address:
        port = int(address.rpartition(':')[2])
        conn = BrokerConnection('127.0.0.1', port, socket.AF_INET, reconnect_backoff_ms=0)
        for _ in range(40):
            conn.connect()
        assert len(conn.attempts) == 10


@pytest.mark.parametrize('family', [socket.AF_UNSPEC, socket.AF_INET])
@pytest.mark.parametrize('port', [65536, 65536 + 9092, -1])
def test_a_port_that_there_is_not_is_never_another_one(family, port):
    conn = BrokerConnection('127.0.0.1', port, family)
    with pytest.raises(socket.gaierror, match='127.0.0.1:%d: ports end at 65535' % port):
        conn.connect()
    assert conn.disconnected() and conn.attempts[0].stage == 'DNS'
    conn.close()
