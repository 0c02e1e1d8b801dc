"""What a broker serves, as ApiVersions tells it.

Owns: the question, how its answers are read when the broker does not know the version it was asked
in (KIP-511), and which of the listed versions are worth sending (KIP-35, and two lists that promise
too much). Does not own: the conversation around it (session.py), brokers that do not know the
question at all (probe.py).
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
LEADER_AND_ISR = 4  # an API between ZooKeeper's brokers

_RESPONSE_START = struct.Struct('>ih')  # correlation id, and the error code that opens the body


class BrokerVersions(NamedTuple):
    """What a broker serves."""

    ranges: Dict[int, Tuple[int, int]]  # api key -> (lowest, highest) version worth sending
    supported_features: Dict[str, Tuple[int, int]] = {}  # name -> (lowest, highest) level
    finalized_features: Dict[str, int] = {}  # name -> level in force
    finalized_features_epoch: int = -1  # -1: the broker gave none


def usable_versions(listed: Ranges) -> Dict[int, Tuple[int, int]]:
    """Return the version ranges that a broker really serves, given those that it lists.

    Two lists say more than is true. Brokers from 4.0 on list Produce from 0 up, for the sake of old
    librdkafka, and serve it from 3 up (KAFKA-18659). KRaft brokers, recognised by not listing the
    APIs between ZooKeeper's brokers, list versions 0 of OffsetCommit and OffsetFetch up to 3.9 and
    answer them with error 35, since those mean offsets in ZooKeeper.
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
    """Return the request for a broker's versions; it names the software from version 3 on."""
    if version < 3:
        software_name = software_version = ''
    return ApiVersionsRequest(
        client_software_name=software_name, client_software_version=software_version
    )


def read_versions(data: bytes, version: int) -> Union[ApiVersionsResponse, int]:
    """Read the answer to an ApiVersions request of `version`: the response, or what to try next.

    Whatever was asked, error 35 comes in the layout of version 0, listing at best the range of
    ApiVersions itself (KIP-511; 0.10 lists nothing). Any other trouble with a later version, an
    unreadable answer included, is worth one more question in version 0.

    Raises UnsupportedVersionError, ProtocolError or the broker's error when version 0 fails too.
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
        raise error_for_code(code)('the answer to ApiVersions')
    return 0 if code else response


def _lower_version(data: bytes, refused: int) -> int:
    if refused == 0:
        raise UnsupportedVersionError('the broker serves no version of ApiVersions')
    _, response = api.decode_response(ApiVersionsResponse, data, 0)
    for entry in response.api_keys:
        if entry.api_key == ApiKey.API_VERSIONS:
            best = min(entry.max_version, ApiVersionsRequest.max_version)
            return best if 0 <= best < refused else 0
    return 0


def broker_versions(response: ApiVersionsResponse) -> BrokerVersions:
    """Return what an ApiVersions response says, with the version ranges made usable."""
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    return BrokerVersions(
        usable_versions(listed),
        {f.name: (f.min_version, f.max_version) for f in response.supported_features},
        {f.name: f.max_version_level for f in response.finalized_features},
        response.finalized_features_epoch,
    )
