"""The action for each error code of OffsetCommit and OffsetFetch, and the errors to raise.

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
    """The action for an error code; if there are several codes, the last one in this order."""

    DONE = 'done'
    ABSENT = 'no offset is committed'
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
    # A new topic is not known to all brokers at the same time.
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
    # Version 9 has this code if the group does not exist; earlier ones have ILLEGAL_GENERATION.
    GroupIdNotFoundError.errno: OffsetErrorAction.MOVED,
    FencedInstanceIdError.errno: OffsetErrorAction.FENCED,
    # From version 10 on, which has topic ids in place of names.
    UnknownTopicIdError.errno: OffsetErrorAction.REFRESH,
    FencedMemberEpochError.errno: OffsetErrorAction.MOVED,
    StaleMemberEpochError.errno: OffsetErrorAction.WAIT_EPOCH,
}

FETCH: Mapping[Optional[int], OffsetErrorAction] = {
    0: OffsetErrorAction.DONE,
    # The code of 0.8 brokers, and for offsets in ZooKeeper, if no offset was committed.
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
    # An open transaction may change the offset, until its timeout at the latest (KIP-447).
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
    """Why a request has to be repeated, or the error that it fails with.

    code: None if there was no response.
    """

    action: OffsetErrorAction
    error: KafkaError
    partitions: FrozenSet[TopicPartition] = frozenset()
    code: Optional[int] = None

    @property
    def may_repeat(self) -> bool:
        """Whether a retry may succeed."""
        return self.action in _AGAIN


def named(partitions: Iterable[Any]) -> str:
    """Return a text with the names of partitions; only the first ones if there are many."""
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
    """Return the code that decides the action, None if there is no error."""
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
    """Return the trouble in a response to OffsetCommit, None if all offsets were stored.

    Arguments: offsets, generation: those of the request; the generation is -1 without a group.
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
    """Return advice for an error text that depends on the offsets and generation sent."""
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


#: Error text of commits that were rejected because the group has continued without the member.
_MOVED_HINT = (
    '. Others may own the partitions by now and read them again from the last commit. If the'
    ' program did not expect a rebalance: call poll() more often than max_poll_interval_ms, or get'
    ' fewer records from each with max_poll_records'
)
_REBALANCE_HINT = '. Commit again after the next poll(), for the partitions that are left'


def _commit_error(code: int, action: OffsetErrorAction, text: str) -> KafkaError:
    """Return the error of a commit; ``errno_of_group`` has the code for the membership."""
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
    """Return the trouble in a response to OffsetFetch, None if it has all offsets.

    Arguments: code_of_group: of the group; codes: of partitions.
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
    """Return the error of each partition whose offset is missing in an OffsetFetch response."""
    return {
        each: _fetch_error(group, [each], code)
        for each, code in codes.items()
        if _ORDER[_action(FETCH, code)] > _ORDER[OffsetErrorAction.ABSENT]
    }


def _fetch_error(group: str, about: Iterable[TopicPartition], code: int) -> KafkaError:
    kind = for_code(code)
    text = 'group %s does not tell the offsets of %s: %s' % (group, named(about), kind.description)
    return kind(text)
