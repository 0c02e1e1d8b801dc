"""A sender on a clock that is moved by hand, and brokers whose answers a test gives.

The loop is the real scheduler of kafka.net without sockets; a link keeps each request until the
test answers it.
"""

from __future__ import annotations

import uuid

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.node_connection import ResponseCallback
from kafka.producer.future import future_of
from kafka.producer.plain_state import PlainState
from kafka.producer.produce_request import SenderSettings
from kafka.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafka.producer.sender import Sender
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.record.memory_records import MemoryRecords
from test.manual_loop import ManualLoop

NODE = 1


class Reply(ResponseCallback):
    """Tells whether it was given."""

    done = False

    def wake(self, response):
        self.done = True
        super().wake(response)

    def fail(self, error):
        self.done = True
        super().fail(error)


class Sent:
    """A request that came to a broker."""

    def __init__(self, request, version, answer=None):
        self.request = request
        self.version = version
        self.answer = answer

    @property
    def batches(self):
        """The records of each partition, as bytes."""
        return {
            (topic.name, data.index): data.records
            for topic in self.request.topic_data
            for data in topic.partition_data
        }

    @property
    def values(self):
        """The values for each partition."""
        return {
            place[1]: [r.value for batch in MemoryRecords(bytes(records)) for r in batch]
            for place, records in self.batches.items()
        }

    def respond(self, *answers, **more):
        """Answer with an error code and offset for each partition; only 0 stands for all stored."""
        given = dict(answers)
        topics = [
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index,
                        error_code=given.get(data.index, 0),
                        base_offset=10 if not given.get(data.index, 0) else -1,
                        **more,
                    )
                    for data in topic.partition_data
                    if given.get(data.index, 0) is not None
                ],
            )
            for topic in self.request.topic_data
        ]
        self.answer.wake(ProduceResponse(responses=topics))


class Link:
    """A broker."""

    def __init__(self, loop, ranges):
        self._loop = loop
        self.ranges = ranges
        self.versions = None
        self.sent = []
        self.refuses = 0
        self.attempts = []
        self.tries = 0

    async def ready(self):
        self.tries += 1
        if self.refuses:
            self.refuses -= 1
            raise KafkaConnectionError('refused')
        self.versions = BrokerVersions(self.ranges)

    def submit(self, request, call, timeout, version):
        answer = Reply(self._loop, call)
        try:
            assert request.encode(version)
        except KafkaError as error:
            answer.fail(error)
        else:
            self.sent.append(Sent(request, version, answer))

    async def send(self, request, version):
        assert request.encode(version)
        self.sent.append(Sent(request, version))


class Cluster:
    """Which node leads which partition of topic t."""

    def __init__(self):
        self.leaders = {}
        self.ids = {}
        self.topic_errors = {}
        self.listeners = []

    def add_listener(self, listener):
        self.listeners.append(listener)

    def remove_listener(self, listener):
        self.listeners.remove(listener)

    def refreshed(self):
        """Tell that there was an answer to Metadata."""
        for listener in list(self.listeners):
            listener(self)

    def leader_for_partition(self, topic_partition):
        return self.leaders.get(topic_partition.partition, NODE)

    def partitions_for_topic(self, topic):
        return None if topic in self.topic_errors else {0, 1, 2, 3}

    def topic_id(self, topic):
        return self.ids.get(topic, ZERO_UUID)

    def take_hint(self, topic, partition, leader, epoch, endpoints):
        self.leaders[partition] = leader
        return True


class Pool:
    """Some brokers; counts what is asked of it."""

    def __init__(self, loop, ranges):
        self.loop = loop
        self.ranges = ranges
        self.cluster = Cluster()
        self.links = {}
        self.wanted = []
        self.refreshed = 0

    def link(self, node):
        return self.links.setdefault(node, Link(self.loop, self.ranges))

    def want_topic(self, topic):
        self.wanted.append(topic)

    need_topic = want_topic

    def refresh(self):
        self.refreshed += 1


class Rig:
    """A sender and all it needs."""

    def __init__(self, produce=(0, 12), state=None, partitions=4, batch_size=1000, **settings):
        self.loop = ManualLoop()
        self.pool = Pool(self.loop, {0: produce})
        self.settings = SenderSettings(batch_size=batch_size, **settings)
        limits = AccumulatorConfig(
            batch_size=batch_size,
            delivery_timeout=self.settings.delivery_timeout,
            ordered=self.settings.max_in_flight == 1,
            compressed=bool(self.settings.codec),
        )
        self.accumulator = RecordAccumulator(
            limits, lambda: self.loop.call_soon(self.sender.look), lambda done, timeout: done()
        )
        self.topic = self.accumulator.topic('t')
        self.accumulator.update(self.topic, range(partitions), range(partitions))
        self.state = state or PlainState()
        self.sender = Sender(
            self.loop, self.pool, self.accumulator, self.state, self.settings, None
        )
        self.sender.start()
        self.loop.settle()

    @property
    def sent(self):
        """What node 1 got so far."""
        return self.pool.link(NODE).sent

    def send(self, value=b'v', partition=0, **more):
        """Put a record into a batch, without letting the sender run."""
        batch, index = self.accumulator.append(
            self.topic,
            partition,
            more.get('key'),
            value,
            more.get('headers', ()),
            None,
            self.loop.now,
            self.loop.now,
        )
        return future_of(batch, index, -1, len(value or b''), -1)

    def go(self, *values, **more):
        """Send values and let the sender run; return their futures."""
        futures = [self.send(value, **more) for value in values]
        self.loop.settle()
        return futures


def new_topic_id():
    """Return an id that no other topic has."""
    return uuid.uuid4().bytes
