"""An embedded Kafka: brokers of any release from 0.8.0 on, in pure Python, inside the process.

``with Cluster(version='2.8') as cluster:`` starts one; any client reaches it at
``cluster.bootstrap``. Made for tests: nothing of this package's clients imports it.
"""

from __future__ import annotations

from kafka.testing.cluster import Cluster
from kafka.testing.control import LATER
from kafka.testing.memory import MemoryCluster

__all__ = ['LATER', 'Cluster', 'MemoryCluster']
