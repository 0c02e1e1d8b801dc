"""Verification of transactional batches before they are appended (KIP-890).

Called by handlers/produce.py. As in brokers, the leader asks the transaction coordinator
(:mod:`kafka.testing.transactions.coordinator`) before a producer's first batch in a partition.
"""

from __future__ import annotations

from typing import Sequence

from kafka.protocol.produce import ProduceRequest
from kafka.testing.calls import Call
from kafka.testing.errors import NONE, OUT_OF_ORDER_SEQUENCE_NUMBER
from kafka.testing.logs.partition_log import Batch
from kafka.testing.state import Partition
from kafka.testing.transactions.coordinator import transactions_of

#: From this version of Produce on, a write adds the partition to the transaction.
_ADDS_PARTITIONS = 12


def transaction_error(
    call: Call[ProduceRequest], partition: Partition, batches: Sequence[Batch]
) -> int:
    """Return NONE, or why the batches may not be appended in a transaction."""
    for batch in batches:
        producer_id = batch.producer_id
        if not batch.is_transactional or producer_id in partition.log.open_transactions:
            continue
        error = transactions_of(call.broker).check_write(
            call.request.transactional_id,
            producer_id,
            batch.producer_epoch,
            partition.topic,
            partition.index,
            call.version,
        )
        if error != NONE:
            return error
        adds = call.version >= _ADDS_PARTITIONS
        if adds and producer_id not in partition.producers and batch.base_sequence != 0:
            return OUT_OF_ORDER_SEQUENCE_NUMBER
    return NONE
