"""Servers on 127.0.0.1 that answer what no Kafka broker answers.

Owns: one thread per server, which ends with the ``with`` block, and what it says. A server speaks
raw bytes (``Server``) or frames (``Broker``); a broker tells that it serves what Kafka 4.4 serves,
so clients send it later versions than 0, and then lies in the answers that a test gives it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading

from kafka.protocol import api
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka.protocol.find_coordinator import FindCoordinatorResponse
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

CLOSE = 'close'

#: The versions of Kafka 4.4.
NEWEST = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    18: (0, 5),
}


class Unframed(bytes):
    """What a broker sends as it is, without a length of its own making."""


class Server:
    """A server in one thread.

    Arguments: answer: called with what a client has sent, in pieces as they come; returns bytes to
    send, None to stay silent, CLOSE to close the connection, or (bytes, CLOSE) for both.
    """

    def __init__(self, answer=None):
        self.answer = answer or (lambda data: None)
        self.connections = 0

    def __enter__(self):
        self._listener = socket.socket()
        self._listener.bind(('127.0.0.1', 0))
        self._listener.listen(16)
        self.port = self._listener.getsockname()[1]
        self._waker, self._sleeper = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        self._waker.close()
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def address(self):
        return '127.0.0.1:%d' % self.port

    def _run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._sleeper, selectors.EVENT_READ)
            try:
                while not self._serve(selector):
                    pass
            finally:
                for key in list(selector.get_map().values()):
                    key.fileobj.close()

    def _serve(self, selector):
        """Do what can be done now; return whether that was the end."""
        for key, _ in selector.select():
            if key.fileobj is self._sleeper:
                return True
            if key.fileobj is self._listener:
                accepted, _ = self._listener.accept()
                accepted.settimeout(5)
                self.connections += 1
                selector.register(accepted, selectors.EVENT_READ, self.conversation())
            elif not self._talk(key.fileobj, key.data):
                selector.unregister(key.fileobj)
                key.fileobj.close()
        return False

    def conversation(self):
        """Return what answers on a new connection."""
        return self.answer

    @staticmethod
    def _talk(sock, answer):
        """Answer what has come; return whether the connection stays open."""
        try:
            data = sock.recv(65536)
            said = answer(data) if data else CLOSE
            stays = said is not CLOSE and not isinstance(said, tuple)
            if isinstance(said, tuple):
                said = said[0]
            if said and said is not CLOSE:
                sock.sendall(said)
        except OSError:  # the client has had enough
            return False
        return stays


class Broker(Server):
    """A server that speaks Kafka, at least in the beginning.

    Arguments: answers: {api key: function of (header, request)} returning a response, the bytes of
    a frame's body, Unframed bytes, None for silence, or CLOSE; versions: what it says it serves.
    Metadata and FindCoordinator are answered with this broker itself and topic ``t`` with
    `partitions` partitions, unless `answers` have something else.
    """

    def __init__(self, answers=None, versions=NEWEST, partitions=1):
        super().__init__()
        self.answers = {
            3: lambda header, request: self.metadata(),
            10: lambda header, request: self.coordinator(),
            18: lambda header, request: self.versions(),
        }
        self.answers.update(answers or {})
        self.ranges = versions
        self.partitions = partitions
        self.requests = []

    def count(self, key):
        """Return how many requests of one kind came."""
        return sum(found == key for found, _ in self.requests)

    def versions(self):
        keys = [ApiVersion(key, low, high) for key, (low, high) in self.ranges.items()]
        return ApiVersionsResponse(error_code=0, api_keys=keys)

    def metadata(self, host='127.0.0.1', port=None, name='t', leader=0):
        port = self.port if port is None else port
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host=host, port=port)],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    error_code=0,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=leader,
                            error_code=0,
                            replica_nodes=[0],
                            isr_nodes=[0],
                        )
                        for index in range(self.partitions)
                    ],
                )
            ],
        )

    def coordinator(self, host='127.0.0.1', port=None):
        port = self.port if port is None else port
        return FindCoordinatorResponse(error_code=0, node_id=0, host=host, port=port)

    def conversation(self):
        frames = FrameReader()

        def answer(data):
            frames.receive_data(data)
            said = b''
            for each in iter(frames.next_frame, None):
                answered = self._answer_frame(each)
                if answered is CLOSE or isinstance(answered, tuple):
                    return (said + (answered[0] if isinstance(answered, tuple) else b''), CLOSE)
                said += answered or b''
            return said

        return answer

    def _answer_frame(self, data):
        header, request = api.decode_request(data)
        self.requests.append((header.api_key, header.api_version))
        said = self.answers.get(header.api_key, lambda *_: CLOSE)(header, request)
        if said is None or said is CLOSE or isinstance(said, (tuple, Unframed)):
            return said
        if not isinstance(said, bytes):
            said = api.encode_response(said, header.api_version, header.correlation_id)
        return frame(said)


# ---------------------------------------------------------------- answers


def fetched(records, partitions=(0,), topic='t', error_code=0):
    """Answer a fetch: `records` are bytes, or a function of the offset asked for."""

    def answer(header, request):
        offset = request.topics[0].partitions[0].fetch_offset
        given = records(offset) if callable(records) else records
        parts = [
            PartitionData(
                partition_index=index, error_code=error_code, high_watermark=100, records=given
            )
            for index in partitions
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=parts)])

    return answer


def produced(topic='t', partitions=(0,), error_code=0, throttle_time_ms=0):
    def answer(header, request):
        parts = [
            PartitionProduceResponse(index=index, error_code=error_code, base_offset=5)
            for index in partitions
        ]
        return ProduceResponse(
            responses=[TopicProduceResponse(name=topic, partition_responses=parts)],
            throttle_time_ms=throttle_time_ms,
        )

    return answer


def listed(topic='t', partitions=(0,), offset=5):
    def answer(header, request):
        parts = [
            ListOffsetsPartitionResponse(partition_index=index, error_code=0, offset=offset)
            for index in partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic, partitions=parts)])

    return answer


def raw(body):
    """Answer with the right correlation id and these bytes."""
    return lambda header, request: struct.pack('>i', header.correlation_id) + body


@contextlib.contextmanager
def nobody():
    """Yield an address where nobody listens, and nobody can."""
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        yield '127.0.0.1:%d' % taken.getsockname()[1]
