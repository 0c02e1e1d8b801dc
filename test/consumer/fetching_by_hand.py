"""A fetcher on a clock that is moved by hand, and brokers whose answers a test gives.

The loop is the real scheduler of kafka.net without sockets, and what is known of the cluster is in
a real ClusterMetadata; a link keeps each request until the test answers it.
"""

from __future__ import annotations

import random
import threading

from kafka.cluster import ClusterMetadata
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.manager import FetchManager, FetchSettings
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import Cancelled, KafkaConnectionError, KafkaError, UnknownBrokerIdError
from kafka.net.node_connection import ResponseCallback
from kafka.protocol.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.wire import ZERO_UUID
from kafka.record.memory_records_builder import MemoryRecordsBuilder
from kafka.structs import TopicPartition
from test.manual_loop import ManualLoop

T0, T1, T2 = (TopicPartition('t', n) for n in range(3))


def batch(offset, *values, magic=2, epoch=0):
    """Return records that begin at an offset, as a broker keeps them."""
    builder = MemoryRecordsBuilder(magic, 0, 1 << 30)
    for value in values:
        builder.append(1000, None, value)
    builder.close()
    data = bytearray(builder.buffer())
    if magic == 2:
        data[0:8] = offset.to_bytes(8, 'big')
        data[12:16] = epoch.to_bytes(4, 'big')  # which no checksum covers
        return bytes(data)
    pos = 0
    while pos < len(data):
        data[pos : pos + 8] = offset.to_bytes(8, 'big')
        pos += 12 + int.from_bytes(data[pos + 8 : pos + 12], 'big')
        offset += 1
    return bytes(data)


class Sent:
    """A request that came to a broker."""

    def __init__(self, request, version, answer):
        self.request = request
        self.version = version
        self.is_answered = False
        self._answer = answer

    @property
    def asked(self):
        """The offset asked for of each partition that is named, in order."""
        return {
            TopicPartition(topic.topic, each.partition): each.fetch_offset
            for topic in self.request.topics
            for each in topic.partitions
        }

    @property
    def limits(self):
        return {
            TopicPartition(topic.topic, each.partition): each.partition_max_bytes
            for topic in self.request.topics
            for each in topic.partitions
        }

    @property
    def forgotten(self):
        return [
            TopicPartition(topic.topic, each)
            for topic in self.request.forgotten_topics_data
            for each in topic.partitions
        ]

    @property
    def session(self):
        return self.request.session_id, self.request.session_epoch

    def respond(self, parts=(), session_id=7, error_code=0, ids=None, **more):
        """Answer: bytes are records, numbers are errors, PartitionData is as it is.

        A full request gets an answer about all it names.
        """
        parts = dict(parts)
        if self.request.session_epoch <= 0 and not error_code and not more.pop('is_bare', False):
            parts = {**dict.fromkeys(self.asked, b''), **parts}
        topics = [
            FetchableTopicResponse(
                topic='' if ids else at.topic,
                topic_id=(ids or {}).get(at.topic, ZERO_UUID),
                partitions=[_data(at.partition, part)],
            )
            for at, part in parts.items()
        ]
        self.is_answered = True
        self._answer.wake(
            FetchResponse(
                error_code=error_code,
                session_id=session_id if self.version >= 7 else 0,
                responses=topics,
                **more,
            )
        )

    def fail(self, error=None):
        self.is_answered = True
        self._answer.fail(error or KafkaConnectionError('lost'))


def _data(index, part):
    if isinstance(part, PartitionData):
        return part
    is_error = isinstance(part, int)
    return PartitionData(
        partition_index=index,
        error_code=part if is_error else 0,
        high_watermark=-1 if is_error else 100,
        records=b'' if is_error else part,
    )


class Link:
    """A broker."""

    def __init__(self, loop, ranges):
        self._loop = loop
        self.ranges = ranges
        self.versions = None
        self.sent = []
        self.refusal = None
        self.tries = 0
        self.closed = 0

    @property
    def can_send(self):
        return self.versions is not None

    async def ready(self):
        self.tries += 1
        if self.refusal is not None:
            raise self.refusal
        self.versions = BrokerVersions(self.ranges)

    def submit(self, request, call, timeout, version):
        answer = ResponseCallback(self._loop, call)
        try:
            assert request.encode(version)
        except KafkaError as error:
            answer.fail(error)
        else:
            self.sent.append(Sent(request, version, answer))

    def close(self):
        """Fail what waits; the next request needs a new connection."""
        self.closed += 1
        self.versions = None
        for each in self.sent:
            if not each.is_answered:
                each.fail(Cancelled('closed'))


class Pool:
    """Some brokers; counts what is asked of it."""

    def __init__(self, loop, ranges):
        self._loop = loop
        self.ranges = ranges
        self.cluster = ClusterMetadata(loop.time)
        self.links = {}
        self.wanted = []
        self.refreshed = 0

    def fetch_link(self, node):
        if self.cluster.broker_metadata(node) is None:
            raise UnknownBrokerIdError(str(node))
        return self.links.setdefault(node, Link(self._loop, self.ranges))

    def want_topic(self, topic):
        self.wanted.append(topic)

    def refresh(self):
        self.refreshed += 1


class Lock:
    """A lock that says whether it is held."""

    def __init__(self):
        self._lock = threading.Lock()

    def __enter__(self):
        assert self._lock.acquire(False), 'taken twice'

    def __exit__(self, *exc_info):
        self._lock.release()

    @property
    def is_held(self):
        return self._lock.locked()


class HandLoop(ManualLoop):
    """Calls of other threads are calls of this one."""

    def call_lazily(self, call, *args):
        self.call_soon(call, *args)


class Rig:
    """A fetcher and all it needs; partitions of topic t are assigned and begin at offset 0."""

    def __init__(
        self, partitions=1, fetch=(4, 12), leaders=None, ids=None, policy='earliest', **settings
    ):
        self.loop = HandLoop()
        self.pool = Pool(self.loop, {1: fetch})
        self.lock = Lock()
        self.changes = 0
        self.count = partitions
        self.leaders = dict(leaders or {})
        self.epochs = {}
        self.offline = {}
        self.ids = ids or {}
        self.metadata()
        self.subscription = SubscriptionState(policy)
        self.settings = FetchSettings(**settings)
        self.fetcher = FetchManager(
            self.loop,
            self.pool,
            self.subscription,
            self.lock,
            self.settings,
            self.make,
            self.changed,
            chance=random.Random(1),
        )
        self.assign(range(partitions))
        self.look()

    def make(self, *args, **more):
        assert not self.lock.is_held, 'nothing is decoded under the lock'
        return CompletedFetch(*args, **more)

    def changed(self):
        assert not self.lock.is_held, 'the program is called under the lock'
        self.changes += 1

    def metadata(self, brokers=(1, 2, 3), version=12, topics=None):
        """Let an answer to Metadata come."""
        self.pool.cluster.replace(
            MetadataResponse(
                brokers=[
                    MetadataResponseBroker(node_id=node, host='h%d' % node, port=9092)
                    for node in brokers
                ],
                cluster_id='c',
                controller_id=1,
                topics=[self._topic(name) for name in topics or ['t']],
            ),
            version,
        )

    def _topic(self, name):
        return MetadataResponseTopic(
            error_code=0,
            name=name,
            topic_id=self.ids.get(name, ZERO_UUID),
            partitions=[
                MetadataResponsePartition(
                    error_code=5 if self.leaders.get(index) == -1 else 0,
                    partition_index=index,
                    leader_id=self.leaders.get(index, 1),
                    leader_epoch=self.epochs.get(index, 0),
                    replica_nodes=[1, 2, 3],
                    isr_nodes=[1, 2, 3],
                    offline_replicas=self.offline.get(index, []),
                )
                for index in range(self.count)
            ],
        )

    def assign(self, indexes, offset=0):
        """Assign partitions; those without position begin at an offset."""
        self.subscription.assign_from_user([TopicPartition('t', n) for n in indexes])
        for at, state in self.subscription.assignment.items():
            if state.position is None:
                self.subscription.seek(at, offset)

    def look(self):
        self.fetcher.look()
        self.loop.settle()

    def state(self, at=T0):
        return self.subscription.state(at)

    def sent_to(self, node):
        return self.pool.links[node].sent if node in self.pool.links else []

    @property
    def sent(self):
        """What node 1 got so far."""
        return self.sent_to(1)

    @property
    def open(self):
        """What waits for an answer of node 1."""
        found = [sent for sent in self.sent if not sent.is_answered]
        assert len(found) <= 1, 'one request at a time'
        return found[0] if found else None

    def offset_asked(self, at=T0):
        """The offset that what waits at node 1 asks for, named in it or in the session."""
        wanted = self.fetcher._selection.sessions[1].asked(at) if self.open else None
        return None if wanted is None else wanted.offset

    def answer(self, parts=(), node=1, **more):
        """Answer what waits at a node."""
        self.sent_to(node)[-1].respond(parts, **more)
        self.loop.settle()

    def idle(self, node=1):
        """Let a node say after its time that there is nothing."""
        self.loop.advance(self.settings.max_wait)
        self.answer(node=node)

    def take(self):
        """Take a fetch, empty it as the program would; return its values, None for nothing."""
        fetch = self.fetcher.next_fetch()
        if fetch is None:
            self.loop.settle()
            return None
        values = [record.value for record in fetch.take()]
        with self.lock:
            self.subscription.state(fetch.partition).consumed(fetch.position, fetch.last_epoch)
        self.fetcher.done(fetch)
        self.loop.settle()
        return values
