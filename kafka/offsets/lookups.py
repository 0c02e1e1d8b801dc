"""Where logs begin and end, what was written when, where an epoch of leaders ended.

Sends ListOffsets, in all its versions, and OffsetForLeaderEpoch to the leaders of partitions, and
repeats what may succeed later. Used by the consumer's offsets request manager and methods, and by
bounded readers, in turns of the loop. Follows KIP-79, KIP-98, KIP-320, KIP-734.

Leaders are asked at the same time, each about all of its partitions. What fails in a way that may
pass is tried again after a back-off, at whoever leads then.
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

#: Special time -> the first version of ListOffsets that knows it; from 0 on they are milliseconds.
_SPECIAL_SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
_TIMES_SINCE = 1
_ISOLATION_SINCE = 2
#: Before it OffsetForLeaderEpoch is one of replicas.
_EPOCHS_SINCE = 3
_CONSUMER = -1
#: What no further asking cures, of the codes of partitions.
_FINAL_CODES = frozenset([TopicAuthorizationFailedError.errno, UnsupportedVersionError.errno])
#: The same of topics in Metadata.
_FINAL_TOPIC_ERRORS: Tuple[Type[KafkaError], ...] = (
    TopicAuthorizationFailedError,
    InvalidTopicError,
)


class LookupOutcome(Generic[F]):
    """What one leader said of some partitions.

    Attributes: found; retry: errors that may go better later; failed: errors that will not.
    """

    __slots__ = ('failed', 'found', 'retry')

    def __init__(self) -> None:
        self.found: Dict[TopicPartition, F] = {}
        self.retry: Dict[TopicPartition, KafkaError] = {}
        self.failed: Dict[TopicPartition, KafkaError] = {}

    def __repr__(self) -> str:
        return '<LookupOutcome found=%s retry=%s failed=%s>' % (self.found, self.retry, self.failed)


def is_final(error: KafkaError) -> bool:
    """Return True if asking again is in vain, of an error that a request failed with."""
    return not error.retriable and not isinstance(error, UnknownBrokerIdError)


def is_final_of_topic(error: Optional[KafkaError]) -> bool:
    """Tell the same of what Metadata says of a topic."""
    return isinstance(error, _FINAL_TOPIC_ERRORS)


class OffsetLookups:
    """Looks up offsets for one client.

    Arguments: loop, pool: of the client; read_committed: whether logs end at the first open
        transaction; request_timeout: seconds that one leader gets; retry_backoff,
        retry_backoff_max: seconds between tries; chance: of the jitter.
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

    # ------------------------------------------------------------ until all are known

    async def look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout: float
    ) -> Dict[TopicPartition, Optional[OffsetAndTimestamp]]:
        """Return the offset of a time in each partition, None where there is none.

        Arguments: timestamps: milliseconds since 1970, for the first record at or after them; -1
            for the end of the log, -2 for its start, -3 for the newest record, and what else
            ListOffsets knows; timeout: seconds for all of it.

        Raises KafkaTimeoutError, which names partitions that are not known by then, whether they
        exist or not; TopicAuthorizationFailedError({topics}); InvalidTopicError;
        UnsupportedVersionError for a time that a broker cannot look up, such as one from 0 on
        before 0.10.1; what connecting fails with for good.
        """
        return await self._until_known(timestamps, self.ask, timeout, 'the offsets')

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, Tuple[int, int]], timeout: float
    ) -> Dict[TopicPartition, EpochEnd]:
        """Return where epochs of leaders ended (KIP-320).

        Arguments: epochs: (epoch of the leader as known here, epoch that is asked about).
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
        why: Dict[TopicPartition, KafkaError] = {}  # what they failed with last
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
                # Whose leader is not known yet waits for nothing but the answer, the first time.
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
        """Ask who leads some partitions, after a back-off; what goes wrong goes into `why`."""
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
        """Return why a partition has no leader, of whose topic brokers say nothing bad."""
        topic, number = str(partition.topic), partition.partition
        known = self._pool.cluster.partitions_for_topic(topic)
        if known and number not in known:
            text = 'topic %s has %d partitions, none of them %d' % (topic, len(known), number)
            return UnknownTopicOrPartitionError(text)
        return LeaderNotAvailableError('no leader is known')

    def backoff(self, failures: int) -> float:
        """Return how many seconds to wait after so many failures in a row (KIP-580)."""
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(self._retry_backoff, self._retry_backoff_max, failures, part)

    # ------------------------------------------------------------ who is asked

    def leader(self, partition: TopicPartition) -> Optional[int]:
        """Return the node that leads a partition, None while that is not known."""
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
        """Return what brokers said of the topic last, None for nothing."""
        error = self._pool.cluster.topic_errors.get(str(partition.topic))
        if error is TopicAuthorizationFailedError:
            return error({partition.topic})  # as programs know it since 1.0
        return None if error is None else error(partition.topic)

    # ------------------------------------------------------------ one leader, once

    async def ask(
        self, node: int, timestamps: Dict[TopicPartition, int], seconds: Optional[float] = None
    ) -> LookupOutcome[Optional[OffsetAndTimestamp]]:
        """Ask a node once for the offsets of times. Raises nothing of what brokers do.

        Arguments: timestamps: as look_up(); seconds: for it, at most the request time-out.
        """
        return await self._once(node, timestamps, self._list_offsets, seconds)

    async def ask_epochs(
        self,
        node: int,
        epochs: Dict[TopicPartition, Tuple[int, int]],
        seconds: Optional[float] = None,
    ) -> LookupOutcome[EpochEnd]:
        """Ask a node once for the ends of epochs, as ask()."""
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
    """Return the highest version of a request that a broker and this package have, -1: none."""
    if link.versions is None:  # before it was heard that it is ready
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
    """Put the answer about a partition where it belongs."""
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
    """Return what ListOffsets found; error 43 says that the log has no times: nothing."""
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
    """Return what stands for errors that no further asking cures."""
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
