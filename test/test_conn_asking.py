"""Asking on a connection: one request whose answer is read at once says what send and recv say."""

from __future__ import annotations

import logging

import pytest

from kafka.errors import (
    CorrelationIdError,
    FrameError,
    KafkaConnectionError,
    SaslAuthenticationFailedError,
)
from kafka.protocol import api
from kafka.protocol.commit import OffsetCommitRequest, OffsetCommitResponse
from kafka.protocol.frames import frame
from kafka.protocol.metadata import MetadataRequest
from test.fake_sockets import CLOSES, Broker, connect

RANGES = {3: (0, 12), 4: (0, 5), 8: (0, 9)}  # 4: of brokers with ZooKeeper
ANSWER = OffsetCommitResponse(topics=[])


def commit(correlation_id=7):
    request = OffsetCommitRequest(group_id='g', topics=[])
    return frame(api.encode_request(request, 0, correlation_id, 'c'))


def known(monkeypatch, answer=lambda _: ANSWER, **sockets):
    """Return a connection that knows its broker, and its socket."""
    conn, network, sock = connect(monkeypatch, Broker({8: answer}, ranges=RANGES), Broker({}))
    conn.api_versions()
    sock.asked.clear()
    return conn, sock


def body(correlation_id=7):
    return api.encode_response(ANSWER, 0, correlation_id)


def test_an_answer_that_came_whole_is_read_at_once(monkeypatch):
    conn, sock = known(monkeypatch)
    assert conn.ask(7, commit()) == body()
    assert sock.asked == [4096]
    assert sock.sent[-1] == commit()


def test_it_asks_for_the_versions_where_they_decide(monkeypatch):
    conn, _, sock = connect(monkeypatch, Broker({8: lambda _: ANSWER}, ranges=RANGES))
    assert conn.ask(7, commit()) == body()
    assert sock.requests[-1] == (8, 0)


def test_a_login_that_is_refused_while_the_versions_are_asked_for_is_raised_as_it_is(monkeypatch):
    refused = SaslAuthenticationFailedError('no such user')
    conn, network, sock = connect(monkeypatch, Broker({18: lambda _: CLOSES}, None), refused)
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        conn.api_versions()
    assert caught.value is refused and sock.closed
    network.sockets.append(Broker({}, ranges=RANGES))
    assert dict(conn.api_versions()).keys() >= RANGES.keys()


def test_versions_that_cannot_be_read_are_a_frame_error(monkeypatch):
    conn, _, sock = connect(monkeypatch, Broker({18: lambda _: None}, None))
    sock.script.append(frame(b'\0\0'))
    with pytest.raises(FrameError, match='host:9: '):
        conn.api_versions()
    assert sock.closed


def test_a_request_that_the_broker_dropped_is_translated(monkeypatch):
    conn, _, sock = connect(monkeypatch, Broker({8: lambda _: ANSWER}, ranges={8: (2, 9)}))
    assert conn.ask(7, commit()).write() == body()
    assert conn.ask(8, commit(8)).write() == body(8)
    assert sock.requests[-1] == (8, 9)


def test_an_answer_in_pieces_is_put_together(monkeypatch):
    conn, sock = known(monkeypatch, lambda _: None)
    whole = frame(body())
    sock.script += [whole[index : index + 1] for index in range(len(whole))]
    assert conn.ask(7, commit()) == body()


def test_what_was_asked_before_is_answered_first(monkeypatch):
    conn, sock = known(monkeypatch)
    conn.send(1, commit(1))
    assert conn.ask(2, commit(2)) == body(1)
    assert conn.recv(2) == body(2)


def test_the_answer_to_another_request_is_refused(monkeypatch):
    conn, sock = known(monkeypatch, lambda _: None)
    sock.script.append(frame(body(8)))
    with pytest.raises(FrameError, match='correlation id 8 where 7 was next') as caught:
        conn.ask(7, commit())
    assert isinstance(caught.value.__cause__, CorrelationIdError)
    assert sock.closed


def test_an_answer_too_short_for_a_correlation_id_is_refused(monkeypatch):
    conn, sock = known(monkeypatch, lambda _: None)
    sock.script.append(frame(b'ab'))
    with pytest.raises(FrameError, match='correlation id None where 7'):
        conn.ask(7, commit())


@pytest.mark.parametrize('told', [[b''], [b'\0\0', b''], [b'HTTP/1.1 400'], []])
def test_a_failed_answer_closes_and_the_next_use_connects_again(monkeypatch, told):
    conn, sock = known(monkeypatch, lambda _: None)
    sock.script += told
    with pytest.raises(KafkaConnectionError):
        conn.ask(7, commit())
    assert sock.closed
    assert conn.get_connected_socket() is not sock


def test_a_failed_send_closes(monkeypatch):
    conn, sock = known(monkeypatch)
    sock.fails.add('sendall')
    with pytest.raises(KafkaConnectionError, match='went away'):
        conn.ask(7, commit())
    assert sock.closed


def test_a_forked_process_asks_over_a_connection_of_its_own(monkeypatch):
    conn, sock = known(monkeypatch)
    before = len(sock.sent)
    monkeypatch.setattr('kafka.conn.os.getpid', lambda: -1)
    with pytest.raises(KafkaConnectionError):  # the other broker serves no commits: it closes
        conn.ask(7, commit())
    assert len(sock.sent) == before


def test_an_unknown_request_passes(monkeypatch):
    conn, sock = known(monkeypatch, CLOSES)
    sock.serves[77] = CLOSES
    request = frame(api.encode_request(MetadataRequest(topics=[]), 1, 5, 'c'))
    assert conn.ask(5, request)[:4] == b'\0\0\0\5'


def test_the_log_tells_the_same_as_of_send_and_recv(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, 'kafka.conn')
    conn, _ = known(monkeypatch)
    caplog.clear()
    assert conn.ask(7, commit()) == body()
    assert [record.getMessage() for record in caplog.records] == [
        'About to send %d bytes to <KafkaConnection host=host port=9>, request 7' % len(commit()),
        'Reading a response from <KafkaConnection host=host port=9>, request 7',
    ]
