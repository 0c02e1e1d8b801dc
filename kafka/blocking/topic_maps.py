"""TopicDict: a dict of topics that finds an entry by ``str`` and ``bytes`` alike.

The maps of KafkaClient and SimpleClient. 0.9.5 keyed its maps by the bytes of the wire, and
programs look topics up as text too; both find the entry. An entry keeps the key it was stored
under, so that the maps compare equal to plain dicts with the decoded keys. Pure.
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any, Dict, Iterable, TypeVar

_Map = TypeVar('_Map', bound='TopicDict')

_ABSENT = object()
# str and equal bytes have the same hash, so that a dict compares them, and `python -b` warns.
_WARNS = bool(sys.flags.bytes_warning)
# Most look-ups use the spelling of the stored key, so that is tried first.
_exact: Any = (lambda topics, key, default: default) if _WARNS else dict.get


def _respelled(topic: Any) -> Any:
    """Return a topic in its other spelling, str or bytes; itself if it has none."""
    try:
        if isinstance(topic, bytes):
            return topic.decode('utf-8')
        if isinstance(topic, str):
            return topic.encode('utf-8')
    except UnicodeError:
        pass  # not UTF-8, so there is no second spelling
    return topic


def _same_topic(one: Any, other: Any) -> bool:
    """Return True if keys mean the same topic; str is never compared with bytes."""
    if isinstance(one, tuple) and isinstance(other, tuple) and one and other:
        return one[1:] == other[1:] and _same_topic(one[0], other[0])
    if isinstance(one, bytes) is not isinstance(other, bytes):
        one = _respelled(one)
    return isinstance(one, bytes) is isinstance(other, bytes) and bool(one == other)


def has_exactly(topics: Dict[Any, Any], key: Any) -> bool:
    """Return True if a dict has an entry under a key in this exact spelling."""
    if _WARNS:
        return any(type(stored) is type(key) and stored == key for stored in topics)
    return dict.__contains__(topics, key)


class TopicDict(Dict[Any, Any]):
    """A dict whose keys are topics, or tuples that begin with one (``TopicAndPartition``).

    Every access treats ``str`` and ``bytes`` as the same topic. A new entry keeps the spelling of
    its key; storing under the other spelling replaces the value. Comparison is that of ``dict``.
    """

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        if args or kwargs:
            self.update(*args, **kwargs)

    def stored_key(self, key: Any) -> Any:
        """Return the key under which an entry is stored, or `key` itself if it is absent."""
        if _WARNS:
            return next((stored for stored in self if _same_topic(stored, key)), key)
        if super().__contains__(key):
            return key
        if isinstance(key, tuple) and key:
            other: Any = (_respelled(key[0]),) + tuple(key[1:])
        else:
            other = _respelled(key)
        # A dict does not give access to the stored key object; an equal key does as well.
        return other if super().__contains__(other) else key

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(self.stored_key(key))

    def __getitem__(self, key: Any) -> Any:
        found = _exact(self, key, _ABSENT)
        return super().__getitem__(self.stored_key(key)) if found is _ABSENT else found

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self.stored_key(key) if self else key, value)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(self.stored_key(key))

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key in either spelling, or `default`."""
        found = _exact(self, key, _ABSENT)
        return super().get(self.stored_key(key), default) if found is _ABSENT else found

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key in either spelling; store `default` if it is absent."""
        return super().setdefault(self.stored_key(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key in either spelling and return its value (or the default, if given)."""
        return super().pop(self.stored_key(key), *default)

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Store all entries of a mapping or of an iterable of pairs."""
        pairs = [(key, other[key]) for key in other.keys()] if hasattr(other, 'keys') else other
        for key, value in chain(pairs, kwargs.items()):
            self[key] = value

    def copy(self: _Map) -> _Map:
        """Return a shallow copy of the same kind."""
        made = type(self)()
        dict.update(made, self)  # in one step: another thread may change it
        return made

    @classmethod
    def fromkeys(cls, iterable: Iterable[Any], value: Any = None) -> TopicDict:
        """Return a map with these keys and one common value."""
        return cls((key, value) for key in iterable)

    def __or__(self: _Map, other: Any) -> _Map:
        if not isinstance(other, dict):
            return NotImplemented
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self: _Map, other: Any) -> _Map:
        if not isinstance(other, dict):
            return NotImplemented
        merged = type(self)(other)
        merged.update(self)
        return merged

    def __ior__(self: _Map, other: Any) -> _Map:
        self.update(other)
        return self
