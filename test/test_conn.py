"""KafkaConnection as a connection, on scripted sockets."""

from __future__ import annotations

import copy
import pickle
import socket
import threading

import pytest

from kafka import conn
from kafka.conn import (
    DEFAULT_KAFKA_PORT,
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    KafkaConnection,
)
from kafka.errors import FrameError, KafkaConnectionError, ProtocolError
from kafka.protocol.frames import frame
from test.fake_sockets import FakeNetwork, FakeSocket, connect


def test_a_star_import_brings_the_connection_of_1_x_too():
    names = {}
    exec('from kafka.conn import *', names)
    for name in ('BrokerConnection', 'ConnectionStates', 'InFlightRequest', 'KafkaConnection'):
        assert names[name] is getattr(conn, name)


def test_defaults():
    assert (DEFAULT_KAFKA_PORT, DEFAULT_SOCKET_TIMEOUT_SECONDS) == (9092, 120)


# ---------------------------------------------------------------- the connection


def test_it_connects_once_in_the_constructor_and_says_nothing(monkeypatch):
    _, network, sock = connect(monkeypatch)
    assert network.calls == [((('host', 9), 5), {})]
    assert (sock.sent, sock.asked, sock.calls) == ([], [], [])


@pytest.mark.parametrize('timeout', [None, 0.5, 120])
def test_the_timeout_goes_to_the_socket_as_it_is(monkeypatch, timeout):
    network = FakeNetwork(monkeypatch)
    KafkaConnection('host', 9, timeout)
    assert network.calls == [((('host', 9), timeout), {})]


def test_the_default_timeout_is_two_minutes(monkeypatch):
    network = FakeNetwork(monkeypatch)
    assert KafkaConnection('host', 9).timeout == 120
    assert network.calls == [((('host', 9), 120), {})]


@pytest.mark.parametrize(
    'error',
    [OSError('refused'), socket.gaierror('who'), OverflowError('port'), UnicodeError('name')],
)
def test_a_failed_connect_is_a_connection_error_that_names_the_broker(monkeypatch, error):
    FakeNetwork(monkeypatch, error)
    with pytest.raises(KafkaConnectionError, match='Kafka @ host:9 went away') as caught:
        KafkaConnection('host', 9)
    assert str(error) in str(caught.value)


@pytest.mark.parametrize(
    ('arguments', 'error', 'named'),
    [
        ((None, 9, 5), TypeError, 'host'),
        (('host', None, 5), TypeError, 'port'),
        (('host', 9, 'five'), TypeError, 'timeout'),
        (('host', 9, -1), ValueError, 'timeout'),
        (('host', 9, float('nan')), ValueError, 'timeout'),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(monkeypatch, arguments, error, named):
    network = FakeNetwork(monkeypatch)
    with pytest.raises(error, match=named):
        KafkaConnection(*arguments)
    assert network.calls == []


@pytest.mark.parametrize('port', [65536, 70000, '70000', 2**31 - 1])
def test_a_port_beyond_the_last_is_not_connected_to(monkeypatch, port):
    """The resolver takes it modulo 65536, which is another program's port."""
    network = FakeNetwork(monkeypatch)
    with pytest.raises(KafkaConnectionError, match='host:%s: ports end at 65535' % port):
        KafkaConnection('host', port)
    assert network.calls == []


@pytest.mark.parametrize(('seconds', 'bytes_read'), [(1, 10), (6, 5)])
def test_an_answer_that_trickles_in_is_given_up(monkeypatch, seconds, bytes_read):
    """One byte before each time-out of the socket would hold a program for years."""
    conn, _, sock = connect(monkeypatch, FakeSocket(b'\x00\x00\x10\x00', *[b'x'] * 4096))
    now = iter(range(0, 10**6, seconds))
    monkeypatch.setattr('kafka.conn.time.monotonic', lambda: next(now))
    with pytest.raises(KafkaConnectionError, match='too slowly'):
        conn.recv(1)
    assert sock.closed
    assert len(sock.asked) <= bytes_read


def test_an_answer_may_take_long_as_long_as_it_comes(monkeypatch):
    """The time-out, 5 seconds here, is for 4096 bytes, not for the whole."""
    pieces = [b'x' * 4096] * 10
    conn, _, _ = connect(monkeypatch, FakeSocket(frame(b''.join(pieces))[:4], *pieces))
    now = iter(range(0, 10**6, 6))
    monkeypatch.setattr('kafka.conn.time.monotonic', lambda: next(now))
    assert conn.recv(1) == b''.join(pieces)


def test_what_is_sent_passes_unchanged(monkeypatch):
    conn, _, sock = connect(monkeypatch)
    conn.send(1, b'test payload')
    assert sock.sent == [b'test payload']


@pytest.mark.parametrize('payload', ['text', None, 7])
def test_a_payload_of_a_wrong_type_is_named(monkeypatch, payload):
    conn, _, _ = connect(monkeypatch)
    with pytest.raises(TypeError, match='payload'):
        conn.send(1, payload)


def test_recv_without_send_returns_the_next_body_unchanged(monkeypatch):
    conn, _, sock = connect(monkeypatch, FakeSocket(frame(b'\x00\x00\x00\x01body')))
    assert conn.recv(1) == b'\x00\x00\x00\x01body'
    assert sock.sent == []


@pytest.mark.parametrize('body', [b'', b'x', b'abc'])
def test_bodies_too_short_for_a_correlation_id_pass_too(monkeypatch, body):
    conn, _, _ = connect(monkeypatch, FakeSocket(frame(body)))
    conn.send(1, b'x')
    assert conn.recv(1) == body


def test_the_length_is_read_by_its_own_call_and_bodies_in_pieces_of_4096(monkeypatch):
    conn, _, sock = connect(monkeypatch, FakeSocket(frame(b'x' * 5000)))
    assert len(conn.recv(1)) == 5000
    assert sock.asked == [4, 4096, 904]


def test_two_queued_responses_are_returned_by_two_calls(monkeypatch):
    conn, _, _ = connect(monkeypatch, FakeSocket(frame(b'first') + frame(b'second')))
    assert [conn.recv(1), conn.recv(2)] == [b'first', b'second']


def test_responses_may_arrive_byte_by_byte(monkeypatch):
    data = frame(b'body')
    conn, _, _ = connect(monkeypatch, FakeSocket(*[data[i : i + 1] for i in range(len(data))]))
    assert conn.recv(1) == b'body'


@pytest.mark.parametrize(
    'script',
    [
        [b''],
        [b'\x00\x00', b''],
        [b'\x00\x00\x00\x09', b'half', b''],
        [OSError('reset')],
        [socket.timeout('timed out')],
    ],
)
def test_a_broker_that_goes_away_is_a_connection_error_and_the_socket_is_closed(
    monkeypatch, script
):
    conn, _, sock = connect(monkeypatch, FakeSocket(*script))
    with pytest.raises(KafkaConnectionError, match='Kafka @ host:9 went away'):
        conn.recv(1)
    assert sock.closed


def test_the_hook_of_0_9_5_closes_and_raises(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    assert conn._sock is sock
    with pytest.raises(KafkaConnectionError, match='Kafka @ host:9 went away$'):
        conn._raise_connection_error()
    assert sock.closed
    assert conn._sock is None


def test_a_failed_send_is_a_connection_error_and_the_next_use_connects_again(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    sock.fails.add('sendall')
    with pytest.raises(KafkaConnectionError, match='went away'):
        conn.send(1, b'payload')
    assert sock.closed
    conn.send(1, b'payload')
    assert network.made[1].sent == [b'payload']


@pytest.mark.parametrize(
    ('first_bytes', 'told'),
    [
        (b'HTTP/1.1 400 Bad Request\r\n', 'HTTP'),
        (b'\x15\x03\x01\x00\x02\x02\x46', 'TLS'),
        (b'\x7f\xff\xff\xff', '2147483647'),
        (b'\xff\xff\xff\xfe', 'negative'),
    ],
)
def test_bytes_that_no_broker_sends_are_a_frame_error(monkeypatch, first_bytes, told):
    conn, _, sock = connect(monkeypatch, FakeSocket(first_bytes))
    with pytest.raises(FrameError, match='host:9.*%s' % told) as caught:
        conn.recv(1)
    assert isinstance(caught.value, KafkaConnectionError)
    assert isinstance(caught.value, ProtocolError)
    assert sock.closed
    assert sock.asked == [4]


def test_the_socket_is_the_very_object_that_was_made(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    assert conn.get_connected_socket() is sock
    conn.close()
    assert conn.get_connected_socket() is network.made[1]


def test_close_shuts_down_closes_and_leaves_the_object_usable(monkeypatch):
    conn, network, sock = connect(monkeypatch, FakeSocket(), FakeSocket(frame(b'body')))
    conn.close()
    conn.close()
    assert sock.calls == ['shutdown', 'close']
    assert conn.recv(1) == b'body'
    assert len(network.made) == 2


@pytest.mark.parametrize('failing', ['shutdown', 'close'])
def test_errors_of_closing_are_ignored(monkeypatch, failing):
    conn, _, sock = connect(monkeypatch)
    sock.fails.add(failing)
    conn.close()
    assert sock.calls == ['shutdown', 'close']


def test_reinit_closes_and_connects(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    conn.reinit()
    assert sock.closed
    assert conn.get_connected_socket() is network.made[1]
    conn.close()
    conn.reinit()
    assert conn.get_connected_socket() is network.made[2]


@pytest.mark.parametrize(
    'copied', [KafkaConnection.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))]
)
def test_a_copy_has_the_same_address_and_is_not_connected(monkeypatch, copied):
    conn, network, _ = connect(monkeypatch)
    other = copied(conn)
    assert type(other) is KafkaConnection
    assert (other.host, other.port, other.timeout) == ('host', 9, 5)
    assert len(network.made) == 1
    assert other.get_connected_socket() is network.made[1]
    assert conn.get_connected_socket() is network.made[0]


def test_another_thread_has_a_connection_of_its_own(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    seen = []

    def look():
        seen.append((conn.host, conn.port, conn.timeout, conn.get_connected_socket()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [('host', 9, 5, network.made[1])]
    assert conn.get_connected_socket() is sock


def test_a_thread_that_ends_leaves_no_open_socket_behind(monkeypatch):
    conn, _, sock = connect(monkeypatch)
    theirs = FakeSocket()
    FakeNetwork(monkeypatch, theirs)
    thread = threading.Thread(target=conn.get_connected_socket)
    thread.start()
    thread.join()
    assert theirs.calls == ['close']
    assert sock.calls == []


def test_a_thread_that_closes_leaves_nothing_to_be_closed_at_its_end(monkeypatch):
    conn, _, _ = connect(monkeypatch)
    theirs = FakeSocket()
    FakeNetwork(monkeypatch, theirs)
    thread = threading.Thread(target=lambda: (conn.get_connected_socket(), conn.close()))
    thread.start()
    thread.join()
    assert theirs.calls == ['shutdown', 'close']


def test_repr(monkeypatch):
    conn, _, _ = connect(monkeypatch)
    assert repr(conn) == '<KafkaConnection host=host port=9>'


# ---------------------------------------------------------------- after a fork


def fork(monkeypatch):
    """Let the connection believe that it is in a child process from now on."""
    monkeypatch.setattr('kafka.conn.os.getpid', lambda: -1)


def test_a_forked_process_gets_a_connection_of_its_own(monkeypatch):
    conn, network, sock = connect(monkeypatch)
    fork(monkeypatch)
    conn.send(1, b'of the child')
    assert sock.sent == []
    assert network.made[1].sent == [b'of the child']


@pytest.mark.parametrize('action', ['close', 'reinit', 'get_connected_socket'])
def test_a_forked_process_does_not_end_its_parents_conversation(monkeypatch, action):
    conn, _, sock = connect(monkeypatch)
    fork(monkeypatch)
    getattr(conn, action)()
    assert sock.calls == ['close']


def test_a_forked_process_does_not_read_its_parents_answer(monkeypatch):
    conn, _, sock = connect(monkeypatch, FakeSocket(frame(b'\x00\x00\x00\x01body')))
    conn.send(1, b'of the parent')
    fork(monkeypatch)
    with pytest.raises(KafkaConnectionError, match='forked'):
        conn.recv(1)
    assert sock.asked == []
    assert 'shutdown' not in sock.calls


@pytest.mark.parametrize('silence', [[b''], [socket.timeout('timed out')]])
def test_a_port_that_has_never_answered_may_want_tls(monkeypatch, silence):
    conn, _, _ = connect(monkeypatch, FakeSocket(*silence))
    with pytest.raises(KafkaConnectionError, match='does the port want TLS.*security_protocol'):
        conn.recv(1)
    data = frame(b'body')
    conn, _, _ = connect(monkeypatch, FakeSocket(data, *silence))
    conn.recv(1)
    with pytest.raises(KafkaConnectionError) as caught:
        conn.recv(2)
    assert 'TLS' not in str(caught.value)
