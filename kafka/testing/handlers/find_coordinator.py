"""FindCoordinator of an embedded cluster: who coordinates a group or a transaction (KIP-98)."""

from __future__ import annotations

from typing import Union

from kafka.protocol.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka.testing.calls import Call, handles
from kafka.testing.errors import COORDINATOR_NOT_AVAILABLE, NONE
from kafka.testing.state import NO_LEADER, Node


@handles(FindCoordinatorRequest)
def find_coordinator(call: Call[FindCoordinatorRequest]) -> FindCoordinatorResponse:
    """Name the node that coordinates each key."""
    request = call.request
    if call.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_named(call, key) for key in request.coordinator_keys]
        )
    node = _found(call, request.key)
    if isinstance(node, int):
        return FindCoordinatorResponse(
            error_code=node, node_id=NO_LEADER, host='', port=-1, error_message=None
        )
    return FindCoordinatorResponse(
        error_code=NONE, node_id=node.node_id, host=node.host, port=node.port
    )


def _named(call: Call[FindCoordinatorRequest], key: str) -> Coordinator:
    node = _found(call, key)
    if isinstance(node, int):
        return Coordinator(
            key=key, node_id=NO_LEADER, host='', port=-1, error_code=node, error_message=None
        )
    return Coordinator(
        key=key,
        node_id=node.node_id,
        host=node.host,
        port=node.port,
        error_code=NONE,
        error_message=None,
    )


def _found(call: Call[FindCoordinatorRequest], key: str) -> Union[Node, int]:
    """Return the coordinator, or the code of an error."""
    node_id = call.state.coordinator_of(key)
    return COORDINATOR_NOT_AVAILABLE if node_id == NO_LEADER else call.state.nodes[node_id]
