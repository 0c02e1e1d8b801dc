"""Turns a declaration into one flat function per message, version and direction, on first use.

Owns: the generated code and its entry points ``encode`` and ``decode``, where every error of that
code becomes a documented one. Does not own: declarations (schema.py), the rare cases that the
generated code calls (primitives.py). Nothing else in the house uses ``exec``.

Adjacent fields of fixed width are read and written by one ``struct`` call, together with the
length (or the first byte of the varint) that follows them. Nested structs are written out in
place; each tagged field has a function of its own. ``FetchResponse.decode_source(12)`` shows it.
"""

from __future__ import annotations

import re
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Tuple, Type, TypeVar

from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.protocol import primitives
from kafka.protocol.diagnosis import explain
from kafka.protocol.schema import REQUIRED, ZERO_UUID, Field, FieldType, Kind, ListOf, StructMeta

if TYPE_CHECKING:
    from kafka.protocol.wire import Buffer, Message

    M = TypeVar('M', bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Return the body of a message in one version; see ``Message.encode``."""
    cls = type(message)
    writer = cls.encoders.get(version)
    if writer is None:
        cls.check_version(version)
        writer = cls.encoders[version] = _Writer(cls, version).function('write')
    out: List[Any] = []
    try:
        writer(message, out.append)
        return b''.join(out)
    except (struct.error, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise explain(message, version, cls.is_flexible(version)) from error


def decode(cls: Type[M], data: Buffer, start: int, version: int) -> M:
    """Return the message whose body fills ``data`` from ``start`` on; see ``Message.decode``."""
    reader = cls.decoders.get(version)
    if reader is None:
        cls.check_version(version)
        reader = cls.decoders[version] = _Reader(cls, version).function('read')
    view = memoryview(data)
    if type(data) is not bytes:
        data = bytes(data)
    try:
        message: M
        message, pos = reader(data, start, len(data), view)
    except (struct.error, IndexError) as error:
        raise BufferUnderflowError(
            '%s version %d ends too early' % (cls.__name__, version)
        ) from error
    except UnicodeDecodeError as error:
        raise ProtocolError(
            '%s version %d has a string that is not UTF-8' % (cls.__name__, version)
        ) from error
    primitives.check_end(pos, len(data), cls.__name__)
    return message


def encode_source(cls: Type[Message], version: int) -> str:
    """Return the code of a writer."""
    return _Writer(cls, version).source()


def decode_source(cls: Type[Message], version: int) -> str:
    """Return the code of a reader."""
    return _Reader(cls, version).source()


def constructor(cls: StructMeta) -> Callable[..., None]:
    """Return an ``__init__`` that takes the fields of a struct."""
    code = _Code()
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
    built: Callable[..., None] = code.run('__init__', '<%s>' % cls.__name__)
    built.__qualname__ = '%s.__init__' % cls.__name__
    return built


class _Code:
    """Lines of Python and the names they use."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.depth = 0
        self.names: Dict[str, Any] = {'NO_TAGS': primitives.NO_TAGS, 'REQUIRED': REQUIRED}

    def add(self, line: str) -> None:
        self.lines.append('    ' * self.depth + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def use(self, name: str, value: Any) -> str:
        """Make a value known to the code; return the name it has there."""
        while self.names.setdefault(name, value) is not value:
            name += '_'
        return name

    def layout(self, verb: str, formats: str) -> Tuple[str, int]:
        """Return the name of a packing or unpacking function, and its size in bytes."""
        packer = struct.Struct('>' + formats)
        name = '%s_%s' % (verb, formats.replace('?', 'o').replace('16s', 'u'))
        self.names.setdefault(name, packer.pack if verb == 'pack' else packer.unpack_from)
        return name, packer.size

    def constant(self, value: Any) -> str:
        """Return an expression for a value that is never changed in place."""
        if value is REQUIRED:
            return 'REQUIRED'
        if isinstance(value, list) or isinstance(type(value), StructMeta):
            name = 'empty' if isinstance(value, list) else 'default_' + _snake(type(value).__name__)
            return self.use(name, value)
        return 'bytes(16)' if value == ZERO_UUID else repr(value)

    def default(self, field: Field) -> str:
        """Return an expression for a default that its holder may change."""
        if isinstance(field.default, list):
            return '[]'
        if isinstance(type(field.default), StructMeta):
            cls = type(field.default)
            return self.use(cls.__name__, cls) + '()'
        return self.constant(field.default)

    def run(self, name: str, filename: str) -> Any:
        """Define what the lines define; return one of the functions."""
        exec(compile('\n'.join(self.lines), filename, 'exec'), self.names)
        return self.names[name]


class _Coder(_Code):
    """What reader and writer of one message and version have in common."""

    def __init__(self, cls: Type[Message], version: int) -> None:
        super().__init__()
        self.cls = cls
        self.version = version
        self.flexible = cls.is_flexible(version)
        self.group: List[Tuple[str, str]] = []  # fixed-width values still to be read or written
        self.later: List[Callable[[], None]] = []  # functions of tagged fields
        for name in ('as_bytes', 'as_list', 'bad_count', 'bad_length', 'check_end', 'off_wire'):
            self.names[name] = getattr(primitives, name)
        self.names.update(read_tags=primitives.read_tags, tag_section=primitives.tag_section)
        self.names.update(uvarint=primitives.UVARINTS, long_uvarint=primitives.long_uvarint)
        self.names['new'] = object.__new__
        self.variables: List[str] = []  # of the structs being written out, outermost first

    def source(self) -> str:
        self.function('read' if isinstance(self, _Reader) else 'write')
        return '\n'.join(self.lines) + '\n'

    def function(self, name: str) -> Any:
        self.main()
        while self.later:
            self.later.pop(0)()
        return self.run(name, '<%s v%d %s>' % (self.cls.__name__, self.version, name))

    def main(self) -> None:
        raise NotImplementedError

    def split(self, cls: StructMeta) -> Tuple[List[Field], List[Field], List[Field]]:
        """Return the fields at a place of their own, the tagged ones, and the absent ones."""
        present = [field for field in cls.fields if field.is_on_wire(self.version)]
        plain = [field for field in present if field.tag is None]
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        return plain, tagged, [f for f in cls.fields if not f.is_on_wire(self.version)]

    def min_size(self, kind: FieldType, nullable: bool = False) -> int:
        """Return how many bytes a value takes at least."""
        if isinstance(kind, StructMeta):
            if nullable:
                return 1
            plain = self.split(kind)[0]
            sizes = [self.min_size(f.type, f.is_nullable(self.version)) for f in plain]
            return sum(sizes) + self.flexible
        if isinstance(kind, Kind) and kind.format:
            return kind.size
        if self.flexible:
            return 1
        return 2 if isinstance(kind, Kind) and kind.name == 'String' else 4

    def arrays(self, verb: str, kind: Kind) -> str:
        """Return the name of the packing or unpacking functions of an array of numbers."""
        name = '%s_%ss' % (verb.split('_')[0], kind.name.lower())
        self.names.setdefault(name, primitives.Arrays(kind.format, verb))
        return name

    @contextmanager
    def variable(self, name: str) -> Iterator[str]:
        """Reserve a local name for as long as the code of a struct is being written."""
        while name in self.variables or name in self.names or name in _RESERVED:
            name += '_'
        self.variables.append(name)
        yield name
        self.variables.remove(name)


_RESERVED = frozenset('data pos end view n stop raw items write tags value _'.split())


class _Reader(_Coder):
    """Writes the code that reads."""

    def main(self) -> None:
        self.add('def read(data, pos, end, view):')
        with self.indented(), self.variable('message') as message:
            self.struct(self.cls, message, self.cls.__name__)
            self.add('return %s, pos' % message)

    def struct(self, cls: StructMeta, target: str, path: str) -> None:
        plain, tagged, absent = self.split(cls)
        self.add('%s = new(%s)' % (target, self.use(cls.__name__, cls)))
        self.add('%s.unknown_tags = NO_TAGS' % target)
        for field in absent + tagged:
            self.set_default(field, '%s.%s' % (target, field.name))
        for field in plain:
            self.field(field, '%s.%s' % (target, field.name), '%s.%s' % (path, field.name))
        if self.flexible:
            self.tags(tagged, target, path)
        self.flush()

    def set_default(self, field: Field, target: str) -> None:
        """Give a field its default; a struct is written out, which costs less than its call."""
        cls = type(field.default)
        if not isinstance(cls, StructMeta):
            self.add('%s = %s' % (target, self.default(field)))
            return
        with self.variable(_snake(cls.__name__)) as inner:
            self.add('%s = %s = new(%s)' % (inner, target, self.use(cls.__name__, cls)))
            self.add('%s.unknown_tags = NO_TAGS' % inner)
            for part in cls.fields:
                self.set_default(part, '%s.%s' % (inner, part.name))

    def field(self, field: Field, target: str, path: str) -> None:
        self.value(field.type, target, path, field.is_nullable(self.version))

    def value(self, kind: FieldType, target: str, path: str, nullable: bool) -> None:
        if isinstance(kind, Kind) and kind.format:
            self.group.append((target, kind.format))
        elif isinstance(kind, StructMeta):
            self.nested(kind, target, path, nullable)
        else:
            short = isinstance(kind, Kind) and kind.name == 'String'
            self.length('h' if short else 'i')
            if nullable:
                self.add('if n == -1:')
                self.add('    %s = None' % target)
                self.add('else:')
                with self.indented():
                    self.content(kind, target, path)
            else:
                self.content(kind, target, path)

    def length(self, format: str) -> None:
        self.group.append(('n', 'B' if self.flexible else format))
        self.flush()
        if self.flexible:
            self.add('if n > 127:')
            self.add('    n, pos = long_uvarint(data, pos, n)')
            self.add('n -= 1')

    def content(self, kind: FieldType, target: str, path: str) -> None:
        if isinstance(kind, ListOf):
            self.elements(kind.element, target, path)
            return
        assert isinstance(kind, Kind)
        self.add('stop = pos + n')
        self.add('if n < 0 or stop > end:')
        self.add('    raise bad_length(n, %r)' % path)
        taken = {
            'String': "data[pos:stop].decode('utf-8')",
            'Bytes': 'data[pos:stop]',
            'Records': 'view[pos:stop]',
        }
        self.add('%s = %s' % (target, taken[kind.name]))
        self.add('pos = stop')

    def elements(self, kind: FieldType, target: str, path: str) -> None:
        smallest = max(self.min_size(kind), 1)
        self.add('if n < 0 or n > (end - pos) // %d:' % smallest)
        self.add('    raise bad_count(n, %r)' % path)
        if isinstance(kind, Kind) and kind.format:
            self.numbers(kind, target)
            return
        with self.variable(_snake(target.split('.')[-1])) as items:
            self.add('%s = %s = []' % (items, target))
            self.add('for _ in range(n):')
            name = _snake(kind.__name__) if isinstance(kind, StructMeta) else 'item'
            with self.indented(), self.variable(name) as item:
                if isinstance(kind, StructMeta):
                    self.struct(kind, item, path)
                else:
                    self.value(kind, item, path, False)
                self.add('%s.append(%s)' % (items, item))

    def numbers(self, kind: Kind, target: str) -> None:
        if kind.name == 'Uuid':
            self.add('%s = [data[i : i + 16] for i in range(pos, pos + 16 * n, 16)]' % target)
        else:
            self.add('%s = list(%s[n](data, pos))' % (target, self.arrays('unpack_from', kind)))
        self.add('pos += %d * n' % kind.size)

    def nested(self, cls: StructMeta, target: str, path: str, nullable: bool) -> None:
        with self.variable(_snake(cls.__name__)) as inner:
            if nullable:
                self.group.append(('n', 'b'))
                self.flush()
                self.add('if n < 0:')
                self.add('    %s = None' % target)
                self.add('else:')
                self.depth += 1
            self.struct(cls, inner, path)
            self.add('%s = %s' % (target, inner))
            self.depth -= nullable

    def tags(self, tagged: List[Field], target: str, path: str) -> None:
        self.group.append(('n', 'B'))
        self.flush()
        self.add('if n:')
        with self.indented():
            if not tagged:
                self.add('%s.unknown_tags, pos = read_tags(data, pos, end, n)' % target)
                return
            self.add('tags, pos = read_tags(data, pos, end, n)')
            for field in tagged:
                function = self.tagged_field(field, '%s.%s' % (path, field.name))
                self.add('if %d in tags:' % (field.tag or 0))
                self.add(
                    '    %s.%s = %s(tags.pop(%d))' % (target, field.name, function, field.tag or 0)
                )
            self.add('if tags:')
            self.add('    %s.unknown_tags = tags' % target)

    def tagged_field(self, field: Field, path: str) -> str:
        name = 'read_' + _snake(path.replace('.', '_'))

        def write_function() -> None:
            self.add('')
            self.add('')
            self.add('def %s(data):' % name)
            with self.indented():
                self.add('pos, end, view = 0, len(data), memoryview(data)')
                self.field(field, 'value', path)
                self.flush()
                self.add('check_end(pos, end, %r)' % path)
                self.add('return value')

        self.later.append(write_function)
        return name

    def flush(self) -> None:
        """Read the fixed-width values that were collected."""
        if not self.group:
            return
        targets, formats = [t for t, _ in self.group], ''.join(f for _, f in self.group)
        self.group = []
        unpack, size = self.layout('unpack', formats)
        if formats == 'B':
            self.add('%s = data[pos]' % targets[0])
        else:
            taken = ', '.join(targets) + (',' if len(targets) == 1 else '')
            self.add('%s = %s(data, pos)' % (taken, unpack))
        self.add('pos += %d' % size)


class _Writer(_Coder):
    """Writes the code that writes."""

    def main(self) -> None:
        self.add('def write(message, write):')
        with self.indented():
            self.struct(self.cls, 'message', self.cls.__name__)

    def struct(self, cls: StructMeta, source: str, path: str) -> None:
        plain, tagged, absent = self.split(cls)
        for field in absent:
            if not field.ignorable:
                name = '%s.%s' % (source, field.name)
                self.add('if %s:' % self.differs(field, name))
                self.add(
                    '    raise off_wire(%r, %d)' % ('%s.%s' % (path, field.name), self.version)
                )
        for field in plain:
            self.field(field, '%s.%s' % (source, field.name), '%s.%s' % (path, field.name))
        if self.flexible:
            self.tags(tagged, source, path)
        else:
            self.add('if %s.unknown_tags:' % source)
            self.add('    raise off_wire(%r, %d)' % (path + '.unknown_tags', self.version))
        self.flush()

    def differs(self, field: Field, source: str) -> str:
        """Return an expression that is true when a value is not the field's default."""
        if isinstance(field.default, list):
            return '%s or %s is None' % (source, source)
        if isinstance(type(field.default), StructMeta):
            parts = [
                self.differs(inner, '%s.%s' % (source, inner.name))
                for inner in type(field.default).fields
            ]
            return ' or '.join(parts + [source + '.unknown_tags'])
        comparison = 'is not' if field.default is None else '!='
        return '%s %s %s' % (source, comparison, self.constant(field.default))

    def field(self, field: Field, source: str, path: str) -> None:
        self.value(field.type, source, path, field.is_nullable(self.version))

    def value(self, kind: FieldType, source: str, path: str, nullable: bool) -> None:
        if isinstance(kind, Kind) and kind.format:
            self.number(kind, source)
        elif isinstance(kind, StructMeta):
            self.nested(kind, source, path, nullable)
        elif isinstance(kind, ListOf):
            self.elements(kind.element, source, path, nullable)
        else:
            self.bytes(kind, source, nullable)

    def number(self, kind: Kind, source: str) -> None:
        if kind.name == 'Uuid':
            self.add('if len(%s) != 16:' % source)
            self.add('    raise ValueError')
        # Packed as a number, so that None and strings are no booleans.
        self.group.append((source, 'b' if kind.name == 'Bool' else kind.format))

    def bytes(self, kind: Kind, source: str, nullable: bool) -> None:
        self.add('raw = %s' % source)
        convert = "raw = raw.encode('utf-8')"
        if nullable:
            self.add('if raw is None:')
            self.add("    n, raw = -1, b''")
            self.add('else:')
        with self.indented() if nullable else _nothing():
            if kind.name == 'String':
                self.add(convert)
            else:
                self.add('if type(raw) is not bytes:')
                self.add('    raw = as_bytes(raw)')
            self.add('n = len(raw)')
        self.length('h' if kind.name == 'String' else 'i')
        self.add('write(raw)')

    def length(self, format: str) -> None:
        if self.flexible:
            self.flush()
            self.add('write(uvarint[n + 1])')
        else:
            self.group.append(('n', format))
            self.flush()

    def elements(self, kind: FieldType, source: str, path: str, nullable: bool) -> None:
        with self.variable(_snake(source.split('.')[-1])) as items:
            self.add('%s = %s' % (items, source))
            if nullable:
                self.add('if %s is None:' % items)
                self.add('    n, %s = -1, ()' % items)
                self.add('else:')
            with self.indented() if nullable else _nothing():
                self.add('if type(%s) is not list:' % items)
                self.add('    %s = as_list(%s)' % (items, items))
                self.add('n = len(%s)' % items)
            self.length('i')
            if isinstance(kind, Kind) and kind.format and kind.name != 'Uuid':
                self.add('write(%s[len(%s)](*%s))' % (self.arrays('pack', kind), items, items))
                return
            self.loop(kind, items, path)

    def loop(self, kind: FieldType, items: str, path: str) -> None:
        name = _snake(kind.__name__) if isinstance(kind, StructMeta) else 'item'
        with self.variable(name) as item:
            self.add('for %s in %s:' % (item, items))
            with self.indented():
                if isinstance(kind, StructMeta):
                    self.struct(kind, item, path)
                else:
                    self.value(kind, item, path, False)
                    self.flush()

    def nested(self, cls: StructMeta, source: str, path: str, nullable: bool) -> None:
        with self.variable(_snake(cls.__name__)) as inner:
            self.add('%s = %s' % (inner, source))
            if nullable:
                self.flush()
                self.add('if %s is None:' % inner)
                self.add("    write(b'\\xff')")
                self.add('else:')
                self.depth += 1
                self.add("write(b'\\x01')")
            self.struct(cls, inner, path)
            self.depth -= nullable

    def tags(self, tagged: List[Field], source: str, path: str) -> None:
        known = '{}'
        if tagged:
            known = 'tags'
            self.add('tags = {}')
        for field in tagged:
            name = '%s.%s' % (source, field.name)
            function = self.tagged_field(field, '%s.%s' % (path, field.name))
            self.add('if %s:' % self.differs(field, name))
            self.add('    tags[%d] = %s(%s)' % (field.tag or 0, function, name))
        self.add('if %s%s.unknown_tags:' % ('tags or ' if tagged else '', source))
        group = list(self.group)
        with self.indented():
            self.flush()
            self.add('write(tag_section(%s, %s.unknown_tags))' % (known, source))
        self.add('else:')
        with self.indented():
            self.group = [*group, ('0', 'B')]
            self.flush()

    def tagged_field(self, field: Field, path: str) -> str:
        name = 'write_' + _snake(path.replace('.', '_'))

        def write_function() -> None:
            self.add('')
            self.add('')
            self.add('def %s(value):' % name)
            with self.indented():
                self.add('out = []')
                self.add('write = out.append')
                self.field(field, 'value', path)
                self.flush()
                self.add("return b''.join(out)")

        self.later.append(write_function)
        return name

    def flush(self) -> None:
        """Write the fixed-width values that were collected."""
        if not self.group:
            return
        values, formats = [v for v, _ in self.group], ''.join(f for _, f in self.group)
        self.group = []
        if (values, formats) == (['0'], 'B'):
            self.add("write(b'\\x00')")
            return
        pack, _ = self.layout('pack', formats)
        self.add('write(%s(%s))' % (pack, ', '.join(values)))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _snake(name: str) -> str:
    """Return 'PartitionData' as 'partition_data'."""
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()
