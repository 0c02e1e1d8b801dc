"""Members of share groups, for the tests of embedded groups."""

from __future__ import annotations

from kafka.protocol.admin.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kafka.protocol.share import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from kafka.record.memory_records import MemoryRecords

from .data_requests import TOPIC, batch, driver, produce_request

GROUP = 'queue'


def started(version='4.4', partitions=1, reset='earliest', **settings):
    """Return a cluster with a topic, whose share groups begin at its start."""
    made = driver(version, partitions=partitions, **settings)
    set_config(made, 'share.auto.offset.reset', reset)
    return made


def set_config(cluster, name, value):
    """Give a group setting a value."""
    entry = IncrementalAlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=32, resource_name=GROUP, configs=[entry]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (response,) = cluster.ask(request).responses
    assert response.error_code == 0, response.error_message


def write(cluster, *values, index=0, **fields):
    """Write records, all in one batch."""
    request = produce_request(cluster, batch(*values, **fields), 13, index)
    (topic,) = cluster.ask(request, 13).responses
    assert topic.partition_responses[0].error_code == 0


class ShareMember:
    """A member of a share group that does what it is told."""

    def __init__(self, cluster, member_id='a', group_id=GROUP, node=0):
        self.cluster = cluster
        self.member_id = member_id
        self.group_id = group_id
        self.node = node
        self.epoch = 0
        self.session_epoch = 0
        self.assigned = set()

    # ------------------------------------------------------------ membership

    def heartbeat(self, epoch=None, **fields):
        fields.setdefault('group_id', self.group_id)
        fields.setdefault('member_id', self.member_id)
        request = ShareGroupHeartbeatRequest(
            member_epoch=self.epoch if epoch is None else epoch, **fields
        )
        response = self.cluster.ask(request, node=self.node)
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = {
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                }
        return response

    def join(self, *topics, **fields):
        return self.heartbeat(0, subscribed_topic_names=list(topics or [TOPIC]), **fields)

    def leave(self):
        return self.heartbeat(-1)

    @property
    def partitions(self):
        return sorted(index for _, index in self.assigned)

    def settle(self):
        """Heartbeat until the partitions are prepared and assigned."""
        for _ in range(3):
            self.cluster.advance(1.1)
            self.heartbeat()
        return self

    # ------------------------------------------------------------ records

    def fetch(self, *acknowledged, indexes=(0,), epoch=None, version=None, forget=(), **fields):
        """Send a ShareFetch. acknowledged: (first, last, *types) of partition 0."""
        parts = [
            FetchPartition(
                partition_index=index,
                acknowledgement_batches=_batches(acknowledged if index == 0 else ()),
            )
            for index in indexes
        ]
        asked = {'max_wait_ms': 100, 'min_bytes': 1, 'max_bytes': 1 << 20, 'max_records': 500}
        asked.update(batch_size=500, group_id=self.group_id, member_id=self.member_id)
        asked.update(fields)
        topic_id = self.cluster.state.topics[TOPIC].topic_id
        request = ShareFetchRequest(
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=parts)] if parts else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=list(forget))]
            if forget
            else [],
            **asked,
        )
        response = self.cluster.ask(request, version, node=self.node)
        if not response.error_code and epoch is None:
            self.session_epoch += 1
        return response

    def acknowledge(self, *acknowledged, epoch=None, version=None, **fields):
        """Send a ShareAcknowledge; return its response."""
        part = AcknowledgePartition(
            partition_index=0, acknowledgement_batches=_batches(acknowledged)
        )
        topic_id = fields.pop('topic_id', self.cluster.state.topics[TOPIC].topic_id)
        fields.setdefault('group_id', self.group_id)
        fields.setdefault('member_id', self.member_id)
        request = ShareAcknowledgeRequest(
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            topics=[AcknowledgeTopic(topic_id=topic_id, partitions=[part])],
            **fields,
        )
        response = self.cluster.ask(request, version, node=self.node)
        if not response.error_code and epoch is None:
            self.session_epoch += 1
        return response


def _batches(acknowledged):
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, *types in acknowledged
    ]


def reader(cluster, member_id='a', **fields):
    """Return a member that has joined and may read."""
    member = ShareMember(cluster, member_id, **fields)
    member.join()
    return member.settle()


def acquired(response):
    """Return what was acquired of each partition that a ShareFetch answered."""
    return {
        part.partition_index: [
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in part.acquired_records
        ]
        for topic in response.responses
        for part in topic.partitions
    }


def values(response):
    """Return offsets and values of all records in the answer to a ShareFetch."""
    return [
        (record.offset, record.value)
        for topic in response.responses
        for part in topic.partitions
        for read in MemoryRecords(bytes(part.records or b''))
        for record in read
    ]


def codes(response):
    """Return the errors that the answer to a ShareFetch or a ShareAcknowledge has."""
    return [
        getattr(part, 'acknowledge_error_code', 0) or part.error_code
        for topic in response.responses
        for part in topic.partitions
    ]


def described(cluster, group_id=GROUP, **fields):
    request = ShareGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=fields.get('operations', False)
    )
    return cluster.ask(request).groups[0]
