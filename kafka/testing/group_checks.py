"""What brokers check before they look at a group, and what they tell of groups with member epochs.

Owns who answers requests about groups: the coordinator. What is told of the members of one kind of
group is in handlers/: consumer_groups.py, share_groups.py and streams_groups.py.
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, TypeVar

from kafka.protocol import share, streams
from kafka.protocol.admin.groups import DescribedConsumerGroup
from kafka.testing.calls import Call
from kafka.testing.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NONE,
    NOT_COORDINATOR,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.epoch_groups import EpochGroups, G
from kafka.testing.security.operations import group_operations

D = TypeVar('D', DescribedConsumerGroup, share.DescribedGroup, streams.DescribedGroup)

ELSEWHERE = 'Another broker coordinates the group.'


class Refusal(NamedTuple):
    """Why a heartbeat is not taken."""

    error: int
    text: Optional[str]


def is_coordinator(call: Call[Any], key: str) -> bool:
    """Tell whether the broker that was asked coordinates a group or a transactional id."""
    return call.state.coordinator_of(key) == call.broker.node_id


def heartbeat_refusal(call: Call[Any], is_supported: bool) -> Optional[Refusal]:
    """Return why a heartbeat cannot be taken here, None if it can.

    Arguments: is_supported: whether the cluster has groups of that kind.
    """
    if not is_supported:
        return Refusal(UNSUPPORTED_VERSION, None)
    group_id = call.request.group_id
    if group_id and not is_coordinator(call, group_id):
        return Refusal(NOT_COORDINATOR, ELSEWHERE)
    return None


def group_error(call: Call[Any], group_id: str, is_supported: bool) -> int:
    """Return why nothing can be said of a group here.

    Arguments: is_supported: whether the cluster has groups of that kind.
    """
    if not is_supported:
        return UNSUPPORTED_VERSION
    if not group_id:
        return INVALID_GROUP_ID
    return NONE if is_coordinator(call, group_id) else NOT_COORDINATOR


def described_groups(
    call: Call[Any],
    groups: EpochGroups[G],
    is_supported: bool,
    describe: Callable[..., D],
    fill: Callable[[D, G], None],
) -> List[D]:
    """Return what is told of the groups that are asked for.

    Arguments:
        groups: all of that kind; is_supported: whether the cluster has it.
        describe: makes a description out of the fields that all kinds have.
        fill: adds to it what only one kind has.
    """

    def described(group_id: str) -> D:
        error = group_error(call, group_id, is_supported)
        text = ELSEWHERE if error == NOT_COORDINATOR else None
        call.state.groups.get(group_id)  # lets go what has become too old
        group = None if error else groups.get(group_id)
        if not error and group is None:
            error, text = GROUP_ID_NOT_FOUND, 'There is no such %s group.' % groups.group_type
        found = describe(
            error_code=error,
            error_message=text,
            group_id=group_id,
            group_state='',
            group_epoch=0,
            assignment_epoch=0,
            members=[],
        )
        if group is None:
            return found
        found.group_state = group.state.value
        found.group_epoch, found.assignment_epoch = group.epoch, group.assignment_epoch
        found.assignor_name = group.assignor
        if call.request.include_authorized_operations:
            found.authorized_operations = group_operations(call, group_id)
        fill(found, group)
        return found

    return [described(group_id) for group_id in call.request.group_ids]
