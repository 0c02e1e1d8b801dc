"""TransactionDriver: sends the requests of a transactional producer, one at a time.

It finds the coordinator, backs off after errors, and blocks the callers of commit_transaction() and
the other methods of transactions, in any thread; everything else runs in turns of the loop.
:mod:`kafka.producer.transaction_state` decides which request is needed and what a response means;
the sender sends the batches. The driver also gets the producer id of an idempotent producer.

A request is repeated until it is answered, as long as the producer exists: after a timeout, a
caller that calls again continues the same operation.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Awaitable, Callable, List, Mapping, Optional

from kafka.errors import (
    BrokerResponseError,
    Cancelled,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka.internals.validation import ArgumentTypeError, ArgumentValueError, as_offsets
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.tasks import CoroutineCall, Task, Waiter
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sequence_numbers import MOST_IN_FLIGHT
from kafka.producer.transaction_calls import MAY_FENCE, RAISES_EPOCH, Ask, GroupMember
from kafka.producer.transaction_errors import CallKind
from kafka.producer.transaction_operations import Operation, PreparedTxnState
from kafka.producer.transaction_state import DriverStep, TransactionState
from kafka.protocol.api import ApiKey

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.node_connection import NodeConnection
    from kafka.net.pool import Pool

#: The key types of FindCoordinator.
GROUP, TRANSACTION = 0, 1

log = logging.getLogger(__name__)

#: The finalized feature whose level 2 means that brokers support both parts of KIP-890.
_FEATURE, _V2_LEVEL = 'transaction.version', 2
#: Brokers with this version of Produce, from 1.0 on, remember five batches per partition.
_REMEMBERS_FIVE = 4


class TransactionDriver:
    """Sends the transaction requests of one producer.

    Arguments: loop, pool: of the producer; state; accumulator; poke: starts a pass of the sender;
    max_block: seconds that a call may block; request_timeout: seconds for one request;
    retry_backoff, retry_backoff_max: seconds between attempts; chance: random numbers for jitter;
    begin: bootstraps within a number of seconds unless that was done, None if not needed.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        state: TransactionState,
        accumulator: RecordAccumulator,
        poke: Callable[[], None],
        max_block: float = 60.0,
        request_timeout: float = 30.0,
        retry_backoff: float = 0.1,
        retry_backoff_max: float = 1.0,
        chance: Optional[random.Random] = None,
        begin: Optional[Callable[[float], Awaitable[None]]] = None,
    ) -> None:
        self._begin_with = begin
        self._loop = loop
        self._pool = pool
        self._state = state
        self._accumulator = accumulator
        self._poke = poke
        self._max_block = max_block
        self._request_timeout = request_timeout
        self._retry_backoff = retry_backoff
        self._retry_backoff_max = retry_backoff_max
        self._chance = chance or random.Random()
        self._task: Optional[Task[None]] = None
        self._waiter: Optional[Waiter[None]] = None  # that of the driver's own task
        self._callers: List[Waiter[None]] = []
        self._is_woken = False
        self._failures = 0
        state.on_need = self.wake
        state.now = loop.time

    def __repr__(self) -> str:
        return '<TransactionDriver of %r>' % (self._state,)

    # ------------------------------------------------------------ for callers, in any thread

    def init_transactions(self) -> None:
        """Get the producer id; ends a transaction that an earlier producer of the id left open.

        Raises KafkaTimeoutError after max_block seconds: a repeated call continues;
        ProducerFencedError; TransactionalIdAuthorizationFailedError; UnsupportedVersionError for
        brokers before 0.11; IllegalStateError in a wrong state.
        """
        self._block(self._state.initialize, 'init_transactions()')

    def begin_transaction(self) -> None:
        """Begin a transaction, without a request. Raises as TransactionState.begin()."""
        self._loop.run(CoroutineCall(self._begin), self._max_block)

    async def _begin(self) -> None:
        self._state.begin()

    def send_offsets_to_transaction(self, offsets: Mapping[Any, Any], group: Any) -> None:
        """Add offsets of a consumer group to the transaction.

        Arguments: offsets: {TopicPartition: OffsetAndMetadata}; group: the group id, or the group
        metadata of the consumer, with which brokers fence a replaced member (KIP-447).
        Raises: ArgumentTypeError and ArgumentValueError for anything else; as commit_transaction().
        """
        member = _member_of(group)
        checked = as_offsets(offsets)
        self._block(
            lambda: self._state.send_offsets(checked, member), 'send_offsets_to_transaction()'
        )

    def prepare_transaction(self) -> PreparedTxnState:
        """Refuse further records in a transaction whose records are all stored (KIP-939).

        Returns what is needed to end the transaction. Does not wait for records. Raises as
        TransactionState.prepare().
        """
        return self._loop.run(CoroutineCall(self._prepare), self._max_block)

    async def _prepare(self) -> PreparedTxnState:
        accumulator = self._accumulator
        with accumulator.patiently:  # so that no record is added between check and change of state
            return self._state.prepare(accumulator.is_empty())

    def commit_transaction(self) -> None:
        """Flush, and commit the transaction.

        Raises KafkaTimeoutError after max_block seconds: the outcome is unknown then, and a
        repeated call continues; ProducerFencedError; the error that makes a commit impossible,
        after which abort_transaction() has to be called; IllegalStateError in a wrong state.
        """
        self._block(self._state.commit, 'commit_transaction()')

    def abort_transaction(self) -> None:
        """Abort the transaction, and drop unsent records. Raises as commit_transaction()."""
        self._block(self._state.abort, 'abort_transaction()')

    def _block(self, begin: Callable[[], Operation], what: str) -> None:
        """Begin an operation, or continue it, and wait until it is done."""
        try:
            operation = self._loop.run(CoroutineCall(self._done, begin), self._max_block)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(
                '%s took longer than %.3g s (max_block_ms); it goes on, and the same call waits'
                ' for it again' % (what, self._max_block)
            ) from error
        operation.tell()

    async def _done(self, begin: Callable[[], Operation]) -> Operation:
        operation = begin()
        self.wake()
        while not operation.is_done:
            waiter: Waiter[None] = Waiter()
            self._callers.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._callers:
                    self._callers.remove(waiter)
        return operation

    # ------------------------------------------------------------ in turns of the loop

    def wake(self) -> None:
        """Let the driver check which request is needed, and callers whether they are done."""
        self._is_woken = True
        if self._task is None:
            self._task = self._loop.spawn(self._run())
            self._task.add_done_callback(self._on_end)
        if self._waiter is not None:
            self._waiter.wake()
        callers, self._callers = self._callers, []
        for waiter in callers:
            waiter.wake()

    def close(self) -> None:
        """Send no further requests."""
        if self._task is not None:
            self._task.cancel()

    def _on_end(self, task: Task[None]) -> None:
        """Fail the producer if the task ends by an internal error: no caller must wait for it."""
        error = task.exception
        if error is not None and not isinstance(error, Cancelled):
            log.error('transactions of %r end by a mistake', self._state, exc_info=error)
            self._state.fail(KafkaError('the producer cannot go on: %r' % error))
        self._poke()

    async def _run(self) -> None:
        while True:
            self._is_woken = False
            self._flush()
            ask = self._state.needs(self._accumulator.is_empty())
            self._poke()
            if ask is not None:
                await self._make(ask)
            elif not self._is_woken:
                self._waiter = Waiter()
                try:
                    await self._waiter
                finally:
                    self._waiter = None

    def _flush(self) -> None:
        """Disable lingering while a transaction ends."""
        is_ending = self._state.is_ending
        if is_ending and not self._accumulator.is_urgent:
            self._accumulator.begin_flush(self._loop.time())
        self._accumulator.is_urgent = is_ending

    async def _make(self, ask: Ask) -> None:
        """Send one request, handle the response, and back off if that requires it."""
        try:
            link = await self._loop.within(self._request_timeout, self._link_for(ask))
        except KafkaError as error:
            self._failures += 1
            step = self._on_unreachable(ask, error)
        else:
            step = await self._ask(link, ask)
        if step.refinds and ask.key is not None:
            self._pool.forget_coordinator(GROUP if ask.is_of_group else TRANSACTION, ask.key)
        await self._pause(step.backoff_ms)

    async def _link_for(self, ask: Ask) -> NodeConnection:
        if self._begin_with is not None:
            await self._begin_with(self._request_timeout)
        if ask.key is None:
            return await self._pool.any_ready()
        kind = GROUP if ask.is_of_group else TRANSACTION
        link = self._pool.link(await self._pool.coordinator(kind, ask.key))
        await link.ready()
        return link

    def _on_unreachable(self, ask: Ask, error: KafkaError) -> DriverStep:
        """Return the next step after a request could not be sent."""
        if error.retriable:
            log.debug('%s for %s has to wait: %s', ask.kind.value, ask.about, error)
            return DriverStep(None, refinds=True)
        is_answer = isinstance(error, BrokerResponseError) and error.errno is not None
        if is_answer and not isinstance(error, UnsupportedVersionError):
            return self._state.on_no_coordinator(ask, error)
        return self._state.on_call_refused(ask, error)

    async def _ask(self, link: NodeConnection, ask: Ask) -> DriverStep:
        if link.versions is None:  # closed or lost before this task ran again
            return DriverStep(None, refinds=True)
        ranges = link.versions.ranges
        lowest, highest = ranges.get(API_KEYS[ask.kind], (0, -1))
        if highest < ask.lowest or lowest > ask.highest:
            error = UnsupportedVersionError(
                '%s for %s needs version %d to %d; the broker has %s'
                % (
                    ask.kind.value,
                    ask.about,
                    ask.lowest,
                    ask.highest,
                    '%d to %d' % (lowest, highest) if highest >= 0 else 'none',
                )
            )
            return self._state.on_call_refused(ask, error)
        try:
            response = await link.request(ask.request, self._request_timeout, highest=ask.highest)
        except (UnsupportedVersionError, ProtocolError) as error:
            return self._state.on_call_refused(ask, error)
        except KafkaError as error:
            log.debug('%s for %s got no answer: %s', ask.kind.value, ask.about, error)
            return self._state.on_call_lost(ask)
        if ask.kind in (CallKind.INIT_PRODUCER_ID, CallKind.END):
            self._learn(ranges)
        return self._state.on_answer(ask, response)

    def _learn(self, ranges: Mapping[int, Any]) -> None:
        """Set in the state what brokers support, from the coordinator and the cluster features."""
        level = self._pool.finalized_features().get(_FEATURE, 0)
        self._state.set_brokers(
            v2=level >= _V2_LEVEL,
            raises_epoch=_highest(ranges, ApiKey.INIT_PRODUCER_ID) >= RAISES_EPOCH,
            may_fence=_highest(ranges, ApiKey.TXN_OFFSET_COMMIT) >= MAY_FENCE,
            remembered=MOST_IN_FLIGHT if _highest(ranges, ApiKey.PRODUCE) >= _REMEMBERS_FIVE else 1,
        )

    async def _pause(self, backoff_ms: Optional[int]) -> None:
        if backoff_ms is None:
            self._failures += 1
            base, longest = self._retry_backoff, self._retry_backoff_max
            part = self._chance.uniform(0.8, 1.2)
            await self._loop.sleep(backoff_seconds(base, longest, self._failures, part))
        elif backoff_ms:
            await self._loop.sleep(backoff_ms / 1000.0)
        else:
            self._failures = 0


API_KEYS: Mapping[CallKind, int] = {
    CallKind.INIT_PRODUCER_ID: ApiKey.INIT_PRODUCER_ID,
    CallKind.ADD_PARTITIONS: ApiKey.ADD_PARTITIONS_TO_TXN,
    CallKind.ADD_OFFSETS: ApiKey.ADD_OFFSETS_TO_TXN,
    CallKind.COMMIT_OFFSETS: ApiKey.TXN_OFFSET_COMMIT,
    CallKind.END: ApiKey.END_TXN,
}


def _highest(ranges: Mapping[int, Any], key: int) -> int:
    found: int = ranges.get(key, (0, -1))[1]
    return found


def _member_of(group: Any) -> GroupMember:
    """Return the group member from a group id or the group metadata of a consumer."""
    group_id = group if isinstance(group, str) else getattr(group, 'group_id', None)
    if not isinstance(group_id, str):
        raise ArgumentTypeError(
            'group must be a group id or the metadata of a group, not %r' % (group,)
        )
    if not group_id:
        raise ArgumentValueError('group must be a group id, and this one is empty')
    return GroupMember(
        group_id,
        getattr(group, 'generation_id', -1),
        getattr(group, 'member_id', ''),
        getattr(group, 'group_instance_id', None),
    )
