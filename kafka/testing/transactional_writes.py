"""Whether a transactional batch may be written to a partition (KIP-890).

Owns the question to the transaction coordinator that leaders ask from 3.6 on, and the adding of
partitions that they do for Produce v12 and later. What a transaction is, and who may write in it,
is the coordinator's business.
"""

from __future__ import annotations

from typing import Any, Sequence

from kafka.protocol.produce import ProduceRequest
from kafka.testing.calls import Call
from kafka.testing.errors import (
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
)
from kafka.testing.partition_log import Batch
from kafka.testing.state import Partition

ADDS_PARTITIONS = 12


def transaction_error(
    call: Call[ProduceRequest], partition: Partition, batches: Sequence[Batch]
) -> int:
    """Return NONE, or why the batches have no place in a transaction of the partition."""
    state: Any = call.state
    transactions = getattr(state, 'transactions', None)
    for batch in batches:
        if not batch.is_transactional or transactions is None or state.release.version < (3, 6):
            continue
        if batch.producer_id in partition.log.open_transactions:
            continue  # it was asked when the first batch came
        if call.version >= ADDS_PARTITIONS:
            if batch.producer_id not in partition.producers and batch.base_sequence != 0:
                return OUT_OF_ORDER_SEQUENCE_NUMBER
    return NONE
