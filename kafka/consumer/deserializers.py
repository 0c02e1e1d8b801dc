"""Adapts the deserializers of all eras to one call.

Made by the constructor of KafkaConsumer, called where records are made. Callables get (data);
objects have a method ``deserialize`` that takes (topic, data) up to 2.3, (topic, headers, data) in
3.0.
"""

from __future__ import annotations

import weakref
from itertools import repeat
from typing import Any, Callable, Iterable, Iterator

from kafka.errors import KafkaConfigurationError
from kafka.partitioner.adapt import takes


class AdaptedDeserializer:
    """A deserializer of any era; ``arguments`` is how many it takes of topic, headers and data."""

    __slots__ = ('__weakref__', 'arguments', 'call')

    def __init__(self, call: Callable[..., Any], arguments: int) -> None:
        self.call = call
        self.arguments = arguments

    def over(self, topic: Any, headers: Iterable[Any], data: Iterable[Any]) -> Iterator[Any]:
        """
        Deserialize a column, each element when it is asked for.

        Raises what the deserializer raises.
        """
        if self.arguments == 1:
            return map(self.call, data)
        if self.arguments == 2:
            return map(self.call, repeat(topic), data)
        return map(self.call, repeat(topic), headers, data)


class LentDeserializer:
    """The deserializer of a consumer as its parked fetches know it: they do not keep it alive.

    A deserializer often belongs to an object that has the consumer, as ``self.decode`` does. If
    what the network thread works with kept it, such a consumer could never be collected.
    """

    __slots__ = ('_owned',)

    def __init__(self, owned: AdaptedDeserializer) -> None:
        self._owned = weakref.ref(owned)

    def over(self, topic: Any, headers: Iterable[Any], data: Iterable[Any]) -> Iterator[Any]:
        """Deserialize a column; as AdaptedDeserializer.over(). ReferenceError without the owner."""
        owned = self._owned()
        if owned is None:
            raise ReferenceError('the consumer of this deserializer was collected')
        return owned.over(topic, headers, data)


def adapt_deserializer(name: str, deserializer: Any) -> Any:
    """
    Return a AdaptedDeserializer over one of any era; None for None.

    ``name`` is that of the option it was given as. Raises ``KafkaConfigurationError`` for what is
    not a deserializer.
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
