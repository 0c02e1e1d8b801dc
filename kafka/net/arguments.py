"""Checks of the constructor arguments of blocking clients: host, port, timeout, security options.

They raise an error that names the wrong argument before any connection is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

from kafka.internals.lazy_imports import import_late

if TYPE_CHECKING:
    from kafka.net.security import SecuritySettings

__all__ = ['check_timeout', 'check_types', 'security_of']


def check_types(host: Any, port: Any, timeout: Any) -> None:
    """Raise an error that names an argument of the wrong type.

    socket.create_connection() would raise an unspecific error, or none.
    """
    if not isinstance(host, (str, bytes)):
        raise TypeError('host must be text, not %r' % (host,))
    if not isinstance(port, (int, str)):
        raise TypeError('port must be a number, not %r' % (port,))
    check_timeout(timeout)


def check_timeout(timeout: Any) -> None:
    """Raise TypeError or ValueError unless this is a timeout: seconds, or None for no timeout."""
    if timeout is None:
        return
    if not isinstance(timeout, (int, float)):
        raise TypeError('timeout must be seconds or None, not %r' % (timeout,))
    if not timeout >= 0:  # also rejects NaN
        raise ValueError('timeout must not be negative: %r' % (timeout,))


def security_of(who: str, options: Dict[str, Any]) -> Optional[SecuritySettings]:
    """Return the security settings of keyword options, None without any of these options.

    See SecuritySettings.of_keywords(). Modules for security are imported only if they are needed:
    TLS alone is a tenth of the client.
    """
    if not options:
        return None
    settings = import_late('kafka.net.security').SecuritySettings.of_keywords(who, options)
    return settings  # type: ignore[no-any-return]
