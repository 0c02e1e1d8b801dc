"""The process in which :mod:`servers.embedded` keeps its brokers.

``python -m servers.embedded_process RELEASE BROKERS SESSION_TIMEOUT_MS`` says the ports, then
answers each line of its standard input, ``[wish, argument, ...]``, with ``[why not, answer]``; both
are JSON. It ends with its input. Needs the package, unlike the rest of this folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Dict, List, Tuple

from kafka.testing import Cluster

#: As servers/*/resources/common.properties has them for real brokers.
NUM_PARTITIONS = 2
OFFSETS_TOPIC_PARTITIONS = 5
#: Tests wait for it. Kafka's own is 10 s, before 2.8 a minute.
TRANSACTION_ABORT_INTERVAL_MS = 500
#: Of groups of the next generation, as servers.cluster has them.
GROUP_SESSION_MS = 8000
GROUP_HEARTBEAT_MS = 1000


class Wishes:
    """What can be wished for, by name; arguments and answers are what JSON has."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.kill = cluster.kill
        self.restart = cluster.restart
        self.pause = cluster.pause
        self.resume = cluster.resume

    def create_topic(
        self, name: str, partitions: int, replication: int, configs: Dict[str, str]
    ) -> None:
        """Create a topic."""
        self.cluster.create_topic(name, partitions, replication, configs)

    def zookeeper_offsets(
        self, group: str, topic: str, partitions: List[int]
    ) -> List[Tuple[int, int]]:
        """Return the offsets of a group that version 0 of OffsetCommit stored."""
        offsets = self.cluster.state.offsets
        found = [(each, offsets.fetch_from_zookeeper(group, topic, each)) for each in partitions]
        return [(partition, offset) for partition, offset in found if offset is not None]

    def store_in_zookeeper(self, group: str, topic: str, offsets: List[Tuple[int, int]]) -> None:
        """Store offsets as version 0 of OffsetCommit does."""
        for partition, offset in offsets:
            self.cluster.state.offsets.commit_to_zookeeper(group, topic, partition, offset)

    def failures(self) -> List[str]:
        """Return what handlers raised since the last time."""
        found = self.cluster.state.control.failures
        texts = ['%s: %s' % (type(error).__name__, error) for error in found]
        found.clear()
        return texts


def main(words: List[str]) -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is printed by mistake must not stand between the answers.
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    release, brokers, session_timeout_ms = words
    cluster = Cluster(
        int(brokers),
        release,
        num_partitions=NUM_PARTITIONS,
        offsets_topic_partitions=OFFSETS_TOPIC_PARTITIONS,
        broker_session_timeout_ms=int(session_timeout_ms),
        transaction_abort_interval_ms=TRANSACTION_ABORT_INTERVAL_MS,
        group_consumer_session_timeout_ms=GROUP_SESSION_MS,
        group_consumer_heartbeat_interval_ms=GROUP_HEARTBEAT_MS,
    )
    cluster.start()
    try:
        wishes = Wishes(cluster)
        _say(answers, None, [cluster.state.nodes[node].port for node in range(int(brokers))])
        for line in sys.stdin:
            wish, *arguments = json.loads(line)
            try:
                answer = getattr(wishes, wish)(*arguments)
            except Exception as error:  # the program that wished it is told
                _say(answers, '%s: %s' % (type(error).__name__, error), None)
            else:
                _say(answers, None, answer)
    finally:
        cluster.state.control.failures.clear()  # they were logged when they came
        cluster.stop()


def _say(answers: Any, refused: Any, answer: Any) -> None:
    answers.write(json.dumps([refused, answer]) + '\n')
    answers.flush()


if __name__ == '__main__':
    main(sys.argv[1:])
