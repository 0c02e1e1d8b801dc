"""The loop: coroutines, timers and sockets of one client, driven by its callers.

Owns: what a client uses of the network floor (the contract is told in tasks.py). Does not own: who
runs the turns (threads.py), how a connection is made (transport.py), names (resolver.py), other
threads (helpers.py).
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, Dict, List, Optional, TypeVar

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.net.loop.helpers import Helpers
from kafka.net.loop.selector import Poller
from kafka.net.loop.tasks import Task
from kafka.net.loop.threads import Driving
from kafka.net.resolver import Address, resolve
from kafka.net.transport import SocketOptions, Transport, open_transport

__all__ = ['Loop']

T = TypeVar('T')


class Loop(Driving):
    """Runs the coroutines of one client.

    Arguments: name: of the background thread, as ``<client id>-network-thread``; busy_poll: seconds
    for which who waits for an answer alone may ask for it before it sleeps.

    Making one opens nothing and starts nothing. After a fork the child gets IllegalStateError from
    every call; the parent goes on.
    """

    def __init__(self, name: str = 'kafka-network-thread', busy_poll: float = 0.0) -> None:
        super().__init__(name, busy_poll)
        self._helpers = Helpers(self)
        self._transports: Dict[Transport, None] = {}
        self._closed = False

    def __repr__(self) -> str:
        return '<Loop %s %s tasks=%d sockets=%d>' % (
            self.name,
            'closed' if self._closing else 'open',
            len(self._tasks),
            self._poller.sockets,
        )

    # ------------------------------------------------------------ from any thread

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: Optional[float]) -> T:
        """Run a coroutine from any thread and return what it returns.

        Arguments: timeout: seconds; None for no end.

        Raises KafkaTimeoutError at the end of the time, when the coroutine is cancelled; what the
        coroutine raises; and as wait().
        """
        task: Optional[Task[T]] = None
        try:
            self._check_caller()
            task = Task(self, coroutine)
            self._ready.append((self._take_on, (task,)))
            finished = self.wait(lambda: task.done, timeout)
            if not finished:
                raise KafkaTimeoutError('%s took longer than %s seconds' % (task.name, timeout))
            return task.result()
        except BaseException:
            if task is None:
                coroutine.close()
                raise
            task.asked = True  # by this call: the log need not tell what it raises
            if not task.done:
                self._give_up(task)
            raise

    def _take_on(self, task: Task[Any]) -> None:
        self._tasks[task] = None
        task._step()

    def _give_up(self, task: Task[Any]) -> None:
        try:
            self.call_threadsafe(self._cancel, task)
        except IllegalStateError:  # closed meanwhile, which cancels what was taken on
            if task not in self._tasks:
                task._drop()

    def _cancel(self, task: Task[Any]) -> None:
        if task in self._tasks:
            task.cancel()
        elif not task.done:  # it was never taken on
            task._drop()

    def close(self, timeout: float = 5.0) -> None:
        """Cancel all coroutines, close all connections and end the background thread.

        Arguments: timeout: seconds that all of it may take. Coroutines that do not end by then,
        or a thread that runs the turn and does not leave it, are left behind.

        May be called again, from any thread, and from a call of the loop, behind which it ends.
        """
        if self._forked or self._closed:
            return
        deadline = self.time() + timeout
        if self.runs_here():
            self._closing = True
            return  # closed when the turn is left
        try:
            if not self._closing:
                cancelled: List[bool] = []
                self._ready.append((self._cancel_all, (cancelled,)))
                # What was brought before it may begin tasks as well.
                self.wait(lambda: cancelled and not self._tasks, max(0.0, timeout / 2))
        except IllegalStateError:  # another thread was quicker
            pass
        except BaseException:  # Ctrl-C: it is closed all the same, and nothing more is waited for
            deadline = 0.0
            raise
        finally:
            self._end(deadline)

    def _end(self, deadline: float) -> None:
        """Run no more turns, and close what is open, or let who runs the last one do that."""
        self._closing = True
        held: List[bool] = []
        try:
            self._stop_background(max(0.0, deadline - self.time()))
            # In one step, so that it is known whether the lock is to be released.
            held.extend(map(self._turn.acquire, (True,), (max(0.0, deadline - self.time()),)))
            if held[0]:
                self._close_all()  # unless the background has done it
        finally:
            if held and held[0]:
                self._turn.release()
            self._call_all()

    def _cancel_all(self, cancelled: List[bool]) -> None:
        for task in list(self._tasks):
            task.cancel()
        cancelled.append(True)

    def _end_turns(self) -> None:
        self._close_all()

    def _close_all(self) -> None:
        """Close what is open, in the turn. May be called again if it was ended in the middle."""
        if self._closed:
            return
        for transport in list(self._transports):
            transport.close()
            transport.abandon()  # one whose close() was ended in the middle
            self._transports.pop(transport, None)
        self._drop_all()
        self._poller.close()
        self._closed = True

    # ------------------------------------------------------------ in a turn

    @property
    def poller(self) -> Poller:
        """What sockets are registered with."""
        return self._poller

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host.

        Raises KafkaConnectionError for a name that is not known, KafkaTimeoutError when that takes
        longer than `timeout` seconds.
        """
        return await resolve(self._helpers, host, port, timeout)

    async def blocking(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Run a function that blocks in another thread; return what it returns.

        Arguments: what: it does, for errors. Raises what it raises, and as Helpers.run().
        """
        return await self._helpers.run(function, timeout, what)

    async def connect(
        self, address: Address, timeout: float, options: Optional[SocketOptions] = None
    ) -> Transport:
        """Return a connection to an address.

        Raises KafkaConnectionError when it cannot be reached, KafkaTimeoutError when that is not
        known after `timeout` seconds.
        """
        transport = await open_transport(self, address, options or SocketOptions(), timeout)
        self._transports[transport] = None
        return transport

    def forget_transport(self, transport: Transport) -> None:
        """Let go of a transport that was closed."""
        self._transports.pop(transport, None)

    def _abandon(self) -> None:
        super()._abandon()
        for transport in list(self._transports):
            transport.abandon()
        self._transports.clear()
