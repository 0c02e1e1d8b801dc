"""ExactlyOnce: a consume-transform-produce loop that processes each record exactly once.

Each step polls, begins a transaction, sends, adds the offsets, and commits; after an error it
aborts, seeks back and tries again. Uses only public methods of the consumer and the producer, and
closes neither. Follows KIP-98 and KIP-447: the offsets are part of the transaction, and the group
coordinator rejects those of a member that has been replaced.

Each transaction has the records of one poll() and ends before the next poll(), so that no rebalance
happens during a transaction. The group metadata is read when the records are returned, not later: a
member that was removed has no generation, and offsets without a generation are not fenced.
"""

from __future__ import annotations

import enum
import functools
import itertools
import logging
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from kafka.errors import (
    CommitFailedError,
    FencedMemberEpochError,
    IllegalGenerationError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['ExactlyOnce']

log = logging.getLogger(__name__)

#: The errors of a member that is not in the current generation of its group.
_MOVED_ON = frozenset(
    [
        IllegalGenerationError.errno,
        UnknownMemberIdError.errno,
        RebalanceInProgressError.errno,
        FencedMemberEpochError.errno,
        StaleMemberEpochError.errno,
    ]
)
#: Error codes after which the next transaction may succeed, besides those of retriable classes.
_WORTH_RETRYING = _MOVED_ON | {
    45,  # OUT_OF_ORDER_SEQUENCE_NUMBER: the lost records are sent again
    47,  # INVALID_PRODUCER_EPOCH: the coordinator has timed the transaction out
    59,  # UNKNOWN_PRODUCER_ID
    120,  # TRANSACTION_ABORTABLE
}

#: The default heartbeat interval of members of KIP-848, which the broker can change. A heartbeat
#: response notifies a member that it is not in the group any more.
_HEARTBEAT_OF_848 = 5.0
_LOOK_SECONDS = 0.05
#: The empty arguments of one call by itertools.starmap().
_ONCE: List[Tuple[()]] = [()]

_FIELDS = ('topic', 'value', 'key', 'headers', 'partition', 'timestamp_ms')
_CONSUMED = ('partition', 'timestamp_ms')  # not copied from a consumed record

Transform = Callable[[List[Any]], Optional[Iterable[Any]]]


class _State(enum.Enum):
    """The states of an ExactlyOnce."""

    NEW = 'new'  # init_transactions() was not called yet
    READY = 'ready'
    OPEN = 'in a transaction'  # or about to begin one
    COMMITTING = 'committing'  # the call has begun, its outcome is unknown
    ABORTING = 'aborting'
    DEAD = 'finished by an error'
    CLOSED = 'closed'


_S = _State
_TRANSITIONS: Mapping[_State, List[_State]] = {
    _S.NEW: [_S.READY, _S.DEAD, _S.CLOSED],
    _S.READY: [_S.OPEN, _S.DEAD, _S.CLOSED],
    _S.OPEN: [_S.COMMITTING, _S.ABORTING, _S.DEAD, _S.CLOSED],
    _S.COMMITTING: [_S.READY, _S.ABORTING, _S.DEAD, _S.CLOSED],
    _S.ABORTING: [_S.READY, _S.DEAD, _S.CLOSED],
    _S.DEAD: [_S.CLOSED],
    _S.CLOSED: [],
}


class _Batch(NamedTuple):
    """The result of one poll.

    records; begins: the first offset in each partition; offsets: the offsets to commit; who: the
    group metadata of the consumer at that time; committed: what commit_transaction() has returned,
    empty before.
    """

    records: List[Any]
    begins: Dict[TopicPartition, int]
    offsets: Dict[TopicPartition, OffsetAndMetadata]
    who: Any
    committed: List[Any]


class ExactlyOnce:
    """Reads with a consumer, transforms, and writes with a producer, all in transactions.

    Not thread-safe: the object, its consumer and its producer are used in one thread.
    ::

        with ExactlyOnce(consumer, producer) as loop:
            loop.run(lambda records: [('out', each.value, each.key) for each in records])

    Arguments:
        consumer: a KafkaConsumer that was subscribed or assigned, with a group_id and with
            enable_auto_commit=False; isolation_level='read_committed' is recommended.
        producer: a KafkaProducer with a transactional_id that no other program uses now.
        max_tries: how many consecutive transactions may fail before the error is raised, and how
            often a call that takes longer than max_block_ms is attempted.
        retry_backoff_ms, retry_backoff_max_ms: the pause after a failure, doubled with each
            consecutive one, and its maximum.
        poll_timeout_ms: how long a step waits for records.
        max_records: the limit of one transaction, None for that of the consumer.

    Raises KafkaConfigurationError if the options of consumer or producer are not suitable.

    Attributes: committed, aborted: the numbers of transactions.
    """

    sleep = staticmethod(time.sleep)

    def __init__(
        self,
        consumer: Any,
        producer: Any,
        max_tries: int = 5,
        retry_backoff_ms: float = 100,
        retry_backoff_max_ms: float = 5000,
        poll_timeout_ms: float = 1000,
        max_records: Optional[int] = None,
    ) -> None:
        _check_options(consumer, producer)
        if max_tries < 1:
            raise KafkaConfigurationError('max_tries must be at least 1, not %r' % (max_tries,))
        self.committed = 0
        self.aborted = 0
        self._consumer = consumer
        self._producer = producer
        self._max_tries = max_tries
        self._backoff = retry_backoff_ms / 1000
        self._backoff_max = max(retry_backoff_ms, retry_backoff_max_ms) / 1000
        self._poll: Dict[str, Any] = {'timeout_ms': poll_timeout_ms}
        if max_records is not None:
            self._poll['max_records'] = max_records
        self._state = _State.NEW
        self._failures = 0
        # The records of poll() that are neither committed nor sought back to: after any exception
        # the next step() settles these first.
        self._polled: List[Mapping[TopicPartition, List[Any]]] = []
        self._batch: Optional[_Batch] = None  # of a transaction without a known outcome
        self._cause: Optional[KafkaError] = None  # the error because of which the state is DEAD

    def __repr__(self) -> str:
        return '<ExactlyOnce %s committed=%d aborted=%d>' % (
            self._state.value,
            self.committed,
            self.aborted,
        )

    def __reduce__(self) -> Any:
        raise IllegalStateError(
            'an ExactlyOnce cannot be pickled or copied: its consumer and its producer are of this'
            ' process; make one where it is to run'
        )

    def __enter__(self) -> ExactlyOnce:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except KafkaError as other:  # must not replace the exception of the block
            log.warning('%r could not be closed in order: %s', self, other)

    # ------------------------------------------------------------ the calls

    def run(self, transform: Transform, stop: Any = None) -> int:
        """Repeat step(); return the number of records that were transformed and committed.

        Arguments: transform: as step(); stop: a function that returns True to end, or a
        threading.Event; checked between steps. None runs until an exception.
        Raises: as step().
        """
        is_over = getattr(stop, 'is_set', stop) or (lambda: False)
        total = 0
        while not is_over():
            total += self.step(transform)
        return total

    def step(self, transform: Transform) -> int:
        """Poll once, and transform and commit the records in one transaction.

        Returns the number of committed records, 0 if there were none; records whose commit was only
        completed by this call are included. Takes at most poll_timeout_ms without records,
        otherwise that of a few producer calls, each bounded by max_block_ms times max_tries.

        Arguments: transform: gets a list of ConsumerRecords, those of each partition in order, and
            returns the records to send: an iterable of tuples (topic, value, key, headers,
            partition, timestamp_ms), of which the last may be left out, or of objects with such
            attributes; None to send nothing. After an error it is called again with the same
            records, so it must not have side effects.

        Raises:
            What transform raises: the transaction is aborted, and the consumer has sought back.
            KafkaError: the error that aborted max_tries consecutive transactions, or one that is
                not retriable, such as TopicAuthorizationFailedError; aborted in the same way.
            KafkaTimeoutError: a commit or an abort took too long, and its outcome is unknown. The
                next step() continues it before it polls.
            ProducerFencedError and other errors after which the producer or the group member cannot
                continue: every later call raises it again; make a new producer, consumer and
                ExactlyOnce.
            IllegalStateError: after close().
            What poll() raises.
        """
        finished = self._settle()
        while True:
            batch = self._next_batch()
            if batch is None:
                return finished
            error = self._attempt(transform, batch)
            if error is None:
                return finished + len(batch.records)
            self._recover(error)

    def close(self) -> None:
        """Close; try once more to complete a pending commit or abort. Closes no client.

        Raises: KafkaTimeoutError, ProducerFencedError and others, as step().
        """
        if self._state is _State.CLOSED:
            return
        try:
            if self._polled and self._state is not _State.DEAD:
                self._max_tries = 1
                self._settle()
        finally:
            self._move(_State.CLOSED)

    # ------------------------------------------------------------ one transaction

    def _next_batch(self) -> Optional[_Batch]:
        """Poll; return the batch of records, None if there are none."""
        polled = self._take(**self._poll)
        who = self._consumer.group_metadata()
        begins: Dict[TopicPartition, int] = {}
        offsets: Dict[TopicPartition, OffsetAndMetadata] = {}
        records: List[Any] = []
        for partition, some in polled.items():
            if some:
                begins[partition] = some[0].offset
                offsets[partition] = self._offset_behind(partition, some[-1])
                records.extend(some)
        if not records:
            self._polled = []
            return None
        return _Batch(records, begins, offsets, who, [])

    def _take(self, **options: Any) -> Mapping[TopicPartition, List[Any]]:
        """Poll, and keep the records until they are committed or sought back to."""
        self._polled = []
        # No bytecode runs between the return of poll() and the store of its result: an asynchronous
        # exception there would skip the records.
        poll = functools.partial(self._consumer.poll, **options)
        self._polled.extend(itertools.starmap(poll, _ONCE))
        return self._polled[0]

    def _offset_behind(self, partition: TopicPartition, last: Any) -> OffsetAndMetadata:
        """Return the offset to commit after a record.

        The position is after entries that consumers do not get, such as the control record at the
        end of a transaction. Without these the group would have a permanent lag of one.
        """
        position = self._consumer.position(partition)
        behind = last.offset + 1
        epoch = getattr(last, 'leader_epoch', None)
        if position is not None and position > behind:
            behind = position
        return OffsetAndMetadata(behind, '', -1 if epoch is None else epoch)

    def _attempt(self, transform: Transform, batch: _Batch) -> Optional[KafkaError]:
        """Run one transaction; return its error, None if it is committed.

        An exception of the transform is raised after the transaction was aborted.
        """
        if self._is_thrown_out(batch):
            self._go_back()
            return CommitFailedError(
                'group %s has gone on without this consumer since it was polled'
                % batch.who.group_id
            )
        error: Optional[KafkaError] = None
        is_own = True
        try:
            error = self._transaction(transform, batch)
            is_own = False
        finally:
            if is_own:
                self._give_up()
        return error

    def _is_thrown_out(self, batch: _Batch) -> bool:
        """Return True if the consumer lost its membership just after the poll.

        It has no generation then, and the coordinator accepts offsets without a generation from any
        client.
        """
        return batch.who.generation_id < 0 and self._consumer.subscription() is not None

    def _transaction(self, transform: Transform, batch: _Batch) -> Optional[KafkaError]:
        producer = self._producer
        self._batch = batch
        self._move(_State.OPEN)
        try:
            producer.begin_transaction()
        except KafkaError as error:
            return error
        for item in transform(list(batch.records)) or ():
            arguments = _arguments(item)
            try:
                producer.send(**arguments)
            except KafkaError as error:
                return error
        try:
            self._repeat(
                lambda: producer.send_offsets_to_transaction(batch.offsets, batch.who),
                'send_offsets_to_transaction()',
            )
            self._move(_State.COMMITTING)
            self._commit(batch)
        except KafkaError as error:
            return error
        return None

    def _commit(self, batch: _Batch) -> None:
        if not batch.committed:  # else an exception came between the call and the lines below
            commit = self._producer.commit_transaction
            self._repeat(
                lambda: batch.committed.extend(itertools.starmap(commit, _ONCE)),
                'commit_transaction()',
            )
        self.committed += 1
        self._failures = 0
        self._state = _State.READY
        self._polled, self._batch = [], None

    def _repeat(self, call: Callable[[], Any], what: str) -> None:
        """Repeat a call that continues after a timeout, up to max_tries times."""
        for tries in range(1, self._max_tries + 1):
            try:
                call()
                return
            except KafkaTimeoutError as error:
                log.warning('%s takes long (%d of %d): %s', what, tries, self._max_tries, error)
                if tries == self._max_tries:
                    raise

    # ------------------------------------------------------------ after an error

    def _settle(self) -> int:
        """Complete or abort a pending transaction, so that a new one may begin.

        Returns the number of records of a commit that was completed by this call.
        """
        if self._state is _State.CLOSED:
            raise IllegalStateError('the ExactlyOnce is closed')
        if self._state is _State.DEAD:
            raise self._over()
        if self._state is _State.NEW:
            self._initialize()
        elif self._state is _State.COMMITTING:
            batch = self._batch
            assert batch is not None
            try:
                self._commit(batch)
                return len(batch.records)
            except KafkaError as error:
                self._recover(error)
        elif self._polled:  # an exception has interrupted the last call
            self._abort(None)
        return 0

    def _initialize(self) -> None:
        try:
            self._repeat(self._producer.init_transactions, 'init_transactions()')
        except KafkaError as error:
            if error.fatal:
                self._die(error)
            raise
        self._move(_State.READY)

    def _recover(self, error: KafkaError) -> None:
        """Abort and seek back; return if a retry may succeed, otherwise raise the error."""
        if self._state is _State.COMMITTING and isinstance(error, KafkaTimeoutError):
            raise error  # it may be committed: only the same call may follow
        if self._state is _State.COMMITTING and isinstance(error, IllegalStateError):
            # It may be committed, by a call that was interrupted by an exception when it returned.
            self._die(error)
            raise error
        batch = self._batch
        self._abort(error)
        if error.fatal:
            self._die(error)
            raise error
        self._failures += 1
        if not _may_retry(error) or self._failures >= self._max_tries:
            self._failures = 0
            raise error
        pause = min(self._backoff_max, self._backoff * 2.0 ** min(self._failures - 1, 50))
        log.warning(
            'transaction aborted, failure %d of %d, again in %.3g s: %s',
            self._failures,
            self._max_tries,
            pause,
            error,
        )
        self.sleep(pause)
        if batch is not None and getattr(error, 'errno', None) in _MOVED_ON:
            self._hear_of_the_group(batch)

    def _hear_of_the_group(self, batch: _Batch) -> None:
        """Wait until the consumer has noticed that it is not in its group any more, if so.

        The error went to the producer: until its next heartbeat the consumer would continue as
        before, and every transaction would fail. A commit of the offsets that are committed already
        shows whether the membership is still valid, as it is fenced like the transaction.
        """
        owned = self._consumer.assignment()
        known = {place: at for place, at in batch.begins.items() if place in owned}
        try:
            self._consumer.commit({place: OffsetAndMetadata(at) for place, at in known.items()})
            return
        except KafkaError as error:
            log.info('group %s: %s', batch.who.group_id, error)
        for _ in range(self._looks()):
            who = self._consumer.group_metadata()
            if who[1:3] != batch.who[1:3]:
                return
            self._take(timeout_ms=0)
            self._go_back()
            self.sleep(_LOOK_SECONDS)

    def _looks(self) -> int:
        """Return the number of checks of the group metadata, for two heartbeat intervals."""
        config = self._consumer.config
        seconds = config.get('heartbeat_interval_ms', 3000) / 1000
        if config.get('group_protocol') == 'consumer':
            seconds = max(seconds, _HEARTBEAT_OF_848)
        looks: int = round(2 * seconds / _LOOK_SECONDS) + 1
        return looks

    def _abort(self, error: Optional[KafkaError]) -> None:
        """Abort the open transaction, if there is one, and seek back to its start.

        Raises KafkaTimeoutError, and errors after which the producer cannot continue.
        """
        if self._state is _State.READY:
            self._go_back()
            return
        if self._state is not _State.ABORTING:
            self._move(_State.ABORTING)
        try:
            self._repeat(self._producer.abort_transaction, 'abort_transaction()')
            self.aborted += 1
        except KafkaTimeoutError as late:
            raise late from error
        except IllegalStateError as closed:  # it had not begun, or is aborted already
            log.debug('no transaction to abort: %s', closed)
        except KafkaError as refused:  # only a producer in the fatal state cannot abort
            self._die(refused)
            raise refused from error
        self._move(_State.READY)
        self._go_back()

    def _give_up(self) -> None:
        """Abort because the transform raised; errors are only logged, so as not to hide that."""
        if self._state not in (_State.READY, _State.OPEN):
            return
        try:
            self._abort(None)
        except KafkaError as error:
            log.warning('the transaction could not be aborted: %s', error)

    def _go_back(self) -> None:
        """Seek back in the partitions that are still assigned, so that poll() repeats the records.

        The start of the records is the last committed offset: a consumer that has got a partition
        meanwhile continues there, too.
        """
        batch = self._batch
        if batch is None or not batch.committed:
            owned = self._consumer.assignment()
            for polled in self._polled:
                for partition, some in polled.items():
                    if some and partition in owned:
                        self._consumer.seek(partition, some[0].offset)
        self._polled, self._batch = [], None

    def _die(self, error: KafkaError) -> None:
        self._cause = error
        self._polled, self._batch = [], None
        if self._state is not _State.DEAD:
            self._move(_State.DEAD)

    def _over(self) -> KafkaError:
        cause = self._cause
        assert cause is not None
        kind = type(cause) if cause.fatal else KafkaError
        error = kind(
            'this ExactlyOnce cannot go on, make a new one with a new producer: %s' % cause
        )
        error.__cause__ = cause
        return error

    def _move(self, state: _State) -> None:
        if state not in _TRANSITIONS[self._state]:
            raise IllegalStateError(
                'an ExactlyOnce that is %s cannot become %s' % (self._state.value, state.value)
            )
        self._state = state


def _check_options(consumer: Any, producer: Any) -> None:
    """Raise KafkaConfigurationError for unsuitable options; warn without read_committed."""
    reads, writes = consumer.config, producer.config
    if reads.get('enable_auto_commit', True):
        raise KafkaConfigurationError(
            'ExactlyOnce commits offsets in transactions: the consumer needs'
            ' enable_auto_commit=False'
        )
    if reads.get('group_id') is None:
        raise KafkaConfigurationError('ExactlyOnce needs a consumer with a group_id')
    if writes.get('transactional_id') is None:
        raise KafkaConfigurationError('ExactlyOnce needs a producer with a transactional_id')
    if reads.get('isolation_level') != 'read_committed':
        log.warning(
            'the consumer of group %s reads with isolation_level %s: it also returns records of'
            ' transactions that are aborted later; read_committed does not',
            reads['group_id'],
            reads.get('isolation_level'),
        )


def _may_retry(error: KafkaError) -> bool:
    """Return True if the next transaction may succeed."""
    while type(error) is KafkaError and isinstance(error.__cause__, KafkaError):
        error = error.__cause__  # TransactionState wraps the error of a record like this
    return (
        error.retriable
        or isinstance(error, CommitFailedError)
        or getattr(error, 'errno', None) in _WORTH_RETRYING
    )


def _arguments(item: Any) -> Dict[str, Any]:
    """Return the arguments of send(). Raises TypeError for an object that is not a record."""
    if hasattr(item, 'topic') and hasattr(item, 'value'):
        found = {name: getattr(item, name) for name in _FIELDS if hasattr(item, name)}
        if hasattr(item, 'offset'):
            for name in _CONSUMED:
                found.pop(name, None)
        return found
    if isinstance(item, (tuple, list)) and 2 <= len(item) <= len(_FIELDS):
        pairs: Iterable[Tuple[str, Any]] = zip(_FIELDS, item)
        return dict(pairs)
    raise TypeError(
        'the transform has to return records to send, (topic, value, key, headers, partition,'
        ' timestamp_ms) of which the last may be left out, not a %s' % type(item).__name__
    )
