"""Helpers of 0.9.5: length-prefixed strings, grouping, conversion of names to bytes, a timer.

All conversion of names to bytes for the classes of 0.9.5 and 1.x is here (``kafka_bytestring``,
``name_for``), and in text mode that of keys and values of messages too (``text_bytes``). Messages
of the protocol are defined in ``kafka.protocol``.
"""

from __future__ import annotations

import logging
import math
import numbers
import operator
import os
import struct
import threading
import weakref
import zlib
from typing import Any, Callable, Dict, Iterable, Optional, Protocol, Tuple

from kafka.errors import BufferUnderflowError, ProtocolError

log = logging.getLogger(__name__)

TEXT_SWITCH = 'KAFKA_LEGACY_TEXT'

#: Any: to type checkers float is not a subclass of it, and neither are the numbers of numpy.
_REAL: Any = numbers.Real

_INT16 = struct.Struct('>h')
_INT32 = struct.Struct('>i')


def crc32(data: Any) -> int:
    """Return the CRC-32 of data as an unsigned number; TypeError for anything but bytes."""
    return zlib.crc32(data) & 0xFFFFFFFF


def kafka_bytestring(s: Any) -> bytes:
    """Return bytes unchanged and text as UTF-8 (0.9.5).

    Raises: TypeError for anything else; UnicodeEncodeError, a ValueError, for text that cannot be
        encoded as UTF-8 (lone surrogates).
    """
    if isinstance(s, bytes):
        return s
    if isinstance(s, str):
        return s.encode('utf-8')
    raise TypeError(s)


def name_bytes(name: Any, argument: str) -> bytes:
    """Return the name of a topic, group or client as bytes.

    Raises: TypeError for anything but str and bytes, ValueError for text that cannot be encoded as
        UTF-8; both name the argument.
    """
    try:
        return kafka_bytestring(name)
    except TypeError:
        raise TypeError(
            '%s must be str or bytes, not %s: %r' % (argument, type(name).__name__, name)
        ) from None
    except UnicodeEncodeError:
        raise ValueError('%s cannot be written as UTF-8: %r' % (argument, name)) from None


def takes_names_as_given(client: object) -> bool:
    """Return True if a client is one of 1.x, whose class has ``names_as_given = True``.

    The class is checked, not the object: a mock may answer every attribute with a true value. It is
    the class that isinstance() uses, so a proxy of a client counts as that client.
    """
    return getattr(client.__class__, 'names_as_given', False) is True


def name_for(client: object, name: Any, argument: str = 'topic') -> Any:
    """Return a topic or group name in the form that the client uses.

    That is bytes, or the name itself for a client that takes names as they are given.

    Raises: as name_bytes, if it is converted to bytes.
    """
    return name if takes_names_as_given(client) else name_bytes(name, argument)


class _LoadsTopics(Protocol):
    """A client with metadata of topics."""

    def load_metadata_for_topics(self, *topics: Any) -> None:
        """Load the metadata of topics."""


def load_topic(client: _LoadsTopics, topic: Any) -> None:
    """Load the metadata of a topic; with a client of 1.x, one that is being created is accepted.

    Raises: what the client raises.
    """
    load: Any = client.load_metadata_for_topics
    if takes_names_as_given(client):
        load(topic, ignore_leadernotavailable=True)
    else:
        load(topic)


class _TextMode:
    """How str keys and values are encoded, and whether that was logged already."""

    encoding: Optional[str] = None
    is_told = False


def set_text_mode(encoding: Optional[str]) -> None:
    """Let the producers of 0.9.5 and SimpleClient, and create_message, accept text.

    Python 2 programs sent ``'text'``, which was bytes. In text mode str keys and values of messages
    are encoded, which is logged once; names in requests made directly are encoded as UTF-8, as
    names are elsewhere. Without text mode, the default, they raise TypeError as in 0.9.5 on
    Python 3. Consumed messages are bytes in either case.

    Arguments: encoding: of the bytes, such as ``'utf-8'``; None switches text mode off. Its initial
        value is the environment variable KAFKA_LEGACY_TEXT; ``python -m kafka run`` sets utf-8.
    Raises: ValueError for an encoding that Python does not know, TypeError for anything but str.
    """
    if encoding is not None:
        try:
            'a'.encode(encoding)
        except (LookupError, ValueError):
            raise ValueError('%r is not an encoding of text' % (encoding,)) from None
    _TextMode.encoding = encoding
    _TextMode.is_told = False


def _set_text_mode_from_environment() -> None:
    encoding = os.environ.get(TEXT_SWITCH)
    try:
        set_text_mode(encoding or None)
    except ValueError as error:
        raise ValueError('environment variable %s: %s' % (TEXT_SWITCH, error)) from None


_set_text_mode_from_environment()


def text_bytes(value: Any, argument: str) -> Optional[bytes]:
    """Return a str key or value as bytes in text mode; None for other values, and when it is off.

    Raises: ValueError naming the argument for text that the encoding cannot represent.
    """
    encoding = _TextMode.encoding
    if encoding is None or not isinstance(value, str):
        return None
    try:
        encoded = value.encode(encoding)
    except UnicodeEncodeError as error:
        raise ValueError(
            '%s cannot be written as %s, the encoding of text mode: %s at character %d'
            % (argument, encoding, error.reason, error.start)
        ) from None
    if not _TextMode.is_told:
        _TextMode.is_told = True
        log.warning(
            'str keys and values of messages are encoded as %s: text mode is on '
            '(%s, kafka.util.set_text_mode; kafka run --no-text)',
            encoding,
            TEXT_SWITCH,
        )
    return encoded


def name_in_text_mode(name: Any, argument: str) -> Any:
    """Return the str name of a topic or group as UTF-8 in text mode; otherwise unchanged.

    For requests made directly, whose names must be bytes without text mode. Raises: as name_bytes.
    """
    if _TextMode.encoding is None or not isinstance(name, str):
        return name
    return name_bytes(name, argument)


def shown(name: Any) -> str:
    """Return a name, which may be bytes, as text for logs and errors.

    ``'%s' % b't'`` gives the same text, but ``python -b`` warns about it.
    """
    return repr(name) if isinstance(name, bytes) else str(name)


def whole_number(value: Any, argument: str) -> int:
    """Return an integer of any type as int; raise TypeError naming the argument otherwise."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError('%s must be an int, not %s' % (argument, type(value).__name__)) from None


def whole_ms(value: Any, argument: str) -> int:
    """Return a time in milliseconds, a number of any type, as int; fractions are truncated.

    Raises: TypeError naming the argument unless it is a number; ValueError for NaN and infinity.
    """
    if type(value) is int:
        return value
    if not isinstance(value, _REAL):
        return whole_number(value, argument)
    if not math.isfinite(value):
        raise ValueError('%s must be a finite number of milliseconds, got %r' % (argument, value))
    return int(value)


def check_number(value: Any, argument: str) -> None:
    """Raise TypeError naming the argument unless the value is a real number."""
    if not isinstance(value, numbers.Real):
        raise TypeError('%s must be a number, not %s' % (argument, type(value).__name__))


def _write_string(length: struct.Struct, s: Optional[bytes]) -> bytes:
    if s is None:
        return length.pack(-1)
    if not isinstance(s, bytes):
        raise TypeError('expected %s to be bytes: %r' % (type(s).__name__, s))
    return length.pack(len(s)) + s


def write_int_string(s: Optional[bytes]) -> bytes:
    """Return an int32 length and the bytes; length -1 for None.

    Raises: TypeError for anything but bytes and None.
    """
    return _write_string(_INT32, s)


def write_short_string(s: Optional[bytes]) -> bytes:
    """Return an int16 length and the bytes; length -1 for None.

    Raises: TypeError for anything but bytes and None; struct.error for more than 32767 bytes.
    """
    return _write_string(_INT16, s)


def _read_string(length: struct.Struct, data: bytes, cur: int) -> Tuple[Optional[bytes], int]:
    start = cur + length.size
    if len(data) < start:
        raise BufferUnderflowError('%d bytes end within a length at %d' % (len(data), cur))
    (size,) = length.unpack_from(data, cur)
    if size == -1:
        return None, start
    if size < 0:
        raise ProtocolError('negative length %d at %d' % (size, cur))
    if len(data) < start + size:
        raise BufferUnderflowError(
            '%d bytes end before the %d announced at %d' % (len(data), size, cur)
        )
    return data[start : start + size], start + size


def read_int_string(data: bytes, cur: int) -> Tuple[Optional[bytes], int]:
    """Read an int32 length and that many bytes at position cur.

    Returns: the bytes, or None for length -1, and the position after them.
    Raises: BufferUnderflowError when data ends too early; ProtocolError for a length below -1.
    """
    return _read_string(_INT32, data, cur)


def read_short_string(data: bytes, cur: int) -> Tuple[Optional[bytes], int]:
    """Read an int16 length and that many bytes at position cur; otherwise as read_int_string."""
    return _read_string(_INT16, data, cur)


def relative_unpack(fmt: str, data: bytes, cur: int) -> Tuple[Tuple[Any, ...], int]:
    """Unpack a struct format at position cur.

    Returns: the tuple of values and the position after them.
    Raises: BufferUnderflowError when data ends too early.
    """
    end = cur + struct.calcsize(fmt)
    if len(data) < end:
        raise BufferUnderflowError('%d bytes end before position %d' % (len(data), end))
    return struct.unpack_from(fmt, data, cur), end


def group_by_topic_and_partition(tuples: Iterable[Any]) -> Dict[Any, Dict[int, Any]]:
    """Return {topic: {partition: item}} in the order of the tuples.

    Raises: AssertionError when a topic and partition come twice.
    """
    grouped: Dict[Any, Dict[int, Any]] = {}
    for item in tuples:
        partitions = grouped.setdefault(item.topic, {})
        if item.partition in partitions:
            raise AssertionError('more than one item for %r %r' % (item.topic, item.partition))
        partitions[item.partition] = item
    return grouped


class WeakMethod:
    """A method that can be called without keeping its object alive (1.x).

    Arguments: bound_method: of an object that supports weak references. Instances for the same
    object and function are equal. Calling raises ReferenceError once the object is gone.
    """

    def __init__(self, bound_method: Any) -> None:
        self.target = weakref.ref(bound_method.__self__)
        self.method = weakref.ref(bound_method.__func__)
        self._identity = id(bound_method.__self__), id(bound_method.__func__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method and return what it returns."""
        target, method = self.target(), self.method()
        if target is None or method is None:
            raise ReferenceError('the object of the method is gone')
        return method(target, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakMethod) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def _held_lock() -> Any:
    """Return a held lock: releasing it wakes a waiter and, unlike Event.set, takes no lock."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class ReentrantTimer:
    """A background timer that calls a function periodically, and can be restarted.

    Arguments: t: interval in ms, more than 0; fn: the function to call, with args and kwargs. The
    attribute t holds the interval in seconds. Exceptions of fn are logged, and the timer continues.
    Raises: ValueError if t is not positive or fn is not callable.
    """

    def __init__(self, t: float, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not isinstance(t, _REAL):
            raise TypeError('t must be ms, not %s' % type(t).__name__)
        if not t > 0:
            raise ValueError('t must be more than 0 ms: %r' % (t,))
        if not callable(fn):
            raise ValueError('fn must be callable: %r' % (fn,))
        self.t = float(t) / 1000
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.thread: Optional[threading.Thread] = None
        self._stop = _held_lock()

    def __repr__(self) -> str:
        state = 'stopped' if self.thread is None else 'running'
        return '<ReentrantTimer every %s s, %s>' % (self.t, state)

    def _run(self, stop: Any) -> None:
        # A longer interval than threads can wait for means "never".
        while not stop.acquire(timeout=min(self.t, threading.TIMEOUT_MAX)):
            try:
                self.fn(*self.args, **self.kwargs)
            except Exception:
                # A failed call must not end the calls that follow.
                log.exception('timed call of %r failed', self.fn)

    def start(self) -> None:
        """Start calling, first after one interval; a running timer is stopped first."""
        if self.thread is not None:
            self.stop()
        # One lock per run: a thread that outlived its stop() must not continue in the next run.
        self._stop = _held_lock()
        self.thread = threading.Thread(
            target=self._run, args=(self._stop,), name='kafka timer', daemon=True
        )
        self.thread.start()

    def cancel(self) -> None:
        """Stop the thread without waiting; takes no lock, so that a finalizer can call it."""
        try:
            self._stop.release()
        except RuntimeError:  # cancelled before
            pass

    def stop(self) -> None:
        """Stop calling, and wait for a running call, for at most one interval and a second."""
        self.cancel()
        thread, self.thread = self.thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(min(self.t + 1, threading.TIMEOUT_MAX))
