"""The names of kafka.vendor.six (1.3 to 2.x), with the behaviour of six on Python 3.

Without ``exec_``, whose replacement is ``exec``, and the parts for Python 2 only.
"""

from __future__ import annotations

import io
import operator
import sys
from builtins import callable as callable
from functools import wraps as wraps
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, TypeVar

from kafka.vendor.six import moves as moves

T = TypeVar('T')

PY2, PY3, PY34 = False, True, True
MAXSIZE = sys.maxsize
string_types: Tuple[type, ...] = (str,)
integer_types: Tuple[type, ...] = (int,)
class_types: Tuple[type, ...] = (type,)
text_type, binary_type = str, bytes
StringIO, BytesIO = io.StringIO, io.BytesIO

unichr = chr
print_ = print
next = advance_iterator = next
byte2int = operator.itemgetter(0)
indexbytes = operator.getitem
iterbytes = iter
int2byte = operator.methodcaller('to_bytes', 1, 'big')
viewkeys = operator.methodcaller('keys')
viewvalues = operator.methodcaller('values')
viewitems = operator.methodcaller('items')
get_method_function = operator.attrgetter('__func__')
get_method_self = operator.attrgetter('__self__')
get_function_closure = operator.attrgetter('__closure__')
get_function_code = operator.attrgetter('__code__')
get_function_defaults = operator.attrgetter('__defaults__')
get_function_globals = operator.attrgetter('__globals__')


def b(text: str) -> bytes:
    """Return the bytes of a literal."""
    return text.encode('latin-1')


def u(text: str) -> str:
    """Return the text of a literal."""
    return text


def iterkeys(mapping: Any, **options: Any) -> Iterator[Any]:
    """Return an iterator over the keys of a mapping."""
    return iter(mapping.keys(**options))


def itervalues(mapping: Any, **options: Any) -> Iterator[Any]:
    """Return an iterator over the values of a mapping."""
    return iter(mapping.values(**options))


def iteritems(mapping: Any, **options: Any) -> Iterator[Tuple[Any, Any]]:
    """Return an iterator over the pairs of a mapping."""
    return iter(mapping.items(**options))


def iterlists(mapping: Any, **options: Any) -> Iterator[Tuple[Any, List[Any]]]:
    """Return an iterator over the keys of a mapping that has lists(), with their lists."""
    return iter(mapping.lists(**options))


def ensure_binary(text: Any, encoding: str = 'utf-8', errors: str = 'strict') -> bytes:
    """Return text or bytes as bytes. Raises TypeError for anything else."""
    if isinstance(text, str):
        return text.encode(encoding, errors)
    if isinstance(text, bytes):
        return text
    raise TypeError('neither str nor bytes: %s' % type(text).__name__)


def ensure_text(text: Any, encoding: str = 'utf-8', errors: str = 'strict') -> str:
    """Return text or bytes as text. Raises TypeError for anything else."""
    if isinstance(text, bytes):
        return text.decode(encoding, errors)
    if isinstance(text, str):
        return text
    raise TypeError('neither str nor bytes: %s' % type(text).__name__)


ensure_str = ensure_text


def reraise(kind: Any, value: Optional[BaseException], traceback: Any = None) -> None:
    """Raise a caught exception again, with its traceback."""
    raise (kind() if value is None else value).with_traceback(traceback)


def raise_from(error: BaseException, cause: Optional[BaseException]) -> None:
    """Raise an exception with a cause."""
    raise error from cause


def with_metaclass(meta: Any, *bases: type) -> Any:
    """Return a base for a class statement, which creates the class by a metaclass, with these
    bases."""

    class Once(type):
        def __new__(cls, name: str, _: Any, body: Any) -> Any:
            return meta(name, bases, body)

    return type.__new__(Once, 'once', (), {})


def add_metaclass(meta: Any) -> Callable[[Any], Any]:
    """Return a decorator that creates a class again by a metaclass."""

    def made_anew(cls: Any) -> Any:
        body = dict(vars(cls))
        for name in ('__dict__', '__weakref__', *_slots(cls)):
            body.pop(name, None)
        return meta(cls.__name__, cls.__bases__, body)

    return made_anew


def _slots(cls: Any) -> Iterable[str]:
    slots = vars(cls).get('__slots__', ())
    return (slots,) if isinstance(slots, str) else slots


def python_2_unicode_compatible(cls: T) -> T:
    """Return a class unchanged."""
    return cls
