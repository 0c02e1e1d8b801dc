"""Answers as JSON-able values in which everything that may differ has one name.

Owns the list of the fields that two brokers of one release may answer differently: ids, times,
addresses, sizes of files, throttling. Each keeps what means something (none, zero, empty; which of
the ids that a case has seen; how many hours from now).
"""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Optional

from kafka.protocol.schema import KINDS, ListOf, StructMeta
from kafka.protocol.wire import ZERO_UUID
from test.differential.records import shown, shown_bytes, shown_time

#: Made by chance or by a counter that others use too; numbered in a case by what they are ids of.
NUMBERED = {
    'client_instance_id': 'client',
    'hmac': 'hmac',
    'leader': 'member',  # of a classic group
    'member_id': 'member',
    'ongoing_txn_producer_id': 'producer',
    'producer_id': 'producer',
    'session_id': 'session',
    'token_id': 'token',
}
#: Those that are not, because who else asked and when is in them or because there is only one.
IDS = frozenset('cluster_id replica_directory_id subscription_id finalized_features_epoch'.split())
#: Where a broker is and keeps its files.
PLACES = frozenset('log_dir port'.split())
#: Bytes on disk and on the volume.
SIZES = frozenset('partition_size total_bytes usable_bytes'.split())
#: Given by quotas and load.
LEFT_OUT = frozenset(['throttle_time_ms'])
_NONE: Any = (None, '', 0, -1, b'', ZERO_UUID)
#: What brokers put behind the name of a client to make a member of it.
_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')


class Names:
    """Names for what has none of its own in the answers of one case.

    Arguments: topics: names of topics by id, as far as the script knows them.
    """

    def __init__(self, topics: Optional[Mapping[bytes, str]] = None) -> None:
        self._topics = dict(topics or {})
        self._seen: Dict[Any, int] = {}

    def note_topic(self, topic_id: bytes, name: str) -> None:
        """Note the id of a topic."""
        self._topics[topic_id] = name

    def numbered(self, kind: str, value: Any) -> str:
        """Return ``<producer 1>``, with the number that the first of its kind to come has."""
        count = sum(1 for each, _ in self._seen if each == kind)
        return '<%s %d>' % (kind, self._seen.setdefault((kind, value), count + 1))

    def member(self, value: str) -> str:
        """Return the name of a member, with what brokers put before the id that they make."""
        name = self.numbered('member', value)
        found = _UUID.search(value)
        return value[: found.start()] + name if found else name

    def topic(self, topic_id: bytes) -> str:
        """Return ``<id of NAME>`` for a topic."""
        name = self._topics.get(topic_id)
        return '<id>' if name is None else '<id of %s>' % name


def plain(
    message: Any, version: int, base_ms: int, names: Optional[Names] = None
) -> Dict[str, Any]:
    """Return the fields that a version of a message carries, nested, ready for JSON.

    Arguments: base_ms: when the script began; names: of the case.
    """
    return _fields(message, version, base_ms, names or Names())


def _fields(message: Any, version: int, base_ms: int, names: Names) -> Dict[str, Any]:
    return {
        field.name: _value(
            field.name, field.type, getattr(message, field.name), version, base_ms, names
        )
        for field in type(message).fields
        if field.is_on_wire(version) and field.name not in LEFT_OUT
    }


def _value(name: str, kind: Any, value: Any, version: int, base_ms: int, names: Names) -> Any:
    if value is None:
        return None
    if isinstance(kind, ListOf):
        return [_value(name, kind.element, each, version, base_ms, names) for each in value]
    if isinstance(kind, StructMeta):
        return _fields(value, version, base_ms, names)
    named = None if _is_none(value) else _named(name, value, names)
    return _single(kind, value, base_ms, names) if named is None else named


def _is_none(value: Any) -> bool:
    """Return whether a value stands for none; a number is not compared with text or bytes."""
    kinds = (str, bytes)
    return any(
        (type(value) is type(each) or not isinstance(value, kinds) and not isinstance(each, kinds))
        and value == each
        for each in _NONE
    )


def _named(name: str, value: Any, names: Names) -> Optional[str]:
    """Return what stands for a value in a field of a name, None if that is the value itself."""
    if name == 'topic_id':
        return names.topic(bytes(value))
    kind = NUMBERED.get(name)
    if kind is not None:
        is_text = kind == 'member' and isinstance(value, str)
        return names.member(value) if is_text else names.numbered(kind, value)
    if name in IDS:
        return '<id>'
    return '<place>' if name in PLACES else '<size>' if name in SIZES else None


def _single(kind: Any, value: Any, base_ms: int, names: Names) -> Any:
    if kind is KINDS['Uuid']:
        return 'none' if value == ZERO_UUID else 'uuid:' + value.hex()
    if kind is KINDS['Records']:
        return shown(value, base_ms, lambda each: names.numbered('producer', each))
    if kind is KINDS['Bytes']:
        return shown_bytes(value)
    if kind is KINDS['Int64']:
        return shown_time(value, base_ms)
    return value
