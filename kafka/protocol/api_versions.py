"""ApiVersions: the API versions that a broker supports.

A broker without the requested version responds with error 35 in the layout of version 0 (KIP-511):
the receiver has to check the error code, the first two bytes of the body, before it chooses the
version to decode.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.internals.lazy_imports import import_late
from kafka.protocol.wire import Bool, Int16, Int32, Int64, Message, Route, String, Struct, v


class ApiVersionsRequest(Message, api_key=18, valid='0-5', flexible='3+', route=Route.BROKER):
    """Request the versions that a broker supports (KIP-35).

    v3 is flexible and names the client's software (KIP-511), v4 allows feature ranges that begin at
    0 in the response (KAFKA-17011), v5 names the node and cluster that are meant (KIP-1242).
    """

    client_software_name: String = v('3+', default='', ignorable=True)
    client_software_version: String = v('3+', default='', ignorable=True)
    cluster_id: Optional[String] = v('5+', default=None, ignorable=True)
    node_id: Int32 = v('5+', default=-1, ignorable=True)


class ApiVersion(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Message, api_key=18, valid='0-5', flexible='3+'):
    """The versions and the features of a broker; always under header version 0.

    v1 adds the throttle time, v3 is flexible and adds features as tags (KIP-584). With error 35
    the layout is that of v0 (KIP-511).
    """

    error_code: Int16
    api_keys: List[ApiVersion]
    throttle_time_ms: Int32 = v('1+', default=0, ignorable=True)
    supported_features: List[SupportedFeatureKey] = v('3+', tag=0, default=[], ignorable=True)
    finalized_features_epoch: Int64 = v('3+', tag=1, default=-1, ignorable=True)
    finalized_features: List[FinalizedFeatureKey] = v('3+', tag=2, default=[], ignorable=True)
    zk_migration_ready: Bool = v('3+', tag=3, default=False, ignorable=True)


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
