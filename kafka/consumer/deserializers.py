"""Adapters that call the deserializers of all releases in one way.

The constructors of KafkaConsumer and BoundedReader make them; CompletedFetch calls them. A callable
gets (data); an object has a method ``deserialize`` that takes (topic, data) up to 2.3, and (topic,
headers, data) in 3.0.
"""

from __future__ import annotations

import weakref
from itertools import repeat
from typing import Any, Callable, Iterable, Iterator

from kafka.errors import KafkaConfigurationError
from kafka.partitioner.adapt import takes


class AdaptedDeserializer:
    """A deserializer of any release.

    ``arguments``: 1 if it takes (data), 2 for (topic, data), 3 for (topic, headers, data).
    """

    __slots__ = ('__weakref__', 'arguments', 'call')

    def __init__(self, call: Callable[..., Any], arguments: int) -> None:
        self.call = call
        self.arguments = arguments

    def over(self, topic: Any, headers: Iterable[Any], data: Iterable[Any]) -> Iterator[Any]:
        """
        Return an iterator that deserializes a column lazily, element by element.

        It raises what the deserializer raises.
        """
        if self.arguments == 1:
            return map(self.call, data)
        if self.arguments == 2:
            return map(self.call, repeat(topic), data)
        return map(self.call, repeat(topic), headers, data)


class LentDeserializer:
    """A weak reference to the deserializer of a consumer, for the fetches in the fetch buffer.

    A deserializer is often a method of an object that refers to the consumer, such as
    ``self.decode``. The network thread keeps the fetches; with a strong reference in them such a
    consumer could never be collected.
    """

    __slots__ = ('_owned',)

    def __init__(self, owned: AdaptedDeserializer) -> None:
        self._owned = weakref.ref(owned)

    def over(self, topic: Any, headers: Iterable[Any], data: Iterable[Any]) -> Iterator[Any]:
        """Deserialize a column; as AdaptedDeserializer.over().

        Raises: ReferenceError if the consumer was collected.
        """
        owned = self._owned()
        if owned is None:
            raise ReferenceError('the consumer of this deserializer was collected')
        return owned.over(topic, headers, data)


def adapt_deserializer(name: str, deserializer: Any) -> Any:
    """
    Return an AdaptedDeserializer for a deserializer of any release; None for None.

    ``name`` is the name of the option. Raises ``KafkaConfigurationError`` for a value that is not
    a deserializer.
    """
    if deserializer is None or isinstance(deserializer, (AdaptedDeserializer, LentDeserializer)):
        return deserializer
    deserialize = getattr(deserializer, 'deserialize', None)
    if deserialize is not None:
        return AdaptedDeserializer(deserialize, 3 if takes(deserialize, 3, unknown=False) else 2)
    if callable(deserializer):
        return AdaptedDeserializer(deserializer, 1)
    raise KafkaConfigurationError(
        '%s must be callable or have a method deserialize(), not be %r' % (name, deserializer)
    )
