"""Guards of the APIs of idempotent and transactional producers (KIP-98, KIP-679)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.error_answers import items_with
from kafka.testing.guards.rules import (
    Answer,
    change_response,
    changed,
    guards,
    may_cluster,
    may_topic,
    refuse_items,
    refuse_topics,
    refused,
    topic_code,
)
from kafka.testing.security import acls
from kafka.testing.topic_checks import INTERNAL

_DENIED = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
#: From this release on WRITE on any topic includes idempotent writes (KIP-679).
IDEMPOTENT_BY_TOPIC = (2, 8)


def _may_write(call: Call[Any], transactional_id: Optional[str]) -> bool:
    name = transactional_id or ''
    return call.may(acls.WRITE, acls.TRANSACTIONAL_ID, name)


@guards(InitProducerIdRequest)
def init_producer_id(call: Call[InitProducerIdRequest]) -> Answer:
    """Require WRITE on the transactional id; without an id IDEMPOTENT_WRITE or WRITE on a topic."""
    code = _init_refusal(call)
    if code == errors.NONE:
        return None
    response = refused(call, code)
    if call.state.release.version < (2, 0):
        response.producer_epoch = 0
    return response


def _init_refusal(call: Call[InitProducerIdRequest]) -> int:
    request = call.request
    if request.transactional_id is None:
        may_write = may_cluster(call, acls.IDEMPOTENT_WRITE) or _may_write_somewhere(call)
        return errors.NONE if may_write else errors.CLUSTER_AUTHORIZATION_FAILED
    if not _may_write(call, request.transactional_id):
        return _DENIED
    is_prepared = request.enable2_pc and not call.may(
        acls.TWO_PHASE_COMMIT, acls.TRANSACTIONAL_ID, request.transactional_id
    )
    return _DENIED if is_prepared else errors.NONE


def _may_write_somewhere(call: Call[Any]) -> bool:
    authorizer = call.state.authorizer
    if authorizer is None or call.state.release.version < IDEMPOTENT_BY_TOPIC:
        return False
    return authorizer.allows_some(call.principal, call.host, acls.WRITE, acls.TOPIC)


@guards(AddPartitionsToTxnRequest)
def add_partitions(call: Call[AddPartitionsToTxnRequest]) -> Answer:
    """Require WRITE on the id and on all topics; from v4 on CLUSTER_ACTION."""
    request = call.request
    if call.version >= 4:
        if may_cluster(call, acls.CLUSTER_ACTION):
            return None
        return refused(call, errors.CLUSTER_AUTHORIZATION_FAILED)
    if not _may_write(call, request.v3_and_below_transactional_id):
        return refused(call, _DENIED)
    parts: Dict[int, List[Any]] = {}
    for each in request.v3_and_below_topics:
        code = errors.NONE
        if each.name not in INTERNAL:
            code = topic_code(call, acls.WRITE, each.name)
        parts.setdefault(code, []).append(each)
    if set(parts) <= {errors.NONE}:
        return None
    for each in parts.pop(errors.NONE, []):
        is_known = each.name in call.state.topics
        code = errors.OPERATION_NOT_ATTEMPTED if is_known else errors.UNKNOWN_TOPIC_OR_PARTITION
        parts.setdefault(code, []).append(each)
    name = 'results_by_topic_v3_and_below'
    response = refused(call, errors.TOPIC_AUTHORIZATION_FAILED)
    response.results_by_topic_v3_and_below = [
        item
        for code, topics in parts.items()
        for item in items_with(
            changed(request, v3_and_below_topics=topics),
            call.version,
            call.header.api_key,
            name,
            code,
        )
    ]
    return response


@guards(AddOffsetsToTxnRequest)
def add_offsets(call: Call[AddOffsetsToTxnRequest]) -> Answer:
    """Require WRITE on the id and READ on the group."""
    if not _may_write(call, call.request.transactional_id):
        return refused(call, _DENIED)
    return _unreadable_group(call)


def _unreadable_group(call: Call[Any]) -> Answer:
    if call.may(acls.READ, acls.GROUP, call.request.group_id):
        return None
    return refused(call, errors.GROUP_AUTHORIZATION_FAILED)


@guards(EndTxnRequest)
def end_transaction(call: Call[EndTxnRequest]) -> Answer:
    """Require WRITE on the id."""
    return None if _may_write(call, call.request.transactional_id) else refused(call, _DENIED)


@guards(TxnOffsetCommitRequest)
def txn_offset_commit(call: Call[TxnOffsetCommitRequest]) -> Answer:
    """Require WRITE on the id, READ on the group and on topics."""
    if not _may_write(call, call.request.transactional_id):
        return refused(call, _DENIED)
    return _unreadable_group(call) or refuse_topics(call, 'topics', 'topics', acls.READ)


@guards(WriteTxnMarkersRequest)
def write_markers(call: Call[WriteTxnMarkersRequest]) -> Answer:
    """Require CLUSTER_ACTION or, since 3.8 (KIP-1037), ALTER on the cluster."""
    is_broker = may_cluster(call, acls.CLUSTER_ACTION)
    may_alter = call.state.release.version >= (3, 8) and may_cluster(call, acls.ALTER)
    if is_broker or may_alter:
        return None
    if not call.request.markers:
        return WriteTxnMarkersResponse(markers=[])
    return refused(call, errors.CLUSTER_AUTHORIZATION_FAILED)


@guards(DescribeTransactionsRequest)
def describe_transactions(call: Call[DescribeTransactionsRequest]) -> Answer:
    """Require DESCRIBE on ids, and leave out topics without DESCRIBE."""
    response = refuse_items(
        call,
        'transactional_ids',
        'transaction_states',
        _DENIED,
        lambda name: call.may(acls.DESCRIBE, acls.TRANSACTIONAL_ID, name),
    )
    change_response(call, lambda answer: _hide_topics(call, answer))
    return response


def _hide_topics(call: Call[Any], response: Any) -> None:
    for each in response.transaction_states:
        if each.error_code == _DENIED:
            each.producer_id = each.producer_epoch = 0
        each.topics = [t for t in each.topics if may_topic(call, acls.DESCRIBE, t.topic)]


@guards(ListTransactionsRequest)
def list_transactions(call: Call[ListTransactionsRequest]) -> None:
    """Leave out transactional ids without DESCRIBE."""

    def change(response: Any) -> None:
        response.transaction_states = [
            each
            for each in response.transaction_states
            if call.may(acls.DESCRIBE, acls.TRANSACTIONAL_ID, each.transactional_id)
        ]

    change_response(call, change)
