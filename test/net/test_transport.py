"""Connections of a loop: pieces, peers that do not read, ends of all kinds."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

import pytest

from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.net.resolver import Address
from kafka.net.transport import SocketOptions, _unsent_of

#: Seconds that a busy machine takes for what takes none.
BUSY = 30


@pytest.fixture
def listener():
    with socket.create_server(('127.0.0.1', 0)) as made:
        made.settimeout(10)
        yield made


def address_of(listener):
    return Address(socket.AF_INET, listener.getsockname())


@pytest.fixture
def pair(loop, listener):
    """Return a transport and the socket at its other end."""
    transport = loop.run(loop.connect(address_of(listener), 5), 10)
    peer, _ = listener.accept()
    peer.settimeout(10)
    with peer:
        yield transport, peer


def test_bytes_go_out_in_order(loop, pair):
    transport, peer = pair
    loop.run(transport.send([b'ab', b'', b'c', memoryview(b'de')]), 5)
    assert peer.recv(10) == b'abcde'
    assert transport.peername == peer.getsockname()


def test_bytes_come_in(loop, pair):
    transport, peer = pair
    peer.sendall(b'hello')
    assert loop.run(transport.recv(), 5) == b'hello'
    peer.close()
    assert loop.run(transport.recv(), 5) == b''


def in_turn(loop, call):
    """Return what a call returns that is made in a turn."""

    async def ask():
        return call()

    return loop.run(ask(), BUSY)


def test_receive_takes_what_has_come_and_tells_who_listens_of_the_end(loop, pair):
    transport, peer = pair
    came, broken = [], []
    in_turn(loop, lambda: transport.listen(came.append, broken.append))
    assert in_turn(loop, transport.receive) is None

    def taken():
        peer.sendall(b'hello')
        end = time.monotonic() + BUSY
        data = None
        while data is None and time.monotonic() < end:
            data = transport.receive()
        return data

    assert in_turn(loop, taken) == b'hello' and not came
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))

    def reset():
        peer.close()
        end = time.monotonic() + BUSY
        while transport._broken is None and time.monotonic() < end:
            assert transport.receive() is None
        return transport._broken

    assert isinstance(in_turn(loop, reset), KafkaConnectionError)
    assert loop.wait(lambda: broken, BUSY) and not came


def test_is_only_is_true_when_a_transport_can_be_read_and_nothing_else_is_to_be_done(loop, pair):
    transport, peer = pair
    in_turn(loop, lambda: transport.listen(lambda data: None, lambda error: None))

    def asleep(seconds):
        return in_turn(loop, lambda: loop.is_only(transport, loop.time() + seconds))

    began = time.monotonic()
    assert not asleep(0.05) and time.monotonic() - began >= 0.05

    def with_news(prepare):
        def ask():
            peer.sendall(b'x')
            prepare()
            found = loop.is_only(transport, loop.time() + BUSY)
            assert transport.receive() == b'x' or not found
            return found

        return in_turn(loop, ask)

    assert with_news(lambda: None)
    called = []
    assert not with_news(lambda: loop.call_soon(called.append, 'ready'))
    assert not with_news(lambda: loop.poller.wake())
    assert loop.wait(lambda: called, BUSY)


@pytest.mark.parametrize('what', ['a call', 'a timer'])
def test_is_only_is_false_when_something_else_comes(loop, pair, what):
    transport, _ = pair
    in_turn(loop, lambda: transport.listen(lambda data: None, lambda error: None))
    called, began = [], time.monotonic()
    if what == 'a timer':
        loop.call_threadsafe(loop.call_later, 0.1, called.append, 1)
    else:
        later = threading.Timer(0.1, loop.call_threadsafe, [called.append, 1])
        later.start()
    assert not in_turn(loop, lambda: loop.is_only(transport, loop.time() + BUSY))
    assert time.monotonic() - began < BUSY and not called
    assert loop.wait(lambda: called, BUSY)


def test_what_nobody_reads_now_is_read_later(loop, pair):
    """And does not keep the loop busy meanwhile."""
    transport, peer = pair
    peer.sendall(b'a')
    assert loop.run(transport.recv(), 5) == b'a'
    peer.sendall(b'b')
    turns = loop._iterations
    loop.wait(lambda: False, 0.1)
    assert loop._iterations - turns < 10
    assert loop.run(transport.recv(), 5) == b'b'


def test_a_peer_that_does_not_read_holds_the_sender_up(loop, pair):
    transport, peer = pair
    big = bytes(20_000_000)
    with pytest.raises(KafkaTimeoutError):
        loop.run(transport.send([big]), 0.2)
    assert 0 < transport.unsent_bytes < len(big)
    left = len(big)
    while left:
        loop.wait(lambda: False, 0)
        left -= len(peer.recv(1_000_000))
    assert transport.unsent_bytes == 0


def test_more_pieces_than_a_system_call_takes(loop, pair):
    transport, peer = pair
    loop.run(transport.send([b'x'] * 5000), 5)
    got = b''
    while len(got) < 5000:
        got += peer.recv(10000)


def test_closing_wakes_who_reads(loop, pair):
    transport, _ = pair

    async def read():
        reading = loop.spawn(transport.recv())
        await loop.sleep(0.01)
        transport.close()
        await reading

    with pytest.raises(KafkaConnectionError, match='was closed'):
        loop.run(read(), 5)
    with pytest.raises(KafkaConnectionError, match='is closed'):
        loop.run(transport.send([b'x']), 5)
    with pytest.raises(KafkaConnectionError, match='is closed'):
        loop.run(transport.recv(), 5)
    assert repr(transport).endswith('closed>')
    assert loop._poller.sockets == 0


def test_a_reset_breaks_reading_and_writing(loop, pair):
    transport, peer = pair
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    peer.close()
    with pytest.raises(KafkaConnectionError, match='broke: '):
        loop.run(transport.recv(), 5)
    with pytest.raises(KafkaConnectionError, match='broke: '):
        loop.run(transport.send([b'x']), 5)


def test_expecting_something_is_owed_by_the_loop(loop, pair):
    transport, _ = pair
    assert loop.pending == 0
    transport.expecting = True
    transport.expecting = True
    assert loop.pending == 1
    transport.close()
    assert loop.pending == 0


def test_a_port_where_nobody_listens(loop):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))  # and does not listen
        with pytest.raises(KafkaConnectionError, match='cannot be reached') as raised:
            loop.run(loop.connect(address_of(taken), 5), 10)
    assert raised.value.stage == 'TCP'


def test_an_address_that_never_answers(loop):
    """A listener whose queue is full drops what comes, as a firewall does."""
    with socket.create_server(('127.0.0.1', 0), backlog=0) as full, contextlib.ExitStack() as held:
        for _ in range(4):
            each = held.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        began = time.monotonic()
        with pytest.raises(KafkaTimeoutError, match='did not answer') as raised:
            loop.run(loop.connect(address_of(full), 0.2), 10)
        assert 0.2 <= time.monotonic() - began < 8
    assert raised.value.stage == 'TCP'
    assert loop.pending == 0


def test_an_address_of_no_family_here(loop):
    with pytest.raises(KafkaConnectionError):
        loop.run(loop.connect(Address(12345, ('127.0.0.1', 1)), 5), 10)


def test_socket_options_are_set(loop, listener):
    options = SocketOptions(send_buffer_bytes=70000, receive_buffer_bytes=80000)
    transport = loop.run(loop.connect(address_of(listener), 5, options), 10)
    sock = transport._sock
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 70000
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 80000
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize('sent', range(7))
def test_what_is_left_unsent_of_a_part(sent):
    assert b''.join(_unsent_of([b'ab', b'c', b'def'], sent)) == b'abcdef'[sent:]
