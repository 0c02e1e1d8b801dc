"""The base of the code generators for readers and writers: lines, names, groups of fields.

``Code`` is a text with the names that it uses, ``Emitter`` describes one version of a message. The
generators are in emit_reader.py and emit_writer.py, compiler.py executes their code. The formats
follow KIP-482.
"""

from __future__ import annotations

import re
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Tuple, Type

from kafka.protocol import primitives
from kafka.protocol.schema import REQUIRED, ZERO_UUID, Field, FieldType, Kind, StructMeta

if TYPE_CHECKING:
    from kafka.protocol.wire import Message

#: Names that the generated code uses itself; variables of structs must differ.
_RESERVED = frozenset('data pos end view n stop raw items write tags value _'.split())


def snake(name: str) -> str:
    """Return 'PartitionData' as 'partition_data'."""
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()


class Code:
    """Lines of Python code, and the objects that they refer to by name."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.depth = 0
        self.names: Dict[str, Any] = {'NO_TAGS': primitives.NO_TAGS, 'REQUIRED': REQUIRED}

    def add(self, line: str) -> None:
        """Add a line at the current indentation."""
        self.lines.append('    ' * self.depth + line)

    @contextmanager
    def indented(self, really: bool = True) -> Iterator[None]:
        """Indent the lines added in a ``with`` block, if ``really`` is true."""
        self.depth += really
        yield
        self.depth -= really

    @property
    def source(self) -> str:
        """The lines as one text."""
        return '\n'.join(self.lines) + '\n'

    def use(self, name: str, value: Any) -> str:
        """Give the code access to a value; return its name there."""
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
        """Return an expression for a value that is never modified."""
        if value is REQUIRED:
            return 'REQUIRED'
        if isinstance(value, list) or isinstance(type(value), StructMeta):
            name = 'empty' if isinstance(value, list) else 'default_' + snake(type(value).__name__)
            return self.use(name, value)
        # Under `python -bb` comparing bytes with a number is an error.
        return 'bytes(16)' if isinstance(value, bytes) and value == ZERO_UUID else repr(value)

    def default(self, field: Field) -> str:
        """Return an expression for a default that the message may modify."""
        if isinstance(field.default, list):
            return '[]'
        if isinstance(type(field.default), StructMeta):
            cls = type(field.default)
            return self.use(cls.__name__, cls) + '()'
        return self.constant(field.default)


class Emitter(Code):
    """The part that the readers and writers of one message and version share."""

    def __init__(self, cls: Type[Message], version: int) -> None:
        super().__init__()
        self.cls = cls
        self.version = version
        self.flexible = cls.is_flexible(version)
        self.group: List[Tuple[str, str]] = []  # fixed-width values that flush() reads or writes
        self.later: List[Callable[[], None]] = []  # functions of tagged fields
        for name in ('as_bytes', 'as_list', 'bad_count', 'bad_length', 'check_end', 'off_wire'):
            self.names[name] = getattr(primitives, name)
        self.names.update(as_records=primitives.as_records, write_records=primitives.write_records)
        self.names.update(read_tags=primitives.read_tags, tag_section=primitives.tag_section)
        self.names.update(uvarint=primitives.UVARINTS, long_uvarint=primitives.long_uvarint)
        self.names['new'] = object.__new__
        self.variables: List[str] = []  # of the structs being generated, outermost first

    def write_out(self) -> None:
        """Generate the main function and those of the tagged fields."""
        self.main()
        while self.later:
            self.later.pop(0)()

    def main(self) -> None:
        """Generate the main function."""
        raise NotImplementedError

    def split(self, cls: StructMeta) -> Tuple[List[Field], List[Field], List[Field]]:
        """Return the plain fields, the tagged ones, and those that are absent in this version."""
        present = [field for field in cls.fields if field.is_on_wire(self.version)]
        plain = [field for field in present if field.tag is None]
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        return plain, tagged, [f for f in cls.fields if not f.is_on_wire(self.version)]

    def min_size(self, kind: FieldType, nullable: bool = False) -> int:
        """Return the minimum number of bytes of a value."""
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
        """Return the name of the packing or unpacking functions for an array of numbers."""
        name = '%s_%ss' % (verb.split('_')[0], kind.name.lower())
        self.names.setdefault(name, primitives.Arrays(kind.format, verb))
        return name

    @contextmanager
    def variable(self, name: str) -> Iterator[str]:
        """Reserve a local name while the code of a struct is generated."""
        while name in self.variables or name in self.names or name in _RESERVED:
            name += '_'
        self.variables.append(name)
        yield name
        self.variables.remove(name)
