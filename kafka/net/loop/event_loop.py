"""What coroutines and clients use of an event loop.

Loop is the one of clients, on the machine's clock and sockets; the simulation of the tests has one
on a virtual clock (test/simulation/loop.py).
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
    """A transport that may be waited for alone."""

    @property
    def descriptor(self) -> Any:
        """The descriptor of its socket; None if bytes that were read may be held back in it."""


class EventLoop(Protocol):
    """Runs coroutines, and lets threads wait for them. Seconds are monotonic, from time()."""

    # ------------------------------------------------------------ from any thread

    def time(self) -> float:
        """Return seconds that never go back."""

    def wall(self) -> float:
        """Return seconds since the epoch."""

    def start(self) -> None:
        """Start the background thread now, if there is one."""

    def runs_here(self) -> bool:
        """Return True if this is a call of the loop, in which nothing may wait for the loop."""

    def call_threadsafe(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something in the next iteration. Raises IllegalStateError after close()."""

    def call_lazily(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something within some milliseconds; cheaper than call_threadsafe()."""

    def call_from_finalizer(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something soon, from a finalizer: takes no lock; does nothing after close()."""

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: Optional[float]) -> T:
        """Block until a coroutine is done; return its result, raise its error."""

    def wait(self, done: Any, timeout: Optional[float], begin: Any = None) -> bool:
        """Block until something has happened; return False after so many seconds."""

    def close(self, timeout: float = 5.0) -> None:
        """Cancel the coroutines and close the connections."""

    # ------------------------------------------------------------ in the thread that runs it

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Begin a coroutine; it runs first after the caller has returned to the loop."""

    def call_soon(self, call: Callable[..., Any], *args: Any) -> None:
        """Call something after the caller has returned to the loop."""

    def call_later(self, seconds: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call something after so many seconds."""

    def take_only(self, call: Callable[[], Any]) -> bool:
        """Remove a call if it is the only ready one, for a caller that makes it now."""

    def is_only(self, transport: Pollable, until: float) -> bool:
        """Sleep until anything happens; return True if it is that a transport can be read."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""

    async def within(self, seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns. Raises KafkaTimeoutError after so many seconds."""

    async def gather(self, *coroutines: Coroutine[Any, Any, T]) -> List[T]:
        """Run several coroutines at once; return what they return."""

    async def resolve(self, host: str, port: int, timeout: float) -> List[Address]:
        """Return all addresses of a host."""

    async def blocking(self, function: Callable[[], T], timeout: float, what: str) -> T:
        """Run a function that blocks in a thread of its own; return what it returns."""

    async def connect(
        self, address: Address, timeout: float, options: Optional[SocketOptions] = None
    ) -> Transport:
        """Return a connection to an address."""
