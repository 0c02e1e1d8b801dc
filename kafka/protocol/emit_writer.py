"""The generator of the code that writes one version of a message.

It generates ``write(message, write)``, which passes parts to ``write``, and a function per tagged
field, which returns bytes. It only checks what would not raise an error in Python by itself;
diagnosis.py explains these errors.
"""

from __future__ import annotations

from typing import List

from kafka.protocol.emit import Emitter, snake
from kafka.protocol.schema import Field, FieldType, Kind, ListOf, StructMeta


class WriterEmitter(Emitter):
    """Generates a writer."""

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
        """Return an expression that is true if a value differs from the field's default."""
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
        # Packed as a number, so that None and strings are not accepted as booleans.
        self.group.append((source, 'b' if kind.name == 'Bool' else kind.format))

    def bytes(self, kind: Kind, source: str, nullable: bool) -> None:
        self.add('raw = %s' % source)
        convert = "raw = raw.encode('utf-8')"
        if nullable:
            self.add('if raw is None:')
            self.add("    n, raw = -1, b''")
            self.add('else:')
        with self.indented(nullable):
            if kind.name == 'String':
                self.add(convert)
            else:
                self.add('if type(raw) is not bytes:')
                self.add('    raw = as_%s(raw)' % kind.name.lower())
            self.add('n = len(raw)')
        self.length('h' if kind.name == 'String' else 'i')
        if kind.name != 'Records':
            self.add('write(raw)')
            return
        self.add('if type(raw) is bytes:')
        self.add('    write(raw)')
        self.add('else:')
        self.add('    write_records(raw, write)')

    def length(self, format: str) -> None:
        if self.flexible:
            self.flush()
            self.add('write(uvarint[n + 1])')
        else:
            self.group.append(('n', format))
            self.flush()

    def elements(self, kind: FieldType, source: str, path: str, nullable: bool) -> None:
        with self.variable(snake(source.split('.')[-1])) as items:
            self.add('%s = %s' % (items, source))
            if nullable:
                self.add('if %s is None:' % items)
                self.add('    n, %s = -1, ()' % items)
                self.add('else:')
            with self.indented(nullable):
                self.add('if type(%s) is not list:' % items)
                self.add('    %s = as_list(%s)' % (items, items))
                self.add('n = len(%s)' % items)
            self.length('i')
            if isinstance(kind, Kind) and kind.format and kind.name != 'Uuid':
                self.add('write(%s[len(%s)](*%s))' % (self.arrays('pack', kind), items, items))
                return
            self.loop(kind, items, path)

    def loop(self, kind: FieldType, items: str, path: str) -> None:
        name = snake(kind.__name__) if isinstance(kind, StructMeta) else 'item'
        with self.variable(name) as item:
            self.add('for %s in %s:' % (item, items))
            with self.indented():
                if isinstance(kind, StructMeta):
                    self.struct(kind, item, path)
                else:
                    self.value(kind, item, path, False)
                    self.flush()

    def nested(self, cls: StructMeta, source: str, path: str, nullable: bool) -> None:
        with self.variable(snake(cls.__name__)) as inner:
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
        name = 'write_' + snake(path.replace('.', '_'))

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
        """Generate the writing of the collected fixed-width values."""
        if not self.group:
            return
        values, formats = [v for v, _ in self.group], ''.join(f for _, f in self.group)
        self.group = []
        if (values, formats) == (['0'], 'B'):
            self.add("write(b'\\x00')")
            return
        pack, _ = self.layout('pack', formats)
        self.add('write(%s(%s))' % (pack, ', '.join(values)))
