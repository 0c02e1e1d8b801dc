"""The base classes of custom serializers and deserializers (1.3.2 to 3.0).

The form of the call, ``(topic, data)`` up to 2.3 or ``(topic, headers, data)`` in 3.0, is detected
by the clients.
"""

from __future__ import annotations

from typing import Any


class Serializer:
    """Converts objects to bytes; base class of custom serializers."""

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return data as bytes, or None. Up to 2.3 without headers."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources; called when the client is closed."""


class Deserializer:
    """Converts bytes to objects; base class of custom deserializers."""

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return the object for bytes, or None. Up to 2.3 without headers."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources; called when the client is closed."""
