"""Sequence numbers of an idempotent producer: which batch may be sent next, and error handling.

For each partition, Sequences has the numbered batches without a final response, and the last
acknowledged number; under a new epoch (KIP-98, KIP-360) batches are renumbered by ``restamp()``.
Used by :mod:`kafka.producer.transaction_state`, which decides what an error does to a transaction.
Handles the error codes with ``SEQUENCE`` in :mod:`kafka.producer.produce_errors`.

Five rules make sure that each record is stored once and in order:

*   A batch keeps its number as long as a broker may have stored it, or may still receive it. The
    batches of a partition are renumbered only when none of them is in flight.
*   While a batch of a partition is retried, no new batch is sent there, and of the numbered ones
    only the one with the lowest number.
*   After a batch of unknown outcome was given up, no new batch is sent in its partition until all
    numbered ones are answered. Then either the broker has stored it, or a new epoch begins.
*   Beyond the first unanswered batch there are no more batches than the broker remembers: it could
    not recognise a duplicate of an older one.
*   The first batch of an epoch is sent alone. Brokers from 2.5 on accept any first number of a
    producer that they do not know: if the first batch fails with a retriable error, and the second
    one, with number 1, is accepted, the first never can be. Only in transactions of version 2 do
    brokers require 0. Pure.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from kafka.errors import IllegalStateError
from kafka.producer.produce_errors import ProduceReaction
from kafka.protocol.produce import PartitionProduceResponse
from kafka.structs import TopicPartition


class Batch(Protocol):
    """The interface of a numbered batch; implemented by ProducerBatch."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Its destination."""

    @property
    def record_count(self) -> int:
        """The number of its records, which is that of its sequence numbers."""

    def restamp(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        is_transactional: bool,
    ) -> None:
        """Set producer id, epoch and sequence number; also after it was encoded."""


SEQUENCES = 2**31
LAST_EPOCH = 2**15 - 1
#: How many batches of a producer brokers from 1.0 on remember in each partition; 0.11: one.
MOST_IN_FLIGHT = 5

INVALID_EPOCH = 47
UNKNOWN_PRODUCER = 59


def place_of(topic_partition: TopicPartition) -> str:
    """Return topic and partition, for messages."""
    return '%s-%d' % (str(topic_partition[0]), topic_partition[1])


def where(batch: Batch) -> str:
    """Return topic and partition of a batch, for messages."""
    return place_of(batch.topic_partition)


def advance(sequence: int, count: int) -> int:
    """Return the sequence number ``count`` records later; after 2 ** 31 - 1 comes 0."""
    return (sequence + count) % SEQUENCES


def is_after(sequence: int, other: int) -> bool:
    """Return True if a number is later than another one, in modular arithmetic."""
    return 0 < (sequence - other) % SEQUENCES < SEQUENCES // 2


class Identity(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int = -1
    epoch: int = -1


NOBODY = Identity()


class _Numbered:
    """A batch with a sequence number.

    is_on_wire: sent, and neither answered nor lost; is_retried: was sent before and has to be sent
    again; may_be_stored: the outcome of an earlier attempt is unknown; is_given_up: its futures
    have failed, and only the outcome at the broker is still awaited; moves_up: earlier numbers are
    missing at the broker, so that it is not stored and will be renumbered; place: its position
    among all batches of its partition.
    """

    __slots__ = (
        'base',
        'batch',
        'count',
        'is_given_up',
        'is_on_wire',
        'is_retried',
        'may_be_stored',
        'moves_up',
        'place',
    )

    def __init__(self, batch: Batch, base: int, place: int) -> None:
        self.batch = batch
        self.base = base
        self.place = place
        self.count = batch.record_count
        self.is_on_wire = True
        self.is_retried = False
        self.may_be_stored = False
        self.is_given_up = False
        self.moves_up = False

    @property
    def last(self) -> int:
        """The number of its last record."""
        return advance(self.base, self.count - 1)


class _Partition:
    """The sequence numbers of one partition.

    identity: producer id and epoch of the numbers; outstanding: batches without a final response,
    in the order of their numbers; unresolved: whether batches with an unknown outcome were given
    up; renumbers: whether numbers are missing at the broker, so that later batches are renumbered
    as soon as possible; raises: whether that needs a new epoch.

    Kept for each partition that was ever written to, because the broker remembers the last number,
    too.
    """

    __slots__ = (
        'batches',
        'identity',
        'last_acknowledged',
        'last_offset',
        'next_sequence',
        'outstanding',
        'raises',
        'renumbers',
        'unresolved',
    )

    def __init__(self, identity: Identity) -> None:
        self.outstanding: List[_Numbered] = []
        self.batches = 0  # the number of batches that were numbered
        self.restart(identity)

    def restart(self, identity: Identity) -> None:
        """Restart the numbers at 0 under an identity."""
        self.next_sequence = 0
        self.last_acknowledged = -1
        self.last_offset = -1
        self.unresolved = False
        self.renumbers = False
        self.raises = False
        self.identity = identity  # last: a restart that an exception has ended is made again

    @property
    def follows(self) -> int:
        """The number after the last acknowledged one."""
        return 0 if self.last_acknowledged < 0 else advance(self.last_acknowledged, 1)

    @property
    def is_on_wire(self) -> bool:
        """Whether any batch is in flight."""
        return any(each.is_on_wire for each in self.outstanding)

    @property
    def retries(self) -> bool:
        """Whether any outstanding batch is retried."""
        return any(each.is_retried for each in self.outstanding)

    def miss(self, place: int) -> None:
        """Note that the outstanding batches from a place on are not stored; renumber them later."""
        self.renumbers = True
        for each in self.outstanding[place:]:
            each.moves_up = True

    def renumber(self, start: int, is_transactional: bool) -> None:
        """Renumber all outstanding batches from ``start`` on, in the same order."""
        for each in self.outstanding:
            each.base = start
            each.moves_up = each.may_be_stored = False
            each.batch.restamp(*self.identity, start, is_transactional)
            start = advance(start, each.count)
        self.next_sequence = start


class Sequences:
    """The sequence numbers of one producer, in all partitions.

    Arguments: is_transactional: whether a new epoch comes only from the coordinator, at the end of
        a transaction.

    Attributes: identity: producer id and epoch of new batches, ``NOBODY`` before there is one;
    most_in_flight: the number of batches per partition that brokers remember; begins_at_zero:
    whether brokers require 0 as the first number of an epoch; needs_identity: whether a new
    producer id is required before all batches can be sent; needs_epoch: whether numbers are
    missing, so that the transaction has to end and a new epoch is required.
    """

    def __init__(self, is_transactional: bool) -> None:
        self.identity = NOBODY
        self.most_in_flight = MOST_IN_FLIGHT
        self.begins_at_zero = False
        self.needs_identity = True
        self.needs_epoch = False
        self._is_transactional = is_transactional
        self._partitions: Dict[TopicPartition, _Partition] = {}
        self._numbered: Dict[int, _Numbered] = {}  # by id() of the batch

    def __repr__(self) -> str:
        return '<Sequences of producer %d epoch %d, %d batches under way>' % (
            self.identity.producer_id,
            self.identity.epoch,
            len(self._numbered),
        )

    # ------------------------------------------------------------ producer id and epoch

    def begin(self, identity: Identity) -> None:
        """Switch to another identity; partitions with batches in flight follow later."""
        self.identity = identity
        self.needs_identity = self.needs_epoch = False
        for partition in list(self._partitions.values()):
            self._settle(partition)

    def restart(self, identity: Identity) -> None:
        """Forget all numbers and restart at 0 (a new epoch of a transactional id).

        Raises IllegalStateError while batches are outstanding.
        """
        if self._numbered:
            raise IllegalStateError(
                '%d batches of the last transaction are still under way' % len(self._numbered)
            )
        self._partitions.clear()
        self.begin(identity)

    def forget_identity(self) -> None:
        """Drop the identity; no batch may be sent before there is a new one."""
        self.identity = NOBODY
        self.needs_identity = True

    # ------------------------------------------------------------ before sending

    def is_numbered(self, batch: Batch) -> bool:
        """Return True if a batch has a number, so that it may have been sent."""
        return id(batch) in self._numbered

    def is_on_wire(self, batch: Batch) -> bool:
        """Return True if a batch was sent and is neither answered nor lost."""
        numbered = self._numbered.get(id(batch))
        return numbered is not None and numbered.is_on_wire

    @property
    def has_outstanding(self) -> bool:
        """Whether any numbered batch has no final response yet."""
        return bool(self._numbered)

    def any_partition(self) -> Optional[TopicPartition]:
        """Return a partition that was written to under the current identity, or None."""
        for topic_partition, partition in self._partitions.items():
            if partition.identity == self.identity and partition.last_acknowledged >= 0:
                return topic_partition
        return None

    def may_send(self, batch: Batch) -> bool:
        """Return True if a batch may be sent now, without a gap and without overtaking another."""
        partition = self._partitions.get(batch.topic_partition)
        if self.identity == NOBODY or self.needs_identity and partition is None:
            return False
        if partition is None:
            return True
        numbered = self._numbered.get(id(batch))
        if numbered is not None:
            is_next = numbered is partition.outstanding[0] and not numbered.moves_up
            return is_next and not numbered.is_on_wire
        if partition.renumbers or partition.unresolved:
            return False
        if not partition.outstanding:
            return not self.needs_identity
        is_known = partition.last_acknowledged >= 0 or self.begins_at_zero
        most = self.most_in_flight if is_known else 1
        return (
            not partition.retries
            and partition.batches - partition.outstanding[0].place < most
            and partition.identity == self.identity
        )

    def stamp(self, batch: Batch) -> None:
        """Number a batch that is sent now; one that has a number keeps it.

        Raises IllegalStateError if it may not be sent.
        """
        if not self.may_send(batch):
            raise IllegalStateError('a batch for %s may not go now' % where(batch))
        numbered = self._numbered.get(id(batch))
        if numbered is not None:
            numbered.is_on_wire = True
            return
        partition = self._partitions.get(batch.topic_partition)
        if partition is None:
            partition = self._partitions[batch.topic_partition] = _Partition(self.identity)
        elif partition.identity != self.identity:
            partition.restart(self.identity)
        numbered = _Numbered(batch, partition.next_sequence, partition.batches)
        partition.batches += 1
        partition.outstanding.append(numbered)
        partition.next_sequence = advance(numbered.base, numbered.count)
        self._numbered[id(batch)] = numbered
        batch.restamp(*partition.identity, numbered.base, self._is_transactional)

    def restore(self, batch: Batch) -> bool:
        """Complete the number of a batch if an exception ended its stamp() or on_stored().

        Returns: False if it has no number: stamp() had not begun, or on_stored() was done. Else it
        counts as sent, without a response. May be called again.
        """
        partition = self._partitions.get(batch.topic_partition)
        for numbered in partition.outstanding if partition is not None else ():
            if numbered.batch is batch:
                break
        else:
            self._numbered.pop(id(batch), None)
            return False
        assert partition is not None
        numbered.is_on_wire = True
        if numbered is partition.outstanding[-1]:
            partition.batches = numbered.place + 1
            partition.next_sequence = advance(numbered.base, numbered.count)
        self._numbered[id(batch)] = numbered
        batch.restamp(*partition.identity, numbered.base, self._is_transactional)
        return True

    # ------------------------------------------------------------ outcomes

    def was_given_up(self, batch: Batch) -> bool:
        """Return True if the futures of a batch have failed while it was in flight."""
        numbered = self._numbered.get(id(batch))
        return numbered is not None and numbered.is_given_up

    def on_stored(self, batch: Batch, base_offset: int) -> None:
        """Note that the broker has stored a batch."""
        partition, numbered = self._answered(batch)
        if partition.last_acknowledged < 0 or is_after(numbered.last, partition.last_acknowledged):
            partition.last_acknowledged = numbered.last
            if base_offset >= 0:
                partition.last_offset = base_offset + numbered.count - 1
        self._remove(partition, numbered)

    def may_be_stored(self, batch: Batch) -> bool:
        """Return True if an earlier attempt of a numbered batch may be stored."""
        return self._numbered[id(batch)].may_be_stored

    def is_missing(self, batch: Batch) -> bool:
        """Return True if it is certain that a numbered batch is not stored."""
        numbered = self._numbered[id(batch)]
        return numbered.moves_up and not numbered.is_on_wire

    def on_retry(self, batch: Batch, may_be_stored: bool) -> None:
        """Note that a batch has to be retried, or was given up while it was in flight.

        Arguments: may_be_stored: whether the broker may have stored it all the same.
        """
        partition, numbered = self._answered(batch)
        numbered.may_be_stored = numbered.may_be_stored or may_be_stored
        if numbered.is_given_up:
            self._remove(partition, numbered)
            return
        numbered.is_retried = True
        self._settle(partition)

    def on_refused(self, batch: Batch) -> None:
        """Note that the broker has finally rejected a batch, so that its numbers are missing.

        Later batches are renumbered: in a new epoch (KIP-360), or, in a transaction, in the same.
        """
        partition, numbered = self._answered(batch)
        partition.miss(partition.outstanding.index(numbered))
        partition.raises = partition.raises or not self._is_transactional
        self._remove(partition, numbered)

    def on_given_up(self, batch: Batch) -> None:
        """Note that the futures of a batch have failed, though it may be stored."""
        numbered = self._numbered.get(id(batch))
        if numbered is None or numbered.is_given_up:
            return  # never sent, or given up before
        partition = self._partitions[batch.topic_partition]
        numbered.is_given_up = True
        if numbered.is_on_wire or not numbered.moves_up:
            partition.unresolved = True
        if not numbered.is_on_wire:
            self._remove(partition, numbered)

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Assign the numbers of a batch that was rejected as too large to its pieces, in order.

        May be called again after an exception. Raises IllegalStateError if the pieces have another
        number of records than the batch.
        """
        known = self._numbered
        if pieces and id(batch) not in known and all(id(piece) in known for piece in pieces):
            return
        partition, numbered = self._answered(batch)
        numbered.is_on_wire = True  # so that a repeated call passes _answered()
        if sum(piece.record_count for piece in pieces) != numbered.count:
            raise IllegalStateError('the pieces of a batch are not all of it')
        place = partition.outstanding.index(numbered)
        base = numbered.base
        made = []
        for piece in pieces:
            new = _Numbered(piece, base, numbered.place)
            new.is_on_wire, new.is_retried = False, True
            piece.restamp(*partition.identity, base, self._is_transactional)
            base = advance(base, new.count)
            made.append(new)
            self._numbered[id(piece)] = new
        own = id(batch)
        partition.outstanding[place : place + 1] = made
        del self._numbered[own]
        self._settle(partition)

    # ------------------------------------------------------------ codes 45, 47 and 59

    def judge(self, batch: Batch, response: PartitionProduceResponse) -> ProduceReaction:
        """Return the reaction to error code 45, 47 or 59: RETRY, FAIL or ABORTABLE.

        Updates the state of the partition; the caller still has to report the batch by on_retry()
        or on_refused(). ABORTABLE, in a transaction, sets ``needs_epoch``.
        """
        numbered = self._numbered[id(batch)]
        partition = self._partitions[batch.topic_partition]
        if response.error_code == INVALID_EPOCH:
            return self._broken() if self._is_transactional else ProduceReaction.FAIL
        if numbered.moves_up or numbered is not partition.outstanding[0]:
            return ProduceReaction.RETRY  # an earlier batch is the cause
        if response.error_code == UNKNOWN_PRODUCER:
            return self._judge_forgotten(partition, response.log_start_offset)
        # All earlier batches are acknowledged, or were given up and have not arrived.
        return self._judge_gap(partition)

    def _judge_forgotten(self, partition: _Partition, log_start_offset: int) -> ProduceReaction:
        if log_start_offset < 0:
            return ProduceReaction.RETRY  # absent before the versions of KIP-360
        if self._is_transactional and partition.last_offset < log_start_offset:
            # All records of the producer have been deleted, and with them its state at the broker.
            partition.miss(0)
            partition.last_acknowledged = -1
            return ProduceReaction.RETRY
        return self._judge_gap(partition)

    def _judge_gap(self, partition: _Partition) -> ProduceReaction:
        if self._is_transactional:
            return self._broken()
        partition.miss(0)
        partition.raises = True
        return ProduceReaction.RETRY

    def _broken(self) -> ProduceReaction:
        self.needs_epoch = True
        return ProduceReaction.ABORTABLE

    # ------------------------------------------------------------ helpers

    def _answered(self, batch: Batch) -> Tuple[_Partition, _Numbered]:
        numbered = self._numbered.get(id(batch))
        if numbered is None or not numbered.is_on_wire:
            raise IllegalStateError(
                'an answer about a batch for %s that is not on the wire' % where(batch)
            )
        numbered.is_on_wire = False
        return self._partitions[batch.topic_partition], numbered

    def _remove(self, partition: _Partition, numbered: _Numbered) -> None:
        del self._numbered[id(numbered.batch)]
        partition.outstanding.remove(numbered)
        self._settle(partition)

    def _settle(self, partition: _Partition) -> None:
        """Renumber the batches of a partition if necessary, once none of them is in flight.

        Batches before the missing numbers may be stored, so their outcome must be known first.
        """
        if partition.is_on_wire:
            return
        if partition.unresolved and not partition.outstanding:
            if partition.follows == partition.next_sequence:
                partition.unresolved = False  # the last batch was stored
            elif self._is_transactional:
                self.needs_epoch = True
            else:
                partition.miss(0)
                partition.raises = True
        if (
            not partition.renumbers
            or partition.outstanding
            and not partition.outstanding[0].moves_up
        ):
            return
        if partition.raises:
            self._raise_epoch(partition)
        elif not partition.unresolved:
            partition.renumbers = False
            partition.renumber(partition.follows, self._is_transactional)

    def _raise_epoch(self, partition: _Partition) -> None:
        """Restart a partition in a new epoch, which another partition may have begun already."""
        if partition.identity == self.identity:
            if self.identity.epoch >= LAST_EPOCH:
                self.needs_identity = True
                return
            self.identity = self.identity._replace(epoch=self.identity.epoch + 1)
        identity = self.identity
        partition.restart(identity)
        partition.renumber(0, self._is_transactional)
