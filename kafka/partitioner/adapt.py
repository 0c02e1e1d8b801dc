"""An adapter for the partitioners of three eras.

Those of 0.9.5 are objects, or classes that are created with the partitions, with ``partition(key,
partitions)``; those of 1.x and 2.x are called with ``(key, all_partitions, available)``; those of
3.0 have ``partition(topic, key, serialized_key, value, serialized_value, cluster)``. Called by
KafkaProducer.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from kafka.errors import KafkaConfigurationError
from kafka.internals.lazy_imports import import_late
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.sticky import StickyPartitioner


class Question(NamedTuple):
    """The arguments for partitioners of all eras; partitions are ascending ids."""

    topic: Any
    key: Any
    serialized_key: Optional[bytes]
    value: Any
    serialized_value: Optional[bytes]
    partitions: Sequence[int]
    available: Sequence[int]
    cluster: Any


class Adapted(NamedTuple):
    """A partitioner of any era. choose: calls it; on_new_batch: None if it has no such method."""

    choose: Callable[[Question], Any]
    on_new_batch: Optional[Callable[[Any, Any, int], Any]] = None


def is_default(partitioner: Any) -> bool:
    """Return True if a partitioner equals the producer's default, which is then used instead."""
    return type(partitioner) in (DefaultPartitioner, StickyPartitioner) or partitioner in (
        DefaultPartitioner,
        StickyPartitioner,
        None,
    )


def adapt(partitioner: Any) -> Adapted:
    """Return an adapter for a partitioner of any era.

    Raises: KafkaConfigurationError for other objects.
    """
    if partitioner is DefaultPartitioner or type(partitioner) is DefaultPartitioner:
        choose = DefaultPartitioner()  # its signature is known, see takes()
        return Adapted(
            lambda asked: choose(asked.serialized_key, asked.partitions, asked.available)
        )
    if isinstance(partitioner, type):
        if takes(partitioner, 1) and not takes(partitioner, 0):
            return Adapted(_ByTopic(partitioner).choose)
        partitioner = partitioner()
    partition = getattr(partitioner, 'partition', None)
    if callable(partition) and takes(partition, 6):
        return Adapted(
            lambda asked: partition(*asked[:5], asked.cluster),
            getattr(partitioner, 'on_new_batch', None),
        )
    if callable(partition):
        return Adapted(lambda asked: partition(asked.serialized_key, list(asked.partitions)))
    if callable(partitioner):
        return Adapted(
            lambda asked: partitioner(
                asked.serialized_key, list(asked.partitions), list(asked.available)
            )
        )
    raise KafkaConfigurationError(
        'partitioner must be callable or have a method partition(), not be %r' % (partitioner,)
    )


class _ByTopic:
    """A class of 0.9.5 with an instance per topic, created with its partitions."""

    def __init__(self, made_of: Callable[[Sequence[int]], Any]) -> None:
        self._made_of = made_of
        self._made: Dict[Any, Any] = {}

    def choose(self, asked: Question) -> Any:
        """Call the partitioner of the topic."""
        partitions = list(asked.partitions)
        found = self._made.get(asked.topic)
        if found is None:
            found = self._made[asked.topic] = self._made_of(partitions)
        return found.partition(asked.serialized_key, partitions)


def takes(call: Callable[..., Any], count: int, unknown: bool = True) -> bool:
    """Return True if an object can be called with this number of positional arguments.

    Arguments: unknown: the result for a function in C without a signature.
    """
    try:
        # Late: it takes over 1 MiB, and few programs have custom partitioners.
        import_late('inspect').signature(call).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return unknown
    return True
