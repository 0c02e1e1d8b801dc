"""Checks of what blocking connections and clients are made with: host, port, time-out, security.

They name the wrong argument before anything is connected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

from kafka.internals.lazy_imports import import_late

if TYPE_CHECKING:
    from kafka.net.security import SecuritySettings

__all__ = ['check_timeout', 'check_types', 'security_of']


def check_types(host: Any, port: Any, timeout: Any) -> None:
    """Name a wrong argument; create_connection() would fail in its own words, or not at all."""
    if not isinstance(host, (str, bytes)):
        raise TypeError('host must be text, not %r' % (host,))
    if not isinstance(port, (int, str)):
        raise TypeError('port must be a number, not %r' % (port,))
    check_timeout(timeout)


def check_timeout(timeout: Any) -> None:
    """Raise TypeError or ValueError unless a socket takes this: seconds, or None for no end."""
    if timeout is None:
        return
    if not isinstance(timeout, (int, float)):
        raise TypeError('timeout must be seconds or None, not %r' % (timeout,))
    if not timeout >= 0:  # which NaN is not either
        raise ValueError('timeout must not be negative: %r' % (timeout,))


def security_of(who: str, options: Dict[str, Any]) -> Optional[SecuritySettings]:
    """Return what options say about security, None for nothing; see SecuritySettings.of_keywords().

    What that takes is loaded by programs that need it: TLS alone is a tenth of the client.
    """
    if not options:
        return None
    settings = import_late('kafka.net.security').SecuritySettings.of_keywords(who, options)
    return settings  # type: ignore[no-any-return]
