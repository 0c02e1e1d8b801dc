"""Parser of broker lists: ``host:port`` in all forms that earlier releases accepted.

Used by all clients. Host names are resolved later, when a connection is opened.
"""

from __future__ import annotations

import random
import socket
from typing import Any, Iterable, List, Tuple, Union

from kafka.config.kinds import with_brackets, without_protocol
from kafka.errors import KafkaConfigurationError

__all__ = ['DEFAULT_KAFKA_PORT', 'MAX_PORT', 'Host', 'collect_hosts', 'get_ip_port_afi']

DEFAULT_KAFKA_PORT = 9092
MAX_PORT = 65535

Host = Tuple[str, int, int]


def collect_hosts(hosts: Union[str, Iterable[str]], randomize: bool = True) -> List[Host]:
    """Parse a list of brokers.

    Arguments: hosts: a comma-separated string, or an iterable of strings; each entry is ``host``,
    ``host:port``, an IPv6 address, or an IPv6 address in brackets with or without ``:port``;
    randomize: whether to shuffle the result.

    Returns (host, port, address family) triples; the default port is 9092.
    Raises TypeError if an entry is neither str nor bytes, KafkaConfigurationError for an invalid
    port, a password, a path, or the scheme of another protocol.

    From 1.0 on; 0.9.5 returned pairs, which are the first two elements.
    """
    try:
        if isinstance(hosts, (str, bytes)):
            entries = _text(hosts).split(',')
        else:
            entries = [_text(entry) for entry in hosts]
    except (TypeError, UnicodeDecodeError) as error:
        raise TypeError('hosts must be text or an iterable of texts, not %r' % (hosts,)) from error
    result = [get_ip_port_afi(entry) for entry in entries if entry.strip()]
    if randomize:
        random.shuffle(result)
    return result


def get_ip_port_afi(host_and_port_str: str) -> Host:
    """Parse the address of one broker; see collect_hosts().

    The family is AF_INET or AF_INET6 for an IP address, AF_INET6 for anything in brackets, and
    AF_UNSPEC for a name. A negative port is replaced by 9092. From the 1.x releases.
    """
    try:
        text = with_brackets(without_protocol(_text(host_and_port_str)))
    except ValueError as error:
        raise KafkaConfigurationError(str(error)) from error
    if '@' in text:
        raise KafkaConfigurationError(
            'the address %r has a user or password in it: give sasl_plain_username and'
            ' sasl_plain_password' % ('***@' + text.rpartition('@')[2])
        )
    if '/' in text:
        raise KafkaConfigurationError(
            'the address %r has a path in it, which brokers have not as ZooKeeper has' % text
        )
    if text.startswith('['):
        host, _, rest = text[1:].partition(']')
        return host, _port(rest.strip().lstrip(':'), text), socket.AF_INET6
    if _is_address(socket.AF_INET6, text):
        return text, DEFAULT_KAFKA_PORT, socket.AF_INET6
    host, _, port = text.rpartition(':') if ':' in text else (text, '', '')
    host = host.strip()
    family = socket.AF_INET if _is_address(socket.AF_INET, host) else socket.AF_UNSPEC
    return host, _port(port, text), family


def _text(entry: Any) -> str:
    if isinstance(entry, bytes):
        return entry.decode('utf-8')
    if isinstance(entry, str):
        return entry
    raise TypeError('not text: %r' % (entry,))


def _port(text: str, whole: str) -> int:
    try:
        port = int(text) if text.strip() else DEFAULT_KAFKA_PORT
    except ValueError as error:
        raise KafkaConfigurationError('the port in %r is no number' % whole) from error
    if port > MAX_PORT:
        # getaddrinfo() takes the port modulo 65536: it would connect to some other service.
        raise KafkaConfigurationError('the port in %r is beyond %d' % (whole, MAX_PORT))
    return DEFAULT_KAFKA_PORT if port < 0 else port


def _is_address(family: int, text: str) -> bool:
    try:
        socket.inet_pton(family, text)
    except (OSError, ValueError):
        return False
    return True
