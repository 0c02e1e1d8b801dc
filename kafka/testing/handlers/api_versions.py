"""ApiVersions of an embedded broker (KIP-35, KIP-511)."""

from __future__ import annotations

from kafka.protocol.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafka.testing.calls import HANDLERS, Call, handles
from kafka.testing.features import supported_features


@handles(ApiVersionsRequest)
def api_versions(call: Call[ApiVersionsRequest]) -> ApiVersionsResponse:
    """List what this release serves and this broker can do."""
    state = call.state
    listed = state.release.listed
    response = ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(listed.items())
            if key in HANDLERS
        ],
    )
    if call.version >= 3:
        response.supported_features = [
            # Until v4 a lowest level of 0 cannot be told (KAFKA-17011).
            SupportedFeatureKey(
                name=name,
                min_version=levels.lowest if call.version >= 4 else max(1, levels.lowest),
                max_version=levels.highest,
            )
            for name, levels in supported_features(state.release.name).items()
        ]
        response.finalized_features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in state.features.items()
        ]
        response.finalized_features_epoch = 1 if state.features else -1
    return response
