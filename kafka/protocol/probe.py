"""The probe of a broker's versions, for brokers that may be older than ApiVersions.

It decides which requests to send, and interprets responses, silence and closed connections;
releases without ApiVersions have fixed version ranges. The connection belongs to the driver;
negotiation.py reads ApiVersions.

Brokers from 0.10 on respond to ApiVersions with their versions. Older ones must not receive it:
0.8 closes the connection, and 0.9 does not respond and does worse. The error that an unknown
request raises there aborts the current iteration of its network thread, whose remaining work is
lost: connections of other clients whose response was just sent are never read again. Therefore
Metadata is sent first, in version 1, which 0.10 introduced. Older brokers ignore the version, and
respond in the layout of version 0; the layout shows whether ApiVersions may be sent.

Releases without ApiVersions differ by the APIs that they support:

    =======  ============  ==============  ==============
    release  Heartbeat v0  ListGroups v0   OffsetFetch v0
    =======  ============  ==============  ==============
    0.8.0    closes                        closes
    0.8.1    closes                        answers
    0.8.2    answers       closes
    0.9      answers       answers
    =======  ============  ==============  ==============

A connection may be lost for another reason, such as being idle for too long, so if it is closed at
the first request, the request is repeated once. Each of these requests is repeated as well, after
Metadata on a connection of its own, which shows that connections work: otherwise a 0.9 whose
connection breaks would be mistaken for 0.8. A listener with SASL closes the connection at Metadata
and responds to ApiVersions, which is tried last.

Brokers respond to an unknown version of ApiVersions with error 35 (KIP-511). Some services close
the connection, or do not respond: so lower versions follow, each on a connection of its own.

No request changes anything on a broker. Metadata requests a topic with an invalid name: the empty
list would return all topics, a valid name might create one. FindCoordinator, the obvious test for
0.8.2, is not used because it creates the topic of the offsets.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, Iterable, List, NamedTuple, Optional, Tuple

from kafka.errors import (
    BufferUnderflowError,
    CorrelationIdError,
    KafkaConnectionError,
    ProtocolError,
)
from kafka.protocol import api
from kafka.protocol.api import ApiKey
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.frames import frame
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka.protocol.negotiation import (
    BrokerVersions,
    broker_versions,
    read_versions,
    versions_request,
)
from kafka.protocol.wire import Message

__all__ = [
    'OLD_RELEASES',
    'SILENCE',
    'SILENT_SECONDS',
    'VERSIONS_TRIED',
    'VersionsUnanswered',
    'ProbeResult',
    'ProbeStep',
    'probe_versions',
    'unanswered_text',
    'versions_to_try',
]

_Ranges = Dict[int, Tuple[int, int]]

#: Versions of ApiVersions to try, in this order. Between the flexible ones (3 and later) and 0
#: there is no difference that matters to a client.
VERSIONS_TRIED = (ApiVersionsRequest.max_version, 3, 0)
#: How long to wait for a response to one of them, in seconds, if another one is left to try.
SILENT_SECONDS = 1.5
#: What a driver sends to the generator instead of a frame if the broker did not respond.
SILENCE = b''

_OFFSET_APIS_0_8_1: _Ranges = {ApiKey.OFFSET_COMMIT: (0, 0), ApiKey.OFFSET_FETCH: (0, 0)}
_OFFSET_APIS_0_8_2: _Ranges = {
    ApiKey.OFFSET_COMMIT: (0, 1),
    ApiKey.OFFSET_FETCH: (0, 1),
    ApiKey.FIND_COORDINATOR: (0, 0),
}
_FIRST_APIS: _Ranges = {
    ApiKey.PRODUCE: (0, 0),
    ApiKey.FETCH: (0, 0),
    ApiKey.LIST_OFFSETS: (0, 0),
    ApiKey.METADATA: (0, 0),
}

#: The versions of releases without ApiVersions: {release: {api key: (lowest, highest version)}}.
OLD_RELEASES: Dict[str, _Ranges] = {
    '0.8.0': {**_FIRST_APIS},
    '0.8.1': {**_FIRST_APIS, **_OFFSET_APIS_0_8_1},
    '0.8.2': {**_FIRST_APIS, **_OFFSET_APIS_0_8_2},
    '0.9': {
        **_FIRST_APIS,
        ApiKey.PRODUCE: (0, 1),
        ApiKey.FETCH: (0, 1),
        ApiKey.OFFSET_COMMIT: (0, 2),
        ApiKey.OFFSET_FETCH: (0, 1),
        ApiKey.FIND_COORDINATOR: (0, 0),
        ApiKey.JOIN_GROUP: (0, 0),
        ApiKey.HEARTBEAT: (0, 0),
        ApiKey.LEAVE_GROUP: (0, 0),
        ApiKey.SYNC_GROUP: (0, 0),
        ApiKey.DESCRIBE_GROUPS: (0, 0),
        ApiKey.LIST_GROUPS: (0, 0),
    },
}

# A name of a topic that is invalid in all releases.
IMPOSSIBLE_TOPIC = '?'

# Correlation ids of the requests. Negative, so that no response can be mistaken for one to a
# request of the connection's user, who starts from 0.
ASK_METADATA = -2
ASK_VERSIONS = -3  # and downwards, one per attempt
ASK_MARK = -100  # minus the API key


class VersionsUnanswered(KafkaConnectionError):
    """The broker responded to no version of ApiVersions, or to Metadata as such brokers do."""


class ProbeStep(NamedTuple):
    """The next step of the driver: maybe open a new connection, write, then read one frame."""

    data: bytes  # empty: nothing to write
    reconnect: bool
    may_be_silent: bool = False  # after SILENT_SECONDS without a response send SILENCE


class ProbeResult(NamedTuple):
    """The result of the probe."""

    versions: BrokerVersions
    release: Optional[str]  # a key of OLD_RELEASES if the versions were inferred, else None
    connected: bool  # whether the last connection is still open
    asked_version: int = VERSIONS_TRIED[0]  # of ApiVersions, with a response


Probe = Generator[ProbeStep, Optional[bytes], ProbeResult]


def probe_versions(
    client_id: Optional[str] = None,
    release: Optional[str] = None,
    highest: int = VERSIONS_TRIED[0],
) -> Probe:
    """Find out which versions a broker supports.

    Arguments: release: a key of OLD_RELEASES to assume for a broker without ApiVersions; None to
        detect it; highest: version of ApiVersions, if other brokers of the cluster did not respond
        to higher ones.

    A generator: start it with ``next()``, perform the step it yields, and send it the frame that
    was read (without its length), None if the broker closed the connection, or SILENCE.
    StopIteration has the ProbeResult. The connection must be new, or have no outstanding responses.
    Raises KafkaConnectionError if the broker closes the connection at each request, and errors of
    ``session.read_versions`` for an invalid response.
    """
    for reconnect in (False, True):
        data = yield ProbeStep(_ask_metadata(client_id), reconnect)
        if data is not None:
            _expect(ASK_METADATA, data)
            if not _is_layout_1(data):
                if release is not None:
                    return ProbeResult(BrokerVersions(OLD_RELEASES[release]), release, True)
                return (yield from _probe_marks(client_id))
            return (yield from _probe_listed(client_id, highest, False, ''))
    return (yield from _probe_listed(client_id, highest, True, '; this port may want TLS'))


def versions_to_try(highest: int) -> Tuple[int, ...]:
    """Return the versions of ApiVersions to try, up to the highest, in descending order."""
    return tuple(version for version in VERSIONS_TRIED if version <= highest)


def unanswered_text(tried: Iterable[Tuple[int, bool]]) -> str:
    """Return what happened to versions of ApiVersions, given as (version, whether silent)."""
    shown = ', '.join(
        'version %d (%s)' % (version, 'no answer' if was_silent else 'connection closed')
        for version, was_silent in tried
    )
    return 'the broker did not respond to ApiVersions: ' + shown


def _is_layout_1(data: bytes) -> bool:
    """Return True if a response to Metadata has the layout of version 1, not that of version 0.

    A response rarely fits the wrong layout; if it does, it names another topic there than the
    requested one.
    """
    fitting = []
    for version in (1, 0):
        try:
            _, answer = api.decode_response(MetadataResponse, data, version)
        except (ProtocolError, BufferUnderflowError):
            continue
        fitting.append(version)
        if [topic.name for topic in answer.topics] == [IMPOSSIBLE_TOPIC]:
            return version == 1
    if not fitting:
        raise ProtocolError('the response of the broker is not one to Metadata')
    return fitting[0] == 1


def _probe_listed(client_id: Optional[str], highest: int, reconnect: bool, hint: str) -> Probe:
    """Request the list of versions, in descending versions. Raises KafkaConnectionError."""
    left, question = list(versions_to_try(highest)), ASK_VERSIONS
    asked = version = left.pop(0)
    tried: List[Tuple[int, bool]] = []
    while True:
        request = _ask_versions(version, question, client_id)
        data = yield ProbeStep(request, reconnect, may_be_silent=bool(left))
        if not data:
            tried.append((version, data is not None))
            left = [each for each in left if each < version]
            if not left and len(tried) == 1:
                left = [version]  # the connection may have been lost for another reason
            if not left:
                raise VersionsUnanswered(unanswered_text(tried) + hint)
            asked = version = left.pop(0)
            question, reconnect = question - 1, True
            continue
        _expect(question, data)
        answer = read_versions(data, version)
        if not isinstance(answer, int):
            return ProbeResult(broker_versions(answer), None, True, asked)
        version, question, reconnect = answer, question - 1, False


def _probe_marks(client_id: Optional[str]) -> Probe:
    """Detect the release of a broker without ApiVersions.

    One request at a time: a connection that is closed with unread requests may be reset, and the
    responses before are lost.
    """
    heartbeat = {'group_id': '', 'generation_id': -1, 'member_id': ''}
    if (yield from _has_mark(ApiKey.HEARTBEAT, heartbeat, client_id)):
        connected = yield from _has_mark(ApiKey.LIST_GROUPS, {}, client_id)
        release = '0.9' if connected else '0.8.2'
    else:
        offsets = {'group_id': '', 'topics': []}
        connected = yield from _has_mark(ApiKey.OFFSET_FETCH, offsets, client_id, reconnect=True)
        release = '0.8.1' if connected else '0.8.0'
    return ProbeResult(BrokerVersions(OLD_RELEASES[release]), release, connected)


def _has_mark(
    key: ApiKey, fields: Dict[str, Any], client_id: Optional[str], reconnect: bool = False
) -> Generator[ProbeStep, Optional[bytes], bool]:
    """Send version 0 of an API; return False if the broker closes two connections at it.

    Raises KafkaConnectionError when it closes one at Metadata, which all releases answer.
    """
    request = _encode(api.request_class(key)(**fields), 0, ASK_MARK - key, client_id)
    for is_again in (False, True):
        if reconnect or is_again:
            data = yield ProbeStep(_ask_metadata(client_id), True)
            if data is None:
                raise KafkaConnectionError(
                    'connections break while the broker is probed: its release cannot be determined'
                )
            _expect(ASK_METADATA, data)
        answer = yield ProbeStep(request, False)
        if answer is not None:
            _expect(ASK_MARK - key, answer)
            return True
    return False


def _ask_versions(version: int, correlation_id: int, client_id: Optional[str]) -> bytes:
    return _encode(versions_request(version), version, correlation_id, client_id)


def _ask_metadata(client_id: Optional[str]) -> bytes:
    topics = [MetadataRequestTopic(name=IMPOSSIBLE_TOPIC)]
    return _encode(MetadataRequest(topics=topics), 1, ASK_METADATA, client_id)


def _encode(request: Message, version: int, correlation_id: int, client_id: Optional[str]) -> bytes:
    return frame(api.encode_request(request, version, correlation_id, client_id))


def _expect(correlation_id: int, data: bytes) -> None:
    if len(data) < 4 or int.from_bytes(data[:4], 'big', signed=True) != correlation_id:
        raise CorrelationIdError('the response of the broker has another correlation id')
