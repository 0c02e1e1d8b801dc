"""The classes of 1.x and 2.x for each version of a request or response.

They are made from the declared messages: the schema, with the field names of that time
(struct_names.py), and the conversion from and to the declared message, so that a request can be
sent in another version than the program chose. They exist for all versions without tagged fields
(KIP-482), and for messages that always had those for all versions, as in 2.x.

The records of Produce 0 to 2 and Fetch 0 to 3 are message sets: lists of (offset, encoded message)
in requests, of (offset, size, Message) in responses. In later versions they are bytes.
"""

from __future__ import annotations

import io
from typing import Any, ClassVar, Dict, List, Optional, Tuple, Type, TypeVar

from kafka.protocol import api
from kafka.protocol.frames import frame
from kafka.protocol.message import MessageSet
from kafka.protocol.plain_values import builder, fields_of, taker, text_of
from kafka.protocol.schema import Field, Kind, ListOf, StructMeta
from kafka.protocol.struct import Struct
from kafka.protocol.struct_names import HOMES, field_names
from kafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactBytes,
    CompactString,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    SecretBytes,
    SecretString,
    String,
    TaggedFields,
    UInt16,
    UInt32,
    Uuid,
)
from kafka.protocol.wire import Message

__all__ = ['Request', 'Response', 'VersionList', 'class_of', 'count_of', 'versions_of']

R = TypeVar('R', bound='Response')

_NUMBERS = {
    'Bool': Boolean,
    'Int8': Int8,
    'Int16': Int16,
    'Int32': Int32,
    'Int64': Int64,
    'UInt16': UInt16,
    'UInt32': UInt32,
    'Float64': Float64,
    'Uuid': Uuid,
}
_TEXT, _COMPACT_TEXT, _SECRET_TEXT = String('utf-8'), CompactString('utf-8'), SecretString('utf-8')

#: The last versions whose records are message sets, by API key.
LAST_MESSAGE_SETS = {0: 2, 1: 3}

_CONSTANTS: Dict[str, Dict[str, Any]] = {
    'OffsetCommitRequest': {'DEFAULT_GENERATION_ID': -1, 'DEFAULT_RETENTION_TIME': -1},
    'JoinGroupRequest': {'UNKNOWN_MEMBER_ID': ''},
}

# Fields that 2.x grouped in another way than the declaration.
_NEW_PARTITIONS = Schema(('count', Int32), ('assignment', Array(Array(Int32))))
_OWN_SCHEMAS = {
    'CreatePartitionsRequest': Schema(
        ('topic_partitions', Array(('topic', _TEXT), ('new_partitions', _NEW_PARTITIONS))),
        ('timeout', Int32),
        ('validate_only', Boolean),
    )
}


class _OfVersion(Struct):
    """A message in one version."""

    API_KEY: ClassVar[int]
    API_VERSION: ClassVar[int]
    DECLARED: ClassVar[Optional[Type[Message]]] = None  # None: there is no declared message

    def declared(self) -> Message:
        """Return the declared message with these values.

        Raises ValueError or TypeError for invalid values, and for a class that a program defined
        itself.
        """
        if self.DECLARED is None:
            raise ValueError('%s has no declared message' % type(self).__name__)
        build: Any = builder(self.DECLARED, self.API_VERSION, _written)
        values = self._values()
        built: Message = build(values[0] if len(values) == 1 else values)
        return built


class Request(_OfVersion):
    """A request in one version (1.x); programs may derive their own with these attributes.

    Attributes of the class: API_KEY, API_VERSION, SCHEMA, RESPONSE_TYPE.
    """

    RESPONSE_TYPE: ClassVar[Any]
    FLEXIBLE: ClassVar[bool] = False

    def expect_response(self) -> bool:
        """Return True if brokers respond (2.x): to all requests except Produce with acks 0."""
        return self.API_KEY != 0 or getattr(self, 'required_acks', None) != 0

    def unwritten(self) -> Message:
        """Return the same as declared(); called by RequestConnection."""
        return self.declared()

    def framed(self, correlation_id: int, client_id: Any) -> bytes:
        """Return the request with its header and length prefix; client_id: str or bytes."""
        header = api.RequestHeader(self, correlation_id, text_of(client_id))
        return frame(header.encode() + self.encode())


class Response(_OfVersion):
    """A response in one version (1.x)."""

    @classmethod
    def of(cls: Type[R], message: Message) -> R:
        """Return a declared message, possibly received in another version, as this class."""
        assert cls.DECLARED is not None
        is_set = cls.API_VERSION <= LAST_MESSAGE_SETS.get(cls.API_KEY, -1)
        take: Any = taker(cls.DECLARED, cls.API_VERSION, _read_set if is_set else _read_bytes)
        return cls(*take(message))


def _written(records: Any) -> Any:
    """Return records as bytes: a message set may have any form that its encode() accepts."""
    if records is None or isinstance(records, (bytes, bytearray, memoryview)):
        return records
    encoded = MessageSet.encode(records, size=False)
    return encoded[4:] if isinstance(records, io.BytesIO) else encoded


def _read_set(records: Any) -> Any:
    data = bytes(records or b'')
    return MessageSet.decode(data, bytes_to_read=len(data))


def _read_bytes(records: Any) -> Any:
    return None if records is None else bytes(records)


# ---------------------------------------------------------------- schemas


def _key(declared: Type[Message]) -> int:
    return -1 if declared.api_key is None else declared.api_key


class _Schemas:
    """Builds the schema of one message in one version."""

    def __init__(self, declared: Type[Message], version: int, name: str) -> None:
        self._version = version
        self._is_flexible = declared.is_flexible(version)
        self._is_set = version <= LAST_MESSAGE_SETS.get(_key(declared), -1)
        self._outer, self._inner = field_names(declared.__name__, name)

    def of(self, struct: StructMeta) -> Schema:
        """Return the schema of the message."""
        return Schema(*self._fields(struct, self._outer))

    def _fields(
        self, struct: StructMeta, names: Dict[str, str], within: str = ''
    ) -> List[Tuple[str, Any]]:
        fields = [
            (self._called(field.name, names, within), self._type(field))
            for field in fields_of(struct, self._version)
            if field.tag is None
        ]
        return [*fields, ('tags', TaggedFields)] if self._is_flexible else fields

    def _called(self, name: str, names: Dict[str, str], within: str) -> str:
        return names.get('%s.%s' % (within, name)) or names.get(name, name)

    def _type(self, field: Field) -> Any:
        if isinstance(field.type, ListOf):
            array = CompactArray if self._is_flexible else Array
            return array(*self._element(field.type.element, field.name))
        return self._plain(field.type, field.secret)

    def _element(self, kind: Any, name: str) -> List[Any]:
        """Return the arguments of an array: fields, or a single type if there is one field only."""
        if isinstance(kind, Kind):
            return [self._plain(kind, False)]
        fields = self._fields(kind, self._inner, name)
        return [fields[0][1]] if len(fields) == 1 else fields

    def _plain(self, kind: Any, is_secret: bool) -> Any:
        if isinstance(kind, StructMeta):
            return Schema(*self._fields(kind, self._inner))
        if kind.name in _NUMBERS:
            return _NUMBERS[kind.name]
        if kind.name == 'String':
            if is_secret and not self._is_flexible:
                return _SECRET_TEXT
            return _COMPACT_TEXT if self._is_flexible else _TEXT
        if kind.name == 'Records' and self._is_set:
            return MessageSet
        if self._is_flexible:
            return CompactBytes
        return SecretBytes if is_secret else Bytes


# ---------------------------------------------------------------- classes

_classes: Dict[Tuple[Type[Message], int, str], Type[_OfVersion]] = {}


def count_of(declared: Type[Message]) -> int:
    """Return the number of available versions of a message; the first is 0."""
    if not declared.flexible_from:  # None: never; 0: always
        return declared.max_version + 1
    return declared.flexible_from


def class_of(declared: Type[Message], version: int, stem: Optional[str] = None) -> Any:
    """Return the class of one version; negative numbers count from the last.

    Arguments: stem: its name without Request or Response, if it differs from the declaration.
    Raises IndexError for a version that is not available.
    """
    count = count_of(declared)
    if not isinstance(version, int) or not -count <= version < count:
        raise IndexError('%s has no version %r here' % (declared.__name__, version))
    version %= count
    kind = 'Request' if declared.__name__.endswith('Request') else 'Response'
    stem = stem or declared.__name__[: -len(kind)]
    made = _classes.get((declared, version, stem))
    if made is None:
        made = _make(declared, version, stem, kind)
        made = _classes.setdefault((declared, version, stem), made)
    return made


def _make(declared: Type[Message], version: int, stem: str, kind: str) -> Type[_OfVersion]:
    name = '%s%s_v%d' % (stem, kind, version)
    own = _OWN_SCHEMAS.get(declared.__name__)
    is_flexible = declared.is_flexible(version)
    module = HOMES.get(stem)
    contents: Dict[str, Any] = {
        '__doc__': '%s in version %d, as in 1.x or 2.x.' % (stem + kind, version),
        '__module__': declared.__module__ if module is None else 'kafka.protocol.' + module,
        '__qualname__': name,
        'API_KEY': declared.api_key,
        'API_VERSION': version,
        'DECLARED': None if own or is_flexible else declared,
        'SCHEMA': own or _Schemas(declared, version, name).of(declared),
        **_CONSTANTS.get(declared.__name__, {}),
    }
    if kind == 'Response':
        return type(name, (Response,), contents)
    assert declared.api_key is not None
    answer = api.response_class(declared.api_key)
    contents['RESPONSE_TYPE'] = class_of(answer, version, stem)
    contents['FLEXIBLE'] = is_flexible
    return type(name, (Request,), contents)


class VersionList(List[Any]):
    """The classes of a message, by version."""

    def __init__(self, declared: Type[Message], stem: str) -> None:
        super().__init__(class_of(declared, each, stem) for each in range(count_of(declared)))


_lists: Dict[Tuple[int, str, str], VersionList] = {}


def versions_of(api_key: int, stem: str, kind: str) -> VersionList:
    """Return the classes with this name; kind: Request or Response."""
    found = _lists.get((api_key, stem, kind))
    if found is None:
        declared = api.request_class if kind == 'Request' else api.response_class
        found = _lists.setdefault((api_key, stem, kind), VersionList(declared(api_key), stem))
    return found
