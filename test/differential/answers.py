"""Answers as JSON-able values in which everything that may differ has one name.

Owns the list of the fields that two brokers of one release may answer differently: ids, times,
addresses, sizes of files, throttling. Each keeps what means something (none, zero, empty).
"""

from __future__ import annotations

from typing import Any, Dict

from kafka.protocol.schema import KINDS, ListOf, StructMeta
from kafka.protocol.wire import ZERO_UUID
from test.differential.records import shown, shown_bytes, shown_time

#: Made by chance or by a counter that others use too.
IDS = frozenset(
    'client_instance_id cluster_id hmac leader member_id ongoing_txn_producer_id producer_id'
    ' replica_directory_id session_id subscription_id token_id topic_id'
    ' finalized_features_epoch'.split()
)
#: Where a broker is and keeps its files.
PLACES = frozenset('host log_dir port'.split())
#: Bytes on disk and on the volume.
SIZES = frozenset('partition_size total_bytes usable_bytes'.split())
#: Given by quotas and load.
LEFT_OUT = frozenset(['throttle_time_ms'])
_NONE: Any = (None, '', 0, -1, b'', ZERO_UUID)


def plain(message: Any, version: int, base_ms: int) -> Dict[str, Any]:
    """Return the fields that a version of a message carries, nested, ready for JSON.

    Arguments: base_ms: when the script began.
    """
    return {
        field.name: _value(field.name, field.type, getattr(message, field.name), version, base_ms)
        for field in type(message).fields
        if field.is_on_wire(version) and field.name not in LEFT_OUT
    }


def _value(name: str, kind: Any, value: Any, version: int, base_ms: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, ListOf):
        return [_value(name, kind.element, each, version, base_ms) for each in value]
    if isinstance(kind, StructMeta):
        return plain(value, version, base_ms)
    if name in IDS | PLACES | SIZES and value not in _NONE:
        return '<id>' if name in IDS else '<place>' if name in PLACES else '<size>'
    return _single(kind, value, base_ms)


def _single(kind: Any, value: Any, base_ms: int) -> Any:
    if kind is KINDS['Uuid']:
        return 'none' if value == ZERO_UUID else 'uuid:' + value.hex()
    if kind is KINDS['Records']:
        return shown(value, base_ms)
    if kind is KINDS['Bytes']:
        return shown_bytes(value)
    if kind is KINDS['Int64']:
        return shown_time(value, base_ms)
    return value
