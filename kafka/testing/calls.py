"""One request on its way through an embedded broker.

Owns: the registry of what answers which API, and ``Call``, in which a handler finds the request and
by which it answers, now or later. Does not own connections (connection.py) or what any API does
(handlers/).
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

#: Answers a call: by what it returns, or later by ``call.respond()`` if that is None.
Handler = Callable[['Call[Any]'], Optional[Message]]

#: Gets a response and returns what is sent instead.
Change = Callable[[Message], Message]

#: Gets the bytes of an answer (none for one that is not sent), the connection that they are for and
#: what to call with the bytes that go on their way, now or later.
Delivery = Callable[[bytes, 'Connection', Callable[[bytes], None]], None]

ANONYMOUS = 'User:ANONYMOUS'
LOCAL_HOST = '127.0.0.1'

HANDLERS: Dict[int, Handler] = {}


def handles(request: Type[Message]) -> Callable[[Handler], Handler]:
    """Decorate the function that answers an API."""

    def register(handler: Handler) -> Handler:
        assert request.api_key is not None
        HANDLERS[request.api_key] = handler
        return handler

    return register


class ClientSoftware:
    """What a client said of itself when it asked for versions (KIP-511)."""

    def __init__(self) -> None:
        self.name = 'unknown'
        self.version = 'unknown'


class Call(Generic[R]):
    """A request that waits for its answer.

    Attributes: broker: who was asked; state: what all brokers know; header: of the request;
    request: the message; connection_id: tells connections apart; principal: who asks.
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
        self.size_bytes = 0  # of the frame; of several if they came together
        self._answer: Optional[Callable[[Optional[Message]], None]] = answer
        self._when_dropped: List[Callable[[], None]] = []
        #: What becomes of the response before it is written, in this order; see faults.py.
        self.changes: List[Change] = []
        #: And of its bytes on their way to the client, in this order.
        self.deliveries: List[Delivery] = []

    def __repr__(self) -> str:
        return '<Call %s v%d to node %d>' % (
            type(self.request).__name__,
            self.header.api_version,
            self.broker.node_id,
        )

    @property
    def state(self) -> ClusterState:
        """What all brokers of the cluster know."""
        return self.broker.state

    @property
    def version(self) -> int:
        """The version in which the request came."""
        return self.header.api_version

    @property
    def is_waiting(self) -> bool:
        """Whether nobody has answered yet."""
        return self._answer is not None

    def may(self, operation: int, resource_type: int, name: str) -> bool:
        """Tell whether who asks is allowed something; see acls.py for the numbers."""
        authorizer = self.broker.state.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.principal, self.host, operation, resource_type, name)

    def respond(self, response: Optional[Message]) -> None:
        """Answer; None for a request that gets no answer (acks=0).

        Raises IllegalStateError for a second answer.
        """
        if self._answer is None:
            raise IllegalStateError('%r was answered already' % (self,))
        answer, self._answer = self._answer, None
        self._when_dropped.clear()  # they hold the call, and only the collector would find that
        if response is not None:
            for change in self.changes:
                response = change(response)
        answer(response)

    def close_connection(self) -> None:
        """Close the connection instead of answering."""
        self.drop()
        self.broker.close_connection(self.connection_id)

    def drop(self) -> None:
        """Note that there is nobody to answer to any longer."""
        self._answer = None
        callbacks, self._when_dropped = self._when_dropped, []
        for callback in callbacks:
            callback()

    def when_dropped(self, callback: Callable[[], None]) -> None:
        """Call something if the connection ends before this is answered."""
        self._when_dropped.append(callback)

    def wait(
        self,
        seconds: float,
        keys: Iterable[Any],
        attempt: Callable[[bool], Optional[Message]],
    ) -> Optional[Message]:
        """Answer as soon as ``attempt`` has something to say, or when time is over.

        Arguments: seconds: how long at most; keys: when one of them is touched by
            ``broker.waiting.touch(key)``, it is attempted again; attempt: gets whether it is the
            last time, when it must return the answer, and otherwise may return None.
        Returns: what the first attempt said, for a handler to return.
        """
        first = attempt(seconds <= 0)
        if first is not None or seconds <= 0:
            return first
        self.broker.waiting.add(self, seconds, keys, attempt)
        return None
