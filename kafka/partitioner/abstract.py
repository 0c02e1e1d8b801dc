"""The base class of 3.0 for custom partitioners; adapt.py accepts any object with its method."""

from __future__ import annotations

import abc
from typing import Any


class Partitioner(abc.ABC):
    """Choose the partition of a record (3.0).

    A subclass may also have ``on_new_batch(topic, cluster, prev_partition)``, which is called when
    a batch for records without key is full.
    """

    @abc.abstractmethod
    def partition(
        self,
        topic: Any,
        key: Any,
        serialized_key: Any,
        value: Any,
        serialized_value: Any,
        cluster: Any,
    ) -> int:
        """Return the partition id.

        Arguments: topic; key, value: as they were given to send(); serialized_key,
        serialized_value: bytes, or None; cluster: a ClusterMetadata.
        """
