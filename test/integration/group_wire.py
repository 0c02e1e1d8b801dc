"""What the tests of groups ask brokers by hand: who coordinates a group, who is in it.

By declared messages over one connection (wire.py), so that no client's own view is the judge.
"""

from __future__ import annotations

from kafka.protocol.admin.groups import DescribeGroupsRequest
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from test.integration.wire import Wire


def group_coordinator_of(cluster, group):
    """Return the node that coordinates a group, -1 where nobody says so yet."""
    with Wire(cluster.address(cluster.nodes[0])) as wire:
        return wire.ask(FindCoordinatorRequest(key=group), 0).node_id


def classic_members_of(cluster, group):
    """Return the state of a classic group and how many members it has."""
    with Wire(cluster.address(group_coordinator_of(cluster, group))) as wire:
        (told,) = wire.ask(DescribeGroupsRequest(groups=[group]), 0).groups
        return told.group_state, len(told.members)
