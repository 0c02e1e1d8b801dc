"""The serializers of 3.0: text, and JSON.

Each is a deserializer as well.
"""

from __future__ import annotations

import json
from typing import Any, Optional

from kafka.serializer.abstract import Deserializer, Serializer


class DefaultSerializer(Serializer, Deserializer):
    """Converts text to bytes and back; bytes, bytearray, memoryview and None are not changed.

    Raises: AttributeError for other types; UnicodeError if the encoding lacks a character.
    """

    def __init__(self, encoding: str = 'utf-8') -> None:
        self.encoding = encoding

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return text encoded."""
        if data is None or isinstance(data, (bytes, bytearray, memoryview)):
            return data
        return data.encode(self.encoding)

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Optional[str]:
        """Return bytes decoded, None for None."""
        return None if data is None else bytes(data).decode(self.encoding)

    def __repr__(self) -> str:
        return '<%s %s>' % (type(self).__name__, self.encoding)


class JsonSerializer(DefaultSerializer):
    """Converts objects to JSON and back; None and bytes are not changed.

    Raises: TypeError and ValueError as the module json does.
    """

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return an object as encoded JSON."""
        if data is None or isinstance(data, (bytes, bytearray, memoryview)):
            return data
        return json.dumps(data).encode(self.encoding)

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return the object for encoded JSON, None for None."""
        return None if data is None else json.loads(bytes(data).decode(self.encoding))
