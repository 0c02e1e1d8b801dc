"""The socket of the evented clients, over scripted sockets: one step at a time, and no waiting."""

from __future__ import annotations

import errno
import socket
import struct
import threading

import pytest

from kafka import config
from kafka.errors import KafkaConnectionError
from kafka.evented.stepped_socket import NameNotResolved, Progress, SteppedSocket
from kafka.net import connect, mechanisms
from kafka.net.failures import SaslError
from kafka.net.sasl import ClosedAtVersions
from kafka.net.sasl.plain import Plain
from test.evented.test_broker_connection import BUSY, Script

LOGIN = {
    'security_protocol': 'SASL_PLAINTEXT',
    'sasl_mechanism': 'PLAIN',
    'sasl_plain_username': 'alice',
    'sasl_plain_password': 'canary',
}


@pytest.fixture
def made(monkeypatch):
    """Scripts that stand for sockets, in the order in which they are made."""
    scripts = []

    def make(family, kind):
        scripts.append(Script())
        return scripts[-1]

    monkeypatch.setattr(socket, 'socket', make)
    return scripts


def stepped(host='127.0.0.1', port=9092, afi=socket.AF_INET, **options):
    return SteppedSocket(host, port, afi, config.resolve(config.CONNECTION, options))


def started(sock, asks=False):
    sock.begin(asks)
    assert sock.is_tcp_connected()
    return sock.start()


def test_without_security_and_question_tcp_is_enough(made):
    sock = stepped()
    assert started(sock) is Progress.DONE
    assert sock.versions is None and sock.renew_at is None and not sock.is_talking
    sock.write(b'request')
    assert made[0].sent == b'request'
    made[0].receives = [BUSY, b'answer', b'']
    assert [sock.receive(3) for _ in range(4)] == [None, b'ans', b'wer', b'']


def test_tcp_that_is_under_way_is_not_waited_for(made):
    sock = stepped()
    sock.begin(False)
    made[0].connects = [errno.EINPROGRESS, errno.ECONNREFUSED]
    assert not sock.is_tcp_connected()
    with pytest.raises(OSError, match='refused'):
        sock.is_tcp_connected()


def test_a_step_without_bytes_does_nothing(made):
    sock = stepped()
    assert started(sock, asks=True) is Progress.MOVED
    asked = made[0].sent
    assert [sock.step() for _ in range(3)] == [Progress.IDLE] * 3
    assert made[0].sent == asked and sock.is_talking


@pytest.mark.parametrize('end', [b'', ConnectionResetError()])
def test_a_probe_goes_on_on_another_socket(made, end):
    sock = stepped()
    started(sock, asks=True)
    made[0].receives = [end]
    assert sock.step() is Progress.REOPENED
    assert made[0].closes == 1 and made[1].sent == b''
    assert sock.is_tcp_connected() and sock.start() is Progress.MOVED
    assert made[1].sent == made[0].sent


def test_a_broker_that_says_nothing_is_asked_in_a_lower_version(made, monkeypatch):
    monkeypatch.setattr(connect, 'SILENT_SECONDS', 0.0)
    sock = stepped()
    started(sock, asks=True)
    made[0].receives = [b'']
    sock.step()
    sock.start()
    made[1].receives = [b'']
    assert sock.step() is Progress.REOPENED
    sock.start()
    (version,) = struct.unpack_from('>h', made[2].sent, 6)
    assert sock.step() is Progress.REOPENED and sock.peer_ended
    sock.start()
    assert struct.unpack_from('>h', made[3].sent, 6)[0] < version


def test_a_broker_that_closes_at_a_login_is_told_as_such(made):
    sock = stepped(**LOGIN)
    started(sock)
    assert sock.is_secured
    made[0].receives = [b'']
    with pytest.raises(ClosedAtVersions):
        sock.step()
    assert sock.peer_ended and 'canary' not in repr(sock)


@pytest.fixture
def slow(monkeypatch):
    """A mechanism that is prepared once it may be, and fails if it is told to."""

    class Slow(Plain):
        may_go = threading.Event()
        error = None

        def prepare(self):
            assert self.may_go.wait(60)
            if self.error is not None:
                raise self.error

    monkeypatch.setattr(mechanisms, 'registered', {**mechanisms.registered, 'PLAIN': Slow})
    return Slow


@pytest.mark.parametrize('error', [None, SaslError('no token')])
def test_what_a_login_has_to_wait_for_runs_in_another_thread(made, slow, error):
    slow.error = error
    sock = stepped(**LOGIN)
    assert started(sock) is Progress.MOVED
    assert [sock.step() for _ in range(3)] == [Progress.IDLE] * 3
    slow.may_go.set()
    assert sock._work.wait(60)
    if error is None:
        assert sock.step() is Progress.MOVED and made[0].sent
    else:
        with pytest.raises(SaslError, match='no token'):
            sock.step()
        assert not sock.peer_ended


def test_addresses_take_turns_and_a_new_socket_goes_to_the_same_one(made, monkeypatch):
    found = [
        (socket.AF_INET6, 1, 6, '', ('::1', 9092, 0, 0)),
        (socket.AF_INET, 1, 6, '', ('127.0.0.1', 9092)),
    ]
    monkeypatch.setattr(socket, 'getaddrinfo', lambda *_: list(found))
    sock = stepped('localhost', afi=socket.AF_UNSPEC)
    started(sock, asks=True)
    assert (sock.host, sock.addresses_left) == ('::1', 1)
    made[0].receives = [b'']
    assert sock.step() is Progress.REOPENED
    assert (sock.host, sock.addresses_left) == ('::1', 1)
    sock.begin(False)
    assert (sock.host, sock.addresses_left) == ('127.0.0.1', 0)


def test_a_port_that_there_is_not():
    with pytest.raises(NameNotResolved, match='ports end at 65535'):
        stepped(port=65536).begin(False)


def test_closing_forgets_all(made):
    sock = stepped()
    started(sock, asks=True)
    sock.close()
    sock.close()
    assert made[0].closes == 1 and sock.sock is None and not sock.is_talking
    with pytest.raises(KafkaConnectionError, match='no socket'):
        sock.write(b'request')


def test_a_socket_that_came_with_a_fork_is_told(made, monkeypatch):
    sock = stepped()
    assert not sock.is_inherited
    started(sock)
    assert not sock.is_inherited
    monkeypatch.setattr('os.getpid', lambda: 0)
    assert sock.is_inherited
