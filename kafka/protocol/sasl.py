"""SaslHandshake (KIP-43) and SaslAuthenticate (KIP-152).

The bytes inside are defined by the mechanisms (kafka.net.sasl).
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import Bytes, Int16, Int64, Message, Route, String, v


class SaslHandshakeRequest(Message, api_key=17, valid='0-1', route=Route.BROKER):
    """Choose the mechanism. Never flexible.

    After v0 the mechanism's bytes are sent as bare frames, after v1 inside SaslAuthenticate.
    """

    mechanism: String


class SaslHandshakeResponse(Message, api_key=17, valid='0-1'):
    """The mechanisms that the broker supports."""

    error_code: Int16
    mechanisms: List[String]


class SaslAuthenticateRequest(Message, api_key=36, valid='0-2', flexible='2+', route=Route.BROKER):
    """One step of the mechanism. v2 is flexible."""

    auth_bytes: Bytes = v(secret=True)


class SaslAuthenticateResponse(Message, api_key=36, valid='0-2', flexible='2+'):
    """The broker's step; v1 adds the session lifetime (KIP-368), v2 is flexible."""

    error_code: Int16
    error_message: Optional[String]
    auth_bytes: Bytes = v(secret=True)
    session_lifetime_ms: Int64 = v('1+', default=0, ignorable=True)


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
