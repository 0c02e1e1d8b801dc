"""Building of transaction requests from the state of a producer, and reading of their responses.

Called by :mod:`kafka.producer.transaction_state`, which decides when each request is sent;
:mod:`kafka.producer.transaction_errors` decides what an error code means. Follows KIP-98, KIP-360,
KIP-447 and KIP-890. Pure.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from kafka.producer.sequence_numbers import NOBODY, Identity
from kafka.producer.transaction_errors import CallKind
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

#: The lowest and highest version of each call in transactions of version 1 and 2 (KIP-890).
#: AddPartitionsToTxn from v4 on is for brokers. TxnOffsetCommit v6 has topic ids.
Versions = Tuple[int, int]
V1_VERSIONS: Mapping[CallKind, Versions] = {
    CallKind.INIT_PRODUCER_ID: (0, 6),
    CallKind.ADD_PARTITIONS: (0, 3),
    CallKind.ADD_OFFSETS: (0, 4),
    CallKind.COMMIT_OFFSETS: (0, 4),
    CallKind.END: (0, 4),
}
V2_VERSIONS: Mapping[CallKind, Versions] = {
    **V1_VERSIONS,
    CallKind.COMMIT_OFFSETS: (5, 5),
    CallKind.END: (5, 5),
}
#: The same for Produce: a request of version 12 or later *means* a transaction of version 2.
PRODUCE_V1: Versions = (3, 11)
PRODUCE_V2: Versions = (12, 13)
#: From this version on TxnOffsetCommit names the group member, so that it can be fenced (KIP-447).
MAY_FENCE = 3
#: From this version on InitProducerId can raise the epoch of a producer id (KIP-360).
RAISES_EPOCH = 3


class GroupMember(NamedTuple):
    """The consumer whose offsets are committed; it can be fenced only if it has a generation."""

    group_id: str
    generation_id: int = -1
    member_id: str = ''
    group_instance_id: Optional[str] = None


Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Ask(NamedTuple):
    """A request that has to be sent now.

    lowest, highest: the range of versions that can be used; key: the key whose coordinator gets the
    request, None for any broker; is_of_group: whether the key is a group id and not a transactional
    id; about: what the request concerns, for error texts.
    """

    kind: CallKind
    request: Any
    lowest: int
    highest: int
    key: Optional[str]
    is_of_group: bool
    about: str


class Caller(NamedTuple):
    """A producer: its transactional id (None if only idempotent), producer id and epoch."""

    transactional_id: Optional[str]
    identity: Identity
    is_v2: bool

    @property
    def named(self) -> Dict[str, Any]:
        """The request fields that identify the producer."""
        return {
            'transactional_id': self.transactional_id or '',
            'producer_id': self.identity.producer_id,
            'producer_epoch': self.identity.epoch,
        }

    def ask(
        self, kind: CallKind, request: Any, key: Optional[str], is_of_group: bool = False
    ) -> Ask:
        """Return an Ask with the version range for this transaction version."""
        lowest, highest = (V2_VERSIONS if self.is_v2 else V1_VERSIONS)[kind]
        about = 'the producer'
        if self.transactional_id is not None:
            about = 'transactional id %r' % self.transactional_id
        return Ask(kind, request, lowest, highest, key, is_of_group, about)


def init_producer_id(caller: Caller, timeout_ms: int, raises: bool) -> Ask:
    """Return InitProducerId.

    Arguments: raises: whether to keep the current producer id and raise its epoch.
    """
    identity = caller.identity if raises else NOBODY
    request = InitProducerIdRequest(
        transactional_id=caller.transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )
    ask = caller.ask(CallKind.INIT_PRODUCER_ID, request, caller.transactional_id)
    return ask._replace(lowest=RAISES_EPOCH) if raises else ask


def add_partitions(caller: Caller, partitions: Iterable[TopicPartition]) -> Ask:
    """Return AddPartitionsToTxn."""
    by_topic: Dict[str, List[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(str(topic), []).append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=caller.transactional_id or '',
        v3_and_below_producer_id=caller.identity.producer_id,
        v3_and_below_producer_epoch=caller.identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in by_topic.items()
        ],
    )
    return caller.ask(CallKind.ADD_PARTITIONS, request, caller.transactional_id)


def added_partitions(response: AddPartitionsToTxnResponse) -> Dict[TopicPartition, int]:
    """Return the error code of each partition in a response."""
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def add_offsets(caller: Caller, group_id: str) -> Ask:
    """Return AddOffsetsToTxn, which is sent before commit_offsets()."""
    request = AddOffsetsToTxnRequest(**caller.named, group_id=group_id)
    return caller.ask(CallKind.ADD_OFFSETS, request, caller.transactional_id)


def commit_offsets(caller: Caller, member: GroupMember, offsets: Offsets, may_fence: bool) -> Ask:
    """Return TxnOffsetCommit.

    Arguments: may_fence: whether the broker's version has the fields for the member (KIP-447).
    """
    by_topic: Dict[str, List[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in sorted(offsets.items(), key=lambda item: item[0]):
        epoch = offset.leader_epoch
        by_topic.setdefault(str(topic), []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if epoch is None else epoch,
                committed_metadata=offset.metadata or '',
            )
        )
    request = TxnOffsetCommitRequest(
        **caller.named,
        group_id=member.group_id,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )
    if may_fence:
        request.generation_id_or_member_epoch = member.generation_id
        request.member_id = member.member_id
        request.group_instance_id = member.group_instance_id
    return caller.ask(CallKind.COMMIT_OFFSETS, request, member.group_id, is_of_group=True)


def committed_offsets(response: TxnOffsetCommitResponse) -> Dict[TopicPartition, int]:
    """Return the error code of each partition in a response."""
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def end(caller: Caller, commits: bool) -> Ask:
    """Return EndTxn."""
    request = EndTxnRequest(**caller.named, committed=commits)
    return caller.ask(CallKind.END, request, caller.transactional_id)
