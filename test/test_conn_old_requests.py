"""KafkaConnection and old requests: scripted sockets with brokers of every age behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import (
    ChecksumError,
    FrameError,
    KafkaConnectionError,
    KafkaError,
    UnsupportedVersionError,
)
from kafka.protocol import api
from kafka.protocol.admin.groups import ListGroupsResponse
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafka.protocol.frames import frame
from kafka.protocol.group import HeartbeatResponse
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords
from test.fake_sockets import Broker, FakeSocket, connect

# ---------------------------------------------------------------- brokers behind the socket


def bytes_of(message, version=0, correlation_id=7):
    return frame(api.encode_request(message, version, correlation_id, 'kafka-python'))


METADATA = MetadataRequest(topics=[])


def produce(acks=1, records=None):
    if records is None:
        records = encode_message_set([(0, None, b'k', b'v')], magic=0)
    part = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name='t', partition_data=[part])
    return ProduceRequest(acks=acks, timeout_ms=9, topic_data=[topic])


def stores(request):
    """Answer Produce: everything is stored at offset 42."""
    topics = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[
                PartitionProduceResponse(index=part.index, error_code=0, base_offset=42)
                for part in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    return ProduceResponse(responses=topics) if request.acks else None


def fetch(max_bytes=1000):
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic='t', partitions=[part])]
    return FetchRequest(max_wait_ms=1, min_bytes=1, topics=topics)


def has_one_message(request):
    data = encode_batch([(5, b'k', b'v', ())])
    part = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=data)
    return FetchResponse(responses=[FetchableTopicResponse(topic='t', partitions=[part])])


def ask(conn, message, version=0, correlation_id=7):
    """Send the bytes of an old request; return the old response."""
    conn.send(correlation_id, bytes_of(message, version, correlation_id))
    body = conn.recv(correlation_id)
    got, response = api.decode_response(api.response_class(message.api_key), body, version)
    assert got == correlation_id
    return response


def offset_of(response):
    (part,) = response.responses[0].partition_responses
    return part.error_code, part.base_offset


def test_what_every_broker_serves_passes_without_a_question(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({}))
    ask(conn, METADATA)
    assert broker.sent == [bytes_of(METADATA)]


def test_a_new_broker_is_asked_for_its_versions_once_and_gets_a_new_request(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    assert offset_of(ask(conn, produce())) == (0, 42)
    assert offset_of(ask(conn, produce(), correlation_id=8)) == (0, 42)
    assert broker.requests == [(3, 1), (18, 5), (0, 12), (0, 12)]


def test_fetched_batches_come_back_as_message_sets(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({1: has_one_message}))
    records = ask(conn, fetch()).responses[0].partitions[0].records
    ((batch,),) = [list(MemoryRecords(records))]
    assert (batch.magic, [(r.key, r.value) for r in batch]) == (0, [(b'k', b'v')])
    assert broker.requests[-1] == (1, 12)


def test_the_frame_limit_grows_with_what_a_fetch_asks_for(monkeypatch):
    """200 partitions of 1 MiB each are no sign of a peer that speaks another protocol."""
    conn, _, broker = connect(monkeypatch, Broker({1: has_one_message}))
    wish = 200 * 1024 * 1024
    ask(conn, fetch(max_bytes=wish))
    broker.script[:] = [(wish + 1000).to_bytes(4, 'big'), b'']
    with pytest.raises(KafkaConnectionError, match='in the middle of a response'):
        conn.recv(1)
    conn.reinit()
    conn.get_connected_socket().script[:] = [(wish + 1000).to_bytes(4, 'big')]
    with pytest.raises(FrameError, match='the limit is 104857600'):
        conn.recv(1)


def test_a_request_that_needs_several_answers_reads_them_all(monkeypatch):
    answers = iter((20, 10, 30))  # at the time, earliest, latest

    def offsets(_):
        part = ListOffsetsPartitionResponse(
            partition_index=0, error_code=0, offset=next(answers), timestamp=5
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name='t', partitions=[part])])

    conn, _, broker = connect(monkeypatch, Broker({2: offsets}))
    part = ListOffsetsPartition(partition_index=0, timestamp=5, max_num_offsets=1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name='t', partitions=[part])]
    )
    assert ask(conn, request).topics[0].partitions[0].old_style_offsets == [20]
    assert broker.requests.count((2, 11)) == 3
    ask(conn, METADATA)  # nothing is left over


def test_an_old_broker_gets_the_very_bytes(monkeypatch):
    """And 0.9 no question that it does not know."""
    broker = Broker({0: stores}, ranges=None)
    broker.serves[12] = lambda _: HeartbeatResponse(error_code=25)
    broker.serves[16] = lambda _: ListGroupsResponse(error_code=0, groups=[])
    conn, _, _ = connect(monkeypatch, broker)
    assert offset_of(ask(conn, produce())) == (0, 42)
    assert broker.sent[-1] == bytes_of(produce())
    assert broker.requests == [(3, 1), (12, 0), (16, 0), (0, 0)]


def broker_0_8():
    return Broker({0: stores}, ranges=None)


def test_what_costs_connections_to_find_out_is_remembered_until_an_error(monkeypatch):
    """0.8.0 closes on Heartbeat and on OffsetFetch, twice each: it takes the fifth connection."""
    conn, network, _ = connect(monkeypatch, *[broker_0_8() for _ in range(11)])
    ask(conn, produce())
    assert len(network.made) == 5
    conn.close()
    ask(conn, produce())
    assert len(network.made) == 6
    network.made[-1].script.append(b'')
    with pytest.raises(KafkaConnectionError):
        conn.recv(1)
    ask(conn, produce())
    assert len(network.made) == 11


def test_an_api_that_the_broker_lacks_is_an_error_and_nothing_is_sent(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({}, ranges={3: (0, 13)}))
    with pytest.raises(UnsupportedVersionError, match='ProduceRequest'):
        conn.send(1, bytes_of(produce()))
    assert (0, 12) not in broker.requests
    ask(conn, METADATA)


def test_a_damaged_set_is_answered_without_the_broker(monkeypatch):
    damaged = bytearray(produce().topic_data[0].partition_data[0].records)
    damaged[-1] ^= 1
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    assert offset_of(ask(conn, produce(records=bytes(damaged)))) == (2, -1)
    assert broker.requests == [(3, 1), (18, 5)]
    with pytest.raises(ChecksumError):
        conn.send(1, bytes_of(produce(acks=0, records=bytes(damaged))))


def test_produce_without_acks_waits_for_nothing(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    conn.send(1, bytes_of(produce(acks=0)))
    assert broker.requests[-1] == (0, 12)
    ask(conn, METADATA)


def test_acks_that_were_given_up_are_logged_once(monkeypatch, caplog):
    conn, _, _ = connect(monkeypatch, Broker({0: stores}))
    ask(conn, produce(acks=2))
    ask(conn, produce(acks=2))
    told = [r.getMessage() for r in caplog.records if 'acks=2' in r.getMessage()]
    assert len(told) == 1
    assert 'host=host port=9' in told[0]
    assert 'acks=-1, all in-sync replicas, is sent' in told[0]


def test_requests_may_be_sent_before_the_answers_are_read(monkeypatch):
    conn, _, _ = connect(monkeypatch, Broker({0: stores, 1: has_one_message}))
    conn.send(1, bytes_of(METADATA, correlation_id=1))
    conn.send(2, bytes_of(produce(), correlation_id=2))
    conn.send(3, bytes_of(METADATA, correlation_id=3))
    conn.send(4, bytes_of(fetch(), correlation_id=4))
    assert [conn.recv(n)[:4] for n in range(1, 5)] == [bytes([0, 0, 0, n]) for n in range(1, 5)]


def test_an_unrecognised_request_without_answer_does_not_shift_the_answers(monkeypatch):
    """Such as Produce in a version that is not old, with acks=0."""
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    ask(conn, produce())
    conn.send(1, bytes_of(produce(acks=0), version=3, correlation_id=1))
    assert offset_of(ask(conn, produce(), correlation_id=2)) == (0, 42)
    assert broker.requests[-2:] == [(0, 3), (0, 12)]


def test_an_answer_to_another_request_is_a_frame_error(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    ask(conn, produce())
    conn.send(9, bytes_of(produce(), correlation_id=9))
    broker.script[:] = [frame(b'\x00\x00\x00\x55' + b'\x00' * 20)]
    with pytest.raises(FrameError, match='correlation id 85, expected 9'):
        conn.recv(9)
    assert broker.closed


@pytest.mark.parametrize('body', [b'\x00\x00\x00\x55' + b'\x00' * 8, b'', b'\x00\x09'])
def test_so_is_one_that_would_have_passed_untouched(monkeypatch, body):
    conn, _, sock = connect(monkeypatch, FakeSocket(frame(body)))
    conn.send(9, bytes_of(METADATA, correlation_id=9))
    with pytest.raises(FrameError, match='where 9 was next'):
        conn.recv(9)
    assert sock.closed


def test_an_unrecognised_request_without_answer_does_not_shift_untouched_answers(monkeypatch):
    conn, _, _ = connect(monkeypatch, Broker({0: lambda _: None}))
    conn.send(1, bytes_of(produce(acks=0), version=3, correlation_id=1))
    conn.send(2, bytes_of(METADATA, correlation_id=2))
    assert conn.recv(2)[:4] == b'\x00\x00\x00\x02'


def test_an_answer_that_cannot_be_read_is_a_frame_error(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    ask(conn, produce())
    conn.send(9, bytes_of(produce(), correlation_id=9))
    broker.script[:] = [frame(b'\x00\x00\x00\x09' + b'\xff' * 20)]
    with pytest.raises(FrameError, match='host:9'):
        conn.recv(9)
    assert broker.closed


def test_a_server_that_answers_the_versions_with_http_is_recognised(monkeypatch):
    broker = FakeSocket(b'HTTP/1.1 400 Bad Request\r\n')
    conn, _, _ = connect(monkeypatch, broker)
    with pytest.raises(FrameError, match='HTTP'):
        conn.send(1, bytes_of(produce()))
    assert broker.closed


def test_a_broker_that_never_answers_the_versions_ends_in_a_time_out(monkeypatch):
    broker = FakeSocket()
    conn, _, _ = connect(monkeypatch, broker)
    with pytest.raises(KafkaConnectionError, match='timed out'):
        conn.send(1, bytes_of(produce()))
    assert broker.closed


def test_a_port_that_closes_on_everything_is_a_connection_error(monkeypatch):
    sockets = [FakeSocket(b'') for _ in range(5)]  # Metadata twice, ApiVersions in 5, 3 and 0
    conn, network, _ = connect(monkeypatch, *sockets)
    with pytest.raises(KafkaConnectionError, match='this port may want TLS'):
        conn.send(1, bytes_of(produce()))
    assert all(sock.closed for sock in network.made)


def test_answers_that_come_before_the_versions_are_kept_for_their_turn(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    conn.send(1, bytes_of(METADATA, correlation_id=1))
    conn.send(2, bytes_of(produce(), correlation_id=2))
    assert broker.requests == [(3, 0), (3, 1), (18, 5), (0, 12)]
    assert conn.recv(1)[:4] == b'\x00\x00\x00\x01'
    assert conn.recv(2)[:4] == b'\x00\x00\x00\x02'


def test_they_are_kept_even_when_the_question_costs_the_connection(monkeypatch):
    conn, _, _ = connect(monkeypatch, *[broker_0_8() for _ in range(6)])
    conn.send(1, bytes_of(METADATA, correlation_id=1))
    conn.send(2, bytes_of(produce(), correlation_id=2))
    assert conn.recv(1)[:4] == b'\x00\x00\x00\x01'
    assert conn.recv(2)[:4] == b'\x00\x00\x00\x02'


def test_a_socket_that_runs_dry_is_not_taken_for_the_end_of_the_probe(monkeypatch):
    """A stand-in whose answers come from an iterator ends with StopIteration."""
    conn, _, _ = connect(monkeypatch, FakeSocket(StopIteration()))
    with pytest.raises(StopIteration):
        conn.send(1, bytes_of(produce()))


def test_api_versions_asks_once_and_leaves_out_what_is_refused(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({}, ranges={0: (0, 13), 8: (0, 9), 9: (0, 9)}))
    assert conn.api_versions() == {0: (3, 13), 8: (1, 9), 9: (1, 9), 18: (0, 5)}
    with pytest.raises(TypeError):
        conn.api_versions()[0] = (0, 13)
    assert conn.api_versions()[0] == (3, 13)
    assert broker.requests == [(3, 1), (18, 5)]


def test_a_new_connection_is_asked_anew(monkeypatch):
    """The broker may have been replaced by a later release meanwhile."""
    conn, network, _ = connect(
        monkeypatch, Broker({0: stores}), Broker({0: stores}, ranges={0: (0, 3)})
    )
    ask(conn, produce())
    conn.close()
    ask(conn, produce())
    assert network.made[1].requests == [(3, 1), (18, 5), (0, 3)]


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_no_answer_of_a_server_leads_to_an_undocumented_error(bodies, framed):
    with pytest.MonkeyPatch.context() as monkeypatch:
        script = [frame(body) if framed else body for body in bodies] + [b'']
        conn, _, _ = connect(monkeypatch, FakeSocket(*script))
        try:
            conn.send(1, bytes_of(produce()))
            conn.recv(1)
        except KafkaError:
            pass


@given(st.binary(max_size=80))
def test_no_answer_to_a_translated_request_leads_to_an_undocumented_error(body):
    with pytest.MonkeyPatch.context() as monkeypatch:
        conn, _, broker = connect(monkeypatch, Broker({1: has_one_message}))
        conn.send(7, bytes_of(fetch()))
        broker.script[:] = [frame(b'\x00\x00\x00\x07' + body)]
        try:
            conn.recv(7)
        except KafkaError:
            pass
