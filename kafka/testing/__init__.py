"""An embedded Kafka: brokers of any release from 0.8.0 on, in pure Python, inside the process.

``with Cluster(version='2.8') as cluster:`` starts one; any client can connect to it at
``cluster.bootstrap``. Made for tests: this package's clients do not import it. Modules are imported
on first use, because pytest loads the plugin in this package in all its runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.internals.lazy_imports import look_up

if TYPE_CHECKING:
    from kafka.testing.cluster import Cluster
    from kafka.testing.control import LATER
    from kafka.testing.logs.segments import StorageError
    from kafka.testing.memory import MemoryCluster
    from kafka.testing.security.tls import Tls

__all__ = ['LATER', 'Cluster', 'MemoryCluster', 'StorageError', 'Tls']

_HOMES = {
    'Cluster': 'kafka.testing.cluster',
    'LATER': 'kafka.testing.control',
    'MemoryCluster': 'kafka.testing.memory',
    'StorageError': 'kafka.testing.logs.segments',
    'Tls': 'kafka.testing.security.tls',
}


def __getattr__(name: str) -> Any:
    """Import the module of a name on first use (PEP 562)."""
    return look_up(globals(), name, _HOMES)
