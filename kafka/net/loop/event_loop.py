"""The interface of an event loop for coroutines and clients.

Clients use the implementation Loop, with the system's clock and sockets; the simulation in the
tests has one with a virtual clock (test/simulation/loop.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Coroutine, List, Optional, Protocol, TypeVar

from kafka.net.loop.tasks import Task, Timer

if TYPE_CHECKING:
    from kafka.net.resolver import Address
    from kafka.net.transport import SocketOptions, Transport

__all__ = ['EventLoop', 'Pollable']

T = TypeVar('T')


class Pollable(Protocol):
    """A transport for EventLoop.is_only()."""

    @property
    def descriptor(self) -> int:
        """The descriptor of its socket. Nothing that was received is buffered elsewhere."""


class FirstCall(Protocol):
    """What a waiting thread needs to be done first, and may do itself; made in an iteration.

    Arguments: until: the deadline of the thread.
    """

    def begin(self, until: float) -> None:
        """Do it. Called where asynchronous exceptions are not raised; must not raise."""

    def attempt(self, until: float) -> None:
        """Do it, or nothing. Called where an asynchronous exception may be raised at any point."""

    def mend(self) -> None:
        """Repair what an interrupted attempt() has left half done; called as begin() is."""


class EventLoop(Protocol):
    """Runs coroutines, and lets threads wait for them. Times are those of time(), in seconds."""

    # ------------------------------------------------------------ from any thread

    def time(self) -> float:
        """Return the monotonic time in seconds."""

    def wall(self) -> float:
        """Return seconds since the epoch."""

    def start(self) -> None:
        """Start the background thread now, if there is one."""

    def runs_here(self) -> bool:
        """Return True in a callback of the loop, where a blocking call would wait for itself."""

    def call_threadsafe(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call for the next iteration. Raises IllegalStateError after close()."""

    def call_lazily(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call within some milliseconds; cheaper than call_threadsafe()."""

    def call_from_finalizer(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call from a finalizer: takes no lock; does nothing after close()."""

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: Optional[float]) -> T:
        """Block until a coroutine is done; return its result or raise its error."""

    def wait(
        self,
        done: Callable[[], Any],
        timeout: Optional[float],
        first: Optional[FirstCall] = None,
    ) -> bool:
        """Block until `done()` is true; return False after `timeout` seconds."""

    def close(self, timeout: float = 5.0) -> None:
        """Cancel the coroutines and close the connections."""

    # ------------------------------------------------------------ in the thread that runs it

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Start a coroutine; its first step runs after the caller has returned to the loop."""

    def call_soon(self, call: Callable[..., Any], *args: Any) -> None:
        """Schedule a call after the caller has returned to the loop."""

    def call_later(self, seconds: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Schedule a call after a delay in seconds."""

    def take_only(self, call: Callable[[], Any]) -> bool:
        """Remove a call if it is the only scheduled one; the caller then makes it itself."""

    def is_only(self, transport: Pollable, until: float) -> bool:
        """Block until an event occurs; return True if only this transport has become readable."""

    async def sleep(self, seconds: float) -> None:
        """Suspend the coroutine for `seconds`."""

    async def within(self, seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. Raises KafkaTimeoutError after `seconds`."""

    async def gather(self, *coroutines: Coroutine[Any, Any, T]) -> List[T]:
        """Run several coroutines concurrently; return their results."""

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host."""

    async def blocking(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Run a blocking function in a separate thread; return its result."""

    async def connect(
        self, address: Address, timeout: float, options: Optional[SocketOptions] = None
    ) -> Transport:
        """Return a connection to an address."""
