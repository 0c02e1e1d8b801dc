"""Resolution of host names to addresses.

Used in the loop, and by blocking connections, in any thread. getaddrinfo() blocks, so the loop
calls it in a separate thread (loop/executor.py). opening.py decides in which order the addresses
are tried.
"""

from __future__ import annotations

import socket
from typing import Any, List, NamedTuple, Tuple

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.addresses import MAX_PORT
from kafka.net.attempts import at_stage
from kafka.net.loop.executor import Executor

__all__ = ['Address', 'canonical_name', 'literal', 'look_up', 'resolve']


class Address(NamedTuple):
    """A socket address to connect to."""

    family: int
    sockaddr: Tuple[Any, ...]

    @property
    def ip(self) -> str:
        """The address as text."""
        return str(self.sockaddr[0])


def literal(host: str, port: int) -> List[Address]:
    """Return the address of a host that is an IP address; [] for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return [Address(family, (host, port) if family == socket.AF_INET else (host, port, 0, 0))]
    return []


async def resolve(executor: Executor, host: str, port: int, timeout: float) -> List[Address]:
    """Return all addresses of a host, in the order of getaddrinfo().

    Raises, with the stage DNS: KafkaConnectionError for an unknown name or an invalid port,
    KafkaTimeoutError if the lookup takes longer than `timeout` seconds.
    """
    if not 0 < port <= MAX_PORT:  # getaddrinfo() would take it modulo 65536
        error = KafkaConnectionError('%s:%d: a port is from 1 to %d' % (host, port, MAX_PORT))
        raise at_stage(error, 'DNS')
    known = literal(host, port)
    if known:
        return known
    try:
        return await executor.run(lambda: look_up(host, port), timeout, 'the look-up of ' + host)
    except KafkaError as error:
        raise at_stage(error, 'DNS') from error.__cause__


def look_up(host: str, port: int) -> List[Address]:
    """Call getaddrinfo(), which blocks. Raises KafkaConnectionError."""
    found: List[Address] = []
    try:
        for family, _, _, _, sockaddr in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
            address = Address(family, sockaddr)
            if address not in found:
                found.append(address)
    except (
        OSError,
        ValueError,
        OverflowError,
    ) as error:  # an unknown or invalid name
        raise KafkaConnectionError('%s cannot be resolved: %s' % (host, error)) from error
    return found


def canonical_name(address: Address) -> str:
    """Return the canonical name of an address, or the address if it has none."""
    try:
        return socket.getnameinfo(address.sockaddr, 0)[0]
    except OSError:
        return address.ip
