"""Writing exactly once (option exactlyOnce): what a task does with its transaction, and the driver.

Owns the order in which brokers are asked, so that a kill between any two steps leaves what the next
run finishes. What is decided, and what follows from it, is decisions.py; marks are marks.py; rows
become records in writing.py. Docs: docs/spark.rst; why it is done so: docs/design.rst.

The steps of a batch of a query. A task: (1) is the batch decided? if so, it ends what it had
prepared, and writes again only what is gone; (2) a producer id, which fences who had the id; (3) is
it still as it was at (1)? (4) rows; (5) the mark of the batch, in the transaction; (6) prepared.
The driver: (7) are all of them still open? (8) the decision; (9) EndTxn for each; (10) transactions
that nobody will end are aborted. Up to (7) all is as if nothing had been written, from (8) on as if
it had.

Spark does not wait for tasks that it kills, so that one of them may go on behind (10). Who has a
producer id by then is found there, whether a transaction was begun or not, and fenced; who gets one
later finds at (3) that the batch is decided. For a DataFrame, which is not decided, the driver
marks in its place that the write is over, also where it is aborted.
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

#: What brokers allow unless they are told otherwise (transaction.max.timeout.ms).
TIMEOUT_MS = 900000
#: Attempts that a task has by default (spark.task.maxFailures): what an earlier run may have left.
_ATTEMPTS = 4
#: A topic that is there once a group is, for marks where no other topic is known.
_ANY_TOPIC = '__consumer_offsets'
#: Of which queries and writes this process has looked for what earlier runs left, the last ones.
_swept: List[str] = []
_MOST_SWEPT = 64


class Place(NamedTuple):
    """Where a task stands.

    base: what its ids begin with; batch: the number of the micro-batch, None where a DataFrame is
    written; partition: Spark's; attempt.
    """

    base: str
    batch: Optional[int]
    partition: int
    attempt: int


class Settled(NamedTuple):
    """What a task begins with.

    knew: whether the batch is decided; is_wanted: whether the rows have to be written; mark: that
    of the query, or write, when the task looked.
    """

    knew: bool
    is_wanted: bool
    mark: Optional[Mark]


class Told(NamedTuple):
    """What a task tells the driver beside its rows.

    knew: whether the batch was decided; entry: its transaction, None if it wrote nothing; topic:
    one that it wrote to.
    """

    base: str
    knew: bool = False
    entry: Optional[Entry] = None
    topic: str = ''


def write_base(prefix: str) -> str:
    """Return what the ids of one DataFrame's write begin with: no other's."""
    return '%s-%s' % (prefix, uuid.uuid4().hex)


# ------------------------------------------------------------ a task


def settle(place: Place, config: Mapping[str, Any]) -> Settled:
    """Find out whether a batch is decided, and end what this task had prepared of it.

    Raises: IllegalStateError for a batch that is older than what was decided; UndecidableError;
    what brokers refuse.
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
    """Commit transactions that are decided; return those that are lost: timed out, or fenced."""
    by_id = {each.transactional_id(base): each for each in entries}
    errors = client.commit({name: each.state for name, each in by_id.items()})
    gone = []
    for name, error in errors.items():
        if not is_over(error):
            raise error
        # Nobody can commit it from here on, and what was committed is told by its mark.
        _raise_first(client.fence([name], client.config['transaction_timeout_ms']))
        mark = read_mark(client, _group_of(base, by_id[name].partition))
        if mark is None or mark.number < batch:
            log.warning('%s of batch %d was aborted before it was committed', name, batch)
            gone.append(by_id[name])
    return gone


class TransactionOutlet:
    """The transaction of a task: begins with its first row, and ends prepared, or not at all.

    Arguments: place; settled: what settle() told; config: options of KafkaProducer.
    Attributes: state: how to end what is prepared, None if nothing was sent; topic.
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

        Raises: IllegalStateError where the batch or write is over; what brokers refuse.
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
                'kafka.transaction.timeout.ms, %d unless given, is more than the brokers allow'
                ' (their transaction.max.timeout.ms)' % TIMEOUT_MS
            ) from error

    def _check_unchanged(self) -> None:
        """Raise if the driver has ended meanwhile what this task is of: nobody would end it then.

        Only behind init_transactions(): a driver that marks later than this fences the producer id.
        """
        with clients.prepared(self._config) as client:
            mark = read_mark(client, self._place.base)
        if mark == self._settled.mark:
            return
        batch = self._place.batch
        raise IllegalStateError(
            'exactlyOnce: %s is over: it was aborted, or another attempt of this task was taken, or'
            ' another driver writes it; %s begins no transaction'
            % ('the write' if batch is None else 'batch %d' % batch, self.transactional_id)
        )

    def finish(self) -> None:
        """Prepare the transaction, when all rows are stored."""
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
        """Abort, so that nobody waits for the transaction."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.abort_transaction()
        except KafkaError as error:  # the next attempt, or the time-out, will do it
            log.warning('%s was not aborted: %s', self.transactional_id, error)
        finally:
            producer.close(0)

    def told(self) -> Told:
        """Return what the driver is told."""
        place = self._place
        entry = None
        if self.state is not None:
            entry = Entry(place.partition, place.attempt, self.state)
        return Told(place.base, self._settled.knew, entry, self.topic)


def _group_of(base: str, partition: int) -> str:
    """Return the group that keeps the mark of a task."""
    return '%s-%d' % (base, partition)


# ------------------------------------------------------------ the driver


def commit(told: Sequence[Told], batch: Optional[int], config: Mapping[str, Any]) -> None:
    """Decide, and commit.

    Arguments: told: of all tasks; batch: None where a DataFrame is written, which is not decided:
    nobody would go on with it.
    Raises: UndecidableError; what brokers refuse. Whoever calls aborts then, which leaves what is
    decided alone.
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
                    'exactlyOnce: of batch %d what partition %d of Spark had written was aborted;'
                    ' start the query again, which writes it anew' % (batch, gone[0].partition)
                )
        _sweep(client, base, entries)


def _topic_of(told: Sequence[Told]) -> Optional[str]:
    """Return a topic that tasks wrote to, None if nobody tells one."""
    return next((each.topic for each in told if each.entry is not None), None)


def _mark_as_over(client: PreparedTransactions, base: str, topic: Optional[str]) -> None:
    """Let tasks of a DataFrame that begin later know that nobody waits for them.

    Not a reason to fail: what is not marked, the time-out of transactions ends.
    """
    try:
        write_mark(client, base, topic or _ANY_TOPIC, Mark(0, 'over'))
    except KafkaError as error:
        log.warning('that %s is over could not be kept for tasks that still run: %s', base, error)


def _check(client: PreparedTransactions, base: str, entries: Sequence[Entry]) -> None:
    """Raise unless all transactions can still be committed."""
    states = {each.transactional_id(base): each.state for each in entries}
    for name, error in client.check(states).items():
        if is_over(error):
            raise ProducerFencedError(
                'exactlyOnce: the transaction of %s was aborted before the batch was decided: by'
                ' its time-out (kafka.transaction.timeout.ms), or by another attempt of its task;'
                ' nothing of the batch is committed' % name
            ) from error
        raise error


def _commit_all(client: PreparedTransactions, base: str, entries: Sequence[Entry]) -> None:
    states = {each.transactional_id(base): each.state for each in entries}
    errors = client.commit(states)
    for name, error in errors.items():
        raise UndecidableError(
            'exactlyOnce: %d of %d transactions are not committed, the others are; the first is'
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
    """Abort what tasks have written, unless it is decided: then the next run finishes it.

    Arguments: told: None for tasks that failed; base: of a DataFrame, None for a query; topic: the
    one that all rows are for, None where there is none.
    """
    known = [each for each in told if each is not None]
    if base is None:
        if not known:
            return  # nobody knows which query it is; the next run fences what it left
        base = known[0].base
    with clients.prepared(config) as client:
        kept: Sequence[Entry] = ()
        if batch is None:
            _mark_as_over(client, base, topic or _topic_of(known))
        else:
            decision = _read_decision(client, base)
            if decision is not None and decision.batch >= batch:
                log.warning('batch %d of %s is decided: the next run finishes it', batch, base)
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
    """Abort transactions that nobody will end, and let none begin: of attempts that were killed.

    Readers of committed records would wait for them until they time out. Not a reason to fail.
    Arguments: failed_tasks: how many tasks there were, where none of them was accepted.
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
        log.warning('transactions that were left open could not be looked for: %s', error)
        return
    for name, failure in errors.items():
        log.warning('%s was left open, and not aborted: %s', name, failure)


def _guessed(base: str, kept: Sequence[Entry], failed_tasks: int) -> List[str]:
    """Return ids that may have open transactions, where brokers do not list them.

    Attempts before those that were accepted, and once all that an earlier run may have left; of a
    job that failed all attempts.
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
    """Return what a mark says; of an older batch than one that is of interest its number only."""
    if mark.number < batch:
        return Decision(mark.number, 0, ())
    head = _Head.of(mark)
    texts = [head.rest]
    for number in range(head.pieces):
        piece = read_mark(client, _group_of_piece(base, head.series, number))
        if piece is None or piece.number != mark.number or not piece.text.startswith(head.nonce):
            raise UndecidableError(
                'exactlyOnce: what is kept about batch %d is not whole' % mark.number
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
    """Make a decision durable: by one commit of an offset, which comes last.

    What does not fit is in other groups by then, and not in those that the last decision needs.
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
    """What stands before a decision: in how many more groups, of which series, it goes on."""

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
                'exactlyOnce: what is kept about batch %d cannot be read' % mark.number
            ) from error
