"""OffsetLookups: start and end of logs, offsets for timestamps, and end offsets of leader epochs.

Sends ListOffsets, in all its versions, and OffsetForLeaderEpoch to the leaders of partitions. Used
by the consumer's offsets request manager and methods, and by bounded readers, in turns of the loop.
Follows KIP-79, KIP-98, KIP-320, KIP-734.

All leaders are asked at the same time, each for all of its partitions. After a retriable error the
request is repeated after a back-off, to the leader at that time.
"""

from __future__ import annotations

import random
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Coroutine,
    Dict,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Tuple,
    Type,
    TypeVar,
)

from kafka.consumer.partition_state import EpochEnd
from kafka.errors import (
    Cancelled,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
    for_code,
)
from kafka.net.backoff import backoff_seconds
from kafka.protocol.fetch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.wire import Message
from kafka.structs import OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['EpochEnd', 'OffsetLookups', 'LookupOutcome', 'is_final']

A = TypeVar('A')
F = TypeVar('F')

#: Special timestamp -> the first version of ListOffsets that supports it; others are milliseconds.
_SPECIAL_SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
_TIMES_SINCE = 1
_ISOLATION_SINCE = 2
#: OffsetForLeaderEpoch is for replicas only before this version.
_EPOCHS_SINCE = 3
_CONSUMER = -1
#: The error codes of partitions after which a retry is useless.
_FINAL_CODES = frozenset([TopicAuthorizationFailedError.errno, UnsupportedVersionError.errno])
#: The same for the errors of topics in Metadata.
_FINAL_TOPIC_ERRORS: Tuple[Type[KafkaError], ...] = (
    TopicAuthorizationFailedError,
    InvalidTopicError,
)


class LookupOutcome(Generic[F]):
    """The result for the partitions of one leader.

    Attributes: found; retry: partitions with retriable errors; failed: those with final errors.
    """

    __slots__ = ('failed', 'found', 'retry')

    def __init__(self) -> None:
        self.found: Dict[TopicPartition, F] = {}
        self.retry: Dict[TopicPartition, KafkaError] = {}
        self.failed: Dict[TopicPartition, KafkaError] = {}

    def __repr__(self) -> str:
        return '<LookupOutcome found=%s retry=%s failed=%s>' % (self.found, self.retry, self.failed)


def is_final(error: KafkaError) -> bool:
    """Return True if a retry is useless after an error of a whole request."""
    return not error.retriable and not isinstance(error, UnknownBrokerIdError)


def is_final_of_topic(error: Optional[KafkaError]) -> bool:
    """Return True if a retry is useless after an error of a topic in Metadata."""
    return isinstance(error, _FINAL_TOPIC_ERRORS)


class OffsetLookups:
    """Looks up offsets for one client.

    Arguments: loop, pool: of the client; read_committed: whether logs end at the last stable offset
        (the start of the first open transaction); request_timeout: seconds for one request;
        retry_backoff, retry_backoff_max: seconds between attempts; chance: random numbers for
        jitter.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        read_committed: bool,
        request_timeout: float,
        retry_backoff: float,
        retry_backoff_max: float,
        chance: Optional[random.Random] = None,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._read_committed = read_committed
        self._request_timeout = request_timeout
        self._retry_backoff = retry_backoff
        self._retry_backoff_max = retry_backoff_max
        self._chance = chance or random.Random()

    def __repr__(self) -> str:
        return '<OffsetLookups %s>' % (
            'read_committed' if self._read_committed else 'read_uncommitted'
        )

    # ------------------------------------------------------------ with retries

    async def look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout: float
    ) -> Dict[TopicPartition, Optional[OffsetAndTimestamp]]:
        """Return the offset for a timestamp in each partition, None if no record has one.

        Arguments: timestamps: milliseconds since 1970, for the first record at or after that time;
        -1
            for the end of the log, -2 for its start, -3 for the record with the maximum timestamp,
            and other special values of ListOffsets; timeout: seconds in total.

        Raises KafkaTimeoutError, which names the partitions without a result, whether they exist or
        not; TopicAuthorizationFailedError({topics}); InvalidTopicError; UnsupportedVersionError for
        a timestamp that a broker does not support, such as one from 0 on before 0.10.1; final
        errors of connecting.
        """
        return await self._until_known(timestamps, self.ask, timeout, 'the offsets')

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, Tuple[int, int]], timeout: float
    ) -> Dict[TopicPartition, EpochEnd]:
        """Return the end offsets of leader epochs (KIP-320).

        Arguments: epochs: (current leader epoch as known here, requested leader epoch).
        Raises as look_up(); UnsupportedVersionError for brokers before 2.3.
        """
        return await self._until_known(epochs, self.ask_epochs, timeout, 'the ends of epochs')

    async def _until_known(
        self,
        asked: Mapping[TopicPartition, A],
        ask: Callable[[int, Dict[TopicPartition, A], float], Coroutine[Any, Any, LookupOutcome[F]]],
        timeout: float,
        what: str,
    ) -> Dict[TopicPartition, F]:
        deadline = self._loop.time() + timeout
        found: Dict[TopicPartition, F] = {}
        why: Dict[TopicPartition, KafkaError] = {}  # the last error of each
        failures = 0
        missing = list(asked)
        while missing:
            left = deadline - self._loop.time()
            if left <= 0:
                raise _not_in_time(what, timeout, missing, why)
            outcomes = await self._loop.gather(
                *(
                    ask(node, {each: asked[each] for each in theirs}, left)
                    for node, theirs in self._by_leader(missing).items()
                )
            )
            for outcome in outcomes:
                if outcome.failed:
                    raise _as_one(outcome.failed)
                found.update(outcome.found)
                why.update(outcome.retry)
            missing = [each for each in asked if each not in found]
            if missing:
                # The first metadata request for unknown leaders is sent without a back-off.
                failures += 1 if why else 0
                await self._learn(missing, failures, deadline, why)
        return found

    async def _learn(
        self,
        partitions: List[TopicPartition],
        failures: int,
        deadline: float,
        why: Dict[TopicPartition, KafkaError],
    ) -> None:
        """Request the leaders of partitions after a back-off; put retriable errors into `why`."""
        pause = self.backoff(failures)
        left = deadline - self._loop.time()
        await self._loop.sleep(min(pause, left))
        if pause >= left:
            return
        topics = sorted({str(each.topic) for each in partitions})
        try:
            await self._pool.metadata(topics, min(left - pause, self._request_timeout))
        except KafkaError as error:
            if is_final(error):
                raise
            why.update(dict.fromkeys(partitions, error))
            return
        for each in partitions:
            known = self.topic_error(each)
            if is_final_of_topic(known):
                raise _as_one({each: known})
            if self.leader(each) is None:
                why[each] = known or self._unled(each)

    def _unled(self, partition: TopicPartition) -> KafkaError:
        """Return the error for a partition without leader whose topic has no error."""
        topic, number = str(partition.topic), partition.partition
        known = self._pool.cluster.partitions_for_topic(topic)
        if known and number not in known:
            text = 'topic %s has %d partitions, none of them %d' % (topic, len(known), number)
            return UnknownTopicOrPartitionError(text)
        return LeaderNotAvailableError('no leader is known')

    def backoff(self, failures: int) -> float:
        """Return the back-off in seconds after this number of consecutive failures (KIP-580)."""
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(self._retry_backoff, self._retry_backoff_max, failures, part)

    # ------------------------------------------------------------ leaders and topics

    def leader(self, partition: TopicPartition) -> Optional[int]:
        """Return the leader node of a partition, None if unknown."""
        leader: Optional[int] = self._pool.cluster.leader_for_partition(partition)
        return None if leader == -1 else leader

    def _by_leader(self, partitions: Iterable[TopicPartition]) -> Dict[int, List[TopicPartition]]:
        by_leader: Dict[int, List[TopicPartition]] = {}
        for each in partitions:
            leader = self.leader(each)
            if leader is not None:
                by_leader.setdefault(leader, []).append(each)
        return by_leader

    def topic_error(self, partition: TopicPartition) -> Optional[KafkaError]:
        """Return the last error of a partition's topic in Metadata, or None."""
        error = self._pool.cluster.topic_errors.get(str(partition.topic))
        if error is TopicAuthorizationFailedError:
            return error({partition.topic})  # with a set of topics, as in releases since 1.0
        return None if error is None else error(partition.topic)

    # ------------------------------------------------------------ one request to one leader

    async def ask(
        self, node: int, timestamps: Dict[TopicPartition, int], seconds: Optional[float] = None
    ) -> LookupOutcome[Optional[OffsetAndTimestamp]]:
        """Send one ListOffsets request to a node. Errors of brokers are in the outcome, not raised.

        Arguments: timestamps: as look_up(); seconds: the time limit, at most the request timeout.
        """
        return await self._once(node, timestamps, self._list_offsets, seconds)

    async def ask_epochs(
        self,
        node: int,
        epochs: Dict[TopicPartition, Tuple[int, int]],
        seconds: Optional[float] = None,
    ) -> LookupOutcome[EpochEnd]:
        """Send one OffsetForLeaderEpoch request to a node; as ask()."""
        return await self._once(node, epochs, self._offset_for_leader_epoch, seconds)

    async def _once(
        self,
        node: int,
        asked: Dict[TopicPartition, A],
        ask: Callable[[int, Dict[TopicPartition, A]], Coroutine[Any, Any, LookupOutcome[F]]],
        seconds: Optional[float],
    ) -> LookupOutcome[F]:
        limit = self._request_timeout if seconds is None else min(seconds, self._request_timeout)
        outcome: LookupOutcome[F] = LookupOutcome()
        try:
            outcome = await self._loop.within(limit, ask(node, asked))
        except KafkaError as error:
            bucket = outcome.failed if is_final(error) else outcome.retry
            bucket.update(dict.fromkeys(asked, error))
        return outcome

    async def _list_offsets(
        self, node: int, timestamps: Dict[TopicPartition, int]
    ) -> LookupOutcome[Optional[OffsetAndTimestamp]]:
        link = self._pool.link(node)
        await link.ready()
        highest = _highest(link, ListOffsetsRequest)
        outcome: LookupOutcome[Optional[OffsetAndTimestamp]] = LookupOutcome()
        asked = {}
        for each, timestamp in timestamps.items():
            if _since(timestamp) <= highest:
                asked[each] = timestamp
            else:
                outcome.failed[each] = _not_looked_up(each, timestamp, node, highest)
        if asked:
            response = await link.request(self._list_request(asked, highest))
            answers = {
                TopicPartition(topic.name, each.partition_index): each
                for topic in response.topics
                for each in topic.partitions
            }
            for each in asked:
                _sort(outcome, node, each, answers.get(each), _offset_in)
        return outcome

    def _list_request(self, timestamps: Dict[TopicPartition, int], highest: int) -> Message:
        isolation = self._read_committed and highest >= _ISOLATION_SINCE
        epoch_of = self._pool.cluster.leader_epoch_for_partition
        topics: Dict[str, List[ListOffsetsPartition]] = {}
        for each, timestamp in timestamps.items():
            epoch = epoch_of(each)
            topics.setdefault(str(each.topic), []).append(
                ListOffsetsPartition(
                    partition_index=each.partition,
                    current_leader_epoch=-1 if epoch is None else epoch,
                    timestamp=timestamp,
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=int(isolation),
            topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
            timeout_ms=int(self._request_timeout * 1000),
        )

    async def _offset_for_leader_epoch(
        self, node: int, epochs: Dict[TopicPartition, Tuple[int, int]]
    ) -> LookupOutcome[EpochEnd]:
        link = self._pool.link(node)
        await link.ready()
        highest = _highest(link, OffsetForLeaderEpochRequest)
        if highest < _EPOCHS_SINCE:
            raise UnsupportedVersionError(
                'node %d has OffsetForLeaderEpoch up to version %d; consumers need %d'
                % (node, highest, _EPOCHS_SINCE)
            )
        topics: Dict[str, List[OffsetForLeaderPartition]] = {}
        for each, (current, epoch) in epochs.items():
            topics.setdefault(str(each.topic), []).append(
                OffsetForLeaderPartition(
                    partition=each.partition, current_leader_epoch=current, leader_epoch=epoch
                )
            )
        response = await link.request(
            OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderTopic(topic=n, partitions=each) for n, each in topics.items()
                ],
            )
        )
        answers = {
            TopicPartition(topic.topic, each.partition): each
            for topic in response.topics
            for each in topic.partitions
        }
        outcome: LookupOutcome[EpochEnd] = LookupOutcome()
        for each in epochs:
            _sort(outcome, node, each, answers.get(each), _end_in)
        return outcome


def _highest(link: Any, request: Type[Message]) -> int:
    """Return the highest common version of a request, -1 if the broker does not support it."""
    if link.versions is None:  # closed or lost before this task ran again
        raise Cancelled('%r was closed or lost' % link)
    highest: int = link.versions.ranges.get(request.api_key, (0, -1))[1]
    return min(highest, request.max_version)


def _since(timestamp: int) -> int:
    return _TIMES_SINCE if timestamp >= 0 else _SPECIAL_SINCE.get(timestamp, 1 << 15)


def _not_looked_up(
    partition: TopicPartition, timestamp: int, node: int, highest: int
) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        'node %d cannot look up the time %d in %s: it has ListOffsets up to version %d, that takes'
        ' %s'
        % (
            node,
            timestamp,
            _name(partition),
            highest,
            'version %d' % _since(timestamp) if _since(timestamp) < 1 << 15 else 'a later one',
        )
    )


def _sort(
    outcome: LookupOutcome[F],
    node: int,
    partition: TopicPartition,
    answer: Any,
    read: Callable[[Any], F],
) -> None:
    """Add the response for a partition to the outcome."""
    if answer is None:
        outcome.retry[partition] = UnknownTopicOrPartitionError(
            'node %d left %s out of its answer' % (node, _name(partition))
        )
    elif answer.error_code in (0, UnsupportedForMessageFormatError.errno):
        outcome.found[partition] = read(answer)
    else:
        error = for_code(answer.error_code)('%s at node %d' % (_name(partition), node))
        bucket = outcome.failed if answer.error_code in _FINAL_CODES else outcome.retry
        bucket[partition] = error


def _offset_in(answer: ListOffsetsPartitionResponse) -> Optional[OffsetAndTimestamp]:
    """Return the offset of a ListOffsets response; None for error 43: the log has no timestamps."""
    if answer.error_code:
        return None
    if answer.old_style_offsets:
        return OffsetAndTimestamp(answer.old_style_offsets[0], -1, -1)
    if answer.offset < 0:
        return None
    return OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)


def _end_in(answer: Any) -> EpochEnd:
    return EpochEnd(answer.leader_epoch, answer.end_offset)


def _as_one(failed: Mapping[TopicPartition, Any]) -> KafkaError:
    """Return one error for all final errors; TopicAuthorizationFailedError has all its topics."""
    topics = {
        str(each.topic)
        for each, error in failed.items()
        if isinstance(error, TopicAuthorizationFailedError)
    }
    if topics:
        return TopicAuthorizationFailedError(topics)
    first: KafkaError = next(iter(failed.values()))
    return first


def _not_in_time(
    what: str,
    timeout: float,
    missing: List[TopicPartition],
    errors: Mapping[TopicPartition, KafkaError],
) -> KafkaTimeoutError:
    shown = ['%s (%s)' % (_name(each), errors.get(each, 'no answer')) for each in missing[:8]]
    rest = len(missing) - len(shown)
    return KafkaTimeoutError(
        '%s of these partitions were not known within %.3g seconds: %s%s'
        % (what, timeout, ', '.join(shown), ' and %d others' % rest if rest else '')
    )


def _name(partition: TopicPartition) -> str:
    return '%s-%d' % (str(partition[0]), partition[1])
