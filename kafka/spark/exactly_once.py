"""Exactly-once writing (option exactlyOnce): the transactions of tasks, and the driver's commit.

It defines the order of requests, so that a crash between any two steps leaves a state that the next
run can finish. Decisions are defined in decisions.py, marks in marks.py; rows become records in
writing.py. Documented in docs/spark.rst; the reasons are in docs/design.rst.

The steps of a batch of a query. A task: (1) checks whether the batch is decided; if so, it commits
what it had prepared, and writes only what was lost; (2) gets a producer id, which fences earlier
owners of its transactional id; (3) checks that the decision is still the one of (1); (4) sends
rows; (5) adds the mark of the batch to the transaction; (6) prepares it. The driver: (7) checks
that all transactions are still open; (8) stores the decision; (9) sends EndTxn for each; (10)
aborts transactions that no task will end. A failure up to (7) leaves nothing of the batch visible,
from (8) on all of it will be.

Spark does not wait for tasks that it kills, so that one of them may go on after (10). A task that
has its producer id by then is found and fenced in (10), whether it has begun a transaction or not;
a task that gets it later finds at (3) that the batch is decided. The write of a DataFrame has no
decision; instead the driver writes a mark that it is over, also when it is aborted.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import ExitStack
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from kafka.errors import (
    IllegalStateError,
    InvalidTransactionTimeoutError,
    KafkaConfigurationError,
    KafkaError,
    ProducerFencedError,
)
from kafka.producer import KafkaProducer
from kafka.producer.transaction_operations import PreparedTxnState
from kafka.producer.two_phase_commit import PreparedTransactions, is_over
from kafka.spark import clients
from kafka.spark.decisions import (
    Course,
    Decision,
    Entry,
    UndecidableError,
    course_of,
    decode,
    encode,
    merged,
    transactional_id,
)
from kafka.spark.marks import Mark, read_mark, write_mark
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['Place', 'Told', 'TransactionOutlet', 'abort', 'commit', 'settle', 'write_base']

log = logging.getLogger('kafka.spark')

#: The default maximum of brokers (transaction.max.timeout.ms).
TIMEOUT_MS = 900000
#: The default number of attempts of a task (spark.task.maxFailures); bounds what earlier runs left.
_ATTEMPTS = 4
#: A topic that exists once there is a group, for marks if no other topic is known.
_ANY_TOPIC = '__consumer_offsets'
#: The last queries and writes for which this process has aborted leftovers of earlier runs.
_swept: List[str] = []
_MOST_SWEPT = 64


class Place(NamedTuple):
    """The task in its query or write.

    base: the prefix of its ids; batch: the number of the micro-batch, None for the write of a
    DataFrame; partition: Spark's; attempt.
    """

    base: str
    batch: Optional[int]
    partition: int
    attempt: int


class Settled(NamedTuple):
    """The state that a task starts with.

    knew: whether the batch is decided; is_wanted: whether the rows have to be written; mark: that
    of the query or write when the task checked it.
    """

    knew: bool
    is_wanted: bool
    mark: Optional[Mark]


class Told(NamedTuple):
    """The message of a task to the driver.

    knew: whether the batch was decided; entry: its transaction, None if it wrote nothing; topic:
    one that it wrote to.
    """

    base: str
    knew: bool = False
    entry: Optional[Entry] = None
    topic: str = ''


def write_base(prefix: str) -> str:
    """Return the prefix of the ids of one DataFrame's write, which is unique."""
    return '%s-%s' % (prefix, uuid.uuid4().hex)


# ------------------------------------------------------------ a task


def settle(place: Place, config: Mapping[str, Any]) -> Settled:
    """Check whether a batch is decided, and commit what this task had prepared of it.

    Raises: IllegalStateError for a batch that is older than the decided one; UndecidableError;
    errors of brokers.
    """
    if place.batch is None:
        return Settled(False, True, None)
    with clients.prepared(config) as client:
        mark = read_mark(client, place.base)
        decision = None if mark is None else _decision_of(client, place.base, mark, mark.number)
        course = course_of(decision, place.batch, place.partition)
        if course is not Course.SETTLE:
            return Settled(course is Course.SKIP, course is Course.WRITE, mark)
        assert decision is not None
        entry = decision.entry(place.partition)
        assert entry is not None
        gone = _end_decided(client, place.base, place.batch, [entry])
        return Settled(True, bool(gone), mark)


def _end_decided(
    client: PreparedTransactions, base: str, batch: int, entries: Sequence[Entry]
) -> List[Entry]:
    """Commit decided transactions; return those that are lost: timed out, or fenced."""
    by_id = {each.transactional_id(base): each for each in entries}
    errors = client.commit({name: each.state for name, each in by_id.items()})
    gone = []
    for name, error in errors.items():
        if not is_over(error):
            raise error
        # No client can commit it any more now, and its mark shows whether it was committed.
        _raise_first(client.fence([name], client.config['transaction_timeout_ms']))
        mark = read_mark(client, _group_of(base, by_id[name].partition))
        if mark is None or mark.number < batch:
            log.warning('%s of batch %d was aborted before it was committed', name, batch)
            gone.append(by_id[name])
    return gone


class TransactionOutlet:
    """The transaction of a task: begun with its first row, then prepared or aborted.

    Arguments: place; settled: the result of settle(); config: options of KafkaProducer.
    Attributes: state: needed to end what is prepared, None if nothing was sent; topic.
    """

    def __init__(self, place: Place, settled: Settled, config: Mapping[str, Any]) -> None:
        self._place = place
        self._settled = settled
        self._config = dict(config)
        self._producer: Optional[KafkaProducer] = None
        self.state: Optional[PreparedTxnState] = None
        self.topic = ''

    def __repr__(self) -> str:
        return '<TransactionOutlet %s>' % self.transactional_id

    @property
    def transactional_id(self) -> str:
        """The id of the transaction."""
        return transactional_id(self._place.base, self._place.partition, self._place.attempt)

    def producer(self, topic: str) -> KafkaProducer:
        """Return the producer, with a transaction begun.

        Raises: IllegalStateError if the batch or write is over; errors of brokers.
        """
        if self._producer is None:
            self.topic = topic
            producer = KafkaProducer(**{**self._config, 'transactional_id': self.transactional_id})
            with ExitStack() as undone:
                undone.callback(producer.close, 0)
                self._initialise(producer)
                self._check_unchanged()
                producer.begin_transaction()
                undone.pop_all()
            self._producer = producer
        return self._producer

    def _initialise(self, producer: KafkaProducer) -> None:
        try:
            producer.init_transactions()
        except InvalidTransactionTimeoutError as error:
            raise KafkaConfigurationError(
                'kafka.transaction.timeout.ms must be at most transaction.max.timeout.ms of the'
                ' brokers,'
                ' got %d (the default if it is not given)' % TIMEOUT_MS
            ) from error

    def _check_unchanged(self) -> None:
        """Raise if the driver has finished the batch or write: the transaction would stay open.

        Must follow init_transactions(): a driver that finishes later than that fences the producer
        id.
        """
        with clients.prepared(self._config) as client:
            mark = read_mark(client, self._place.base)
        if mark == self._settled.mark:
            return
        batch = self._place.batch
        raise IllegalStateError(
            'exactlyOnce: %s is over: it was aborted, or another attempt of this task was'
            ' accepted, or'
            ' another driver writes it; %s begins no transaction'
            % ('the write' if batch is None else 'batch %d' % batch, self.transactional_id)
        )

    def finish(self) -> None:
        """Prepare the transaction; call it when all rows are stored."""
        producer = self._producer
        if producer is None:
            return
        place = self._place
        if place.batch is not None:
            mark = {TopicPartition(self.topic, 0): OffsetAndMetadata(place.batch, '', -1)}
            producer.send_offsets_to_transaction(mark, _group_of(place.base, place.partition))
        self.state = producer.prepare_transaction()
        self._producer = None
        producer.close(0)

    def give_up(self) -> None:
        """Abort the transaction, so that consumers do not wait for its time-out."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.abort_transaction()
        except KafkaError as error:  # the next attempt, or the time-out, will abort it
            log.warning('%s was not aborted: %s', self.transactional_id, error)
        finally:
            producer.close(0)

    def told(self) -> Told:
        """Return the message to the driver."""
        place = self._place
        entry = None
        if self.state is not None:
            entry = Entry(place.partition, place.attempt, self.state)
        return Told(place.base, self._settled.knew, entry, self.topic)


def _group_of(base: str, partition: int) -> str:
    """Return the group that stores the mark of a task."""
    return '%s-%d' % (base, partition)


# ------------------------------------------------------------ the driver


def commit(told: Sequence[Told], batch: Optional[int], config: Mapping[str, Any]) -> None:
    """Store the decision, then commit.

    Arguments: told: of all tasks; batch: None for the write of a DataFrame, which has no decision
    because no later run continues it.
    Raises: UndecidableError; errors of brokers. The caller then calls abort(), which does not touch
    a decided batch.
    """
    if not told:
        return
    base = told[0].base
    entries = [each.entry for each in told if each.entry is not None]
    knew = [each.knew for each in told]
    if not entries and not any(knew):
        return
    with clients.prepared(config) as client:
        _check(client, base, entries)
        if batch is None:
            _commit_all(client, base, entries)
            _mark_as_over(client, base, _topic_of(told))
        else:
            decision = _decide(client, base, batch, entries, told)
            gone = _end_decided(client, base, batch, decision.entries)
            if gone:
                raise UndecidableError(
                    'exactlyOnce: in batch %d the transaction of partition %d of Spark was aborted;'
                    ' restart the query, which writes it again' % (batch, gone[0].partition)
                )
        _sweep(client, base, entries)


def _topic_of(told: Sequence[Told]) -> Optional[str]:
    """Return a topic that tasks wrote to, None if they wrote to none."""
    return next((each.topic for each in told if each.entry is not None), None)


def _mark_as_over(client: PreparedTransactions, base: str, topic: Optional[str]) -> None:
    """Mark a DataFrame's write as over, for tasks that begin later.

    A failure is only logged: without the mark, open transactions end by their time-out.
    """
    try:
        write_mark(client, base, topic or _ANY_TOPIC, Mark(0, 'over'))
    except KafkaError as error:
        log.warning('the mark that %s is over could not be written: %s', base, error)


def _check(client: PreparedTransactions, base: str, entries: Sequence[Entry]) -> None:
    """Raise an error unless all transactions can still be committed."""
    states = {each.transactional_id(base): each.state for each in entries}
    for name, error in client.check(states).items():
        if is_over(error):
            raise ProducerFencedError(
                'exactlyOnce: the transaction of %s was aborted before the batch was decided: by'
                ' its'
                ' time-out (kafka.transaction.timeout.ms) or by another attempt of its task;'
                ' nothing of the batch is committed' % name
            ) from error
        raise error


def _commit_all(client: PreparedTransactions, base: str, entries: Sequence[Entry]) -> None:
    states = {each.transactional_id(base): each.state for each in entries}
    errors = client.commit(states)
    for name, error in errors.items():
        raise UndecidableError(
            'exactlyOnce: %d of %d transactions are not committed, the others are; the first'
            ' error is'
            ' %s: %s' % (len(errors), len(states), name, error)
        ) from error


def _decide(
    client: PreparedTransactions,
    base: str,
    batch: int,
    entries: Sequence[Entry],
    told: Sequence[Told],
) -> Decision:
    mark = read_mark(client, base)
    known = None if mark is None else _decision_of(client, base, mark, batch)
    decision = merged(known, batch, entries, [each.knew for each in told])
    if decision != known:
        topic = _topic_of(told)
        assert topic is not None
        _write_decision(client, base, topic, decision, mark)
    return decision


def abort(
    told: Sequence[Optional[Told]],
    batch: Optional[int],
    base: Optional[str],
    config: Mapping[str, Any],
    topic: Optional[str] = None,
) -> None:
    """Abort the transactions of tasks, unless the batch is decided: then the next run finishes it.

    Arguments: told: None for tasks that failed; base: of a DataFrame, None for a query; topic: the
    one for all rows, None if there is none.
    """
    known = [each for each in told if each is not None]
    if base is None:
        if not known:
            return  # the query is unknown; the next run fences what it left
        base = known[0].base
    with clients.prepared(config) as client:
        kept: Sequence[Entry] = ()
        if batch is None:
            _mark_as_over(client, base, topic or _topic_of(known))
        else:
            decision = _read_decision(client, base)
            if decision is not None and decision.batch >= batch:
                log.warning('batch %d of %s is decided: the next run commits it', batch, base)
                kept = decision.entries
        names = {each.transactional_id(base) for each in kept}
        entries = [each.entry for each in known if each.entry is not None]
        states = {each.transactional_id(base): each.state for each in entries}
        errors = client.abort({name: state for name, state in states.items() if name not in names})
        for name, error in errors.items():
            if not is_over(error):
                log.warning('%s was not aborted: %s', name, error)
        _sweep(client, base, kept, len(told))


def _sweep(
    client: PreparedTransactions, base: str, kept: Sequence[Entry], failed_tasks: int = 0
) -> None:
    """Abort the transactions of killed attempts, which no task will end, and fence their producers.

    Consumers with read_committed would wait for their time-out. Failures are only logged.
    Arguments: failed_tasks: the number of tasks if none of them was accepted.
    """
    names = {each.transactional_id(base) for each in kept}
    try:
        found = client.held_ids(base + '-')
        if found is None:  # brokers before 3.0
            found = _guessed(base, kept, failed_tasks)
        errors = client.fence(
            [name for name in found if name not in names], client.config['transaction_timeout_ms']
        )
    except KafkaError as error:
        log.warning('open transactions of earlier attempts could not be listed: %s', error)
        return
    for name, failure in errors.items():
        log.warning('%s was left open, and not aborted: %s', name, failure)


def _guessed(base: str, kept: Sequence[Entry], failed_tasks: int) -> List[str]:
    """Return ids that may have open transactions, for brokers that do not list them.

    These are attempts before the accepted ones; once per process all that an earlier run may have
    left; after a failed job all attempts.
    """
    is_first = base not in _swept
    del _swept[:-_MOST_SWEPT]
    _swept.append(base)
    found = {
        transactional_id(base, each.partition, attempt)
        for each in kept
        for attempt in range(max(each.attempt, _ATTEMPTS if is_first else 0))
    }
    found |= {
        transactional_id(base, partition, attempt)
        for partition in range(failed_tasks)
        for attempt in range(_ATTEMPTS)
    }
    return sorted(found)


def _raise_first(errors: Mapping[str, KafkaError]) -> None:
    for error in errors.values():
        raise error


# ------------------------------------------------------------ decisions as marks


def _read_decision(client: PreparedTransactions, base: str) -> Optional[Decision]:
    mark = read_mark(client, base)
    return None if mark is None else _decision_of(client, base, mark, mark.number)


def _decision_of(client: PreparedTransactions, base: str, mark: Mark, batch: int) -> Decision:
    """Return the decision in a mark; for a batch before the given one only its number."""
    if mark.number < batch:
        return Decision(mark.number, 0, ())
    head = _Head.of(mark)
    texts = [head.rest]
    for number in range(head.pieces):
        piece = read_mark(client, _group_of_piece(base, head.series, number))
        if piece is None or piece.number != mark.number or not piece.text.startswith(head.nonce):
            raise UndecidableError(
                'exactlyOnce: the decision about batch %d is incomplete' % mark.number
            )
        texts.append(piece.text[len(head.nonce) :])
    return decode(mark.number, texts)


def _write_decision(
    client: PreparedTransactions,
    base: str,
    topic: str,
    decision: Decision,
    last: Optional[Mark],
) -> None:
    """Make a decision durable by a commit of an offset, which comes last.

    Pieces that do not fit are written to other groups first, not to those of the last decision.
    """
    first, *pieces = encode(decision)
    series = 'b' if last is not None and _Head.of(last).series == 'a' else 'a'
    head = _Head(series, len(pieces), uuid.uuid4().hex[:8], first)
    for number, piece in enumerate(pieces):
        group = _group_of_piece(base, series, number)
        write_mark(client, group, topic, Mark(decision.batch, head.nonce + piece))
    write_mark(client, base, topic, Mark(decision.batch, head.text))


def _group_of_piece(base: str, series: str, number: int) -> str:
    return '%s-decision-%s%d' % (base, series, number)


class _Head(NamedTuple):
    """The start of a decision: the number and the series of the groups with further pieces."""

    series: str
    pieces: int
    nonce: str
    rest: str

    @property
    def text(self) -> str:
        return '%s %d %s %s' % self

    @classmethod
    def of(cls, mark: Mark) -> _Head:
        try:
            series, pieces, nonce, rest = mark.text.split(' ', 3)
            return cls(series, int(pieces), nonce, rest)
        except ValueError as error:
            raise UndecidableError(
                'exactlyOnce: the decision about batch %d cannot be read' % mark.number
            ) from error
