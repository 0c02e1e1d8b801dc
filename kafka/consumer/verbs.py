"""What a modern consumer reads, and from where: subscriptions, assignment, positions, pauses.

Owns these calls of the program. Does not own: the table that they change (subscription_state.py),
look-ups (offsets.py, positions.py).
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional, Set

from kafka.consumer.arrow_polling import ArrowPolling
from kafka.consumer.call_checks import (
    as_partitions,
    check_offset,
    check_partition,
    check_partitions,
    seconds_of,
)
from kafka.consumer.listener import SubscriptionPattern
from kafka.consumer.subscription_state import NotAssignedError
from kafka.errors import IllegalStateError, UnsupportedVersionError
from kafka.internals.validation import where
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ['Verbs']


class Verbs(ArrowPolling):
    """A base of the modern KafkaConsumer, of no use alone."""

    # ------------------------------------------------------------ what is read

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Read topics, sharing their partitions with the group if there is a group_id (1.0).

        Replaces what was subscribed before: nothing more is returned of topics that are no longer
        among them. What was returned of them is committed, if that is automatic, and the listener
        told by the next poll() or iteration, with which joining the group begins.

        Arguments:
            topics: names; a plain str is one name.
            pattern: instead: a regular expression, as text or compiled, matched at the start of
                names, or a SubscriptionPattern, which brokers match (KIP-848).
            listener: an object with on_partitions_revoked(set) and on_partitions_assigned(set),
                and maybe on_partitions_lost(set), called inside poll() and iteration.
        Raises: ArgumentValueError (a ValueError and AssertionError) without topics and pattern;
            ArgumentTypeError for names and listeners that are none; IllegalStateError for both, and
            after assign().
        """
        with self._guard:
            self._check_open()
            if isinstance(topics, str):
                topics = [topics]
            if isinstance(pattern, SubscriptionPattern) and (
                self._engine.member is None or self.config['group_protocol'] != 'consumer'
            ):
                raise UnsupportedVersionError(
                    'a SubscriptionPattern is matched by brokers in a group with the option'
                    " group_protocol='consumer' only (KIP-848)"
                )
            self._stop_course()
            engine = self._engine
            if engine.member is None:  # nobody else does it before the partitions go
                self._commit_before_rebalance(self._default_timeout())
            with engine.lock:
                engine.subscription.subscribe(
                    topics=topics or (), pattern=pattern, listener=listener
                )
                self._listener, engine.subscription.listener = listener, None
            self._siblings.begin(self._now())
            self._changed_subscription()

    def subscription(self) -> Optional[Set[str]]:
        """Return the subscribed topics, those found so far for a pattern; None without (1.0)."""
        topics = self._engine.subscription.subscription
        return None if topics is None else set(topics)

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group (1.0).

        With enable_auto_commit what was handed out is committed first.
        """
        with self._guard:
            self._check_open()
            self._stop_course()
            deadline = self._now() + self._default_timeout()
            self._commit_before_rebalance(self._default_timeout())
            self._await_commits(deadline - self._now())
            self._leave('unsubscribe() was called', self._default_timeout())
            engine = self._engine
            with engine.lock:
                engine.subscription.unsubscribe()
                self._listener = None
            # After the change: while the old subscription stands, an exception must not lose them.
            self._held.clear()
            self._done.clear()
            self._changed_subscription()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others, as no member of the group (1.0).

        Those that were read before keep their positions. With enable_auto_commit what was handed
        out is committed first. No partitions mean unsubscribe().

        Raises: ArgumentTypeError for what is no TopicPartition; IllegalStateError after
            subscribe().
        """
        with self._guard:
            self._check_open()
            wanted = as_partitions(partitions)
            if not wanted:
                self.unsubscribe()
                return
            self._stop_course()
            self._commit_before_rebalance(self._default_timeout())
            engine = self._engine
            with engine.lock:
                engine.subscription.assign_from_user(wanted)
            for partition in self._done.keys() - engine.subscription.assignment.keys():
                del self._done[partition]  # others may have read on from there when it comes back
            self._changed_subscription()

    def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions as well; those that are read keep their positions.

        Raises: as assign().
        """
        with self._guard:
            self._check_open()
            more = as_partitions(partitions)
            if more:
                self.assign(sorted(self.assignment().union(more)))

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions no more; the others keep their positions.

        Raises: ArgumentTypeError for what is no TopicPartition; IllegalStateError for one that is
            not assigned, and after subscribe().
        """
        with self._guard:
            self._check_open()
            gone = set(as_partitions(partitions))
            left, engine = self.assignment(), self._engine
            if engine.subscription.subscription is not None:
                raise IllegalStateError('this consumer reads topics: subscribe() to others')
            for each in gone - left:
                raise NotAssignedError('%s is not assigned to this consumer' % where(each))
            if gone:
                self.assign(sorted(left - gone))

    def assignment(self) -> Set[TopicPartition]:
        """Return the partitions that are read now; may be called by other threads (1.0)."""
        engine = self._engine
        with engine.lock:
            return engine.subscription.meant()

    def _changed_subscription(self) -> None:
        figures = self._engine.figures
        if figures is not None:
            figures.assignment_changed(self.assignment())
        engine, member = self._engine, self._engine.member
        engine.loop.call_threadsafe(engine.following.subscribed)
        if member is not None and member.error is not None:
            # Which may be cured by that: the next poll is not to raise what was.
            taken: List[bool] = []
            engine.loop.call_threadsafe(taken.append, True)
            engine.wait(lambda: taken, 1.0)

    def _leave(self, reason: str, seconds: float) -> None:
        member = self._engine.member
        if member is not None and self._engine.subscription.partitions_auto_assigned():
            self._engine.loop.run(member.leave(reason, seconds), seconds + 1.0)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return who this consumer is to its group, for transactions (3.0).

        Who it was by the last poll: once its group has gone on without it, brokers refuse offsets
        of what it was handed out before, and would not if they came without a generation (KIP-447).
        """
        self._check_open()
        engine = self._engine
        now, then = engine.identity(), self._handed_as
        if then is None or not engine.subscription.partitions_auto_assigned():
            return now
        return then._replace(state=now.state)

    def enforce_rebalance(self, reason: str = '') -> None:
        """Let the group share its partitions anew with the next poll() (KIP-568).

        Brokers do so for the member that leads the group; another one is told its share anew.

        Arguments: reason: for the brokers' logs. Raises: IllegalStateError without membership.
        """
        self._check_open()
        member = self._engine.member
        if member is None or not self._engine.subscription.partitions_auto_assigned():
            raise IllegalStateError('this consumer is no member of a group')
        self._engine.loop.call_threadsafe(member.rejoin, reason or 'enforce_rebalance() was called')

    # ------------------------------------------------------------ positions

    def position(self, partition: TopicPartition, timeout_ms: Any = None) -> Optional[int]:
        """Return the offset of the next record to be handed out (1.0).

        One that is not known yet is looked up, for timeout_ms, None for request_timeout_ms.

        Returns: None when that is not known in time.
        Raises: IllegalStateError (an AssertionError) for a partition that is not assigned;
            NoOffsetForPartitionError and others, as poll().
        """
        check_partition(partition)
        seconds = seconds_of(timeout_ms, self._default_timeout())
        with self._guard:
            self._check_open()
            self._sync()
            engine = self._engine

            def known() -> Optional[int]:
                with engine.lock:
                    position: Optional[int] = engine.subscription.state(partition).position
                return position

            found = known()
            if found is None:
                engine.loop.call_threadsafe(engine.search)
                engine.nudge()
                error_of = engine.positions.error_of
                engine.wait(
                    lambda: known() is not None or error_of(partition) or engine.errors, seconds
                )
                found = known()
                error = error_of(partition)
                if found is None and error is None and engine.errors:
                    error = engine.errors.popleft()
                if found is None and error is not None:
                    raise error.with_traceback(None)
            return found

    def seek(self, partition: TopicPartition, offset: Any) -> None:
        """Go on at an offset with the next poll() (1.0).

        Arguments: offset: a number, or an OffsetAndMetadata, whose leader epoch then tells whether
            the log was truncated meanwhile (KIP-320).
        Raises: ArgumentValueError (a ValueError and AssertionError) for an offset that is none;
            IllegalStateError (an AssertionError) for a partition that is not assigned.
        """
        check_partition(partition)
        target = offset
        if isinstance(offset, OffsetAndMetadata):
            check_offset(offset.offset)
        else:
            target = check_offset(offset)
        self._move([partition], lambda state: state.seek(partition, target))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first offset there is, looked up when needed (1.0).

        Arguments: partitions: None for all that are assigned. Raises: as seek(); IllegalStateError
        when nothing is assigned.
        """
        self._seek_to(partitions, 'earliest')

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at the end of the log, looked up when needed; else as seek_to_beginning() (1.0)."""
        self._seek_to(partitions, 'latest')

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Go on at the committed offset, or as the option auto_offset_reset says; else as above."""
        wanted, commits = self._assigned(partitions), self._engine.commits
        if commits is None:
            raise IllegalStateError('seek_to_committed() needs the option group_id')
        with self._guard:
            seconds, identity = self._default_timeout(), self._engine.identity()
            found = self._engine.run(commits.fetch(wanted, seconds, identity), seconds)

        def move(subscription: Any) -> None:
            for each in wanted:
                offset = found.get(each)
                if offset is None:
                    subscription.need_offset_reset(each)
                else:
                    subscription.seek(each, offset)

        self._move(wanted, move)

    def skip_corrupt(self, partition: Optional[TopicPartition] = None) -> int:
        """Step over the batch that poll() could not read, giving up its records.

        Arguments: partition: of the batch; None for the one that was met last.
        Returns: the offset of the next record to be handed out.
        Raises: IllegalStateError unless the last poll() or iteration raised for a batch of this
            partition that cannot be read, and stands there still; a record that a deserializer
            refuses is stepped over by seek().
        """
        if partition is not None:
            check_partition(partition)
        with self._guard:
            self._check_open()
            fetch, of = self._failed, '' if partition is None else ' of ' + where(partition)
            if (
                fetch is None
                or partition not in (None, fetch.partition)
                or not self._counts(fetch.partition, fetch.token)
            ):
                raise IllegalStateError('no batch%s was met that cannot be read' % of)
            offset: int = fetch.skip_corrupt()
            self._failed = None
            self.seek(fetch.partition, offset)
            return offset

    def _seek_to(self, partitions: Iterable[TopicPartition], strategy: str) -> None:
        wanted = self._assigned(partitions)
        self._move(
            wanted,
            lambda subscription: [subscription.seek_to(each, strategy) for each in wanted],
        )

    def _assigned(self, partitions: Iterable[TopicPartition]) -> List[TopicPartition]:
        wanted = check_partitions(partitions)
        self._check_open()
        if not wanted:
            with self._engine.lock:  # a topic of a pattern may be assigned in a turn
                wanted = sorted(self._engine.subscription.meant())
            if not wanted:
                raise NotAssignedError('no partitions are assigned')
        return wanted

    def _move(self, partitions: List[TopicPartition], change: Callable[[Any], Any]) -> None:
        with self._guard:
            self._check_open()
            self._stop_course()
            engine = self._engine
            with engine.lock:
                for partition in partitions:
                    engine.subscription.state(partition)
                change(engine.subscription)
            for partition in partitions:
                self._held.pop(partition, None)
                self._done.pop(partition, None)
            engine.nudge()

    # ------------------------------------------------------------ pauses

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until resume(); they stay assigned (1.0).

        A rebalance that leaves a partition with this member, or gives it back, leaves it paused;
        one that was lost or went to another member comes back without that.

        Raises: KeyError for one that is not assigned.
        """
        self._change_pause(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of paused partitions again (1.0). Raises: as pause()."""
        self._change_pause(partitions, False)

    def _change_pause(self, partitions: Iterable[TopicPartition], pauses: bool) -> None:
        wanted = check_partitions(partitions)
        with self._guard:
            self._check_open()
            self._stop_course()
            engine = self._engine
            with engine.lock:
                known = {*engine.subscription.assignment, *engine.subscription.paused_partitions()}
                missing = [each for each in wanted if each not in known]
                if missing:
                    raise KeyError(missing[0])
                for each in wanted:
                    if pauses:
                        engine.subscription.pause(each)
                    else:
                        engine.subscription.resume(each)
            engine.nudge()

    def paused(self) -> Set[TopicPartition]:
        """Return the partitions that are paused (1.0)."""
        engine = self._engine
        with engine.lock:
            return set(engine.subscription.paused_partitions())
