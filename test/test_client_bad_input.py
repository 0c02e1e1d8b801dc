"""KafkaClient when what answers is no Kafka broker, or one that talks nonsense."""

from __future__ import annotations

import socket
import struct

import pytest

from kafka.client import KafkaClient
from kafka.errors import (
    FailedPayloadsError,
    FrameError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaUnavailableError,
)
from kafka.protocol import create_message
from kafka.protocol.api import decode_request, encode_response
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.structs import OffsetRequest, ProduceRequest


class Server:
    """A socket whose other end says what `answer` returns for each thing it is sent."""

    def __init__(self, answer):
        self.answer = answer
        self.incoming = b''
        self.closed = False

    def sendall(self, data):
        self.incoming += self.answer(bytes(data))

    def recv(self, size):
        if not self.incoming:
            raise socket.timeout('timed out')
        data, self.incoming = self.incoming[:size], self.incoming[size:]
        return data

    def shutdown(self, how):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def network(monkeypatch):
    """Connect to servers by port: {port: what they answer, or the exception of connecting}."""
    servers, connected = {}, []

    def create_connection(address, timeout):
        found = servers[address[1]]
        if isinstance(found, Exception):
            raise found
        connected.append(Server(found))
        return connected[-1]

    monkeypatch.setattr(socket, 'create_connection', create_connection)
    yield servers
    # What cannot be understood is not listened to any longer.
    assert all(server.closed or not server.incoming for server in connected)


def framed(body):
    return struct.pack('>i', len(body)) + body


def response_to(data, message, shift=0):
    header, _ = decode_request(data[4:])
    return framed(encode_response(message, header.api_version, header.correlation_id + shift))


def metadata(port=1):
    """Return metadata of topic ``t`` whose leader listens on a port."""
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=0, host='leader', port=port)],
        topics=[
            MetadataResponseTopic(
                name='t',
                error_code=0,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=0, leader_id=0, error_code=0, replica_nodes=[], isr_nodes=[]
                    )
                ],
            )
        ],
    )


NONSENSE = {
    'HTTP': lambda data: b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n',
    'TLS alert': lambda data: b'\x15\x03\x03\x00\x02\x02\x46',
    'frame of 2 GiB': lambda data: b'\x7f\xff\xff\xff' + b'\x00' * 100,
    'frame of negative size': lambda data: b'\xff\xff\xff\xfe' + b'\x00' * 100,
    'silence': lambda data: b'',
    'half a frame': lambda data: b'\x00\x00\x01\x00' + b'half',
    'answer to another request': lambda data: response_to(data, metadata(), shift=1),
    'empty frame': lambda data: framed(b''),
    'answer that is cut off': lambda data: framed(response_to(data, metadata())[4:-9]),
    'more brokers than bytes': lambda data: framed(data[8:12] + b'\x7f\xff\xff\xff' * 4),
    'negative number of brokers': lambda data: framed(data[8:12] + b'\xff\xff\xff\xff' * 4),
}


@pytest.mark.parametrize('answer', NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_as_good_as_no_broker(network, answer):
    network[1] = answer
    with pytest.raises(KafkaUnavailableError, match='host:1: '):
        KafkaClient('host:1', timeout=1)
    network[2] = lambda data: response_to(data, metadata())
    client = KafkaClient('host:2', timeout=1)
    client.hosts = [('host', 1), ('host', 2)]
    assert client.send_metadata_request().topics[0].topic == b't'


@pytest.mark.parametrize(
    'error',
    [
        socket.gaierror(-2, 'Name or service not known'),
        ConnectionRefusedError(111, 'Connection refused'),
        socket.timeout('timed out'),
        UnicodeError('label too long'),
        OverflowError('port must be 0-65535'),
    ],
)
def test_host_that_cannot_be_connected_to_is_unavailable_and_says_why(network, error):
    network[1] = error
    with pytest.raises(KafkaUnavailableError, match='host:1') as caught:
        KafkaClient('host:1')
    assert isinstance(caught.value.__cause__, KafkaConnectionError)
    assert str(error) in str(caught.value)


def test_port_that_is_no_number_is_a_configuration_error():
    with pytest.raises(KafkaConfigurationError, match='host:port'):
        KafkaClient('host:port')


@pytest.mark.parametrize('name', ['HTTP', 'frame of 2 GiB', 'frame of negative size', 'silence'])
def test_leader_that_talks_nonsense_fails_its_payloads(network, name):
    network[1] = lambda data: response_to(data, metadata(port=2))
    network[2] = NONSENSE[name]
    client = KafkaClient('host:1', timeout=1)
    payload = ProduceRequest(b't', 0, [create_message(b'v')])
    for _ in range(2):
        (failure,) = client.send_produce_request([payload], fail_on_error=False)
        assert failure == FailedPayloadsError(payload)
        assert isinstance(failure.__cause__, KafkaConnectionError)
    with pytest.raises(FailedPayloadsError):
        client.send_offset_request([OffsetRequest(b't', 0, -1, 1)])
    client.close()


def test_leader_that_answers_out_of_turn_fails_its_payloads(network):
    """Taking the answer for the one that was due would be a silent mistake."""

    def silent_then_wrong(data):
        return framed(struct.pack('>i', 12345) + b'\x00' * 20)

    network[1] = lambda data: response_to(data, metadata(port=2))
    network[2] = silent_then_wrong
    client = KafkaClient('host:1', timeout=1)
    payload = OffsetRequest(b't', 0, -1, 1)
    (failure,) = client.send_offset_request([payload], fail_on_error=False)
    assert isinstance(failure, FailedPayloadsError)
    assert isinstance(failure.__cause__, FrameError)
