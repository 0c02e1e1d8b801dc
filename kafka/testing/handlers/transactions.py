"""Requests to the transaction coordinator of an embedded cluster (KIP-98, KIP-360, KIP-890).

Checks that the node coordinates the transactional id, and maps errors to those of each version. The
coordinator is in kafka/testing/transactions/coordinator.py.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TopicData,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.group_checks import is_coordinator
from kafka.testing.groups.regex import Pattern
from kafka.testing.transactions.coordinator import (
    Identity,
    Transactions,
    fenced_code,
    transactions_of,
)
from kafka.testing.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, S, Transaction

OFFSETS_TOPIC = '__consumer_offsets'


# ------------------------------------------------------------ InitProducerId


@handles(InitProducerIdRequest)
def init_producer_id(call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
    """Return a new producer id, or the one of a transactional id."""
    found = _initialised(call, transactions_of(call.broker))
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=fenced_code(found.error_code, newest=call.version >= 4),
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
    )


def _initialised(call: Call[InitProducerIdRequest], transactions: Transactions) -> Identity:
    request = call.request
    given = request.producer_id, request.producer_epoch
    if (given[0] == NO_PRODUCER_ID) != (given[1] == NO_EPOCH):
        return Identity(errors.INVALID_REQUEST)
    if request.transactional_id is None:
        return Identity(errors.NONE, transactions.new_producer_id(), 0)
    if not request.transactional_id:
        return Identity(errors.INVALID_REQUEST)
    if not is_coordinator(call, request.transactional_id):
        return Identity(errors.NOT_COORDINATOR)
    return transactions.init(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if given[0] == NO_PRODUCER_ID else given,
    )


# ------------------------------------------------------------ AddPartitionsToTxn


@handles(AddPartitionsToTxnRequest)
def add_partitions(
    call: Call[AddPartitionsToTxnRequest],
) -> Optional[AddPartitionsToTxnResponse]:
    """Add partitions to transactions, several from v4 on, or verify that they were added.

    As in brokers, a request without transactions is never answered: the last one completes it.
    """
    request = call.request
    if call.version >= 4 and not request.transactions:
        return None
    if call.version >= 4:
        return AddPartitionsToTxnResponse(
            throttle_time_ms=0,
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=_added(call, each)
                )
                for each in request.transactions
            ],
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(
        throttle_time_ms=0, results_by_topic_v3_and_below=_added(call, only)
    )


def _added(
    call: Call[AddPartitionsToTxnRequest], asked: AddPartitionsToTxnTransaction
) -> List[AddPartitionsToTxnTopicResult]:
    wanted = [(topic.name, index) for topic in asked.topics for index in topic.partitions]
    if not is_coordinator(call, asked.transactional_id):
        return _results(asked.topics, {}, errors.NOT_COORDINATOR)
    unknown = [place for place in wanted if not _exists(call, *place)]
    if unknown:
        codes = dict.fromkeys(unknown, errors.UNKNOWN_TOPIC_OR_PARTITION)
        return _results(asked.topics, codes, errors.OPERATION_NOT_ATTEMPTED)
    transactions = transactions_of(call.broker)
    identity = asked.transactional_id, asked.producer_id, asked.producer_epoch
    if not asked.verify_only:
        error = transactions.add(*identity, partitions=wanted)
        return _results(asked.topics, {}, fenced_code(error, newest=call.version >= 2))
    error = transactions.check(*identity)
    codes = {}
    if error == errors.NONE:
        abortable = call.version >= 5 or call.state.release.version >= (3, 8)
        missing = errors.TRANSACTION_ABORTABLE if abortable else errors.INVALID_TXN_STATE
        for place in wanted:
            if not transactions.has_partition(asked.transactional_id, *place):
                codes[place] = missing
    return _results(asked.topics, codes, error)


def _exists(call: Call[Any], name: str, index: int) -> bool:
    topic = call.state.topics.get(name)
    only_topic = (1, 0) <= call.state.release.version < (2, 0)  # which checked the topic only
    return topic is not None and (only_topic or topic.partition(index) is not None)


def _results(
    topics: List[AddPartitionsToTxnTopic], codes: Dict[Tuple[str, int], int], other: int
) -> List[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes.get((topic.name, index), other),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


# ------------------------------------------------------------ AddOffsetsToTxn, EndTxn


@handles(AddOffsetsToTxnRequest)
def add_offsets(call: Call[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse:
    """Add the offsets of a group to a transaction."""
    request = call.request
    error = errors.NOT_COORDINATOR
    if is_coordinator(call, request.transactional_id):
        error = transactions_of(call.broker).add(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            groups=[request.group_id],
        )
    return AddOffsetsToTxnResponse(
        throttle_time_ms=0, error_code=fenced_code(error, newest=call.version >= 2)
    )


@handles(EndTxnRequest)
def end_transaction(call: Call[EndTxnRequest]) -> EndTxnResponse:
    """Commit or abort a transaction; from v5 on the response has the epoch of the next one."""
    request = call.request
    found = Identity(errors.NOT_COORDINATOR)
    if is_coordinator(call, request.transactional_id):
        transactions = transactions_of(call.broker)
        end = transactions.end if call.version >= 5 else transactions.end_without_raising
        found = end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
        )
    return EndTxnResponse(
        throttle_time_ms=0,
        error_code=fenced_code(found.error_code, newest=call.version >= 2),
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
    )


# ------------------------------------------------------------ administration (KIP-664)


@handles(DescribeTransactionsRequest)
def describe_transactions(call: Call[DescribeTransactionsRequest]) -> DescribeTransactionsResponse:
    """Return the state of transactional ids."""
    return DescribeTransactionsResponse(
        throttle_time_ms=0,
        transaction_states=[_described(call, each) for each in call.request.transactional_ids],
    )


def _described(
    call: Call[DescribeTransactionsRequest], transactional_id: str
) -> DescribedTransaction:
    found = None
    error = errors.INVALID_REQUEST
    if transactional_id:
        error = errors.NOT_COORDINATOR
        if is_coordinator(call, transactional_id):
            found = transactions_of(call.broker).get(transactional_id)
            error = errors.TRANSACTIONAL_ID_NOT_FOUND
    if found is None:
        return DescribedTransaction(
            error_code=error,
            transactional_id=transactional_id,
            transaction_state='',
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return DescribedTransaction(
        error_code=errors.NONE,
        transactional_id=transactional_id,
        transaction_state=found.state.value,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=_topics(
            found,
            [transactions_of(call.broker).offsets_partition(each) for each in found.groups],
        ),
    )


def _topics(found: Transaction, offsets_partitions: List[int]) -> List[TopicData]:
    """Return the partitions of a transaction, including those of __consumer_offsets."""
    places = set(found.partitions)
    places |= {(OFFSETS_TOPIC, index) for index in offsets_partitions}
    by_topic: Dict[str, List[int]] = {}
    for name, index in sorted(places):
        by_topic.setdefault(name, []).append(index)
    return [TopicData(topic=name, partitions=indexes) for name, indexes in by_topic.items()]


@handles(ListTransactionsRequest)
def list_transactions(call: Call[ListTransactionsRequest]) -> ListTransactionsResponse:
    """Return the transactions that this node coordinates and the filters match."""
    request = call.request
    response = ListTransactionsResponse(
        throttle_time_ms=0, error_code=errors.NONE, unknown_state_filters=[], transaction_states=[]
    )
    known = {state.value for state in S}
    response.unknown_state_filters = [name for name in request.state_filters if name not in known]
    try:
        matches = _matching(request.transactional_id_pattern)
    except ValueError:
        response.error_code = errors.INVALID_REGULAR_EXPRESSION
        return response
    if request.state_filters and len(response.unknown_state_filters) == len(request.state_filters):
        return response
    response.transaction_states = [
        ListedTransaction(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            transaction_state=each.state.value,
        )
        for each in transactions_of(call.broker).all
        if is_coordinator(call, each.transactional_id) and _is_wanted(call, each, matches)
    ]
    return response


def _matching(text: Optional[str]) -> Callable[[str], bool]:
    """Return a function that matches transactional ids. Raises ValueError for a bad pattern."""
    if not text:
        return lambda transactional_id: True
    return Pattern(text).matches


def _is_wanted(
    call: Call[ListTransactionsRequest], each: Transaction, matches: Callable[[str], bool]
) -> bool:
    request = call.request
    if request.state_filters and each.state.value not in request.state_filters:
        return False
    if request.producer_id_filters and each.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter >= 0:
        age_ms = call.state.timers.clock.wall_ms() - each.started_ms
        if age_ms <= request.duration_filter:  # without a start it counts as very old
            return False
    return matches(each.transactional_id)
