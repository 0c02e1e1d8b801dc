"""The serializers that 3.0 brings: text, and JSON.

Each does both ways.
"""

from __future__ import annotations

import json
from typing import Any, Optional

from kafka.serializer.abstract import Deserializer, Serializer


class DefaultSerializer(Serializer, Deserializer):
    """Text to bytes and back; bytes, bytearray, memoryview and None pass as they are.

    Raises: AttributeError for anything else; UnicodeError for what the encoding has not.
    """

    def __init__(self, encoding: str = 'utf-8') -> None:
        self.encoding = encoding

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return text as bytes."""
        if data is None or isinstance(data, (bytes, bytearray, memoryview)):
            return data
        return data.encode(self.encoding)

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Optional[str]:
        """Return bytes as text, None as None."""
        return None if data is None else bytes(data).decode(self.encoding)

    def __repr__(self) -> str:
        return '<%s %s>' % (type(self).__name__, self.encoding)


class JsonSerializer(DefaultSerializer):
    """What JSON can hold to bytes and back; None and bytes pass as they are.

    Raises: TypeError and ValueError as the module json does.
    """

    def serialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return JSON as bytes."""
        if data is None or isinstance(data, (bytes, bytearray, memoryview)):
            return data
        return json.dumps(data).encode(self.encoding)

    def deserialize(self, topic: Any, headers: Any, data: Any) -> Any:
        """Return what the JSON in bytes stands for, None for None."""
        return None if data is None else json.loads(bytes(data).decode(self.encoding))
