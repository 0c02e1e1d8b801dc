"""
Many connections at once: how a broker treats readers and writers that all want something.

Owns the clients of the fan-out rows of broker.py: non-blocking sockets in one thread, which speak
the protocol by kafka.protocol and do next to nothing else. ``python -m benchmarks.fan ADDRESS TOPIC
READERS WRITERS BATCHES`` runs them by hand; the topic has to be there, with one partition.

Writers send so many batches each, one after the other, and each waits for its acknowledgement.
Readers read the topic from the start until they have what all writers wrote. What is counted: when
each was done, and the longest time that anyone waited for an answer.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from typing import Any, Dict, List, NamedTuple, Tuple

from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.session import NEED_DATA, ResponseReceived, Role, Session
from kafka.record.default_records import HEADER, encode_batch

BATCH_RECORDS = 100
RECORD_BYTES = 100
VERSIONS = BrokerVersions({0: (3, 8), 1: (4, 12)})
SECONDS = 120.0


class Fan(NamedTuple):
    """What became of all connections of one kind, in seconds."""

    first_done: float
    last_done: float
    longest_wait: float


class Client:
    """One connection with one request on its way."""

    def __init__(self, address: Tuple[str, int], topic: str) -> None:
        self.topic = topic
        self.sock = socket.create_connection(address, SECONDS)
        self.sock.setblocking(False)
        self.session = Session(Role.CLIENT, 'fan')
        self.session.adopt(VERSIONS)
        self.unsent = b''
        self.asked_at = 0.0
        self.longest_wait = 0.0
        self.done_at = 0.0

    def ask(self) -> None:
        """Send the next request."""
        self.asked_at = time.perf_counter()
        self.unsent += self.request()
        self.flush()

    def flush(self) -> None:
        """Send what waits."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.sock.send(self.unsent) :]
        except BlockingIOError:
            pass

    def read(self) -> None:
        """Take what has come, and ask on."""
        data = self.sock.recv(1 << 20)
        if not data:
            raise SystemExit('the broker closed a connection')
        self.session.receive_data(data)
        while not self.done_at:
            event = self.session.next_event()
            if event is NEED_DATA:
                return
            assert isinstance(event, ResponseReceived)
            now = time.perf_counter()
            self.longest_wait = max(self.longest_wait, now - self.asked_at)
            if self.is_done(event.response):
                self.done_at = now
            else:
                self.ask()

    def request(self) -> bytes:
        """Return the next request."""
        raise NotImplementedError

    def is_done(self, response: Any) -> bool:
        """Take an answer; tell whether it was the last."""
        raise NotImplementedError


class Writer(Client):
    """Writes batches and waits for each."""

    def __init__(
        self, address: Tuple[str, int], topic: str, batches: int, batch_records: int
    ) -> None:
        super().__init__(address, topic)
        self.left = batches
        now = int(time.time() * 1000)
        values = (b'%0*d' % (RECORD_BYTES, number) for number in range(batch_records))
        records = encode_batch([(now, None, value, ()) for value in values])
        data = PartitionProduceData(index=0, records=records)
        asked = TopicProduceData(name=topic, partition_data=[data])
        self.message = ProduceRequest(acks=1, timeout_ms=30000, topic_data=[asked])

    def request(self) -> bytes:
        """Return a batch."""
        return self.session.send(self.message)

    def is_done(self, response: Any) -> bool:
        """Check that the batch was taken."""
        code = response.responses[0].partition_responses[0].error_code
        if code:
            raise SystemExit('a batch was refused with error %d' % code)
        self.left -= 1
        return self.left == 0


class Reader(Client):
    """Reads a topic from the start."""

    def __init__(self, address: Tuple[str, int], topic: str, records: int) -> None:
        super().__init__(address, topic)
        self.records = records
        self.offset = 0

    def request(self) -> bytes:
        """Return a fetch from where the last one ended."""
        asked = FetchPartition(
            partition=0, fetch_offset=self.offset, log_start_offset=-1, partition_max_bytes=1 << 20
        )
        topic = FetchTopic(topic=self.topic, partitions=[asked])
        fetch = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic])
        return self.session.send(fetch, version=4)

    def is_done(self, response: Any) -> bool:
        """Walk over the batches that came whole."""
        data = response.responses[0].partitions[0].records or b''
        pos = 0
        while pos + HEADER.size <= len(data):
            fields = HEADER.unpack_from(data, pos)
            end = pos + 12 + fields[1]
            if end > len(data):
                break
            if fields[0] != self.offset:
                raise SystemExit('offset %d came where %d was due' % (fields[0], self.offset))
            self.offset += fields[12]
            pos = end
        return self.offset >= self.records


def run(
    address: str,
    topic: str,
    readers: int,
    writers: int,
    batches: int,
    batch_records: int = BATCH_RECORDS,
) -> Dict[str, List[float]]:
    """Let them all read and write; return the figures of each kind."""
    host, _, port = address.rpartition(':')
    at = host, int(port)
    records = writers * batches * batch_records
    clients: List[Client] = [Writer(at, topic, batches, batch_records) for _ in range(writers)]
    clients += [Reader(at, topic, records) for _ in range(readers)]
    began = time.perf_counter()
    _serve(clients)
    kinds = {'in': clients[:writers], 'out': clients[writers:]}
    return {kind: list(_figures(each, began)) for kind, each in kinds.items() if each}


def _serve(clients: List[Client]) -> None:
    selector = selectors.DefaultSelector()
    left = len(clients)
    for client in clients:
        selector.register(client.sock, selectors.EVENT_READ, client)
        client.ask()
    while left:
        ready = selector.select(SECONDS)
        if not ready:
            raise SystemExit('%d connections wait in vain' % left)
        for key, _ in ready:
            client = key.data
            client.flush()
            client.read()
            if client.done_at:
                selector.unregister(client.sock)
                client.sock.close()
                left -= 1
    selector.close()


def _figures(clients: List[Client], began: float) -> Fan:
    done = [client.done_at - began for client in clients]
    return Fan(min(done), max(done), max(client.longest_wait for client in clients))


if __name__ == '__main__':
    given = sys.argv[1:]
    print(json.dumps(run(given[0], given[1], *map(int, given[2:]))))
