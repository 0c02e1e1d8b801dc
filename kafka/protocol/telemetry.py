"""Metrics that a client sends to brokers at their request (KIP-714).

The metrics inside are OTLP, which is not interpreted here.
"""

from __future__ import annotations

from typing import List

from kafka.protocol.wire import Bool, Bytes, Int8, Int16, Int32, Message, Route, String, Uuid


class GetTelemetrySubscriptionsRequest(
    Message, api_key=71, valid='0', flexible='0+', route=Route.ANY
):
    """Request the metrics to send; a zero id requests a client instance id too."""

    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Message, api_key=71, valid='0', flexible='0+'):
    """The metrics to send, how often, and with which compression."""

    throttle_time_ms: Int32
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: List[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: List[String]


class PushTelemetryRequest(Message, api_key=72, valid='0', flexible='0+', route=Route.ANY):
    """Send metrics: OTLP, compressed."""

    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Message, api_key=72, valid='0', flexible='0+'):
    """The result: whether the metrics were accepted."""

    throttle_time_ms: Int32
    error_code: Int16
