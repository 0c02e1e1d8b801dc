"""OffsetCommit and OffsetFetch for one group: coordinator, versions, back-off and retries.

Made by the engine of a consumer and by Spark; runs in turns
of the loop. MemberCommit decides which generation a commit carries, CommitOrder keeps a repeated
commit from overwriting a later one, and the tables of error codes are in error_actions.py.

Offsets are kept in ZooKeeper (0.8.1, where any broker takes them) or by the coordinator of the
group (from 0.8.2 on). Both places exist side by side up to 3.9 and do not know of each other. The
0.9.5 consumers keep theirs in ZooKeeper if brokers have one (blocking/stored_offsets.py), and so
does a consumer with ``is_zookeeper``: if no broker reaches ZooKeeper, the coordinator keeps them.
Either kind of consumer goes on from the offsets of the other.
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
#: Says of a version that the broker does not serve it: offsets in ZooKeeper where there is none.
_REFUSED = UnsupportedVersionError.errno
#: Says that no topic has the id that was sent: it was deleted, or the broker has not heard of it.
_UNKNOWN_ID = UnknownTopicIdError.errno
#: To choose versions by; never sent.
_COMMIT, _FETCH = OffsetCommitRequest(group_id='', topics=[]), OffsetFetchRequest()


class _Turn(NamedTuple):
    """The place of a commit among others.

    Attributes: number: of CommitOrder; before, sent: set once the first try of the one before, and
        of this one, is sent or will not be.
    """

    number: int
    before: Event
    sent: Event


class FetchedOffsets(NamedTuple):
    """The committed offset of each partition, None for none, and errors of the other partitions."""

    found: Dict[TopicPartition, Optional[OffsetAndMetadata]]
    failed: Dict[TopicPartition, KafkaError]


class OffsetCommits:
    """Commits and fetches the offsets of one group, for turns of its loop only.

    Arguments: loop, pool: of the consumer, bootstrapped; group_id; request_timeout: seconds of one
        call; retry_backoff, retry_backoff_max: seconds between tries; chance: of the jitter;
        is_zookeeper: whether offsets belong in ZooKeeper where there is one (api_version 0.8.1).
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
        self._sent = Event()  # set once the last call's first try is sent, or will not be
        self._sent.set()
        self._refused_ids: Dict[str, bytes] = {}  # of topics, by name

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
            offsets: {TopicPartition: OffsetAndMetadata}; nothing is asked for none.
            who: the identity of the member that commits; None without a membership. A function is
                called before each try: a commit that came too early for the epoch of the member
                (KIP-848) is then tried again with the next one. A MemberCommit waits while its
                group rebalances, and goes on in the next generation.
            timeout: seconds for all of it.
            retries: whether what may succeed later is tried again; each error is raised otherwise.

        Raises:
            CommitFailedError: the group went on without this member; ``errno_of_group`` has 22, 25,
                69, 110 or 113. While it rebalances CommitInRebalanceError (27).
            FencedInstanceIdError: another member has its group_instance_id.
            UnknownTopicOrPartitionError: there is no such partition, as metadata say as well.
            OffsetMetadataTooLargeError, InvalidCommitOffsetSizeError,
                GroupAuthorizationFailedError, TopicAuthorizationFailedError,
                UnsupportedVersionError: as the broker says.
            KafkaTimeoutError: it took longer; whether all is stored is not known.

        Whatever is raised, the offsets of other partitions of the call may be stored.
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
        """Commit as a member, through rebalances."""
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
        """Commit what is left as somebody."""
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
        """Send what is left, and take out of it what the broker has stored."""
        if turn.sent.is_set:  # it is not the first try
            await self._leave_out_replaced(turn.number, left)
            return await self._sent_as(turn, left, who) if left else None
        try:
            # Who finds the coordinator ready must not overtake those who have waited for it.
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
        turn.sent.set()  # who waits goes on behind the line below
        response = await link.request(request, self._request_timeout, version)
        codes = committed_codes(response, ids)
        trouble = commit_trouble(self.group_id, left, codes, member.generation_id)
        stored = [each for each in left if codes.get(each) == 0]
        self._order.stored(turn.number, stored)
        for each in stored:
            del left[each]
        return self._by_name(trouble, codes, ids)

    def _ids_of(self, partitions: Iterable[TopicPartition]) -> Ids:
        """Return the ids of topics, as far as they are known and the coordinator knows them."""
        ids = topic_ids(partitions, self._pool.cluster.topic_id)
        refused = self._refused_ids
        return {topic: each for topic, each in ids.items() if refused.get(topic) != each}

    def _by_name(
        self, trouble: Optional[Trouble], codes: Mapping[TopicPartition, int], ids: Ids
    ) -> Optional[Trouble]:
        """Note ids that were refused. By name the answer says what is the matter with each topic.

        Metadata may have the id of a deleted topic for long, and would be asked in vain.
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
        """Do not undo what later calls commit; see CommitOrder."""
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
        """Return the committed offset of each partition, None where there is none.

        Waits for transactions that are about to change one (KIP-447).

        Arguments: timeout: seconds; who: the member of a KIP-848 group that asks, or what tells it,
            as commit() has it; None always is answered.

        Raises KafkaTimeoutError; GroupAuthorizationFailedError and TopicAuthorizationFailedError;
        UnknownTopicOrPartitionError for a topic that was deleted; UnknownMemberIdError and
        StaleMemberEpochError when `who` is not, or no longer, that member.
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
        the others. Arguments and errors as fetch(), but for errors of partitions.
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
        """Ask for what is left, and move it to what was found; note errors of partitions."""
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
        """Return the connection to whoever keeps the offsets."""
        if self._is_zookeeper:
            link = await self._pool.any_group_link(self.group_id)
            lowest, highest = session_of(link).versions.ranges.get(request.api_key or 0, (0, -1))
            if lowest == 0 <= highest:
                return link
            self._is_zookeeper = False  # there is none any more, nor will there be again
        try:
            return await self._pool.group_link(self.group_id)
        except UnsupportedVersionError:
            # Before 0.8.2 nobody coordinates: there is ZooKeeper only.
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
        """Make an exchange until it is done, raising what no repetition cures."""
        deadline = self._loop.time() + timeout
        failures = 0
        while True:
            trouble = await self._tried(once, deadline)
            if trouble is None:
                return
            if trouble.code == _REFUSED and self._is_zookeeper:
                self._is_zookeeper = False
                continue
            if trouble.action is OffsetErrorAction.BY_NAME:  # once for each id
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
        """Make an exchange once. Failures of the network are troubles too."""
        try:
            trouble: Optional[Trouble] = await self._loop.within(
                max(0.0, deadline - self._loop.time()), once()
            )
            return trouble
        except KafkaError as error:
            action = OffsetErrorAction.REFIND if error.retriable else OffsetErrorAction.SURFACE
            return Trouble(action, error)

    async def _cured(self, trouble: Trouble, failures: int, deadline: float) -> bool:
        """Wait before the next try, and do what it needs; return False when time is up."""
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
        """Ask whether there are some partitions at all. Raises the trouble's error if not."""
        try:
            topics = {str(each[0]) for each in trouble.partitions}
            known = await self._loop.within(deadline - self._loop.time(), self._known(topics))
        except KafkaError as error:
            if error.retriable:
                return  # the next try tells
            raise
        if not trouble.partitions <= known:
            raise trouble.error

    async def _known(self, topics: Set[str]) -> Set[TopicPartition]:
        """Return the partitions of topics, without creating any and whatever was known before."""
        link = await self._pool.any_ready()
        version = session_of(link).choose_version(MetadataRequest(topics=[]))
        request = metadata_request(sorted(topics), version, False)
        response = await link.request(request, self._request_timeout, version)
        return {
            TopicPartition(topic.name, each.partition_index)
            for topic in response.topics
            for each in topic.partitions
        }
