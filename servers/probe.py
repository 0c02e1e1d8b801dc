"""Ask a broker, in a few bytes, who is in the cluster, and have it create a topic.

Owns: the three requests that starting a cluster needs (Metadata v0 and v1, CreateTopics v0 and v2),
written by hand over a plain socket, so that the test fixtures work without the package under test.
Does not own: anything a program would use. Layouts: the Kafka protocol guide.
"""

from __future__ import annotations

import socket
import struct
from typing import Dict, List, NamedTuple, Tuple

LIST_OFFSETS = 2
METADATA = 3
CREATE_TOPICS = 19
NOT_CONTROLLER = 41
REQUEST_TIMED_OUT = 7
TOPIC_ALREADY_EXISTS = 36
# What a busy broker says of a topic that it makes: KRaft ones may ask their controller twice.
MADE_LATER = (REQUEST_TIMED_OUT, TOPIC_ALREADY_EXISTS)
INVALID_REPLICATION_FACTOR = 38
# What it says while it does not know all brokers, or who the controller is.
NOT_READY = (INVALID_REPLICATION_FACTOR, NOT_CONTROLLER)


class Partition(NamedTuple):
    """One partition as Metadata shows it; ``leader`` is -1 while there is none."""

    error: int
    leader: int
    replicas: List[int]
    isr: List[int]


class Metadata(NamedTuple):
    """``brokers``: node id -> (host, port); ``topics``: name -> partition -> :class:`Partition`."""

    brokers: Dict[int, Tuple[str, int]]
    topics: Dict[str, Dict[int, Partition]]


class Reader:
    """Read the primitive types of the protocol from one answer, front to back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> int:
        """Return the next integer (``'h'``, ``'i'`` … of :mod:`struct`)."""
        (value,) = struct.unpack_from('>' + layout, self.data, self.at)
        self.at += struct.calcsize('>' + layout)
        return int(value)

    def string(self) -> str:
        """Return the next string; null reads as the empty one."""
        length = max(self.take('h'), 0)
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def integers(self) -> List[int]:
        """Return the next array of int32."""
        return [self.take('i') for _ in range(self.take('i'))]


def string(text: str) -> bytes:
    """Return ``text`` as the protocol's string: int16 length, then UTF-8."""
    data = text.encode()
    return struct.pack('>h', len(data)) + data


def call(address: Tuple[str, int], api: int, version: int, body: bytes, timeout: float) -> Reader:
    """Send one request over a new connection and return its answer behind the correlation id.

    OSError when the broker is not there, closes, or takes longer than ``timeout`` seconds a step.
    """
    request = struct.pack('>hhi', api, version, 1) + string('servers.probe') + body
    with socket.create_connection(address, timeout) as connection:
        connection.sendall(struct.pack('>i', len(request)) + request)
        (length,) = struct.unpack('>i', _exactly(connection, 4))
        answer = Reader(_exactly(connection, length))
    answer.take('i')
    return answer


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = b''
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise ConnectionResetError('the broker closed the connection')
        data += more
    return data


def metadata(address: Tuple[str, int], *topics: str, timeout: float = 5) -> Metadata:
    """Return what the broker knows of ``topics`` (none named: of all), by Metadata v0.

    A topic that does not exist is created by this call where the broker creates automatically.
    """
    body = struct.pack('>i', len(topics)) + b''.join(string(topic) for topic in topics)
    answer = call(address, METADATA, 0, body, timeout)
    brokers = {}
    for _ in range(answer.take('i')):
        node_id = answer.take('i')
        host = answer.string()
        brokers[node_id] = (host, answer.take('i'))
    found: Dict[str, Dict[int, Partition]] = {}
    for _ in range(answer.take('i')):
        answer.take('h')  # the topic's error: a topic in creation has no partitions
        partitions = found.setdefault(answer.string(), {})
        for _ in range(answer.take('i')):
            error, index, leader = answer.take('h'), answer.take('i'), answer.take('i')
            partitions[index] = Partition(error, leader, answer.integers(), answer.integers())
    return Metadata(brokers, found)


def log_end_error(address: Tuple[str, int], topic: str, partition: int) -> int:
    """Return the error code with which the broker answers ListOffsets v1 (0.10.1 and later).

    It is 0 once the broker leads the partition: with KRaft that can be after it said so.
    """
    body = struct.pack('>ii', -1, 1) + string(topic)  # replica_id, one topic
    body += struct.pack('>iiq', 1, partition, -1)  # one partition, latest
    answer = call(address, LIST_OFFSETS, 1, body, timeout=5)
    answer.take('i')  # one topic
    answer.string()
    answer.take('i'), answer.take('i')  # one partition, its number
    return answer.take('h')


def create_topic(
    address: Tuple[str, int],
    topic: str,
    partitions: int,
    replication: int,
    config: Dict[str, str],
    version: int,
) -> int:
    """Ask the broker to create a topic by CreateTopics v0 or v2; return its error code."""
    body = struct.pack('>i', 1) + string(topic)
    body += struct.pack('>ihi', partitions, replication, 0)  # no assignments
    body += struct.pack('>i', len(config))
    body += b''.join(string(name) + string(value) for name, value in config.items())
    body += struct.pack('>i', 10000)  # timeout, ms
    if version >= 1:
        body += struct.pack('>?', False)  # validate_only
    answer = call(address, CREATE_TOPICS, version, body, timeout=30)
    if version >= 2:
        answer.take('i')  # throttle_time_ms
    answer.take('i')  # one result
    answer.string()
    return answer.take('h')
