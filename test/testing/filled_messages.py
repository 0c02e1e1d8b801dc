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


def made_by_chance(struct, version, chance, records=b'', ids=()):
    """Return a struct of a version with anything in its fields, often with something that fits.

    Arguments: records: what stands in fields of records; ids: some that there are.
    """
    values = {}
    for field in struct.fields:
        if field.is_on_wire(version):
            is_nullable = field.is_nullable(version)
            values[field.name] = _any(field.type, version, chance, records, ids, is_nullable)
        elif field.required:
            values[field.name] = field.fresh_default()
    return struct(**values)


def _any(kind, version, chance, records, ids, is_nullable=False):
    if is_nullable and chance.random() < 0.2:
        return None
    if isinstance(kind, ListOf):
        count = chance.choice([0, 1, 1, 1, 2, 3])
        return [_any(kind.element, version, chance, records, ids) for _ in range(count)]
    if isinstance(kind, StructMeta):
        return made_by_chance(kind, version, chance, records, ids)
    if kind is KINDS['String']:
        letters = [chance.choice('abcdefgh') for _ in range(chance.choice([3, 20, 200]))]
        return chance.choice(['x', 'x', 'y', 'g', ''.join(letters)])
    if kind is KINDS['Records']:
        return records
    if kind is KINDS['Bytes']:
        return bytes(chance.choice([0, chance.randrange(40)]))
    if kind is KINDS['Uuid']:
        return chance.choice([bytes(16), chance.getrandbits(128).to_bytes(16, 'big'), *ids])
    if kind is KINDS['Bool']:
        return chance.random() < 0.5
    if kind is KINDS['Float64']:
        return chance.random() * 10
    return _any_number(kind, chance)


def _any_number(kind, chance):
    bits = 8 * kind.size
    usual = [0, 0, 0, 1, 1, 2, -1, 5, 100, 30000, 2**31 - 1]
    number = chance.choice([*usual, chance.getrandbits(bits)])
    if kind.name.startswith('U'):
        return number % 2**bits
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
