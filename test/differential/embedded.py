"""Embedded clusters for the script: in memory, on a clock of their own, as near as on one machine.

Owns how they are started, asked and stopped. What is asked and of which settings is elsewhere.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any, Callable, Dict, Tuple

from kafka.testing import Cluster
from kafka.testing.memory import MemoryCluster, Network
from test.differential.runner import Recording

#: One seed makes every run the same.
SEED = 0
NEAR_SECONDS = 0.0001
#: What servers/eras/common/common.properties says, as far as answers show it.
SETTINGS: Dict[str, Any] = {'num_partitions': 2, 'offsets_topic_partitions': 5, 'seed': SEED}


class _NearNetwork(Network):
    """A network as inside one machine, where real brokers run; it does cut streams into pieces."""

    def latency(self) -> float:
        """Return how long something is on its way."""
        return NEAR_SECONDS


class NearCluster(MemoryCluster):
    """A cluster in memory whose clients are near: waiting for silence takes no time."""

    def _make_server(self) -> Network:
        return _NearNetwork(self.timers, random.Random(SEED))


def asked(cluster: Cluster, ask: Callable[[Tuple[str, int]], Recording]) -> Recording:
    """Start an embedded cluster, ask, and stop it; return what was asked and what it raised.

    What a handler raised, if any did, is a step that no real broker has.
    """
    cluster.start()
    try:
        host, port = cluster.bootstrap.rsplit(':', 1)
        with cluster.patched() if isinstance(cluster, MemoryCluster) else nullcontext():
            recording = ask((host, int(port)))
    finally:
        try:
            cluster.stop()
        except Exception as error:  # any that a handler may have
            raised = '%s: %s' % (type(error).__name__, error)
        else:
            raised = ''
    if raised:
        recording['a handler/raised'] = {'outcome': raised}
    return recording
