"""What a consumer does about each error code in answers to OffsetCommit and OffsetFetch.

Owns the two tables and the errors that callers get; pure. Follows KIP-98 and KIP-447 (offsets that
a transaction may still change), KIP-345, KIP-848. What is sent is in messages.py, who
repeats it is manager.py.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional

from kafka.errors import (
    CommitFailedError,
    CommitInRebalanceError,
    KafkaError,
    ProtocolError,
    for_code,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ['COMMIT', 'FETCH', 'Action', 'Trouble', 'commit_trouble', 'fetch_trouble', 'named']


class Action(enum.Enum):
    """What follows from a code; of several the one that stands last here decides."""

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


_ORDER: Dict[Action, int] = {action: at for at, action in enumerate(Action)}

_AGAIN = frozenset(
    [Action.BY_NAME, Action.RETRY, Action.WAIT_EPOCH, Action.LOOK, Action.REFRESH, Action.REFIND]
)

#: A code that is in no table is raised unless its class says that it can be tried again.
COMMIT: Mapping[int, Action] = {
    0: Action.DONE,
    # UNKNOWN_TOPIC_OR_PARTITION: brokers learn of new topics one after the other.
    3: Action.LOOK,
    # REQUEST_TIMED_OUT: this coordinator may be cut off from its replicas.
    7: Action.REFIND,
    # OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE
    12: Action.SURFACE,
    28: Action.SURFACE,
    # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
    14: Action.RETRY,
    15: Action.REFIND,
    16: Action.REFIND,
    # ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS
    22: Action.MOVED,
    25: Action.MOVED,
    27: Action.MOVED,
    # TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED
    29: Action.SURFACE,
    30: Action.SURFACE,
    # UNSUPPORTED_VERSION: of a member of KIP-848 that commits in version 8 or below.
    35: Action.SURFACE,
    # GROUP_ID_NOT_FOUND: what v9 says instead of 22 where the group is gone.
    69: Action.MOVED,
    # FENCED_INSTANCE_ID
    82: Action.FENCED,
    # UNKNOWN_TOPIC_ID (v10)
    100: Action.REFRESH,
    # FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH
    110: Action.MOVED,
    113: Action.WAIT_EPOCH,
}

FETCH: Mapping[int, Action] = {
    0: Action.DONE,
    # UNKNOWN_TOPIC_OR_PARTITION: 0.8, and ZooKeeper, say so where nothing was committed.
    3: Action.ABSENT,
    7: Action.REFIND,
    14: Action.RETRY,
    15: Action.REFIND,
    16: Action.REFIND,
    22: Action.MOVED,
    25: Action.MOVED,
    29: Action.SURFACE,
    30: Action.SURFACE,
    35: Action.SURFACE,
    # UNSTABLE_OFFSET_COMMIT: a transaction is about to change it, at most for its time-out.
    88: Action.RETRY,
    100: Action.REFRESH,
    113: Action.WAIT_EPOCH,
}


#: Codes that say something of a partition alone; before OffsetFetch v2 the others stand there too.
OF_PARTITIONS = frozenset([29, 88, 100])


class Trouble(NamedTuple):
    """Why an exchange has to be repeated, or what it fails with.

    code: None where there was no answer.
    """

    action: Action
    error: KafkaError
    partitions: FrozenSet[TopicPartition] = frozenset()
    code: Optional[int] = None

    @property
    def may_repeat(self) -> bool:
        """Whether another try may go better."""
        return self.action in _AGAIN


def named(partitions: Iterable[Any]) -> str:
    """Return a text that names partitions, the first of many."""
    texts = ['%s-%s' % tuple(each) for each in sorted(partitions)]
    more = ' and %d more' % (len(texts) - 3) if len(texts) > 3 else ''
    return ', '.join(texts[:3]) + more


def _action(table: Mapping[int, Action], code: int) -> Action:
    found = table.get(code)
    if found is not None:
        return found
    kind = for_code(code)
    if kind.refind_coordinator:
        return Action.REFIND
    return Action.RETRY if kind.retriable else Action.SURFACE


def _worst(table: Mapping[int, Action], codes: Mapping[TopicPartition, int]) -> Optional[int]:
    """Return the code that decides, None where all went well."""
    bad = {code for code in codes.values() if _ORDER[_action(table, code)] > _ORDER[Action.ABSENT]}
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
        return Trouble(Action.SURFACE, _left_out('OffsetCommit', group, missing))
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
    """Say what only the sender knows about a code."""
    if code == 12:
        longest = max(len((each.metadata or '').encode('utf-8')) for each in offsets)
        return (
            ': the metadata text has %d bytes, more than the broker allows'
            ' (offset.metadata.max.bytes, 4096 unless changed)' % longest
        )
    if code == 25 and generation < 0:
        return ': it has members, so it takes no commits of others'
    if code == 35:
        return ': its members need a newer version of OffsetCommit than the broker serves'
    if code == 3:
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


def _commit_error(code: int, action: Action, text: str) -> KafkaError:
    """Return what a commit is failed with; ``errno_of_group`` has the code for the membership."""
    if action not in (Action.MOVED, Action.WAIT_EPOCH):
        return for_code(code)(text)
    error: CommitFailedError
    if code == 27:
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
            return Trouble(Action.SURFACE, _left_out('OffsetFetch', group, missing))
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
        if _ORDER[_action(FETCH, code)] > _ORDER[Action.ABSENT]
    }


def _fetch_error(group: str, about: Iterable[TopicPartition], code: int) -> KafkaError:
    kind = for_code(code)
    text = 'group %s does not tell the offsets of %s: %s' % (group, named(about), kind.description)
    return kind(text)
