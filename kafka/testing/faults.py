"""Faults of an embedded cluster: which requests go wrong, and how.

Owns the actions (an error, a delay, a lost or damaged answer) and the rules that say when one is
taken, by hand or by seeded chance. Where an API keeps its error codes is in error_answers.py.
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
#: Length and correlation id: a client that finds another one there knows at once.
INTACT_BYTES = 8
SLOW_STEP_SECONDS = 0.05
MAX_INT32 = 2**31 - 1
MAX_SECONDS = 1e9


def api_key(api: Any) -> ApiKey:
    """Return the key of an API: a number, a name (``'Produce'``, ``'list_offsets'``), a request.

    Raises ValueError for what is none.
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
    raise ValueError('no API that clients use: %r' % (api,))


def check_action(action: Any) -> None:
    """Raise TypeError for what is no action, ValueError for one that cannot be meant."""
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
    """Answer with an error and do nothing else; the code stands where clients look for it."""

    code: int

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_code(self.code)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Answer."""
        response = error_answer(call, self.code)
        if response is None:
            call.close_connection()  # a client that wants no answer learns it so
        else:
            call.respond(response)


class ErrorAfterApplying(NamedTuple):
    """Do what is asked and answer with an error all the same, in every place that has one."""

    code: int

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_code(self.code)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Change the response."""
        call.changes.append(lambda response: with_error(response, self.code))


class Delay(NamedTuple):
    """Do what is asked at once and let the answer wait."""

    seconds: float

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_between('seconds', self.seconds, 0, MAX_SECONDS)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Hold the answer back."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            call.state.timers.later(self.seconds, lambda: write(data))

        call.deliveries.append(deliver)


class DropRequest(NamedTuple):
    """Close the connection instead of doing what is asked."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Close."""
        call.close_connection()


class DropResponse(NamedTuple):
    """Do what is asked and close the connection instead of answering."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Close later."""
        call.deliveries.append(lambda data, connection, write: connection.close())


class Hang(NamedTuple):
    """Do nothing and never answer; the connection stays open."""

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Forget the call."""
        call.drop()


class Cut(NamedTuple):
    """Close the connection in the middle of the answer.

    ``sent_bytes`` is how much of the frame is sent, -1 for half of it; never all.
    """

    sent_bytes: int = -1

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_between('sent_bytes', self.sent_bytes, -1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Cut the frame."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            wanted = len(data) // 2 if self.sent_bytes < 0 else self.sent_bytes
            connection.send(data[: min(wanted, len(data) - 1)] if data else b'')
            connection.close()

        call.deliveries.append(deliver)


class Truncate(NamedTuple):
    """Answer with a frame that ends too early, and whose length says so."""

    missing_bytes: int = 1

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_between('missing_bytes', self.missing_bytes, 1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Shorten the frame."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            body = data[LENGTH_BYTES : max(INTACT_BYTES, len(data) - self.missing_bytes)]
            write(len(body).to_bytes(LENGTH_BYTES, 'big') + body if data else data)

        call.deliveries.append(deliver)


class Corrupt(NamedTuple):
    """Answer with some bytes changed, behind length and correlation id."""

    damaged_bytes: int = 1

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_between('damaged_bytes', self.damaged_bytes, 1, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Change bytes that chance chooses."""

        def deliver(data: bytes, connection: Connection, write: Write) -> None:
            damaged = bytearray(data)
            places = range(INTACT_BYTES, len(data))
            for place in chance.sample(places, min(self.damaged_bytes, len(places))):
                damaged[place] ^= chance.randrange(1, 256)
            write(bytes(damaged))

        call.deliveries.append(deliver)


class Slow(NamedTuple):
    """Let the answer trickle."""

    bytes_per_second: float

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
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
    """Do what is asked and say that the client is over its quota.

    As brokers do it: the answer waits, or, from the versions of 2.0 on, comes at once and nothing
    more is read from the connection until the time is over (KIP-219).
    """

    milliseconds: int

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        _check_between('milliseconds', self.milliseconds, 0, MAX_INT32)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Write the time into the response, and let it pass."""
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
    """One of several actions, as chance chooses."""

    actions: Sequence[Any]

    def check(self) -> None:
        """Raise ValueError for what cannot be meant."""
        if not self.actions:
            raise ValueError('actions must be one or more')
        for each in self.actions:
            check_action(each)

    def apply(self, call: Call[Any], chance: random.Random) -> None:
        """Choose."""
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
    """When an action is taken; a context manager that removes it at its end.

    Attributes: hits: how often it was taken.
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
        """Let it happen no more."""
        self._faults.remove(self)

    def meets(self, call: Call[Any], chance: random.Random) -> bool:
        """Tell whether a request is hit, and count."""
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
        # Chance is asked only where it decides, so that other rules do not shift it.
        if self._probability < 1.0 and chance.random() >= self._probability:
            return False
        self.hits += 1
        return True


class Faults:
    """All faults of a cluster.

    Arguments: chance: decides by its seed alone, in the order in which requests arrive.
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
        """Let requests go wrong.

        Arguments: action: how, such as ``Error(6)``; api: which requests, by name, number or class,
            None for all; node: at which broker, None for all; times: how often, None for ever;
            probability: of each request that fits; skip: how many that fit go well first; where:
            gets the call and tells whether it fits.
        Returns: the rule, with ``hits`` and ``remove()``; several rules may hit one request.
        Raises: TypeError, ValueError for arguments that cannot be meant.
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
        """Let requests go wrong for ever, by chance, each in one of several ways; as add()."""
        return self.add(OneOf(tuple(actions)), api, node=node, times=None, probability=probability)

    def remove(self, rule: Fault) -> None:
        """Forget a rule; one that is not there is none."""
        self._rules = [each for each in self._rules if each is not rule]

    def clear(self) -> None:
        """Forget all."""
        self._rules = []

    def meet(self, call: Call[Any]) -> None:
        """Do to a request what the rules say, until one has settled it."""
        for rule in self._rules:
            if not call.is_waiting:
                return
            if rule.meets(call, self._chance):
                rule.action.apply(call, self._chance)
