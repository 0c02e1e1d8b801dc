"""The declaration language of messages, and the base classes of declared messages.

Declarations import their names from here; ``Struct`` and ``Message`` implement construction,
equality, repr, encode and decode. Annotations are read by schema.py, compiler.py generates the
code, headers and version selection are in api.py, the messages in the modules of their families.

A declaration is a class whose annotations name wire types, in their order on the wire::

    class HeartbeatRequest(
        Message, api_key=12, valid='0-4', flexible='4+', route=Route.GROUP_COORDINATOR
    ):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: Optional[String] = v('3+', default=None)

Follows the Kafka protocol guide, KIP-482 (flexible versions, tagged fields) and the semantics of
Apache Kafka's message generator: in a version without a field the field has its default, and a
value other than the default cannot be written there unless the field is ignorable.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, ClassVar, Dict, List, Mapping, Optional, Type, TypeVar, Union

from kafka.errors import ProtocolError
from kafka.internals.lazy_imports import import_late
from kafka.protocol import compiler
from kafka.protocol.schema import KINDS, ZERO_UUID, Field, StructMeta, Versions, v

__all__ = [
    'ZERO_UUID',
    'Bool',
    'Bytes',
    'Float64',
    'Int8',
    'Int16',
    'Int32',
    'Int64',
    'Message',
    'Records',
    'Route',
    'String',
    'Struct',
    'UInt16',
    'UInt32',
    'Uuid',
    'v',
]

Buffer = Union[bytes, bytearray, memoryview]

if TYPE_CHECKING:
    Bool = bool
    Int8 = int
    Int16 = int
    Int32 = int
    Int64 = int
    UInt16 = int
    UInt32 = int
    Float64 = float
    Uuid = bytes  # the 16 raw bytes
    String = str
    Bytes = bytes
    Records = Buffer
else:
    globals().update(KINDS)


class Route(enum.Enum):
    """The broker that must receive a request."""

    ANY = 'any'  # brokers forward it if needed
    BROKER = 'broker'  # a certain one, chosen by the caller, or each
    LEADER = 'leader'  # of the partitions in the request
    CONTROLLER = 'controller'  # with KRaft any broker, which forwards it
    GROUP_COORDINATOR = 'group coordinator'
    TRANSACTION_COORDINATOR = 'transaction coordinator'


class Struct(metaclass=StructMeta):
    """A struct inside a message.

    Constructed with keywords, or positionally in the order of the declaration; TypeError for an
    unknown, repeated or missing field. Fields are plain attributes. Structs of the same class with
    equal fields and unknown tags are equal.
    """

    __slots__ = ('unknown_tags',)

    if TYPE_CHECKING:

        @property
        def unknown_tags(self) -> Mapping[int, bytes]:
            """Tagged fields that are not declared; they are kept and encoded again (KIP-482)."""

        @unknown_tags.setter
        def unknown_tags(self, tags: Mapping[int, bytes]) -> None: ...

    else:

        def __init__(self, *values, **named):
            """Generate the constructor of the class and call it; later calls use it directly."""
            cls = type(self)
            cls.__init__ = compiler.constructor(cls)
            cls.__init__(self, *values, **named)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Struct)
        return self.unknown_tags == other.unknown_tags and all(
            getattr(self, field.name) == getattr(other, field.name) for field in type(self).fields
        )

    __hash__ = None  # type: ignore[assignment]  # fields are mutable

    def __repr__(self) -> str:
        shown = ['%s=%s' % (field.name, self._show(field)) for field in type(self).fields]
        if self.unknown_tags:
            shown.append('unknown_tags=%s' % sorted(self.unknown_tags))
        return '%s(%s)' % (type(self).__name__, ', '.join(shown))

    def _show(self, field: Field) -> str:
        value = getattr(self, field.name)
        if field.secret and value:
            return '<hidden>'
        if field.type is KINDS['Records'] and value is not None:
            return '<%d bytes>' % len(value)
        return repr(value)


M = TypeVar('M', bound='Message')


class Message(Struct):
    """A request, a response, or another structure with its own versions.

    Class keywords of a declaration: ``api_key`` (absent for data inside other messages),
    ``valid`` (the versions that exist), ``flexible`` (those with compact types and tagged fields)
    and, for requests, ``route``.
    """

    __slots__ = ()

    api_key: ClassVar[Optional[int]]
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_from: ClassVar[Optional[int]]
    route: ClassVar[Optional[Route]]
    encoders: ClassVar[Dict[int, Any]]  # by version, filled by the compiler
    decoders: ClassVar[Dict[int, Any]]

    def __init_subclass__(
        cls,
        *,
        valid: str,
        api_key: Optional[int] = None,
        flexible: Optional[str] = None,
        route: Optional[Route] = None,
    ) -> None:
        super().__init_subclass__()
        cls.api_key = api_key
        cls.min_version, cls.max_version = Versions.parse(valid)
        cls.flexible_from = None if flexible is None else Versions.parse(flexible).first
        cls.route = route
        cls.encoders = {}
        cls.decoders = {}

    def __class_getitem__(cls, version: int) -> Any:
        """Return the class of one version with the fields of 1.x: MetadataResponse[0].

        Raises: IndexError for a version that is not available in that form.
        """
        return import_late('kafka.protocol.struct_classes').class_of(cls, version)

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Return True if this version has compact types and tagged fields."""
        return cls.flexible_from is not None and version >= cls.flexible_from

    @classmethod
    def check_version(cls, version: int) -> None:
        """Raise ProtocolError if the message lacks this version, TypeError unless it is an int."""
        if not isinstance(version, int):
            raise TypeError('version must be an int, not %s' % type(version).__name__)
        if not cls.min_version <= version <= cls.max_version:
            raise ProtocolError(
                '%s has versions %d to %d, not %r'
                % (cls.__name__, cls.min_version, cls.max_version, version)
            )

    def encode(self, version: int) -> bytes:
        """Return the body of the message, without header or length.

        Raises ProtocolError, naming the field, for a value that is invalid or does not exist in
        this version, and for an unknown version.
        """
        return compiler.encode(self, version)

    def encode_parts(self, version: int) -> List[bytes]:
        """Return the parts of the result of ``encode``; records are not copied.

        Raises as ``encode``.
        """
        return compiler.encode_parts(self, version)

    @classmethod
    def decode(cls: Type[M], data: Buffer, version: int) -> M:
        """Decode a body that fills ``data`` completely. Records are views into ``data``.

        Raises BufferUnderflowError for bytes that end too early, ProtocolError for malformed bytes
        and for an unknown version.
        """
        return cls.decode_from(data, 0, version)

    @classmethod
    def decode_from(cls: Type[M], data: Buffer, start: int, version: int) -> M:
        """Decode a body that begins at ``start`` and fills the rest of ``data``; as ``decode``."""
        return compiler.decode(cls, data, start, version)

    @classmethod
    def encode_source(cls, version: int) -> str:
        """Return the Python code that encodes this version."""
        cls.check_version(version)
        return compiler.encode_source(cls, version)

    @classmethod
    def decode_source(cls, version: int) -> str:
        """Return the Python code that decodes this version."""
        cls.check_version(version)
        return compiler.decode_source(cls, version)
