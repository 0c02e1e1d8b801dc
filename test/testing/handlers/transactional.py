"""Batches of transactional producers, for tests."""

from __future__ import annotations

from kafka.record.default_records import encode_batch
from kafka.testing.logs.partition_log import Batch


def batch_of(producer_id: int, producer_epoch: int, base_sequence: int) -> Batch:
    """Return a batch of one transactional record."""
    data = encode_batch(
        [(0, None, b'value', ())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=True,
    )
    return Batch(
        base_offset=0,
        last_offset=0,
        max_timestamp=0,
        magic=2,
        data=data,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=True,
    )
