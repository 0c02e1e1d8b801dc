"""The generator of the code that reads one version of a message.

It generates ``read(data, pos, end, view)``, which returns the message and the position after it,
and a function per tagged field. ``data`` is bytes, ``view`` a memoryview of the caller's buffer, of
which records are slices. Values are checked before they are used: a length against the remaining
bytes, a count against the minimum size of its elements and the maximum of Apache Kafka.
"""

from __future__ import annotations

from typing import List

from kafka.protocol.emit import Emitter, snake
from kafka.protocol.primitives import MAX_ELEMENTS
from kafka.protocol.schema import Field, FieldType, Kind, ListOf, StructMeta


class ReaderEmitter(Emitter):
    """Generates a reader."""

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
        """Set a field to its default; a struct is inlined, which is faster than its constructor."""
        cls = type(field.default)
        if not isinstance(cls, StructMeta):
            self.add('%s = %s' % (target, self.default(field)))
            return
        with self.variable(snake(cls.__name__)) as inner:
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
        self.add('if n < 0 or n > %d or n > (end - pos) // %d:' % (MAX_ELEMENTS, smallest))
        self.add('    raise bad_count(n, %r)' % path)
        if isinstance(kind, Kind) and kind.format:
            self.numbers(kind, target)
            return
        with self.variable(snake(target.split('.')[-1])) as items:
            self.add('%s = %s = []' % (items, target))
            self.add('for _ in range(n):')
            name = snake(kind.__name__) if isinstance(kind, StructMeta) else 'item'
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
        with self.variable(snake(cls.__name__)) as inner:
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
        name = 'read_' + snake(path.replace('.', '_'))

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
        """Generate the reading of the collected fixed-width values."""
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
