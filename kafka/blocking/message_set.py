"""The messages of one produce request: encoded at once, or on first access.

Called by the producers of 0.9.5 and 1.x. ``kafka.protocol`` encodes messages;
``kafka.protocol.later`` and the client send those that are not encoded yet.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence

from kafka import protocol
from kafka.codec import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, has_snappy
from kafka.protocol import create_message_set, legacy, legacy_messages
from kafka.protocol.later import MessagesLater

if TYPE_CHECKING:
    from kafka.blocking.base_client import BlockingClient

# Functions that a program may have replaced, in any of the modules that export them.
_CONSTRUCTORS = ('create_message', 'create_gzip_message', 'create_snappy_message')
_OWN_SET = create_message_set
_OWN = {name: vars(legacy)[name] for name in _CONSTRUCTORS}
_constructors = operator.itemgetter(*_CONSTRUCTORS)


def message_set(
    create: Callable[..., Any],
    client: BlockingClient,
    values: Sequence[Optional[bytes]],
    keys: Sequence[Optional[bytes]],
    codec: int,
    key: Optional[bytes],
    compresslevel: Optional[int],
) -> Sequence[Any]:
    """Return the messages of a request, from values and keys already checked to be bytes or None.

    Arguments: create: create_message_set as seen by the caller; client: the client that will send
    them; key: the key of the outer message when compressed.
    Raises: what `create` raises.
    """

    def make() -> List[Any]:
        made: List[Any] = create(list(zip(values, keys)), codec, key, compresslevel)
        return made

    # The class is checked, not the object: a mock may answer every attribute with a true value.
    if (
        getattr(type(client), 'takes_messages_later', False) is True
        and create is _OWN_SET
        and _is_certain(codec, compresslevel)
        and _are_constructors_own()
    ):
        return MessagesLater(values, keys, codec, compresslevel, make)
    return make()


def _are_constructors_own() -> bool:
    present = vars(protocol)
    for name in _CONSTRUCTORS:
        if name in present:
            return all(legacy_messages._current(each) is own for each, own in _OWN.items())
    # kafka.protocol replaces none: those of the module that defines them count.
    return bool(_constructors(vars(legacy)) == tuple(_OWN.values()))


def _is_certain(codec: int, compresslevel: Any) -> bool:
    """Return True if encoding the messages cannot fail later."""
    if codec == CODEC_GZIP:
        return compresslevel is None or type(compresslevel) is int and -1 <= compresslevel <= 9
    return codec == CODEC_NONE or (codec == CODEC_SNAPPY and has_snappy())
