"""
Move records between the message sets of 0.8 and the batches of 0.11, as brokers did for clients.

Owns the conversion of whole sets: what a message set of magic 0 or 1 becomes as one batch of magic
2, and the other way round, with the limit that a fetch of version 0 puts on a partition. Bytes are
read and written by :mod:`kafka.record.memory_records` and its neighbours; requests are translated
in :mod:`kafka.protocol.translation`.

Going up, a message gets a timestamp if it has none. Going down, it loses timestamp and headers;
control batches vanish. Either way it gets a new CRC, so every old one is checked: damage must not
pass for something sound.
"""

from __future__ import annotations

from typing import List, Optional, Sequence

from kafka.errors import KafkaError, ProtocolError
from kafka.record.columns import Columns
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords, Run
from kafka.record.util import Buffer

# Bytes of an entry of magic 0 besides key and value: offset, size, CRC, magic, attributes and the
# two lengths.
ENTRY_OVERHEAD = 26

LARGEST_OFFSET = 2**63 - 1

# How far one set may grow while it is converted, in bytes of memory, and what a message takes there
# besides key and value. Batches that expand to millions of tiny messages would take gigabytes; what
# is left out is fetched again.
MAX_SET_BYTES = 256 * 1024 * 1024
MESSAGE_OVERHEAD = 400


class MessageSet:
    """
    Records as a message set of magic 0, and how far they reach.

    Attributes: end: the offset after the last message, or the offset that was wanted; next_offset:
    no message lies between ``end`` and this offset; columns: the messages, which are written only
    when ``data`` is looked at (none: ``data`` holds a part of one, or nothing).
    """

    __slots__ = ('_data', 'columns', 'end', 'next_offset')

    def __init__(
        self, data: bytes, end: int, next_offset: int, columns: Sequence[Columns] = ()
    ) -> None:
        self._data = data
        self.columns = columns
        self.end = end
        self.next_offset = next_offset

    def __repr__(self) -> str:
        return '<MessageSet end=%d next_offset=%d>' % (self.end, self.next_offset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageSet):
            return NotImplemented
        mine = self.data, self.end, self.next_offset
        return mine == (other.data, other.end, other.next_offset)

    __hash__ = None  # type: ignore[assignment]  # equal ones may be written or not

    @property
    def data(self) -> bytes:
        """The message set as bytes."""
        if self.columns and not self._data:
            self._data = b''.join(map(_written, self.columns))
        return self._data

    def __len__(self) -> int:
        """Return the size in bytes; nothing is written for that."""
        if not self.columns:
            return len(self._data)
        return sum(ENTRY_OVERHEAD * len(part.values) + part.size() for part in self.columns)


def _written(part: Columns) -> bytes:
    messages = [(offset, None, key, value) for offset, key, value in part.fields()]
    return encode_message_set(messages, magic=0)


def up_convert(message_set: Optional[Buffer], now_ms: int) -> Optional[bytes]:
    """
    Return one batch of magic 2 with the messages of a set of magic 0 or 1; None if it has none.

    The batch has the codec of the first wrapper. ``now_ms`` is the timestamp of messages that have
    none. Raises ``ChecksumError`` for a wrong CRC, ``ProtocolError`` for other damage and for magic
    2, ``UnsupportedCodecError``.
    """
    memory = MemoryRecords(message_set, check_inner_crcs=True)
    if memory.partial:
        raise ProtocolError('the message set ends inside a message')
    records = []
    codec = 0
    for batch in memory:
        if batch.magic > 1:
            raise ProtocolError('a batch of magic %d in a message set' % batch.magic)
        codec = codec or batch.codec
        records += [
            (now_ms if timestamp is None or timestamp < 0 else timestamp, key, value, ())
            for _, timestamp, key, value, _ in batch
        ]
    return encode_batch(records, codec=codec) if records else None


def down_convert(records: Optional[Buffer], wanted: int, max_bytes: int) -> MessageSet:
    """
    Return the records from offset ``wanted`` on as a message set of magic 0, without wrappers.

    A message whose entry is larger than ``max_bytes`` ends the set; if it is the first, it comes
    cut off after ``max_bytes``, as 0.8 to 0.10.0 sent it, and consumers enlarge their buffer. That
    does not concern a compressed batch which itself is small enough: there, the batch was the
    message. The set as a whole may be larger than ``max_bytes``: brokers send whole batches, and
    whatever was left out would have to be sent, and read, again. It ends beyond
    :data:`MAX_SET_BYTES`. Records that are nothing but the beginning of a batch come as they are,
    up to ``max_bytes``.

    Raises ``ChecksumError``, ``ProtocolError`` or ``UnsupportedCodecError`` if the first batch
    that counts cannot be read; one further behind ends the set. ``ProtocolError`` too if all
    batches end before ``wanted``: a broker that sends them would be asked for ever.
    """
    messages: List[Columns] = []
    reached = wanted
    fragment = b''
    room = MAX_SET_BYTES
    batch: Optional[Run] = None
    memory = MemoryRecords(records, check_inner_crcs=True)
    try:
        for batch in memory.runs():
            if batch.next_offset <= wanted:
                continue
            if not batch.is_control:
                before = len(messages)
                room = _read(batch, wanted, messages, room)
                large = _first_too_large(batch, messages, before, max_bytes)
                if large is not None:
                    reached = large.offsets[0]
                    if not messages:
                        fragment = _written(large)[:max_bytes]
                    break
                if room <= 0:
                    reached = wanted  # there may be more: only what was read counts
                    break
            reached = batch.next_offset
        else:
            if batch is None and memory.partial and records is not None:
                fragment = bytes(records[:max_bytes])
            elif batch is not None and reached == wanted:
                raise ProtocolError(
                    'records up to offset %d where %d was asked for' % (batch.last_offset, wanted)
                )
    except KafkaError:
        if reached == wanted and not messages:
            raise
    end = messages[-1].offsets[-1] + 1 if messages else wanted
    return MessageSet(fragment, end, max(end, reached), messages)


def _read(batch: Run, wanted: int, messages: List[Columns], room: int) -> int:
    """
    Append what is wanted, until ``room`` bytes are used up; return how many are left.

    When an error is raised, the messages before it are there.
    """
    for part in batch.columns():
        part = part.since(wanted)
        if not part.values:
            continue
        if part.last_offset() > LARGEST_OFFSET:
            raise ProtocolError('offset %d is out of range' % part.last_offset())
        taken = len(part.values) * MESSAGE_OVERHEAD + part.size()
        if taken >= room:
            for end, size in enumerate(part.sizes(), 1):
                room -= MESSAGE_OVERHEAD + size
                if room <= 0:
                    messages.append(part.part(0, end))
                    return room
        messages.append(part)
        room -= taken
    return room


def _first_too_large(
    batch: Run, messages: List[Columns], start: int, max_bytes: int
) -> Optional[Columns]:
    """Cut off the messages from the first beyond the limit on, and return that one, or None."""
    # The entry of a single message is never larger than the batch it comes in.
    if batch.size_in_bytes <= max_bytes:
        return None
    most = max_bytes - ENTRY_OVERHEAD
    for number in range(start, len(messages)):
        part = messages[number]
        if part.no_more_than(most):
            continue
        large = next((i for i, size in enumerate(part.sizes()) if size > most), None)
        if large is None:
            continue
        del messages[number:]
        if large:
            messages.append(part.part(0, large))
        return part.part(large, large + 1)
    return None
