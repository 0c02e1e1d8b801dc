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

from itertools import islice
from operator import itemgetter
from typing import List, NamedTuple, Optional

from kafka.errors import KafkaError, ProtocolError
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords, RecordBatch
from kafka.record.record import Record
from kafka.record.util import Buffer

# Bytes of an entry of magic 0 besides key and value: offset, size, CRC, magic, attributes and the
# two lengths.
ENTRY_OVERHEAD = 26

# How far one set may grow while it is converted, in bytes of memory, and what a message takes there
# besides key and value. Batches that expand to millions of tiny messages would take gigabytes; what
# is left out is fetched again.
MAX_SET_BYTES = 256 * 1024 * 1024
MESSAGE_OVERHEAD = 400
# How many messages are counted at a time: a call for each is dear beside reading them.
_AT_ONCE = 500


class MessageSet(NamedTuple):
    """Records as a message set of magic 0, and how far they reach."""

    data: bytes
    end: int  # the offset after the last message in `data`, or the offset that was wanted
    next_offset: int  # no message lies between `end` and this offset


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
    messages: List[Record] = []
    reached = wanted
    fragment = b''
    room = MAX_SET_BYTES
    batch: Optional[RecordBatch] = None
    memory = MemoryRecords(records, check_inner_crcs=True)
    try:
        for batch in memory:
            if batch.next_offset <= wanted:
                continue
            if not batch.is_control:
                before = len(messages)
                room = _read(batch, wanted, messages, room)
                large = _too_large(batch, messages, before, max_bytes)
                if large is not None:
                    reached = messages[large][0]
                    if large == 0:
                        fragment = encode_message_set(messages[:1], magic=0)[:max_bytes]
                    del messages[large:]
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
    end = messages[-1][0] + 1 if messages else wanted
    data = encode_message_set(messages, magic=0) if messages else fragment
    return MessageSet(data, end, max(end, reached))


def _read(batch: RecordBatch, wanted: int, messages: List[Record], room: int) -> int:
    """
    Append what is wanted, until ``room`` bytes are used up; return how many are left.

    When an error is raised, the messages before it are there.
    """
    records = iter(batch)
    while room > 0:
        start = len(messages)
        try:
            messages.extend(islice(records, _AT_ONCE))
        finally:
            new = messages[start:]
            if new and new[0][0] < wanted:
                messages[start:] = [record for record in new if record[0] >= wanted]
        if not new:
            break
        new = messages[start:]
        taken = len(new) * MESSAGE_OVERHEAD
        for fields in (map(itemgetter(2), new), map(itemgetter(3), new)):
            taken += sum(map(len, filter(None, fields)))
        if taken >= room:
            for end, record in enumerate(new, start + 1):
                room -= MESSAGE_OVERHEAD + len(record[2] or b'') + len(record[3] or b'')
                if room <= 0:
                    del messages[end:]
                    return room
        room -= taken
    return room


def _too_large(
    batch: RecordBatch, messages: List[Record], start: int, max_bytes: int
) -> Optional[int]:
    """Return the index of the first message, from ``start`` on, beyond the limit, or None."""
    # The entry of a single message is never larger than the batch it comes in.
    if batch.size_in_bytes > max_bytes:
        for index in range(start, len(messages)):
            _, _, key, value, _ = messages[index]
            if ENTRY_OVERHEAD + len(key or b'') + len(value or b'') > max_bytes:
                return index
    return None
