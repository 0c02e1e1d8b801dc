"""What to do about each error code of OffsetCommit and OffsetFetch, and the errors to raise.

Two tables, COMMIT and FETCH, used by OffsetCommits, the evented clients and Spark. Follows KIP-98
and KIP-447 (offsets that a transaction may still change), KIP-345 and KIP-848. Pure.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional

from kafka.errors import (
    CommitFailedError,
    CommitInRebalanceError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidCommitOffsetSizeError,
    KafkaError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    ProtocolError,
    RebalanceInProgressError,
    RequestTimedOutError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
    for_code,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = [
    'COMMIT',
    'FETCH',
    'OffsetErrorAction',
    'Trouble',
    'commit_trouble',
    'fetch_trouble',
    'named',
]


class OffsetErrorAction(enum.Enum):
    """What to do about an error code; of several the last one in this order decides."""

    DONE = 'done'
    ABSENT = 'there is none'
    BY_NAME = 'the same again at once, naming topics in place of ids that are refused'
    RETRY = 'the same again, after back-off'
    WAIT_EPOCH = 'again with the next epoch of the member, where the caller can tell it'
    LOOK = 'ask Metadata whether there is such a partition; again if so'
    REFRESH = 'refresh metadata, then again'
    REFIND = 'ask who coordinates, then again'
    SURFACE = 'raise it'
    MOVED = 'the group has moved on without this member'
    FENCED = 'another member has taken its place: over'

    __hash__ = object.__hash__


_ORDER: Dict[OffsetErrorAction, int] = {action: at for at, action in enumerate(OffsetErrorAction)}

_AGAIN = frozenset(
    [
        OffsetErrorAction.BY_NAME,
        OffsetErrorAction.RETRY,
        OffsetErrorAction.WAIT_EPOCH,
        OffsetErrorAction.LOOK,
        OffsetErrorAction.REFRESH,
        OffsetErrorAction.REFIND,
    ]
)

#: A code that is not in the table is raised, unless its class is retriable.
COMMIT: Mapping[Optional[int], OffsetErrorAction] = {
    0: OffsetErrorAction.DONE,
    # Brokers learn of a new topic one after the other.
    UnknownTopicOrPartitionError.errno: OffsetErrorAction.LOOK,
    # The coordinator may be cut off from the replicas of its log.
    RequestTimedOutError.errno: OffsetErrorAction.REFIND,
    OffsetMetadataTooLargeError.errno: OffsetErrorAction.SURFACE,
    InvalidCommitOffsetSizeError.errno: OffsetErrorAction.SURFACE,
    CoordinatorLoadInProgressError.errno: OffsetErrorAction.RETRY,
    CoordinatorNotAvailableError.errno: OffsetErrorAction.REFIND,
    NotCoordinatorError.errno: OffsetErrorAction.REFIND,
    IllegalGenerationError.errno: OffsetErrorAction.MOVED,
    UnknownMemberIdError.errno: OffsetErrorAction.MOVED,
    RebalanceInProgressError.errno: OffsetErrorAction.MOVED,
    TopicAuthorizationFailedError.errno: OffsetErrorAction.SURFACE,
    GroupAuthorizationFailedError.errno: OffsetErrorAction.SURFACE,
    # The response to a member of KIP-848 that commits with version 8 or below.
    UnsupportedVersionError.errno: OffsetErrorAction.SURFACE,
    # Version 9 says so, where earlier ones say ILLEGAL_GENERATION, if the group is gone.
    GroupIdNotFoundError.errno: OffsetErrorAction.MOVED,
    FencedInstanceIdError.errno: OffsetErrorAction.FENCED,
    # From version 10 on, which names topics by their ids.
    UnknownTopicIdError.errno: OffsetErrorAction.REFRESH,
    FencedMemberEpochError.errno: OffsetErrorAction.MOVED,
    StaleMemberEpochError.errno: OffsetErrorAction.WAIT_EPOCH,
}

FETCH: Mapping[Optional[int], OffsetErrorAction] = {
    0: OffsetErrorAction.DONE,
    # Brokers of 0.8, and ZooKeeper, say so if nothing was committed.
    UnknownTopicOrPartitionError.errno: OffsetErrorAction.ABSENT,
    RequestTimedOutError.errno: OffsetErrorAction.REFIND,
    CoordinatorLoadInProgressError.errno: OffsetErrorAction.RETRY,
    CoordinatorNotAvailableError.errno: OffsetErrorAction.REFIND,
    NotCoordinatorError.errno: OffsetErrorAction.REFIND,
    IllegalGenerationError.errno: OffsetErrorAction.MOVED,
    UnknownMemberIdError.errno: OffsetErrorAction.MOVED,
    TopicAuthorizationFailedError.errno: OffsetErrorAction.SURFACE,
    GroupAuthorizationFailedError.errno: OffsetErrorAction.SURFACE,
    UnsupportedVersionError.errno: OffsetErrorAction.SURFACE,
    # An open transaction may change the offset, until its time-out at the latest (KIP-447).
    UnstableOffsetCommitError.errno: OffsetErrorAction.RETRY,
    UnknownTopicIdError.errno: OffsetErrorAction.REFRESH,
    StaleMemberEpochError.errno: OffsetErrorAction.WAIT_EPOCH,
}


#: Codes of a single partition; before OffsetFetch v2, codes of the group are there too.
OF_PARTITIONS = frozenset(
    [
        TopicAuthorizationFailedError.errno,
        UnstableOffsetCommitError.errno,
        UnknownTopicIdError.errno,
    ]
)


class Trouble(NamedTuple):
    """Why a request has to be repeated, or what it fails with.

    code: None if there was no response.
    """

    action: OffsetErrorAction
    error: KafkaError
    partitions: FrozenSet[TopicPartition] = frozenset()
    code: Optional[int] = None

    @property
    def may_repeat(self) -> bool:
        """Whether another try may succeed."""
        return self.action in _AGAIN


def named(partitions: Iterable[Any]) -> str:
    """Return a text that names partitions, the first of many."""
    texts = ['%s-%s' % tuple(each) for each in sorted(partitions)]
    more = ' and %d more' % (len(texts) - 3) if len(texts) > 3 else ''
    return ', '.join(texts[:3]) + more


def _action(table: Mapping[Optional[int], OffsetErrorAction], code: int) -> OffsetErrorAction:
    found = table.get(code)
    if found is not None:
        return found
    kind = for_code(code)
    if kind.refind_coordinator:
        return OffsetErrorAction.REFIND
    return OffsetErrorAction.RETRY if kind.retriable else OffsetErrorAction.SURFACE


def _worst(
    table: Mapping[Optional[int], OffsetErrorAction], codes: Mapping[TopicPartition, int]
) -> Optional[int]:
    """Return the code that decides, None where all went well."""
    bad = {
        code
        for code in codes.values()
        if _ORDER[_action(table, code)] > _ORDER[OffsetErrorAction.ABSENT]
    }
    return max(bad, key=lambda code: (_ORDER[_action(table, code)], -code)) if bad else None


def commit_trouble(
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    codes: Mapping[TopicPartition, int],
    generation: int,
) -> Optional[Trouble]:
    """Return what follows from an answer to OffsetCommit, None where all was stored.

    Arguments: offsets: that were sent; generation: that was sent, -1 for none.
    """
    missing = [each for each in offsets if each not in codes]
    if missing:
        return Trouble(OffsetErrorAction.SURFACE, _left_out('OffsetCommit', group, missing))
    code = _worst(COMMIT, codes)
    if code is None:
        return None
    about = [each for each in offsets if codes[each] == code]
    action = _action(COMMIT, code)
    where = 'group %s refuses the offsets of %s' % (group, named(about))
    hint = _hint(code, [offsets[each] for each in about], generation)
    return Trouble(action, _commit_error(code, action, where + hint), frozenset(about), code)


def _left_out(call: str, group: str, missing: List[TopicPartition]) -> KafkaError:
    return ProtocolError(
        'the coordinator of group %s left %s out of its answer to %s'
        % (group, named(missing), call)
    )


def _hint(code: int, offsets: List[OffsetAndMetadata], generation: int) -> str:
    """Return the part of an error text that only the sender of the offsets can know."""
    if code == OffsetMetadataTooLargeError.errno:
        longest = max(len((each.metadata or '').encode('utf-8')) for each in offsets)
        return (
            ': the metadata text has %d bytes, more than the broker allows'
            ' (offset.metadata.max.bytes, 4096 unless changed)' % longest
        )
    if code == UnknownMemberIdError.errno and generation < 0:
        return ': it has members, so it takes no commits of others'
    if code == UnsupportedVersionError.errno:
        return ': its members need a newer version of OffsetCommit than the broker serves'
    if code == UnknownTopicOrPartitionError.errno:
        return ': there is no such partition'
    kind = for_code(code)
    return ': %s' % kind.description if kind.description else ''


#: What is said where the offsets are not stored because the group goes on without them.
_MOVED_HINT = (
    '. Others may own the partitions by now and read them again from the last commit. If that'
    ' was no rebalance the program expected: poll() more often than max_poll_interval_ms, or hand'
    ' out fewer records at once with max_poll_records'
)
_REBALANCE_HINT = '. Commit again after the next poll(), for the partitions that are left'


def _commit_error(code: int, action: OffsetErrorAction, text: str) -> KafkaError:
    """Return what a commit is failed with; ``errno_of_group`` has the code for the membership."""
    if action not in (OffsetErrorAction.MOVED, OffsetErrorAction.WAIT_EPOCH):
        return for_code(code)(text)
    error: CommitFailedError
    if code == RebalanceInProgressError.errno:
        error = CommitInRebalanceError(text + _REBALANCE_HINT)
    else:
        error = CommitFailedError('%s (error %d)%s' % (text, code, _MOVED_HINT))
    error.errno_of_group = code
    return error


def fetch_trouble(
    group: str,
    asked: Iterable[TopicPartition],
    code_of_group: int,
    codes: Mapping[TopicPartition, int],
) -> Optional[Trouble]:
    """Return what follows from an answer to OffsetFetch, None where all is told.

    Arguments: code_of_group: of the whole; codes: of partitions.
    """
    partitions = list(asked)
    code = code_of_group or None
    about = partitions
    if code is None:
        missing = [each for each in partitions if each not in codes]
        if missing:
            return Trouble(OffsetErrorAction.SURFACE, _left_out('OffsetFetch', group, missing))
        code = _worst(FETCH, codes)
        about = [each for each in partitions if codes[each] == code]
    if code is None:
        return None
    error = _fetch_error(group, about, code)
    return Trouble(_action(FETCH, code), error, frozenset(about), code)


def fetch_errors(
    group: str, codes: Mapping[TopicPartition, int]
) -> Dict[TopicPartition, KafkaError]:
    """Return the error of each partition whose offset the answer to OffsetFetch does not have."""
    return {
        each: _fetch_error(group, [each], code)
        for each, code in codes.items()
        if _ORDER[_action(FETCH, code)] > _ORDER[OffsetErrorAction.ABSENT]
    }


def _fetch_error(group: str, about: Iterable[TopicPartition], code: int) -> KafkaError:
    kind = for_code(code)
    text = 'group %s does not tell the offsets of %s: %s' % (group, named(about), kind.description)
    return kind(text)
