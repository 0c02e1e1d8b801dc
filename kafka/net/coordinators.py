"""Lookup of the coordinator of a group or a transactional id (FindCoordinator).

Used by the Pool, in the thread that runs the loop. Concurrent callers that need the same key share
one lookup. Results are cached in ClusterMetadata; a caller that finds a result outdated calls
Pool.forget_coordinator().
"""

from __future__ import annotations

import random
from typing import Any, Dict, List, Tuple

from kafka.errors import AuthorizationError, KafkaError, for_code
from kafka.net.backoff import backoff_seconds
from kafka.net.broker_connections import BrokerConnections
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.tasks import Task
from kafka.net.node_connection import session_of
from kafka.net.settings import NetSettings
from kafka.protocol.find_coordinator import FindCoordinatorRequest

__all__ = ['Coordinators']

#: From this version on the request has a list of keys (KIP-699).
SEVERAL_FROM = 4

_Key = Tuple[int, str]


class Coordinators:
    """Finds coordinators for one pool.

    Arguments: loop; connections: to the brokers; settings; chance: random numbers for the jitter.
    """

    def __init__(
        self,
        loop: EventLoop,
        connections: BrokerConnections,
        settings: NetSettings,
        chance: random.Random,
    ) -> None:
        self._loop = loop
        self._connections = connections
        self._settings = settings
        self._chance = chance
        self._under_way: Dict[_Key, Task[int]] = {}

    def __repr__(self) -> str:
        return '<Coordinators looking_up=%d>' % len(self._under_way)

    async def find(self, key_type: int, key: str) -> int:
        """Return the node id of the coordinator of a key; see Pool.coordinator()."""
        known = self._connections.cluster.coordinator(key_type, key)
        if known is not None:
            return int(known)
        task = self._under_way.get((key_type, key))
        if task is None:
            task = self._loop.spawn(self._look_up(key_type, key))
            self._under_way[key_type, key] = task
            task.add_done_callback(lambda task: self._under_way.pop((key_type, key), None))
        return await task

    async def _look_up(self, key_type: int, key: str) -> int:
        failures = 0
        deadline = self._loop.time() + self._settings.request_timeout
        while True:
            try:
                return await self._ask(key_type, key)
            except KafkaError as error:
                if not error.retriable or self._loop.time() >= deadline:
                    raise
            failures += 1
            settings = self._settings
            part = self._chance.uniform(0.8, 1.2)
            longest = max(settings.retry_backoff, settings.retry_backoff_max)
            await self._loop.sleep(backoff_seconds(settings.retry_backoff, longest, failures, part))

    async def _ask(self, key_type: int, key: str) -> int:
        link = await self._connections.any_ready()
        version = session_of(link).choose_version(FindCoordinatorRequest())
        if version >= SEVERAL_FROM:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        else:
            request = FindCoordinatorRequest(key=key, key_type=key_type)
        response = await link.request(request, version=version)
        answer = _answer_for(response, key) if version >= SEVERAL_FROM else response
        if answer.error_code:
            kind = for_code(answer.error_code)
            advice = ': this user may not use it' if issubclass(kind, AuthorizationError) else ''
            raise kind('the coordinator of %s%s' % (key, advice))
        cluster = self._connections.cluster
        known = cluster.broker_metadata(answer.node_id)
        if known is None or (known.host, known.port) != (answer.host, answer.port):
            cluster.add_broker(answer.node_id, answer.host, answer.port)
        cluster.set_coordinator(key_type, key, answer.node_id)
        node_id: int = answer.node_id
        return node_id


def _answer_for(response: Any, key: str) -> Any:
    answers: List[Any] = [each for each in response.coordinators if each.key == key]
    if not answers:
        raise KafkaError('a broker was asked for the coordinator of %s and named others' % key)
    return answers[0]
