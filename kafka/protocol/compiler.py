"""The compiler of messages: one flat function per message, version and direction, on first use.

``encode`` and ``decode`` run the generated functions and convert their errors to the documented
ones. Declarations are in schema.py, the generators of the code in emit_reader.py and
emit_writer.py, helpers for rare cases in primitives.py. No other module uses ``exec``.

Adjacent fields of fixed width are read and written by one ``struct`` call, together with the length
(or the first byte of the varint) that follows them. Nested structs are inlined; each tagged field
has its own function. ``FetchResponse.decode_source(12)`` shows an example. Follows the protocol
guide ("Protocol Primitive Types") and KIP-482.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Callable, List, Type, TypeVar

from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.protocol import primitives
from kafka.protocol.diagnosis import explain
from kafka.protocol.emit import Code, Emitter
from kafka.protocol.emit_reader import ReaderEmitter
from kafka.protocol.emit_writer import WriterEmitter
from kafka.protocol.schema import REQUIRED, StructMeta

if TYPE_CHECKING:
    from kafka.protocol.wire import Buffer, Message

    M = TypeVar('M', bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Return the body of a message in one version; see ``Message.encode``."""
    return b''.join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> List[Any]:
    """Return the parts of the result of ``encode``; records are passed on without a copy."""
    cls = type(message)
    writer = cls.encoders.get(version)
    if writer is None:
        cls.check_version(version)
        writer = cls.encoders[version] = _compile(WriterEmitter(cls, version), 'write')
    out: List[Any] = []
    try:
        writer(message, out.append)
        return out
    except (struct.error, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise explain(message, version, cls.is_flexible(version)) from error


def decode(cls: Type[M], data: Buffer, start: int, version: int) -> M:
    """Return the message whose body fills ``data`` from ``start`` on; see ``Message.decode``."""
    reader = cls.decoders.get(version)
    if reader is None:
        cls.check_version(version)
        reader = cls.decoders[version] = _compile(ReaderEmitter(cls, version), 'read')
    view = memoryview(data)
    if type(data) is not bytes:
        data = bytes(data)
    try:
        message: M
        message, pos = reader(data, start, len(data), view)
    except (struct.error, IndexError) as error:
        raise BufferUnderflowError(
            '%s version %d: the bytes end too early' % (cls.__name__, version)
        ) from error
    except UnicodeDecodeError as error:
        raise ProtocolError(
            '%s version %d: a string is not UTF-8' % (cls.__name__, version)
        ) from error
    if pos != len(data):
        primitives.check_end(pos, len(data), cls.__name__)
    return message


def encode_source(cls: Type[Message], version: int) -> str:
    """Return the source of a generated writer."""
    emitter = WriterEmitter(cls, version)
    emitter.write_out()
    return emitter.source


def decode_source(cls: Type[Message], version: int) -> str:
    """Return the source of a generated reader."""
    emitter = ReaderEmitter(cls, version)
    emitter.write_out()
    return emitter.source


def constructor(cls: StructMeta) -> Callable[..., None]:
    """Return an ``__init__`` with the fields of a struct as arguments."""
    code = Code()
    taken = ''.join(
        ', %s=%s' % (field.name, code.constant(REQUIRED if field.required else field.default))
        for field in cls.fields
    )
    code.add('def __init__(self%s):' % taken)
    with code.indented():
        code.add('self.unknown_tags = NO_TAGS')
        for field in cls.fields:
            if field.required:
                code.add('if %s is REQUIRED:' % field.name)
                code.add("    raise TypeError('%s needs %s')" % (cls.__name__, field.name))
            elif code.default(field) != code.constant(field.default):
                shared = code.constant(field.default)
                code.add('if %s is %s:' % (field.name, shared))
                code.add('    %s = %s' % (field.name, code.default(field)))
            code.add('self.%s = %s' % (field.name, field.name))
    built: Callable[..., None] = _run(code, '__init__', '<%s>' % cls.__name__)
    built.__qualname__ = '%s.__init__' % cls.__name__
    return built


def _compile(emitter: Emitter, name: str) -> Any:
    """Return the main function that an emitter generates."""
    emitter.write_out()
    return _run(emitter, name, '<%s v%d %s>' % (emitter.cls.__name__, emitter.version, name))


def _run(code: Code, name: str, filename: str) -> Any:
    """Execute the lines of a code; return one of the functions that it defines."""
    exec(compile(code.source, filename, 'exec'), code.names)
    return code.names[name]
