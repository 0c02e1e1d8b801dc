"""What must hold at the end of a simulation, read from the logs of the brokers themselves.

Owns the reading of a log as a reader of committed records sees it, the comparison with what the
producer was told, and the hearing of what the package complains of about itself.
"""

from __future__ import annotations

import contextlib
import gc
import logging

from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError
from kafka.record.memory_records import MemoryRecords

ABORT_MARKER = b'\x00\x00\x00\x00'


class Wrong(AssertionError):
    """Something does not hold."""


class Complaints(logging.Handler):
    """What the package logs of errors in itself, and what cannot be logged as it is said."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        try:
            text = record.getMessage()
        except (TypeError, ValueError) as error:
            self.found.append(('%r %% %r' % (record.msg, record.args), error))
            return
        if record.levelno >= logging.ERROR and record.exc_info and record.exc_info[1] is not None:
            self.found.append((text, record.exc_info[1]))


@contextlib.contextmanager
def repeatable(made, how):
    """Raise Wrong for whatever goes wrong with a run in a block, with the way to repeat it."""
    try:
        yield
    except Exception as error:
        text = '%r: %s: %s\nrepeat it: python -m test.simulation %s'
        raise Wrong(text % (made, type(error).__name__, error, how)) from error


@contextlib.contextmanager
def hearing(seed):
    """Raise Wrong at the end of a block for what the package has complained of in it.

    Every twentieth seed all that is logged is read, otherwise errors only, which costs less; and
    nobody else is told of trouble that is wanted. Rubbish is collected behind the block.
    """
    complaints = Complaints()
    logger = logging.getLogger('kafka')
    before = logger.level, logger.propagate, gc.isenabled()
    logger.setLevel(logging.DEBUG if seed % 20 == 0 else logging.ERROR)
    logger.propagate = False
    logger.addHandler(complaints)
    gc.disable()
    try:
        yield
    finally:
        logger.removeHandler(complaints)
        logger.setLevel(before[0])
        logger.propagate = before[1]
        if before[2]:
            gc.enable()
    if complaints.found:
        text, error = complaints.found[0]
        raise Wrong('%s: %r' % (text, error)) from error


def committed(log, may_hang):
    """Return the values that a reader of committed records gets from a log, in its order.

    Raises Wrong for a transaction that is still open, unless these may hang.
    """
    values = []
    for batch in log.batches:
        if batch.is_control or batch.producer_id >= 0 and _is_aborted(log, batch):
            continue
        if batch.is_transactional and _is_open(log, batch):
            if may_hang:
                break
            raise Wrong('a transaction of producer %d never ended' % batch.producer_id)
        for read in MemoryRecords(batch.data):
            values.extend(record.value for record in read)
    return values


def _is_aborted(log, batch):
    return batch.is_transactional and any(
        each.producer_id == batch.producer_id
        and each.first_offset <= batch.base_offset <= each.last_offset
        for each in log.aborted
    )


def _is_open(log, batch):
    first = log.open_transactions.get(batch.producer_id)
    return first is not None and first <= batch.base_offset


def check_partition(number, seen, acknowledged, forbidden):
    """Raise Wrong unless the values of a partition are what they have to be.

    Arguments: seen: in the order of the log; acknowledged: that have to be there; forbidden: that
    must not be.
    """
    where = 'partition %d' % number
    if len(set(seen)) != len(seen):
        twice = sorted({value for value in seen if seen.count(value) > 1})
        raise Wrong('%s has some records twice: %r' % (where, twice[:5]))
    missing = sorted(set(acknowledged) - set(seen))
    if missing:
        raise Wrong('%s lacks acknowledged records: %r' % (where, missing[:5]))
    wrong = sorted(set(forbidden) & set(seen))
    if wrong:
        raise Wrong('%s shows records of aborted transactions: %r' % (where, wrong[:5]))
    if seen != sorted(seen):
        at = next(i for i in range(1, len(seen)) if seen[i] < seen[i - 1])
        raise Wrong('%s is out of order: %r before %r' % (where, seen[at - 1], seen[at]))


def check_errors(number, errors):
    """Raise Wrong if idempotent records failed with what is no fault of their own (None: none).

    Whatever becomes of other batches of its partition, a batch is stored, too large or too late.
    """
    for error in errors:
        if not isinstance(error, (type(None), KafkaTimeoutError, MessageSizeTooLargeError)):
            raise Wrong('records of partition %d failed with %r' % (number, error))


def check_producer(producer):
    """Raise Wrong unless a producer has let go of everything."""
    if not producer.accumulator.is_empty():
        raise Wrong('%d batches have no outcome' % len(producer.accumulator.incomplete))
    used = producer.accumulator.memory.used
    if used:
        raise Wrong('%d bytes of memory were not given back' % used)
    if producer.state.sequences.has_outstanding:
        raise Wrong('batches are counted as under way: %r' % producer.state.sequences)
