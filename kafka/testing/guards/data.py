"""Guards of the APIs that write, read and look up records.

The guard of Fetch is called by its handler, since the session decides the partitions (KIP-227).
"""

from __future__ import annotations

from typing import Any, Optional

from kafka.protocol.admin.topics import DeleteRecordsRequest
from kafka.protocol.fetch import OffsetForLeaderEpochRequest
from kafka.protocol.list_offsets import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import DescribeProducersRequest
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.guards.rules import (
    Answer,
    guards,
    may_cluster,
    refuse_topics,
    refused,
    topic_code,
)
from kafka.testing.guards.transactions import IDEMPOTENT_BY_TOPIC
from kafka.testing.security import acls
from kafka.testing.security.sasl.login import and_close

# Positions in a batch.
_MAGIC_AT, _TRANSACTIONAL_AT, _PRODUCER_AT, _PRODUCER_END = 16, 22, 43, 51
_TRANSACTIONAL_MASK = 0x10


@guards(ProduceRequest)
def produce(call: Call[ProduceRequest]) -> Answer:
    """Require WRITE on topics and transactional id, and for idempotence before KIP-679 more."""
    request = call.request
    refusal = _producer_refusal(call)
    if refusal != errors.NONE:
        if request.acks == 0:
            call.close_connection()
            return None
        return refused(call, refusal)
    response = refuse_topics(call, 'topic_data', 'responses', acls.WRITE)
    if request.acks == 0 and (response is not None or call.request is not request):
        if response is not None:
            call.close_connection()  # the only way to report an error
        else:
            call.deliveries.append(and_close)
        return None
    return response


def _producer_refusal(call: Call[ProduceRequest]) -> int:
    release = call.state.release.version
    if release < (0, 11) or call.version < 3:
        return errors.NONE
    heads = [
        bytes(data.records[:_PRODUCER_END])
        for topic in call.request.topic_data
        for data in topic.partition_data
        if data.records
    ]
    heads = [head for head in heads if len(head) == _PRODUCER_END and head[_MAGIC_AT] == 2]
    if any(head[_TRANSACTIONAL_AT] & _TRANSACTIONAL_MASK for head in heads):
        name = call.request.transactional_id
        if name is None or not call.may(acls.WRITE, acls.TRANSACTIONAL_ID, name):
            return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif release < IDEMPOTENT_BY_TOPIC and any(_is_idempotent(head) for head in heads):
        if not may_cluster(call, acls.IDEMPOTENT_WRITE):
            return errors.CLUSTER_AUTHORIZATION_FAILED
    return errors.NONE


def _is_idempotent(head: bytes) -> bool:
    return int.from_bytes(head[_PRODUCER_AT:_PRODUCER_END], 'big', signed=True) >= 0


@guards(ListOffsetsRequest)
def list_offsets(call: Call[ListOffsetsRequest]) -> Answer:
    """Require DESCRIBE on topics."""
    return refuse_topics(call, 'topics', 'topics', acls.DESCRIBE)


@guards(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(call: Call[OffsetForLeaderEpochRequest]) -> Answer:
    """Require CLUSTER_ACTION or, since KIP-320, DESCRIBE on topics."""
    if may_cluster(call, acls.CLUSTER_ACTION):
        return None
    if call.state.release.version < (2, 1):
        return refused(call, errors.CLUSTER_AUTHORIZATION_FAILED)
    return refuse_topics(call, 'topics', 'topics', acls.DESCRIBE, name='topic')


@guards(DeleteRecordsRequest)
def delete_records(call: Call[DeleteRecordsRequest]) -> Answer:
    """Require DELETE on topics."""
    return refuse_topics(call, 'topics', 'topics', acls.DELETE)


@guards(DescribeProducersRequest)
def describe_producers(call: Call[DescribeProducersRequest]) -> Answer:
    """Require READ on topics."""
    return refuse_topics(call, 'topics', 'topics', acls.READ)


def fetch_code(call: Call[Any], name: Optional[str]) -> int:
    """Return the error code for a topic, NONE if allowed; followers need CLUSTER_ACTION."""
    if call.request.replica_id < 0:
        return topic_code(call, acls.READ, name)
    is_broker = may_cluster(call, acls.CLUSTER_ACTION)
    if call.state.release.version < (1, 0):
        # Brokers need READ on the topic as well.
        return (
            topic_code(call, acls.READ, name) if is_broker else errors.CLUSTER_AUTHORIZATION_FAILED
        )
    return errors.NONE if is_broker else errors.TOPIC_AUTHORIZATION_FAILED
