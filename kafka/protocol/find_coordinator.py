"""FindCoordinator: the broker that coordinates a group or a transactional id.

Named ConsumerMetadata in 0.8.2 and GroupCoordinator in 0.9 and 0.10.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import Int8, Int16, Int32, Message, Route, String, Struct, v


class FindCoordinatorRequest(Message, api_key=10, valid='0-6', flexible='3+', route=Route.ANY):
    """Request the coordinator of a key; key type 0 is a group.

    v1 adds the key type, 1 for transactional ids (KIP-98). v3 is flexible, v4 takes several keys
    (KIP-699), v6 adds key type 2, share groups (KIP-932).
    """

    key: String = v('0-3', default='')
    key_type: Int8 = v('1+', default=0)
    coordinator_keys: List[String] = v('4+', default=[])


class Coordinator(Struct):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: Optional[String]


class FindCoordinatorResponse(Message, api_key=10, valid='0-6', flexible='3+'):
    """The coordinator: by itself in v0 to v3, one per key since v4 (KIP-699).

    v1 adds the throttle time and error messages, v3 is flexible.
    """

    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    error_code: Int16 = v('0-3', default=0)
    error_message: Optional[String] = v('1-3', default='', ignorable=True)
    node_id: Int32 = v('0-3', default=0)
    host: String = v('0-3', default='')
    port: Int32 = v('0-3', default=0)
    coordinators: List[Coordinator] = v('4+', default=[])


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
