"""Marks: a number with a short text, stored for a writer by a consumer group without members.

A mark is an offset with metadata of any existing partition, written by a plain commit, or by the
producer as part of a transaction. Reading considers all partitions of the group, so that the reader
need not know the partition of the writer; the mark with the largest number counts. Used by
exactly_once.py.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from kafka.coordinator.commits.error_actions import OffsetErrorAction, fetch_trouble
from kafka.coordinator.commits.manager import OffsetCommits
from kafka.coordinator.commits.messages import STABLE_FROM, fetched
from kafka.errors import KafkaError, KafkaTimeoutError, UnsupportedVersionError
from kafka.net.client import NetworkClient
from kafka.net.node_connection import session_of
from kafka.net.pool import Pool
from kafka.net.routes import GROUP
from kafka.producer.two_phase_commit import PreparedTransactions
from kafka.protocol.commit import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['Mark', 'read_mark', 'write_mark']

#: Versions of OffsetFetch: 8 introduces several groups, above 9 topics are named by ids.
_SEVERAL_FROM, _HIGHEST = 8, 9


class Mark(NamedTuple):
    """A stored mark: a number >= 0, and a text."""

    number: int
    text: str


def write_mark(client: PreparedTransactions, group: str, topic: str, mark: Mark) -> None:
    """Store a mark, replacing the one of this topic.

    Raises: GroupAuthorizationFailedError, TopicAuthorizationFailedError,
    OffsetMetadataTooLargeError, CommitFailedError if the group has members; KafkaTimeoutError.
    """
    place = TopicPartition(topic, 0)
    seconds = client.config['max_block_ms'] / 1000

    async def write(network: NetworkClient) -> None:
        commits = OffsetCommits(
            network.loop,
            network.pool,
            group,
            client.config['request_timeout_ms'] / 1000,
            client.config['retry_backoff_ms'] / 1000,
            client.config['retry_backoff_max_ms'] / 1000,
        )
        await commits.commit({place: OffsetAndMetadata(mark.number, mark.text, -1)}, None, seconds)

    client.run(write)


def read_mark(client: PreparedTransactions, group: str) -> Optional[Mark]:
    """Return the mark of a group, None if there is none.

    One that is part of a transaction counts when the transaction is committed, and is waited for
    while it ends. Raises: as write_mark(); UnsupportedVersionError for brokers before 2.5, which do
    not report unstable offsets.
    """
    seconds = client.config['max_block_ms'] / 1000

    async def read(network: NetworkClient) -> Optional[Mark]:
        loop, pool = network.loop, network.pool
        deadline = loop.time() + seconds
        pause = 0.02
        while True:
            refinds = True
            try:
                code, found = await loop.within(
                    client.config['request_timeout_ms'] / 1000, _read_once(pool, group)
                )
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                error = failure
            else:
                if code == 0:
                    return max(found, key=lambda mark: mark.number, default=None)
                trouble = fetch_trouble(group, (), code, {})
                assert trouble is not None
                error, refinds = trouble.error, trouble.action is OffsetErrorAction.REFIND
                if not trouble.may_repeat:
                    raise trouble.error
            if refinds:
                pool.forget_coordinator(GROUP, group)
            if loop.time() + pause >= deadline:
                raise KafkaTimeoutError(
                    'the mark in group %s could not be read within %.3g s: %s'
                    % (group, seconds, error)
                ) from error
            await loop.sleep(pause)
            pause = min(1.0, pause * 2)

    return client.run(read)


async def _read_once(pool: Pool, group: str) -> Tuple[int, List[Mark]]:
    """Return the error code, and the marks."""
    link = pool.link(await pool.coordinator(GROUP, group))
    await link.ready()
    version = session_of(link).choose_version(OffsetFetchRequest(), None, _HIGHEST)
    if version < STABLE_FROM:
        raise UnsupportedVersionError(
            'exactlyOnce needs brokers of Kafka 2.5 or later: those of group %s cannot report'
            ' whether'
            ' offsets of a transaction are settled (OffsetFetch %d, needed %d)'
            % (group, version, STABLE_FROM)
        )
    request = OffsetFetchRequest(group_id=group, topics=None, require_stable=True)
    if version >= _SEVERAL_FROM:
        asked = OffsetFetchRequestGroup(group_id=group, topics=None)
        request = OffsetFetchRequest(groups=[asked], require_stable=True)
    answer = fetched(await link.request(request, version=version), group, {})
    code = answer.error_code or max(answer.codes.values(), default=0)
    offsets = [each for each in answer.offsets.values() if each is not None]
    return code, [Mark(each.offset, each.metadata or '') for each in offsets]
