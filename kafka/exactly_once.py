"""ExactlyOnce: a loop of transactions that reads, transforms and writes each record exactly once.

Each transaction polls, begins, sends, adds the offsets, and commits; after an error it aborts,
seeks back and tries again. Uses only public methods of the consumer and the producer, and closes
neither. Follows KIP-98 and KIP-447: the offsets are part of the transaction, and the group rejects
those of a consumer that it has gone on without.

Each poll() is one transaction, which ends before the next poll(), so no rebalance meets an open
one. The identity of the member is taken when the records are returned, not later: a member that was
removed has no generation, and offsets without a generation are not fenced.
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

#: The errors of a group that has moved on without this member.
_MOVED_ON = frozenset(
    [
        IllegalGenerationError.errno,
        UnknownMemberIdError.errno,
        RebalanceInProgressError.errno,
        FencedMemberEpochError.errno,
        StaleMemberEpochError.errno,
    ]
)
#: What costs a transaction and may go well the next time, beside what is retriable by its class.
_WORTH_RETRYING = _MOVED_ON | {
    45,  # OUT_OF_ORDER_SEQUENCE_NUMBER: what was lost is sent again
    47,  # INVALID_PRODUCER_EPOCH: the coordinator ended it for taking too long
    59,  # UNKNOWN_PRODUCER_ID
    120,  # TRANSACTION_ABORTABLE
}

#: A member hears what its group thinks by its next heartbeat; those of KIP-848 send one in so many
#: seconds unless the broker says otherwise.
_HEARTBEAT_OF_848 = 5.0
_LOOK_SECONDS = 0.05
#: Arguments for a call that itertools.starmap() makes once.
_ONCE: List[Tuple[()]] = [()]

_FIELDS = ('topic', 'value', 'key', 'headers', 'partition', 'timestamp_ms')
_CONSUMED = ('partition', 'timestamp_ms')  # of a consumed record these are those of its source

Transform = Callable[[List[Any]], Optional[Iterable[Any]]]


class _State(enum.Enum):
    """How far it is."""

    NEW = 'new'  # init_transactions() is owed
    READY = 'ready'
    OPEN = 'in a transaction'  # or about to begin one
    COMMITTING = 'committing'  # the call has begun, its outcome is not known
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
    """What one poll returned: the records, where each partition began, what is to be committed,
    who the consumer was then, and what the call that commits them returned, once it has.
    """

    records: List[Any]
    begins: Dict[TopicPartition, int]
    offsets: Dict[TopicPartition, OffsetAndMetadata]
    who: Any
    committed: List[Any]


class ExactlyOnce:
    """Reads with a consumer, transforms, and writes with a producer, all in transactions.

    For programs without threads: one object, its consumer and its producer belong to one thread.
    ::

        with ExactlyOnce(consumer, producer) as loop:
            loop.run(lambda records: [('out', each.value, each.key) for each in records])

    Arguments:
        consumer: a KafkaConsumer that was subscribed or assigned, with a group and with
            enable_auto_commit=False; best with isolation_level='read_committed'.
        producer: a KafkaProducer with a transactional_id that only this program uses now.
        max_tries: so often in a row transactions may fail before their error is raised, and so
            often a call that took longer than max_block_ms is made again.
        retry_backoff_ms, retry_backoff_max_ms: pause after a failure, doubled with each in a row.
        poll_timeout_ms: how long a step waits for records.
        max_records: of one transaction, None for what the consumer gives.

    Raises KafkaConfigurationError where the options of one of the two do not do.

    Attributes: committed, aborted: how many transactions.
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
        # What poll() has returned and is neither committed nor sought back to: after an exception,
        # whatever it was, the next step() begins with that.
        self._polled: List[Mapping[TopicPartition, List[Any]]] = []
        self._batch: Optional[_Batch] = None  # of the transaction that is open, or not surely over
        self._cause: Optional[KafkaError] = None  # of what it has died

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
        except KafkaError as other:  # what the block raised tells more
            log.warning('%r could not be closed in order: %s', self, other)

    # ------------------------------------------------------------ the calls

    def run(self, transform: Transform, stop: Any = None) -> int:
        """Do step() after step(); return how many records were transformed and committed.

        Arguments: transform: as step(); stop: a function that tells whether to end, or a
        threading.Event; looked at between two steps. None goes on for ever.
        Raises: as step().
        """
        is_over = getattr(stop, 'is_set', stop) or (lambda: False)
        total = 0
        while not is_over():
            total += self.step(transform)
        return total

    def step(self, transform: Transform) -> int:
        """Poll once, and transform and commit what came in one transaction.

        Returns how many records that was, 0 for none; with those whose commit was finished first.
        Takes at most poll_timeout_ms without records, otherwise a few calls of the producer, each
        of which max_block_ms bounds, times max_tries.

        Arguments: transform: gets a list of ConsumerRecords, those of each partition in order, and
            returns what to send: an iterable of tuples (topic, value, key, headers, partition,
            timestamp_ms), of which the last may be left out, or of objects with such attributes;
            None for nothing. It is called again with the same records after an error, and has to
            leave no other traces than what it returns.

        Raises:
            What transform raises: the transaction is aborted, the consumer is back at its records.
            KafkaError of the kind that aborted max_tries transactions in a row, or that no further
                try cures, such as TopicAuthorizationFailedError; the same holds.
            KafkaTimeoutError: brokers did not finish a commit, or an abort, in time, and its
                outcome is not known. The next step() goes on with it before it polls.
            ProducerFencedError and what else finishes the producer or the member of the group:
                every later call raises it again; make a new producer, consumer and ExactlyOnce.
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
        """End: a commit or abort that was not finished is tried once more. Closes no client.

        Raises: KafkaTimeoutError, ProducerFencedError and such, as step().
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
        """Poll; return what came."""
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
        """Poll, and keep what came until it is committed or sought back to."""
        self._polled = []
        # Without bytecode between the return of poll() and the note of what it returned: an
        # exception there would skip the records.
        poll = functools.partial(self._consumer.poll, **options)
        self._polled.extend(itertools.starmap(poll, _ONCE))
        return self._polled[0]

    def _offset_behind(self, partition: TopicPartition, last: Any) -> OffsetAndMetadata:
        """Return what is committed once a record is done.

        The position stands behind what follows it and is nobody's to read, such as the mark at the
        end of a transaction: committed without that, a group would seem to lag by one for ever.
        """
        position = self._consumer.position(partition)
        behind = last.offset + 1
        epoch = getattr(last, 'leader_epoch', None)
        if position is not None and position > behind:
            behind = position
        return OffsetAndMetadata(behind, '', -1 if epoch is None else epoch)

    def _attempt(self, transform: Transform, batch: _Batch) -> Optional[KafkaError]:
        """Do all of one transaction; return the error of it, None if it is committed.

        What the transform raises comes out, after the transaction was aborted.
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
        """Return True if a member lost its membership just after the poll.

        It has no generation then, and the offsets of such are taken from anybody.
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
        if not batch.committed:  # else an exception came between the call and its note
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
        """Make a call that goes on when its time is over, again, so often."""
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
        """Come to a state from which a transaction may begin.

        Returns how many records a commit had that is finished now.
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
        elif self._polled:  # an exception has ended the last call
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
        """Abort and go back; return if the next try may go better, otherwise raise the error."""
        if self._state is _State.COMMITTING and isinstance(error, KafkaTimeoutError):
            raise error  # it may be committed: only the same call may follow
        if self._state is _State.COMMITTING and isinstance(error, IllegalStateError):
            # It may be committed, by a call that an exception has ended as it returned.
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
        """Return once the consumer knows that its group has gone on without it, if that is so.

        The producer was told, not the consumer: until its next heartbeat it would go on as before,
        in vain. A commit of what is committed anyway tells both of them whether it still counts; it
        is fenced like the transaction.
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
        """Return how often to look whether the consumer has heard, for two heartbeats in all."""
        config = self._consumer.config
        seconds = config.get('heartbeat_interval_ms', 3000) / 1000
        if config.get('group_protocol') == 'consumer':
            seconds = max(seconds, _HEARTBEAT_OF_848)
        looks: int = round(2 * seconds / _LOOK_SECONDS) + 1
        return looks

    def _abort(self, error: Optional[KafkaError]) -> None:
        """Abort what is open, if anything, and go back to where it began.

        Raises KafkaTimeoutError, and after what finishes the producer that.
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
        except KafkaError as refused:  # only who is finished may not abort
            self._die(refused)
            raise refused from error
        self._move(_State.READY)
        self._go_back()

    def _give_up(self) -> None:
        """Abort because the transform raised; nothing here hides that."""
        if self._state not in (_State.READY, _State.OPEN):
            return
        try:
            self._abort(None)
        except KafkaError as error:
            log.warning('the transaction could not be aborted: %s', error)

    def _go_back(self) -> None:
        """Let the next poll hand out again what is still this consumer's to read.

        Where each partition began is what was committed last: whoever else has it by now goes on
        from there too.
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
    """Raise KafkaConfigurationError for clients that cannot do it; warn of half of the promise."""
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
            'the consumer of group %s reads with isolation_level %s: it also hands out records of'
            ' transactions that are aborted later; read_committed does not',
            reads['group_id'],
            reads.get('isolation_level'),
        )


def _may_retry(error: KafkaError) -> bool:
    """Return True if the transaction may go well the next time."""
    while type(error) is KafkaError and isinstance(error.__cause__, KafkaError):
        error = error.__cause__  # a producer names the error of a record so
    return (
        error.retriable
        or isinstance(error, CommitFailedError)
        or getattr(error, 'errno', None) in _WORTH_RETRYING
    )


def _arguments(item: Any) -> Dict[str, Any]:
    """Return what send() is called with. Raises TypeError for what is no record."""
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
