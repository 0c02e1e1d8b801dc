"""What must hold at the end of a simulation, read from the logs of the brokers themselves.

Owns the reading of a log as a reader of committed records sees it, and the comparison with what the
producer was told.
"""

from __future__ import annotations

from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError
from kafka.record.memory_records import MemoryRecords

ABORT_MARKER = b'\x00\x00\x00\x00'


class Wrong(AssertionError):
    """Something does not hold."""


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
