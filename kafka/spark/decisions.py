"""What is decided about a batch that is written exactly once, and what follows from it.

Owns the decision as a value and as text, and what a task and the driver do in each case; pure. Who
asks brokers, and when, is exactly_once.py.

A task *prepares* a transaction: all of its rows are in it, and its end is still open. The driver
*decides*: it makes durable which prepared transactions are the batch. Before that none of them is
ever committed, so the batch may be written anew; afterwards only they are committed, by whoever
comes first, so it must not. In each transaction is a mark of the batch, by which can be told, when
the transaction itself is gone, whether it was committed.
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

#: So long a text may be that brokers keep with an offset is 4096 (offset.metadata.max.bytes).
MOST_TEXT = 4000
_FORMAT = '1'


class UndecidableError(KafkaError):
    """A batch cannot be finished exactly once; the text says why, and what there is of it."""


class Entry(NamedTuple):
    """The prepared transaction of a task: Spark's partition, the attempt, and how to end it."""

    partition: int
    attempt: int
    state: PreparedTxnState

    def transactional_id(self, base: str) -> str:
        """Return the id of the transaction, of a query or a write."""
        return transactional_id(base, self.partition, self.attempt)


class Decision(NamedTuple):
    """Which transactions are a batch. Attributes: tasks: how many there were, with rows or not."""

    batch: int
    tasks: int
    entries: Tuple[Entry, ...]

    def entry(self, partition: int) -> Optional[Entry]:
        """Return the transaction of a task, None if it had no rows."""
        return next((each for each in self.entries if each.partition == partition), None)


class Course(enum.Enum):
    """What a task does."""

    WRITE = 'write'  # nothing is decided
    SKIP = 'skip'  # the batch is decided, and had no rows of this task
    SETTLE = 'settle'  # the batch is decided: end the transaction, or find that it is gone


def transactional_id(base: str, partition: int, attempt: int) -> str:
    """Return the id of a task's transaction.

    The attempt is in it: another one of the same task, which may have been accepted, is not fenced.
    """
    return '%s-%d-%d' % (base, partition, attempt)


def course_of(decision: Optional[Decision], batch: int, partition: int) -> Course:
    """Return what a task of a batch does.

    Raises: IllegalStateError for a batch before the one that was decided last.
    """
    if decision is None or decision.batch < batch:
        return Course.WRITE
    if decision.batch > batch:
        raise IllegalStateError(
            'exactlyOnce: batch %d is to be written, but batch %d of this query is stored already:'
            ' the checkpoint is older than what was written. Begin with a new checkpoint'
            % (batch, decision.batch)
        )
    return Course.SKIP if decision.entry(partition) is None else Course.SETTLE


def merged(
    decision: Optional[Decision],
    batch: int,
    prepared: Iterable[Entry],
    knew: Sequence[bool],
) -> Decision:
    """Return what is to be decided by the driver, given what is decided already.

    Arguments: prepared: the transactions of tasks; knew: of each task, whether it saw that the
    batch is decided, so that it wrote what had been lost of it, or nothing.
    Raises: IllegalStateError where another driver has decided meanwhile; UndecidableError.
    """
    entries = {each.partition: each for each in prepared}
    tasks = len(knew)
    if decision is None or decision.batch < batch:
        if any(knew):
            raise UndecidableError(
                'exactlyOnce: what was decided about batch %d is gone from its group' % batch
            )
        return Decision(batch, tasks, _sorted(entries))
    course_of(decision, batch, 0)
    if not all(knew):
        raise IllegalStateError(
            'exactlyOnce: batch %d was decided while it was written: another driver runs this query'
            ' over the same checkpoint' % batch
        )
    if not entries:
        return decision
    if tasks != decision.tasks:
        raise UndecidableError(
            'exactlyOnce: of batch %d some is stored and some was lost, by transactions that took'
            ' longer than kafka.transaction.timeout.ms, and cannot be written again because it has'
            ' %d partitions now, not %d' % (batch, tasks, decision.tasks)
        )
    return decision._replace(
        entries=_sorted({**{each.partition: each for each in decision.entries}, **entries})
    )


def _sorted(entries: Dict[int, Entry]) -> Tuple[Entry, ...]:
    return tuple(entries[partition] for partition in sorted(entries))


# ------------------------------------------------------------ as text


def encode(decision: Decision) -> List[str]:
    """Return a decision as texts that brokers keep with offsets, one or more."""
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
    """Return what was encoded. Raises: UndecidableError for what this version cannot read."""
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
            'exactlyOnce: what is kept about batch %d cannot be read (%s): it was written by'
            ' another version, or by something else that uses its group' % (batch, error)
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
