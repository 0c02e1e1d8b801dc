"""Removal of secrets (passwords, tokens, keys) from requests before they are kept in a log.

The declarations of messages say which fields are secret; of configs, the names do.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Type, TypeVar

from kafka.protocol.schema import KINDS, Field, ListOf, StructMeta
from kafka.protocol.wire import Struct

S = TypeVar('S', bound=Struct)

#: Configs whose values are secret.
_PASSWORDS = re.compile(r'password|secret|jaas\.config|keystore\.key|credential', re.IGNORECASE)

_fields: Dict[Type[Struct], List[Field]] = {}


def without_secrets(struct: S) -> S:
    """Return a copy of a message without its secrets; the message itself if it can have none."""
    fields = _hiding(type(struct))
    if not fields:
        return struct
    cls = type(struct)
    copy = cls.__new__(cls)
    for field in cls.fields:
        setattr(copy, field.name, getattr(struct, field.name))
    copy.unknown_tags = struct.unknown_tags
    for field in fields:
        setattr(copy, field.name, _hidden(struct, field))
    return copy


def _hidden(struct: Any, field: Field) -> Any:
    value = getattr(struct, field.name)
    if isinstance(field.type, ListOf):
        return None if value is None else [without_secrets(each) for each in value]
    if isinstance(field.type, StructMeta):
        return None if value is None else without_secrets(value)
    if field.type is KINDS['Bytes']:
        return b'' if value else value
    return value if not value or not _PASSWORDS.search(struct.name) else '<hidden>'


def _hiding(cls: Any) -> List[Field]:
    """Return the fields of a struct that are secret or contain secret fields."""
    if cls not in _fields:
        _fields[cls] = [field for field in cls.fields if field.secret or _has_secrets(field.type)]
    return _fields[cls]


def _has_secrets(kind: Any) -> bool:
    inner = kind.element if isinstance(kind, ListOf) else kind
    return isinstance(inner, StructMeta) and bool(_hiding(inner))
