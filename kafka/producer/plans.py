"""Configuration of an accumulator, and the answer to its sender which batches are ready."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from kafka.producer.topic_queue import PartitionQueue


class Limits(NamedTuple):
    """What a producer was told about batches.

    batch_size, buffer_memory: bytes; linger, delivery_timeout: seconds; ordered: one batch of a
    partition at a time on the wire; compressed: whether batches shrink; adaptive: KIP-794;
    record_size: bytes of key and value that every record may have.
    """

    batch_size: int = 16384
    linger: float = 0.0
    buffer_memory: int = 33554432
    delivery_timeout: float = 120.0
    ordered: bool = False
    compressed: bool = False
    adaptive: bool = True
    record_size: int = 1048576


class ReadyCheckResult(NamedTuple):
    """Which batches may be sent now.

    by_node: the queues that are ready, by the node that leads; next_at: when to look again although
    nothing happened, monotonic seconds, None: not before something does; leaderless: topics some
    partition of which has no known leader; is_late: a batch has had its delivery time-out: to be
    expired first, nothing else was looked at.
    """

    by_node: Dict[int, List[PartitionQueue]]
    next_at: Optional[float]
    leaderless: List[Any]
    is_late: bool = False
