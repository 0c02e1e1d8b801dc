"""Parts that groups of all types share: members, JoinGroup requests, the outbox, the memory budget.

Used by classic_group.py and epoch_group.py.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import (
    Callable,
    Collection,
    Deque,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from kafka.errors import KafkaError
from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
from kafka.protocol.group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from kafka.protocol.wire import Message
from kafka.testing.timers import Timer, Timers

Reply = Callable[[Message], None]

#: The estimated bytes of a member in Python, without the data that it sent.
MEMBER_BYTES = 1024
#: The estimated bytes of a group without members.
GROUP_BYTES = 2048


class JoinCall(NamedTuple):
    """A JoinGroup request with its sender and the function that answers it."""

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    reply: Reply

    @property
    def protocols(self) -> List[Tuple[str, bytes]]:
        """The protocols in the order of preference, with their metadata."""
        return [(each.name, bytes(each.metadata)) for each in self.request.protocols]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The rebalance time-out; version 0 has only the session time-out, used for both."""
        request = self.request
        return request.session_timeout_ms if self.version == 0 else request.rebalance_timeout_ms


class Outbox:
    """Responses that are not sent yet, since sending one may bring in the next request."""

    def __init__(self) -> None:
        self._waiting: Deque[Tuple[Reply, Message]] = deque()

    def put(self, reply: Reply, message: Message) -> None:
        """Keep a response until flush()."""
        self._waiting.append((reply, message))

    def flush(self) -> None:
        """Send all responses; called when the state of the groups is settled."""
        while self._waiting:
            reply, message = self._waiting.popleft()
            reply(message)


class Budget:
    """The memory that the groups of a cluster may take together, in bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def has_room(self, size: int) -> bool:
        """Return True if ``size`` more bytes are allowed."""
        return self.used + size <= self.limit

    def change(self, size: int) -> None:
        """Add bytes to those in use; a negative size subtracts them."""
        self.used += size


class Deadline:
    """A time-out that is often extended, such as that of a session.

    Uses a single timer, which is set again if it fires before the time-out: a cancelled timer stays
    in the heap until its time comes, and members may send many heartbeats.

    Arguments: call: called when the time is over; the outbox is flushed after it.
    """

    def __init__(self, timers: Timers, outbox: Outbox, call: Callable[[], None]) -> None:
        self._timers = timers
        self._outbox = outbox
        self._call = call
        self._when = 0.0
        self._timer: Optional[Timer] = None

    def set(self, seconds: float) -> None:
        """Set the time-out to ``seconds`` from now."""
        self._when = self._timers.clock.monotonic() + seconds
        if self._timer is None or not self._timer.waits or self._timer.when > self._when:
            self.cancel()
            self._timer = self._timers.later(seconds, self._check)

    def cancel(self) -> None:
        """Stop until set() is called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        left = self._when - self._timers.clock.monotonic()
        if left > 0:
            self._timer = self._timers.later(left, self._check)
        else:
            self._call()
            self._outbox.flush()


class Member:
    """A member of a classic group."""

    def __init__(self, member_id: str, call: JoinCall) -> None:
        self.member_id = member_id
        self.instance_id: Optional[str] = call.request.group_instance_id
        self.client_id = call.client_id
        self.client_host = call.client_host
        self.session_timeout_ms = call.request.session_timeout_ms
        self.rebalance_timeout_ms = call.rebalance_timeout_ms
        self.protocols = call.protocols
        self.assignment = b''
        #: The JoinGroup or SyncGroup that is not answered yet.
        self.joining: Optional[JoinCall] = None
        self.syncing: Optional[Reply] = None
        #: True until the member is in a generation.
        self.is_new = True
        self.session: Optional[Deadline] = None

    def __repr__(self) -> str:
        waits = 'joining' if self.joining else 'syncing' if self.syncing else 'idle'
        return '<Member %s instance=%s %s>' % (self.member_id, self.instance_id, waits)

    @property
    def size(self) -> int:
        """The estimate of the bytes that the member takes."""
        names = 2 * len(self.client_id) + 2 * len(self.instance_id or '')
        return MEMBER_BYTES + names + protocols_size(self.protocols) + len(self.assignment)

    def update(self, call: JoinCall) -> None:
        """Take over the values of a further JoinGroup."""
        self.session_timeout_ms = call.request.session_timeout_ms
        self.rebalance_timeout_ms = call.rebalance_timeout_ms
        self.protocols = call.protocols
        self.client_id = call.client_id
        self.client_host = call.client_host

    def metadata(self, protocol: Optional[str]) -> bytes:
        """Return the member's metadata for a protocol, empty if it does not support it."""
        return dict(self.protocols).get(protocol or '', b'')

    def vote(self, names: Set[str]) -> str:
        """Return the first of the member's protocols that is in ``names``."""
        return next(name for name, _ in self.protocols if name in names)


def group_size(group_id: str) -> int:
    """Return the estimated bytes of a group without its members."""
    return GROUP_BYTES + 2 * len(group_id)


def protocols_size(protocols: List[Tuple[str, bytes]]) -> int:
    """Return the bytes of names and metadata of protocols."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


def candidates(members: Iterable[Member]) -> Set[str]:
    """Return the protocols that all members support."""
    sets = [{name for name, _ in each.protocols} for each in members]
    return set.intersection(*sets) if sets else set()


def choice(members: Collection[Member]) -> Optional[str]:
    """Return the protocol with most votes; if several have as many, the first one voted for."""
    common = candidates(members)
    votes: Dict[str, int] = {}
    for member in members if common else ():
        vote = member.vote(common)
        votes[vote] = votes.get(vote, 0) + 1
    return max(votes, key=lambda name: votes[name]) if votes else None


def told(members: Iterable[Member], protocol: Optional[str]) -> List[JoinGroupResponseMember]:
    """Return the member list of the JoinGroup response to the leader."""
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata(protocol),
        )
        for each in members
    ]


def subscribed_topics(metadata: bytes) -> Optional[Set[str]]:
    """Return the topics in a consumer's metadata, None if it cannot be decoded."""
    if len(metadata) < 2:
        return None
    (version,) = struct.unpack_from('>h', metadata)
    version = max(0, min(version, ConsumerProtocolSubscription.max_version))
    try:
        return set(ConsumerProtocolSubscription.decode_from(metadata, 2, version).topics)
    except KafkaError:
        return None


def join_refusal(version: int, error: int, member_id: str, generation: int) -> JoinGroupResponse:
    """Return a JoinGroup response with an error code."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=generation,
        protocol_name=None if version >= 7 else '',
        leader='',
        member_id=member_id,
        members=[],
    )
