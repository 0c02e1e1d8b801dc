"""Topologies of Kafka Streams, checked with the topics of the cluster (KIP-1071).

Computes the number of tasks of each subtopology, the missing internal topics, and why a topology
cannot run. Called by streams_group.py, which assigns the tasks.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from kafka.protocol.streams import (
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTopology,
    TopicInfo,
)

#: Status codes of StreamsGroupHeartbeat responses.
STALE_TOPOLOGY = 0
MISSING_SOURCE_TOPICS = 1
INCORRECTLY_PARTITIONED_TOPICS = 2
MISSING_INTERNAL_TOPICS = 3
SHUTDOWN_APPLICATION = 4
ASSIGNMENT_DELAYED = 5


class InvalidTopology(Exception):
    """A topology that can never run, with the reason."""


class BrokenTopology(InvalidTopology):
    """A topology with an index out of range, for which brokers answer UNKNOWN_SERVER_ERROR."""


class Problem(NamedTuple):
    """Why a topology cannot run yet: status code and message."""

    status: int
    text: str


class Configured(NamedTuple):
    """A topology checked with the existing topics.

    ``tasks`` is the number of tasks of each subtopology; ``topics`` the partition count of each
    topic that it reads or writes; ``missing`` has the internal topics that are to be created.
    """

    tasks: Dict[str, int]
    topics: Dict[str, int]
    missing: List[TopicInfo]
    problem: Optional[Problem]

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


Parts = List[StreamsGroupHeartbeatSubtopology]


def sources_of(part: StreamsGroupHeartbeatSubtopology) -> List[str]:
    """Return the topics that a subtopology reads."""
    return [*part.source_topics, *(each.name for each in part.repartition_source_topics)]


def configure(topology: StreamsGroupHeartbeatTopology, existing: Mapping[str, int]) -> Configured:
    """Check a topology with the existing topics.

    Arguments: existing: the number of partitions of each topic.
    Raises InvalidTopology if it can never run.
    """
    parts = topology.subtopologies
    internal = {each.name: each for part in parts for each in part.repartition_source_topics}
    sources = {name for part in parts for name in part.source_topics} - set(internal)
    missing = sorted(sources - set(existing))
    if missing:
        text = 'Source topics %s are missing.' % ', '.join(missing)
        return Configured({}, {}, [], Problem(MISSING_SOURCE_TOPICS, text))
    counts = {name: existing[name] for name in sources}
    _count_repartitions(parts, internal, counts)
    problem = _match_copartitions(parts, internal, counts)
    if problem is not None:
        return Configured({}, {}, [], problem)
    tasks = {}
    for part in parts:
        tasks[part.subtopology_id] = max((counts[name] for name in sources_of(part)), default=0)
        for each in part.state_changelog_topics:
            counts.setdefault(each.name, tasks[part.subtopology_id])
            internal.setdefault(each.name, each)
    return _with_internal(tasks, counts, internal, existing)


def _with_internal(
    tasks: Dict[str, int],
    counts: Dict[str, int],
    internal: Mapping[str, TopicInfo],
    existing: Mapping[str, int],
) -> Configured:
    """Compare the internal topics that are needed with the existing ones."""
    wrong = sorted(name for name in internal if existing.get(name, counts[name]) != counts[name])
    if wrong:
        text = 'Internal topics %s have other numbers of partitions.' % ', '.join(wrong)
        return Configured({}, counts, [], Problem(INCORRECTLY_PARTITIONED_TOPICS, text))
    missing = [
        TopicInfo(
            name=name,
            partitions=counts[name],
            replication_factor=each.replication_factor,
            topic_configs=each.topic_configs,
        )
        for name, each in sorted(internal.items())
        if name not in existing
    ]
    if missing:
        text = 'Internal topics %s are missing.' % ', '.join(each.name for each in missing)
        return Configured({}, counts, missing, Problem(MISSING_INTERNAL_TOPICS, text))
    return Configured(tasks, counts, [], None)


def _count_repartitions(
    parts: Parts, internal: Mapping[str, TopicInfo], counts: Dict[str, int]
) -> None:
    """Count the partitions of repartition topics: as given, or the most that a writer reads."""
    counts.update({name: each.partitions for name, each in internal.items() if each.partitions})
    writers: Dict[str, List[StreamsGroupHeartbeatSubtopology]] = {}
    for part in parts:
        for name in part.repartition_sink_topics:
            writers.setdefault(name, []).append(part)
    pending = [name for name in internal if name not in counts]
    while pending:
        found = {}
        for name in pending:
            read = [topic for part in writers.get(name, ()) for topic in sources_of(part)]
            if read and all(topic in counts for topic in read):
                found[name] = max(counts[topic] for topic in read)
        if not found:
            raise InvalidTopology(
                'The partitions of repartition topics %s cannot be counted.' % ', '.join(pending)
            )
        counts.update(found)
        pending = [name for name in pending if name not in found]


def _match_copartitions(
    parts: Parts, internal: Mapping[str, TopicInfo], counts: Dict[str, int]
) -> Optional[Problem]:
    """Set equal partition counts in copartition groups; return a problem if that is impossible."""
    for part in parts:
        for group in part.copartition_groups:
            names = [each.name for each in part.repartition_source_topics]
            repartitions = _chosen(names, group.repartition_source_topics)
            sources = _chosen(part.source_topics, group.source_topics)
            fixed = {
                counts[name]
                for name in sources + repartitions
                if name not in internal or internal[name].partitions
            }
            if len(fixed) > 1:
                text = 'Topics %s must have as many partitions as each other.' % ', '.join(
                    sorted(sources + repartitions)
                )
                return Problem(INCORRECTLY_PARTITIONED_TOPICS, text)
            wanted = fixed or {max((counts[name] for name in repartitions), default=0)}
            counts.update(dict.fromkeys(repartitions, *wanted))
    return None


def _chosen(names: List[str], indexes: List[int]) -> List[str]:
    if any(not 0 <= index < len(names) for index in indexes):
        raise BrokenTopology('A copartition group names a topic that its subtopology lacks.')
    return [names[index] for index in indexes]


def stateful_parts(topology: StreamsGroupHeartbeatTopology) -> Set[str]:
    """Return the subtopologies with state stores, which can have standby tasks."""
    return {part.subtopology_id for part in topology.subtopologies if part.state_changelog_topics}


def size_of(topology: StreamsGroupHeartbeatTopology) -> int:
    """Return the estimate of the bytes that a topology takes."""
    return 256 + sum(
        512
        + len(part.subtopology_id)
        + sum(len(name) + 64 for name in (*part.source_topics, *part.repartition_sink_topics))
        + sum(
            len(each.name) + 256 + sum(len(c.key) + len(c.value) for c in each.topic_configs)
            for each in (*part.state_changelog_topics, *part.repartition_source_topics)
        )
        for part in topology.subtopologies
    )


#: A subtopology id and a partition number.
Task = Tuple[str, int]
