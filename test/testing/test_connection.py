"""One request at a time, and what a broker does with bytes that are none."""

from __future__ import annotations

import struct

import hypothesis
import pytest
from hypothesis import strategies

from kafka.protocol.api import decode_response
from kafka.protocol.api_versions import ApiVersionsResponse
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka.protocol.primitives import uvarint
from kafka.testing import connection
from kafka.testing.calls import HANDLERS
from kafka.testing.memory import MemoryCluster
from kafka.testing.releases import RELEASES
from kafka.testing.state import Defaults
from test.testing.data_requests import TOPIC, batch, driver, fetch_request, produce
from test.testing.drive import Client, Driver


@pytest.fixture
def held(monkeypatch):
    """Let metadata requests wait; returns the calls."""
    calls = []

    def hold(call):
        calls.append(call)

    monkeypatch.setitem(HANDLERS, 3, hold)
    return calls


def header(api_key, version):
    return struct.pack('>hhih', api_key, version, 1, -1)  # key, version, correlation id, client id


def answer_of(call):
    return MetadataResponse(brokers=[], topics=[], cluster_id=str(call.header.correlation_id))


def test_a_second_request_waits_for_the_answer_to_the_first(held):
    client = Driver().client()
    client.send(MetadataRequest(topics=[]))
    client.send(MetadataRequest(topics=[]))
    assert len(held) == 1
    assert not client.connection.wants_data
    held[0].respond(answer_of(held[0]))
    assert len(held) == 2
    held[1].respond(answer_of(held[1]))
    assert [client.receive().cluster_id, client.receive().cluster_id] == ['0', '1']
    assert client.connection.wants_data


def test_many_requests_at_once_are_answered_without_deep_recursion():
    client = Driver().client()
    data = b''.join(client.session.send(MetadataRequest(topics=[])) for _ in range(3000))
    client.connection.receive_data(data)
    assert sum(client.receive() is not None for _ in range(3000)) == 3000


def test_a_request_is_read_byte_by_byte():
    client = Driver().client()
    for byte in client.session.send(MetadataRequest(topics=[])):
        client.connection.receive_data(bytes([byte]))
    assert client.receive() is not None


def test_a_client_that_closes_while_it_waits_still_gets_its_answer(held):
    client = Driver().client()
    client.send(MetadataRequest(topics=[]))
    client.connection.receive_data(b'')  # half of the connection: it may read on
    assert not client.wire.is_closed
    held[0].respond(answer_of(held[0]))
    assert client.receive() is not None
    assert client.wire.is_closed


def test_an_answer_to_a_client_that_is_gone_is_dropped(held):
    client = Driver().client()
    client.send(MetadataRequest(topics=[]))
    client.connection.close()
    assert not held[0].is_waiting
    assert client.wire.written == b''


def test_an_idle_connection_is_closed_when_its_time_is_over():
    driver = Driver(connections_max_idle_ms=1000)
    client = driver.client()
    for _ in range(3):
        driver.advance(0.9)
        client.send(MetadataRequest(topics=[]))
        assert client.receive() is not None
    driver.advance(0.9)
    assert not client.wire.is_closed
    driver.advance(0.2)
    assert client.wire.is_closed
    assert driver.timers.next_time() is None


def test_a_connection_is_not_idle_while_a_request_waits(held):
    driver = Driver(connections_max_idle_ms=1000)
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    driver.advance(10)
    held[0].respond(answer_of(held[0]))
    driver.advance(0.9)
    assert not client.wire.is_closed
    driver.advance(2)
    assert client.wire.is_closed


def test_connections_may_be_idle_for_ten_minutes_unless_told_otherwise():
    driver = Driver(connections_max_idle_ms=Defaults().connections_max_idle_ms)
    client = driver.client()
    driver.advance(599)
    assert not client.wire.is_closed
    driver.advance(2)
    assert client.wire.is_closed
    driver = Driver(connections_max_idle_ms=None)
    for_ever = driver.client()
    driver.advance(1e6)
    assert not for_ever.wire.is_closed


def test_nobody_is_idle_while_a_broker_hangs():
    with MemoryCluster(connections_max_idle_ms=1000, seed=1) as cluster:
        sock = cluster.connect()
        cluster.pause(0)
        cluster.advance(5)
        cluster.resume(0)
        cluster.advance(0.5)
        assert not sock.is_ready
        cluster.advance(2)
        assert sock.is_ready
        assert sock.recv(1) == b''


def test_halves_of_large_frames_are_held_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(connection, 'MAX_UNREAD_BYTES', 3000)
    driver = Driver()
    clients = [driver.client() for _ in range(4)]
    for client in clients:
        client.connection.receive_data(struct.pack('>i', 5000) + bytes(1000))
    assert [client.wire.is_closed for client in clients] == [False, False, True, True]
    assert driver.state.unread_bytes == 2008
    assert [each.connection._frames.buffered_bytes for each in clients] == [1004, 1004, 0, 0]
    clients[0].connection.receive_data(bytes(4000))  # the rest: no request
    clients[1].connection.close()
    assert driver.state.unread_bytes == 0


def test_bytes_of_whole_requests_do_not_count(held):
    driver = Driver()
    client = driver.client()
    client.send(MetadataRequest(topics=[]))
    client.send(MetadataRequest(topics=[]))
    assert driver.state.unread_bytes > 0  # the second waits
    held[0].respond(answer_of(held[0]))
    assert driver.state.unread_bytes == 0


def test_a_paused_connection_handles_nothing_until_it_is_resumed():
    client = Driver().client()
    client.connection.pause()
    client.send(MetadataRequest(topics=[]))
    assert not client.connection.wants_data
    assert client.receive() is None
    client.connection.resume()
    assert client.receive() is not None


@pytest.mark.parametrize(
    'data',
    [
        b'GET / HTTP/1.1\r\n\r\n',
        b'\xff\xff\xff\xff',  # a negative length
        b'\x7f\xff\xff\xff',  # 2 GiB
        frame(b''),
        frame(b'\0\3'),  # half an API key
        frame(header(3, 0)),  # metadata without a body
        frame(header(3, 0) + b'\x7f\xff\xff\xff'),  # two billion topics
        frame(header(3, 0) + b'\0\0\0\1\xff\xff'),  # a null name
        frame(header(999, 0)),
        frame(header(3, 99)),
        frame(header(-1, -1)),
    ],
)
def test_what_cannot_be_read_closes_the_connection(data):
    driver = Driver()
    client = driver.client()
    client.connection.receive_data(data)
    assert client.wire.is_closed
    assert driver.brokers[0]._connections == {}
    assert not driver.state.control.failures


@pytest.mark.parametrize('version', RELEASES)
def test_bytes_behind_a_request_are_overlooked(version):
    client = Driver(version).client()
    data = client.session.send(MetadataRequest(topics=[]), version=0)
    longer = data[4:] + b'more bytes'
    client.connection.receive_data(frame(longer))
    assert client.receive() is not None
    client.send(MetadataRequest(topics=[]))  # and the connection is as good as before
    assert client.receive() is not None


@pytest.mark.parametrize('version', ['0.8.2', '0.10.0', '4.4'])
def test_a_client_id_that_is_no_utf_8_is_replaced(version):
    driver = Driver(version)
    client = driver.client()
    client.connection.receive_data(frame(struct.pack('>hhih', 3, 0, 7, 1) + b'\xff' + bytes(4)))
    assert client.wire.written[4:8] == b'\0\0\0\7'
    assert driver.state.control.requests.entries()[0].client_id == '\ufffd'


def test_a_name_that_is_no_utf_8_is_an_illegal_one():
    client = Driver().client()
    client.connection.receive_data(frame(header(3, 0) + b'\0\0\0\1\0\1\xff'))
    answer = MetadataResponse.decode(bytes(client.wire.written[8:]), 0)
    assert [(each.error_code, each.name) for each in answer.topics] == [(17, '\ufffd')]


def what_becomes_of(version, data):
    """Return 'closed' or 'silent', and whether the connection is good for more then."""
    client = Driver(version).client()
    client.connection.receive_data(data)
    assert not client.wire.written
    if client.wire.is_closed:
        return 'closed'
    client.send(MetadataRequest(topics=[]))
    assert client.receive() is not None
    return 'silent'


CUT_OFF = [frame(header(key, 0) + b'\0') for key in (0, 1, 2, 3, 8, 9)]
CUT_OFF_OF_0_9 = [frame(header(key, 0) + b'\0') for key in range(10, 16)]


@pytest.mark.parametrize(
    'version, frames, outcome',
    [
        ('0.8.2', [frame(b''), frame(b'\0\3\0'), *CUT_OFF, *CUT_OFF_OF_0_9], 'closed'),
        ('0.9', [frame(b''), frame(b'\0\3\0'), *CUT_OFF], 'silent'),
        ('0.9', CUT_OFF_OF_0_9, 'closed'),
        ('0.10.0', [frame(b''), frame(b'\0')], 'silent'),
        ('0.11', [frame(b''), frame(b'\0')], 'silent'),
        ('0.11', [frame(b'\0\3\0'), *CUT_OFF, *CUT_OFF_OF_0_9], 'closed'),
        ('1.0', [frame(b''), frame(b'\0'), *CUT_OFF], 'closed'),
    ],
)
def test_who_cannot_read_a_request_closes_or_says_nothing(version, frames, outcome):
    assert {what_becomes_of(version, data) for data in frames} == {outcome}


@pytest.mark.parametrize('version, outcome', [('0.8.2', 'answer'), ('0.10.0', 'closed')])
def test_a_null_name_was_a_name_once(version, outcome):
    client = Driver(version).client()
    client.connection.receive_data(frame(header(3, 0) + struct.pack('>ih', 1, -7)))
    assert ('answer' if client.wire.written else 'closed') == outcome


@hypothesis.given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from([None, 1, 2, 3, 18]), strategies.integers(0, 20)
        ).flatmap(
            lambda start: strategies.binary(max_size=40).map(
                lambda body: body if start[0] is None else header(*start) + body
            )
        ),
        max_size=4,
    )
)
def test_no_frame_fails_inside_a_broker(bodies):
    driver = Driver()
    client = driver.client()
    for body in bodies:
        client.connection.receive_data(frame(body))
    client.connection.receive_data(b'')
    driver.advance(0)
    assert not driver.state.control.failures


def unsupported(version):
    """Return what ApiVersions v99 gets from a release: bytes, and whether it was closed."""
    driver = Driver(version)
    client = Client(driver.brokers[0])
    client.connection.receive_data(frame(header(18, 99) + b'\0'))
    return bytes(client.wire.written), client.wire.is_closed


@pytest.mark.parametrize('version', RELEASES[RELEASES.index('0.10.0') :])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(version):
    data, is_closed = unsupported(version)
    reader = FrameReader()
    reader.receive_data(data)
    _, response = decode_response(ApiVersionsResponse, reader.next_frame(), 0)
    assert response.error_code == 35
    assert not is_closed
    if tuple(map(int, version.split('.'))) >= (2, 4):
        assert [each.api_key for each in response.api_keys] == [18]


def test_0_8_closes_the_connection_for_an_api_that_it_does_not_know():
    assert unsupported('0.8.2') == (b'', True)


def test_0_9_says_nothing_to_an_api_that_it_does_not_know_and_answers_what_follows():
    assert unsupported('0.9') == (b'', False)
    client = Driver('0.9').client()
    client.connection.receive_data(frame(header(18, 0)))
    client.send(MetadataRequest(topics=[]))
    assert client.receive() is not None


def newer(release, api_key, body):
    """Return what a request of version 5 gets: its correlation id and body, or None if closed."""
    driver = Driver(release)
    driver.state.create_topic('t')
    client = driver.client()
    client.connection.receive_data(frame(header(api_key, 5) + body))
    written = bytes(client.wire.written)
    assert bool(written) is not client.wire.is_closed
    return (written[4:8], written[8:]) if written else None


@pytest.mark.parametrize('release', ['0.8.2', '0.9'])
def test_an_old_broker_answers_a_newer_version_in_its_own_layout(release):
    correlation_id, body = newer(release, 3, b'\0\0\0\0' + b'\1')  # no topics, and a flag
    assert correlation_id == b'\0\0\0\1'
    answer = MetadataResponse.decode(body, 0)
    assert [each.node_id for each in answer.brokers] == [0]


@pytest.mark.parametrize('version, outcome', [('0.8.2', 'closed'), ('0.9', 'silent')])
def test_a_newer_version_that_cannot_be_read_as_the_old_one(version, outcome):
    # all topics, as newer clients ask, are no list that there was
    data = frame(header(3, 5) + b'\xff\xff\xff\xff\1')
    assert what_becomes_of(version, data) == outcome


def test_0_8_looks_at_the_version_of_a_commit():
    assert newer('0.8.2', 8, b'\0\1g' + b'\0\0\0\0') is None


def test_0_9_looks_at_the_versions_of_commits_and_of_what_is_new_in_it():
    for key in (8, *range(10, 17)):
        assert what_becomes_of('0.9', frame(header(key, 5) + b'\0\1g' + bytes(20))) == 'silent'


def test_a_broker_since_0_10_closes_a_newer_version():
    assert newer('0.10.0', 3, b'\0\0\0\0\1') is None


def test_calls_know_the_size_of_their_frame(held):
    client = Driver().client()
    for names in (['a'], ['a', 'b']):
        topics = [MetadataRequestTopic(name=name) for name in names]
        data = client.session.send(MetadataRequest(topics=topics))
        client.connection.receive_data(data)
        assert held[-1].size_bytes == len(data)
        held[-1].respond(answer_of(held[-1]))


@pytest.mark.parametrize('size, outcome', [(1_000, 'answer'), (300_000, 'closed')])
def test_a_large_frame_of_very_many_parts_is_not_taken_apart(size, outcome):
    driver = Driver('4.4', auto_create_topics=False)
    client = driver.client()
    start = struct.pack('>hhih', 3, 9, 1, -1) + b'\0'  # flexible: names of seven bytes are long
    parts = b''.join(b'\x09%08d\0' % number for number in range(size))
    count = uvarint(size + 1)
    client.connection.receive_data(frame(start + count + parts + bytes(4)))
    assert ('answer' if client.wire.written else 'closed') == outcome


def test_a_large_frame_of_few_parts_is_like_any_other(held):
    client = Driver().client()
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name='x' * 30000)] * 100), version=9)
    assert len(held) == 1


def test_large_batches_are_written_as_they_lie_in_the_log_and_small_ones_together():
    """What all clients are sent at once costs no more than the log."""
    cluster = driver()
    for value in (b'a', b'b', b'c' * 5000, b'd', b'e' * 5000):
        produce(cluster, batch(value))
    client, written = cluster.client(), []
    client.wire.write_parts = written.extend
    client.send(fetch_request(cluster, 12, 0), 12)
    log = cluster.state.topics[TOPIC].partitions[0].log
    large = [each.data for each in log.batches if len(each.data) > 5000]
    assert [len(part) > 5000 for part in written] == [False, True, False, True, False]
    assert all(part is data for part, data in zip(written[1::2], large))
    client.session.receive_data(b''.join(written))
    records = client.receive().responses[0].partitions[0].records
    assert records == log.read(0, 5, 1 << 20, False)
