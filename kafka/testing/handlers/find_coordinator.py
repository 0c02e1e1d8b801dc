"""FindCoordinator of an embedded cluster, for groups, transactions and share groups (KIP-98)."""

from __future__ import annotations

import re
from typing import Optional, Union

from kafka.protocol.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka.protocol.wire import Message
from kafka.testing.calls import Call, handles
from kafka.testing.errors import COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST, NONE
from kafka.testing.state import NO_LEADER, Node

_SHARE = 2
#: Group, topic id and partition: the key of share group state (KIP-932).
_SHARE_KEY = re.compile(r'(?P<group>.*\S.*):[A-Za-z0-9_-]{22}:[+-]?[0-9]{1,9}', re.DOTALL)
_TEXTS = {
    NONE: 'NONE',
    COORDINATOR_NOT_AVAILABLE: 'The coordinator is not available.',
    INVALID_REQUEST: 'The request is malformed, or not for a broker of this release.',
}
_NOBODY = Node(NO_LEADER, '', -1)


@handles(FindCoordinatorRequest)
def find_coordinator(call: Call[FindCoordinatorRequest]) -> Optional[Message]:
    """Return the node that coordinates each key."""
    request, release = call.request, call.state.release.version
    is_known = request.key_type in ((0, 1, _SHARE) if release >= (3, 9) else (0, 1))
    if not is_known and release < (2, 3):
        call.close_connection()  # the request cannot be decoded
        return None
    if call.version >= 4:
        found = [(key, _found(call, key)) for key in request.coordinator_keys]
        # The only error with a message is that of the whole request.
        text = '' if is_known else _TEXTS[INVALID_REQUEST]
        return FindCoordinatorResponse(coordinators=[_named(*each, text) for each in found])
    node = _found(call, request.key)
    code, place = (NONE, node) if isinstance(node, Node) else (node, _NOBODY)
    return FindCoordinatorResponse(
        error_code=code,
        error_message=_TEXTS[code] if release >= (2, 3) else None,
        node_id=place.node_id,
        host=place.host,
        port=place.port,
    )


def _named(key: str, node: Union[Node, int], text: str) -> Coordinator:
    code, place = (NONE, node) if isinstance(node, Node) else (node, _NOBODY)
    return Coordinator(
        key=key,
        node_id=place.node_id,
        host=place.host,
        port=place.port,
        error_code=code,
        error_message=text,
    )


def _found(call: Call[FindCoordinatorRequest], key: str) -> Union[Node, int]:
    """Return the coordinator, or an error code."""
    kind = call.request.key_type
    if kind not in (0, 1):
        error = _share_error(call, key) if kind == _SHARE else INVALID_REQUEST
        if error != NONE:
            return error
    node_id = call.state.coordinator_of(key)
    return COORDINATOR_NOT_AVAILABLE if node_id == NO_LEADER else call.state.nodes[node_id]


def _share_error(call: Call[FindCoordinatorRequest], key: str) -> int:
    """Return the error code of a share coordinator lookup, or NONE."""
    release = call.state.release.version
    if call.version < 6 or not (3, 9) <= release:
        return INVALID_REQUEST
    if release < (4, 0):
        return COORDINATOR_NOT_AVAILABLE  # the key type is known but not served yet
    parts = _SHARE_KEY.fullmatch(key)
    if release < (4, 1) or parts is None:
        return INVALID_REQUEST
    # In 4.1 a group id cannot have colons.
    return INVALID_REQUEST if ':' in parts.group('group') and release < (4, 2) else NONE
