"""The diagnosis of a message that could not be encoded: which field is invalid, and why.

Compiled writers make only checks that cost nothing and otherwise rely on Python's errors;
compiler.py then calls this module with the message. Simplicity matters more than speed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from kafka.errors import ProtocolError
from kafka.protocol.schema import Field, FieldType, Kind, ListOf, StructMeta

if TYPE_CHECKING:
    from kafka.protocol.wire import Struct

_INTEGER_BITS = {'b': 8, 'h': 16, 'i': 32, 'q': 64, 'H': 16, 'I': 32}


def explain(message: Struct, version: int, flexible: bool) -> ProtocolError:
    """Return the error for a message that could not be encoded, with its first invalid field."""
    name = type(message).__name__
    problem = _struct_problem(type(message), message, version, flexible, name)
    return ProtocolError(problem or '%s cannot be written in version %d' % (name, version))


def _struct_problem(
    cls: StructMeta, value: Any, version: int, flexible: bool, path: str
) -> Optional[str]:
    for field in cls.fields:
        if not field.is_on_wire(version):
            continue
        try:
            content = getattr(value, field.name)
        except AttributeError:
            return '%s must be %s, not %s' % (path, cls.__name__, type(value).__name__)
        problem = _field_problem(field, content, version, flexible, '%s.%s' % (path, field.name))
        if problem:
            return problem
    return None


def _field_problem(
    field: Field, value: Any, version: int, flexible: bool, path: str
) -> Optional[str]:
    if value is None:
        if field.is_nullable(version):
            return None
        return '%s must not be null in version %d' % (path, version)
    problem = _value_problem(field.type, value, version, flexible, path)
    if problem and field.secret:
        return '%s does not fit its type' % path
    return problem


def _value_problem(
    kind: FieldType, value: Any, version: int, flexible: bool, path: str
) -> Optional[str]:
    if isinstance(kind, StructMeta):
        return _struct_problem(kind, value, version, flexible, path)
    if isinstance(kind, ListOf):
        return _list_problem(kind, value, version, flexible, path)
    if kind.name == 'String':
        return _string_problem(value, flexible, path)
    if kind.name in ('Bytes', 'Records', 'Uuid'):
        return _bytes_problem(kind, value, path)
    return _number_problem(kind, value, path)


def _list_problem(
    kind: ListOf, value: Any, version: int, flexible: bool, path: str
) -> Optional[str]:
    if isinstance(value, (str, bytes, bytearray, memoryview, dict)) or not hasattr(
        value, '__iter__'
    ):
        return '%s must be a list, not %s' % (path, type(value).__name__)
    for position, element in enumerate(value):
        where = '%s[%d]' % (path, position)
        problem = _value_problem(kind.element, element, version, flexible, where)
        if problem:
            return problem
    return None


def _string_problem(value: Any, flexible: bool, path: str) -> Optional[str]:
    if not isinstance(value, str):
        return '%s must be str, not %s' % (path, type(value).__name__)
    try:
        size = len(value.encode('utf-8'))
    except UnicodeEncodeError:
        return '%s cannot be encoded as UTF-8' % path
    if size > 32767 and not flexible:
        return '%s must have at most 32767 bytes, got %d' % (path, size)
    return None


def _bytes_problem(kind: Kind, value: Any, path: str) -> Optional[str]:
    try:
        size = memoryview(value).nbytes
    except TypeError:
        return '%s must be bytes, not %s' % (path, type(value).__name__)
    if kind.name == 'Uuid' and size != 16:
        return '%s must have 16 bytes, got %d' % (path, size)
    return None


def _number_problem(kind: Kind, value: Any, path: str) -> Optional[str]:
    if kind.name == 'Float64':
        return None if isinstance(value, (int, float)) else '%s must be a number' % path
    if not hasattr(value, '__index__'):
        expected = 'bool' if kind.name == 'Bool' else 'int'
        return '%s must be %s, not %s' % (path, expected, type(value).__name__)
    number = int(value)
    bits = _INTEGER_BITS.get(kind.format, 8)
    low, high = (0, 1 << bits) if kind.format.isupper() else (-1 << bits - 1, 1 << bits - 1)
    if not low <= number < high:
        return '%s is %d, which does not fit %s' % (path, number, kind.name)
    return None
