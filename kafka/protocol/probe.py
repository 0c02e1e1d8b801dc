"""Finding out what a broker serves when it may be older than the question.

Owns: the questions and what their answers, their silence and the closing of a connection mean; the
versions of the releases that cannot list them. Does not own: the connection (the driver's), how
ApiVersions is read and negotiated (session.py).

Brokers from 0.10 on list their versions when they get ApiVersions. Those before must not get it:
0.8 closes the connection, and 0.9 stays silent and does worse. The error that an unknown request
raises there ends the round of its network thread, and what that round had still to do is forgotten:
connections of others whose answer has just gone out are never read again. So Metadata comes first,
in version 1, which 0.10 brought. Older brokers do not look at the version, and answer in the layout
of version 0; which of the two it is tells whether ApiVersions may follow.

Releases that cannot list are told apart by what they know:

    =======  ============  ==============  ==============
    release  Heartbeat v0  ListGroups v0   OffsetFetch v0
    =======  ============  ==============  ==============
    0.8.0    closes                        closes
    0.8.1    closes                        answers
    0.8.2    answers       closes
    0.9      answers       answers
    =======  ============  ==============  ==============

A connection may have been lost for another reason, such as having been idle for too long, so what
is closed at the first question is asked once more. So is each mark, behind Metadata on a connection
of its own, which shows that connections work: else a 0.9 whose connection breaks in the middle
would be an 0.8 to the client. A listener with SASL closes at Metadata and answers ApiVersions; that
is asked last.

Brokers answer a version of ApiVersions that they do not know with error 35 (KIP-511). Some services
close the connection, or say nothing: so lower versions follow, each on a connection of its own.

No question changes anything on a broker. Metadata asks for a topic of a name that cannot exist: the
empty list would fetch all topics, any good name might create one. FindCoordinator, the obvious mark
of 0.8.2, is not asked because it creates the topic of the offsets.
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

#: Versions of ApiVersions, tried in this order where one is not answered. Between the flexible ones
#: (3 and later) and 0 nothing differs that matters to a client.
VERSIONS_TRIED = (ApiVersionsRequest.max_version, 3, 0)
#: Seconds that an answer to one of them is waited for, while there is another to be tried.
SILENT_SECONDS = 1.5
#: What a driver sends in place of a frame where the broker stayed silent.
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


class VersionsUnanswered(KafkaConnectionError):
    """The broker answered no version of ApiVersions, or Metadata, which shows the same."""


class ProbeStep(NamedTuple):
    """What the driver does next: maybe open a new connection, write, then read one frame."""

    data: bytes  # empty: nothing to write
    reconnect: bool
    may_be_silent: bool = False  # after SILENT_SECONDS without an answer the probe gets SILENCE


class ProbeResult(NamedTuple):
    """What the probe found."""

    versions: BrokerVersions
    release: Optional[str]  # a key of OLD_RELEASES if the versions were inferred, else None
    connected: bool  # whether the broker left the last connection open
    asked_version: int = VERSIONS_TRIED[0]  # of ApiVersions, that was answered


Probe = Generator[ProbeStep, Optional[bytes], ProbeResult]


def probe_versions(
    client_id: Optional[str] = None,
    release: Optional[str] = None,
    highest: int = VERSIONS_TRIED[0],
) -> Probe:
    """Find out what a broker serves.

    Arguments: release: a key of OLD_RELEASES that a broker which cannot list is taken for; None to
        tell those releases apart; highest: version of ApiVersions, where other brokers of the
        cluster did not answer higher ones.

    A generator: start it with ``next()``, do the step it yields, and send it the frame that was
    read (without its length), None if the broker closed the connection, or SILENCE. StopIteration
    carries the ProbeResult. On a new connection, or on one whose earlier answers were all read.

    Raises KafkaConnectionError if the broker closes whatever is asked, and whatever
    ``session.read_versions`` raises for an answer that makes no sense.
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
    """Return versions of ApiVersions up to one, the highest first."""
    return tuple(version for version in VERSIONS_TRIED if version <= highest)


def unanswered_text(tried: Iterable[Tuple[int, bool]]) -> str:
    """Return what a broker did with versions of ApiVersions, each with whether it was silent."""
    shown = ', '.join(
        'version %d (%s)' % (version, 'no answer' if was_silent else 'connection closed')
        for version, was_silent in tried
    )
    return 'the broker answered no ApiVersions request: ' + shown


def _is_layout_1(data: bytes) -> bool:
    """Tell whether an answer to Metadata has the layout of version 1, and not that of version 0.

    An answer hardly ever fits the layout that is not its own; if it does, it names another topic
    there than the one that was asked for.
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
        raise ProtocolError('what the broker answered is no answer to Metadata')
    return fitting[0] == 1


def _probe_listed(client_id: Optional[str], highest: int, reconnect: bool, hint: str) -> Probe:
    """Ask for the list, in lower and lower versions. Raises KafkaConnectionError."""
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
    """Tell the releases apart that cannot list.

    One question at a time: a connection that is closed with unread requests may be reset, and lose
    the answers before.
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
    """Ask version 0 of an API; False if the broker closes two connections at it.

    Raises KafkaConnectionError when it closes one at Metadata, which all releases answer.
    """
    request = _encode(api.request_class(key)(**fields), 0, ASK_MARK - key, client_id)
    for is_again in (False, True):
        if reconnect or is_again:
            data = yield ProbeStep(_ask_metadata(client_id), True)
            if data is None:
                raise KafkaConnectionError(
                    'connections break while the broker is asked what it knows: its release cannot'
                    ' be told'
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
        raise CorrelationIdError('what the broker answered is not what it was asked for')
