"""Messages with something in all their fields, of every API and version."""

from __future__ import annotations

from kafka.protocol.schema import KINDS, ListOf, StructMeta


def filled(struct, version, text='x'):
    """Return a struct of a version with one item in each list, and a text in each string."""
    return struct(**{f.name: _value(f, version, text) for f in struct.fields if _is_in(f, version)})


def _is_in(field, version):
    return field.required or field.versions.includes(version)


def _value(field, version, text):
    if not field.versions.includes(version):
        return [] if isinstance(field.type, ListOf) else field.type.zero
    if isinstance(field.type, ListOf):
        element = field.type.element
        return [
            filled(element, version, text)
            if isinstance(element, StructMeta)
            else _zero(element, text)
        ]
    if isinstance(field.type, StructMeta):
        return filled(field.type, version, text)
    return _zero(field.type, text)


def _zero(kind, text):
    return b'' if kind is KINDS['Records'] else text if kind is KINDS['String'] else kind.zero
