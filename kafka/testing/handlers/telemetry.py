"""GetTelemetrySubscriptions and PushTelemetry of an embedded cluster (KIP-714).

Served by releases from 3.7 on if the cluster was started with ``client_telemetry=True``.
"""

from __future__ import annotations

from kafka.protocol.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kafka.protocol.wire import ZERO_UUID
from kafka.testing.calls import Call, handles
from kafka.testing.errors import INVALID_REQUEST, NONE
from kafka.testing.telemetry import COMPRESSIONS, MAX_BYTES, RESERVED_IDS, telemetry_of


@handles(GetTelemetrySubscriptionsRequest)
def get_telemetry_subscriptions(
    call: Call[GetTelemetrySubscriptionsRequest],
) -> GetTelemetrySubscriptionsResponse:
    """Return the subscription of a client: the metrics that it shall push."""
    client_id = call.request.client_instance_id
    if client_id in RESERVED_IDS:
        client_id = call.state.new_uuid()
    client = telemetry_of(call).client(call, client_id)
    error = client.ask(call.state.timers.clock.wall_ms())
    if error != NONE:
        return GetTelemetrySubscriptionsResponse(
            throttle_time_ms=0,
            error_code=error,
            client_instance_id=ZERO_UUID,
            subscription_id=0,
            accepted_compression_types=[],
            push_interval_ms=0,
            telemetry_max_bytes=0,
            delta_temporality=False,
            requested_metrics=[],
        )
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms=0,
        error_code=NONE,
        client_instance_id=client_id,
        subscription_id=client.subscription_id,
        accepted_compression_types=list(COMPRESSIONS),
        push_interval_ms=client.subscription.interval_ms,
        telemetry_max_bytes=MAX_BYTES,
        delta_temporality=True,
        requested_metrics=list(client.subscription.metrics),
    )


@handles(PushTelemetryRequest)
def push_telemetry(call: Call[PushTelemetryRequest]) -> PushTelemetryResponse:
    """Validate pushed metrics; they are kept in the log of requests only."""
    request = call.request
    error = INVALID_REQUEST
    if request.client_instance_id not in RESERVED_IDS:
        client = telemetry_of(call).client(call, request.client_instance_id)
        error = client.push(call.state.timers.clock.wall_ms(), request)
    return PushTelemetryResponse(throttle_time_ms=0, error_code=error)
