"""The three hand-written requests, against a socket that answers from a script."""

from __future__ import annotations

import socket
import struct

import pytest

from servers import probe


@pytest.fixture
def broker(monkeypatch):
    """Return a function: it makes the next connection one on which this answer waits already.

    The function returns the broker's end of the connection, from which the request can be read.
    """
    ends = []

    def make(answer):
        client, server = socket.socketpair()
        ends.extend((client, server))
        server.sendall(answer)
        server.shutdown(socket.SHUT_WR)
        monkeypatch.setattr(probe.socket, 'create_connection', lambda address, timeout: client)
        return server

    yield make
    for end in ends:
        end.close()


ADDRESS = ('127.0.0.1', 9092)


def framed(body):
    """An answer: int32 length, int32 correlation id 1, body."""
    return struct.pack('>ii', len(body) + 4, 1) + body


def test_metadata_of_version_0_is_asked_and_read(broker):
    body = struct.pack('>ii', 1, 7) + probe.string('host') + struct.pack('>i', 9092)  # one broker
    body += struct.pack('>ih', 1, 0) + probe.string('t')  # one topic, no error
    body += struct.pack('>ihii', 1, 5, 3, -1)  # one partition: error 5, number 3, no leader
    body += struct.pack('>iii', 2, 7, 8) + struct.pack('>ii', 1, 7)  # replicas 7, 8; isr 7
    server = broker(framed(body))
    found = probe.metadata(ADDRESS, 't')
    assert found.brokers == {7: ('host', 9092)}
    assert found.topics == {'t': {3: probe.Partition(5, -1, [7, 8], [7])}}
    # length, api key 3, version 0, correlation id 1, client id, one topic
    request = struct.pack('>hhi', 3, 0, 1) + probe.string('servers.probe')
    request += struct.pack('>i', 1) + probe.string('t')
    assert server.recv(4096) == struct.pack('>i', len(request)) + request


@pytest.mark.parametrize('version, throttle', [(0, b''), (2, struct.pack('>i', 0))])
def test_create_topics_returns_the_error_code(broker, version, throttle):
    body = throttle + struct.pack('>i', 1) + probe.string('t') + struct.pack('>hh', 36, -1)
    server = broker(framed(body))
    assert probe.create_topic(ADDRESS, 't', 2, 1, {'a': 'b'}, version) == 36
    request = server.recv(4096)[4:]
    assert request.startswith(struct.pack('>hhi', 19, version, 1))
    assert request.endswith(struct.pack('>?', False) if version else struct.pack('>i', 10000))


def test_a_broker_that_closes_is_an_os_error(broker):
    broker(b'\x00\x00')
    with pytest.raises(OSError, match='closed'):
        probe.metadata(ADDRESS)
