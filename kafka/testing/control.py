"""The hooks for tests between a request and its handler in an embedded cluster.

The log of requests, functions of tests that respond instead of a broker, and the failures inside
the brokers. Faults are in faults.py; tests use all of it through :class:`kafka.testing.Cluster`.
"""

from __future__ import annotations

import enum
import logging
import random
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    List,
    NamedTuple,
    Optional,
    Union,
)

from kafka.protocol.api import ApiKey
from kafka.protocol.wire import Message, Struct
from kafka.testing.faults import Faults, api_key
from kafka.testing.security.secrets import without_secrets

if TYPE_CHECKING:
    from kafka.testing.calls import Call

log = logging.getLogger(__name__)

#: The limits of the log of requests, in number and in memory; the oldest are removed.
MAX_REQUESTS = 10000
MAX_REQUEST_BYTES = 64 * 1024 * 1024
#: An item of a list may have two bytes on the wire, and 80 bytes as an object.
HELD_BYTES_PER_BYTE = 40
#: Up to this size the maximum is assumed.
SMALL_BYTES = 256
MAX_FAILURES = 100


class _Later(enum.Enum):
    LATER = 'later'


#: The result of a function given to ``Cluster.control`` that calls ``call.respond()`` later.
LATER = _Later.LATER
#: Responds to a call, now or later; None leaves it to the broker.
ControlHandler = Callable[['Call[Any]'], Union[Message, _Later, None]]


class Received(NamedTuple):
    """A request that a broker received. ``at`` is in seconds of the cluster's clock."""

    at: float
    node: int
    connection: int
    api: ApiKey
    version: int
    client_id: Optional[str]
    request: Message


def held_bytes(request: Message, size_bytes: int) -> int:
    """Return the approximate memory of a request whose frame had this size."""
    if size_bytes <= SMALL_BYTES:
        return HELD_BYTES_PER_BYTE * size_bytes
    return size_bytes + _object_bytes(request)


def _object_bytes(value: Any) -> int:
    if isinstance(value, Struct):
        fields = type(value).fields
        return 60 + sum(8 + _object_bytes(getattr(value, field.name)) for field in fields)
    if isinstance(value, list):
        return 60 + sum(8 + _object_bytes(each) for each in value)
    return 30  # a number; a text beyond its bytes


class RequestLog:
    """The last requests, limited in number and in bytes.

    Arguments: max_requests, max_bytes: the limits.
    """

    def __init__(
        self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_REQUEST_BYTES
    ) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._entries: Deque[Received] = deque()
        self._sizes: Deque[int] = deque()
        self._bytes = 0

    def __repr__(self) -> str:
        return '<RequestLog of %d requests, %d bytes>' % (len(self._entries), self._bytes)

    def add(self, entry: Received, size_bytes: int) -> None:
        """Add a request; the oldest are removed if necessary."""
        self._entries.append(entry)
        self._sizes.append(size_bytes)
        self._bytes += size_bytes
        while len(self._entries) > self._max_requests or self._bytes > self._max_bytes:
            self._entries.popleft()
            self._bytes -= self._sizes.popleft()

    def entries(self) -> List[Received]:
        """Return the requests, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Remove all requests."""
        self._entries.clear()
        self._sizes.clear()
        self._bytes = 0


class Control:
    """The interface of tests to a running cluster.

    Arguments: chance: the random numbers of faults.
    Attributes: requests: the log; faults: the injected faults; failures: exceptions of handlers.
    """

    def __init__(self, chance: random.Random) -> None:
        self.requests = RequestLog()
        self.faults = Faults(chance)
        self.failures: Deque[Exception] = deque(maxlen=MAX_FAILURES)
        self._handlers: Dict[int, ControlHandler] = {}

    def __repr__(self) -> str:
        return '<Control %r, %r, %d handlers, %d failures>' % (
            self.requests,
            self.faults,
            len(self._handlers),
            len(self.failures),
        )

    def set_handler(self, api: Any, handler: Optional[ControlHandler]) -> None:
        """Let a function respond to an API, or the brokers again; see ``Cluster.control``."""
        key = api_key(api)
        if handler is None:
            self._handlers.pop(key, None)
        elif callable(handler):
            self._handlers[key] = handler
        else:
            raise TypeError('handler must be a function or None, not %r' % (handler,))

    def meet(self, call: Call[Any]) -> bool:
        """Process a request before its broker. Returns whether the broker has to respond."""
        header = call.header
        self.requests.add(
            Received(
                call.state.timers.clock.monotonic(),
                call.broker.node_id,
                call.connection_id,
                ApiKey(header.api_key),
                header.api_version,
                header.client_id,
                without_secrets(call.request),
            ),
            held_bytes(call.request, call.size_bytes),
        )
        self.faults.meet(call)
        handler = self._handlers.get(header.api_key)
        if handler is not None and call.is_waiting:
            response = handler(call)
            if isinstance(response, Message):
                call.respond(response)
            elif response is not None and response is not LATER:
                raise TypeError('%r answered %r with %r' % (handler, call, response))
            return response is not LATER and call.is_waiting
        return call.is_waiting

    def note_failure(self, what: str, error: Exception) -> None:
        """Store an exception of a handler, for the end of the cluster, and log it."""
        self.failures.append(error)
        log.error('%s failed', what, exc_info=error)
