"""Requests of members of classic groups, for the tests of embedded groups."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
from kafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

from .drive import Driver

GROUP = 'g'
SUBSCRIBED = b'\x00\x00' + ConsumerProtocolSubscription(topics=['t']).encode(0)


def join(member_id: str = '', group: str = GROUP, **fields: Any) -> JoinGroupRequest:
    """Return a JoinGroup; protocols: names with metadata."""
    protocols: Dict[str, bytes] = fields.pop('protocols', {'range': SUBSCRIBED})
    fields.setdefault('session_timeout_ms', 10000)
    fields.setdefault('rebalance_timeout_ms', 60000)
    fields.setdefault('protocol_type', 'consumer')
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols.items()],
        **fields,
    )


def sync(
    member_id: str,
    generation: int,
    assignments: Optional[Dict[str, bytes]] = None,
    group: str = GROUP,
    **fields: Any,
) -> SyncGroupRequest:
    """Return a SyncGroup."""
    fields.setdefault('protocol_type', 'consumer')
    fields.setdefault('protocol_name', 'range')
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=given)
            for name, given in (assignments or {}).items()
        ],
        **fields,
    )


def heartbeat(member_id: str, generation: int, **fields: Any) -> HeartbeatRequest:
    """Return a heartbeat."""
    return HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id, **fields)


def leave(*members: MemberIdentity, member_id: str = '') -> LeaveGroupRequest:
    """Return a LeaveGroup: of one by its id below version 3, else of members."""
    return LeaveGroupRequest(group_id=GROUP, member_id=member_id, members=list(members))


def commit(
    offset: int,
    topic: str = 't',
    partition: int = 0,
    group: str = GROUP,
    metadata: Optional[str] = '',
    topic_id: bytes = bytes(16),
    **fields: Any,
) -> OffsetCommitRequest:
    """Return a commit of one offset."""
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                ],
            )
        ],
        **fields,
    )


def commit_error(response: Any) -> int:
    """Return the error code of the one partition."""
    return int(response.topics[0].partitions[0].error_code)


def fetch(*topics: str, group: str = GROUP, **fields: Any) -> OffsetFetchRequest:
    """Return an OffsetFetch of partition 0 of topics, of all without any; up to version 7."""
    asked = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in topics]
    return OffsetFetchRequest(group_id=group, topics=asked or None, **fields)


def fetch_groups(
    group: str = GROUP, topic: Optional[str] = 't', **fields: Any
) -> OffsetFetchRequest:
    """Return an OffsetFetch of version 8 and later, for partition 0 of a topic or all (None)."""
    stable = fields.pop('require_stable', False)
    topic_id = fields.pop('topic_id', bytes(16))
    asked: Optional[List[OffsetFetchRequestTopics]] = None
    if topic is not None:
        asked = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked, **fields)],
        require_stable=stable,
    )


def fetched(response: Any) -> Any:
    """Return the one partition of an OffsetFetch response."""
    topics = response.groups[0].topics if response.groups else response.topics
    return topics[0].partitions[0]


class Consumer:
    """A member of a group with a connection of its own; ``version`` is that of the release."""

    def __init__(self, driver: Driver, instance: Optional[str] = None, **fields: Any) -> None:
        self.driver = driver
        self.client = driver.client()
        self.instance = instance
        self.fields = fields
        self.member_id = ''
        self.generation = -1
        self.leader = ''
        self.protocol: Dict[str, Any] = {}

    @property
    def _named(self) -> Dict[str, Any]:
        return {} if self.instance is None else {'group_instance_id': self.instance}

    def send_join(self, version: Optional[int] = None) -> None:
        """Ask to join, without waiting."""
        self.client.send(join(self.member_id, **self._named, **self.fields), version)

    def joined(self) -> Any:
        """Return the answer to a join, None if there is none yet, and keep what it says."""
        response = self.client.receive()
        if response is not None and response.member_id:
            self.member_id = response.member_id
        if response is not None and not response.error_code:
            self.generation, self.leader = response.generation_id, response.leader
            self.protocol = {
                'protocol_type': self.fields.get('protocol_type', 'consumer'),
                'protocol_name': response.protocol_name,
            }
        return response

    def join(self, version: Optional[int] = None) -> Any:
        """Join; again with the id if that is all that was missing."""
        self.send_join(version)
        response = self.joined()
        if response is not None and response.error_code == 79:
            self.send_join(version)
            response = self.joined()
        return response

    def send_sync(self, assignments: Optional[Dict[str, bytes]] = None) -> None:
        """Send a SyncGroup, without waiting."""
        agreed = dict(self.protocol, **self._named)
        self.client.send(sync(self.member_id, self.generation, assignments, **agreed))

    def ask(self, request: Any, version: Optional[int] = None) -> Any:
        """Send a request and return the answer, which comes at once."""
        self.client.send(request, version)
        return self.client.receive()

    def heartbeat(self) -> int:
        """Return the error of a heartbeat."""
        request = heartbeat(self.member_id, self.generation, **self._named)
        return int(self.ask(request).error_code)


def settle(*consumers: Consumer) -> None:
    """Let all join and sync; each is assigned its own member id."""
    for consumer in consumers:
        consumer.join()
    for consumer in consumers:  # those that joined before others were there
        if consumer is not consumers[-1] and consumer.generation != consumers[-1].generation:
            consumer.join()
    for consumer in consumers:
        consumer.joined()
    given = {each.member_id: each.member_id.encode() for each in consumers}
    for consumer in consumers:
        consumer.send_sync(given if consumer.member_id == consumer.leader else None)
    for consumer in consumers:
        assert consumer.client.receive().assignment == consumer.member_id.encode()
