"""Calls that wait until something happens or their time is over.

Owns them, by the keys that they wait for: partitions that are written to, groups that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional

from kafka.protocol.wire import Message
from kafka.testing.timers import Timer, Timers

if TYPE_CHECKING:
    from kafka.testing.calls import Call

Attempt = Callable[[bool], Optional[Message]]


class _Waiter:
    """One call that waits."""

    def __init__(self, call: Call[Any], attempt: Attempt) -> None:
        self.call = call
        self.attempt = attempt
        self.timer: Optional[Timer] = None
        self._is_trying = False

    @property
    def waits(self) -> bool:
        """Whether the call has no answer yet."""
        return self.call.is_waiting

    def try_once(self, last: bool) -> None:
        """Attempt an answer, unless that is being done already: an attempt may touch its key.

        What an attempt raises concerns its own call and not who happened to touch the key.
        """
        if not self.waits or self._is_trying:
            return
        self._is_trying = True
        try:
            response = self.attempt(last)
            if response is not None and self.waits:
                self.call.respond(response)
        except Exception as error:
            self.call.broker.note_failure(self.call, error)
        finally:
            self._is_trying = False
        if self.timer is not None and not self.call.is_waiting:
            self.timer.cancel()


class Waiting:
    """All calls that wait, of all brokers of a cluster."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_key: Dict[Any, List[_Waiter]] = {}

    def add(self, call: Call[Any], seconds: float, keys: Iterable[Any], attempt: Attempt) -> None:
        """Keep a call; see ``Call.wait``."""
        waiter = _Waiter(call, attempt)
        keys = list(keys)
        for key in keys:
            self._by_key.setdefault(key, []).append(waiter)

        def is_over() -> None:
            waiter.try_once(True)
            clear()

        def clear() -> None:
            timer.cancel()
            for key in keys:
                self._clear(key)

        waiter.timer = timer = self._timers.later(seconds, is_over)
        call.when_dropped(clear)

    def touch(self, key: Any) -> None:
        """Say that something happened to what a key stands for."""
        waiters = self._by_key.get(key)
        if waiters:
            for waiter in list(waiters):
                waiter.try_once(False)
            self._clear(key)

    def _clear(self, key: Any) -> None:
        left = [waiter for waiter in self._by_key.get(key, ()) if waiter.call.is_waiting]
        if left:
            self._by_key[key] = left
        else:
            self._by_key.pop(key, None)
