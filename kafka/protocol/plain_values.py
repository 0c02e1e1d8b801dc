"""The conversion between values of 1.x and values of declared messages.

For any declared message and version: arrays are lists, structs inside arrays are plain tuples, a
struct of one field is its value. Used by the structs of SimpleClient (versioned.py) and by those
that programs name (struct_classes.py).
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Iterable, List, Optional, Tuple

from kafka.protocol.schema import Field, ListOf, StructMeta
from kafka.protocol.wire import Message

__all__ = ['builder', 'fields_of', 'taker', 'text_of']


@functools.lru_cache(maxsize=None)
def fields_of(struct: StructMeta, version: int) -> Tuple[Field, ...]:
    """Return the fields of a version, in their order on the wire."""
    return tuple(field for field in struct.fields if field.is_on_wire(version))


# Values are converted by functions that are created once per type and version; a check of each
# value's type would be slow (benchmarks/simple.py --only default). None: no conversion.
Conversion = Optional[Callable[[Any], Any]]


@functools.lru_cache(maxsize=None)
def builder(kind: Any, version: int, records: Callable[[Any], Any]) -> Conversion:
    """Return the conversion of a value of 1.x to one of declared messages."""
    if isinstance(kind, ListOf):
        return _of_each(builder(kind.element, version, records))
    if isinstance(kind, StructMeta):
        return _struct_builder(kind, version, records)
    if kind.name == 'String':
        return text_of
    return records if kind.name == 'Records' else None


def _struct_builder(kind: StructMeta, version: int, records: Callable[[Any], Any]) -> Conversion:
    names = [field.name for field in fields_of(kind, version)]
    builders = [
        _or_none(builder(field.type, version, records), field.is_nullable(version))
        for field in fields_of(kind, version)
    ]
    are_same = not any(builders)

    def build(value: Any) -> Any:
        values = (value,) if len(names) == 1 else value
        if len(values) != len(names):
            raise ValueError('%r is not %s' % (value, names))
        if not are_same:
            values = _converted(builders, values)
        return kind(**dict(zip(names, values)))

    return build


def _or_none(convert: Conversion, is_nullable: bool) -> Conversion:
    if convert is None or not is_nullable:
        return convert
    each: Callable[[Any], Any] = convert
    return lambda value: None if value is None else each(value)


def text_of(value: Any) -> Any:
    """Return bytes decoded to text, and anything else unchanged."""
    return value.decode('utf-8') if isinstance(value, bytes) else value


@functools.lru_cache(maxsize=None)
def taker(kind: Any, version: int, records: Conversion = None) -> Conversion:
    """Return the conversion of a value of declared messages to one of 1.x; a message is a tuple.

    Arguments: records: the conversion of records; None leaves them unchanged.
    """
    if isinstance(kind, ListOf):
        return _of_each(taker(kind.element, version, records))
    if not isinstance(kind, StructMeta):
        return records if kind.name == 'Records' else None
    fields = fields_of(kind, version)
    takers = [taker(field.type, version, records) for field in fields]
    get: Callable[[Any], Any] = operator.attrgetter(*[field.name for field in fields])
    if len(fields) == 1:
        (take,) = takers
        is_message = issubclass(kind, Message)

        def take_alone(value: Any) -> Any:
            alone = get(value) if take is None else take(get(value))
            return (alone,) if is_message else alone

        return take_alone
    if not any(takers):
        return get
    return lambda value: tuple(_converted(takers, get(value)))


def _of_each(convert: Conversion) -> Callable[[Any], List[Any]]:
    """Return the conversion of the values of an array; None is an empty array."""
    if convert is None:
        return lambda values: list(values or ())
    # Not None, for the type of the inner function.
    each: Callable[[Any], Any] = convert
    return lambda values: [each(value) for value in values or ()]


def _converted(conversions: List[Conversion], values: Iterable[Any]) -> List[Any]:
    return [
        value if convert is None else convert(value) for convert, value in zip(conversions, values)
    ]
