"""The partitioners of three eras behind one call.

Owns telling them apart and nothing of what they choose. Those of 0.9.5 are objects, or classes
that are made with the partitions, whose ``partition(key, partitions)`` is asked; those of 1.x and
2.x are called with ``(key, all_partitions, available)``; those of 3.0 have
``partition(topic, key, serialized_key, value, serialized_value, cluster)``.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from kafka.errors import KafkaConfigurationError
from kafka.internals.lazy_imports import import_late
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.sticky import StickyPartitioner


class Question(NamedTuple):
    """What a partitioner may want to know of a record; partitions are ascending ids."""

    topic: Any
    key: Any
    serialized_key: Optional[bytes]
    value: Any
    serialized_value: Optional[bytes]
    partitions: Sequence[int]
    available: Sequence[int]
    cluster: Any


class Adapted(NamedTuple):
    """A partitioner of any era. choose: asks it; on_new_batch: tells it, None: it does not care."""

    choose: Callable[[Question], Any]
    on_new_batch: Optional[Callable[[Any, Any, int], Any]] = None


def is_default(partitioner: Any) -> bool:
    """Tell whether a partitioner does what the producer does by itself, only slower."""
    return type(partitioner) in (DefaultPartitioner, StickyPartitioner) or partitioner in (
        DefaultPartitioner,
        StickyPartitioner,
        None,
    )


def adapt(partitioner: Any) -> Adapted:
    """Return a partitioner of any era behind one call.

    Raises: KafkaConfigurationError for what is none.
    """
    if partitioner is DefaultPartitioner or type(partitioner) is DefaultPartitioner:
        choose = DefaultPartitioner()  # it is known without inspect, see takes()
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
    """A partitioner of 0.9.5 for each topic, made of the class with its partitions."""

    def __init__(self, made_of: Callable[[Sequence[int]], Any]) -> None:
        self._made_of = made_of
        self._made: Dict[Any, Any] = {}

    def choose(self, asked: Question) -> Any:
        """Ask that of the topic."""
        partitions = list(asked.partitions)
        found = self._made.get(asked.topic)
        if found is None:
            found = self._made[asked.topic] = self._made_of(partitions)
        return found.partition(asked.serialized_key, partitions)


def takes(call: Callable[..., Any], count: int, unknown: bool = True) -> bool:
    """Tell whether something can be called with so many positional arguments.

    Arguments: unknown: what to say of a function in C that does not tell.
    """
    try:
        # Late: it takes over 1 MiB, and few programs have partitioners of their own.
        import_late('inspect').signature(call).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return unknown
    return True
