"""The driver of fetching: who is asked for more when, and what becomes of the answers.

Owns: the requests, one at a time for each broker, when the next may go, and that what is fetched
ahead stays within its budget. Does not own: which broker is asked for which partition
(node_selection.py), what a broker was told (session.py), what is done about errors
(error_actions.py), what waits for the program (buffer.py), positions (partition_state.py).

Fetches have connections of their own (Pool.fetch_link()), so that nothing else waits behind one
that a broker keeps until there is something to tell. One is opened when the first partition of a
broker is to be read, while its position is being found.

A broker is asked again as soon as the program has begun with the last of what it sent, so that the
next answer is on its way while that is decoded; and not before, so that a program that does not
poll stops everything. An answer counts for a partition if its token and the offset that was asked
are still what they were.

look(), close() and whatever follows from answers run in turns of the loop; take(), put_back(),
done() and has_news() are called by the thread that polls. What both touch is under the consumer's
lock; fetch sessions and places belong to the turns alone.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Set, Tuple

from kafka.consumer.fetch.buffer import ParkedFetches
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.error_actions import merged
from kafka.consumer.fetch.node_selection import Places
from kafka.consumer.fetch.pace import Pace
from kafka.consumer.fetch.request import (
    HAS_SESSIONS,
    LAST_WITH_NAMES,
    LIMITS_ALL,
    FetchSettings,
    ending_request,
    fetch_request,
    parts_of,
)
from kafka.consumer.fetch.response import FetchedParts, Parts
from kafka.consumer.fetch.session import FetchSession, Outcome
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    Cancelled,
    IllegalStateError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
    error_for_code,
)
from kafka.net.link_parts import backoff_seconds
from kafka.net.loop.tasks import Alarm, Task
from kafka.protocol.api import choose_version
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.structs import TopicPartition

__all__ = ['FetchSettings', 'Fetching']

log = logging.getLogger(__name__)

#: For so long brokers do not wait while positions are being found: what is asked for next would
#: wait until then.
HURRY = 1.0
#: Where limits are hard (brokers before 0.10.1), a partition is asked for so many bytes at least.
LEAST_LIMIT = 65536
#: How long it pauses after a mistake of its own.
PAUSE_AFTER_FAULT = 0.1
#: So many errors wait for the program at most.
MOST_ERRORS = 100


class _Asked(NamedTuple):
    """A request in flight."""

    at: float
    reserved: int
    max_wait: float
    partition_limit: int


class _Node:
    """What is known of fetching from one broker."""

    __slots__ = ('asked', 'connecting', 'is_given_up', 'pace', 'version')

    def __init__(self, pace: Pace) -> None:
        self.asked: Optional[_Asked] = None
        self.connecting: Optional[Task[Any]] = None
        self.pace = pace
        self.is_given_up = False  # whether what was asked is
        self.version: Tuple[Any, bool, int] = None, False, 0  # which was chosen, and what from


class Fetching:
    """Fetches what a subscription may fetch.

    Arguments:
        loop, pool: of the consumer.
        subscription: a SubscriptionState; lock: the consumer's.
        settings: a FetchSettings.
        make: makes a CompletedFetch of (partition, fetch_offset, data, token=..., node_id=...);
            the rest of its arguments is bound in it.
        on_change: called in a turn when the program may have something to do.
        figures: gets answered(node_id, seconds, throttle_time_ms, bytes_by_topic), or None.
        chance: for the jitter.

    Attributes: errors: for the program's next poll, oldest first; whoever raises one takes it out.
    """

    def __init__(
        self,
        loop: Any,
        pool: Any,
        subscription: SubscriptionState,
        lock: Any,
        settings: FetchSettings,
        make: Callable[..., CompletedFetch],
        on_change: Callable[[], Any],
        figures: Any = None,
        chance: Optional[random.Random] = None,
    ) -> None:
        self.errors: Deque[KafkaError] = deque()
        self._loop = loop
        self._pool = pool
        self._subscription = subscription
        self._lock = lock
        self._settings = settings
        self._on_change = on_change
        self._figures = figures
        self._chance = chance or random.Random()
        self._places = Places(
            subscription,
            pool.cluster,
            settings.partition_limit,
            settings.use_sessions,
        )
        self._parts = FetchedParts(
            subscription, pool.cluster, self._places, settings, make, self._backoff
        )
        self._parked = ParkedFetches(settings.max_buffered_bytes, subscription.assignment.get)
        self._dirty: Set[TopicPartition] = set()  # to be looked at in the next turn
        self._is_new_metadata = True
        self._is_changing = False  # whether the thread that polls is changing what is parked
        self._is_starving = False  # whether the budget is why somebody was not asked
        self._nodes: Dict[int, _Node] = {}
        self._last_asked = -1  # the node that was asked last
        self._is_poked = False
        self._alarm = Alarm(loop, self.poke)  # one does for all pauses
        self._unsettled_since: Optional[float] = None
        self._is_closed = False
        pool.cluster.add_listener(self._on_metadata)

    def __repr__(self) -> str:
        return '<Fetching %r, %d requests in flight>' % (self._parked, self.in_flight)

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers."""
        return sum(node.asked is not None for node in list(self._nodes.values()))

    # ------------------------------------------------------------ by the thread that polls

    def take(self) -> Optional[CompletedFetch]:
        """Return what was fetched and is next, None for nothing; done() or put_back() follow.

        What is stale is dropped, what is paused is passed over and kept.
        """
        with self._lock:
            was_torn, self._is_changing = self._is_changing, True
            if was_torn:
                self._mend()
            has_changed = self._note_changes() or was_torn
            fetch = self._parked.take()
            # With the last of an answer the next request goes, before this one is decoded.
            looks = self._parked.take_relief() or has_changed
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)
        return fetch

    def put_back(self, fetch: CompletedFetch) -> None:
        """Take back what is not emptied, to be given again when its partition may be read."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._parked.put_back(fetch)
            self._is_changing = False

    def put_off(self, fetch: CompletedFetch) -> None:
        """Take back what could not be handed out, so that others are served meanwhile."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._parked.put_off(fetch)
            looks = self._parked.take_relief() and self._is_starving
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)

    def done(self, fetch: CompletedFetch) -> None:
        """Let go of what is emptied, or stale: its bytes leave the budget."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._parked.done(fetch)
            looks = self._parked.take_relief() and self._is_starving
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)

    def forget(self) -> None:
        """Let go of all that was fetched, taken or not, and have it fetched again."""
        with self._lock:
            self._is_changing = True
            self._mend()
            self._is_changing = False

    def has_news(self) -> bool:
        """Tell whether take() would give something, or an error waits."""
        # Asked after each turn: whoever brings something later has that asked again.
        if self._parked.is_quiet and not self._subscription.has_changed:
            return bool(self.errors)
        with self._lock:
            was_torn, self._is_changing = self._is_changing, True
            if was_torn:
                self._mend()
            has_changed = self._note_changes() or was_torn
            found = self._parked.first() is not None
            looks = self._parked.take_relief() or has_changed
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)
        return found or bool(self.errors)

    def _mend(self) -> None:
        """Fetch everything again, as a change of what is parked was left half done.

        An exception may come from outside at any point of one: each sets _is_changing, under the
        lock, and the next one that finds it set calls this first.
        """
        for state in self._subscription.assignment.values():
            if state.has_valid_position:
                state.rewind()
        self._parked.clear()

    def _note_changes(self) -> bool:
        """Take over which partitions have changed; return whether there were any."""
        if not self._subscription.has_changed:
            return False
        changed = sorted(self._subscription.changed)  # in one order, so that a run repeats
        self._dirty.update(changed)
        for each in changed:
            self._parked.restore(each)
        self._subscription.take_changed()  # last: if this is interrupted, it is done once more
        return True

    # ------------------------------------------------------------ when it looks

    def poke(self) -> None:
        """Let the fetcher look again soon; in a turn of the loop."""
        if not self._is_poked:
            self._is_poked = True
            self._loop.call_soon(self.look)

    def _on_metadata(self, cluster: Any) -> None:
        self._is_new_metadata = True
        self.poke()

    def look(self) -> None:
        """Ask whom there is to ask, and see to it that somebody looks again in time."""
        self._is_poked = False
        if self._is_closed:
            return
        now = self._loop.time()
        try:
            self._review(now)
            next_at = self._ask_all(now)
        except Exception:
            # A mistake here must not end all fetching without a word.
            log.exception('the fetcher failed and goes on')
            next_at = now + PAUSE_AFTER_FAULT
        for when in (next_at, self._places.next_alarm):
            if when is not None:
                self._alarm.set(when)

    def _review(self, now: float) -> None:
        """Find out who is to be asked for what."""
        places, subscription = self._places, self._subscription
        if not (
            self._dirty or self._is_new_metadata or subscription.has_changed
            or subscription.unsettled or self._unsettled_since is not None
            or places.is_due(now)
        ):  # fmt: skip
            return
        with self._lock:
            self._note_changes()
            dirty, self._dirty = self._dirty, set()
            is_new, self._is_new_metadata = self._is_new_metadata, False
            if is_new:
                places.review_all(now)
            places.review(sorted(dirty), now)
            subscription.take_changed()  # by what was just done
            is_unsettled = bool(subscription.unsettled)
        if not is_unsettled:
            self._unsettled_since = None
        elif self._unsettled_since is None:
            self._unsettled_since = now
        for node_id in sorted(places.take_expected()):
            self._prepare(node_id, now)
        if is_unsettled and (dirty or is_new):
            self._on_change()
        leaderless = places.take_leaderless()
        if leaderless:
            self._refresh(leaderless)
            denied = leaderless & self._pool.cluster.unauthorized_topics
            if denied:
                self._raise([TopicAuthorizationFailedError(denied)])

    def _refresh(self, topics: Set[str]) -> None:
        for topic in topics:
            self._pool.want_topic(topic)
        self._pool.refresh()

    def _raise(self, errors: List[KafkaError]) -> None:
        """Have errors raised by the program's next poll."""
        for error in errors:
            waiting = list(self.errors)  # the program may take one out meanwhile
            if error not in waiting and len(waiting) < MOST_ERRORS:
                self.errors.append(error)
        if errors:
            self._on_change()

    # ------------------------------------------------------------ asking

    def _ask_all(self, now: float) -> Optional[float]:
        """Ask every broker that may be asked; return when the next may, None: something happens."""
        next_at = None
        self._is_starving = False
        order = [node for node, session in self._places.sessions.items() if len(session)]
        share = self._settings.max_buffered_bytes // (2 * len(order)) if order else 0
        # Where there is not enough for all, they are the first in turn.
        later = [node for node in order if node > self._last_asked]
        order = later + [node for node in order if node <= self._last_asked]
        for node_id in order:
            node = self._node(node_id)
            if node.asked is not None:
                self._give_up_long(node_id, node, node.asked)
                continue
            if node.connecting is not None:
                continue
            pace = node.pace
            if now >= pace.not_before:
                self._ask(node_id, node, max(1, share), now)
            if now < pace.not_before:
                next_at = pace.not_before if next_at is None else min(next_at, pace.not_before)
        return next_at

    def _give_up_long(self, node_id: int, node: _Node, asked: _Asked) -> None:
        """Ask anew by another connection if a broker waits long and more is wanted of it."""
        if not node.pace.is_long(asked.max_wait) or node.is_given_up:
            return
        if self._places.sessions[node_id].is_outdated:
            node.is_given_up = True
            node.pace.disturb()
            self._pool.fetch_link(node_id).close()

    def _node(self, node_id: int) -> _Node:
        node = self._nodes.get(node_id)
        if node is None:
            usual, longest = self._settings.max_wait, self._settings.idle_wait
            node = self._nodes[node_id] = _Node(Pace(usual, max(usual, longest)))
        return node

    def _prepare(self, node_id: int, now: float) -> None:
        """Connect to a broker that is about to be asked, while positions are being found."""
        node = self._node(node_id)
        if node.asked is not None or node.connecting is not None or now < node.pace.not_before:
            return
        try:
            link = self._pool.fetch_link(node_id)
        except UnknownBrokerIdError:
            return
        if link.versions is None:
            node.connecting = self._loop.spawn(self._connect(node_id, node, link))

    def _ask(self, node_id: int, node: _Node, share: int, now: float) -> None:
        """Ask a broker unless something of its last answer waits, or the budget is used up."""
        with self._lock:
            if self._parked.waiting(node_id):
                return
            room = self._room(share)
        if not room:
            return
        try:
            link = self._pool.fetch_link(node_id)
            if link.versions is None:
                node.connecting = self._loop.spawn(self._connect(node_id, node, link))
                return
            session = self._places.sessions[node_id]
            version = self._version(node, link.versions.ranges, session.all_have_ids)
        except UnknownBrokerIdError:
            self._pool.refresh()
            self._pause(node, now)
            return
        except KafkaError as error:  # it does not serve any Fetch of ours
            self._pause(node, now)
            self._raise([error])
            return
        self._last_asked = node_id
        self._send(node_id, node, link, session, version, room)

    def _room(self, share: int) -> int:
        """Return how many bytes may be asked for, 0 for none: what was fetched has to go first."""
        wanted = min(share, self._settings.max_bytes)
        if self._parked.free < max(1, wanted // 4):
            for partition in self._parked.drop_aside():
                state = self._subscription.assignment.get(partition)
                if state is not None and state.has_valid_position:
                    state.rewind()
        if self._parked.free < max(1, wanted // 4):
            self._is_starving = True
            return 0
        return min(wanted, self._parked.free)

    def _version(self, node: _Node, ranges: Any, by_id: bool) -> int:
        """Return the version of Fetch for a broker. Raises UnsupportedVersionError."""
        if node.version[0] is not ranges or node.version[1] != by_id:
            highest = None if by_id else LAST_WITH_NAMES
            node.version = ranges, by_id, choose_version(FetchRequest, ranges, highest)
        return node.version[2]

    async def _connect(self, node_id: int, node: _Node, link: Any) -> None:
        try:
            await link.ready()
        except KafkaError as error:
            log.debug('node=%s cannot be reached: %s', node_id, error)
            self._lost(node_id, node, error)
        finally:
            node.connecting = None
            self.poke()

    def _send(
        self, node_id: int, node: _Node, link: Any, session: FetchSession, version: int, room: int
    ) -> None:
        now = self._loop.time()
        settings = self._settings
        at_most, limit = None, settings.partition_limit
        if version < LIMITS_ALL:  # an answer may bring as much of every partition
            limit = min(limit, max(LEAST_LIMIT, room // len(session)))
            at_most = max(1, room // limit)
        plan = session.plan(version >= HAS_SESSIONS, version > LAST_WITH_NAMES, at_most)
        unsettled_since = self._unsettled_since
        is_hurried = unsettled_since is not None and now < unsettled_since + HURRY
        max_wait = node.pace.max_wait(is_hurried, version >= HAS_SESSIONS)
        max_wait = min(max_wait, settings.request_timeout / 2)
        request = fetch_request(plan, settings, room, max_wait, limit)
        node.asked = _Asked(now, room, max_wait, limit)
        with self._lock:
            self._parked.reserved += room
        answered = partial(self._answered, node_id, node, session)
        link.submit(request, answered, settings.request_timeout, version)

    # ------------------------------------------------------------ answers

    def _answered(
        self,
        node_id: int,
        node: _Node,
        session: FetchSession,
        response: Optional[FetchResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Take an answer, or that there will be none."""
        asked, node.asked = node.asked, None
        assert asked is not None
        with self._lock:
            self._parked.reserved -= asked.reserved
        if self._is_closed:
            return
        try:
            if response is None:
                session.on_error()
                if not node.is_given_up:
                    self._lost(node_id, node, error or KafkaError('no answer'))
            else:
                self._take_response(node_id, node, session, asked, response)
        except Exception as fault:
            log.exception('node=%s an answer was not understood', node_id)
            if session.is_asked:
                session.on_error()
            self._pause(node, self._loop.time())
            failure = KafkaError('an answer of node %s was not understood: %r' % (node_id, fault))
            self._raise([failure])
        node.is_given_up = False
        self.look()  # in this turn: an idle consumer is to run as few as can be

    def _lost(self, node_id: int, node: _Node, error: KafkaError) -> None:
        """Leave a broker alone for a while that does not answer."""
        self._pause(node, self._loop.time())
        with self._lock:
            self._places.avoid(node_id)
        self._pool.refresh()
        # A connection that this client closed itself, to look for the cluster anew, says nothing.
        if not error.retriable and not isinstance(error, (Cancelled, IllegalStateError)):
            self._raise([error])

    def _pause(self, node: _Node, now: float) -> None:
        node.pace.failed(now, self._backoff)

    def _backoff(self, failures: int) -> float:
        base, longest = self._settings.retry_backoff, self._settings.retry_backoff_max
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(base, longest, failures, part)

    def _take_response(
        self,
        node_id: int,
        node: _Node,
        session: FetchSession,
        asked: _Asked,
        response: FetchResponse,
    ) -> None:
        now = self._loop.time()
        parts = list(parts_of(response, session))
        outcome = session.on_response(
            response.error_code,
            response.session_id,
            dict(parts).keys(),
            response.throttle_time_ms > 0,
        )
        if outcome is not Outcome.TAKEN:
            self._take_refusal(node_id, node, outcome, response, now)
            return
        node.pace.succeeded()
        if not parts:
            self._take_nothing(node_id, node, asked, response, now)
            return
        made = self._parts.make(node_id, session, parts)
        with self._lock:
            news = self._parts.take(
                node_id, session, asked.partition_limit, response, parts, made, now
            )
            if news.parked:
                self._parked.add(news.parked)
            self._dirty |= news.changed
        node.pace.answered(asked.at, asked.max_wait, news.is_progress, now)
        for is_shown, text, arguments in news.notes:
            log.log(logging.INFO if is_shown else logging.DEBUG, text, *arguments)
        if news.stale_topics:
            self._refresh(news.stale_topics)
        self._raise(merged(news.errors))
        if self._figures is not None:
            self._figures.answered(
                node_id, now - asked.at, response.throttle_time_ms, _bytes_by_topic(parts)
            )
        if news.parked or news.is_unsettled:
            self._on_change()

    def _take_nothing(
        self, node_id: int, node: _Node, asked: _Asked, response: FetchResponse, now: float
    ) -> None:
        """Take the answer that there is nothing new: most are like this where little is written."""
        node.pace.answered(asked.at, asked.max_wait, False, now)
        if self._figures is not None:
            self._figures.answered(node_id, now - asked.at, response.throttle_time_ms, {})
        if self._subscription.unsettled:
            self._on_change()

    def _take_refusal(
        self, node_id: int, node: _Node, outcome: Outcome, response: FetchResponse, now: float
    ) -> None:
        """Ask for everything again: at once when only the session was lost, or after a pause."""
        code = response.error_code
        log.debug('node=%s fetch refused: %s, error %s', node_id, outcome.value, code)
        if outcome is Outcome.EMPTY:
            node.pace.not_before = now + response.throttle_time_ms / 1000
            return
        is_at_once = outcome is Outcome.START_OVER
        node.pace.failed(now, self._backoff, is_at_once)
        if code and (error_for_code(code).refresh_metadata or not is_at_once or code == 106):
            self._pool.refresh()

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """End the sessions with brokers as far as that can be said, and fetch nothing more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._pool.cluster.remove_listener(self._on_metadata)
        self._alarm.cancel()
        for node in self._nodes.values():
            if node.connecting is not None:
                node.connecting.cancel()
        for node_id, session in self._places.sessions.items():
            self._end(node_id, session)
        with self._lock:
            self._parked.clear()

    def _end(self, node_id: int, session: FetchSession) -> None:
        session_id = session.close()
        if session_id is None:
            return
        try:
            link = self._pool.fetch_link(node_id)
        except KafkaError:  # it is gone, and its sessions with it
            return
        if link.can_send:
            version = min(self._nodes[node_id].version[2], LAST_WITH_NAMES)
            timeout = self._settings.request_timeout
            link.submit(ending_request(session_id), _ignore, timeout, version)


def _bytes_by_topic(parts: Parts) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for at, data in parts:
        if data.records:
            topic = str(at.topic)
            found[topic] = found.get(topic, 0) + len(data.records)
    return found


def _ignore(response: Any, error: Optional[KafkaError]) -> None:
    """Take no note of an answer: nobody waits for it."""
