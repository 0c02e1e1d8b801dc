"""The schema walked field by field: slow, obvious, and written without a look at the compiler.

The oracle of ``kafka.protocol.compiler``. It shares the declarations with it and nothing else:
numbers are put together byte by byte, every length is read on its own, nothing is merged.
Well-formed input only; what becomes of bad input is tested on the compiled code.
"""

from __future__ import annotations

import struct

from kafka.protocol.schema import Kind, ListOf

WIDTHS = {
    'Int8': (1, True),
    'Int16': (2, True),
    'Int32': (4, True),
    'Int64': (8, True),
    'UInt16': (2, False),
    'UInt32': (4, False),
}


def encode(message, version):
    """Return the body of a message."""
    flexible = type(message).is_flexible(version)
    return b''.join(encode_struct(type(message), message, version, flexible))


def decode(cls, data, version):
    """Return the message that a body holds."""
    source = Source(bytes(data))
    message = decode_struct(cls, source, version, cls.is_flexible(version))
    assert source.data == b'', 'bytes are left'
    return message


# --- writing ------------------------------------------------------------------------------------


def encode_struct(cls, value, version, flexible):
    tagged = dict(value.unknown_tags)
    for field in cls.fields:
        content = getattr(value, field.name)
        if not field.is_on_wire(version):
            assert field.ignorable or content == field.default, field.name
        elif field.tag is None:
            yield from encode_value(field, field.type, content, version, flexible)
        elif content != field.default:
            parts = encode_value(field, field.type, content, version, flexible)
            tagged[field.tag] = b''.join(parts)
    if flexible:
        yield encode_uvarint(len(tagged))
        for tag, raw in sorted(tagged.items()):
            yield encode_uvarint(tag)
            yield encode_uvarint(len(raw))
            yield raw
    else:
        assert not tagged


def encode_value(field, kind, value, version, flexible):
    if value is None:
        assert field.is_nullable(version), field.name
    if isinstance(kind, ListOf):
        yield encode_length(None if value is None else len(value), 4, flexible)
        for element in value or ():
            assert element is not None
            yield from encode_value(field, kind.element, element, version, flexible)
    elif not isinstance(kind, Kind):
        if kind is field.type and field.is_nullable(version):
            yield b'\xff' if value is None else b'\x01'
        if value is not None:
            yield from encode_struct(kind, value, version, flexible)
    elif kind.name in ('String', 'Bytes', 'Records'):
        raw = value.encode('utf-8') if isinstance(value, str) else value
        width = 2 if kind.name == 'String' else 4
        yield encode_length(None if raw is None else len(raw), width, flexible)
        yield b'' if raw is None else bytes(raw)
    else:
        yield encode_number(kind, value)


def encode_number(kind, value):
    if kind.name == 'Bool':
        return b'\x01' if value else b'\x00'
    if kind.name == 'Float64':
        return struct.pack('>d', value)
    if kind.name == 'Uuid':
        assert len(value) == 16
        return value
    width, signed = WIDTHS[kind.name]
    return value.to_bytes(width, 'big', signed=signed)


def encode_length(length, width, flexible):
    if flexible:
        return encode_uvarint(0 if length is None else length + 1)
    return (-1 if length is None else length).to_bytes(width, 'big', signed=True)


def encode_uvarint(value):
    if value < 128:
        return bytes([value])
    return bytes([128 + value % 128]) + encode_uvarint(value // 128)


# --- reading ------------------------------------------------------------------------------------


class Source:
    """Bytes that get fewer as they are taken."""

    def __init__(self, data):
        self.data = data

    def take(self, size):
        assert size <= len(self.data), 'bytes end too early'
        taken, self.data = self.data[:size], self.data[size:]
        return taken


def decode_struct(cls, source, version, flexible):
    values = {}
    for field in cls.fields:
        if field.is_on_wire(version) and field.tag is None:
            values[field.name] = decode_value(field, field.type, source, version, flexible)
        else:
            values[field.name] = field.default
    tags = decode_tags(source) if flexible else {}
    for field in cls.fields:
        if field.tag in tags and field.is_on_wire(version):
            inner = Source(tags.pop(field.tag))
            values[field.name] = decode_value(field, field.type, inner, version, flexible)
            assert inner.data == b''
    message = cls(**values)
    message.unknown_tags = tags
    return message


def decode_tags(source):
    tags = {}
    for _ in range(decode_uvarint(source)):
        tag = decode_uvarint(source)
        tags[tag] = source.take(decode_uvarint(source))
    return tags


def decode_value(field, kind, source, version, flexible):
    if isinstance(kind, ListOf):
        count = decode_length(source, 4, flexible)
        if count is None:
            assert field.is_nullable(version)
            return None
        return [decode_value(field, kind.element, source, version, flexible) for _ in range(count)]
    if not isinstance(kind, Kind):
        if kind is field.type and field.is_nullable(version) and source.take(1) == b'\xff':
            return None
        return decode_struct(kind, source, version, flexible)
    if kind.name in ('String', 'Bytes', 'Records'):
        length = decode_length(source, 2 if kind.name == 'String' else 4, flexible)
        if length is None:
            assert field.is_nullable(version)
            return None
        raw = source.take(length)
        return raw.decode('utf-8') if kind.name == 'String' else raw
    return decode_number(kind, source)


def decode_number(kind, source):
    if kind.name == 'Bool':
        return source.take(1) != b'\x00'
    if kind.name == 'Float64':
        return struct.unpack('>d', source.take(8))[0]
    if kind.name == 'Uuid':
        return source.take(16)
    width, signed = WIDTHS[kind.name]
    return int.from_bytes(source.take(width), 'big', signed=signed)


def decode_length(source, width, flexible):
    if flexible:
        length = decode_uvarint(source) - 1
    else:
        length = int.from_bytes(source.take(width), 'big', signed=True)
    return None if length == -1 else length


def decode_uvarint(source):
    byte = source.take(1)[0]
    return byte if byte < 128 else byte - 128 + 128 * decode_uvarint(source)
