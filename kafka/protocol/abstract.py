"""AbstractType: what every type of a schema of 1.x offers.

Owns that contract only; the types are in types.py, what is made of them in struct.py.
"""

from __future__ import annotations

import abc
from typing import Any

__all__ = ['AbstractType']


class AbstractType(abc.ABC):
    """A type that can be written to the wire and read from it (1.x); used as a class."""

    @classmethod
    @abc.abstractmethod
    def encode(cls, value: Any) -> bytes:
        """Return the bytes of a value."""

    @classmethod
    @abc.abstractmethod
    def decode(cls, data: Any) -> Any:
        """Read a value from a stream of bytes."""

    @classmethod
    def repr(cls, value: Any) -> str:
        """Return how a value is shown."""
        return repr(value)
