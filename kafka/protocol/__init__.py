"""The wire protocol: messages, sessions, and the encoders that 0.9.5 kept under this name.

Owns the face that ``kafka.protocol`` was in 0.9.5: its names live in :mod:`kafka.protocol.legacy`
and are looked up there on first use, so that importing a module of this package loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from kafka.internals.lazy_imports import import_late

if TYPE_CHECKING:
    from kafka.protocol.legacy import (
        ALL_CODECS,
        ATTRIBUTE_CODEC_MASK,
        CODEC_GZIP,
        CODEC_NONE,
        CODEC_SNAPPY,
        KafkaProtocol,
        create_gzip_message,
        create_message,
        create_message_set,
        create_snappy_message,
    )

__all__ = [
    'ALL_CODECS',
    'ATTRIBUTE_CODEC_MASK',
    'CODEC_GZIP',
    'CODEC_NONE',
    'CODEC_SNAPPY',
    'KafkaProtocol',
    'create_gzip_message',
    'create_message',
    'create_message_set',
    'create_snappy_message',
]


def __getattr__(name: str) -> object:
    """Look a name of 0.9.5 up where it lives (PEP 562).

    It is not kept here: a global of this module under such a name is one that a program has put in
    its place, and ``create_message_set`` uses it.
    """
    if name in __all__:
        return getattr(import_late('kafka.protocol.legacy'), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))


def __dir__() -> List[str]:
    """Name everything that can be reached, loaded or not."""
    return sorted(set(globals()) | set(__all__))
