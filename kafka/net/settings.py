"""NetSettings: addresses, timeouts and limits of the network classes, in seconds and bytes.

Created from options; their names, types and defaults are in the option table (kafka/config).
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple, Optional, Tuple

from kafka.config.kinds import parse_server
from kafka.net.security import SecuritySettings
from kafka.net.transport import SocketOptions
from kafka.protocol.frames import DEFAULT_MAX_FRAME_BYTES
from kafka.version import __version__

__all__ = ['NetSettings', 'parse_servers']

DEFAULT_PORT = 9092

Server = Tuple[str, int]


class NetSettings(NamedTuple):
    """How one client reaches its cluster. Times are seconds.

    ``release`` is a key of ``probe.OLD_RELEASES`` for brokers without ApiVersions, None to detect
    it; ``api_version`` the release of the option of that name; ``rebootstraps`` is whether the
    client may rebootstrap (KIP-899), and ``rebootstrap_after`` the time without a response to
    Metadata after which it does (KIP-1102).
    """

    servers: Tuple[Server, ...] = (('localhost', DEFAULT_PORT),)
    client_id: Optional[str] = 'kafka-python-' + __version__
    security: SecuritySettings = SecuritySettings()
    request_timeout: float = 30.0
    max_in_flight: int = 5
    reconnect_backoff: float = 0.05
    reconnect_backoff_max: float = 1.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    setup_timeout: float = 10.0
    setup_timeout_max: float = 30.0
    idle_timeout: float = 540.0
    metadata_max_age: float = 300.0
    rebootstrap_after: float = 300.0
    rebootstraps: bool = True
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    socket: SocketOptions = SocketOptions()
    release: Optional[str] = None
    api_version: Optional[Tuple[int, ...]] = None
    canonical_names: bool = False
    allow_auto_create_topics: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> NetSettings:
        """Return the settings from options; missing ones have the default of this class.

        Raises KafkaConfigurationError for invalid values, and for certificate files that cannot be
        used.
        """
        given = {
            field: convert(options[name])
            for name, (field, convert) in _OPTIONS.items()
            if options.get(name) is not None
        }
        others = options.get('socket_options')
        defaults = SocketOptions()
        given['socket'] = SocketOptions(
            options.get('send_buffer_bytes'),
            options.get('receive_buffer_bytes'),
            defaults.others if others is None else tuple(tuple(each) for each in others),
        )
        given['security'] = security = SecuritySettings.from_options(options)
        if security.tls is not None:
            security.context()  # raises now if a file cannot be used
        release = options.get('api_version')
        if isinstance(release, tuple):
            given['api_version'] = release
        settings = cls(**given)
        if 'reconnect_backoff' in given and 'reconnect_backoff_max' not in given:
            # KIP-580: if only the base is set, the backoff is constant.
            settings = settings._replace(reconnect_backoff_max=settings.reconnect_backoff)
        return settings


def _seconds(ms: Any) -> float:
    return math.inf if ms < 0 else ms / 1000


def parse_servers(servers: Any) -> Tuple[Server, ...]:
    """Return (host, port) pairs from ``host:port`` strings: a list, or one comma-separated string.

    Raises ValueError as parse_server().
    """
    texts = servers.split(',') if isinstance(servers, str) else servers
    return tuple(parse_server(each) for each in texts if each.strip())


def _release(version: Any) -> Optional[str]:
    """Return the release before 0.10 of the option api_version; None for one with ApiVersions."""
    if not isinstance(version, tuple) or version >= (0, 10):
        return None
    if version >= (0, 9):
        return '0.9'
    return {2: '0.8.2', 1: '0.8.1'}.get(version[2] if len(version) > 2 else 0, '0.8.0')


_OPTIONS: Mapping[str, Tuple[str, Any]] = {
    'bootstrap_servers': ('servers', parse_servers),
    'client_id': ('client_id', str),
    'request_timeout_ms': ('request_timeout', _seconds),
    'max_in_flight_requests_per_connection': ('max_in_flight', int),
    'reconnect_backoff_ms': ('reconnect_backoff', _seconds),
    'reconnect_backoff_max_ms': ('reconnect_backoff_max', _seconds),
    'retry_backoff_ms': ('retry_backoff', _seconds),
    'retry_backoff_max_ms': ('retry_backoff_max', _seconds),
    'socket_connection_setup_timeout_ms': ('setup_timeout', _seconds),
    'socket_connection_setup_timeout_max_ms': ('setup_timeout_max', _seconds),
    'connections_max_idle_ms': ('idle_timeout', _seconds),
    'metadata_max_age_ms': ('metadata_max_age', _seconds),
    'metadata_recovery_rebootstrap_trigger_ms': ('rebootstrap_after', _seconds),
    'metadata_recovery_strategy': ('rebootstraps', lambda value: value == 'rebootstrap'),
    'receive_message_max_bytes': ('max_frame_bytes', int),
    'api_version': ('release', _release),
    'client_dns_lookup': (
        'canonical_names',
        lambda value: value == 'resolve_canonical_bootstrap_servers_only',
    ),
    'allow_auto_create_topics': ('allow_auto_create_topics', bool),
}
