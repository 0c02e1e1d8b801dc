"""Detects that a broker has closed a connection, before a request is written to it.

Used by blocking connections, in the thread that owns the connection; no locks. A broker closes
connections that were idle for connections.max.idle.ms, 10 minutes by default, and all of them when
it is restarted. The end of the stream then stays unread in the socket until the next request, which
would be lost.
"""

from __future__ import annotations

import select
import socket
from typing import Any

__all__ = ['IdleCheck', 'is_at_end']


class IdleCheck:
    """Checks with one system call whether the peer of a connected socket has closed it.

    Arguments: sock: a socket or SecuredSocket. An object of the program that has no file
    descriptor counts as open.
    """

    __slots__ = ('_poll', '_sock')

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._poll: Any = None
        if hasattr(select, 'poll') and hasattr(sock, 'fileno'):  # not on Windows, nor with eventlet
            poll = select.poll()
            poll.register(sock.fileno(), select.POLLIN)
            self._poll = poll.poll

    def is_ended(self) -> bool:
        """Return True if the peer has closed the connection.

        Only to be called while no response is outstanding.
        """
        if self._poll is not None:
            if not self._poll(0):
                return False
        elif not hasattr(self._sock, 'fileno') or not select.select([self._sock], [], [], 0)[0]:
            return False
        has_ended = getattr(self._sock, 'has_ended', None)  # a SecuredSocket
        return bool(is_at_end(self._sock) if has_ended is None else has_ended())


def is_at_end(sock: socket.socket) -> bool:
    """Return True if a readable socket is at the end of its stream, or broken."""
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
