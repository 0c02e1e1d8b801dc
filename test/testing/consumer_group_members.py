"""Members of KIP-848 groups, for the tests of embedded groups."""

from __future__ import annotations

from kafka.protocol.admin.groups import ConsumerGroupDescribeRequest
from kafka.protocol.group import ConsumerGroupHeartbeatRequest, TopicPartitions

from .drive import Driver
from .group_requests import GROUP


def started(version='4.2', partitions=4, **settings):
    driver = Driver(version, **settings)
    driver.state.create_topic('t', partitions)
    return driver


class Member:
    """A KIP-848 member that does what it is told."""

    def __init__(self, driver, member_id, **fields):
        self.driver = driver
        self.member_id = member_id
        self.epoch = 0
        self.owned = set()
        self.fields = fields

    def request(self, epoch=None, **fields):
        fields.setdefault('group_id', GROUP)
        fields.setdefault('member_id', self.member_id)
        return ConsumerGroupHeartbeatRequest(
            member_epoch=self.epoch if epoch is None else epoch, **fields
        )

    def join(self, **fields):
        wanted = {
            'rebalance_timeout_ms': 60000,
            'subscribed_topic_names': ['t'],
            'topic_partitions': [],
        }
        wanted.update(self.fields)
        wanted.update(fields)
        return self.take(self.driver.ask(self.request(0, **wanted)))

    def heartbeat(self, **fields):
        return self.take(self.driver.ask(self.request(**fields)))

    def acknowledge(self):
        """Send what it owns."""
        topics = {}
        for topic_id, index in sorted(self.owned):
            topics.setdefault(topic_id, []).append(index)
        return self.heartbeat(
            topic_partitions=[TopicPartitions(topic_id=t, partitions=p) for t, p in topics.items()]
        )

    def leave(self, epoch=-1, **fields):
        fields.setdefault('instance_id', self.fields.get('instance_id'))
        return self.driver.ask(self.request(epoch, **fields))

    def take(self, response):
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {
                    (t.topic_id, index)
                    for t in response.assignment.topic_partitions
                    for index in t.partitions
                }
        return response

    @property
    def partitions(self):
        return sorted(index for _, index in self.owned)


def settled(*members):
    """Let all heartbeat and acknowledge until nothing changes."""
    for _ in range(6):
        for member in members:
            member.acknowledge()
    return members


def described(driver, **fields):
    request = ConsumerGroupDescribeRequest(
        group_ids=[GROUP], include_authorized_operations=fields.get('operations', False)
    )
    return driver.ask(request).groups[0]
