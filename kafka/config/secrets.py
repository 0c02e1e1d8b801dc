"""Values that nobody may read in a log: passwords, keys, addresses with a password in them.

Owns how they are shown. They stay what they are otherwise, str or bytes, so that whoever needs them
takes them as ever; a pickle carries them, what is shown of its content does not.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ['Secret', 'SecretBytes', 'hide', 'shown']

MASK = "'***'"
_LOGIN = re.compile(r'(?<=//)[^/@]*@|^[^/@\s]+:[^/@\s]+@')
_LONGEST = 60


class Secret(str):
    """Text that is not shown by its repr, nor by that of what contains it."""

    def __repr__(self) -> str:
        return MASK


class SecretBytes(bytes):
    """Bytes that are not shown by their repr."""

    def __repr__(self) -> str:
        return MASK


class SecretLogin(str):
    """A URL that is shown without what stands before the @."""

    def __repr__(self) -> str:
        return repr(without_login(str.__str__(self)))


def without_login(text: str) -> str:
    """Return a URL, or a list of them, with *** for user and password."""
    return _LOGIN.sub('***@', text)


def hide(value: Any) -> Any:
    """Return a value that must not be shown: text and bytes as kinds that are not."""
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, (bytes, bytearray)):
        return SecretBytes(value)
    return value


def hide_key(value: Any) -> Any:
    """Return a file's name as it is, and the text of a file, which may be a key, hidden."""
    return hide(value) if is_pem(value) else value


def is_pem(value: Any) -> bool:
    """Tell whether a value is the content of a PEM file and not its name."""
    if isinstance(value, (bytes, bytearray)):
        return b'-----BEGIN' in value
    return isinstance(value, str) and '-----BEGIN' in value


def hide_login(value: Any) -> Any:
    """Return a URL as a kind that is shown without user and password."""
    return SecretLogin(value) if isinstance(value, str) else value


def shown(value: Any) -> str:
    """Return what an error may tell of a value: what it is if that is plain, else its type."""
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
