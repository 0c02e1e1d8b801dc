"""Struct: values with the field names of a schema, as in requests and responses of 1.x.

It is constructed, compared, encoded and decoded by its schema. The schemas of requests and
responses are made in struct_classes.py.
"""

from __future__ import annotations

import io
from typing import Any, Callable, ClassVar, Dict, List, Type, TypeVar

from kafka.protocol.abstract import AbstractType
from kafka.protocol.types import Array, Schema

__all__ = ['Struct']

S = TypeVar('S', bound='Struct')


class _Encode:
    """``encode`` of a struct, called on the class with values, or on an object."""

    __name__ = 'encode'

    def __get__(self, instance: Any, cls: Any) -> Callable[..., bytes]:
        def encode(item: Any = None) -> bytes:
            """Return the bytes. Raises ValueError for a value that does not fit."""
            values: Any = item
            if instance is not None and item is None:
                values = instance._values()
            encoded: bytes = cls.SCHEMA.encode(values)
            return encoded

        return encode


class Struct(AbstractType):
    """Values with the field names of a schema (1.x): all positionally, or any by keyword.

    A missing one is None, which fails when it is encoded. Fields are attributes. Structs of the
    same schema with equal values are equal. Raises ValueError for another number of values or a
    name that is not in the schema.
    """

    SCHEMA: ClassVar[Any] = Schema()

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self.SCHEMA.names
        if values and (len(values) != len(names) or named):
            raise ValueError('%s has the fields %s' % (type(self).__name__, list(names)))
        unknown = named.keys() - set(names)
        if unknown:
            raise ValueError(
                '%s has no field %s, only %s'
                % (type(self).__name__, ', '.join(sorted(unknown)), list(names))
            )
        if values:
            vars(self).update(zip(names, values))
        else:
            vars(self).update({name: named.get(name) for name in names})

    encode: Any = _Encode()

    @classmethod
    def decode(cls: Type[S], data: Any) -> S:
        """Read a struct from bytes or a stream. Raises ValueError if they end too early."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = io.BytesIO(data)
        return cls(*cls.SCHEMA.decode(data))

    def _values(self) -> List[Any]:
        return [getattr(self, name) for name in self.SCHEMA.names]

    def get_item(self, name: str) -> Any:
        """Return a field by its name (2.x). Raises KeyError for an unknown one."""
        if name not in self.SCHEMA.names:
            raise KeyError('%s is not a field of %s' % (name, type(self).__name__))
        return getattr(self, name)

    def to_object(self) -> Dict[str, Any]:
        """Return the values as dicts and lists, under their names (1.4.5)."""
        return _to_object(self.SCHEMA, self._values())  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct) or other.SCHEMA is not self.SCHEMA:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name, None) for name in self.SCHEMA.names)

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        shown = [
            '%s=%s' % (name, kind.repr(getattr(self, name)))
            for name, kind in zip(self.SCHEMA.names, self.SCHEMA.fields)
        ]
        return '%s(%s)' % (type(self).__name__, ', '.join(shown))


def _to_object(kind: Any, value: Any) -> Any:
    if isinstance(kind, Schema) and value is not None:
        return {
            name: _to_object(field, each)
            for name, field, each in zip(kind.names, kind.fields, value)
        }
    if isinstance(kind, Array) and value is not None:
        return [_to_object(kind.array_of, each) for each in value]
    return value
