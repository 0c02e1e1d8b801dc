"""Values as 1.x had them, and the same values in declared messages.

Owns the way from one to the other for any declared message and version: arrays as lists, groups of
fields inside arrays as plain tuples, a group of one field as its value. Used by the structs of
SimpleClient (versioned.py) and by those that programs name (struct_classes.py).
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
    """Return the fields that a version has, in the order of the wire."""
    return tuple(field for field in struct.fields if field.is_on_wire(version))


# Values go through functions made once for each kind and version: a look at the kind of each value
# would be dear (benchmarks/simple.py --only default). None stands for values that stay as they are.
Conversion = Optional[Callable[[Any], Any]]


@functools.lru_cache(maxsize=None)
def builder(kind: Any, version: int, records: Callable[[Any], Any]) -> Conversion:
    """Return what makes a value of 1.x one that the declared messages have."""
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
    """Return bytes as text, and anything else as it is."""
    return value.decode('utf-8') if isinstance(value, bytes) else value


@functools.lru_cache(maxsize=None)
def taker(kind: Any, version: int, records: Conversion = None) -> Conversion:
    """Return what makes a value of the declared messages one of 1.x; a message becomes a tuple.

    Arguments: records: what is done with records; None leaves them as they are.
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
    """Return what converts the values of an array, for which None may stand."""
    if convert is None:
        return lambda values: list(values or ())
    # Typed anew, for the function inside.
    each: Callable[[Any], Any] = convert
    return lambda values: [each(value) for value in values or ()]


def _converted(conversions: List[Conversion], values: Iterable[Any]) -> List[Any]:
    return [
        value if convert is None else convert(value) for convert, value in zip(conversions, values)
    ]
