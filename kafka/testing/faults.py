"""Fault injection in an embedded cluster: which requests fail, and how.

The actions (an error, a delay, a lost or damaged response) and the rules for taking them,
explicitly or by seeded probability. The places of error codes in responses are in error_answers.py.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Sequence, Union

from kafka.protocol.api import ApiKey
from kafka.protocol.session import CLIENT_THROTTLES_FROM, LAST_API_OF_1_1
from kafka.protocol.wire import Message
from kafka.testing.error_answers import error_answer, with_error

if TYPE_CHECKING:
    from kafka.testing.calls import Call
    from kafka.testing.connection import Connection

Write = Callable[[bytes], None]

LENGTH_BYTES = 4
#: Length and correlation id, which stay intact: clients would detect a wrong one immediately.
INTACT_BYTES = 8
SLOW_STEP_SECONDS = 0.05
MAX_INT32 = 2**31 - 1
MAX_SECONDS = 1e9


def api_key(api: Any) -> ApiKey:
    """Return the key of an API: a number, a name (``'Produce'``, ``'list_offsets'``), a request.

    Raises ValueError for anything else.
    """
    key = getattr(api, 'api_key', api)
    if isinstance(key, str):
        wanted = key.replace('_', '').lower()
        for each in ApiKey:
            if each.name.replace('_', '').lower() == wanted:
                return each
    elif isinstance(key, int):
        if key in ApiKey.__members__.values():
            return ApiKey(key)
    raise ValueError('unknown API: %r' % (api,))


def check_action(action: Any) -> None:
    """Raise TypeError for an object that is not an action, ValueError for an invalid one."""
    if not callable(getattr(action, 'apply', None)) or isinstance(action, type):
        raise TypeError('action must be one such as Error(6), not %r' % (action,))
    check = getattr(action, 'check', None)
    if check is not None:
        check()


def _check_between(name: str, value: Any, least: float, most: float) -> None:
    if not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValueError('%s must be a number from %s to %s, not %r' % (name, least, most, value))


def _check_code(code: Any) -> None:
    if not isinstance(code, int) or not -(2**15) <= code < 2**15:
        raise ValueError('code must be an int16, not %r' % (code,))


# ---------------------------------------------------------------- actions


class Error(NamedTuple):
    """Respond with an error and do nothing else; the code is in its usual places."""

    code: int

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_code(self.code)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Respond."""
        response = error_answer(call, self.code)
        if response is None:
            call.close_connection()  # without a response this is the only way to report an error
        else:
            call.respond(response)


class ErrorAfterApplying(NamedTuple):
    """Apply the request and respond with an error nevertheless, in all places for errors."""

    code: int

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_code(self.code)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Change the response."""
        call.changes.append(lambda response: with_error(response, self.code))


class Delay(NamedTuple):
    """Apply the request immediately and delay the response."""

    seconds: float

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('seconds', self.seconds, 0, MAX_SECONDS)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Delay the response."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            call.state.timers.later(self.seconds, lambda: write(data))

        call.deliveries.append(deliver)


class DropRequest(NamedTuple):
    """Close the connection without applying the request."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Close."""
        call.close_connection()


class DropResponse(NamedTuple):
    """Apply the request and close the connection without responding."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Close the connection instead of sending the response."""
        call.deliveries.append(lambda data, connection, write: connection.close())


class Hang(NamedTuple):
    """Do not apply the request and never respond; the connection stays open."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Drop the call."""
        call.drop()


class Cut(NamedTuple):
    """Close the connection in the middle of the response.

    ``sent_bytes`` is the number of bytes of the frame to send, -1 for half of it; never all.
    """

    sent_bytes: int = -1

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('sent_bytes', self.sent_bytes, -1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Cut the frame."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            wanted = len(data) // 2 if self.sent_bytes < 0 else self.sent_bytes
            connection.send(data[: min(wanted, len(data) - 1)] if data else b'')
            connection.close()

        call.deliveries.append(deliver)


class Truncate(NamedTuple):
    """Respond with a frame without the end of the response, but with a matching length."""

    missing_bytes: int = 1

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('missing_bytes', self.missing_bytes, 1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Shorten the frame."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            body = data[LENGTH_BYTES : max(INTACT_BYTES, len(data) - self.missing_bytes)]
            write(len(body).to_bytes(LENGTH_BYTES, 'big') + body if data else data)

        call.deliveries.append(deliver)


class Corrupt(NamedTuple):
    """Change some bytes of the response, after length and correlation id."""

    damaged_bytes: int = 1

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('damaged_bytes', self.damaged_bytes, 1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Change random bytes."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            damaged = bytearray(data)
            places = range(INTACT_BYTES, len(data))
            for place in chance.sample(places, min(self.damaged_bytes, len(places))):
                damaged[place] ^= chance.randrange(1, 256)
            write(bytes(damaged))

        call.deliveries.append(deliver)


class Slow(NamedTuple):
    """Send the response slowly."""

    bytes_per_second: float

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('bytes_per_second', self.bytes_per_second, 1e-6, 1e12)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Send a piece, and the rest later."""
        step = max(1, int(self.bytes_per_second * SLOW_STEP_SECONDS))
        pause = step / self.bytes_per_second

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            if len(data) <= step:
                write(data)
                return
            connection.send(data[:step])
            if not connection.is_closed:
                rest = data[step:]
                call.state.timers.later(pause, lambda: deliver(rest, connection, write))

        call.deliveries.append(deliver)


class Throttle(NamedTuple):
    """Apply the request and respond that the client is over its quota.

    As brokers do it: the response is delayed, or, from the versions of 2.0 on, sent immediately and
    nothing more is read from the connection until the time is over (KIP-219).
    """

    milliseconds: int

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        _check_between('milliseconds', self.milliseconds, 0, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Set the throttle time in the response, and wait for it."""
        key = call.header.api_key
        since = CLIENT_THROTTLES_FROM.get(key, 1 if key <= LAST_API_OF_1_1 else 0)

        def change(response: Message) -> Message:
            if any(field.name == 'throttle_time_ms' for field in type(response).fields):
                response.throttle_time_ms = self.milliseconds  # type: ignore[attr-defined]
            return response

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            rest = data
            if call.version >= since:
                connection.send(data)
                rest = b''
            call.state.timers.later(self.milliseconds / 1000.0, lambda: write(rest))

        call.changes.append(change)
        call.deliveries.append(deliver)


class OneOf(NamedTuple):
    """One of several actions, chosen at random."""

    actions: Sequence[Any]

    def check(self) -> None:
        """Raise ValueError for invalid arguments."""
        if not self.actions:
            raise ValueError('actions must not be empty')
        for each in self.actions:
            check_action(each)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Choose an action and apply it."""
        chance.choice(self.actions).apply(call, chance)


Action = Union[
    Error,
    ErrorAfterApplying,
    Delay,
    DropRequest,
    DropResponse,
    Hang,
    Cut,
    Truncate,
    Corrupt,
    Slow,
    Throttle,
    OneOf,
]


# ---------------------------------------------------------------- rules


class Fault:
    """A rule for taking an action; a context manager that removes it at its end.

    Attributes: hits: how often the action was taken.
    """

    def __init__(
        self,
        faults: Faults,
        action: Action,
        api: Optional[ApiKey],
        node: Optional[int],
        times: Optional[int],
        probability: float,
        skip: int,
        where: Optional[Callable[[Call[Any]], Any]],
    ) -> None:
        self.action = action
        self.hits = 0
        self._faults = faults
        self._api = api
        self._node = node
        self._times = times
        self._probability = probability
        self._skip = skip
        self._where = where

    def __repr__(self) -> str:
        return '<Fault %r of %s, %d hits>' % (
            self.action,
            'any API' if self._api is None else self._api.name,
            self.hits,
        )

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the rule."""
        self._faults.remove(self)

    def meets(self, call: Call[Any], chance: random.Random) -> bool:
        """Return True if a request is hit, and count it."""
        if self._api not in (None, call.header.api_key):
            return False
        if self._node not in (None, call.broker.node_id):
            return False
        if self._times is not None and self.hits >= self._times:
            return False
        if self._where is not None and not self._where(call):
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        # A random number is only drawn if it decides, so that other rules do not shift the
        # sequence.
        if self._probability < 1.0 and chance.random() >= self._probability:
            return False
        self.hits += 1
        return True


class Faults:
    """All faults of a cluster.

    Arguments: chance: random numbers, used in the order in which requests arrive.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._rules: List[Fault] = []

    def __repr__(self) -> str:
        return '<Faults %r>' % (self._rules,)

    def add(
        self,
        action: Action,
        api: Any = None,
        *,
        node: Optional[int] = None,
        times: Optional[int] = 1,
        probability: float = 1.0,
        skip: int = 0,
        where: Optional[Callable[[Call[Any]], Any]] = None,
    ) -> Fault:
        """Add a fault.

        Arguments: action: such as ``Error(6)``; api: the requests, by name, number or class,
            None for all; node: the broker, None for all; times: how often, None for no limit;
            probability: of each request that matches; skip: the number of matching requests to let
            through first; where: a function of the call that returns True if it matches.
        Returns: the rule, with ``hits`` and ``remove()``; several rules may hit one request.
        Raises: TypeError, ValueError for invalid arguments.
        """
        check_action(action)
        if not 0.0 <= probability <= 1.0:
            raise ValueError('probability must be between 0 and 1, not %r' % (probability,))
        key = None if api is None else api_key(api)
        rule = Fault(self, action, key, node, times, probability, skip, where)
        self._rules = [*self._rules, rule]
        return rule

    def schedule(
        self,
        actions: Sequence[Action],
        probability: float,
        api: Any = None,
        *,
        node: Optional[int] = None,
    ) -> Fault:
        """Add a permanent fault with a probability and one of several actions; as add()."""
        return self.add(OneOf(tuple(actions)), api, node=node, times=None, probability=probability)

    def remove(self, rule: Fault) -> None:
        """Remove a rule; ignored if it does not exist."""
        self._rules = [each for each in self._rules if each is not rule]

    def clear(self) -> None:
        """Remove all rules."""
        self._rules = []

    def meet(self, call: Call[Any]) -> None:
        """Apply the rules to a request, until one has responded or dropped it."""
        for rule in self._rules:
            if not call.is_waiting:
                return
            if rule.meets(call, self._chance):
                rule.action.apply(call, self._chance)
