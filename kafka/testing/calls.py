"""One request in an embedded broker.

The registry of the handlers of APIs, and ``Call``, which gives a handler the request and takes the
response, now or later. Connections are in connection.py, the APIs in handlers/.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Type,
    TypeVar,
)

from kafka.errors import IllegalStateError
from kafka.protocol.api import RequestHeader
from kafka.protocol.wire import Message

if TYPE_CHECKING:
    from kafka.testing.broker import Broker
    from kafka.testing.connection import Connection
    from kafka.testing.security.sasl.login import Login
    from kafka.testing.state import ClusterState

R = TypeVar('R', bound=Message)

#: Handles a call: returns the response, or None to call ``call.respond()`` later.
Handler = Callable[['Call[Any]'], Optional[Message]]

#: Called with a response; returns the response to send instead.
Change = Callable[[Message], Message]

#: Called with the bytes of a response (none for one that is not sent), their connection, and the
#: function to call with the bytes to send, now or later.
Delivery = Callable[[bytes, 'Connection', Callable[[bytes], None]], None]

ANONYMOUS = 'User:ANONYMOUS'
LOCAL_HOST = '127.0.0.1'

HANDLERS: Dict[int, Handler] = {}


def handles(request: Type[Message]) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of an API."""

    def register(handler: Handler) -> Handler:
        assert request.api_key is not None
        HANDLERS[request.api_key] = handler
        return handler

    return register


class ClientSoftware:
    """The name and version that a client gave in ApiVersions (KIP-511)."""

    def __init__(self) -> None:
        self.name = 'unknown'
        self.version = 'unknown'


class Call(Generic[R]):
    """A request that waits for its response.

    Attributes: broker: the receiver; state: of the cluster; header: of the request;
    request: the message; connection_id: the connection; principal: the client's.
    """

    def __init__(
        self,
        broker: Broker,
        header: RequestHeader,
        request: R,
        connection_id: int,
        principal: str,
        answer: Callable[[Optional[Message]], None],
    ) -> None:
        self.broker = broker
        self.header = header
        self.request = request
        self.connection_id = connection_id
        self.principal = principal
        self.login: Optional[Login] = None  # of the connection; None without SASL
        self.host = LOCAL_HOST  # the client's address
        self.software = ClientSoftware()  # of the connection
        self.size_bytes = 0  # of the frame; of several if they arrived together
        self._answer: Optional[Callable[[Optional[Message]], None]] = answer
        self._when_dropped: List[Callable[[], None]] = []
        #: The changes of the response before it is encoded, in order; see faults.py.
        self.changes: List[Change] = []
        #: The changes of the delivery of its bytes, in order.
        self.deliveries: List[Delivery] = []

    def __repr__(self) -> str:
        return '<Call %s v%d to node %d>' % (
            type(self.request).__name__,
            self.header.api_version,
            self.broker.node_id,
        )

    @property
    def state(self) -> ClusterState:
        """The state that all brokers of the cluster share."""
        return self.broker.state

    @property
    def version(self) -> int:
        """The version of the request."""
        return self.header.api_version

    @property
    def is_waiting(self) -> bool:
        """Whether there is no response yet."""
        return self._answer is not None

    def may(self, operation: int, resource_type: int, name: str) -> bool:
        """Return True if the client has a permission; see acls.py for the numbers."""
        authorizer = self.broker.state.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.principal, self.host, operation, resource_type, name)

    def respond(self, response: Optional[Message]) -> None:
        """Respond; None for a request without response (acks=0).

        Raises IllegalStateError for a second response.
        """
        if self._answer is None:
            raise IllegalStateError('%r was answered already' % (self,))
        answer, self._answer = self._answer, None
        self._when_dropped.clear()  # they refer to the call, which would be a reference cycle
        if response is not None:
            for change in self.changes:
                response = change(response)
        answer(response)

    def close_connection(self) -> None:
        """Close the connection instead of responding."""
        self.drop()
        self.broker.close_connection(self.connection_id)

    def drop(self) -> None:
        """Note that the connection has ended, so that no response is possible."""
        self._answer = None
        callbacks, self._when_dropped = self._when_dropped, []
        for callback in callbacks:
            callback()

    def when_dropped(self, callback: Callable[[], None]) -> None:
        """Call a function if the connection ends before there is a response."""
        self._when_dropped.append(callback)

    def wait(
        self,
        seconds: float,
        keys: Iterable[Any],
        attempt: Callable[[bool], Optional[Message]],
    ) -> Optional[Message]:
        """Respond as soon as ``attempt`` returns a response, or when the time is over.

        Arguments: seconds: the maximum; keys: when one of them is touched by
            ``broker.waiting.touch(key)``, it is attempted again; attempt: is called with True the
            last time, when it must return the response, otherwise it may return None.
        Returns: the result of the first attempt, for a handler to return.
        """
        first = attempt(seconds <= 0)
        if first is not None or seconds <= 0:
            return first
        self.broker.waiting.add(self, seconds, keys, attempt)
        return None
