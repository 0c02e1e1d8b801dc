"""The decision about a batch that is written exactly once, as a value and as text.

It also defines what a task and the driver do in each case; the requests to brokers are in
exactly_once.py.

A task *prepares* a transaction: all of its rows are in it, but it is still open. The driver
*decides*: it stores durably which prepared transactions make up the batch. Before the decision none
of them is ever committed, so the batch may be written again; afterwards only these are committed,
by the driver or a later run, so it must not. Each transaction contains a mark of the batch, which
shows, once the transaction is gone, whether it was committed. Pure.
"""

from __future__ import annotations

import base64
import enum
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from kafka.errors import IllegalStateError, KafkaError
from kafka.producer.transaction_operations import PreparedTxnState

__all__ = [
    'Course',
    'Decision',
    'Entry',
    'UndecidableError',
    'course_of',
    'decode',
    'encode',
    'merged',
    'transactional_id',
]

#: The maximum length of a text; brokers store 4096 with an offset (offset.metadata.max.bytes).
MOST_TEXT = 4000
_FORMAT = '1'


class UndecidableError(KafkaError):
    """A batch cannot be finished exactly once; the message says why, and what is stored of it."""


class Entry(NamedTuple):
    """The prepared transaction of a task: Spark's partition, the attempt, and its state."""

    partition: int
    attempt: int
    state: PreparedTxnState

    def transactional_id(self, base: str) -> str:
        """Return the transactional id; base: of the query or write."""
        return transactional_id(base, self.partition, self.attempt)


class Decision(NamedTuple):
    """The transactions of a batch. Attributes: tasks: the number of tasks, also without rows."""

    batch: int
    tasks: int
    entries: Tuple[Entry, ...]

    def entry(self, partition: int) -> Optional[Entry]:
        """Return the transaction of a task, None if it had no rows."""
        return next((each for each in self.entries if each.partition == partition), None)


class Course(enum.Enum):
    """What a task has to do."""

    WRITE = 'write'  # the batch is not decided
    SKIP = 'skip'  # the batch is decided, and this task had no rows
    SETTLE = 'settle'  # the batch is decided: commit the transaction, or detect that it is gone


def transactional_id(base: str, partition: int, attempt: int) -> str:
    """Return the id of a task's transaction.

    It contains the attempt, so that another attempt of the task, which may be accepted, is not
    fenced.
    """
    return '%s-%d-%d' % (base, partition, attempt)


def course_of(decision: Optional[Decision], batch: int, partition: int) -> Course:
    """Return what a task of a batch has to do.

    Raises: IllegalStateError for a batch before the one that was decided last.
    """
    if decision is None or decision.batch < batch:
        return Course.WRITE
    if decision.batch > batch:
        raise IllegalStateError(
            'exactlyOnce: batch %d is about to be written, but batch %d of this query is stored'
            ' already:'
            ' the checkpoint is older than the topic. Start with a new checkpoint'
            % (batch, decision.batch)
        )
    return Course.SKIP if decision.entry(partition) is None else Course.SETTLE


def merged(
    decision: Optional[Decision],
    batch: int,
    prepared: Iterable[Entry],
    knew: Sequence[bool],
) -> Decision:
    """Return the decision for the driver to store, given the decision that is stored already.

    Arguments: prepared: the transactions of tasks; knew: for each task, whether it saw that the
    batch is decided, and therefore wrote only rows that had been lost, or nothing.
    Raises: IllegalStateError if another driver decided in the meantime; UndecidableError.
    """
    entries = {each.partition: each for each in prepared}
    tasks = len(knew)
    if decision is None or decision.batch < batch:
        if any(knew):
            raise UndecidableError(
                'exactlyOnce: the decision about batch %d is missing in its group' % batch
            )
        return Decision(batch, tasks, _sorted(entries))
    course_of(decision, batch, 0)
    if not all(knew):
        raise IllegalStateError(
            'exactlyOnce: batch %d was decided while it was written: another driver runs this query'
            ' with the same checkpoint' % batch
        )
    if not entries:
        return decision
    if tasks != decision.tasks:
        raise UndecidableError(
            'exactlyOnce: batch %d is stored partly: some transactions took longer than'
            ' kafka.transaction.timeout.ms and were lost, and cannot be written again because the'
            ' batch'
            ' has %d partitions now, not %d' % (batch, tasks, decision.tasks)
        )
    return decision._replace(
        entries=_sorted({**{each.partition: each for each in decision.entries}, **entries})
    )


def _sorted(entries: Dict[int, Entry]) -> Tuple[Entry, ...]:
    return tuple(entries[partition] for partition in sorted(entries))


# ------------------------------------------------------------ text form


def encode(decision: Decision) -> List[str]:
    """Return a decision as one or more texts that brokers store with offsets."""
    numbers: List[int] = []
    last = Entry(-1, 0, PreparedTxnState(0, 0))
    for each in decision.entries:
        kind = each.attempt * 2 + each.state.is_v2
        numbers += [
            each.partition - last.partition,
            kind,
            _zigzag(each.state.producer_id - last.state.producer_id),
            each.state.epoch,
        ]
        last = each
    data = base64.b64encode(b''.join(map(_varint, numbers))).decode('ascii')
    head = '%s %d ' % (_FORMAT, decision.tasks)
    room = MOST_TEXT - len(head)
    return [head + data[:room], *_pieces(data[room:], MOST_TEXT)]


def _pieces(data: str, size: int) -> List[str]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def decode(batch: int, texts: Iterable[str]) -> Decision:
    """Return the decision in texts. Raises: UndecidableError if this version cannot read it."""
    try:
        kind, tasks, data = ''.join(texts).split(' ', 2)
        if kind != _FORMAT:
            raise ValueError('format %s' % kind)
        numbers = _numbers(base64.b64decode(data, validate=True))
        entries = []
        last = Entry(-1, 0, PreparedTxnState(0, 0))
        for at in range(0, len(numbers), 4):
            step, attempt, producer_id, epoch = numbers[at : at + 4]
            producer_id = (producer_id >> 1) ^ -(producer_id & 1)
            state = PreparedTxnState(last.state.producer_id + producer_id, epoch, bool(attempt & 1))
            last = Entry(last.partition + step, attempt >> 1, state)
            entries.append(last)
        return Decision(batch, int(tasks), tuple(entries))
    except ValueError as error:
        raise UndecidableError(
            'exactlyOnce: the decision about batch %d cannot be read (%s): it was written by'
            ' another'
            ' version, or the group is used by something else' % (batch, error)
        ) from error


def _zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _numbers(data: bytes) -> List[int]:
    found, number, shift = [], 0, 0
    for each in data:
        number |= (each & 127) << shift
        shift += 7
        if each < 128:
            found.append(number)
            number = shift = 0
    if shift or len(found) % 4:
        raise ValueError('it ends early')
    return found
