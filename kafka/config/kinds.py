"""The kinds of option values: check, conversion, unit, and description for errors and docs.

Each kind checks one value by itself; rules between options are in ``contradictions.py``. A kind
converts a value to the form that the clients use, and refuses it with Unfit or UnfitType, with a
hint if there is one.
"""

from __future__ import annotations

import datetime
import difflib
import math
import numbers
import re
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Tuple

from kafka.config.secrets import hide, hide_key, hide_login, is_pem

INT32_MAX = 2**31 - 1

Convert = Callable[[Any], Any]


class Kind(NamedTuple):
    """A kind of option value.

    text: describes it in errors and documents; convert: see above; is_secret: mask it in output.
    """

    text: str
    convert: Convert
    is_secret: bool = False


class Unfit(Exception):
    """A value is not of its kind. args: a hint, if there is one. is_type: its type is wrong."""

    is_type = False


class UnfitType(Unfit):
    """A value is of a wrong type."""

    is_type = True


def _number(value: Any, hint: str = '') -> Any:
    """Return a number of any numeric type as int or float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UnfitType(hint)
    if isinstance(value, (int, numbers.Integral)):
        return int(value)
    value = float(value)
    if math.isnan(value):
        raise Unfit()
    return value


def _bounded(value: Any, low: float, high: float, hint: str = '') -> Any:
    if not low <= value <= high:
        raise Unfit(hint)
    return value


def _or_none(text: str, convert: Convert, none: bool) -> Kind:
    if not none:
        return Kind(text, convert)
    return Kind(text + ', or None', lambda value: None if value is None else convert(value))


def _bounds(low: float, high: float) -> str:
    if high == math.inf:
        return ', %d or more' % low if low > -math.inf else ''
    return ', from %d to %d' % (low, high)


def milliseconds(
    low: float = 0, high: float = math.inf, never: bool = False, none: bool = False
) -> Kind:
    """Return a kind for times. high: INT32_MAX if the time is sent to the broker, math.inf for
    times that may be infinite; never: whether negative numbers mean infinite as well."""

    def convert(value: Any) -> Any:
        hint = ''
        if isinstance(value, datetime.timedelta):
            hint = 'a timedelta is not supported: write %d' % (value.total_seconds() * 1000)
        elif isinstance(value, str):
            hint = 'milliseconds are given as a number, without a unit'
        number = _number(value, hint)
        if never and number < 0:
            return number
        if number < math.inf and number > 10 * INT32_MAX > high:
            hint = 'the unit is milliseconds'
        return _bounded(number, low, high, hint)

    text = 'a number of milliseconds' + _bounds(low, high)
    if never:
        text += '; negative for no limit'
    return _or_none(text, convert, none)


def whole(
    low: float = 0,
    high: float = INT32_MAX,
    none: bool = False,
    unit: str = '',
    infinite: bool = False,
) -> Kind:
    """Return a kind for counts and sizes; infinite: whether math.inf means no limit."""

    def convert(value: Any) -> Any:
        number = _number(value, unit and isinstance(value, str) and 'the unit is %s' % unit or '')
        if number == math.inf and infinite:
            return number
        if not math.isfinite(number) or number != int(number):
            raise Unfit()
        return int(_bounded(number, low, high))

    text = 'a whole number' + (' of ' + unit if unit else '') + _bounds(low, high)
    return _or_none(text + (', or infinite' if infinite else ''), convert, none)


def size(low: float = 0, high: float = INT32_MAX, none: bool = False) -> Kind:
    """Return a kind for numbers of bytes."""
    return whole(low, high, none, 'bytes')


def _flag(value: Any) -> bool:
    # Not bool(value): the text 'false' would be True.
    if isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    raise UnfitType("text such as 'false' is not a bool" if isinstance(value, str) else '')


FLAG = Kind('True or False', _flag)


def text(none: bool = True, empty: bool = False, convert: Convert = lambda value: value) -> Kind:
    """Return a kind for text; convert: a further conversion of the text."""

    def check(value: Any) -> Any:
        if not isinstance(value, str):
            hint = 'bytes are not text: decode them' if isinstance(value, bytes) else ''
            raise UnfitType(hint)
        if not value and not empty:
            raise Unfit()
        return convert(value)

    return _or_none('text' if empty else 'text that is not empty', check, none)


def _client_id(value: str) -> str:
    size = len(value.encode('utf-8', 'surrogatepass'))
    if size > MOST_TEXT_BYTES:
        raise Unfit('it has %d bytes' % size)
    return value


#: The header of requests has 2 bytes for the length of the client id.
MOST_TEXT_BYTES = 32767
CLIENT_ID = _or_none(
    'text of at most %d bytes' % MOST_TEXT_BYTES,
    text(none=False, empty=True, convert=_client_id).convert,
    True,
)


def choice(
    words: Iterable[str],
    none: bool = False,
    also: Optional[Mapping[Any, Any]] = None,
    fold: Callable[[str], str] = str,
    meant: Optional[Mapping[str, str]] = None,
) -> Kind:
    """Return a kind for words. also: other accepted values and their meaning; fold: normalises
    case; meant: words that are not accepted, and the words to suggest instead."""
    known = list(words)
    others = dict(also or {})

    def convert(value: Any) -> Any:
        if not isinstance(value, bool) and isinstance(value, (str, int)) and value in others:
            return others[value]
        if not isinstance(value, str):
            raise UnfitType()
        if fold(value) not in known:
            near = difflib.get_close_matches(fold(value), known, 1)
            hint = (meant or {}).get(fold(value), near[0] if near else '')
            raise Unfit('did you mean %r?' % hint if hint else '')
        return fold(value)

    listed = ', '.join(repr(each) for each in [*known, *others])
    return _or_none('one of ' + listed, convert, none)


def _acks(value: Any) -> int:
    if isinstance(value, str):
        if value.lower() != 'all':
            raise Unfit("'1' is text, 1 is a number" if value in ('0', '1', '-1') else '')
        return -1
    number = _number(value)
    if number not in (0, 1, -1):
        raise Unfit()
    return int(number)


ACKS = Kind("0, 1, -1 or 'all'", _acks)


def _release(value: Any) -> Optional[Tuple[int, ...]]:
    if value is None or isinstance(value, str) and value == 'auto':
        return None
    if isinstance(value, str):
        parts: Any = value.split('.')
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise Unfit()
        value = tuple(int(part) for part in parts)
    if not isinstance(value, (tuple, list)):
        raise UnfitType('0.1 and 0.10 are the same float' if isinstance(value, float) else '')
    if not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        raise UnfitType()
    if not value or len(value) > 4 or min(value) < 0 or tuple(value) < (0, 8):
        raise Unfit()
    return tuple(value)


RELEASE = Kind('a tuple of numbers such as (2, 8), from (0, 8) on, or None', _release)


_PROTOCOLS = ('PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL')


def without_protocol(address: str) -> str:
    """Return what follows the listener's name in ``PLAINTEXT://host:port``, or the whole address.

    Raises ValueError for the protocol of something that is not a broker.
    """
    protocol, mark, rest = address.strip().rpartition('://')
    # Listeners may have any name; names of other protocols are written in lower case.
    is_listener = protocol.upper() in _PROTOCOLS or protocol == protocol.upper()
    if mark and (not is_listener or protocol in ('', 'HTTP', 'HTTPS')):
        raise ValueError('%s:// is not a protocol of brokers, write host:port' % protocol[:20])
    return rest


#: Hosts that may precede a port: an IPv6 address with '::' or all groups, and perhaps a zone.
_SHORT_IPV6 = re.compile(r'(?!.*::.*::)(?=.*::)[0-9a-fA-F:]*(?:[0-9a-fA-F]|::)(?:%[^:]+)?')
_WHOLE_IPV6 = re.compile(r'(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?:%[^:]+)?')
_LIKELY_PORT = re.compile(r'[1-9][0-9]{3,4}')


def with_brackets(address: str) -> str:
    """Return ``[::1]:9092`` for ``::1:9092``, and any other address as it is.

    Four or five decimal digits after a complete IPv6 address are read as a port, as in the Java
    client: put the address in brackets if they are a part of it.
    """
    host, mark, port = address.rpartition(':')
    if not mark or address.startswith('[') or not _LIKELY_PORT.fullmatch(port):
        return address
    if _WHOLE_IPV6.fullmatch(host) or _SHORT_IPV6.fullmatch(host):
        return '[%s]:%s' % (host, port)
    return address


def parse_server(address: str) -> Tuple[str, int]:
    """Return host and port of ``host[:port]``, ``[IPv6]:port`` or ``protocol://host:port``.

    Raises ValueError for anything else.
    """
    rest = with_brackets(without_protocol(address))
    if rest.startswith('['):
        host, bracket, port = rest[1:].partition(']')
        if not bracket or port and not port.startswith(':'):
            raise ValueError('%r has an unbalanced bracket' % rest)
        port = port[1:]
    elif rest.count(':') == 1:
        host, _, port = rest.partition(':')
    else:  # a name, or an address of IPv6 without a port
        host, port = rest, ''
    if '@' in rest:
        raise ValueError('it contains a user or password: use sasl_plain_username and such options')
    if '/' in rest:
        raise ValueError('it contains a path, which addresses of brokers do not have')
    if not host or any(each in host for each in ' \t'):
        raise ValueError('the host is missing in %r' % rest[:60])
    if not port:
        return host, 9092
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError('the port in %r must be a number from 1 to 65535' % rest[:60])
    return host, int(port)


def _servers(value: Any) -> Any:
    if isinstance(value, str):
        each = value.split(',')
    elif isinstance(value, (list, tuple, set, frozenset)):
        each = list(value)
    else:
        raise UnfitType()
    if not all(isinstance(one, str) for one in each):
        raise UnfitType('each item of the list must be text')
    each = [part for one in each for part in one.split(',') if part.strip()]
    if not each:
        raise Unfit('the list is empty')
    for one in each:
        try:
            parse_server(one)
        except ValueError as error:
            raise Unfit(str(error)) from None
    return value if isinstance(value, (str, list)) else each


SERVERS = Kind("'host[:port]', several with commas between, or a list of these", _servers)


def function(method: str = '', none: bool = True) -> Kind:
    """Return a kind for callables and for objects that have a method; classes do not count."""

    def convert(value: Any) -> Any:
        has_it = method and callable(getattr(value, method, None))
        if isinstance(value, (str, bytes, bytearray)):  # str.partition() is something else
            has_it = False
        if has_it and isinstance(value, type) and method != 'partition':
            raise UnfitType('an instance is needed, not the class')
        if not has_it and not callable(value):
            raise UnfitType()
        return value

    text = 'callable' + (', or an object with %s()' % method if method else '')
    return _or_none(text, convert, none)


def listed(what: str, check: Callable[[Any], bool]) -> Kind:
    """Return a kind for lists and tuples whose items all pass a check."""

    def convert(value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
            raise UnfitType('put a single item into a list' if value is not None else '')
        for position, each in enumerate(value):
            if not check(each):
                raise UnfitType('item %d, %s, is not one' % (position, _named(each)))
        return value

    return Kind('a list of ' + what, convert)


def _named(item: Any) -> str:
    """Return the name of a class or function, or the type of a value, but never the value."""
    kind = type(item).__name__
    name = getattr(item, '__name__', None)
    return '%s %s' % (kind, name) if isinstance(name, str) else kind


def has_method(*names: str) -> Callable[[Any], bool]:
    """Return a check for classes or objects that have all of the methods."""
    return lambda value: all(callable(getattr(value, name, None)) for name in names)


def anything(what: str = 'anything') -> Kind:
    """Return a kind for values that are checked elsewhere, or not checked."""
    return Kind(what, lambda value: value)


def _password(value: Any) -> Any:
    if value is None or callable(value):
        return value
    if not isinstance(value, (str, bytes, bytearray)):
        raise UnfitType()
    return hide(value)


def _secret(value: Any) -> Any:
    if value is not None and not isinstance(value, str):
        raise UnfitType()
    return hide(value)


SECRET = Kind('text, or None', _secret, True)
KEY_PASSWORD = Kind('text, bytes, a callable that returns it, or None', _password, True)


def _file(value: Any) -> Any:
    if value is None or hasattr(value, '__fspath__'):
        return value
    if not isinstance(value, (str, bytes)):
        raise UnfitType()
    if not value:
        raise Unfit()
    if isinstance(value, bytes) and not is_pem(value):
        raise UnfitType('bytes are read as PEM text, and these are not')
    return hide_key(value)


FILE = Kind('a path, or PEM text, or None', _file)


def _url(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnfitType()
    if '://' not in value:
        raise Unfit()
    return hide_login(value)


PROXY = Kind('a URL such as socks5://host:port, or None', _url)


def _context(value: Any) -> Any:
    if value is not None and not has_method('wrap_bio', 'wrap_socket')(value):
        raise UnfitType()
    return value


TLS_CONTEXT = Kind('an ssl.SSLContext, or None', _context)
