"""What groups of any kind are made of: members, what they sent, answers that are owed, a budget.

Owns these values. What happens to them is in classic_group.py and epoch_group.py.
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

#: What a member costs beside what it sent; about what Python takes for it.
MEMBER_BYTES = 1024
#: And a group.
GROUP_BYTES = 2048


class JoinCall(NamedTuple):
    """A JoinGroup request, who sent it and how to answer."""

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    reply: Reply

    @property
    def protocols(self) -> List[Tuple[str, bytes]]:
        """What it offers, best first."""
        return [(each.name, bytes(each.metadata)) for each in self.request.protocols]

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long others wait for it; version 0 has one time-out for both."""
        request = self.request
        return request.session_timeout_ms if self.version == 0 else request.rebalance_timeout_ms


class Outbox:
    """Answers that are decided but not sent: sending one may bring in the next request."""

    def __init__(self) -> None:
        self._waiting: Deque[Tuple[Reply, Message]] = deque()

    def put(self, reply: Reply, message: Message) -> None:
        """Keep an answer until flush()."""
        self._waiting.append((reply, message))

    def flush(self) -> None:
        """Send all of them; called when the state is what it shall be."""
        while self._waiting:
            reply, message = self._waiting.popleft()
            reply(message)


class Budget:
    """How many bytes the groups of a cluster may hold together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def has_room(self, size: int) -> bool:
        """Tell whether so many bytes more are allowed."""
        return self.used + size <= self.limit

    def change(self, size: int) -> None:
        """Count bytes that came, or went if negative."""
        self.used += size


class Deadline:
    """A time by which something must have happened, put off again and again.

    Has one timer, set again when it finds a later time: a cancelled one stays where it is until
    its time comes, and members may send many heartbeats.

    Arguments: call: what to do when it is over.
    """

    def __init__(self, timers: Timers, outbox: Outbox, call: Callable[[], None]) -> None:
        self._timers = timers
        self._outbox = outbox
        self._call = call
        self._when = 0.0
        self._timer: Optional[Timer] = None

    def set(self, seconds: float) -> None:
        """Let it be over after so many seconds from now."""
        self._when = self._timers.clock.monotonic() + seconds
        if self._timer is None or not self._timer.waits or self._timer.when > self._when:
            self.cancel()
            self._timer = self._timers.later(seconds, self._check)

    def cancel(self) -> None:
        """Forget it until it is set."""
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
        #: The JoinGroup or SyncGroup that waits for its answer.
        self.joining: Optional[JoinCall] = None
        self.syncing: Optional[Reply] = None
        #: It has never been in a generation.
        self.is_new = True
        self.session: Optional[Deadline] = None

    def __repr__(self) -> str:
        waits = 'joining' if self.joining else 'syncing' if self.syncing else 'idle'
        return '<Member %s instance=%s %s>' % (self.member_id, self.instance_id, waits)

    @property
    def size(self) -> int:
        """The bytes that it stands for."""
        names = 2 * len(self.client_id) + 2 * len(self.instance_id or '')
        return MEMBER_BYTES + names + protocols_size(self.protocols) + len(self.assignment)

    def update(self, call: JoinCall) -> None:
        """Take what a further JoinGroup says."""
        self.session_timeout_ms = call.request.session_timeout_ms
        self.rebalance_timeout_ms = call.rebalance_timeout_ms
        self.protocols = call.protocols
        self.client_id = call.client_id
        self.client_host = call.client_host

    def metadata(self, protocol: Optional[str]) -> bytes:
        """Return what it said for a protocol."""
        return dict(self.protocols).get(protocol or '', b'')

    def vote(self, names: Set[str]) -> str:
        """Return the first of its protocols that is among some."""
        return next(name for name, _ in self.protocols if name in names)


def group_size(group_id: str) -> int:
    """Return the bytes that a group stands for beside its members."""
    return GROUP_BYTES + 2 * len(group_id)


def protocols_size(protocols: List[Tuple[str, bytes]]) -> int:
    """Return the bytes of names and metadata."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


def candidates(members: Iterable[Member]) -> Set[str]:
    """Return the protocols that all members support."""
    sets = [{name for name, _ in each.protocols} for each in members]
    return set.intersection(*sets) if sets else set()


def choice(members: Collection[Member]) -> Optional[str]:
    """Return the protocol with most votes; the first one voted for if several have."""
    common = candidates(members)
    votes: Dict[str, int] = {}
    for member in members if common else ():
        vote = member.vote(common)
        votes[vote] = votes.get(vote, 0) + 1
    return max(votes, key=lambda name: votes[name]) if votes else None


def told(members: Iterable[Member], protocol: Optional[str]) -> List[JoinGroupResponseMember]:
    """Return what the leader is told of members."""
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata(protocol),
        )
        for each in members
    ]


def subscribed_topics(metadata: bytes) -> Optional[Set[str]]:
    """Return the topics in a consumer's metadata, None when it cannot be read."""
    if len(metadata) < 2:
        return None
    (version,) = struct.unpack_from('>h', metadata)
    version = max(0, min(version, ConsumerProtocolSubscription.max_version))
    try:
        return set(ConsumerProtocolSubscription.decode_from(metadata, 2, version).topics)
    except KafkaError:
        return None


def join_refusal(version: int, error: int, member_id: str, generation: int) -> JoinGroupResponse:
    """Return a JoinGroup answer that only tells an error."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=generation,
        protocol_name=None if version >= 7 else '',
        leader='',
        member_id=member_id,
        members=[],
    )
