"""ApiVersions of an embedded broker (KIP-35, KIP-511, KIP-584, KIP-1242)."""

from __future__ import annotations

import re
from typing import Mapping

from kafka.protocol.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafka.testing.calls import HANDLERS, Call, handles
from kafka.testing.errors import INVALID_REQUEST, NONE, REBOOTSTRAP_REQUIRED
from kafka.testing.releases import TELEMETRY
from kafka.testing.settings.features import Levels, supported_features

#: The pattern of client software names and versions (KIP-511).
_SOFTWARE = re.compile(r'[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?')


@handles(ApiVersionsRequest)
def api_versions(call: Call[ApiVersionsRequest]) -> ApiVersionsResponse:
    """Return the API versions and features of this release and broker."""
    error = _error(call)
    response = ApiVersionsResponse(error_code=error, api_keys=[])
    if error != NONE:
        return response
    if call.login is not None:
        call.login.told_versions()
    if call.version >= 3:
        call.software.name = call.request.client_software_name
        call.software.version = call.request.client_software_version
    state = call.state
    listed = {key: each for key, each in state.release.listed.items() if key in HANDLERS}
    listed.update(state.release.between_brokers)
    listed.update({key: each for key, each in call.broker.served.items() if key in TELEMETRY})
    response.api_keys = [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(listed.items())
    ]
    if call.version >= 3:
        _add_features(call, response, supported_features(state.release.name))
    return response


def _error(call: Call[ApiVersionsRequest]) -> int:
    """Return the error code for an invalid request, or NONE."""
    request = call.request
    if call.version >= 3:
        words = request.client_software_name, request.client_software_version
        if not all(map(_SOFTWARE.fullmatch, words)):
            return INVALID_REQUEST
    # The client has reached another broker or cluster than it expects (KIP-1242).
    is_other_cluster = request.cluster_id not in (None, call.state.cluster_id)
    is_other_node = request.node_id not in (-1, call.broker.node_id)
    return REBOOTSTRAP_REQUIRED if is_other_cluster or is_other_node else NONE


def _add_features(
    call: Call[ApiVersionsRequest], response: ApiVersionsResponse, supported: Mapping[str, Levels]
) -> None:
    state = call.state
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
        for name, levels in supported.items()
        # Before v4 a lowest level of 0 cannot be expressed (KAFKA-17011).
        if call.version >= 4 or levels.lowest > 0
    ]
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in state.features.items()
    ]
    if state.release.version >= (2, 7):
        response.finalized_features_epoch = state.features_epoch
