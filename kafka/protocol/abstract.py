"""AbstractType: the interface of the types in the schemas of 1.x.

The types are in types.py; struct.py builds structs of them.
"""

from __future__ import annotations

import abc
from typing import Any

__all__ = ['AbstractType']


class AbstractType(abc.ABC):
    """A type with a wire format (1.x); its class methods are used."""

    @classmethod
    @abc.abstractmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a value."""

    @classmethod
    @abc.abstractmethod
    def decode(cls, data: Any) -> Any:
        """Read a value from a stream."""

    @classmethod
    def repr(cls, value: Any) -> str:
        """Return the representation of a value."""
        return repr(value)
