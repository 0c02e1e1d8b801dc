"""What turns keys and values into bytes and back; bases for those of programs (1.3.2 to 3.0).

Owns the calls. Which form one of a program has, ``(topic, data)`` up to 2.3 or ``(topic, headers,
data)`` in 3.0, is looked at where it is used.
"""

from __future__ import annotations

from typing import Any


class Serializer:
    """Makes bytes; base for serializers of programs."""

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return data as bytes, or None. Up to 2.3 without headers."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it holds; called when the client is closed."""


class Deserializer:
    """Reads bytes; base for deserializers of programs."""

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return what bytes, or None, stand for. Up to 2.3 without headers."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it holds; called when the client is closed."""
