"""AddRaftVoter, RemoveRaftVoter and UnregisterController of an embedded cluster (KIP-853).

The quorum has static voters, as with kraft.version 0, so that changes are refused.
"""

from __future__ import annotations

from typing import Any, Tuple

from kafka.protocol.admin.cluster import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles

_LISTENER = 'CONTROLLER'


@handles(AddRaftVoterRequest)
def add_voter(call: Call[AddRaftVoterRequest]) -> AddRaftVoterResponse:
    """Refuse to add a voter."""
    code, text = _refusal(call, 'adding')
    names = [listener.name for listener in call.request.listeners]
    if code == errors.UNSUPPORTED_VERSION and _LISTENER not in names:
        code = errors.INVALID_REQUEST
        text = "Add voter request didn't include the default listener %s" % _LISTENER
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=code, error_message=text)


@handles(RemoveRaftVoterRequest)
def remove_voter(call: Call[RemoveRaftVoterRequest]) -> RemoveRaftVoterResponse:
    """Refuse to remove a voter."""
    code, text = _refusal(call, 'removing')
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=code, error_message=text)


def _refusal(call: Call[Any], what: str) -> Tuple[int, str]:
    if call.request.cluster_id not in (None, call.state.cluster_id):
        return errors.INCONSISTENT_CLUSTER_ID, 'The request is for another cluster'
    text = "Cluster doesn't support %s voter because the kraft.version feature is 0" % what
    return errors.UNSUPPORTED_VERSION, text


@handles(UnregisterControllerRequest)
def unregister_controller(call: Call[UnregisterControllerRequest]) -> UnregisterControllerResponse:
    """Unregister a controller: only the check of its id; all brokers are controllers."""
    wanted = call.request.controller_id
    is_known = wanted in call.state.nodes
    return UnregisterControllerResponse(
        throttle_time_ms=0,
        error_code=errors.NONE if is_known else errors.CONTROLLER_ID_NOT_REGISTERED,
        error_message=None
        if is_known
        else 'Controller ID %d is not currently registered.' % wanted,
    )
