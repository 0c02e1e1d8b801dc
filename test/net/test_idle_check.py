"""Whether the peer of an idle connection has closed it, asked before anything is written."""

from __future__ import annotations

import select
import socket
import struct

import pytest

from kafka.net.idle_check import IdleCheck


@pytest.fixture(params=['poll', 'select'])
def ends(request, monkeypatch):
    if request.param == 'select':
        monkeypatch.delattr(select, 'poll')
    pair = socket.socketpair()
    pair[0].settimeout(60)
    yield pair
    for each in pair:
        each.close()


def test_an_open_connection_is_not_ended(ends):
    assert not IdleCheck(ends[0]).is_ended()


def test_a_closed_one_is(ends):
    check = IdleCheck(ends[0])
    ends[1].close()
    assert check.is_ended()


def test_what_came_stays_to_be_read(ends):
    ends[1].sendall(b'stray')
    ends[1].close()
    assert not IdleCheck(ends[0]).is_ended()
    assert ends[0].recv(10) == b'stray'


def test_a_connection_that_was_reset_is_ended():
    with socket.create_server(('127.0.0.1', 0)) as server:
        with socket.create_connection(server.getsockname()) as sock:
            peer = server.accept()[0]
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            peer.close()
            select.select([sock], [], [], 10)
            assert IdleCheck(sock).is_ended()


def test_what_has_no_descriptor_is_never_ended():
    assert not IdleCheck(object()).is_ended()
