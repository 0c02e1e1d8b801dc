"""OffsetCommit and OffsetFetch for one group: coordinator, versions, backoff and retries.

Created by the engine of a consumer and by Spark; runs in the event loop. MemberCommit decides which
generation a commit carries, CommitOrder keeps a repeated commit from overwriting a later one, and
the tables of error codes are in error_actions.py.

Offsets are stored in ZooKeeper (0.8.1, through any broker) or by the coordinator of the group (from
0.8.2 on). Up to 3.9 both stores exist, independent of each other. The 0.9.5 consumers use ZooKeeper
if brokers have one (blocking/stored_offsets.py), and so does a consumer with ``is_zookeeper``; if
no broker has ZooKeeper, the coordinator stores the offsets. Either kind of consumer continues from
the offsets of the other.
"""

from __future__ import annotations

import random
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Dict,
    Iterable,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Type,
    Union,
)

from kafka.coordinator.commits.error_actions import (
    OF_PARTITIONS,
    OffsetErrorAction,
    Trouble,
    commit_trouble,
    fetch_errors,
    fetch_trouble,
    named,
)
from kafka.coordinator.commits.member_commit import CommitIdentity, MemberCommit
from kafka.coordinator.commits.messages import (
    Ids,
    commit_request,
    committed_codes,
    fetch_request,
    fetched,
    highest_version,
    topic_ids,
)
from kafka.coordinator.commits.schedule import CommitOrder
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.tasks import Event
from kafka.net.metadata_updater import metadata_request
from kafka.net.node_connection import session_of
from kafka.net.routes import GROUP
from kafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.wire import Message
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['FetchedOffsets', 'OffsetCommits']

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

NOBODY = ConsumerGroupMetadata()
#: The code if the broker does not support a version: offsets in ZooKeeper, without ZooKeeper.
_REFUSED = UnsupportedVersionError.errno
#: The code for an unknown topic id: the topic was deleted, or is not known to the broker yet.
_UNKNOWN_ID = UnknownTopicIdError.errno
#: Messages to choose versions for; never sent.
_COMMIT, _FETCH = OffsetCommitRequest(group_id='', topics=[]), OffsetFetchRequest()


class _Turn(NamedTuple):
    """The place of a commit in the order of calls.

    Attributes: number: of CommitOrder; before, sent: set when the first attempt of the previous
        commit, and of this one, was sent or will not be sent.
    """

    number: int
    before: Event
    sent: Event


class FetchedOffsets(NamedTuple):
    """The committed offset of each partition, None if absent, and errors of other partitions."""

    found: Dict[TopicPartition, Optional[OffsetAndMetadata]]
    failed: Dict[TopicPartition, KafkaError]


class OffsetCommits:
    """Commits and fetches the offsets of one group. Used only in the event loop.

    Arguments: loop, pool: of the consumer, bootstrapped; group_id; request_timeout: seconds of one
        request; retry_backoff, retry_backoff_max: seconds between retries; chance: random numbers
        for the jitter; is_zookeeper: whether to store offsets in ZooKeeper if brokers can
        (api_version 0.8.1).
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        group_id: str,
        request_timeout: float,
        retry_backoff: float,
        retry_backoff_max: float,
        chance: Optional[random.Random] = None,
        is_zookeeper: bool = False,
    ) -> None:
        self.group_id = group_id
        self._loop = loop
        self._pool = pool
        self._request_timeout = request_timeout
        self._retry_backoff = retry_backoff
        self._retry_backoff_max = retry_backoff_max
        self._chance = chance or random.Random()
        self._is_zookeeper = is_zookeeper
        self._order = CommitOrder()
        self._ended: Dict[int, Event] = {}
        self._sent = Event()  # the _Turn.sent of the last commit
        self._sent.set()
        self._refused_ids: Dict[str, bytes] = {}  # topic ids, by name

    def __repr__(self) -> str:
        return '<OffsetCommits of group %s %r>' % (self.group_id, self._order)

    # ------------------------------------------------------------ commit

    async def commit(
        self,
        offsets: Offsets,
        who: Union[MemberCommit, CommitIdentity, None],
        timeout: float,
        retries: bool = True,
    ) -> None:
        """Store offsets for the group.

        Arguments:
            offsets: {TopicPartition: OffsetAndMetadata}; if empty, no request is sent.
            who: the identity of the member that commits; None without a membership. A function is
                called before each attempt, so that a commit with a stale member epoch (KIP-848) is
                retried with the next one. A MemberCommit waits while its group rebalances, and
                continues in the next generation.
            timeout: seconds for all of it.
            retries: whether to retry after retriable errors; otherwise each error is raised.

        Raises:
            CommitFailedError: the group has continued without this member; ``errno_of_group`` is
                22, 25, 69, 110 or 113. During a rebalance CommitInRebalanceError (27).
            FencedInstanceIdError: another member has the same group_instance_id.
            UnknownTopicOrPartitionError: the partition does not exist in the metadata either.
            OffsetMetadataTooLargeError, InvalidCommitOffsetSizeError,
                GroupAuthorizationFailedError, TopicAuthorizationFailedError,
                UnsupportedVersionError: returned by the broker.
            KafkaTimeoutError: after `timeout`; it is unknown whether all offsets were stored.

        After any error, offsets of other partitions of the call may have been stored.
        """
        if not offsets:
            return
        number = self._order.begin(offsets)
        self._ended[number] = Event()
        before, self._sent = self._sent, Event()
        turn = _Turn(number, before, self._sent)
        left: Dict[TopicPartition, OffsetAndMetadata] = dict(offsets)
        try:
            if isinstance(who, MemberCommit):
                await self._commit_through(turn, left, who, timeout, retries)
            else:
                await self._commit_as(turn, left, who, timeout, retries)
        finally:
            turn.sent.set()
            self._order.end(number)
            self._ended.pop(number).set()

    async def _commit_through(
        self,
        turn: _Turn,
        left: Dict[TopicPartition, OffsetAndMetadata],
        standing: MemberCommit,
        timeout: float,
        retries: bool,
    ) -> None:
        """Commit as a member, retrying after rebalances."""
        deadline = self._loop.time() + timeout
        who = standing.now(left)
        refused: Optional[CommitIdentity] = None
        error: Optional[KafkaError] = None
        while True:
            if who is None:
                turn.sent.set()
                seconds = max(0.0, deadline - self._loop.time())
                who = await standing.later(left, seconds, refused, error)
            seconds = max(0.0, deadline - self._loop.time())
            try:
                await self._commit_as(turn, left, who, seconds, retries)
                return
            except KafkaError as failure:
                if not standing.refused(failure, who):
                    raise
                refused, who, error = who, None, failure

    async def _commit_as(
        self,
        turn: _Turn,
        left: Dict[TopicPartition, OffsetAndMetadata],
        who: Optional[CommitIdentity],
        timeout: float,
        retries: bool,
    ) -> None:
        """Commit the remaining offsets with one identity, with retries."""
        await self._repeat(
            lambda: self._commit_once(turn, left, who),
            lambda: 'the commit of %s' % named(left),
            timeout,
            retries,
            callable(who),
        )

    async def _commit_once(
        self,
        turn: _Turn,
        left: Dict[TopicPartition, OffsetAndMetadata],
        who: Optional[CommitIdentity],
    ) -> Optional[Trouble]:
        """Send the remaining offsets once, and remove those that the broker has stored."""
        if turn.sent.is_set:  # a retry
            await self._leave_out_replaced(turn.number, left)
            return await self._sent_as(turn, left, who) if left else None
        try:
            # A commit that finds the coordinator connected must not overtake earlier ones that are
            # still waiting for it.
            await turn.before.wait()
            return await self._sent_as(turn, left, who)
        finally:
            turn.sent.set()

    async def _sent_as(
        self,
        turn: _Turn,
        left: Dict[TopicPartition, OffsetAndMetadata],
        who: Optional[CommitIdentity],
    ) -> Optional[Trouble]:
        link = await self._ready(OffsetCommitRequest)
        ids = self._ids_of(left)
        member = (who() if callable(who) else who) or NOBODY
        wish, highest = self._version(), highest_version(left, ids)
        version = session_of(link).choose_version(_COMMIT, wish, highest)
        request = commit_request(self.group_id, left, member, ids, version)
        turn.sent.set()  # the next commit is resumed only after this request was written
        response = await link.request(request, self._request_timeout, version)
        codes = committed_codes(response, ids)
        trouble = commit_trouble(self.group_id, left, codes, member.generation_id)
        stored = [each for each in left if codes.get(each) == 0]
        self._order.stored(turn.number, stored)
        for each in stored:
            del left[each]
        return self._by_name(trouble, codes, ids)

    def _ids_of(self, partitions: Iterable[TopicPartition]) -> Ids:
        """Return the known topic ids, without those that the coordinator has rejected."""
        ids = topic_ids(partitions, self._pool.cluster.topic_id)
        refused = self._refused_ids
        return {topic: each for topic, each in ids.items() if refused.get(topic) != each}

    def _by_name(
        self, trouble: Optional[Trouble], codes: Mapping[TopicPartition, int], ids: Ids
    ) -> Optional[Trouble]:
        """Record rejected topic ids, so that the retry uses names.

        The response to names has an exact error for each topic. Metadata may have the id of a
        deleted topic for long, so a refresh alone does not help.
        """
        refused = {
            str(each[0]) for each, code in codes.items() if code == _UNKNOWN_ID
        }.intersection(ids)
        if trouble is None or not refused:
            return trouble
        self._refused_ids.update((topic, ids[topic]) for topic in refused)
        self._pool.refresh()
        return (
            trouble._replace(action=OffsetErrorAction.BY_NAME)
            if trouble.code == _UNKNOWN_ID
            else trouble
        )

    async def _leave_out_replaced(
        self, number: int, left: Dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Wait for later calls, and remove the offsets that they have stored; see CommitOrder."""
        for later in self._order.later(number, left):
            if later in self._ended:
                await self._ended[later].wait()
        still = self._order.left(number, left)
        for each in [each for each in left if each not in still]:
            del left[each]

    # ------------------------------------------------------------ fetch

    async def fetch(
        self,
        partitions: Iterable[TopicPartition],
        timeout: float,
        who: Optional[CommitIdentity] = None,
    ) -> Dict[TopicPartition, Optional[OffsetAndMetadata]]:
        """Return the committed offset of each partition, None if no offset was committed.

        Waits for open transactions that may change an offset (KIP-447).

        Arguments: timeout: seconds; who: the identity of a KIP-848 member, or a function that
            returns it, as for commit(); brokers do not check None.

        Raises KafkaTimeoutError; GroupAuthorizationFailedError and TopicAuthorizationFailedError;
        UnknownTopicOrPartitionError for a deleted topic; UnknownMemberIdError and
        StaleMemberEpochError if `who` is not a present member of the group.
        """
        found: Dict[TopicPartition, Optional[OffsetAndMetadata]] = {}
        left = set(partitions)
        deadline = self._loop.time() + timeout
        if left:
            await self._repeat(
                lambda: self._fetch_once(left, found, who),
                lambda: 'the look-up of the committed offsets of %s' % named(left),
                timeout,
                True,
                callable(who),
            )
        doubtful = [each for each in found if found[each] is None and self._may_be_deleted(each)]
        if doubtful:
            text = 'group %s has no offsets of %s: there is no such partition'
            error = UnknownTopicOrPartitionError(text % (self.group_id, named(doubtful)))
            await self._look(Trouble(OffsetErrorAction.LOOK, error, frozenset(doubtful)), deadline)
        return found

    def _may_be_deleted(self, partition: TopicPartition) -> bool:
        topic, cluster = str(partition[0]), self._pool.cluster
        refused = self._refused_ids.get(topic)
        if topic in cluster.deleted_topics:
            return True
        return refused is not None and refused == cluster.topic_id(topic)

    async def fetch_each(
        self,
        partitions: Iterable[TopicPartition],
        timeout: float,
        who: Optional[CommitIdentity] = None,
    ) -> FetchedOffsets:
        """Return each partition's committed offset or its error.

        Unlike fetch(), a partition with a pending transaction or without permission does not delay
        the others. Arguments and errors as fetch(), except for errors of partitions.
        """
        result = FetchedOffsets({}, {})
        left = set(partitions)

        async def once() -> Optional[Trouble]:
            result.failed.clear()
            trouble = await self._fetch_once(left, result.found, who, result.failed)
            if trouble is None or trouble.action is OffsetErrorAction.BY_NAME:
                return trouble
            return None if result.failed and trouble.code in OF_PARTITIONS else trouble

        if left:
            await self._repeat(
                once,
                lambda: 'the look-up of the committed offsets of %s' % named(left),
                timeout,
                True,
                callable(who),
            )
        return result

    async def _fetch_once(
        self,
        left: Set[TopicPartition],
        found: Dict[TopicPartition, Optional[OffsetAndMetadata]],
        who: Optional[CommitIdentity],
        failed: Optional[Dict[TopicPartition, KafkaError]] = None,
    ) -> Optional[Trouble]:
        """Request the remaining offsets once, and move those received to the results."""
        link = await self._ready(OffsetFetchRequest)
        ids = self._ids_of(left)
        wish, highest = self._version(), highest_version(left, ids)
        version = session_of(link).choose_version(_FETCH, wish, highest)
        member = who() if callable(who) else who
        request = fetch_request(self.group_id, left, member, ids, version)
        response = await link.request(request, self._request_timeout, version)
        answer = fetched(response, self.group_id, ids)
        trouble = fetch_trouble(self.group_id, left, answer.error_code, answer.codes)
        errors = fetch_errors(self.group_id, answer.codes)
        if answer.error_code == 0:
            for each in [each for each in left if each in answer.offsets and each not in errors]:
                found[each] = answer.offsets[each]
                left.discard(each)
            if failed is not None:
                failed.update((each, errors[each]) for each in left if each in errors)
        return self._by_name(trouble, answer.codes, ids)

    # ------------------------------------------------------------ both

    async def _ready(self, request: Type[Message]) -> Any:
        """Return a connection to the coordinator, or to any broker for offsets in ZooKeeper."""
        if self._is_zookeeper:
            link = await self._pool.any_group_link(self.group_id)
            lowest, highest = session_of(link).versions.ranges.get(request.api_key or 0, (0, -1))
            if lowest == 0 <= highest:
                return link
            self._is_zookeeper = False  # a cluster without ZooKeeper never gets it back
        try:
            return await self._pool.group_link(self.group_id)
        except UnsupportedVersionError:
            # Brokers before 0.8.2 have no coordinator: only ZooKeeper stores offsets.
            self._is_zookeeper = True
            return await self._pool.any_group_link(self.group_id)

    def _version(self) -> Optional[int]:
        return 0 if self._is_zookeeper else None

    async def _repeat(
        self,
        once: Callable[[], Awaitable[Optional[Trouble]]],
        what: Callable[[], str],
        timeout: float,
        retries: bool,
        tells_epochs: bool,
    ) -> None:
        """Repeat an exchange until it succeeds; raise errors that a retry cannot cure."""
        deadline = self._loop.time() + timeout
        failures = 0
        while True:
            trouble = await self._tried(once, deadline)
            if trouble is None:
                return
            if trouble.code == _REFUSED and self._is_zookeeper:
                self._is_zookeeper = False
                continue
            if (
                trouble.action is OffsetErrorAction.BY_NAME
            ):  # without backoff: it happens once per id
                continue
            late = self._loop.time() >= deadline
            if trouble.action is OffsetErrorAction.REFIND and (
                trouble.code is not None or not late
            ):
                self._pool.forget_coordinator(GROUP, self.group_id)
            waits = trouble.action is not OffsetErrorAction.WAIT_EPOCH or tells_epochs
            if not trouble.may_repeat or not waits or not (retries or late):
                raise trouble.error
            failures += 1
            if not late:
                late = not await self._cured(trouble, failures, deadline)
            if late:
                raise KafkaTimeoutError(
                    '%s in group %s took longer than %.3g s; the last try: %s'
                    % (what(), self.group_id, timeout, trouble.error)
                ) from trouble.error

    async def _tried(self, once: Callable[[], Any], deadline: float) -> Optional[Trouble]:
        """Make an exchange once; return network failures as Trouble too."""
        try:
            trouble: Optional[Trouble] = await self._loop.within(
                max(0.0, deadline - self._loop.time()), once()
            )
            return trouble
        except KafkaError as error:
            action = OffsetErrorAction.REFIND if error.retriable else OffsetErrorAction.SURFACE
            return Trouble(action, error)

    async def _cured(self, trouble: Trouble, failures: int, deadline: float) -> bool:
        """Prepare the next attempt and wait for the backoff; return False after the deadline."""
        longest = max(self._retry_backoff, self._retry_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        pause = backoff_seconds(self._retry_backoff, longest, failures, part)
        if self._loop.time() + pause >= deadline:
            return False
        if trouble.action is OffsetErrorAction.LOOK:
            await self._look(trouble, deadline)
        elif trouble.action is OffsetErrorAction.REFRESH:
            self._pool.refresh()
        await self._loop.sleep(pause)
        return True

    async def _look(self, trouble: Trouble, deadline: float) -> None:
        """Check in the metadata that the partitions exist. Raises the trouble's error if not."""
        try:
            topics = {str(each[0]) for each in trouble.partitions}
            known = await self._loop.within(deadline - self._loop.time(), self._known(topics))
        except KafkaError as error:
            if error.retriable:
                return  # the next attempt decides
            raise
        if not trouble.partitions <= known:
            raise trouble.error

    async def _known(self, topics: Set[str]) -> Set[TopicPartition]:
        """Return the partitions of topics from fresh metadata, without creating topics."""
        link = await self._pool.any_ready()
        version = session_of(link).choose_version(MetadataRequest(topics=[]))
        request = metadata_request(sorted(topics), version, False)
        response = await link.request(request, self._request_timeout, version)
        return {
            TopicPartition(topic.name, each.partition_index)
            for topic in response.topics
            for each in topic.partitions
        }
