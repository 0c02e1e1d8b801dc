"""A TCP connection of the event loop.

Used only by the thread that runs the loop. secured.py adds TLS.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import (
    Any,
    Callable,
    Deque,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.net.attempts import at_stage
from kafka.net.loop.selector import READ, WRITE, Poller
from kafka.net.loop.tasks import Timer, Waiter
from kafka.net.resolver import Address

__all__ = ['SocketOptions', 'Transport', 'open_transport']

Bytes = Union[bytes, bytearray, memoryview]

#: Bytes per read. malloc() would map and unmap memory for each read of 128 KiB or more.
READ_BYTES = 120 * 1024
_READ_BYTES = (READ_BYTES,)
_NO_BYTES = (0,)
#: Maximum number of buffers per sendmsg(). POSIX guarantees 16, all common systems allow 1024.
MAX_PIECES = 512

_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY, errno.EINTR)


class SocketOptions(NamedTuple):
    """Options set on each socket: sizes of the kernel's buffers in bytes, and others.

    None keeps the default size of the system; others are (level, option, value).
    """

    send_buffer_bytes: Optional[int] = None
    receive_buffer_bytes: Optional[int] = None
    others: Tuple[Tuple[int, int, Any], ...] = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)

    def apply(self, sock: socket.socket) -> None:
        """Set the options on a socket."""
        for level, option, value in self.others:
            sock.setsockopt(level, option, value)
        if self.send_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        if self.receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)


class SocketLoop(Protocol):
    """The part of a loop that a transport uses."""

    pending: int

    @property
    def poller(self) -> Poller:
        """The selector that sockets are registered with."""

    def call_later(self, seconds: float, call: Any, *args: Any) -> Timer:
        """Schedule a call after a delay in seconds."""

    def call_soon(self, call: Any, *args: Any) -> None:
        """Schedule a call after the caller has returned to the loop."""

    def forget_transport(self, transport: Transport) -> None:
        """Remove a closed transport."""


class Transport:
    """An open TCP connection. Used only by the thread that runs its loop.

    Attributes: peername: host and port of the peer; is_closed; descriptor: of the socket;
    is_encrypted: whether it uses TLS; is_torn: an exception has ended write() or receive_into() in
    the middle, and bytes are lost: only with TLS.
    """

    is_encrypted = is_torn = False

    def __init__(self, loop: SocketLoop, sock: socket.socket, address: Address) -> None:
        self.peername = address.ip, int(address.sockaddr[1])
        self.is_closed = False
        self.descriptor = sock.fileno()
        self._loop = loop
        self._sock = sock
        self._events = 0  # those registered with the poller
        self._reader: Optional[Waiter[bytes]] = None
        self._on_data: Optional[Callable[[bytes], Any]] = None
        self._on_broken: Optional[Callable[[KafkaConnectionError], Any]] = None
        self._unsent: Deque[memoryview] = deque()
        self._drained: List[Waiter[None]] = []
        self._broken: Optional[KafkaConnectionError] = None
        self._expecting = False

    def __repr__(self) -> str:
        state = 'closed' if self.is_closed else 'broken' if self._broken else 'open'
        return '<Transport to %s:%s %s>' % (*self.peername, state)

    @property
    def expecting(self) -> bool:
        """Whether a response is outstanding, set by the sender of requests.

        If no transport expects a response, the background thread need not wait for one.
        """
        return self._expecting

    @expecting.setter
    def expecting(self, expecting: bool) -> None:
        if expecting != self._expecting:
            self._expecting = expecting
            self._loop.pending += 1 if expecting else -1

    # ------------------------------------------------------------ out

    def write(self, buffers: Sequence[Bytes], noted: Optional[List[int]] = None) -> None:
        """Send as much as the socket buffer takes now, and the rest when the socket is writable.

        Arguments: noted: gets the number of bytes that are sent now, in the same step of C code:
        also an exception that ends this call leaves no doubt. Only with one buffer. Raises
        KafkaConnectionError if the connection has ended.
        """
        if self._broken is not None or self.is_closed:
            self._check()
        if len(buffers) == 1 and not self._unsent:
            (piece,) = buffers
            if noted is None:
                noted = []
            # Made before the try statement: what is raised after a call in this thread, which may
            # be a TimeoutError, is not an error of the socket.
            sending = map(self._sock.send, buffers)
            try:
                noted[:] = sending
            except (BlockingIOError, InterruptedError):
                noted[:] = _NO_BYTES
            except OSError as error:
                raise self._break(error) from error
            sent = noted[0]
            if sent == len(piece):
                return
            pieces: List[Bytes] = [_view(piece)[sent:]]
        else:
            pieces = [each for each in buffers if len(each)]
            if not self._unsent:
                pieces = self._send_now(pieces)
        if pieces:
            self._unsent.extend(map(_view, pieces))
            self._want(self._events | WRITE)

    async def send(self, buffers: Sequence[Bytes]) -> None:
        """Send everything; return when all bytes are in the socket buffer. Raises as write()."""
        self.write(buffers)
        while self._unsent:
            waiter: Waiter[None] = Waiter()
            self._drained.append(waiter)
            await waiter

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that are not in the socket buffer yet."""
        return sum(map(len, self._unsent))

    def _send_now(self, pieces: Sequence[Bytes]) -> List[Bytes]:
        """Send without blocking; return the unsent rest."""
        rest = list(pieces)
        while rest:
            try:
                sent = self._send_some(rest[:MAX_PIECES])
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise self._break(error) from error
            rest = _unsent_of(rest, sent)
        return rest

    def _send_some(self, pieces: List[Bytes]) -> int:
        if not hasattr(self._sock, 'sendmsg'):
            return self._sock.send(pieces[0])
        return self._sock.sendmsg(pieces)

    def _on_writable(self) -> None:
        try:
            rest = self._send_now(list(self._unsent))
        except KafkaConnectionError:
            return  # _break() has notified the waiters
        self._unsent = deque(map(_view, rest))
        if not rest:
            self._want(self._events & ~WRITE)
            drained, self._drained = self._drained, []
            for waiter in drained:
                waiter.wake()

    # ------------------------------------------------------------ in

    async def recv(self) -> bytes:
        """Return the next bytes, b'' at the end of the stream.

        Raises KafkaConnectionError if the connection breaks or is closed.
        """
        self._check()
        waiter: Waiter[bytes] = Waiter()
        self._reader = waiter
        if not self._events & READ:
            self._want(self._events | READ)
        try:
            return await waiter
        finally:
            self._reader = None

    def listen(
        self, on_data: Callable[[bytes], Any], on_broken: Callable[[KafkaConnectionError], Any]
    ) -> None:
        """Call a function with received bytes, b'' at the end of the stream, in place of recv().

        Nothing is called after close(). Arguments: on_broken: called with the error that recv()
        would raise if the connection breaks. Raises as recv().
        """
        self._check()
        self._on_data, self._on_broken = on_data, on_broken
        self._want(self._events | READ)

    def receive_into(self, received: List[bytes]) -> None:
        """Put what receive() returns into a list, in the same step of C code; see write().

        Nothing is put there if receive() would return None.
        """
        receiving = map(self._sock.recv, _READ_BYTES)  # see write()
        try:
            received[:] = receiving
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._break(error)

    def receive(self) -> Optional[bytes]:
        """Return the received bytes, b'' at the end of the stream, without calling the listener.

        None if there are none, or if the connection is broken: then on_broken is called.
        """
        received: List[bytes] = []
        self.receive_into(received)
        return received[0] if received else None

    def _on_readable(self) -> None:
        on_data = self._on_data
        if on_data is None and self._reader is not None and not self._reader.done:
            on_data = self._reader.wake
        if on_data is None:
            self._want(self._events & ~READ)  # until the next recv(), or each poll would return it
            return
        data = self.receive()
        if data is not None:
            on_data(data)

    # ------------------------------------------------------------ both

    def _on_ready(self, events: int) -> None:
        if events & WRITE and not self.is_closed:
            self._on_writable()
        if events & READ and not self.is_closed:
            self._on_readable()

    def _want(self, events: int) -> None:
        """Change the events that are registered with the poller."""
        if self.is_closed or events == self._events:
            return
        poller = self._loop.poller
        if not self._events:
            poller.register(self._sock, events, self._on_ready)
        elif not events:
            poller.unregister(self._sock)
        else:
            poller.modify(self._sock, events, self._on_ready)
        self._events = events

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self.is_closed:
            raise KafkaConnectionError('the connection to %s:%s is closed' % self.peername)

    def _break(self, cause: OSError) -> KafkaConnectionError:
        """Record that the connection is broken, and notify the waiters; return the error."""
        error = KafkaConnectionError(
            'the connection to %s:%s broke: %s' % (*self.peername, cause.strerror or cause)
        )
        error.__cause__ = cause
        self._broken = error
        self._want(0)
        self._fail(error)
        return error

    def _fail(self, error: KafkaConnectionError) -> None:
        self._unsent.clear()
        waiters: List[Waiter[Any]] = [*self._drained]
        self._drained = []
        if self._reader is not None:
            waiters.append(self._reader)
        for waiter in waiters:
            waiter.fail(error)
        self._on_data, on_broken = None, self._on_broken
        if on_broken is not None and not self.is_closed:
            self._loop.call_soon(on_broken, error)

    def close(self) -> None:
        """Close the connection; waiting coroutines get KafkaConnectionError."""
        if self.is_closed:
            return
        self._want(0)
        self.is_closed = True
        self.expecting = False
        self._sock.close()
        self._loop.forget_transport(self)
        self._fail(KafkaConnectionError('the connection to %s:%s was closed' % self.peername))

    def abandon(self) -> None:
        """Close the socket in the child of a fork, without effect on the parent's connection."""
        self.is_closed = True
        self._sock.close()


def _view(data: Bytes) -> memoryview:
    return data if isinstance(data, memoryview) else memoryview(data)


def _unsent_of(pieces: List[Bytes], sent: int) -> List[Bytes]:
    """Return the rest of the pieces after `sent` bytes."""
    for position, piece in enumerate(pieces):
        if sent < len(piece):
            rest = pieces[position:]
            if sent:
                rest[0] = _view(piece)[sent:]
            return rest
        sent -= len(piece)
    return []


async def open_transport(
    loop: SocketLoop, address: Address, options: SocketOptions, timeout: float
) -> Transport:
    """Connect to an address.

    Raises KafkaConnectionError, with the stage TCP, if it cannot be reached, and KafkaTimeoutError
    if the connection is not established after `timeout` seconds.
    """
    try:
        sock = socket.socket(address.family, socket.SOCK_STREAM)
    except OSError as error:
        raise _unreachable(address, error.errno or 0) from error
    try:
        sock.setblocking(False)
        options.apply(sock)
        code = sock.connect_ex(address.sockaddr)
        if code in _UNDER_WAY:
            await _connected(loop, sock, address, timeout)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise _unreachable(address, code)
    except OSError as error:
        sock.close()
        raise _unreachable(address, error.errno or 0) from error
    except OverflowError as error:  # a port out of range
        sock.close()
        raise _unreachable(address, errno.EADDRNOTAVAIL) from error
    except BaseException:
        sock.close()
        raise
    return Transport(loop, sock, address)


async def _connected(
    loop: SocketLoop, sock: socket.socket, address: Address, timeout: float
) -> None:
    """Wait until the socket is connected, or connecting has failed."""
    waiter: Waiter[None] = Waiter()
    late = KafkaTimeoutError(
        '%s:%s did not answer within %.3g seconds' % (*address.sockaddr[:2], timeout)
    )
    timer = loop.call_later(timeout, waiter.fail, at_stage(late, 'TCP'))
    loop.poller.register(sock, WRITE, waiter.wake)
    loop.pending += 1
    try:
        await waiter
    finally:
        loop.pending -= 1
        timer.cancel()
        loop.poller.unregister(sock)


def _unreachable(address: Address, code: int) -> KafkaConnectionError:
    cause = OSError(code, os.strerror(code))
    error = KafkaConnectionError(
        '%s:%s cannot be reached: %s' % (*address.sockaddr[:2], cause.strerror)
    )
    error.__cause__ = cause
    return at_stage(error, 'TCP')
