"""ApiVersions of an embedded broker (KIP-35, KIP-511)."""

from __future__ import annotations

from kafka.protocol.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafka.testing.calls import HANDLERS, Call, handles


@handles(ApiVersionsRequest)
def api_versions(call: Call[ApiVersionsRequest]) -> ApiVersionsResponse:
    """List what this release serves and this broker can do."""
    listed = call.state.release.listed
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(listed.items())
            if key in HANDLERS
        ],
    )
