"""Authorized operations of clusters, topics and groups, as bits of a response (KIP-430).

Without an authorizer every client may perform all operations of a resource type. The bit of an
operation is its number in ACLs.
"""

from __future__ import annotations

from typing import Any, Iterable

from kafka.testing.calls import Call

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


_ON_CLUSTER = _bits(
    (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
)
_ON_TOPIC = _bits((READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
_ON_GROUP = _bits((READ, DELETE, DESCRIBE))
#: Groups have configs since KIP-848.
_ON_GROUP_WITH_SETTINGS = _ON_GROUP | _bits((DESCRIBE_CONFIGS, ALTER_CONFIGS))


def cluster_operations(call: Call[Any]) -> int:
    """Return the operations that the caller may perform on the cluster."""
    return _ON_CLUSTER


def topic_operations(call: Call[Any], name: str) -> int:
    """Return the operations that the caller may perform on a topic."""
    return _ON_TOPIC


def group_operations(call: Call[Any], group_id: str) -> int:
    """Return the operations that the caller may perform on a group."""
    return _ON_GROUP_WITH_SETTINGS if call.state.release.version >= (4, 0) else _ON_GROUP
