"""What the tests of groups ask brokers by hand: who coordinates a group, who is in it.

By declared messages over one connection (wire.py), so that no client's own view is the judge.
"""

from __future__ import annotations

from kafka.protocol.admin.groups import ConsumerGroupDescribeRequest, DescribeGroupsRequest
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from test.integration.wire import Wire


def group_coordinator_of(cluster, group):
    """Return the node that coordinates a group, -1 where nobody says so yet."""
    with Wire(cluster.address(cluster.nodes[0])) as wire:
        return wire.ask(FindCoordinatorRequest(key=group), 0).node_id


def members_of(cluster, group, protocol):
    """Return the state of a group and the client ids of its members, as the coordinator says.

    protocol: 'classic' or 'consumer' (KIP-848). The state is '' where nobody can say it now.
    """
    node = group_coordinator_of(cluster, group)
    if node < 0:
        return '', []
    request, version = (
        (ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 0)
        if protocol == 'consumer'
        else (DescribeGroupsRequest(groups=[group]), 0)
    )
    with Wire(cluster.address(node)) as wire:
        (told,) = wire.ask(request, version).groups
    if told.error_code:
        return '', []
    return told.group_state, [each.client_id for each in told.members]
