"""The constructors of messages in 0.9.5: plain ones, and compressed sets of them.

Programs use them through ``kafka.protocol`` or ``kafka.protocol.legacy`` and may replace them
there; each looks up the others in these modules, and encodes inner messages by ``KafkaProtocol``.
"""

from __future__ import annotations

import sys
from typing import Any, Iterable, Iterator, List, Optional, Tuple

from kafka.codec import gzip_encode, snappy_encode
from kafka.errors import UnsupportedCodecError
from kafka.structs import Message

ATTRIBUTE_CODEC_MASK = 0x03
CODEC_NONE = 0x00
CODEC_GZIP = 0x01
CODEC_SNAPPY = 0x02
ALL_CODECS = (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY)


def create_message(payload: Any, key: Any = None) -> Message:
    """Return a plain Message; the arguments are not checked (0.9.5)."""
    return Message(0, 0, key, payload)


def create_gzip_message(
    payloads: Iterable[Tuple[Any, Any]], key: Any = None, compresslevel: Optional[int] = None
) -> Message:
    """Return one Message that contains (value, key) pairs compressed with gzip.

    Arguments: key: of the outer message; compresslevel: 1 to 9, None for 9.
    Raises: TypeError for anything but pairs of bytes or None. From 0.9.5.
    """
    compressed = gzip_encode(_inner_set(payloads), compresslevel=compresslevel)
    return Message(0, CODEC_GZIP & ATTRIBUTE_CODEC_MASK, key, compressed)


def create_snappy_message(payloads: Iterable[Tuple[Any, Any]], key: Any = None) -> Message:
    """Return one Message that contains (value, key) pairs compressed with snappy.

    Raises: NotImplementedError when no snappy library is installed; TypeError for anything but
        pairs of bytes or None. From 0.9.5.
    """
    return Message(0, CODEC_SNAPPY & ATTRIBUTE_CODEC_MASK, key, snappy_encode(_inner_set(payloads)))


def create_message_set(
    messages: Iterable[Tuple[Any, Any]],
    codec: int = CODEC_NONE,
    key: Any = None,
    compresslevel: Optional[int] = None,
) -> List[Message]:
    """Return (value, key) pairs as a list of Messages, or of one that contains them compressed.

    Arguments: codec: CODEC_NONE, CODEC_GZIP or CODEC_SNAPPY; key: of the compressed message;
        compresslevel: of gzip, 1 to 9, None for 9.
    Raises: UnsupportedCodecError for another codec; otherwise as the constructors. From 0.9.5.
    """
    if codec == CODEC_NONE:
        create = _current('create_message')
        return [create(value, inner_key) for value, inner_key in _pairs(messages)]
    if codec == CODEC_GZIP:
        return [_current('create_gzip_message')(messages, key, compresslevel)]
    if codec == CODEC_SNAPPY:
        return [_current('create_snappy_message')(messages, key)]
    raise UnsupportedCodecError('codec must be 0, 1 (gzip) or 2 (snappy), got %r' % (codec,))


def _inner_set(payloads: Iterable[Tuple[Any, Any]]) -> bytes:
    create = _current('create_message')
    encoded: bytes = _legacy().KafkaProtocol._encode_message_set(
        [create(v, k) for v, k in _pairs(payloads)]
    )
    return encoded


def _pairs(payloads: Iterable[Any]) -> Iterator[Tuple[Any, Any]]:
    for pair in payloads:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError('messages must be (value, key) pairs, not %s' % type(pair).__name__)
        yield pair[0], pair[1]


def _current(name: str) -> Any:
    """Return a constructor, or its replacement by a program in ``kafka.protocol`` or legacy."""
    replaced = vars(sys.modules['kafka.protocol']).get(name)
    if replaced is not None and replaced is not globals()[name]:
        return replaced
    return vars(_legacy())[name]


def _legacy() -> Any:
    """Return the module through which these functions are used."""
    return sys.modules['kafka.protocol.legacy']
