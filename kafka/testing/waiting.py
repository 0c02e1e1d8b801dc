"""Calls that wait for an event or a time-out, like the purgatory of a broker.

Kept by the keys that they wait for: partitions that are written to, groups that change. Used on the
thread of the cluster.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, Optional

from kafka.protocol.wire import Message
from kafka.testing.timers import Timer, Timers

if TYPE_CHECKING:
    from kafka.testing.calls import Call

Attempt = Callable[[bool], Optional[Message]]


class _Waiter:
    """One call that waits for any of some keys."""

    def __init__(self, call: Call[Any], keys: Iterable[Any], attempt: Attempt) -> None:
        self.call = call
        self.keys = list(keys)
        self.attempt = attempt
        self.timer: Optional[Timer] = None
        self._is_trying = False

    def try_once(self, last: bool) -> None:
        """Attempt a response, unless an attempt is in progress: it may touch its own key.

        An exception of an attempt fails its own call, not the one that touched the key.
        """
        if not self.call.is_waiting or self._is_trying:
            return
        self._is_trying = True
        try:
            response = self.attempt(last)
            if response is not None and self.call.is_waiting:
                self.call.respond(response)
        except Exception as error:
            self.call.broker.note_failure(self.call, error)
        finally:
            self._is_trying = False


class Waiting:
    """All waiting calls of all brokers of a cluster."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        # Waiters in order of arrival; dicts, because any of them may be removed at any time.
        self._by_key: Dict[Any, Dict[_Waiter, None]] = {}
        self._postponed: Optional[Dict[Any, None]] = None

    def add(self, call: Call[Any], seconds: float, keys: Iterable[Any], attempt: Attempt) -> None:
        """Add a call; see ``Call.wait``."""
        waiter = _Waiter(call, keys, attempt)
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None

        def is_over() -> None:
            waiter.try_once(True)
            self._forget(waiter)

        waiter.timer = self._timers.later(seconds, is_over)
        call.when_dropped(lambda: self._forget(waiter))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Postpone touch() in a ``with`` block until its end.

        A call that waits for several partitions, to which one request writes, gets all at once.
        """
        touched: Dict[Any, None] = {}
        self._postponed = touched
        try:
            yield
        finally:
            self._postponed = None
            for key in touched:
                self.touch(key)

    def touch(self, key: Any) -> None:
        """Attempt the responses of the calls that wait for a key."""
        if self._postponed is not None:
            self._postponed[key] = None
            return
        for waiter in list(self._by_key.get(key, ())):
            waiter.try_once(False)
            if not waiter.call.is_waiting:
                self._forget(waiter)

    def _forget(self, waiter: _Waiter) -> None:
        if waiter.timer is not None:
            waiter.timer.cancel()
        for key in waiter.keys:
            waiters = self._by_key.get(key)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del self._by_key[key]
