"""Staggered parallel attempts at several servers, in the manner of Happy Eyeballs (RFC 8305).

Used by the bootstrap and to select any broker, in the thread that runs the loop.
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, List, Optional, Sequence, TypeVar

from kafka.errors import KafkaError
from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.tasks import Event, Task

__all__ = ['first_of']

T = TypeVar('T')


async def first_of(
    loop: EventLoop, attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], interval: float
) -> T:
    """Return the result of the first attempt that succeeds, and cancel the others.

    Each attempt starts when the previous one has failed, or has not ended after `interval` seconds,
    so that a host that does not respond delays the next attempt by `interval` only.

    If all fail, raises the first error that is not retriable, otherwise the last error. `attempts`
    must not be empty.
    """
    tasks: List[Task[T]] = []
    ended = Event()
    waiting = list(attempts)
    failures: List[KafkaError] = []
    try:
        while True:
            if waiting:
                task = loop.spawn(waiting.pop(0)())
                task.add_done_callback(lambda task: ended.set())
                tasks.append(task)
            await _ended_or(loop, ended, interval if waiting else None)
            ended.clear()
            for task in [task for task in tasks if task.done]:
                error = task.exception
                if error is None:
                    return task.result()
                tasks.remove(task)
                if not isinstance(error, KafkaError):
                    raise error
                failures.append(error)
            if not tasks and not waiting:
                raise next((each for each in failures if not each.retriable), failures[-1])
    finally:
        for task in tasks:
            task.cancel()


async def _ended_or(loop: EventLoop, ended: Event, seconds: Optional[float]) -> None:
    """Wait until an attempt has ended, at most `seconds`; None for no limit."""
    if seconds is None:
        await ended.wait()
        return
    timer = loop.call_later(seconds, ended.set)
    try:
        await ended.wait()
    finally:
        timer.cancel()
