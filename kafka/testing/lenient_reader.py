"""A decoder of requests as lenient as brokers: ignores bytes after the last field and bad UTF-8.

Called by connection.py for frames that the strict decoder of :mod:`kafka.protocol` refuses, and to
count the parts of large ones. Reads field by field along the declarations, which is slow.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Optional, Tuple

from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.protocol.api import RequestHeader, request_class
from kafka.protocol.primitives import MAX_ELEMENTS, MAX_TAGS, read_uvarint
from kafka.protocol.schema import KINDS, Field, FieldType, Kind, ListOf, StructMeta, zero_of
from kafka.protocol.wire import Message

_START = struct.Struct('>hhi')  # API key, version, correlation id
_LENGTHS = {'String': struct.Struct('>h')}
_LENGTH = struct.Struct('>i')


class TooManyParts(ProtocolError):
    """A request has more tags and list elements than allowed."""


def read_leniently(
    data: bytes,
    version: Optional[int] = None,
    takes_null: bool = False,
    most_parts: Optional[int] = None,
) -> Tuple[RequestHeader, Message]:
    """Decode a request up to its last field, with U+FFFD for invalid UTF-8.

    Arguments: data: the frame; version: to decode as, instead of the one in the header;
        takes_null: decode null strings and bytes as empty if the field is not nullable;
        most_parts: the limit of tags and list elements.
    Returns: a header with that version, and the message.
    Raises: BufferUnderflowError, ProtocolError if no broker can decode it; TooManyParts.
    """
    try:
        api_key, named, correlation_id = _START.unpack_from(data)
        cls = request_class(api_key)
        known = named if version is None else version
        cls.check_version(known)
        # The header's client id has the non-flexible format in all versions.
        header = _Reader(data, _START.size, known, False, takes_null)
        client_id = header.value(KINDS['String'], True)
        is_flexible = cls.is_flexible(known)
        body = _Reader(data, header.pos, known, is_flexible, takes_null)
        body.parts_left = most_parts
        if is_flexible:
            body.tags()
        return RequestHeader(api_key, known, correlation_id, client_id), body.struct(cls)
    except (struct.error, IndexError) as error:
        raise BufferUnderflowError('the request ends too early') from error


class _Reader:
    """The decoder of one message at ``pos``. Raises struct.error, IndexError at the end."""

    def __init__(
        self, data: bytes, pos: int, version: int, is_flexible: bool, takes_null: bool
    ) -> None:
        self.pos = pos
        self._data = data
        self._version = version
        self._is_flexible = is_flexible
        self._takes_null = takes_null
        self.parts_left: Optional[int] = None  # the remaining number, None for no limit

    def struct(self, cls: StructMeta) -> Any:
        """Decode the fields of a struct."""
        version = self._version
        values: Dict[str, Any] = {}
        for field in cls.fields:
            if field.required:
                values[field.name] = zero_of(field.type)
            if field.is_on_wire(version) and field.tag is None:
                values[field.name] = self.value(field.type, field.is_nullable(version))
        tags = self.tags() if self._is_flexible else {}
        for field in cls.fields:
            if field.tag is not None and field.tag in tags and field.is_on_wire(version):
                values[field.name] = self._tagged(field, tags.pop(field.tag))
        made = cls(**values)
        if tags:
            made.unknown_tags = tags
        return made

    def tags(self) -> Dict[int, bytes]:
        """Decode a tagged section; return the raw values by tag, of duplicates the last."""
        count, self.pos = read_uvarint(self._data, self.pos)
        self._count(count)
        if count > MAX_TAGS:
            raise ProtocolError('%d tagged fields' % count)
        tags: Dict[int, bytes] = {}
        for _ in range(count):
            tag, self.pos = read_uvarint(self._data, self.pos)
            size, self.pos = read_uvarint(self._data, self.pos)
            tags[tag] = self._take(size)
        return tags

    def _take(self, size: int) -> bytes:
        end = self.pos + size
        if end > len(self._data):
            raise BufferUnderflowError('%d bytes, and the request ends before' % size)
        taken, self.pos = self._data[self.pos : end], end
        return taken

    def _tagged(self, field: Field, data: bytes) -> Any:
        inner = _Reader(data, 0, self._version, True, self._takes_null)
        inner.parts_left = self.parts_left
        value = inner.value(field.type, field.is_nullable(self._version))
        self.parts_left = inner.parts_left
        return value

    def _count(self, parts: int) -> None:
        if self.parts_left is not None:
            self.parts_left -= parts
            if self.parts_left < 0:
                raise TooManyParts('a request of too many parts')

    def value(self, kind: FieldType, is_nullable: bool) -> Any:
        """Decode a value of any type."""
        if isinstance(kind, Kind) and kind.format:
            (number,) = struct.unpack_from('>' + kind.format, self._data, self.pos)
            self.pos += kind.size
            return number
        if isinstance(kind, StructMeta):
            return (
                None if is_nullable and self.value(KINDS['Int8'], False) < 0 else self.struct(kind)
            )
        size = self._size(kind)
        if size < 0:
            return self._null(kind, is_nullable)
        if isinstance(kind, ListOf):
            if size > min(MAX_ELEMENTS, len(self._data) - self.pos):
                raise ProtocolError('a list of %d elements' % size)
            self._count(size)
            return [self.value(kind.element, False) for _ in range(size)]
        taken = self._take(size)
        return taken.decode('utf-8', 'replace') if kind is KINDS['String'] else taken

    def _size(self, kind: Any) -> int:
        """Decode the length of a string, of bytes or of a list."""
        if self._is_flexible:
            size, self.pos = read_uvarint(self._data, self.pos)
            return size - 1
        layout = _LENGTHS.get(getattr(kind, 'name', ''), _LENGTH)
        (size,) = layout.unpack_from(self._data, self.pos)
        self.pos += layout.size
        return int(size)

    def _null(self, kind: Any, is_nullable: bool) -> Any:
        """Return the value for a negative length, all of which mean null."""
        if is_nullable:
            return None
        if self._takes_null and isinstance(kind, Kind):
            return zero_of(kind) if kind.zero is not None else b''
        raise ProtocolError('null where there is none')
