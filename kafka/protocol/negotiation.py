"""Version negotiation: the ApiVersions request, and the versions that a broker supports.

It reads responses of brokers that do not know the requested version (KIP-511), and corrects the
listed versions (KIP-35; two kinds of brokers list too many). Called by session.py; probe.py handles
brokers without ApiVersions.
"""

from __future__ import annotations

import struct
from typing import Dict, Mapping, NamedTuple, Tuple, Union

from kafka.errors import KafkaError, UnsupportedVersionError, error_for_code
from kafka.protocol import api
from kafka.protocol.api import ApiKey
from kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.version import __version__

__all__ = [
    'BrokerVersions',
    'Ranges',
    'broker_versions',
    'read_versions',
    'usable_versions',
    'versions_request',
]

Ranges = Mapping[int, Tuple[int, int]]

SOFTWARE_NAME = 'kafka-evergreen'
UNSUPPORTED_VERSION = 35
LEADER_AND_ISR = 4  # an API between brokers with ZooKeeper

_RESPONSE_START = struct.Struct('>ih')  # correlation id, and the error code that opens the body


class BrokerVersions(NamedTuple):
    """The versions and features that a broker supports."""

    ranges: Dict[int, Tuple[int, int]]  # api key -> (lowest, highest) version to use
    supported_features: Dict[str, Tuple[int, int]] = {}  # name -> (lowest, highest) level
    finalized_features: Dict[str, int] = {}  # name -> finalized level
    finalized_features_epoch: int = -1  # -1: absent in the response


def usable_versions(listed: Ranges) -> Dict[int, Tuple[int, int]]:
    """Return the version ranges that a broker really supports, given those that it lists.

    Two kinds of lists contain too much. Brokers from 4.0 on list Produce from 0 on, for old
    librdkafka, but support it from 3 on (KAFKA-18659). KRaft brokers, recognised by the absence of
    the APIs between brokers with ZooKeeper, list version 0 of OffsetCommit and OffsetFetch up to
    3.9 but respond with error 35, since it means offsets in ZooKeeper.
    """
    ranges = {key: (low, high) for key, (low, high) in listed.items() if 0 <= low <= high}
    lift = []
    if ranges.get(ApiKey.PRODUCE, (0, 0))[1] >= 12:
        lift.append((ApiKey.PRODUCE, 3))
    if ApiKey.API_VERSIONS in ranges and LEADER_AND_ISR not in ranges:
        lift += [(ApiKey.OFFSET_COMMIT, 1), (ApiKey.OFFSET_FETCH, 1)]
    for key, real in lift:
        if key in ranges and ranges[key][1] >= real:
            ranges[key] = (max(real, ranges[key][0]), ranges[key][1])
    return ranges


def versions_request(
    version: int, software_name: str = SOFTWARE_NAME, software_version: str = __version__
) -> ApiVersionsRequest:
    """Return an ApiVersions request; it names the software from version 3 on."""
    if version < 3:
        software_name = software_version = ''
    return ApiVersionsRequest(
        client_software_name=software_name, client_software_version=software_version
    )


def read_versions(data: bytes, version: int) -> Union[ApiVersionsResponse, int]:
    """Decode the response to an ApiVersions request of `version`: return it, or the next version.

    Error 35 always comes in the layout of version 0, and lists at most the range of ApiVersions
    itself (KIP-511; 0.10 lists nothing). After any other failure of a later version, including an
    unreadable response, version 0 is tried.

    Raises UnsupportedVersionError, ProtocolError or the broker's error if version 0 fails too.
    """
    code = _RESPONSE_START.unpack_from(data)[1] if len(data) >= _RESPONSE_START.size else 0
    try:
        if code == UNSUPPORTED_VERSION:
            return _lower_version(data, version)
        _, response = api.decode_response(ApiVersionsResponse, data, version)
    except KafkaError as error:
        if version == 0 or isinstance(error, UnsupportedVersionError):
            raise
        return 0
    if code and version == 0:
        raise error_for_code(code)('the response to ApiVersions')
    return 0 if code else response


def _lower_version(data: bytes, refused: int) -> int:
    if refused == 0:
        raise UnsupportedVersionError('the broker supports no version of ApiVersions')
    _, response = api.decode_response(ApiVersionsResponse, data, 0)
    for entry in response.api_keys:
        if entry.api_key == ApiKey.API_VERSIONS:
            best = min(entry.max_version, ApiVersionsRequest.max_version)
            return best if 0 <= best < refused else 0
    return 0


def broker_versions(response: ApiVersionsResponse) -> BrokerVersions:
    """Return the content of an ApiVersions response, with corrected version ranges."""
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    return BrokerVersions(
        usable_versions(listed),
        {f.name: (f.min_version, f.max_version) for f in response.supported_features},
        {f.name: f.max_version_level for f in response.finalized_features},
        response.finalized_features_epoch,
    )
