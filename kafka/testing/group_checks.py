"""Checks that group APIs have in common, and descriptions of groups whose members have epochs.

Called by handlers/: the check that this broker is the coordinator, and the fields of descriptions
that all group types share. Members are described in consumer_groups.py, share_groups.py and
streams_groups.py of that folder.
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
    """The error of a heartbeat that is refused."""

    error: int
    text: Optional[str]


def is_coordinator(call: Call[Any], key: str) -> bool:
    """Return True if the broker of a call coordinates a group or a transactional id."""
    return call.state.coordinator_of(key) == call.broker.node_id


def heartbeat_refusal(call: Call[Any], is_supported: bool) -> Optional[Refusal]:
    """Return the error of a heartbeat that this broker cannot process, None if it can.

    Arguments: is_supported: whether the cluster supports groups of this type.
    """
    if not is_supported:
        return Refusal(UNSUPPORTED_VERSION, None)
    group_id = call.request.group_id
    if group_id and not is_coordinator(call, group_id):
        return Refusal(NOT_COORDINATOR, ELSEWHERE)
    return None


def group_error(call: Call[Any], group_id: str, is_supported: bool) -> int:
    """Return the error code for a group on this broker, NONE if it is the coordinator.

    Arguments: is_supported: whether the cluster supports groups of this type.
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
    """Return the descriptions of the groups in a request.

    Arguments:
        groups: all of the type; is_supported: whether the cluster supports it.
        describe: makes a description from the fields that all types have.
        fill: adds the fields of the type.
    """

    def described(group_id: str) -> D:
        error = group_error(call, group_id, is_supported)
        text = ELSEWHERE if error == NOT_COORDINATOR else None
        call.state.groups.get(group_id)  # expires old groups
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
