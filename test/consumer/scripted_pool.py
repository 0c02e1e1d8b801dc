"""A pool whose brokers answer about offsets as a test says, on a ManualLoop."""

from __future__ import annotations

from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaError, UnknownBrokerIdError
from kafka.net.loop.tasks import Waiter
from kafka.protocol.api import ApiKey
from kafka.protocol.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
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
from kafka.protocol.negotiation import BrokerVersions
from kafka.structs import TopicPartition

NEWEST = {ApiKey.LIST_OFFSETS: (0, 11), ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4)}
METADATA = 12


def tp(name):
    """Return the partition that a text such as 'a-0' names."""
    topic, _, number = name.rpartition('-')
    return TopicPartition(topic, int(number))


class Link:
    """A broker. Attributes: versions; unreachable: errors of connecting, in order."""

    def __init__(self, pool, node):
        self.node = node
        self.versions = BrokerVersions(dict(NEWEST))
        self.unreachable = []
        self._pool = pool

    async def ready(self):
        if self.unreachable:
            raise self.unreachable.pop(0)

    async def request(self, message, timeout=None, version=None, highest=None):
        low, high = self.versions.ranges[message.api_key]
        version = min(high, message.max_version)
        message = type(message).decode(message.encode(version), version)
        answers = self._pool.answers(self.node, message)
        self._pool.asked.append((self.node, version, message))
        outcome = next(answers)
        if isinstance(outcome, Waiter):
            await outcome
            outcome = next(answers)
        if isinstance(outcome, KafkaError):
            raise outcome
        return type(outcome).decode(outcome.encode(version), version)


class ScriptedPool:
    """The brokers 0, 1 and 2.

    Attributes:
        log: {partition: what ListOffsets and OffsetForLeaderEpoch find there}: an offset for any
            time, {time: offset}, an error code as Code, an EpochEnd, or a list of these in order.
        failing: {node: errors of requests, in order}; waiting: {node: Waiter} of its requests.
        leads: {partition: (node, epoch)} as the next refresh will tell; ids: {topic: id};
        topic_codes: {topic: code}.
        asked: (node, version, request); refreshes: how often refresh() was called; wanted: topics.
        metadata_asked, metadata_timeouts: of metadata(); metadata_errors: what it raises, in order.
    """

    def __init__(self, loop, leads=None):
        self.loop = loop
        self.cluster = ClusterMetadata(loop.time)
        self.links = {node: Link(self, node) for node in range(3)}
        self.log, self.failing, self.waiting = {}, {}, {}
        self.leads = {tp(name): leader for name, leader in (leads or {}).items()}
        self.ids, self.topic_codes = {}, {}
        self.asked, self.wanted, self.metadata_asked = [], [], []
        self.metadata_errors, self.metadata_timeouts = [], []
        self.refreshes = 0
        if leads:
            self.learn()

    def learn(self):
        """Let the cluster be told what is so."""
        topics = {}
        for each, (node, epoch) in self.leads.items():
            topics.setdefault(each.topic, []).append(
                MetadataResponsePartition(
                    error_code=5 if node == -1 else 0,
                    partition_index=each.partition,
                    leader_id=node,
                    leader_epoch=epoch,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
            )
        self.cluster.replace(
            MetadataResponse(
                brokers=[
                    MetadataResponseBroker(node_id=node, host='host', port=9092 + node)
                    for node in self.links
                ],
                controller_id=0,
                topics=[
                    MetadataResponseTopic(
                        name=name,
                        error_code=self.topic_codes.get(name, 0),
                        topic_id=self.ids.get(name, bytes(16)),
                        partitions=topics.get(name, []),
                    )
                    for name in sorted({*topics, *self.topic_codes})
                ],
            ),
            METADATA,
        )

    def lead(self, name, node, epoch=0):
        """Change a leader, as the next refresh will tell."""
        self.leads[tp(name)] = node, epoch

    def old(self, list_offsets=None, epochs=None):
        """Let all brokers have no higher versions than these."""
        for link in self.links.values():
            if list_offsets is not None:
                link.versions.ranges[ApiKey.LIST_OFFSETS] = (0, list_offsets)
            if epochs is not None:
                link.versions.ranges[ApiKey.OFFSET_FOR_LEADER_EPOCH] = (0, epochs)

    # ------------------------------------------------------------ what drivers use

    def link(self, node):
        if node not in self.links:
            raise UnknownBrokerIdError('no broker has the node id %r' % node)
        return self.links[node]

    def refresh(self):
        self.refreshes += 1

    def want_topic(self, topic):
        self.wanted.append(topic)

    async def metadata(self, topics, timeout=None):
        self.metadata_asked.append(topics)
        self.metadata_timeouts.append(timeout)
        await self.loop.sleep(0)
        if self.metadata_errors:
            raise self.metadata_errors.pop(0)
        self.learn()
        return self.cluster

    # ------------------------------------------------------------ what brokers answer

    def answers(self, node, request):
        if node in self.waiting:
            yield self.waiting.pop(node)
        if self.failing.get(node):
            yield self.failing[node].pop(0)
        if request.api_key == ApiKey.LIST_OFFSETS:
            yield self._list_offsets(node, request)
        yield self._epoch_ends(node, request)

    def _found(self, node, topic, partition, time):
        where = TopicPartition(topic, partition)
        found = self.log.get('%s-%d' % where)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(found, dict):
            found = found[time]
        if self.leads[where][0] != node:
            return Code(6)
        return found

    def _list_offsets(self, node, request):
        topics = []
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                found = self._found(node, topic.name, each.partition_index, each.timestamp)
                if found is MISSING:
                    continue
                answer = ListOffsetsPartitionResponse(each.partition_index, 0)
                if isinstance(found, Code):
                    answer.error_code = found
                elif self.links[node].versions.ranges[ApiKey.LIST_OFFSETS][1] == 0:
                    answer.old_style_offsets = [found]
                else:
                    answer.offset, answer.timestamp = found, 7000 + found
                    if self.links[node].versions.ranges[ApiKey.LIST_OFFSETS][1] >= 4:
                        answer.leader_epoch = 4
                partitions.append(answer)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _epoch_ends(self, node, request):
        topics = []
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                found = self._found(node, topic.topic, each.partition, each.leader_epoch)
                if found is MISSING:
                    continue
                answer = EpochEndOffset(partition=each.partition, error_code=0)
                if isinstance(found, Code):
                    answer.error_code = found
                else:
                    answer.leader_epoch, answer.end_offset = found
                partitions.append(answer)
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(topics=topics)


class Code(int):
    """An error code, where an offset might stand."""


MISSING = object()  # nothing is said of the partition


def questions(request):
    """Return what a request asks: {partition name: time or epoch}."""
    found = {}
    for topic in request.topics:
        for each in topic.partitions:
            if request.api_key == ApiKey.LIST_OFFSETS:
                found['%s-%d' % (topic.name, each.partition_index)] = each.timestamp
            else:
                where = '%s-%d' % (topic.topic, each.partition)
                found[where] = each.current_leader_epoch, each.leader_epoch
    return found
