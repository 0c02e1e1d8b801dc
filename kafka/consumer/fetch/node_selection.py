"""Node selection: the broker that each assigned partition is fetched from.

That is the leader, the preferred read replica (KIP-392), or none while the partition is not
fetchable, has no leader or backs off after an error. The fetch manager calls it in turns of the
loop, under the consumer's lock where it reads the subscription. Follows KIP-320, and KIP-516 for
topics that were deleted and created again.

Only partitions that have changed are reviewed; all of them after new metadata.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from kafka.cluster import NO_ID, PartitionState
from kafka.consumer.fetch.session import FetchSession, WantedPartition
from kafka.consumer.partition_state import TopicPartitionState
from kafka.consumer.subscription_state import SubscriptionState
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['NodeSelection']


class _Trouble(NamedTuple):
    """The back-off of a partition until a time, unless its token changes before."""

    token: int
    failures: int
    until: float


class NodeSelection:
    """Assigns partitions to the fetch sessions of nodes.

    Arguments: subscription; cluster; max_partition_bytes: the usual limit of a partition;
    uses_sessions: as FetchSession.

    Attributes: sessions: the FetchSession of each node.
    """

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: ClusterMetadata,
        max_partition_bytes: int,
        uses_sessions: bool = True,
    ) -> None:
        self.sessions: Dict[int, FetchSession] = {}
        self._leaderless: Set[str] = set()
        self._expected: Set[int] = set()
        self._subscription = subscription
        self._cluster = cluster
        self._max_partition_bytes = max_partition_bytes
        self._uses_sessions = uses_sessions
        self._at: Dict[TopicPartition, int] = {}
        self._troubles: Dict[TopicPartition, _Trouble] = {}
        self._grown: Dict[TopicPartition, int] = {}
        self._topic_ids: Dict[str, bytes] = {}
        # A heap of (time, partition): when to review a partition again. Entries may be outdated.
        self._alarms: List[Tuple[float, TopicPartition]] = []

    def __repr__(self) -> str:
        return '<NodeSelection %d partitions at %d nodes>' % (len(self._at), len(self.sessions))

    @property
    def next_alarm(self) -> Optional[float]:
        """The time of the next review of a partition, or None."""
        return self._alarms[0][0] if self._alarms else None

    def is_due(self, now: float) -> bool:
        """Return True if a review is due although no partition has changed."""
        if self._leaderless or self._expected:
            return True
        return bool(self._alarms) and self._alarms[0][0] <= now

    # ------------------------------------------------------------ reviewing partitions

    def review(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Review partitions that have changed, and those whose back-off is over."""
        due: Dict[TopicPartition, None] = dict.fromkeys(partitions)
        while self._alarms and self._alarms[0][0] <= now:
            due[heapq.heappop(self._alarms)[1]] = None
        for partition in due:
            self._place(partition, now)

    def review_all(self, now: float) -> None:
        """Review all partitions, because leaders may have changed."""
        assignment = self._subscription.assignment
        recreated = self._take_topic_ids()
        for partition, state in list(assignment.items()):
            if partition.topic in recreated and state.has_valid_position:
                # The position in the old log is meaningless in the new one.
                self._subscription.need_offset_reset(partition)
            self._place(partition, now)

    def take_leaderless(self) -> Set[str]:
        """Return topics with partitions without a leader, seen since the last call."""
        found, self._leaderless = self._leaderless, set()
        return found

    def take_expected(self) -> Set[int]:
        """Return nodes to fetch from once a position is found, seen since the last call."""
        found, self._expected = self._expected, set()
        return found

    def _take_topic_ids(self) -> Set[Any]:
        """Note the ids of topics; return those whose id has changed: their logs are new."""
        found: Dict[str, bytes] = {}
        for topic in {str(partition.topic) for partition in self._subscription.assignment}:
            topic_id = self._cluster.topic_id(topic)
            found[topic] = self._topic_ids.get(topic, NO_ID) if topic_id == NO_ID else topic_id
        before, self._topic_ids = self._topic_ids, found
        return {
            topic
            for topic, topic_id in found.items()
            if before.get(topic, NO_ID) not in (NO_ID, topic_id)
        }

    def _place(self, partition: TopicPartition, now: float) -> None:
        """Move a partition to the session of the node to fetch it from, or out of all sessions."""
        state = self._subscription.assignment.get(partition)
        if state is None:
            self._troubles.pop(partition, None)
            self._grown.pop(partition, None)
        known = self._cluster.partition(partition.topic, partition.partition)
        node = None if state is None else self._node_for(partition, state, known, now)
        before = self._at.get(partition)
        if before is not None and before != node:
            self.sessions[before].drop(partition)
            del self._at[partition]
        if node is not None and state is not None:
            self._at[partition] = node
            self._add_to_session(node, partition, state, known)

    def _node_for(
        self,
        partition: TopicPartition,
        state: TopicPartitionState,
        known: Optional[PartitionState],
        now: float,
    ) -> Optional[int]:
        if known is not None and known.leader >= 0:
            before = state.current_leader
            state.leader_changed(known.leader, known.leader_epoch)
            if state.current_leader != before:
                self._forgive(partition)
        if state.is_stuck or not state.is_fetchable():
            if (
                known is not None
                and known.leader >= 0
                and not (state.paused or state.is_unsubscribed)
            ):
                self._expected.add(known.leader)
            return None
        if self._is_left_alone(partition, state, now):
            return None
        if known is None or known.leader < 0:
            self._leaderless.add(str(partition.topic))
            return None
        preferred = state.preferred_replica
        if preferred is None:
            return known.leader
        is_there = self._cluster.broker_metadata(preferred) is not None
        if now >= state.preferred_until or preferred in known.offline_replicas or not is_there:
            state.prefer(None)
            return known.leader
        return preferred

    def _forgive(self, partition: TopicPartition) -> None:
        """End the back-off because of a new leader, unless the records are unreadable."""
        trouble = self._troubles.get(partition)
        if trouble is not None and trouble.until < math.inf:
            del self._troubles[partition]

    def _is_left_alone(
        self, partition: TopicPartition, state: TopicPartitionState, now: float
    ) -> bool:
        trouble = self._troubles.get(partition)
        return trouble is not None and trouble.token == state.token and now < trouble.until

    def _add_to_session(
        self,
        node: int,
        partition: TopicPartition,
        state: TopicPartitionState,
        known: Optional[PartitionState],
    ) -> None:
        session = self.sessions.get(node)
        if session is None:
            session = self.sessions[node] = FetchSession(self._uses_sessions)
        assert state.fetch_offset is not None
        session.want(
            partition,
            WantedPartition(
                state.fetch_offset,
                self._grown.get(partition, self._max_partition_bytes),
                -1 if known is None else known.leader_epoch,
                self._cluster.topic_id(str(partition.topic)),
                state.token,
            ),
        )

    # ------------------------------------------------------------ by responses

    def advance(self, node: int, partition: TopicPartition, state: TopicPartitionState) -> None:
        """Continue after the records that a node sent; other partitions are served first."""
        self._troubles.pop(partition, None)
        if self._at.get(partition) != node:
            return  # moved to another node meanwhile, and reviewed later
        session = self.sessions[node]
        session.served(partition)
        before = session.latest(partition)
        if before is not None and state.fetch_offset is not None:
            session.want(partition, before._replace(offset=state.fetch_offset, token=state.token))

    def leave_alone(self, partition: TopicPartition, token: int, now: float, seconds: Any) -> None:
        """Back off from a partition.

        Arguments: seconds: returns the back-off after a number of failures in a row.
        """
        before = self._troubles.get(partition)
        # Responses without records do not reset the failures, so ignore those of long ago.
        is_new = before is None or before.token != token or now > before.until + seconds(99)
        failures = 1 if is_new or before is None else before.failures + 1
        trouble = _Trouble(token, failures, now + seconds(failures))
        self._troubles[partition] = trouble
        self._look_again(partition, trouble.until, now)

    def prefer(
        self, partition: TopicPartition, state: TopicPartitionState, node: int, until: float
    ) -> None:
        """Fetch from a preferred replica until a time; a repeated hint does not extend it."""
        if state.preferred_replica == node:
            return
        state.prefer(node, until)
        heapq.heappush(self._alarms, (until, partition))

    def _look_again(self, partition: TopicPartition, when: float, now: float) -> None:
        heapq.heappush(self._alarms, (when, partition))
        self._place(partition, now)

    def leader_told(self, partition: TopicPartition, now: float) -> None:
        """Fetch at once from the new leader that a response has named (KIP-951)."""
        self._place(partition, now)

    def is_follower(self, partition: TopicPartition, node: int) -> bool:
        """Return True if a node that responded is not the leader."""
        leader = self._cluster.leader_for_partition(partition)
        return leader is not None and leader != node

    def avoid(self, node: int) -> None:
        """Fetch from the leaders again, because a preferred replica does not respond."""
        session = self.sessions.get(node)
        for partition in [] if session is None else session.wanted():
            state = self._subscription.assignment.get(partition)
            if state is not None and state.preferred_replica == node:
                state.prefer(None)

    def grow(self, partition: TopicPartition, asked: int, most: int) -> bool:
        """Double the limit of a partition; return False if it is the largest already."""
        if asked >= most:
            return False
        self._grown[partition] = min(most, max(1, 2 * asked))
        return True

    def grown(self, partition: TopicPartition) -> Optional[int]:
        """Return the limit of a partition whose message was cut off; None: the usual limit."""
        return self._grown.get(partition)
