"""What comes in, and the documented error it ends in, on real sockets.

Here: hosts that are none, servers that are no brokers, wrong arguments, use after close, answers
that are damaged or cut off. Beside this file: brokers that lie (``test_lying_brokers.py``), varints
and counts (``test_protocol_bad_input.py``), records (``test_record_bad_input.py``). Compression
bombs: ``test/test_codec.py``.
"""

from __future__ import annotations

import socket
import struct
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka import KafkaClient, KafkaConnection, KeyedProducer, SimpleConsumer, SimpleProducer
from kafka.errors import (
    FailedPayloadsError,
    FrameError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaUnavailableError,
)
from kafka.protocol import KafkaProtocol, create_message
from kafka.protocol.session import NEED_DATA, Role, Session
from kafka.record.legacy_records import encode_message_set
from kafka.structs import (
    FetchRequest,
    ProduceRequest,
)
from test.hostile_servers import CLOSE, Broker, Server, produced

MIB = 1024 * 1024

METADATA = KafkaProtocol.encode_metadata_request(b'test', 1)


# ---------------------------------------------------------------- nobody there, or somebody else


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


UNREACHABLE = {
    'unknown host': lambda: ('no-such-host.invalid', 9092),
    'host of no length': lambda: ('', 9092),
    'host that can be no name': lambda: ('a' * 300, 9092),
    'port where nobody listens': lambda: ('127.0.0.1', free_port()),
    'port 0': lambda: ('127.0.0.1', 0),
    'port beyond the last': lambda: ('127.0.0.1', 70000),
}


@pytest.mark.parametrize('where', UNREACHABLE)
def test_a_broker_that_cannot_be_reached(where):
    host, port = UNREACHABLE[where]()
    with pytest.raises(KafkaConnectionError, match=':%d' % port):
        KafkaConnection(host, port, timeout=1)
    if port <= 65535 and host:
        with pytest.raises(KafkaUnavailableError, match=str(port)) as caught:
            KafkaClient('%s:%d' % (host, port), timeout=1)
        assert isinstance(caught.value.__cause__, KafkaConnectionError)


def test_a_port_beyond_the_last_is_a_configuration_error():
    with pytest.raises(KafkaConfigurationError, match='70000'):
        KafkaClient('127.0.0.1:70000')


#: What a server says to whatever it is sent, and how the error tells of it.
STRANGERS = {
    'HTTP': ((b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', CLOSE), 'web server'),
    'TLS': (b'\x15\x03\x03\x00\x02\x02\x46', 'TLS'),
    'SSH': (b'SSH-2.0-OpenSSH_9.6\r\n', 'SSH'),
    'frame of 2 GiB': (b'\x7f\xff\xff\xff' + b'\x00' * 50, '2147483647 bytes; the limit'),
    'frame of negative length': (b'\xff\xff\xff\xff' + b'\x00' * 50, 'negative length'),
    'frame without correlation id': (b'\x00\x00\x00\x02\x00\x00', 'correlation id None'),
    'another correlation id': (b'\x00\x00\x00\x08\x00\x00\x00\x63' + b'\x00' * 4, '99 where 1'),
    'half a frame': ((b'\x00\x00\x01\x00half', CLOSE), 'in the middle'),
    'half a length': ((b'\x00\x00', CLOSE), 'in the middle'),
    'goodbye': (CLOSE, 'closed the connection'),
    'silence': (None, 'timed out'),
}


@pytest.mark.parametrize('stranger', STRANGERS)
def test_a_server_that_is_no_broker(stranger):
    """The error says what the server is, within the time-out; a frame's length is not allocated."""
    said, told = STRANGERS[stranger]
    with Server(lambda data: said) as server:
        conn = KafkaConnection('127.0.0.1', server.port, timeout=0.2)
        conn.send(1, METADATA)
        tracemalloc.start()
        with pytest.raises(KafkaConnectionError, match=told) as caught:
            conn.recv(1)
        assert tracemalloc.get_traced_memory()[1] < MIB
        tracemalloc.stop()
        bytes_no_broker_sends = stranger not in (
            'half a frame',
            'half a length',
            'goodbye',
            'silence',
        )
        assert isinstance(caught.value, FrameError) == bytes_no_broker_sends
        with pytest.raises(KafkaUnavailableError, match=told):
            KafkaClient(server.address, timeout=0.2)


@pytest.mark.parametrize('stranger', STRANGERS)
def test_a_leader_that_is_no_broker(stranger):
    """Metadata sends the client there; its payloads fail, none is silently taken for written."""
    said, _ = STRANGERS[stranger]
    with Broker() as broker, Server(lambda data: said) as server:
        broker.answers[3] = lambda header, request: broker.metadata(port=server.port)
        with closing(KafkaClient(broker.address, timeout=0.2)) as client:
            producer = SimpleProducer(client, sync_fail_on_error=False)
            (failure,) = producer.send_messages(b't', b'v')
            assert isinstance(failure, FailedPayloadsError)
            assert isinstance(failure.__cause__, KafkaConnectionError)
            with pytest.raises(FailedPayloadsError):
                SimpleProducer(client).send_messages(b't', b'v')
            with pytest.raises(FailedPayloadsError):
                client.send_fetch_request([FetchRequest(b't', 0, 0, 1000)])


# ---------------------------------------------------------------- wrong arguments


@pytest.fixture
def client():
    with Broker({0: produced()}) as broker:
        with closing(KafkaClient(broker.address, timeout=2)) as made:
            yield made


WRONG_ARGUMENTS = {
    'hosts': lambda client: KafkaClient(5),
    'client_id': lambda client: KafkaClient('a:1', client_id=5),
    'timeout': lambda client: KafkaClient('a:1', timeout='5'),
    'correlation_id': lambda client: KafkaClient('a:1', correlation_id='5'),
    'host': lambda client: KafkaConnection(None, 9092),
    'port': lambda client: KafkaConnection('a', None),
    'payload ': lambda client: next(iter(client.conns.values())).send(1, 'text'),
    'payloads': lambda client: client.send_produce_request(5),
    'payloads ': lambda client: client.send_fetch_request(['text']),
    'topic': lambda client: SimpleProducer(client).send_messages(5, b'v'),
    'msg': lambda client: SimpleProducer(client).send_messages(b't', 'text'),
    'msg ': lambda client: SimpleProducer(client).send_messages(b't', None),
    'key': lambda client: KeyedProducer(client).send_messages(b't', 'text', b'v'),
    'topic ': lambda client: SimpleConsumer(client, None, 5),
    'group': lambda client: SimpleConsumer(client, 5, b't'),
    'partitions': lambda client: SimpleConsumer(client, None, b't', partitions=5),
    'offset': lambda client: SimpleConsumer(client, None, b't', False).seek('5'),
    'count': lambda client: SimpleConsumer(client, None, b't', False).get_messages('5'),
    'topics': lambda client: client.load_metadata_for_topics(5),
    'data': lambda client: KafkaProtocol.decode_metadata_response('text'),
    'topic  ': lambda client: KafkaProtocol.encode_produce_request(
        b'c', 1, [ProduceRequest('t', 0, [create_message(b'v')])]
    ),
    'value': lambda client: KafkaProtocol.encode_produce_request(
        b'c', 1, [ProduceRequest(b't', 0, [create_message(5)])]
    ),
}


@pytest.mark.parametrize('argument', WRONG_ARGUMENTS)
def test_a_wrong_argument_is_a_type_error_that_names_it(client, argument):
    with pytest.raises(TypeError, match=argument.strip()):
        WRONG_ARGUMENTS[argument](client)


# ---------------------------------------------------------------- after close


def test_a_client_that_was_closed_connects_again(client):
    (connection,) = client.conns.values()
    client.close()
    client.close()
    assert client.topics == [b't']
    assert SimpleProducer(client).send_messages(b't', b'v')[0].offset == 5
    connection.close()
    connection.send(7, KafkaProtocol.encode_metadata_request(b'test', 7))
    assert connection.recv(7)[:4] == b'\x00\x00\x00\x07'


def test_a_client_that_was_closed_says_that_the_broker_is_gone():
    with Broker({0: produced()}) as broker:
        client = KafkaClient(broker.address, timeout=1)
        client.close()
    with pytest.raises(FailedPayloadsError) as caught:
        SimpleProducer(client).send_messages(b't', b'v')
    assert isinstance(caught.value.__cause__, KafkaConnectionError)
    with pytest.raises(KafkaUnavailableError):
        client.load_metadata_for_topics()
    client.close()


# ---------------------------------------------------------------- damaged bytes


RESPONSES = {
    KafkaProtocol.decode_produce_response: struct.pack('>iih', 1, 1, 1)
    + b't'
    + struct.pack('>iihq', 1, 0, 0, 5),
    KafkaProtocol.decode_fetch_response: struct.pack('>iih', 1, 1, 1)
    + b't'
    + struct.pack('>iihqi', 1, 0, 0, 9, 31)
    + encode_message_set([(0, None, b'k', b'vvvv')], magic=0),
    KafkaProtocol.decode_offset_response: struct.pack('>iih', 1, 1, 1)
    + b't'
    + struct.pack('>iihiq', 1, 0, 0, 1, 5),
    KafkaProtocol.decode_metadata_response: struct.pack('>iiih', 1, 1, 0, 4)
    + b'host'
    + struct.pack('>iihh', 9092, 1, 0, 1)
    + b't'
    + struct.pack('>ihiiiiii', 1, 0, 0, 0, 1, 0, 1, 0),
    KafkaProtocol.decode_consumer_metadata_response: struct.pack('>ihih', 1, 0, 0, 4)
    + b'host'
    + struct.pack('>i', 9092),
    KafkaProtocol.decode_offset_commit_response: struct.pack('>iih', 1, 1, 1)
    + b't'
    + struct.pack('>iih', 1, 0, 0),
    KafkaProtocol.decode_offset_fetch_response: struct.pack('>iih', 1, 1, 1)
    + b't'
    + struct.pack('>iiqhh', 1, 0, 5, 0, 0),
}

edges = st.sampled_from([b'\x7f\xff\xff\xff', b'\xff\xff\xff\xff', b'\x80\x00\x00\x00', b'\xff'])


def damaged(data, draw):
    data = bytearray(data)
    at = draw(st.integers(0, len(data) - 1))
    put = draw(edges | st.binary(max_size=4))
    data[at : at + draw(st.integers(0, 4))] = put
    return bytes(data)


def read_all(decode, data):
    """Read an answer to its last message, as a program would."""
    found = decode(data)
    if hasattr(found, '__next__'):
        for response in found:
            list(getattr(response, 'messages', ()))


@pytest.mark.parametrize('decode', RESPONSES, ids=lambda decode: decode.__name__)
def test_a_damaged_answer_is_read_or_refused(decode):
    read_all(decode, RESPONSES[decode])

    @given(st.data())
    def check(data):
        try:
            read_all(decode, damaged(RESPONSES[decode], data.draw))
        except KafkaError:
            pass

    check()


@pytest.mark.parametrize('decode', RESPONSES, ids=lambda decode: decode.__name__)
def test_an_answer_cut_off_at_any_byte_is_refused(decode):
    whole = RESPONSES[decode]
    for end in range(len(whole)):
        with pytest.raises(KafkaError):
            read_all(decode, whole[:end])


@given(st.data())
def test_a_damaged_request_to_a_server_is_read_or_refused(data):
    request = KafkaProtocol.encode_produce_request(
        b'c', 1, [ProduceRequest(b't', 0, [create_message(b'v')])]
    )
    session = Session(Role.SERVER)
    session.receive_data(damaged(request, data.draw))
    try:
        while session.next_event() is not NEED_DATA:
            pass
    except KafkaError:
        pass
