"""Sequence numbers of an idempotent producer: which batch may go next, and what an answer means.

Keeps, for each partition, the batches that have a number and no final answer yet, and the last
number that was acknowledged; renumbers them under a new epoch (KIP-98, KIP-360) by ``restamp()``.
Used by :mod:`kafka.producer.transaction_state`, which decides what an error does to a transaction.
The error codes that are judged here are the rows with ``SEQUENCE`` of
:mod:`kafka.producer.produce_errors`. Pure.

Five rules keep each record stored once and in order:

*   A batch keeps its number as long as it may be anywhere but here. Only when nothing of its
    partition is on the wire are the batches of that partition renumbered.
*   While a batch of a partition is tried again nothing new is sent there, and of the others only
    the one with the lowest number.
*   After a batch was given up whose fate is unknown, nothing new is sent in its partition until all
    that are numbered are answered. Then either the broker had it, or a new epoch begins.
*   No more batches than the broker remembers go beyond the first that has no answer: of a later one
    it could not tell any more that it has it.
*   The first batch of an epoch goes alone. Brokers from 2.5 on let a producer that they do not know
    begin at any number: the first batch is refused for a moment, the second, with number 1, is
    taken, and the first never can be. Only in transactions of version 2 they insist on 0.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from kafka.errors import IllegalStateError
from kafka.producer.produce_errors import ProduceReaction
from kafka.protocol.produce import PartitionProduceResponse
from kafka.structs import TopicPartition


class Batch(Protocol):
    """What is numbered; kafka.producer.producer_batch has the real one."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it goes."""

    @property
    def record_count(self) -> int:
        """How many numbers it takes."""

    def restamp(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        is_transactional: bool,
    ) -> None:
        """Carry these numbers from now on."""


SEQUENCES = 2**31
LAST_EPOCH = 2**15 - 1
#: So many batches of a partition brokers remember from 1.0 on; 0.11 remembers one.
MOST_IN_FLIGHT = 5

INVALID_EPOCH = 47
UNKNOWN_PRODUCER = 59


def place_of(topic_partition: TopicPartition) -> str:
    """Return topic and partition for texts."""
    return '%s-%d' % (str(topic_partition[0]), topic_partition[1])


def where(batch: Batch) -> str:
    """Return the place of a batch for texts."""
    return place_of(batch.topic_partition)


def advance(sequence: int, count: int) -> int:
    """Return the number that many records later; after 2 ** 31 - 1 comes 0."""
    return (sequence + count) % SEQUENCES


def is_after(sequence: int, other: int) -> bool:
    """Tell whether a number is later than another of about the same time."""
    return 0 < (sequence - other) % SEQUENCES < SEQUENCES // 2


class Identity(NamedTuple):
    """A producer id and the epoch of it."""

    producer_id: int = -1
    epoch: int = -1


NOBODY = Identity()


class _Numbered:
    """A batch with a number.

    is_on_wire: sent, and neither answered nor lost; is_retried: was sent before and has to go
    again; may_be_stored: the outcome of an earlier try is unknown; is_given_up: its futures have
    failed, and only its fate is still of interest; moves_up: numbers before its own are missing at
    the broker, so that it is not stored and will get others; place: among the batches of its
    partition, counted.
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
    """The numbers of one partition.

    identity: under which they count; outstanding: in the order of their numbers; unresolved:
    whether batches were given up whose fate is not known yet; renumbers: whether numbers are
    missing at the broker, so that the batches after them get others as soon as that is possible;
    raises: whether in a new epoch.

    There is one for each partition that was ever sent to: the broker knows what came last as long.
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
        self.batches = 0  # so many were numbered
        self.restart(identity)

    def restart(self, identity: Identity) -> None:
        """Begin at 0 under an identity."""
        self.identity = identity
        self.next_sequence = 0
        self.last_acknowledged = -1
        self.last_offset = -1
        self.unresolved = False
        self.renumbers = False
        self.raises = False

    @property
    def follows(self) -> int:
        """The number after the last acknowledged one."""
        return 0 if self.last_acknowledged < 0 else advance(self.last_acknowledged, 1)

    @property
    def is_on_wire(self) -> bool:
        """Whether anything is."""
        return any(each.is_on_wire for each in self.outstanding)

    @property
    def retries(self) -> bool:
        """Whether anything has to go again, or has gone again."""
        return any(each.is_retried for each in self.outstanding)

    def miss(self, place: int) -> None:
        """Note that all outstanding batches from a place on are not stored and have to move up."""
        self.renumbers = True
        for each in self.outstanding[place:]:
            each.moves_up = True

    def renumber(self, start: int, is_transactional: bool) -> None:
        """Give all outstanding batches numbers from a start on, in the same order."""
        for each in self.outstanding:
            each.base = start
            each.moves_up = each.may_be_stored = False
            each.batch.restamp(*self.identity, start, is_transactional)
            start = advance(start, each.count)
        self.next_sequence = start


class Sequences:
    """The numbers of one producer, in all partitions.

    Arguments: is_transactional: whether a new epoch comes from the coordinator, at the end of a
        transaction, and never from here.

    Attributes: identity: under which new batches go, NOBODY until there is one; most_in_flight: so
    many batches per partition brokers remember; begins_at_zero: whether brokers insist that an
    epoch begins at 0; needs_identity: whether a new producer id has to be asked for before
    everything can go on; needs_epoch: whether numbers are missing that only the end of the
    transaction and a new epoch make good.
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

    # ------------------------------------------------------------ the identity of the producer

    def begin(self, identity: Identity) -> None:
        """Go on under another identity: partitions with nothing under way at once, others later."""
        self.identity = identity
        self.needs_identity = self.needs_epoch = False
        for partition in list(self._partitions.values()):
            self._settle(partition)

    def restart(self, identity: Identity) -> None:
        """Forget all numbers and begin at 0 everywhere (a new epoch of a transactional id).

        Raises IllegalStateError while batches are under way.
        """
        if self._numbered:
            raise IllegalStateError(
                '%d batches of the last transaction are still under way' % len(self._numbered)
            )
        self._partitions.clear()
        self.begin(identity)

    def forget_identity(self) -> None:
        """Drop the identity; no batch goes until there is a new one."""
        self.identity = NOBODY
        self.needs_identity = True

    # ------------------------------------------------------------ before sending

    def is_numbered(self, batch: Batch) -> bool:
        """Tell whether a batch has a number, so that it may have left at least once."""
        return id(batch) in self._numbered

    def is_on_wire(self, batch: Batch) -> bool:
        """Tell whether a batch was sent and is neither answered nor lost."""
        numbered = self._numbered.get(id(batch))
        return numbered is not None and numbered.is_on_wire

    @property
    def has_outstanding(self) -> bool:
        """Whether any numbered batch still lacks its final answer."""
        return bool(self._numbered)

    def any_partition(self) -> Optional[TopicPartition]:
        """Return one that was written to under the present identity, None if there is none."""
        for topic_partition, partition in self._partitions.items():
            if partition.identity == self.identity and partition.last_acknowledged >= 0:
                return topic_partition
        return None

    def may_send(self, batch: Batch) -> bool:
        """Tell whether a batch may go now, without a gap and without overtaking another."""
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
        """Number a batch that goes on the wire now; one that has a number keeps it.

        Raises IllegalStateError if it may not go.
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

    # ------------------------------------------------------------ what became of a batch

    def was_given_up(self, batch: Batch) -> bool:
        """Tell whether the futures of a batch have failed while it was on the wire."""
        numbered = self._numbered.get(id(batch))
        return numbered is not None and numbered.is_given_up

    def on_stored(self, batch: Batch, base_offset: int) -> None:
        """Note that the broker has a batch."""
        partition, numbered = self._answered(batch)
        if partition.last_acknowledged < 0 or is_after(numbered.last, partition.last_acknowledged):
            partition.last_acknowledged = numbered.last
            if base_offset >= 0:
                partition.last_offset = base_offset + numbered.count - 1
        self._remove(partition, numbered)

    def may_be_stored(self, batch: Batch) -> bool:
        """Tell whether an earlier try of a numbered batch may have arrived."""
        return self._numbered[id(batch)].may_be_stored

    def is_missing(self, batch: Batch) -> bool:
        """Tell whether it is certain that the broker has no try of a numbered batch."""
        numbered = self._numbered[id(batch)]
        return numbered.moves_up and not numbered.is_on_wire

    def on_retry(self, batch: Batch, may_be_stored: bool) -> None:
        """Note that a batch has to go again, or was given up meanwhile and is off the wire now.

        Arguments: may_be_stored: whether the broker may have it in spite of that.
        """
        partition, numbered = self._answered(batch)
        numbered.may_be_stored = numbered.may_be_stored or may_be_stored
        if numbered.is_given_up:
            self._remove(partition, numbered)
            return
        numbered.is_retried = True
        self._settle(partition)

    def on_refused(self, batch: Batch) -> None:
        """Note that the broker has refused a batch for good: its numbers are missing.

        Others after it move up: in a new epoch (KIP-360), or, in a transaction, in the same one.
        """
        partition, numbered = self._answered(batch)
        partition.miss(partition.outstanding.index(numbered))
        partition.raises = partition.raises or not self._is_transactional
        self._remove(partition, numbered)

    def on_given_up(self, batch: Batch) -> None:
        """Note that the futures of a batch have failed, though it may be stored."""
        numbered = self._numbered.get(id(batch))
        if numbered is None or numbered.is_given_up:
            return  # it has never left
        partition = self._partitions[batch.topic_partition]
        numbered.is_given_up = True
        if numbered.is_on_wire or not numbered.moves_up:
            partition.unresolved = True
        if not numbered.is_on_wire:
            self._remove(partition, numbered)

    def on_split(self, batch: Batch, pieces: Sequence[Batch]) -> None:
        """Let the pieces of a batch that was refused as too large take over its numbers, in order.

        May be called again after an exception. Raises IllegalStateError if they are not as many
        records as it was.
        """
        known = self._numbered
        if pieces and id(batch) not in known and all(id(piece) in known for piece in pieces):
            return
        partition, numbered = self._answered(batch)
        numbered.is_on_wire = True  # as far as another call is concerned, until this one is done
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
        """Return what a code about sequences means now: RETRY, FAIL or ABORTABLE (E 2.3).

        Changes how the partition goes on; the batch itself is still to be reported by on_retry() or
        on_refused(). In a transaction ABORTABLE comes with ``needs_epoch``.
        """
        numbered = self._numbered[id(batch)]
        partition = self._partitions[batch.topic_partition]
        if response.error_code == INVALID_EPOCH:
            return self._broken() if self._is_transactional else ProduceReaction.FAIL
        if numbered.moves_up or numbered is not partition.outstanding[0]:
            return ProduceReaction.RETRY  # because of another one
        if response.error_code == UNKNOWN_PRODUCER:
            return self._judge_forgotten(partition, response.log_start_offset)
        # All before it are acknowledged, or were given up and have not arrived.
        return self._judge_gap(partition)

    def _judge_forgotten(self, partition: _Partition, log_start_offset: int) -> ProduceReaction:
        if log_start_offset < 0:
            return ProduceReaction.RETRY  # this version cannot say; KIP-360 came with later ones
        if self._is_transactional and partition.last_offset < log_start_offset:
            # All that the producer wrote has been deleted, and with it the memory of its numbers.
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

    # ------------------------------------------------------------ inside

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
        """Do what has to wait until nothing of a partition is on the wire.

        What is before missing numbers may be stored, so that it has to be known to be first.
        """
        if partition.is_on_wire:
            return
        if partition.unresolved and not partition.outstanding:
            if partition.follows == partition.next_sequence:
                partition.unresolved = False  # it had arrived
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
        """Restart a partition under a later identity, which another partition may have made."""
        if partition.identity == self.identity:
            if self.identity.epoch >= LAST_EPOCH:
                self.needs_identity = True
                return
            self.identity = self.identity._replace(epoch=self.identity.epoch + 1)
        identity = self.identity
        partition.restart(identity)
        partition.renumber(0, self._is_transactional)
