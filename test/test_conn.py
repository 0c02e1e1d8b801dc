"""KafkaConnection on scripted sockets, and the parsing of host lists."""

from __future__ import annotations

import copy
import pickle
import socket
import threading

import pytest

from kafka.conn import (
    DEFAULT_KAFKA_PORT,
    DEFAULT_SOCKET_TIMEOUT_SECONDS,
    KafkaConnection,
    collect_hosts,
    get_ip_port_afi,
)
from kafka.errors import (
    ChecksumError,
    FrameError,
    KafkaConfigurationError,
    KafkaConnectionError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka.protocol import api
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
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

# ---------------------------------------------------------------- hosts


@pytest.mark.parametrize(
    ('text', 'parsed'),
    [
        ('localhost', ('localhost', 9092, socket.AF_UNSPEC)),
        ('localhost:1', ('localhost', 1, socket.AF_UNSPEC)),
        ('127.0.0.1', ('127.0.0.1', 9092, socket.AF_INET)),
        ('127.0.0.1:5', ('127.0.0.1', 5, socket.AF_INET)),
        ('[::1]', ('::1', 9092, socket.AF_INET6)),
        ('[::1]:77', ('::1', 77, socket.AF_INET6)),
        ('::1', ('::1', 9092, socket.AF_INET6)),
        ('2001::1', ('2001::1', 9092, socket.AF_INET6)),
        ('[localhost]:3', ('localhost', 3, socket.AF_INET6)),
        ('[localhost]', ('localhost', 9092, socket.AF_INET6)),
        ('  a.example:4 ', ('a.example', 4, socket.AF_UNSPEC)),
        ('a:-1', ('a', 9092, socket.AF_UNSPEC)),
        ('a:', ('a', 9092, socket.AF_UNSPEC)),
    ],
)
def test_one_address(text, parsed):
    assert get_ip_port_afi(text) == parsed


HOSTS = [
    ('a', 1234, socket.AF_UNSPEC),
    ('b', 9092, socket.AF_UNSPEC),
    ('::1', 9, socket.AF_INET6),
]


@pytest.mark.parametrize(
    'hosts',
    [
        'a:1234,b,[::1]:9',
        ' a:1234 , b , [::1]:9 ',
        b'a:1234,b,[::1]:9',
        ['a:1234', ' b ', '[::1]:9'],
        [b'a:1234', 'b', '[::1]:9'],
        iter(('a:1234', 'b', '[::1]:9')),
    ],
)
def test_hosts_come_as_text_or_as_an_iterable_of_texts(hosts):
    assert collect_hosts(hosts, randomize=False) == HOSTS


@pytest.mark.parametrize('nothing', [[], '', ' , ', ()])
def test_no_hosts(nothing):
    assert collect_hosts(nothing) == []


def test_hosts_are_shuffled_when_asked(monkeypatch):
    monkeypatch.setattr('random.shuffle', lambda hosts: hosts.reverse())
    assert collect_hosts('a:1234,b,[::1]:9') == HOSTS[::-1]


@pytest.mark.parametrize('hosts', [None, 5, [5], [('a', 1)]])
def test_hosts_of_a_wrong_type_are_named(hosts):
    with pytest.raises(TypeError, match='hosts'):
        collect_hosts(hosts)


@pytest.mark.parametrize('hosts', ['a:port', '[::1]:x', 'a:1.5'])
def test_a_port_that_is_no_number_is_named(hosts):
    with pytest.raises(KafkaConfigurationError, match='port'):
        collect_hosts(hosts)


def test_defaults():
    assert (DEFAULT_KAFKA_PORT, DEFAULT_SOCKET_TIMEOUT_SECONDS) == (9092, 120)


# ---------------------------------------------------------------- scripted sockets


class FakeSocket:
    """Keeps what is sent; hands out what the script says, cut as it stands there.

    A script's items are bytes (b'' is the end of the stream) or errors to raise; it starts over
    never. recv() may return less than was asked for, never more.
    """

    def __init__(self, *script):
        self.script = list(script)
        self.sent = []
        self.asked = []
        self.calls = []
        self.fails = set()

    def sendall(self, data):
        self._call('sendall')
        self.sent.append(bytes(data))

    def recv(self, size):
        self.asked.append(size)
        if not self.script:
            raise socket.timeout('timed out')
        item = self.script.pop(0)
        if isinstance(item, Exception):
            raise item
        if len(item) > size:
            self.script.insert(0, item[size:])
        return item[:size]

    def shutdown(self, how):
        self._call('shutdown')

    def close(self):
        self._call('close')

    def _call(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise OSError('no %s' % name)

    @property
    def closed(self):
        return 'close' in self.calls


class FakeNetwork:
    """Stands for socket.create_connection; every connection gets the next socket."""

    def __init__(self, monkeypatch, *sockets):
        self.sockets = list(sockets)
        self.made = []
        self.calls = []
        monkeypatch.setattr(socket, 'create_connection', self.connect)

    def connect(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        made = self.sockets.pop(0) if self.sockets else FakeSocket()
        if isinstance(made, Exception):
            raise made
        self.made.append(made)
        return made


def connect(monkeypatch, *sockets):
    """Return a connection, its network, and its first socket."""
    network = FakeNetwork(monkeypatch, *sockets)
    return KafkaConnection('host', 9, timeout=5), network, network.made[0]


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
    with pytest.raises(KafkaConnectionError, match='host:9'):
        KafkaConnection('host', 9)


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


def test_repr(monkeypatch):
    conn, _, _ = connect(monkeypatch)
    assert repr(conn) == '<KafkaConnection host=host port=9>'


# ---------------------------------------------------------------- brokers behind the socket

NEW = {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6)}
CLOSES = 'closes'


class Broker(FakeSocket):
    """A socket with a broker behind it: `serves` maps API keys to functions of a request.

    A function returns a response; None stays silent, CLOSES closes. ApiVersions is answered with
    `ranges`, unless ranges is None.
    """

    def __init__(self, serves, ranges=NEW):
        super().__init__()
        self.serves = dict(serves)
        if ranges is not None:
            keys = [ApiVersion(key, low, high) for key, (low, high) in ranges.items()]
            keys.append(ApiVersion(18, 0, 5))
            self.serves[18] = lambda _: ApiVersionsResponse(error_code=0, api_keys=keys)
        self.serves.setdefault(3, lambda _: MetadataResponse(brokers=[], topics=[]))
        self.requests = []
        self._frames = FrameReader()

    def sendall(self, data):
        super().sendall(data)
        self._frames.receive_data(data)
        for each in iter(self._frames.next_frame, None):
            header, request = api.decode_request(each)
            self.requests.append((header.api_key, header.api_version))
            answer = self.serves.get(header.api_key, lambda _: CLOSES)(request)
            if answer is CLOSES:
                self.script.append(b'')
                return
            if answer is not None:
                self.script.append(
                    frame(api.encode_response(answer, header.api_version, header.correlation_id))
                )


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


def fetch(offset=0):
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
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
    assert broker.requests == [(18, 5), (3, 0), (0, 12), (0, 12)]


def test_fetched_batches_come_back_as_message_sets(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({1: has_one_message}))
    records = ask(conn, fetch()).responses[0].partitions[0].records
    ((batch,),) = [list(MemoryRecords(records))]
    assert (batch.magic, [(r.key, r.value) for r in batch]) == (0, [(b'k', b'v')])
    assert broker.requests[-1] == (1, 12)


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
    """0.9 is silent about ApiVersions and answers what follows."""
    broker = Broker({0: stores}, ranges=None)
    broker.serves[18] = lambda _: None
    conn, _, _ = connect(monkeypatch, broker)
    assert offset_of(ask(conn, produce())) == (0, 42)
    assert broker.sent[-1] == bytes_of(produce())


def broker_0_8():
    return Broker({0: stores}, ranges=None)


def test_what_costs_connections_to_find_out_is_remembered_until_an_error(monkeypatch):
    """0.8.0 closes on ApiVersions, Heartbeat and OffsetFetch, so it takes the fourth connection."""
    conn, network, _ = connect(monkeypatch, *[broker_0_8() for _ in range(9)])
    ask(conn, produce())
    assert len(network.made) == 4
    conn.close()
    ask(conn, produce())
    assert len(network.made) == 5
    network.made[-1].script.append(b'')
    with pytest.raises(KafkaConnectionError):
        conn.recv(1)
    ask(conn, produce())
    assert len(network.made) == 9


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
    assert broker.requests == [(18, 5), (3, 0)]
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
    with pytest.raises(FrameError, match='correlation id 85 where 9'):
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
    sockets = [FakeSocket(b''), FakeSocket(b''), FakeSocket(b'')]
    conn, network, _ = connect(monkeypatch, *sockets)
    with pytest.raises(KafkaConnectionError, match='TLS or SASL'):
        conn.send(1, bytes_of(produce()))
    assert all(sock.closed for sock in network.made)


def test_answers_that_come_before_the_versions_are_kept_for_their_turn(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({0: stores}))
    conn.send(1, bytes_of(METADATA, correlation_id=1))
    conn.send(2, bytes_of(produce(), correlation_id=2))
    assert broker.requests == [(3, 0), (18, 5), (3, 0), (0, 12)]
    assert conn.recv(1)[:4] == b'\x00\x00\x00\x01'
    assert conn.recv(2)[:4] == b'\x00\x00\x00\x02'


def test_they_are_kept_even_when_the_question_costs_the_connection(monkeypatch):
    conn, _, _ = connect(monkeypatch, *[broker_0_8() for _ in range(4)])
    conn.send(1, bytes_of(METADATA, correlation_id=1))
    conn.send(2, bytes_of(produce(), correlation_id=2))
    assert conn.recv(1)[:4] == b'\x00\x00\x00\x01'
    assert conn.recv(2)[:4] == b'\x00\x00\x00\x02'


def test_api_versions_asks_once_and_leaves_out_what_is_refused(monkeypatch):
    conn, _, broker = connect(monkeypatch, Broker({}, ranges={0: (0, 13), 8: (0, 9), 9: (0, 9)}))
    assert conn.api_versions() == {0: (3, 13), 8: (1, 9), 9: (1, 9), 18: (0, 5)}
    conn.api_versions().clear()
    assert conn.api_versions()[0] == (3, 13)
    assert broker.requests == [(18, 5), (3, 0)]


def test_a_new_connection_is_asked_anew(monkeypatch):
    """The broker may have been replaced by a later release meanwhile."""
    conn, network, _ = connect(
        monkeypatch, Broker({0: stores}), Broker({0: stores}, ranges={0: (0, 3)})
    )
    ask(conn, produce())
    conn.close()
    ask(conn, produce())
    assert network.made[1].requests == [(18, 5), (3, 0), (0, 3)]
