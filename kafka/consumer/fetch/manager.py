"""The fetch manager: sends Fetch requests and keeps what was fetched until poll() takes it.

The engine of a consumer makes one. It sends one request at a time to each broker, paces them, and
keeps the bytes fetched ahead within their budget. NodeSelection chooses the broker of each
partition, FetchSession the contents of a request, FetchResponseHandler applies the response, and
the FetchBuffer keeps the records.

Fetches have connections of their own (Pool.fetch_link()), so that no other request waits for a
Fetch that a broker delays until there are records. The connection is opened while the position of
the broker's first partition is being found.

The next request to a broker is sent when the program takes the last completed fetch of its last
response, so that the next response arrives while that fetch is decoded; and not before, so that a
program that does not poll stops fetching. A response counts for a partition only if the token and
the fetch offset of its state are those of the request.

look(), close() and the handling of responses run in turns of the loop; next_fetch(), put_back(),
done() and has_news() are called by the thread that polls. State that both use is under the
consumer's lock; fetch sessions and node selection are used in turns only.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ContextManager,
    Deque,
    Dict,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from kafka.consumer.fetch.buffer import FetchBuffer
from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.consumer.fetch.error_actions import merged
from kafka.consumer.fetch.node_selection import NodeSelection
from kafka.consumer.fetch.response import FetchResponseHandler, Parts
from kafka.consumer.fetch.session import (
    HAS_SESSIONS,
    LAST_WITH_NAMES,
    LIMITS_ALL,
    FetchSession,
    FetchSessionOutcome,
    FetchSettings,
    ending_request,
    fetch_request,
    parts_of,
)
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    Cancelled,
    FetchSessionTopicIdError,
    IllegalStateError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
    error_for_code,
)
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.tasks import Alarm, Task
from kafka.protocol.api import choose_version
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata
    from kafka.net.loop.event_loop import EventLoop
    from kafka.net.pool import Pool

__all__ = ['FetchManager', 'FetchPace', 'FetchSettings']

log = logging.getLogger(__name__)

#: For how long, in seconds, brokers are asked not to wait while positions are being found: the next
#: request, with the partitions that have a position by then, is sent only after the response.
HURRY = 1.0
#: The smallest limit of a partition for brokers before 0.10.1, which cut a larger batch off.
LEAST_LIMIT = 65536
#: Seconds to pause after an unexpected exception.
PAUSE_AFTER_FAULT = 0.1
#: The most errors kept for poll().
MOST_ERRORS = 100


#: Seconds before the next request to a broker that responded at once without records.
FIRST_PAUSE = 0.01
#: The longest such pause, if max_wait is 0.
LONGEST_PAUSE = 0.1


class FetchPace:
    """The times of requests to one broker: the back-off, and how long the broker may wait.

    A broker responds as soon as there is a record, however long it may wait. So a broker that had
    no records for a while may wait longer: an idle consumer costs both sides less, and no record is
    delayed. If the contents of the request change meanwhile, the next request must not wait for the
    long one: the caller then gives up the long one (`is_long`).

    Arguments: usual: the usual time that a broker waits, in seconds; longest: the longest time if
        it is idle, in seconds, at least as long.

    Attributes: failures: in a row; not_before: time of the next request.
    """

    __slots__ = ('_hasty', '_longest', '_quiet', '_usual', 'failures', 'not_before')

    def __init__(self, usual: float, longest: float) -> None:
        self.failures = 0
        self.not_before = 0.0
        self._usual = usual
        self._longest = longest
        self._hasty = 0  # responses in a row that came at once without records
        self._quiet = 0  # responses in a row without records after the whole wait

    def __repr__(self) -> str:
        return '<FetchPace failures=%d quiet=%d>' % (self.failures, self._quiet)

    def max_wait(self, is_hurried: bool, may_be_long: bool) -> float:
        """Return the seconds that the broker may wait before its next response.

        Arguments: is_hurried: whether a request for other partitions is about to follow;
            may_be_long: whether the broker responds at once to changes of the leader too.
        """
        if is_hurried:
            return min(self._usual, FIRST_PAUSE)
        if not may_be_long:
            return self._usual
        return min(self._longest, self._usual * 2.0**self._quiet)

    def is_long(self, max_wait: float) -> bool:
        """Return True if a request waits longer than fetch_max_wait_ms."""
        return max_wait > self._usual

    def answered(self, asked_at: float, max_wait: float, is_progress: bool, now: float) -> None:
        """Note a response; pause after one without records that came at once.

        Arguments: asked_at, max_wait: when the request was sent, and how long the broker might
            have waited; is_progress: whether it had records.
        """
        if is_progress or (max_wait and now - asked_at >= max_wait / 2):
            self._hasty = 0
            is_waited = not is_progress and max_wait >= self._usual
            self._quiet = min(self._quiet + 1, 20) if is_waited else 0
            return
        self._hasty += 1
        self._quiet = 0
        longest = max(max_wait, LONGEST_PAUSE)
        self.not_before = now + backoff_seconds(FIRST_PAUSE, longest, self._hasty, 1.0)

    def disturb(self) -> None:
        """Note that the consumer is not idle any more."""
        self._quiet = 0

    def succeeded(self) -> None:
        """Note that the broker accepted a request."""
        self.failures = 0

    def failed(self, now: float, backoff: Callable[[int], float], is_at_once: bool = False) -> None:
        """Back off after a failure.

        Arguments: backoff: returns the seconds to pause after a number of failures in a row;
            is_at_once: no pause after the first.
        """
        self.failures += 1
        self._quiet = 0
        self.not_before = now + backoff(self.failures - is_at_once)


class _Asked(NamedTuple):
    """A request in flight."""

    at: float
    reserved: int
    max_wait: float
    partition_limit: int


class _Node:
    """The state of fetching from one broker."""

    __slots__ = ('asked', 'connecting', 'is_given_up', 'pace', 'version')

    def __init__(self, pace: FetchPace) -> None:
        self.asked: Optional[_Asked] = None
        self.connecting: Optional[Task[Any]] = None
        self.pace = pace
        self.is_given_up = False  # whether the request in flight was given up
        # The ranges of the broker, whether topics are named by id, and the version chosen by both.
        self.version: Tuple[Any, bool, int] = None, False, 0


class FetchManager:
    """Fetches the fetchable partitions of a subscription.

    Arguments:
        loop, pool: of the consumer.
        subscription: a SubscriptionState; lock: the consumer's.
        settings: a FetchSettings.
        make: makes a CompletedFetch of (partition, fetch_offset, data, token=..., node_id=...);
            its other arguments are bound.
        on_change: called in a turn of the loop when poll() may have something to do.
        figures: gets answered(node_id, seconds, throttle_time_ms, bytes_by_topic), or None.
        chance: for the jitter.

    Attributes: errors: for poll() to raise and remove, oldest first.
    """

    def __init__(
        self,
        loop: EventLoop,
        pool: Pool,
        subscription: SubscriptionState,
        lock: ContextManager[Any],
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
        self._selection = NodeSelection(
            subscription,
            pool.cluster,
            settings.partition_limit,
            settings.use_sessions,
        )
        self._response_handler = FetchResponseHandler(
            subscription, pool.cluster, self._selection, settings, make, self._backoff
        )
        self._buffer = FetchBuffer(settings.max_buffered_bytes, subscription.assignment.get)
        self._dirty: Set[TopicPartition] = set()  # to be reviewed in the next turn
        self._is_new_metadata = True
        self._is_changing = False  # whether the polling thread is changing the buffer
        self._is_starving = False  # whether a node was not asked because of the budget
        self._nodes: Dict[int, _Node] = {}
        self._last_asked = -1  # the node of the last request
        self._is_poked = False
        self._alarm = Alarm(loop, self.poke)  # one for all pauses
        self._unsettled_since: Optional[float] = None
        self._is_closed = False
        pool.cluster.add_listener(self._on_metadata)

    def __repr__(self) -> str:
        return '<FetchManager %r, %d requests in flight>' % (self._buffer, self.in_flight)

    @property
    def in_flight(self) -> int:
        """The number of requests without a response yet."""
        return sum(node.asked is not None for node in list(self._nodes.values()))

    # ------------------------------------------------------------ by the thread that polls

    def next_fetch(self) -> Optional[CompletedFetch]:
        """Return the next completed fetch, or None; done() or put_back() follow.

        Stale fetches are dropped, those of paused partitions kept.
        """
        with self._lock:
            was_torn, self._is_changing = self._is_changing, True
            if was_torn:
                self._mend()
            has_changed = self._note_changes() or was_torn
            fetch = self._buffer.next_fetch()
            # Once the last fetch of a response is taken, the next request is sent before the
            # fetch is decoded.
            looks = self._buffer.take_relief() or has_changed
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)
        return fetch

    def put_back(self, fetch: CompletedFetch) -> None:
        """Put back a fetch with records left, as the next of its partition."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._buffer.put_back(fetch)
            self._is_changing = False

    def put_off(self, fetch: CompletedFetch) -> None:
        """Put back a fetch whose records could not be returned, after those of other partitions."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._buffer.put_off(fetch)
            looks = self._buffer.take_relief() and self._is_starving
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)

    def done(self, fetch: CompletedFetch) -> None:
        """Release a fetch that is empty or stale: its bytes leave the budget."""
        with self._lock:
            if self._is_changing:
                self._mend()
            self._is_changing = True
            self._buffer.done(fetch)
            looks = self._buffer.take_relief() and self._is_starving
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)

    def forget(self) -> None:
        """Drop all fetches, taken or not, and fetch from the positions again."""
        with self._lock:
            self._is_changing = True
            self._mend()
            self._is_changing = False

    def has_news(self) -> bool:
        """Return True if next_fetch() would return a fetch, or an error is pending."""
        # May be outdated without the lock: a turn follows each change, and this is called again.
        if self._buffer.is_quiet and not self._subscription.has_changed:
            return bool(self.errors)
        with self._lock:
            was_torn, self._is_changing = self._is_changing, True
            if was_torn:
                self._mend()
            has_changed = self._note_changes() or was_torn
            found = self._buffer.first() is not None
            looks = self._buffer.take_relief() or has_changed
            self._is_changing = False
        if looks:
            self._loop.call_lazily(self.look)
        return found or bool(self.errors)

    def _mend(self) -> None:
        """Fetch everything again, because a change of the buffer was interrupted.

        An asynchronous exception may end a change at any point. Each change sets _is_changing,
        under the lock, and the next one that finds it set calls this first.
        """
        for state in self._subscription.assignment.values():
            if state.has_valid_position:
                state.rewind()
        self._buffer.clear()

    def _note_changes(self) -> bool:
        """Take the changed partitions of the subscription; return True if there were any."""
        if not self._subscription.has_changed:
            return False
        changed = sorted(self._subscription.changed)  # sorted, so that a simulated run repeats
        self._dirty.update(changed)
        for each in changed:
            self._buffer.restore(each)
        self._subscription.take_changed()  # last: after an interruption all of it is done again
        return True

    # ------------------------------------------------------------ reviewing

    def poke(self) -> None:
        """Call look() soon; in a turn of the loop."""
        if not self._is_poked:
            self._is_poked = True
            self._loop.call_soon(self.look)

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        self._is_new_metadata = True
        self.poke()

    def look(self) -> None:
        """Send all requests that are due, and set the timer for the next ones."""
        self._is_poked = False
        if self._is_closed:
            return
        now = self._loop.time()
        try:
            self._review(now)
            next_at = self._ask_all(now)
        except Exception:
            # An unexpected exception must not silently end all fetching.
            log.exception('the fetcher failed and goes on')
            next_at = now + PAUSE_AFTER_FAULT
        for when in (next_at, self._selection.next_alarm):
            if when is not None:
                self._alarm.set(when)

    def _review(self, now: float) -> None:
        """Update the node selection from what has changed."""
        selection, subscription = self._selection, self._subscription
        if not (
            self._dirty or self._is_new_metadata or subscription.has_changed
            or subscription.unsettled or self._unsettled_since is not None
            or selection.is_due(now)
        ):  # fmt: skip
            return
        with self._lock:
            self._note_changes()
            dirty, self._dirty = self._dirty, set()
            is_new, self._is_new_metadata = self._is_new_metadata, False
            if is_new:
                selection.review_all(now)
            selection.review(sorted(dirty), now)
            subscription.take_changed()  # the changes made by the review itself
            is_unsettled = bool(subscription.unsettled)
        if not is_unsettled:
            self._unsettled_since = None
        elif self._unsettled_since is None:
            self._unsettled_since = now
        for node_id in sorted(selection.take_expected()):
            self._prepare(node_id, now)
        if is_unsettled and (dirty or is_new):
            self._on_change()
        leaderless = selection.take_leaderless()
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
        """Keep errors for the next poll() to raise."""
        for error in errors:
            waiting = list(self.errors)  # the polling thread may remove one meanwhile
            if error not in waiting and len(waiting) < MOST_ERRORS:
                self.errors.append(error)
        if errors:
            self._on_change()

    # ------------------------------------------------------------ sending

    def _ask_all(self, now: float) -> Optional[float]:
        """Send the requests that are due; return the time of the next, None without one."""
        next_at = None
        self._is_starving = False
        order = [node for node, session in self._selection.sessions.items() if len(session)]
        share = self._settings.max_buffered_bytes // (2 * len(order)) if order else 0
        # If the budget is too small for all nodes, those left out come first the next time.
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
        """Close the connection of a long request whose contents are outdated, to send another."""
        if not node.pace.is_long(asked.max_wait) or node.is_given_up:
            return
        if self._selection.sessions[node_id].is_outdated:
            node.is_given_up = True
            node.pace.disturb()
            self._pool.fetch_link(node_id).close()

    def _node(self, node_id: int) -> _Node:
        node = self._nodes.get(node_id)
        if node is None:
            usual, longest = self._settings.max_wait, self._settings.idle_wait
            node = self._nodes[node_id] = _Node(FetchPace(usual, max(usual, longest)))
        return node

    def _prepare(self, node_id: int, now: float) -> None:
        """Connect to the broker of a partition whose position is being found."""
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
        """Send a request, unless fetches of the last response wait or the budget is used up."""
        with self._lock:
            if self._buffer.waiting(node_id):
                return
            room = self._room(share)
        if not room:
            return
        try:
            link = self._pool.fetch_link(node_id)
            if link.versions is None:
                node.connecting = self._loop.spawn(self._connect(node_id, node, link))
                return
            session = self._selection.sessions[node_id]
            version = self._version(node, link.versions.ranges, session.all_have_ids)
        except UnknownBrokerIdError:
            self._pool.refresh()
            self._pause(node, now)
            return
        except KafkaError as error:  # the broker supports no version of Fetch that this client has
            self._pause(node, now)
            self._raise([error])
            return
        self._last_asked = node_id
        self._send(node_id, node, link, session, version, room)

    def _room(self, share: int) -> int:
        """Return the bytes that the next request may reserve; 0 while the buffer is full."""
        wanted = min(share, self._settings.max_bytes)
        if self._buffer.free < max(1, wanted // 4):
            for partition in self._buffer.drop_aside():
                state = self._subscription.assignment.get(partition)
                if state is not None and state.has_valid_position:
                    state.rewind()
        if self._buffer.free < max(1, wanted // 4):
            self._is_starving = True
            return 0
        return min(wanted, self._buffer.free)

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
        if version < LIMITS_ALL:  # each partition may have up to its own limit in the response
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
            self._buffer.reserved += room
        answered = partial(self._answered, node_id, node, session)
        link.submit(request, answered, settings.request_timeout, version)

    # ------------------------------------------------------------ responses

    def _answered(
        self,
        node_id: int,
        node: _Node,
        session: FetchSession,
        response: Optional[FetchResponse],
        error: Optional[KafkaError],
    ) -> None:
        """Handle a response, or the error of a request."""
        asked, node.asked = node.asked, None
        assert asked is not None
        with self._lock:
            self._buffer.reserved -= asked.reserved
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
        self.look()  # in the same turn: an idle consumer should need few turns

    def _lost(self, node_id: int, node: _Node, error: KafkaError) -> None:
        """Back off from a broker that does not respond."""
        self._pause(node, self._loop.time())
        with self._lock:
            self._selection.avoid(node_id)
        self._pool.refresh()
        # A connection closed by this client itself, to bootstrap again, is not an error.
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
        if outcome is not FetchSessionOutcome.TAKEN:
            self._take_refusal(node_id, node, outcome, response, now)
            return
        node.pace.succeeded()
        if not parts:
            self._take_nothing(node_id, node, asked, response, now)
            return
        made = self._response_handler.make(node_id, session, parts)
        with self._lock:
            result = self._response_handler.take(
                node_id, session, asked.partition_limit, response, parts, made, now
            )
            if result.fetches:
                self._buffer.add(result.fetches)
            self._dirty |= result.changed
        node.pace.answered(asked.at, asked.max_wait, result.is_progress, now)
        for is_shown, text, arguments in result.notes:
            log.log(logging.INFO if is_shown else logging.DEBUG, text, *arguments)
        if result.stale_topics:
            self._refresh(result.stale_topics)
        self._raise(merged(result.errors))
        if self._figures is not None:
            self._figures.answered(
                node_id, now - asked.at, response.throttle_time_ms, _bytes_by_topic(parts)
            )
        if result.fetches or result.is_unsettled:
            self._on_change()

    def _take_nothing(
        self, node_id: int, node: _Node, asked: _Asked, response: FetchResponse, now: float
    ) -> None:
        """Handle a response without partitions, the usual one of an idle fetch session."""
        node.pace.answered(asked.at, asked.max_wait, False, now)
        if self._figures is not None:
            self._figures.answered(node_id, now - asked.at, response.throttle_time_ms, {})
        if self._subscription.unsettled:
            self._on_change()

    def _take_refusal(
        self,
        node_id: int,
        node: _Node,
        outcome: FetchSessionOutcome,
        response: FetchResponse,
        now: float,
    ) -> None:
        """Start the session again: at once if only the session was lost, or after a pause."""
        code = response.error_code
        log.debug('node=%s fetch refused: %s, error %s', node_id, outcome.value, code)
        if outcome is FetchSessionOutcome.EMPTY:
            node.pace.not_before = now + response.throttle_time_ms / 1000
            return
        is_at_once = outcome is FetchSessionOutcome.START_OVER
        node.pace.failed(now, self._backoff, is_at_once)
        if code and (
            error_for_code(code).refresh_metadata
            or not is_at_once
            or code == FetchSessionTopicIdError.errno
        ):
            self._pool.refresh()

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """End the sessions with the brokers that are connected, and fetch no more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._pool.cluster.remove_listener(self._on_metadata)
        self._alarm.cancel()
        for node in self._nodes.values():
            if node.connecting is not None:
                node.connecting.cancel()
        for node_id, session in self._selection.sessions.items():
            self._end(node_id, session)
        with self._lock:
            self._buffer.clear()

    def _end(self, node_id: int, session: FetchSession) -> None:
        session_id = session.close()
        if session_id is None:
            return
        try:
            link = self._pool.fetch_link(node_id)
        except KafkaError:  # the broker is gone, and its sessions with it
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
    """Ignore a response that no caller waits for."""
