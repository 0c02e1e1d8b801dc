"""Consumer09: the KafkaConsumer of 0.9.5, on the blocking KafkaClient.

Called by kafka.consumer.group, in the thread of the program. It fetches, handles the errors of
partitions, looks up the offsets to start at, and commits marks. ``arguments_09`` checks the
arguments, ``partition_table_09`` keeps positions and marks.
"""

from __future__ import annotations

import logging
import math
import random
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
)

from kafka.client import KafkaClient
from kafka.consumer.arguments_09 import complete_options, security_among, wanted_partitions
from kafka.consumer.base import EARLIEST, LATEST
from kafka.consumer.hand_out import Iteration
from kafka.consumer.partition_table_09 import PartitionRow, PartitionTable
from kafka.errors import (
    BrokerResponseError,
    ConsumerFetchSizeTooSmall,
    ConsumerTimeout,
    FailedPayloadsError,
    KafkaConfigurationError,
    KafkaError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotCoordinatorForConsumerCode,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    ProtocolError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    check_error,
)
from kafka.structs import (
    FetchRequest,
    KafkaMessage,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetRequest,
    TopicAndPartition,
)
from kafka.util import name_bytes, shown, whole_ms, whole_number

log = logging.getLogger('kafka.consumer.kafka')

_RESET_TIMES = {'smallest': EARLIEST, 'largest': LATEST}

# The pause after a fetch that the brokers answered at once without messages, although they were
# asked to wait.
PAUSE_SECONDS = 0.01
BACKOFF_JITTER = 0.1

# The last error code that 0.9.5 knew; newer ones are handled according to the flags of their class.
_LAST_OLD_CODE = NotCoordinatorForConsumerCode.errno or 0


class OffsetsStruct(NamedTuple):
    """Four maps of offsets by (topic, partition); fields as in KafkaConsumer.offsets() (0.9.5)."""

    fetch: Any
    highwater: Any
    commit: Any
    task_done: Any


# OffsetsStruct's fields -> columns of the table.
_COLUMNS = OffsetsStruct('position', 'highwater', 'committed', 'done')._asdict()


class Consumer09:
    """The KafkaConsumer of 0.9.5; its public methods are documented in KafkaConsumer.

    The constructor makes no client: configure() connects.

    Arguments: iteration: the iterator from which next() takes messages.
    Attributes: client: the blocking client, None before configure(); table: the consumed
        partitions.
    """

    def __init__(self, iteration: Iteration) -> None:
        self.client: Any = None
        self.table = PartitionTable()
        self.options: Dict[str, Any] = {}
        self._group: Optional[bytes] = None
        # Its `records`: the messages of the current fetch that next() has not returned yet.
        self._iteration = iteration
        # Set by next_message() for its call of fetch_messages(): seconds that brokers may wait.
        self._wait: Optional[float] = None
        # Whether a leader was missing or has moved: metadata is loaded before the next fetch.
        self._stale = False
        self._marks = 0  # messages marked as done since the last commit
        self._committed_at = 0.0

    def __repr__(self) -> str:
        return '<Consumer09 %r>' % (self.table,)

    # ------------------------------------------------------------ configuration

    def configure(self, configs: Dict[str, Any], defaults: Dict[str, Any]) -> None:
        """Replace all options and connect; the consumed partitions stay."""
        options = complete_options(configs, defaults)
        group = name_bytes(options['group_id'], 'group_id') if options['group_id'] else None
        client = _client_class()(
            options['bootstrap_servers'],
            client_id=options['client_id'],
            timeout=float(options['socket_timeout_ms']) / 1000,
            **security_among(configs),
        )
        self.close()
        self.client = client
        self.options = options
        if group != self._group:
            self._group = group
            self.table.forget_committed()
        self._restart_interval()

    def set_topic_partitions(self, topics: Iterable[Any]) -> None:
        """Set the partitions to consume, and optionally their offsets."""
        self.client.load_metadata_for_topics()
        wanted = wanted_partitions(topics, self.client.get_partition_ids_for_topic)
        stored = self._stored_offsets(list(wanted))
        positions: Dict[TopicAndPartition, int] = {}
        nowhere = []
        for key, offset in wanted.items():
            start = stored.get(key) if offset is None else offset
            if start is None:
                nowhere.append(key)
            positions[key] = start or 0
        positions.update(self._offsets_by_policy(nowhere))
        self.table = PartitionTable(positions, stored)
        self._stale = False
        self._marks = 0

    def _stored_offsets(self, keys: List[TopicAndPartition]) -> Dict[TopicAndPartition, int]:
        """Return the committed offsets of the group."""
        if self._group is None or not keys:
            return {}
        requests = [OffsetFetchRequest(*key) for key in keys]
        try:
            answers = self.client.send_offset_fetch_request(
                self._group, requests, fail_on_error=False
            )
        except UnsupportedVersionError as error:
            raise UnsupportedVersionError(
                'group_id cannot be used: brokers store offsets since 0.8.1'
            ) from error
        found = {}
        for answer in answers:
            try:
                check_error(answer)
            except UnknownTopicOrPartitionError:
                continue  # old brokers return this error if nothing is committed
            if answer.offset >= 0:
                found[_key(answer)] = answer.offset
        return found

    def _offsets_by_policy(self, keys: List[TopicAndPartition]) -> Dict[TopicAndPartition, int]:
        """Request the offsets at which auto_offset_reset starts; return {partition: offset}.

        Raises: OffsetOutOfRangeError if it is neither 'smallest' nor 'largest'; errors of brokers;
            ProtocolError if a response has no offset of a partition.
        """
        if not keys:
            return {}
        policy = self.options['auto_offset_reset']
        moment = _RESET_TIMES.get(policy) if isinstance(policy, str) else None
        if moment is None:
            raise OffsetOutOfRangeError(
                'no offset to read %s from: auto_offset_reset is %r, not smallest or largest'
                % (_listed(keys), policy)
            )
        answers = self.client.send_offset_request([OffsetRequest(*key, moment, 1) for key in keys])
        found: Dict[TopicAndPartition, int] = {}
        for answer in answers:
            check_error(answer)
            found.update((_key(answer), offset) for offset in answer.offsets)
        missing = [key for key in keys if key not in found]
        if missing:
            raise ProtocolError('brokers tell no offset of %s' % _listed(missing))
        return found

    def close(self) -> None:
        """Close the connections; the next call connects again."""
        self._iteration.records = iter(())
        self._iteration.last_next = None  # its frame may refer to the consumer
        if self.client is not None:
            self.client.close()

    # ------------------------------------------------------------ fetching

    def next_message(self, fetch_messages: Callable[[], Iterable[Any]]) -> Any:
        """Fetch repeatedly until there is a message, and return it.

        Arguments: fetch_messages: the method of the consumer, which a subclass may override.
        Raises: ConsumerTimeout after consumer_timeout_ms without a message; as fetch_messages().
        """
        deadline = self._deadline()
        while True:
            # Here, not after the fetch: a broker that hangs then exceeds the deadline by the
            # time-out of one request, not of two.
            self._refresh_metadata(deadline)
            started = time.monotonic()
            wait = self._longest_wait()
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - started))
            self._wait = wait
            self._iteration.records = iter(fetch_messages())
            for message in self._iteration.records:
                return message
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                raise ConsumerTimeout(
                    'no message within %s ms' % (self.options['consumer_timeout_ms'],)
                )
            if not self._stale and now - started < min(wait, PAUSE_SECONDS):
                time.sleep(PAUSE_SECONDS)

    def fetch_messages(self, commit: Callable[[], Any]) -> Iterator[KafkaMessage]:
        """Fetch once from all partitions; return a generator of the messages.

        Arguments: commit: called when an automatic commit is due.
        """
        wait, self._wait = self._wait, None
        self._check_assigned()
        return self._whole_round(commit) if wait is None else self._round(wait, commit)

    def _whole_round(self, commit: Callable[[], Any]) -> Iterator[KafkaMessage]:
        self._refresh_metadata(self._deadline())
        yield from self._round(self._longest_wait(), commit)
        self._refresh_metadata(self._deadline())

    def _round(self, wait: float, commit: Callable[[], Any]) -> Iterator[KafkaMessage]:
        """Fetch once and yield the messages. Retriable errors are logged, and may set ``_stale``.

        Arguments: wait: how many seconds the brokers may wait for messages.
        """
        self._check_assigned()
        self._auto_commit(commit)
        table = self.table
        max_bytes = self.options['fetch_message_max_bytes']
        requests = [FetchRequest(*key, row.position, max_bytes) for key, row in table.in_turn()]
        for answer in self._answers(requests, math.ceil(wait * 1000)):
            if self._is_good(answer):
                key = _key(answer)
                row = table.get(key)
                if row is not None:
                    yield from self._messages_of(key, row, answer)
            if self.table is not table:
                return  # the program has called set_topic_partitions() meanwhile

    def _messages_of(
        self, key: TopicAndPartition, row: PartitionRow, answer: Any
    ) -> Iterator[KafkaMessage]:
        topic, partition = key
        table = self.table
        deserialize = self.options['deserializer_class']
        row.highwater = answer.highwaterMark
        try:
            for offset, message in answer.messages:
                position = row.position
                if offset < position:
                    continue  # compressed sets begin before the position
                value = deserialize(message.value)
                if offset > position:
                    row.hole = position, offset
                made = KafkaMessage(topic, partition, offset, message.key, value)
                row.position = offset + 1  # no call between this and the return of __next__()
                yield made
                if self.table is not table:
                    return
        except ConsumerFetchSizeTooSmall as error:
            raise ConsumerFetchSizeTooSmall(
                'topic %r partition %d: the message at offset %d is larger than'
                ' fetch_message_max_bytes (%d)'
                % (topic, partition, row.position, self.options['fetch_message_max_bytes'])
            ) from error

    def _answers(self, requests: List[FetchRequest], wait_ms: int) -> Iterable[Any]:
        """Send fetches; one by one if a partition has no leader, so that the others are fetched."""
        try:
            answers: Iterable[Any] = self.client.send_fetch_request(
                requests,
                max_wait_time=wait_ms,
                min_bytes=self.options['fetch_min_bytes'],
                fail_on_error=False,
            )
        except LeaderNotAvailableError as error:
            self._stale = True
            if len(requests) > 1:
                return (a for request in requests for a in self._answers([request], 0))
            log.warning('%s has no leader: %s', _listed(requests), error)
            return ()
        return answers

    def _is_good(self, answer: Any) -> bool:
        """Return True if a response has no error; otherwise handle the error, or raise it."""
        try:
            check_error(answer)
        except FailedPayloadsError as error:
            log.warning('%s could not be fetched: %r', _listed([error.payload]), error.__cause__)
            self._stale = True
        except OffsetOutOfRangeError as error:
            self._reset(answer, error)
        except RequestTimedOutError:
            log.info('the broker timed out on %s', _listed([answer]))
        except UnknownTopicOrPartitionError:
            self.client.reset_topic_metadata(answer.topic)
            raise
        except BrokerResponseError as error:
            old = (error.errno or 0) <= _LAST_OLD_CODE
            if not (isinstance(error, NotLeaderForPartitionError) if old else error.retriable):
                raise
            log.warning('%s could not be fetched: %s', _listed([answer]), type(error).__name__)
            self._stale = self._stale or error.refresh_metadata
        else:
            return True
        return False

    def _reset(self, answer: Any, error: OffsetOutOfRangeError) -> None:
        """Move a position that is out of range according to auto_offset_reset.

        Raises: OffsetOutOfRangeError without a policy. A retriable failure is logged.
        """
        key = _key(answer)
        row = self.table.get(key)
        if row is None:
            return
        try:
            position = self._offsets_by_policy([key])[key]
        except OffsetOutOfRangeError as unsettled:
            raise OffsetOutOfRangeError(
                'offset %d is out of range; %s' % (row.position, unsettled.args[0])
            ) from error
        except KafkaError as failure:
            if not _may_pass(failure):
                raise
            log.warning('%s: no reset for now: %s', _listed([key]), failure)
            self._stale = True
        else:
            log.warning(
                '%s: offset %d is out of range, going on at %d',
                _listed([key]),
                row.position,
                position,
            )
            row.position = position

    def _refresh_metadata(self, deadline: Optional[float]) -> None:
        """Pause and load metadata if a leader was missing, repeatedly while no broker answers.

        Raises: ConsumerTimeout if no broker responds until the deadline.
        """
        pause = self.options['refresh_leader_backoff_ms'] / 1000.0 if self._stale else 0.0
        tell = log.warning
        while self._stale:
            seconds = pause * random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
            if deadline is not None:
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            time.sleep(seconds)
            try:
                self.client.load_metadata_for_topics()
            except KafkaUnavailableError as error:
                tell('no metadata, trying again: %s', error)
                tell = log.debug
                if deadline is not None and time.monotonic() >= deadline:
                    raise ConsumerTimeout(
                        'no broker within %s ms' % (self.options['consumer_timeout_ms'],)
                    ) from error
            else:
                self._stale = False

    def _check_assigned(self) -> None:
        if not len(self.table):
            raise KafkaConfigurationError('no topics or partitions to consume are set')

    def _deadline(self) -> Optional[float]:
        timeout = self.options['consumer_timeout_ms']
        if timeout is None or timeout < 0:
            return None
        return float(time.monotonic() + timeout / 1000.0)

    def _longest_wait(self) -> float:
        """Return the seconds that brokers may wait: at most half of socket_timeout_ms."""
        config = self.options
        return float(min(config['fetch_wait_max_ms'], config['socket_timeout_ms'] / 2)) / 1000.0

    # ------------------------------------------------------------ offsets

    def get_partition_offsets(
        self, topic: Any, partition: int, request_time_ms: int, max_num_offsets: int
    ) -> List[int]:
        """Request offsets of a partition's log from its leader, the latest first."""
        request = OffsetRequest(
            name_bytes(topic, 'topic'),
            whole_number(partition, 'partition'),
            whole_ms(request_time_ms, 'request_time_ms'),
            whole_number(max_num_offsets, 'max_num_offsets'),
        )
        offsets: List[int] = []
        for answer in self.client.send_offset_request([request]):
            check_error(answer)
            offsets.extend(answer.offsets)
        return offsets

    def offsets(self, group: Optional[str] = None) -> Dict[Any, Any]:
        """Return copies of the known offsets of each partition, by (topic, partition)."""
        if group is None:
            return {name: self.table.column(column) for name, column in _COLUMNS.items()}
        if group not in OffsetsStruct._fields:
            raise ValueError('group must be one of %s, not %r' % (', '.join(_COLUMNS), group))
        return self.table.column(_COLUMNS[group])

    def task_done(self, message: Any, commit: Callable[[], Any]) -> bool:
        """Mark a message, and thereby all before it in its partition, as consumed.

        Arguments: commit: called when an automatic commit is due.
        """
        try:
            key = TopicAndPartition(name_bytes(message.topic, 'message.topic'), message.partition)
            offset = whole_number(message.offset, 'message.offset')
        except AttributeError:
            raise TypeError('message must be a KafkaMessage: %r' % (type(message),)) from None
        row = self.table.get(key)
        if row is None:
            log.warning('%s is not consumed, its message not marked', _listed([key]))
            return False
        if row.leaves_gap(offset):
            log.warning('%s: offset %d is marked after %d', _listed([key]), offset, row.done)
        if row.committed is not None and offset < row.committed:
            log.warning(
                '%s: offset %d is marked, %d is committed', _listed([key]), offset, row.committed
            )
        row.done = offset
        self._marks += 1
        self._auto_commit(commit)
        return True

    def commit(self) -> bool:
        """Commit the offset after the last marked message of each partition.

        Returns: whether there was anything to commit.
        Raises: KafkaConfigurationError without group_id; errors of the broker or the client.
        """
        if self._group is None:
            raise KafkaConfigurationError('commit() needs the option group_id')
        offsets = self.table.to_commit()
        if offsets:
            requests = [OffsetCommitRequest(*key, offset, b'') for key, offset in offsets.items()]
            for answer in self.client.send_offset_commit_request(self._group, requests):
                check_error(answer)
            self.table.note_committed(offsets)
        self._restart_interval()
        return bool(offsets)

    def _restart_interval(self) -> None:
        self._marks = 0
        self._committed_at = time.monotonic()

    def _auto_commit(self, commit: Callable[[], Any]) -> None:
        """Commit if that is due; called after each mark and before each fetch.

        A retriable failure is logged, and the next commit includes the same offsets. Any other
        failure is raised, once per interval.
        """
        if not self._is_commit_due():
            return
        try:
            commit()
        except KafkaError as error:
            self._restart_interval()
            if not _may_pass(error):
                raise
            log.error('group=%s: automatic commit failed: %s', shown(self._group), error)

    def _is_commit_due(self) -> bool:
        config = self.options
        if not config['auto_commit_enable']:
            return False
        count, interval = config['auto_commit_interval_messages'], config['auto_commit_interval_ms']
        if count is not None and 0 < count <= self._marks:
            return True
        if interval is None or not interval > 0:
            return False
        waited = time.monotonic() - self._committed_at
        return waited >= interval / 1000.0 and bool(self.table.to_commit())


def _client_class() -> Any:
    # Programs of 0.9.5 replace the class in this module.
    return getattr(sys.modules.get('kafka.consumer.kafka'), 'KafkaClient', KafkaClient)


def _may_pass(error: KafkaError) -> bool:
    return error.retriable or isinstance(error, (FailedPayloadsError, KafkaUnavailableError))


def _key(answer: Any) -> TopicAndPartition:
    return TopicAndPartition(name_bytes(answer.topic, 'topic'), answer.partition)


def _listed(things: Iterable[Any]) -> str:
    """Return the partitions of tuples for a log line or an error; topics may be str or bytes."""
    return ', '.join(
        'topic %s partition %s' % (shown(thing.topic), thing.partition) for thing in things
    )
