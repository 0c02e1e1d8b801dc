"""Batches of all kinds for tests of what reads them, and a slow reader of them all.

Written with the encoders, whose own tests compare them with the oracle; the reader here goes batch
by batch through ``MemoryRecords`` and record by record through what the batches hand out.
"""

from __future__ import annotations

import struct

from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set


class AnyBytes(str):
    """A header's name that is encoded as these bytes, which nobody but a test would do."""

    def __new__(cls, raw):
        name = super().__new__(cls, 'x')
        name.raw = raw
        return name

    def encode(self, *_):
        return self.raw


def batch(offset, values=(b'a', b'b', b'c'), *, stamp=1600, key=None, headers=(), **settings):
    """Return a batch of magic 2 with these values."""
    settings.setdefault('partition_leader_epoch', 4)
    records = [(stamp + i, key, value, headers) for i, value in enumerate(values)]
    return encode_batch(records, base_offset=offset, **settings)


def of_transaction(offset, producer, values=(b'a', b'b', b'c'), **settings):
    """Return a batch of a transaction."""
    return batch(
        offset,
        values,
        transactional=True,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        **settings,
    )


def marker(offset, producer, kind):
    """Return a control batch; kind: 0 abort, 1 commit, more: none of a transaction."""
    return encode_batch(
        [(1600, struct.pack('>hh', 0, kind), struct.pack('>hi', 0, 7), ())],
        base_offset=offset,
        transactional=True,
        control=True,
        producer_id=producer,
        producer_epoch=0,
        partition_leader_epoch=4,
    )


def messages(offset, values=(b'a', b'b', b'c'), magic=1, codec=0, key=None, **settings):
    """Return messages of magic 0 or 1, in a wrapper if there is a codec."""
    rows = [(offset + i, 1600 + i, key, value) for i, value in enumerate(values)]
    return encode_message_set(rows, magic, codec, **settings)


def broken(data, at=-1):
    """Return bytes of which one is another."""
    changed = bytearray(data)
    changed[at] ^= 0x55
    return bytes(changed)
