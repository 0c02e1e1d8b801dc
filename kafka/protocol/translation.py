"""The translation of requests of 0.8 and 0.9 for brokers that no longer support them.

It decides which requests are old, which of them a broker receives unchanged, which requests replace
the others, and converts the responses. The connection is conn.py's; records are converted by
record/conversion.py. Pure: bytes and messages in, bytes and messages out, time is an argument.

KIP-896 removed these versions in 4.0. Produce and Fetch are replaced as soon as the broker supports
magic 2 (0.11), because it would otherwise convert the records of each fetch, and refuses to for
zstd. Differences that remain, by API:

Produce
    acks above 1 become -1: from 0.9 on brokers respond to them with error 21.
Fetch
    partitions may be larger than their ``max_bytes``; a single message may not (see
    record/conversion.py).
ListOffsets 0
    returned several offsets, of segments by the age of their files; now it is one, of a message by
    its timestamp.
OffsetCommit 0, OffsetFetch 0
    meant ZooKeeper; now offsets are stored by the group's coordinator, expire there, and can only
    be committed without membership while the group has no members. The timestamp of each partition
    in version 1 is lost.
Error codes above 16 are returned unchanged.
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Type, cast

from kafka.errors import KafkaError, UnsupportedVersionError
from kafka.protocol import api
from kafka.protocol.api import ApiKey, RequestHeader
from kafka.protocol.commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.frames import LENGTH_BYTES
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.negotiation import Ranges
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.translation_records import (
    FetchMemory,
    Substitute,
    substitute_produce,
    with_acks_from_all,
    write_records,
)
from kafka.protocol.wire import Buffer, Message

__all__ = ['OldRequest', 'Translation', 'Translator', 'Unread', 'parse_old_request']

# The versions that may be translated: {api key: the last of them}.
OLD_VERSIONS: Dict[int, int] = {
    ApiKey.PRODUCE: 2,
    ApiKey.FETCH: 3,
    ApiKey.LIST_OFFSETS: 0,
    ApiKey.METADATA: 0,
    ApiKey.OFFSET_COMMIT: 1,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.FIND_COORDINATOR: 0,
}

# Brokers that support these versions receive them, even if they support older ones too.
RAISED_TO: Dict[int, int] = {ApiKey.PRODUCE: 3, ApiKey.FETCH: 4}

# Every release supports these, so they can be sent before the broker's versions are known.
NEVER_DROPPED = {ApiKey.METADATA, ApiKey.FIND_COORDINATOR}

_START = struct.Struct('>ihh')  # length, API key, API version

LATEST, EARLIEST = -1, -2
UNKNOWN_TOPIC_OR_PARTITION = 3


class OldRequest(NamedTuple):
    """A request of an old version, decoded."""

    header: RequestHeader
    message: Message

    @property
    def needs_versions(self) -> bool:
        """Whether the broker's versions must be known before it is sent."""
        return self.header.api_key not in NEVER_DROPPED

    @property
    def asked_bytes(self) -> int:
        """The number of bytes of records that the request allows in the response."""
        if not isinstance(self.message, FetchRequest):
            return 0
        return sum(max(0, p.partition_max_bytes) for t in self.message.topics for p in t.partitions)


class Unread(NamedTuple):
    """The response to a translated request; its records may not be encoded yet."""

    header: RequestHeader  # of the request
    response: Message

    def write(self) -> bytes:
        """Return the bytes, beginning with the correlation id."""
        write_records(self.response)
        return api.encode_response(
            self.response, self.header.api_version, self.header.correlation_id
        )


def parse_old_request(payload: Buffer) -> Optional[OldRequest]:
    """Return the old request in these bytes, including its length prefix, or None.

    None for anything else: other APIs and versions, and bytes that are not exactly one request.
    """
    if int.from_bytes(payload[:LENGTH_BYTES], 'big') != len(payload) - LENGTH_BYTES:
        return None
    view = memoryview(payload)[LENGTH_BYTES:]
    try:
        header = api.peek_request_header(view)
        if not 0 <= header.api_version <= OLD_VERSIONS.get(header.api_key, -1):
            return None
        return OldRequest(*api.decode_request(view))
    except KafkaError:
        return None


class Translation:
    """The requests that replace one old request.

    Attributes: requests, version: to be sent one after the other, all in one version; maybe none.
    remark: a message for the program's log, or ''.
    """

    def __init__(self, old: OldRequest, substitute: Substitute, version: int) -> None:
        self.requests = substitute.requests
        self.version = version
        self.remark = substitute.remark
        self._header = old.header
        self._answer = substitute.answer

    def __repr__(self) -> str:
        return '<Translation of %s v%d to %d requests of v%d>' % (
            ApiKey(self._header.api_key).name,
            self._header.api_version,
            len(self.requests),
            self.version,
        )

    def unread(self, responses: Sequence[Message]) -> Unread:
        """Return the old response, given the responses in order.

        Raises UnsupportedCodecError or ProtocolError if fetched records cannot be decoded.
        """
        return Unread(self._header, self._answer(responses))

    def answer(self, responses: Sequence[Message]) -> bytes:
        """Return the old response as bytes, beginning with the correlation id; see unread()."""
        return self.unread(responses).write()


class Translator:
    """Translates the old requests of one connection.

    Arguments: ranges: the versions of the broker, {api key: (lowest, highest version)}.
    """

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._fetches = FetchMemory()
        self._versions: Dict[Tuple[Type[Message], Optional[int]], int] = {}  # chosen earlier
        self._served = {
            (key, version)
            for key, last in OLD_VERSIONS.items()
            for version in range(last + 1)
            if key not in RAISED_TO
            and ranges.get(key, (0, -1))[0] <= version <= ranges.get(key, (0, -1))[1]
        }

    def passes(self, payload: Buffer) -> bool:
        """Return True if a request can be sent unchanged, judging by its first bytes.

        That is so if the broker supports it and it may contain neither records nor acks.
        """
        try:
            length, key, version = _START.unpack_from(payload)
        except struct.error:
            return False
        return length == len(payload) - LENGTH_BYTES and (key, version) in self._served

    def raises(self, old: OldRequest) -> bool:
        """Return True if a request with records is sent to the broker in a later version."""
        high = self._ranges.get(old.header.api_key, (0, -1))[1]
        return high >= RAISED_TO[old.header.api_key]

    def translate(self, old: OldRequest, now_ms: int) -> Optional[Translation]:
        """Return the replacement of an old request, or None if the broker supports it unchanged.

        Arguments: now_ms: the timestamp of messages without one, milliseconds since the epoch.

        Raises UnsupportedVersionError, naming API and versions, if the broker supports neither the
        request nor a later version of it, and errors of substitute_produce().
        """
        substitute = self._substitute(old, now_ms)
        if substitute is None:
            return None
        chosen = type(old.message), substitute.highest
        if chosen not in self._versions:
            self._versions[chosen] = api.choose_version(chosen[0], self._ranges, chosen[1])
        return Translation(old, substitute, self._versions[chosen])

    def _substitute(self, old: OldRequest, now_ms: int) -> Optional[Substitute]:
        key, version = old.header.api_key, old.header.api_version
        low, high = self._ranges.get(key, (0, -1))
        if version > high:
            raise UnsupportedVersionError(
                '%s in version %d was sent; the broker %s'
                % (
                    type(old.message).__name__,
                    version,
                    'supports versions %d to %d' % (low, high)
                    if high >= 0
                    else 'does not support it',
                )
            )
        message = old.message
        if low <= version and high < RAISED_TO.get(key, high + 1):
            return self._unless_refused(message, version, high)
        if isinstance(message, ProduceRequest):
            return substitute_produce(message, now_ms)
        if isinstance(message, FetchRequest):
            return self._fetches.substitute(message)
        if isinstance(message, ListOffsetsRequest):
            return _substitute_list_offsets(message)
        if isinstance(message, MetadataRequest):
            return _substitute_metadata(message)
        if isinstance(message, OffsetCommitRequest):
            return _substitute_offset_commit(message)
        if isinstance(message, OffsetFetchRequest):
            return _substitute_offset_fetch(message, version)
        # FindCoordinator, which versions 1 to 3 extend compatibly.
        return Substitute([message], 3, lambda responses: responses[0])

    def _unless_refused(self, message: Message, version: int, high: int) -> Optional[Substitute]:
        """Replace acks > 1 for brokers of 0.9 and 0.10, known by Produce 1, which refuse them."""
        if isinstance(message, ProduceRequest) and message.acks > 1 and high >= 1:
            return with_acks_from_all(message, version)
        return None


# ---------------------------------------------------------------- Metadata, offsets


def _substitute_metadata(old: MetadataRequest) -> Substitute:
    """Convert all topics, once an empty list, to null; since version 1 an empty list means none.

    Both versions may create the topics that they name.
    """
    request = MetadataRequest(topics=old.topics or None)
    return Substitute([request], 12, lambda responses: responses[0])


def _substitute_list_offsets(old: ListOffsetsRequest) -> Substitute:
    """Request one offset per partition; times other than -1 and -2 need both ends of the log
    too."""

    def ask(special: Optional[int]) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                name=topic.name,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=part.partition_index,
                        timestamp=part.timestamp if special is None else special,
                    )
                    for part in topic.partitions
                    if special is None or part.timestamp >= 0
                ],
            )
            for topic in old.topics
        ]
        return ListOffsetsRequest(replica_id=-1, topics=[t for t in topics if t.partitions])

    requests: List[Message] = [ask(None)]
    if any(part.timestamp >= 0 for topic in old.topics for part in topic.partitions):
        requests += [ask(EARLIEST), ask(LATEST)]

    def answer(responses: Sequence[Message]) -> ListOffsetsResponse:
        return _list_offsets_answer(old, cast('Sequence[ListOffsetsResponse]', responses))

    return Substitute(requests, None, answer)


def _list_offsets_answer(
    old: ListOffsetsRequest, responses: Sequence[ListOffsetsResponse]
) -> ListOffsetsResponse:
    given = [
        {
            (topic.name, part.partition_index): part
            for topic in response.topics
            for part in topic.partitions
        }
        for response in responses
    ]

    def result(name: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        index = asked.partition_index
        error, offsets = _old_offsets(asked, [parts.get((name, index)) for parts in given])
        return ListOffsetsPartitionResponse(
            partition_index=index, error_code=error, old_style_offsets=offsets
        )

    topics = [
        ListOffsetsTopicResponse(
            name=topic.name, partitions=[result(topic.name, part) for part in topic.partitions]
        )
        for topic in old.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _old_offsets(
    asked: ListOffsetsPartition, given: Sequence[Optional[ListOffsetsPartitionResponse]]
) -> Tuple[int, List[int]]:
    """Return error code and offsets of one partition: at the time, earliest, latest.

    After the last message the old list began with the end of the log; before the first it was
    empty.
    """
    parts = given if asked.timestamp >= 0 else given[:1]
    offsets = []
    for part in parts:
        if part is None:
            return -1, []
        if part.error_code:
            return part.error_code, []
        offsets.append(part.offset)
    found = offsets[0]
    if asked.timestamp >= 0:
        _, start, end = offsets
        if found < 0:
            found = end
        elif found <= start:
            found = -1
    return 0, [found] if found >= 0 and asked.max_num_offsets > 0 else []


def _substitute_offset_commit(old: OffsetCommitRequest) -> Substitute:
    """Version 0 has no membership: generation -1 and no member commit for an empty group."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic.name,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=part.partition_index,
                    committed_offset=part.committed_offset,
                    committed_metadata=part.committed_metadata,
                )
                for part in topic.partitions
            ],
        )
        for topic in old.topics
    ]
    request = OffsetCommitRequest(
        group_id=old.group_id,
        generation_id_or_member_epoch=old.generation_id_or_member_epoch,
        member_id=old.member_id,
        topics=topics,
    )
    return Substitute([request], 9, lambda responses: responses[0])


def _substitute_offset_fetch(old: OffsetFetchRequest, version: int) -> Substitute:
    """Version 0 reports a missing offset by error 3, later versions by the offset -1.

    Version 0 accepted metadata but never returned it: ZooKeeper stored the offset only.
    """

    def answer(responses: Sequence[Message]) -> OffsetFetchResponse:
        return _offset_fetch_answer(old, cast(OffsetFetchResponse, responses[0]), version)

    return Substitute([OffsetFetchRequest(group_id=old.group_id, topics=old.topics)], 7, answer)


def _offset_fetch_answer(
    old: OffsetFetchRequest, response: OffsetFetchResponse, version: int
) -> OffsetFetchResponse:
    given = {
        (topic.name, part.partition_index): part
        for topic in response.topics
        for part in topic.partitions
    }

    def result(name: str, index: int) -> OffsetFetchResponsePartition:
        part = given.get((name, index))
        if part is None:
            offset, metadata, error = -1, '', response.error_code or -1
        else:
            offset, metadata = part.committed_offset, (part.metadata or '') if version else ''
            error = response.error_code or part.error_code
        if version == 0 and offset < 0 and not error:
            error = UNKNOWN_TOPIC_OR_PARTITION
        return OffsetFetchResponsePartition(
            partition_index=index, committed_offset=offset, metadata=metadata, error_code=error
        )

    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[result(topic.name, index) for index in topic.partition_indexes],
        )
        for topic in old.topics or []
    ]
    return OffsetFetchResponse(topics=topics)
