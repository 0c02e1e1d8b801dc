"""The messages of one request: made at once, or when somebody looks at them.

Owns that choice. How they are made is ``kafka.protocol``'s business, how they are sent unmade that
of ``kafka.protocol.later`` and the client.
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

# What a program may have replaced, in any of the modules that it comes through.
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
    """Return the messages of a request, of values and keys that were found to be bytes or None.

    Arguments: create: create_message_set as the caller has it; client: who will send them; key: of
    a message that holds the others compressed.
    Raises: what `create` raises.
    """

    def make() -> List[Any]:
        made: List[Any] = create(list(zip(values, keys)), codec, key, compresslevel)
        return made

    # Only the class is asked: a stand-in object may answer every attribute with something true.
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
    # Nothing hides those of the module where they live.
    return bool(_constructors(vars(legacy)) == tuple(_OWN.values()))


def _is_certain(codec: int, compresslevel: Any) -> bool:
    """Tell whether making the messages cannot fail later on."""
    if codec == CODEC_GZIP:
        return compresslevel is None or type(compresslevel) is int and -1 <= compresslevel <= 9
    return codec == CODEC_NONE or (codec == CODEC_SNAPPY and has_snappy())
