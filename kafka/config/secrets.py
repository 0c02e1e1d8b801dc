"""Types of values that must not appear in logs: passwords, keys, URLs with a password in them.

They are str or bytes, so that code which needs the value uses it as usual, but their repr is
masked. A pickle contains the value; the repr after unpickling is masked too.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ['Secret', 'SecretBytes', 'hide', 'shown']

MASK = "'***'"
_LOGIN = re.compile(r'(?<=//)[^/@]*@|^[^/@\s]+:[^/@\s]+@')
_LONGEST = 60


class Secret(str):
    """Text with a masked repr, also inside the repr of a container."""

    def __repr__(self) -> str:
        return MASK


class SecretBytes(bytes):
    """Bytes with a masked repr."""

    def __repr__(self) -> str:
        return MASK


class SecretLogin(str):
    """A URL whose repr has no user and password."""

    def __repr__(self) -> str:
        return repr(without_login(str.__str__(self)))


def without_login(text: str) -> str:
    """Return a URL, or a list of them, with *** for user and password."""
    return _LOGIN.sub('***@', text)


def hide(value: Any) -> Any:
    """Return a value that must not be shown: text and bytes as types with a masked repr."""
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, (bytes, bytearray)):
        return SecretBytes(value)
    return value


def hide_key(value: Any) -> Any:
    """Return a file name unchanged, and the content of a file, which may be a key, masked."""
    return hide(value) if is_pem(value) else value


def is_pem(value: Any) -> bool:
    """Return True if a value is the content of a PEM file and not a file name."""
    if isinstance(value, (bytes, bytearray)):
        return b'-----BEGIN' in value
    return isinstance(value, str) and '-----BEGIN' in value


def hide_login(value: Any) -> Any:
    """Return a URL as a type whose repr has no user and password."""
    return SecretLogin(value) if isinstance(value, str) else value


def shown(value: Any) -> str:
    """Return what an error may show of a value: its repr if that is harmless, else its type."""
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:_LONGEST]
    if isinstance(value, (Secret, SecretBytes)) or is_pem(value):
        return 'a secret'
    if isinstance(value, str):
        return _cut(repr(without_login(value)))
    if isinstance(value, bytes):
        return _cut('b' + repr(without_login(value.decode('latin-1'))))
    return 'the class %s' % value.__name__ if isinstance(value, type) else 'a value of type ' + kind


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'
