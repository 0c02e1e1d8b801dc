"""
Conversion between the message sets of 0.8 and the batches of 0.11, as brokers did it for clients.

It converts a message set of magic 0 or 1 to one batch of magic 2, and back, with the limit that a
fetch of version 0 has for a partition. Bytes are decoded and encoded by
:mod:`kafka.record.memory_records` and the modules of the formats; requests are translated in
:mod:`kafka.protocol.translation`.

Up-conversion adds a timestamp if a message has none. Down-conversion drops timestamp and headers;
control batches are left out. Both create new CRCs, so every old one is verified: corruption must
not become undetectable.
"""

from __future__ import annotations

from typing import List, Optional, Sequence

from kafka.errors import KafkaError, ProtocolError
from kafka.record.columns import Columns
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords, Run
from kafka.record.util import Buffer

# Size of an entry of magic 0 without key and value: offset, size, CRC, magic, attributes and the
# two lengths.
ENTRY_OVERHEAD = 26

LARGEST_OFFSET = 2**63 - 1

# The maximum memory for a set while it is converted, and the overhead of a message. Batches that
# expand to millions of tiny messages would take gigabytes; messages that are left out are fetched
# again.
MAX_SET_BYTES = 256 * 1024 * 1024
MESSAGE_OVERHEAD = 400


class MessageSet:
    """
    Records as a message set of magic 0, and the offsets that it covers.

    Attributes: end: the offset after the last message, or the wanted offset; next_offset: there are
    no messages between ``end`` and this offset; columns: the messages, which are encoded when
    ``data`` is read (without columns ``data`` is a part of one, or empty).
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

    __hash__ = None  # type: ignore[assignment]  # equal ones may be encoded or not

    @property
    def data(self) -> bytes:
        """The message set as bytes."""
        if self.columns and not self._data:
            self._data = b''.join(map(_written, self.columns))
        return self._data

    def __len__(self) -> int:
        """Return the size in bytes, without encoding."""
        if not self.columns:
            return len(self._data)
        return sum(ENTRY_OVERHEAD * len(part.values) + part.size() for part in self.columns)


def _written(part: Columns) -> bytes:
    messages = [(offset, None, key, value) for offset, key, value in part.fields()]
    return encode_message_set(messages, magic=0)


def up_convert(message_set: Optional[Buffer], now_ms: int) -> Optional[bytes]:
    """
    Return one batch of magic 2 with the messages of a set of magic 0 or 1; None if it has none.

    The batch has the codec of the first wrapper. ``now_ms`` is the timestamp of messages without
    one. Raises ``ChecksumError`` for a wrong CRC, ``ProtocolError`` for other invalid bytes and for
    magic 2, ``UnsupportedCodecError``.
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

    A message whose entry is larger than ``max_bytes`` ends the set; if it is the first, it is
    truncated to ``max_bytes``, as by 0.8 to 0.10.0, so that consumers enlarge their buffer. This
    does not apply to a compressed batch which itself is small enough: there, the batch was the
    message. The set as a whole may be larger than ``max_bytes``: brokers send whole batches, and
    messages that are left out would have to be sent, and read, again. It ends beyond
    :data:`MAX_SET_BYTES`. Records that are only the beginning of a batch are returned unchanged,
    up to ``max_bytes``.

    Raises ``ChecksumError``, ``ProtocolError`` or ``UnsupportedCodecError`` if the first relevant
    batch is invalid; a later invalid one ends the set. Also ``ProtocolError`` if all batches end
    before ``wanted``: a broker that sends them would be asked forever.
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
                    reached = wanted  # there may be more: only messages that were read count
                    break
            reached = batch.next_offset
        else:
            if batch is None and memory.partial and records is not None:
                fragment = bytes(records[:max_bytes])
            elif batch is not None and reached == wanted:
                raise ProtocolError(
                    'records up to offset %d, but %d was requested' % (batch.last_offset, wanted)
                )
    except KafkaError:
        if reached == wanted and not messages:
            raise
    end = messages[-1].offsets[-1] + 1 if messages else wanted
    return MessageSet(fragment, end, max(end, reached), messages)


def _read(batch: Run, wanted: int, messages: List[Columns], room: int) -> int:
    """
    Append the wanted messages, until ``room`` bytes are used; return the remaining number of bytes.

    When an error is raised, the messages before it have been appended.
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
    """Remove the messages from the first one beyond the limit on, and return that one, or None."""
    # The entry of a single message is never larger than its batch.
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
