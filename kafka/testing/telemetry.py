"""Client metrics of one broker: its clients and their subscriptions (KIP-714).

Called by handlers/telemetry.py. Subscriptions are computed from the configs of client metrics. The
pushed metrics are not decoded; they are kept in the log of requests.
"""

from __future__ import annotations

import base64
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Tuple

from kafka.testing.errors import (
    INVALID_REQUEST,
    NONE,
    TELEMETRY_TOO_LARGE,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_SUBSCRIPTION_ID,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kafka.testing.groups.regex import Pattern
from kafka.testing.settings.configs import CLIENT_METRICS

if TYPE_CHECKING:
    from kafka.testing.calls import Call
    from kafka.testing.state import ClusterState

#: The default of ``telemetry.max.bytes``.
MAX_BYTES = 1048576
DEFAULT_INTERVAL_MS = 300000
MOST_CLIENTS = 16384
#: In order of preference: zstd, lz4, gzip, snappy.
COMPRESSIONS = (4, 3, 1, 2)
EVERYTHING = '*'
#: Ids that no client may have.
RESERVED_IDS = (bytes(16), bytes(15) + b'\1')


class Subscription(NamedTuple):
    """The metrics that a client shall push, and how often."""

    metrics: Tuple[str, ...]
    interval_ms: int


class MetricsClient:
    """A client that has requested its subscription from this broker."""

    def __init__(self, client_id: bytes, about: Dict[str, str], settings: Any) -> None:
        self.about = about
        self.settings = settings  # those that the subscription was computed from
        self.subscription = subscription_of(about, settings)
        text = '%s%d' % (self.subscription.metrics, self.subscription.interval_ms)
        number = zlib.crc32(text.encode('utf-8') + client_id)
        self.subscription_id = number - 2**32 if number >= 2**31 else number
        self.is_terminating = False
        self._asked_ms = self._pushed_ms = 0
        self._error = NONE

    def ask(self, now_ms: int) -> int:
        """Return the error code of a GetTelemetrySubscriptions at this time, or NONE."""
        is_early = now_ms - max(self._asked_ms, self._pushed_ms) < self.subscription.interval_ms
        if is_early and self._error not in (UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE):
            return THROTTLING_QUOTA_EXCEEDED
        if not is_early:
            self._asked_ms = now_ms
        self._error = NONE
        return NONE

    def push(self, now_ms: int, request: Any) -> int:
        """Return the error code of a PushTelemetry at this time, or NONE."""
        self._error = self._push_error(now_ms, request)
        self.is_terminating = request.terminating
        return self._error

    def _push_error(self, now_ms: int, request: Any) -> int:
        if self.is_terminating:
            return INVALID_REQUEST
        has_asked = self._asked_ms > self._pushed_ms
        if has_asked or now_ms - self._pushed_ms >= self.subscription.interval_ms:
            self._pushed_ms = now_ms
        elif not request.terminating:
            return THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != self.subscription_id:
            return UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in (0, *COMPRESSIONS):
            return UNSUPPORTED_COMPRESSION_TYPE
        return TELEMETRY_TOO_LARGE if len(request.metrics) > MAX_BYTES else NONE


class Telemetry:
    """The clients of one broker; above the limit the least recently active is dropped."""

    def __init__(self) -> None:
        self._clients: OrderedDict[bytes, MetricsClient] = OrderedDict()

    def __repr__(self) -> str:
        return '<Telemetry of %d clients>' % len(self._clients)

    def client(self, call: Call[Any], client_id: bytes) -> MetricsClient:
        """Return a client, with a subscription of the current configs."""
        settings = _settings(call.state)
        known = self._clients.pop(client_id, None)
        if known is None or known.settings != settings:
            about = known.about if known is not None else _about(call, client_id)
            known = MetricsClient(client_id, about, settings)
        self._clients[client_id] = known
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        return known


def telemetry_of(call: Call[Any]) -> Telemetry:
    """Return the Telemetry of the broker of a call."""
    known: Dict[int, Telemetry] = call.state.telemetry
    return known.setdefault(call.broker.node_id, Telemetry())


def _settings(state: ClusterState) -> List[Dict[str, str]]:
    return [dict(each) for (kind, _), each in state.configs.items() if kind == CLIENT_METRICS]


def _about(call: Call[Any], client_id: bytes) -> Dict[str, str]:
    """Return the attributes by which subscriptions select clients."""
    return {
        'client_instance_id': base64.urlsafe_b64encode(client_id).decode().rstrip('='),
        'client_id': call.header.client_id or '',
        'client_software_name': call.software.name,
        'client_software_version': call.software.version,
        'client_source_address': call.host,
        'client_source_port': '0',
    }


def subscription_of(about: Dict[str, str], settings: List[Dict[str, str]]) -> Subscription:
    """Return the combined subscription of all configs that match a client."""
    metrics: Dict[str, None] = {}
    interval_ms = DEFAULT_INTERVAL_MS
    for each in settings:
        if _fits(about, each.get('match', '')):
            metrics.update(dict.fromkeys(_listed(each.get('metrics', ''))))
            interval_ms = min(interval_ms, int(each.get('interval.ms', DEFAULT_INTERVAL_MS)))
    if EVERYTHING in metrics:
        return Subscription((EVERYTHING,), interval_ms)
    return Subscription(tuple(metrics), interval_ms)


def _listed(text: str) -> List[str]:
    return [word.strip() for word in text.split(',') if word.strip()]


def _fits(about: Dict[str, str], match: str) -> bool:
    for each in _listed(match):
        name, _, pattern = each.partition('=')
        try:
            if not Pattern(pattern.strip()).matches(about.get(name.strip(), '')):
                return False
        except ValueError:
            return False
    return True
