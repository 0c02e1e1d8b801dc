"""The selector of a loop, and the socket pair by which other threads wake it.

Used by Loop under its driver lock, and by the evented KafkaClient; wake() may be called by any
thread and by signal handlers. Names of standard modules are looked up at each use, so that programs
patched by gevent or eventlet get the replacements.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import socket
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from kafka.errors import KafkaConnectionError
from kafka.net.loop.busy_poll import BusyPoll

__all__ = ['READ', 'WRITE', 'Poller']

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

OnReady = Callable[[int], Any]

_EPOLLIN = getattr(select, 'EPOLLIN', 1)
_EPOLLOUT = getattr(select, 'EPOLLOUT', 4)


class Poller:
    """Waits for sockets and wake-ups. Nothing is opened before the first register() or poll().

    If the selector uses epoll, epoll is called directly: a selector creates objects for each event,
    which takes longer than the system call.

    Arguments: busy_poll: seconds for which is_only() may poll before it blocks.

    Attributes: sockets: the number of registered sockets, without the one for wake-ups.
    """

    def __init__(self, busy_poll: float = 0.0) -> None:
        self._busy_poll = BusyPoll(busy_poll) if busy_poll else None
        self._selector: Optional[selectors.BaseSelector] = None
        self._epoll: Any = None
        # By descriptor: the callback, and the events it is registered for.
        self._calls: Dict[int, Tuple[OnReady, int]] = {}
        self._sender: Optional[socket.socket] = None
        self._receiver: Optional[socket.socket] = None
        self.sockets = 0

    def __repr__(self) -> str:
        return '<Poller of %d sockets>' % self.sockets

    @property
    def is_open(self) -> bool:
        """Whether the selector was opened."""
        return self._selector is not None

    def open(self) -> selectors.BaseSelector:
        """Return the selector; create it at the first call.

        Raises KafkaConnectionError if the system has no more file descriptors.
        """
        if self._selector is None:
            selector: Optional[selectors.BaseSelector] = None
            try:
                selector = selectors.DefaultSelector()
                receiver, sender = socket.socketpair()
            except OSError as error:
                if selector is not None:
                    selector.close()
                raise KafkaConnectionError(
                    'cannot open a selector: %s (raise the limit of open files, ulimit -n)' % error
                ) from error
            receiver.setblocking(False)
            sender.setblocking(False)
            selector.register(receiver, READ, self._on_woken)
            self._calls[receiver.fileno()] = self._on_woken, READ
            self._receiver, self._sender = receiver, sender
            self._epoll = _epoll_of(selector)
            self._selector = selector
        return self._selector

    def register(self, sock: socket.socket, events: int, on_ready: OnReady) -> None:
        """Add a socket: poll() returns ``on_ready`` with the events when the socket is ready."""
        self.open().register(sock, events, on_ready)
        self._calls[sock.fileno()] = on_ready, events
        self.sockets += 1

    def modify(self, sock: socket.socket, events: int, on_ready: OnReady) -> None:
        """Change the events of a registered socket."""
        self.open().modify(sock, events, on_ready)
        self._calls[sock.fileno()] = on_ready, events

    def unregister(self, sock: socket.socket) -> None:
        """Remove a socket; before it is closed."""
        if self._selector is not None:
            with contextlib.suppress(KeyError):  # an exception has ended an earlier call
                self._selector.unregister(sock)
            if self._calls.pop(sock.fileno(), None) is not None:
                self.sockets -= 1

    def poll(self, seconds: Optional[float]) -> List[Tuple[OnReady, int]]:
        """Return (callback, events) of the ready sockets, after at most `seconds`.

        None is for no limit.
        """
        selector = self._selector or self.open()
        if self._epoll is None:
            return [(key.data, events) for key, events in selector.select(seconds)]
        happened = []
        # epoll rounds up to milliseconds, so it does not return early without an event.
        wait = -1.0 if seconds is None else seconds if seconds > 0 else 0.0
        for descriptor, flags in self._epoll.poll(wait, len(self._calls)):
            known = self._calls.get(descriptor)
            if known is None:
                continue
            on_ready, wanted = known
            if flags == _EPOLLIN:
                happened.append((on_ready, READ))
            else:  # a socket error is raised by the next read or write
                events = (READ if flags & ~_EPOLLOUT else 0) | (WRITE if flags & ~_EPOLLIN else 0)
                happened.append((on_ready, events & wanted))
        return happened

    def is_only(self, descriptor: int, seconds: float) -> bool:
        """Block like poll(); return True if this socket is readable and no other one is ready.

        The next poll() returns the same events. With epoll it may busy-poll before it blocks
        (busy_poll.py). Arguments: descriptor: of a registered socket.
        """
        selector = self._selector or self.open()
        if self._epoll is not None:
            wait: Callable[[float, int], List[Tuple[int, int]]] = self._epoll.poll
            if self._busy_poll is not None:
                wait = partial(self._busy_poll.wait, wait)
            happened = wait(seconds if seconds > 0 else 0.0, len(self._calls))
            return happened == [(descriptor, _EPOLLIN)]
        return [(key.fd, events) for key, events in selector.select(seconds)] == [
            (descriptor, READ)
        ]

    def wake(self) -> None:
        """End the poll in progress, or the next one; for any thread or signal handler."""
        sender = self._sender
        if sender is not None:
            try:
                sender.send(b'\0')
            except BlockingIOError:  # the socket buffer is full of wake-ups
                pass
            except OSError:  # closed by another thread: no poll follows
                pass

    def _on_woken(self, events: Any) -> None:
        assert self._receiver is not None
        try:
            self._receiver.recv(4096)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close everything. In the child of a fork this does not affect the parent."""
        for each in (self._epoll, self._selector, self._sender, self._receiver):
            if each is not None:
                each.close()
        self._epoll = self._selector = self._sender = self._receiver = None
        self._calls.clear()
        self.sockets = 0


def _epoll_of(selector: Any) -> Any:
    """Return an epoll object on the descriptor of a selector; None for other kinds of selectors."""
    if type(selector) is not getattr(selectors, 'EpollSelector', None):
        return None
    return select.epoll.fromfd(os.dup(selector.fileno()))
