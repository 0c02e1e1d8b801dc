"""The translation of old Produce and Fetch requests for brokers with magic 2.

It replaces Produce 0 to 2 and Fetch 0 to 3, converts their responses, and keeps state between
fetches of a connection. translation.py decides which requests are translated and lists the
differences that remain; record/conversion.py converts the records. Follows KIP-98 (magic 2) and
KIP-896 (the versions that 4.0 removed).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, cast

from kafka.errors import BufferUnderflowError, ChecksumError, KafkaError, ProtocolError
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafka.protocol.later import MessagesLater
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka.protocol.wire import Message
from kafka.record.conversion import MAX_SET_BYTES, MessageSet, down_convert, up_convert
from kafka.record.legacy_records import encode_message_set

__all__ = [
    'FetchMemory',
    'Substitute',
    'substitute_produce',
    'with_acks_from_all',
    'write_records',
]

# The last versions with names of topics; later ones use ids, which these callers do not know.
LAST_PRODUCE_BY_NAME = 12
LAST_FETCH_BY_NAME = 12

# The minimum number of bytes to request for a partition, and thereby the maximum for all of them
# together. Old programs request 4 KiB, less than one batch: each batch would be a request of its
# own (benchmarks/simple.py --only default). A program that requests less than that default keeps
# its value.
OLD_DEFAULT_BYTES = 4096
LEAST_PARTITION_BYTES = 128 * 1024
MOST_MORE_BYTES = 8 * 1024 * 1024

UNKNOWN_ERROR = -1
INVALID_MESSAGE = 2

_CRC_POSITION = 12  # in an entry of a message set, after offset and size

TopicPartition = Tuple[str, int]


class Substitute(NamedTuple):
    """The requests that replace an old request, and the conversion of their responses."""

    requests: List[Message]  # one after the other; none: the response is known
    highest: Optional[int]  # the last version to use; None for no limit
    answer: Callable[[Sequence[Message]], Message]
    remark: str = ''  # a message for the log


# ---------------------------------------------------------------- Produce


def substitute_produce(old: ProduceRequest, now_ms: int) -> Substitute:
    """Return a replacement of message sets: one batch of magic 2 for each partition.

    The response to a damaged set is error 2, and to an empty one offset -1, as from brokers;
    neither is sent. With acks=0, which has no response, the ChecksumError or ProtocolError is
    raised.
    Raises UnsupportedCodecError if a codec is missing, ProtocolError if a partition is repeated.
    """
    if len(old.topic_data) == 1 and len(old.topic_data[0].partition_data) == 1:
        records: Any = old.topic_data[0].partition_data[0].records
        if isinstance(records, MessagesLater):
            return _substitute_one(old, records.batch(now_ms))
    known: Dict[TopicPartition, Tuple[int, int]] = {}  # error and offset without a request
    topics: List[TopicProduceData] = []
    for topic in old.topic_data:
        partitions: List[PartitionProduceData] = []
        for part in topic.partition_data:
            key = topic.name, part.index
            if key in known:
                raise ProtocolError('topic %s partition %d is repeated' % key)
            known[key] = 0, -1
            try:
                batch = _batch(part.records, now_ms)
            except (ChecksumError, ProtocolError, BufferUnderflowError) as error:
                if old.acks == 0:
                    raise type(error)('topic %s partition %d: %s' % (*key, error)) from error
                known[key] = INVALID_MESSAGE, -1
            else:
                if batch is not None:
                    partitions.append(PartitionProduceData(index=part.index, records=batch))
        if partitions:
            topics.append(TopicProduceData(name=topic.name, partition_data=partitions))
    request = ProduceRequest(
        acks=_usable_acks(old.acks), timeout_ms=old.timeout_ms, topic_data=topics
    )

    def answer(responses: Sequence[Message]) -> ProduceResponse:
        return _produce_answer(old, known, request, cast('Sequence[ProduceResponse]', responses))

    requests: List[Message] = [request] if topics else []
    return Substitute(requests, LAST_PRODUCE_BY_NAME, answer, _acks_remark(old.acks))


def _substitute_one(old: ProduceRequest, batch: bytes) -> Substitute:
    """Return the same for a single partition with a valid batch, the usual case."""
    topic = old.topic_data[0].name
    index = old.topic_data[0].partition_data[0].index
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=index, records=batch)]
    )
    request = ProduceRequest(
        acks=_usable_acks(old.acks), timeout_ms=old.timeout_ms, topic_data=[data]
    )

    def answer(responses: Sequence[Message]) -> ProduceResponse:
        (response,) = cast('Sequence[ProduceResponse]', responses)
        if len(response.responses) == 1 and len(response.responses[0].partition_responses) == 1:
            part = response.responses[0].partition_responses[0]
            if part.index == index and response.responses[0].name == topic:
                answers = TopicProduceResponse(name=topic, partition_responses=[_as_old(part)])
                return ProduceResponse(
                    responses=[answers], throttle_time_ms=response.throttle_time_ms
                )
        return _produce_answer(old, {}, request, [response])

    return Substitute([request], LAST_PRODUCE_BY_NAME, answer, _acks_remark(old.acks))


def _batch(records: Any, now_ms: int) -> Optional[bytes]:
    """Return the batch for a message set, which may be encoded or not."""
    if isinstance(records, MessagesLater):
        return records.batch(now_ms)
    return up_convert(records, now_ms)


def with_acks_from_all(old: ProduceRequest, version: int) -> Substitute:
    """Return the same request with acks=-1 instead of a number above 1."""
    request = ProduceRequest(
        acks=_usable_acks(old.acks), timeout_ms=old.timeout_ms, topic_data=old.topic_data
    )
    return Substitute([request], version, lambda responses: responses[0], _acks_remark(old.acks))


def _usable_acks(acks: int) -> int:
    return -1 if acks > 1 else acks


def _acks_remark(acks: int) -> str:
    if acks <= 1:
        return ''
    return 'acks=%d was removed in Kafka 0.9: acks=-1, all in-sync replicas, is sent' % acks


def _produce_answer(
    old: ProduceRequest,
    known: Dict[TopicPartition, Tuple[int, int]],
    request: ProduceRequest,
    responses: Sequence[ProduceResponse],
) -> ProduceResponse:
    given = {}
    throttle_time_ms = 0
    for response in responses:
        throttle_time_ms = max(throttle_time_ms, response.throttle_time_ms)
        for topic in response.responses:
            for part in topic.partition_responses:
                given[topic.name, part.index] = part

    def result(name: str, index: int) -> PartitionProduceResponse:
        part = given.get((name, index))
        if part is None:
            missing = any(
                t.name == name and any(p.index == index for p in t.partition_data)
                for t in request.topic_data
            )
            error, offset = (UNKNOWN_ERROR, -1) if missing else known[name, index]
            return PartitionProduceResponse(index=index, error_code=error, base_offset=offset)
        return _as_old(part)

    topics = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[result(topic.name, part.index) for part in topic.partition_data],
        )
        for topic in old.topic_data
    ]
    return ProduceResponse(responses=topics, throttle_time_ms=throttle_time_ms)


def _as_old(part: PartitionProduceResponse) -> PartitionProduceResponse:
    """Return a result without the fields that the old versions lack."""
    return PartitionProduceResponse(
        index=part.index,
        error_code=part.error_code,
        base_offset=part.base_offset,
        log_append_time_ms=part.log_append_time_ms,
    )


# ---------------------------------------------------------------- Fetch


class FetchMemory:
    """The state of the old Fetch requests of one connection.

    An old consumer continues at the offset after the last message that it received, in the same
    order of partitions. With present brokers it might make no progress, so two things are
    remembered for each requested partition:

    * Offsets without messages: control batches, and what compaction removed. The next fetch from
      such an offset is sent from the end of the gap.
    * Partitions without data although there was some: only the first partition with data in a
      response gets its first batch whatever its size, others get nothing if theirs is larger than
      their limit. The next fetch requests such a partition first. The same applies to partitions
      after MAX_SET_BYTES were converted, which would need too much memory.
    """

    def __init__(self) -> None:
        self._gaps: Dict[TopicPartition, Tuple[int, int]] = {}
        self._hungry: Dict[TopicPartition, None] = {}  # without data, oldest first

    def substitute(self, old: FetchRequest) -> Substitute:
        """Return a fetch of the same partitions, without a fetch session."""
        number = sum(len(topic.partitions) for topic in old.topics)
        least = min(LEAST_PARTITION_BYTES, MOST_MORE_BYTES // max(1, number))
        request = FetchRequest(
            max_wait_ms=old.max_wait_ms,
            min_bytes=old.min_bytes,
            max_bytes=old.max_bytes,
            topics=self._in_order(
                [
                    FetchTopic(
                        topic=topic.topic,
                        partitions=[
                            self._partition(topic.topic, part, least) for part in topic.partitions
                        ],
                    )
                    for topic in old.topics
                ]
            ),
        )

        asked = {(t.topic, p.partition): p for t in request.topics for p in t.partitions}

        def answer(responses: Sequence[Message]) -> FetchResponse:
            return self._answer(old, asked, cast(FetchResponse, responses[0]))

        return Substitute([request], LAST_FETCH_BY_NAME, answer)

    def _partition(self, topic: str, old: FetchPartition, least: int) -> FetchPartition:
        start, end = self._gaps.get((topic, old.partition), (0, 0))
        max_bytes = old.partition_max_bytes
        if max_bytes >= OLD_DEFAULT_BYTES:
            max_bytes = max(max_bytes, least)
        return FetchPartition(
            partition=old.partition,
            fetch_offset=end if start <= old.fetch_offset < end else old.fetch_offset,
            partition_max_bytes=max_bytes,
        )

    def _in_order(self, topics: List[FetchTopic]) -> List[FetchTopic]:
        if not self._hungry:
            return topics
        turns = {key: turn for turn, key in enumerate(self._hungry)}
        last = len(turns)
        for topic in topics:
            topic.partitions.sort(key=lambda p: turns.get((topic.topic, p.partition), last))
        return sorted(
            topics,
            key=lambda t: min(
                [turns.get((t.topic, p.partition), last) for p in t.partitions] or [last]
            ),
        )

    def _answer(
        self,
        old: FetchRequest,
        asked: Dict[TopicPartition, FetchPartition],
        response: FetchResponse,
    ) -> FetchResponse:
        given = {
            (topic.topic, part.partition_index): part
            for topic in response.responses
            for part in topic.partitions
        }
        wanted = {(t.topic, p.partition): p for t in old.topics for p in t.partitions}
        error = response.error_code or UNKNOWN_ERROR
        results: Dict[TopicPartition, PartitionData] = {}
        room = MAX_SET_BYTES
        taken: Any = None  # the records of the partition before, whose size takes time to compute
        for key, sent in asked.items():  # as sent: partitions in _hungry come first
            if taken is not None:
                room -= len(taken)
            result = self._result(key, wanted[key], sent, given.get(key), error, room > 0)
            results[key] = result
            taken = result.records
        topics = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[results[topic.topic, part.partition] for part in topic.partitions],
            )
            for topic in old.topics
        ]
        return FetchResponse(throttle_time_ms=response.throttle_time_ms, responses=topics)

    def _result(
        self,
        key: TopicPartition,
        wanted: FetchPartition,
        asked: FetchPartition,
        given: Optional[PartitionData],
        error: int,
        has_room: bool,
    ) -> PartitionData:
        if given is None:
            return PartitionData(
                partition_index=wanted.partition, error_code=error, high_watermark=-1, records=b''
            )
        messages: Any = b''
        if given.error_code:  # earlier knowledge of the log may be wrong now
            self._hungry.pop(key, None)
            self._gaps.pop(key, None)
        elif has_room:
            messages = self._messages(key, wanted, asked, given)
        elif given.records or given.high_watermark > asked.fetch_offset:
            self._hungry[key] = None
        return PartitionData(
            partition_index=wanted.partition,
            error_code=given.error_code,
            high_watermark=given.high_watermark,
            records=messages,
        )

    def _messages(
        self,
        key: TopicPartition,
        wanted: FetchPartition,
        asked: FetchPartition,
        given: PartitionData,
    ) -> MessageSet:
        """Return the message set, and update the state; `asked` begins after a known gap."""
        if given.records:
            self._hungry.pop(key, None)
        elif given.high_watermark > asked.fetch_offset:
            self._hungry[key] = None
        converted = _convert(key, asked.fetch_offset, wanted.partition_max_bytes, given)
        start = converted.end if converted.end > asked.fetch_offset else wanted.fetch_offset
        if converted.next_offset > start:
            self._gaps[key] = start, converted.next_offset
        elif given.records:
            self._gaps.pop(key, None)
        return converted


def write_records(response: Message) -> None:
    """Encode the message sets in an old response that are not encoded yet."""
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for part in topic.partitions:
                records: Any = part.records
                if isinstance(records, MessageSet):
                    part.records = records.data


def _convert(key: TopicPartition, offset: int, max_bytes: int, given: PartitionData) -> MessageSet:
    try:
        return down_convert(given.records, offset, max_bytes)
    except ChecksumError:
        # The old reader then detects the damage in the message set as it always did, and can read
        # the other partitions of the response.
        entry = bytearray(encode_message_set([(offset, None, None, None)], magic=0))
        entry[_CRC_POSITION] ^= 0xFF
        return MessageSet(bytes(entry), offset, offset)
    except KafkaError as error:
        raise type(error)('topic %s partition %d: %s' % (*key, error)) from error
