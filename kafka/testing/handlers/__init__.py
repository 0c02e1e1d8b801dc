"""The APIs of an embedded broker: a module of handlers for each family of requests.

A module registers its functions with ``@handles(SomeRequest)``; load() imports all modules.
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late

MODULES = (
    'api_versions',
    'sasl',
    'metadata',
    'find_coordinator',
    'groups',
    'consumer_groups',
    'share_groups',
    'share_offsets',
    'share_fetch',
    'streams_groups',
    'offsets',
    'produce',
    'fetch',
    'list_offsets',
    'offset_for_leader_epoch',
    'delete_records',
    'create_topics',
    'delete_topics',
    'partitions',
    'configs',
    'alter_configs',
    'log_dirs',
    'elections',
    'reassignments',
    'cluster',
    'voters',
    'topic_partitions',
    'transactions',
    'transactional_offsets',
    'producers',
    'acls',
    'quotas',
    'users',
    'tokens',
    'telemetry',
)


def load() -> None:
    """Import all handlers, once."""
    for name in MODULES:
        import_late('kafka.testing.handlers.' + name)
