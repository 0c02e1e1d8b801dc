"""Validation of new topics and partitions, with the error messages of brokers.

Called by handlers/create_topics.py and handlers/partitions.py; ZooKeeper and KRaft releases differ.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Dict, List, NoReturn, Optional

from kafka.testing import errors

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

_LEGAL = re.compile(r'[a-zA-Z0-9._-]+')
#: Topics that brokers create when they are needed.
INTERNAL = ('__consumer_offsets', '__transaction_state')
#: Per topic; a real broker runs out of files long before.
MOST_PARTITIONS = 10000
MOST_REPLICAS = 1000


class Refused(Exception):
    """A request, or an item of it, that is answered with an error.

    Arguments: code: one of kafka.testing.errors; text: the error message, or None.
    """

    def __init__(self, code: int, text: Optional[str] = None) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


def refuse(code: int, text: Optional[str] = None) -> NoReturn:
    """Raise Refused."""
    raise Refused(code, text)


def check_name(state: ClusterState, name: str) -> None:
    """Raise Refused unless a topic may have this name."""
    code = errors.INVALID_TOPIC_EXCEPTION
    if name in ('', '.', '..'):
        refuse(code, 'Topic name is invalid: %r is not allowed' % name)
    if len(name) > 249:
        refuse(code, 'Topic name is invalid: it has %d characters, more than 249' % len(name))
    if not _LEGAL.fullmatch(name):
        refuse(code, 'Topic name is invalid: %r has others than [a-zA-Z0-9._-]' % name[:80])


def check_absent(state: ClusterState, name: str) -> None:
    """Raise Refused if a topic exists with this name, or with one that collides in metrics."""
    # __consumer_offsets came with 0.8.2, __transaction_state with transactions (0.11).
    is_internal = name in INTERNAL[: 2 if state.release.version >= (0, 11) else 1]
    if name in state.topics or is_internal:
        refuse(errors.TOPIC_ALREADY_EXISTS, "Topic '%s' already exists." % name)
    other = state.topic_like(name)
    if other is not None:
        refuse(
            errors.INVALID_TOPIC_EXCEPTION,
            "Topic '%s' collides with existing topic: %s" % (name, other),
        )


def check_counts(state: ClusterState, partitions: int, copies: int) -> None:
    """Raise Refused unless a topic may have these counts, after defaults."""
    zookeeper = state.release.has_zookeeper
    if partitions <= 0:
        refuse(
            errors.INVALID_PARTITIONS,
            'Number of partitions must be larger than 0.'
            if zookeeper
            else 'Number of partitions was set to an invalid non-positive value.',
        )
    if partitions > MOST_PARTITIONS:
        refuse(errors.INVALID_PARTITIONS, 'More than %d partitions.' % MOST_PARTITIONS)
    if copies <= 0:
        refuse(
            errors.INVALID_REPLICATION_FACTOR,
            'Replication factor must be larger than 0.'
            if zookeeper
            else 'Replication factor must be larger than 0, or -1 to use the default value.',
        )
    check_copies(state, copies)


def check_room(state: ClusterState, partitions: int) -> None:
    """Raise Refused if ``partitions`` more exceed the limit of the cluster."""
    if not state.has_room(partitions):
        refuse(
            errors.INVALID_PARTITIONS,
            'The cluster has %d partitions; with %d more they are too many.'
            % (state.partition_count, partitions),
        )


def check_copies(state: ClusterState, copies: int) -> None:
    """Raise Refused if there are fewer live brokers than replicas."""
    alive = len(state.alive)
    if copies > alive:
        refuse(
            errors.INVALID_REPLICATION_FACTOR,
            'Replication factor: %d larger than available brokers: %d.' % (copies, alive)
            if state.release.has_zookeeper
            else 'Unable to replicate the partition %d time(s): The target replication factor of'
            ' %d cannot be reached because only %d broker(s) are registered.'
            % (copies, copies, alive),
        )


def check_assignments(state: ClusterState, by_index: Dict[int, List[int]]) -> None:
    """Raise Refused unless partitions may have these replicas."""
    has_gap = sorted(by_index) != list(range(len(by_index)))
    if has_gap and state.release.version >= (2, 0):
        _bad('partitions should be a consecutive 0-based integer sequence')
    assignments = [by_index[index] for index in sorted(by_index)]
    for index, nodes in sorted(by_index.items()):
        if nodes or not state.release.has_zookeeper:  # not checked there, and never created
            check_replicas(state, nodes, index)
    if len({len(nodes) for nodes in assignments}) > 1:
        _bad(
            'All partitions should have the same number of replicas.'
            if state.release.has_zookeeper
            else 'The manual partition assignment includes a partition with %d replica(s), but this'
            ' is not consistent with previous partitions, which have %d replica(s).'
            % (
                next(len(n) for n in assignments if len(n) != len(assignments[0])),
                len(assignments[0]),
            )
        )


def check_replicas(state: ClusterState, nodes: List[int], index: int) -> None:
    """Raise Refused unless a partition may have these replicas.

    ZooKeeper releases do not check whether the brokers exist.
    """
    if not nodes:
        _bad('The manual partition assignment includes an empty replica list.')
    if len(nodes) > MOST_REPLICAS:
        _bad('A partition on %d brokers.' % len(nodes))
    counts = Counter(nodes)
    twice = next((node for node in nodes if counts[node] > 1), None)
    if twice is not None:
        _bad('The manual partition assignment includes the broker %d more than once.' % twice)
    if state.release.has_zookeeper:
        return
    for node in nodes:
        if node not in state.nodes:
            _bad(
                'The manual partition assignment includes broker %d, but no such broker is'
                ' registered.' % node
            )
    if not set(nodes) & set(state.alive):
        _bad(
            'All brokers specified in the manual partition assignment for partition %d are fenced'
            ' or in controlled shutdown.' % index
        )


def _bad(text: str) -> NoReturn:
    refuse(errors.INVALID_REPLICA_ASSIGNMENT, text)
