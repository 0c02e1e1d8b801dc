"""Handshakes with proxies: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110).

A handshake is a generator. It yields bytes to send (b'' to only wait) and is sent the received
bytes, b'' when the proxy has closed the connection. When it returns, the connection leads to the
broker. The connect conversation (connect.py) runs it.

With ``socks5`` the client resolves the broker's name and sends an address to the proxy, with
``socks5h`` and ``http`` the proxy resolves the name: see :func:`resolves_names`. Pure.
"""

from __future__ import annotations

import base64
import ipaddress
import struct
from typing import Any, Generator, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urlsplit

from kafka.errors import InvalidOptionError
from kafka.net.failures import ProxyError

__all__ = ['Handshake', 'ProxyAddress', 'handshake', 'parse', 'resolves_names', 'shown']

Handshake = Generator[bytes, bytes, None]
_Reading = Generator[bytes, bytes, bytes]

DEFAULT_PORTS = {'socks5': 1080, 'socks5h': 1080, 'http': 8080}
MAX_HEADER_BYTES = 16 * 1024

_REPLIES = {
    1: 'general failure',
    2: 'its rules do not allow the connection',
    3: 'the network cannot be reached',
    4: 'the host cannot be reached',
    5: 'the broker refused the connection',
    6: 'the way is too long (TTL expired)',
    7: 'it does not do CONNECT',
    8: 'it does not do this kind of address',
}


class ProxyAddress(NamedTuple):
    """The address and credentials of a proxy."""

    scheme: str
    host: str
    port: int
    username: Optional[str]
    password: Optional[str]

    def __repr__(self) -> str:
        return '<ProxyAddress %s>' % self.shown

    @property
    def shown(self) -> str:
        """The URL without credentials."""
        host = '[%s]' % self.host if ':' in self.host else self.host
        user = '' if self.username is None else '***@'
        return '%s://%s%s:%d' % (self.scheme, user, host, self.port)


def parse(url: Any) -> ProxyAddress:
    """Parse the URL of a proxy.

    Raises KafkaConfigurationError, whose text does not show what may be a password.
    """
    if not isinstance(url, str):
        raise InvalidOptionError('a proxy is a URL, not %s' % type(url).__name__)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidOptionError('the URL of the proxy has no usable port') from error
    if parts.scheme not in DEFAULT_PORTS:
        raise InvalidOptionError(
            'a proxy is %s, not %r'
            % (', '.join(s + '://host:port' for s in DEFAULT_PORTS), parts.scheme)
        )
    if not parts.hostname or parts.path not in ('', '/') or parts.query:
        raise InvalidOptionError(
            'a proxy is %s://host:port, or %s://user:password@host:port' % ((parts.scheme,) * 2)
        )
    user, password = parts.username, parts.password
    return ProxyAddress(
        parts.scheme,
        parts.hostname,
        DEFAULT_PORTS[parts.scheme] if port is None else port,
        None if user is None else unquote(user),
        None if password is None else unquote(password),
    )


def shown(url: str) -> str:
    """Return a proxy's URL without credentials, for error texts and logs."""
    return parse(url).shown


def resolves_names(url: str) -> bool:
    """Return True if the proxy resolves names; otherwise handshake() needs an address as host."""
    return parse(url).scheme != 'socks5'


def handshake(url: str, host: str, port: int) -> Handshake:
    """Request a connection to a broker from the proxy.

    Arguments: url: as parse(); host: a name or an address.
    Raises ProxyError with the response of the proxy.
    """
    address = parse(url)
    steps = _connect_http if address.scheme == 'http' else _connect_socks
    return steps(address, host, port)


# ---------------------------------------------------------------- reading


class _Reader:
    """Buffers the bytes received from a proxy."""

    def __init__(self, address: ProxyAddress) -> None:
        self.address = address
        self.data = bytearray()

    def more(self, to_send: bytes = b'') -> Generator[bytes, bytes, None]:
        """Send bytes and wait for more bytes. Raises ProxyError at the end of the stream."""
        received = yield to_send
        if not received:
            raise ProxyError(
                'the proxy %s closed the connection in the middle of its handshake%s'
                % (self.address.shown, '' if self.data else '; is it one of this kind?')
            )
        self.data += received

    def exactly(self, count: int, to_send: bytes = b'') -> _Reading:
        """Send bytes, and return `count` received bytes."""
        if to_send or len(self.data) < count:
            yield from self.more(to_send)
        while len(self.data) < count:
            yield from self.more()
        taken = bytes(self.data[:count])
        del self.data[:count]
        return taken

    def end(self) -> None:
        """Raise ProxyError if bytes are left: a broker sends nothing before the first request."""
        if self.data:
            raise ProxyError(
                'after the answer of the proxy %s came %d bytes that belong to no request'
                % (self.address.shown, len(self.data))
            )


# ---------------------------------------------------------------- SOCKS5

_NO_LOGIN, _PASSWORD, _NONE_ACCEPTED = 0, 2, 0xFF
_VERSION, _LOGIN_VERSION, _CONNECT = 5, 1, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4


def _connect_socks(address: ProxyAddress, host: str, port: int) -> Handshake:
    reader = _Reader(address)
    ways = [_NO_LOGIN] if address.username is None else [_NO_LOGIN, _PASSWORD]
    version, way = yield from reader.exactly(2, bytes([_VERSION, len(ways), *ways]))
    if version != _VERSION:
        raise ProxyError(
            'what answers at %s is not a SOCKS5 proxy: its first byte is %d'
            % (address.shown, version)
        )
    if way == _PASSWORD and address.username is not None:
        yield from _log_in_socks(reader, address)
    elif way != _NO_LOGIN:
        hint = 'a user and a password (socks5://user:password@...)'
        raise ProxyError(
            'the proxy %s demands %s'
            % (address.shown, hint if len(ways) == 1 else 'a login that is not offered here')
        )
    yield from _ask_socks(reader, host, port)
    reader.end()


def _log_in_socks(reader: _Reader, address: ProxyAddress) -> Handshake:
    user = (address.username or '').encode('utf-8')
    password = (address.password or '').encode('utf-8')
    if not 0 < len(user) < 256 or len(password) > 255:
        raise ProxyError('user and password of a SOCKS5 proxy have at most 255 bytes')
    token = struct.pack('>BB', _LOGIN_VERSION, len(user)) + user + bytes([len(password)]) + password
    _, status = yield from reader.exactly(2, token)
    if status:
        raise ProxyError('the proxy %s refused user or password' % address.shown)


def _ask_socks(reader: _Reader, host: str, port: int) -> Handshake:
    question = bytes([_VERSION, _CONNECT, 0]) + _socks_address(host) + struct.pack('>H', port)
    version, status, _, kind = yield from reader.exactly(4, question)
    if version != _VERSION:
        raise ProxyError('the answer of the proxy %s is not SOCKS5' % reader.address.shown)
    if status:
        raise ProxyError(
            'the proxy %s does not connect to %s:%d: %s'
            % (reader.address.shown, host, port, _REPLIES.get(status, 'code %d' % status))
        )
    if kind == _NAME:
        (length,) = yield from reader.exactly(1)
    else:
        length = 16 if kind == _IPV6 else 4
    yield from reader.exactly(length + 2)


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = _encoded_name(host)
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


def _encoded_name(host: str) -> bytes:
    try:
        name = host.encode('ascii') if host.isascii() else host.encode('idna')
    except UnicodeError as error:
        raise ProxyError('%r can be no name of a host' % host) from error
    if not 0 < len(name) < 256:
        raise ProxyError('%r can be no name of a host' % host)
    return name


# ---------------------------------------------------------------- HTTP


def _connect_http(address: ProxyAddress, host: str, port: int) -> Handshake:
    name = _encoded_name(host).decode('ascii')
    target = '[%s]:%d' % (name, port) if ':' in name else '%s:%d' % (name, port)
    if any(each <= ' ' for each in target):
        raise ProxyError('%r can be no name of a host' % host)
    lines = ['CONNECT %s HTTP/1.1' % target, 'Host: ' + target]
    if address.username is not None:
        login = '%s:%s' % (address.username, address.password or '')
        token = base64.b64encode(login.encode('utf-8')).decode('ascii')
        lines.append('Proxy-Authorization: Basic ' + token)
    reader = _Reader(address)
    yield from reader.more('\r\n'.join([*lines, '', '']).encode('ascii'))
    while b'\r\n\r\n' not in reader.data:
        if len(reader.data) > MAX_HEADER_BYTES or not _may_be_http(reader.data):
            raise ProxyError('what answers at %s is not an HTTP proxy' % address.shown)
        yield from reader.more()
    head, _, rest = bytes(reader.data).partition(b'\r\n\r\n')
    code, text = _status(head, address)
    if not 200 <= code < 300:
        hint = '; give it a user and a password (http://user:password@...)' if code == 407 else ''
        raise ProxyError(
            'the proxy %s does not connect to %s: %d %s%s'
            % (address.shown, target, code, text, hint)
        )
    reader.data[:] = rest
    reader.end()


def _may_be_http(data: bytearray) -> bool:
    start = bytes(data[:5])
    return b'HTTP/'.startswith(start)


def _status(head: bytes, address: ProxyAddress) -> Tuple[int, str]:
    line = head.split(b'\r\n', 1)[0].decode('latin-1')
    words = line.split(' ', 2)
    if not words[0].startswith('HTTP/') or len(words) < 2 or not words[1].isdecimal():
        raise ProxyError('what answers at %s is not an HTTP proxy' % address.shown)
    return int(words[1]), (words[2] if len(words) > 2 else '')[:100]
