"""The elements of message declarations: wire types, version ranges, fields, and the metaclass.

``Kind`` and ``ListOf`` are the wire types; ``StructMeta`` reads the annotations of a class. The
base classes of declarations are in wire.py, compiler.py generates code from them.

Follows the type names of the Kafka protocol guide. Annotations stay strings (every file with
declarations has the ``annotations`` future import) and are read by the small parser below, so that
the same files work on each Python from 3.8 on.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.internals.lazy_imports import import_late

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options):
        """Replace the type checker's decorator, which has no effect at run time."""
        return lambda decorated: decorated


#: "No topic id"; the value of a Uuid field in versions without it.
ZERO_UUID = bytes(16)

_LAST_VERSION = 32767  # versions are int16 on the wire


class Kind:
    """A wire type: its name, its struct format and size if it has a fixed width, its zero value."""

    __slots__ = ('format', 'name', 'size', 'zero')

    def __init__(self, name: str, format: str, size: int, zero: Any) -> None:
        self.name = name
        self.format = format
        self.size = size
        self.zero = zero

    def __repr__(self) -> str:
        return self.name


class ListOf(NamedTuple):
    """The wire type of an array."""

    element: Union[Kind, StructMeta]

    def __repr__(self) -> str:
        return 'List[%r]' % (self.element,)


KINDS = {
    kind.name: kind
    for kind in (
        Kind('Bool', '?', 1, False),
        Kind('Int8', 'b', 1, 0),
        Kind('Int16', 'h', 2, 0),
        Kind('Int32', 'i', 4, 0),
        Kind('Int64', 'q', 8, 0),
        Kind('UInt16', 'H', 2, 0),
        Kind('UInt32', 'I', 4, 0),
        Kind('Float64', 'd', 8, 0.0),
        Kind('Uuid', '16s', 16, ZERO_UUID),
        Kind('String', '', 0, ''),
        Kind('Bytes', '', 0, b''),
        Kind('Records', '', 0, None),
    )
}


class Versions(NamedTuple):
    """A closed range of versions."""

    first: int
    last: int

    def includes(self, version: int) -> bool:
        """Return True if a version is in the range."""
        return self.first <= version <= self.last

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse '3+', '0-4', '7', or '' (all).

        Raises ValueError for anything else.
        """
        match = re.match(r'^(\d+)(?:(\+)|-(\d+))?$', text or '0+')
        if match is None:
            raise ValueError('not a range of versions: %r' % text)
        first, is_open, last = match.groups()
        return cls(int(first), _LAST_VERSION if is_open else int(last or first))


REQUIRED: Any = type('Required', (), {'__repr__': lambda self: '<required>'})()


class Field:
    """One declared field; created from an annotation and its ``v()``."""

    __slots__ = (
        'default',
        'ignorable',
        'name',
        'nullable',
        'required',
        'secret',
        'tag',
        'type',
        'versions',
    )

    name: str
    type: FieldType

    def __init__(
        self,
        versions: str,
        nullable: Optional[str],
        tag: Optional[int],
        default: Any,
        ignorable: bool,
        secret: bool,
    ) -> None:
        self.versions = Versions.parse(versions)
        self.nullable = None if nullable is None else Versions.parse(nullable)
        self.tag = tag
        self.default = default
        self.required = default is REQUIRED
        self.ignorable = ignorable
        self.secret = secret

    def bind(self, name: str, annotation: str, namespace: Mapping[str, Any]) -> None:
        """Set the name, and the type from the annotation.

        Raises TypeError if the annotation is not a wire type or contradicts ``v()``.
        """
        self.name = name
        self.type, optional = _parse_type(annotation, namespace)
        if optional and self.nullable is None:
            self.nullable = self.versions
        if optional == (self.nullable is None):
            raise TypeError('nullable versions need an Optional annotation')
        if self.required:
            self.default = zero_of(self.type)

    def is_on_wire(self, version: int) -> bool:
        """Return True if this version has the field, as a plain or tagged field."""
        return self.versions.includes(version)

    def is_nullable(self, version: int) -> bool:
        """Return True if the field may be null in this version."""
        return self.nullable is not None and self.nullable.includes(version)

    def fresh_default(self) -> Any:
        """Return the default; a new object if it is mutable."""
        if isinstance(self.default, list):
            return list(self.default)
        if isinstance(type(self.default), StructMeta):
            return type(self.default)()
        return self.default


def v(
    versions: str = '',
    *,
    default: Any = REQUIRED,
    nullable: Optional[str] = None,
    tag: Optional[int] = None,
    ignorable: bool = False,
    secret: bool = False,
) -> Any:
    """Specify what the annotation of a field does not express.

    versions: those that have the field: '3+', '0-4', '7'; empty for all of the message.
    default: the value of the field in other versions, and if a caller omits it. A field without
        default is required by the constructor. Lists and structs are created for each message.
    nullable: the versions in which null is allowed; an Optional without it means all.
    tag: the field's tag (KIP-482), for a tagged field.
    ignorable: the value is dropped without an error in versions without the field.
    secret: never show the value in a repr.
    """
    return Field(versions, nullable, tag, default, ignorable, secret)


def _parse_type(annotation: str, namespace: Mapping[str, Any]) -> Tuple[FieldType, bool]:
    """Return the wire type in an annotation, and whether it is Optional."""
    text = annotation.replace(' ', '')
    optional = re.match(r'^Optional\[(.*)\]$', text)
    if optional:
        text = optional.group(1)
    listed = re.match(r'^List\[(.*)\]$', text)
    name = listed.group(1) if listed else text
    kind = KINDS.get(name) or namespace.get(name)
    if not isinstance(kind, (Kind, StructMeta)):
        raise TypeError('not a wire type: %s' % annotation)
    return (ListOf(kind) if listed else kind), bool(optional)


def zero_of(kind: FieldType) -> Any:
    """Return the zero value of a wire type."""
    if isinstance(kind, ListOf):
        return []
    return kind.zero if isinstance(kind, Kind) else None


@dataclass_transform(kw_only_default=True, field_specifiers=(v,))
class StructMeta(type):
    """Collects the fields of a declaration, and creates a slot for each in the class."""

    fields: Tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: Tuple[type, ...], namespace: Dict[str, Any], **options: Any
    ) -> StructMeta:
        fields = []
        if '__slots__' not in namespace:  # the two base classes define their own
            known = vars(sys.modules[namespace['__module__']])
            for field_name, annotation in namespace.get('__annotations__', {}).items():
                field = namespace.pop(field_name, None) or v()
                try:
                    field.bind(field_name, annotation, known)
                except TypeError as error:
                    raise TypeError('%s.%s: %s' % (name, field_name, error)) from None
                fields.append(field)
            namespace['__slots__'] = tuple(field.name for field in fields)
        cls = super().__new__(mcs, name, bases, namespace, **options)
        cls.fields = tuple(fields)
        return cls

    def __init__(
        cls, name: str, bases: Tuple[type, ...], namespace: Dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, namespace)

    # In 1.x and 2.x the name of a message was a list of the classes of its versions, so its class
    # supports that too; see Message.__class_getitem__.

    def __len__(cls) -> int:
        count: int = import_late('kafka.protocol.struct_classes').count_of(cls)
        return count

    def __bool__(cls) -> bool:
        return True

    def __iter__(cls) -> Iterator[Any]:
        return map(cls.__class_getitem__, range(len(cls)))  # type: ignore[attr-defined]


FieldType = Union[Kind, ListOf, StructMeta]
