"""The wire protocol: messages, sessions, and the encoders of 0.9.5.

The names that ``kafka.protocol`` had in 0.9.5 are defined in :mod:`kafka.protocol.legacy` and
loaded on first use, so that importing a module of this package loads nothing else.
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
    """Return a name of 0.9.5 from its module (PEP 562).

    It is not stored here: a global of this module with such a name was set by a program to replace
    it, and ``create_message_set`` uses it.
    """
    if name in __all__:
        return getattr(import_late('kafka.protocol.legacy'), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))


def __dir__() -> List[str]:
    """Return all names, whether they are loaded or not."""
    return sorted(set(globals()) | set(__all__))
