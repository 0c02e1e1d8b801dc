"""Finding out what a broker serves when it may be older than the question.

Owns: the questions and what their answers, their silence and the closing of a connection mean; the
versions of the releases that cannot list them. Does not own: the connection (the driver's), how
ApiVersions is read and negotiated (session.py).

Brokers from 0.10 on answer ApiVersions. Before that:

    =======  ===================  ============  ==============  ==============
    release  ApiVersions          Heartbeat v0  ListGroups v0   OffsetFetch v0
    =======  ===================  ============  ==============  ==============
    0.8.0    closes               closes        closes          closes
    0.8.1    closes               closes        closes          answers
    0.8.2    closes               answers       closes          answers
    0.9      silence, stays open  answers       answers         answers
    =======  ===================  ============  ==============  ==============

So ApiVersions is followed by a Metadata request on the same connection: an answer to the second
without one to the first means 0.9. If the broker closes the connection, the marks of 0.8 are asked
for on a new one, Metadata first; the number of answers before it closes again tells the release.
An answer to all of them means that the first connection was lost for another reason, such as
having been idle for too long. OffsetFetch comes last and alone, since 4.0 closes on it too.

No question changes anything on a broker. Metadata asks for a topic of a name that cannot exist: the
empty list would fetch all topics, any good name might create one. FindCoordinator, the obvious mark
of 0.8.2, is not asked because it creates the topic of the offsets.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, NamedTuple, Optional, Tuple

from kafka.errors import CorrelationIdError, KafkaConnectionError
from kafka.protocol import api
from kafka.protocol.api import ApiKey
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.frames import frame
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.negotiation import (
    BrokerVersions,
    broker_versions,
    read_versions,
    versions_request,
)
from kafka.protocol.wire import Message

__all__ = ['OLD_RELEASES', 'ProbeResult', 'ProbeStep', 'probe_versions']

_Ranges = Dict[int, Tuple[int, int]]

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

#: What the releases serve that cannot be asked: {release: {api key: (lowest, highest version)}}.
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

# A name that no release accepts for a topic.
IMPOSSIBLE_TOPIC = '?'

# Correlation ids of the questions. Negative, so that no answer to them can be mistaken for one to
# a request of the connection's user, who counts from 0 up.
ASK_METADATA = -2
ASK_VERSIONS = -3  # and downwards, one per attempt
ASK_MARK = -100  # less the API key


class ProbeStep(NamedTuple):
    """What the driver does next: maybe open a new connection, write, then read one frame."""

    data: bytes  # empty: nothing to write
    reconnect: bool


class ProbeResult(NamedTuple):
    """What the probe found."""

    versions: BrokerVersions
    release: Optional[str]  # a key of OLD_RELEASES if the versions were inferred, else None
    connected: bool  # whether the broker left the last connection open


Probe = Generator[ProbeStep, Optional[bytes], ProbeResult]
_Search = Generator[ProbeStep, Optional[bytes], Optional[ProbeResult]]


def probe_versions(client_id: Optional[str] = None) -> Probe:
    """Find out what a broker serves.

    A generator: start it with ``next()``, do the step it yields, and send it the frame that was
    read (without its length), or None if the broker closed the connection. StopIteration carries
    the ProbeResult. On a new connection, or on one whose earlier answers were all read.

    Raises KafkaConnectionError if the broker closes whatever is asked, and whatever
    ``session.read_versions`` raises for an answer that makes no sense.
    """
    result = yield from _probe_listed(client_id)
    if result is None:
        result = yield from _probe_0_8(client_id)
    if result is None:
        result = yield from _probe_listed(client_id)
    if result is None:
        raise KafkaConnectionError('the broker closes the connection when asked for its versions')
    return result


def _probe_listed(client_id: Optional[str]) -> _Search:
    """Ask for the list; None if the broker closes the connection instead."""
    version, question = ApiVersionsRequest.max_version, ASK_VERSIONS
    first = _ask_versions(version, question, client_id) + _ask_metadata(client_id)
    data = yield ProbeStep(first, False)
    if data is None:
        return None
    if _correlation_id(data) == ASK_METADATA:
        return ProbeResult(BrokerVersions(OLD_RELEASES['0.9']), '0.9', True)
    _expect(question, data)
    # A listener with SASL answers ApiVersions and closes at Metadata.
    metadata = yield ProbeStep(b'', False)
    connected = metadata is not None
    if metadata is not None:
        _expect(ASK_METADATA, metadata)
    answer = read_versions(data, version)
    while isinstance(answer, int):
        version, question = answer, question - 1
        data = yield ProbeStep(_ask_versions(version, question, client_id), not connected)
        connected = True
        if data is None:
            return None
        _expect(question, data)
        answer = read_versions(data, version)
    return ProbeResult(broker_versions(answer), None, connected)


def _probe_0_8(client_id: Optional[str]) -> _Search:
    """Tell the releases apart that close on ApiVersions; None, still connected, if it is none.

    One question at a time: a connection that is closed with unread requests may be reset, and lose
    the answers before.
    """
    answer = yield ProbeStep(_ask_metadata(client_id), True)
    if answer is None:
        raise KafkaConnectionError(
            'the broker closes the connection whatever is asked; this port may want TLS or SASL'
        )
    _expect(ASK_METADATA, answer)
    heartbeat = {'group_id': '', 'generation_id': -1, 'member_id': ''}
    if (yield from _has_mark(ApiKey.HEARTBEAT, heartbeat, client_id)):
        if (yield from _has_mark(ApiKey.LIST_GROUPS, {}, client_id)):
            return None
        return ProbeResult(BrokerVersions(OLD_RELEASES['0.8.2']), '0.8.2', False)
    offsets = {'group_id': '', 'topics': []}
    if (yield from _has_mark(ApiKey.OFFSET_FETCH, offsets, client_id, reconnect=True)):
        return ProbeResult(BrokerVersions(OLD_RELEASES['0.8.1']), '0.8.1', True)
    return ProbeResult(BrokerVersions(OLD_RELEASES['0.8.0']), '0.8.0', False)


def _has_mark(
    key: ApiKey, fields: Dict[str, Any], client_id: Optional[str], reconnect: bool = False
) -> Generator[ProbeStep, Optional[bytes], bool]:
    """Ask version 0 of an API; False if the broker closes the connection."""
    request = api.request_class(key)(**fields)
    answer = yield ProbeStep(_encode(request, 0, ASK_MARK - key, client_id), reconnect)
    if answer is not None:
        _expect(ASK_MARK - key, answer)
    return answer is not None


def _ask_versions(version: int, correlation_id: int, client_id: Optional[str]) -> bytes:
    return _encode(versions_request(version), version, correlation_id, client_id)


def _ask_metadata(client_id: Optional[str]) -> bytes:
    topics = [MetadataRequestTopic(name=IMPOSSIBLE_TOPIC)]
    return _encode(MetadataRequest(topics=topics), 0, ASK_METADATA, client_id)


def _encode(request: Message, version: int, correlation_id: int, client_id: Optional[str]) -> bytes:
    return frame(api.encode_request(request, version, correlation_id, client_id))


def _correlation_id(data: bytes) -> Optional[int]:
    return int.from_bytes(data[:4], 'big', signed=True) if len(data) >= 4 else None


def _expect(correlation_id: int, data: bytes) -> None:
    if _correlation_id(data) != correlation_id:
        raise CorrelationIdError('what the broker answered is not what it was asked for')
