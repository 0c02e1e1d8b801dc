"""Metadata refresh of one cluster: when a Metadata request is sent, and for which topics.

Created by the Pool, which sends the requests; used only by the thread that runs the loop. A new
topic is requested at once and alone; the cached metadata of other topics is kept (KIP-526).
"""

from __future__ import annotations

import logging
import random
from typing import Any, Callable, Coroutine, Dict, Iterable, List, Optional

from kafka.cluster import ClusterMetadata
from kafka.errors import (
    IllegalStateError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)
from kafka.internals.error_copies import unraised_copy
from kafka.net.backoff import backoff_seconds
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.tasks import Event, Task, Waiter
from kafka.net.settings import NetSettings
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic

__all__ = ['MetadataUpdater', 'metadata_request']

log = logging.getLogger(__name__)

#: From this version on Metadata has the flag allow_auto_topic_creation.
CAN_SPARE_FROM = 4
#: Errors of a topic that are not retriable.
_FATAL = (TopicAuthorizationFailedError, InvalidTopicError)

Fetch = Callable[[Optional[List[str]]], Coroutine[Any, Any, Any]]


def metadata_request(
    topics: Optional[Iterable[str]], version: int, creates: bool
) -> MetadataRequest:
    """Return a Metadata request for some topics, None for all, in the layout of a version.

    Arguments: creates: whether brokers may create a requested topic. Below version 4 they always
    may, so the request is for all topics if this is False.
    """
    if topics is not None and not creates and version < CAN_SPARE_FROM:
        topics = None
    if topics is None:
        return MetadataRequest(topics=[] if version == 0 else None)
    asked = [MetadataRequestTopic(name=name) for name in topics]
    if version < CAN_SPARE_FROM:
        return MetadataRequest(topics=asked)
    return MetadataRequest(topics=asked, allow_auto_topic_creation=creates)


class MetadataUpdater:
    """Refreshes the metadata of the topics of interest, on demand and when it is too old.

    Arguments: loop; settings; cluster; fetch: a coroutine function that requests the given topics,
    None for all, and updates the cluster with the response; chance: random numbers for the jitter.

    Attributes: wants_all: whether all topics are of interest.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: NetSettings,
        cluster: ClusterMetadata,
        fetch: Fetch,
        chance: random.Random,
    ) -> None:
        self.wants_all = False
        self._loop = loop
        self._settings = settings
        self._cluster = cluster
        self._fetch = fetch
        self._chance = chance
        self._wanted: Dict[str, None] = {}  # the topics of interest, in the order of their addition
        self._asked = Event()
        self._unknown: Dict[str, None] = {}  # those of them to request next
        self._is_whole = False  # whether to request all of them next
        self._is_new = False  # whether one was never requested before: then there is no backoff
        self._waiters: List[Waiter[None]] = []
        self._task: Optional[Task[None]] = None
        self._asked_at = -1e9  # when the last refresh ended
        self._whole_at = -1e9  # when the last refresh of all topics of interest began
        self._dull = 0  # consecutive refreshes that failed or brought no news
        self._failure: Optional[KafkaError] = None  # of the last refresh

    def __repr__(self) -> str:
        return '<MetadataUpdater topics=%s dull=%d>' % (
            'all' if self.wants_all else len(self._wanted),
            self._dull,
        )

    # ------------------------------------------------------------ what is of interest

    def topics(self) -> Optional[List[str]]:
        """Return the topics of interest, None for all."""
        return None if self.wants_all else list(self._wanted)

    def want(self, topic: str) -> None:
        """Add a topic of interest; request it soon if its partitions are unknown."""
        if topic not in self._wanted:
            self._wanted[topic] = None
            if self._cluster.partitions_for_topic(topic) is None:
                self._ask_about(topic, True)

    def need(self, topic: str) -> None:
        """Add a topic of interest, and let brokers create it again if it was deleted."""
        self._allow_creation(topic)
        self.want(topic)

    def _allow_creation(self, topic: str) -> None:
        self._cluster.deleted_topics = self._cluster.deleted_topics - {topic}

    def want_still(self, topic: str) -> None:
        """Request a topic of interest again, after the backoff since the last refresh."""
        if topic in self._wanted:
            self._ask_about(topic, False)

    def forget(self, topic: str) -> None:
        """Remove a topic of interest; the next full refresh removes its metadata."""
        self._wanted.pop(topic, None)
        self._unknown.pop(topic, None)

    def _ask_about(self, topic: str, is_new: bool) -> None:
        self._unknown[topic] = None
        self._is_new = self._is_new or is_new
        self._asked.set()

    # ------------------------------------------------------------ waiting

    def refresh(self) -> None:
        """Request all topics of interest: at once, or after the backoff."""
        self._is_whole = True
        self._asked.set()

    async def refreshed(self) -> None:
        """Refresh, and return when a response was received.

        Raises errors that are not retriable, such as wrong credentials.
        """
        self.refresh()
        await self._answered()

    async def _answered(self) -> None:
        if self._task is None or self._task.done:
            raise IllegalStateError('bootstrap() was not called, or the client is closed')
        waiter: Waiter[None] = Waiter()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def topic(self, name: str, timeout: float) -> None:
        """Add a topic of interest, and return when its partitions are known.

        Raises TopicAuthorizationFailedError and InvalidTopicError as soon as a broker responds with
        one of them, in each call; KafkaTimeoutError, which names the last error, after `timeout`
        seconds.
        """
        is_new = name not in self._wanted
        self._wanted[name] = None
        self._allow_creation(name)
        if self._cluster.partitions_for_topic(name):
            return
        try:
            await self._loop.within(timeout, self._known(name, is_new))
        except KafkaTimeoutError as error:
            last = self._cluster.topic_errors.get(name)
            said = '' if last is None else '; brokers say %s' % last.__name__
            if self._failure is not None:
                said += '; the last refresh of metadata failed: %s' % self._failure
            raise KafkaTimeoutError(
                'nothing was learned of topic %s within %.3g seconds%s' % (name, timeout, said)
            ) from (self._failure or error)

    async def _known(self, name: str, is_new: bool) -> None:
        while not self._cluster.partitions_for_topic(name):
            self._ask_about(name, is_new)
            is_new = False
            await self._answered()
            error = self._cluster.topic_errors.get(name)
            if error is not None and issubclass(error, _FATAL):
                raise error(name)

    # ------------------------------------------------------------ the refreshing

    def begin(self) -> None:
        """Start the task that refreshes."""
        if self._task is None:
            self._asked_at = self._whole_at = self._loop.time()
            self._task = self._loop.spawn(self._keep_up())

    def close(self) -> None:
        """Stop refreshing; waiting callers get IllegalStateError."""
        if self._task is not None:
            self._task.cancel()
        self._tell(IllegalStateError('the client is closed'))

    async def _keep_up(self) -> None:
        while True:
            await self._until_due()
            self._asked.clear()
            waiters = list(self._waiters)  # later ones may need topics that this request lacks
            try:
                update = await self._fetch(self._due())
            except KafkaError as error:
                self._on_failed(error, waiters)
            except Exception as error:
                # A bug must not end the task: metadata would never be refreshed again.
                log.exception('a refresh of metadata failed')
                self._on_failed(KafkaConnectionError('it failed: %r' % error), waiters)
            else:
                self._dull = 0 if update.is_news else self._dull + 1
                self._failure = None
                for waiter in waiters:
                    waiter.wake()
            self._asked_at = self._loop.time()
            self._waiters = [waiter for waiter in self._waiters if not waiter.done]
            if self._waiters:
                self._asked.set()

    def _due(self) -> Optional[List[str]]:
        """Return the topics to request now, None for all topics of the cluster."""
        now = self._loop.time()
        is_whole = self._is_whole or self._cluster.update_requested or not self._unknown
        unknown, self._unknown = self._unknown, {}
        self._is_whole = self._is_new = False
        if not is_whole and now < self._whole_at + self._settings.metadata_max_age:
            return None if self.wants_all else list(unknown)
        self._whole_at = now
        return self.topics()

    def _on_failed(self, error: KafkaError, waiters: List[Waiter[None]]) -> None:
        self._dull += 1
        self._failure = error
        if self._dull & (self._dull - 1) == 0:  # the 1st, 2nd, 4th ... consecutive one
            log.warning('metadata could not be refreshed: %s', error)
        self._cluster.failed_update(error)
        if not error.retriable:
            for waiter in waiters:
                waiter.fail(unraised_copy(error))
        self.refresh()

    async def _until_due(self) -> None:
        """Wait until a refresh is needed and the backoff is over, or the metadata is too old."""
        if not self._asked.is_set and not self._cluster.update_requested:
            old_at = self._whole_at + self._settings.metadata_max_age
            timer = self._loop.call_later(old_at - self._loop.time(), self._asked.set)
            try:
                await self._asked.wait()
            finally:
                timer.cancel()
        wait = self._asked_at + self._backoff() - self._loop.time()
        if wait > 0 and (self._failure is not None or not self._is_new):
            await self._loop.sleep(wait)

    def _backoff(self) -> float:
        settings = self._settings
        longest = max(settings.retry_backoff, settings.retry_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(settings.retry_backoff, longest, self._dull + 1, part)

    def _tell(self, error: KafkaError) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.fail(unraised_copy(error))
