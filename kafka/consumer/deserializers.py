"""The deserializers of all eras behind one call.

Owns telling them apart. Callables get (data), in all eras; objects have a method ``deserialize``
that takes (topic, data) up to 2.3, (topic, headers, data) in 3.0.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional

from kafka.errors import KafkaConfigurationError
from kafka.partitioner.adapt import takes


class Deserializer(NamedTuple):
    """A deserializer of any era; ``arguments`` is how many it takes of topic, headers and data."""

    call: Callable[..., Any]
    arguments: int

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


def adapt_deserializer(name: str, deserializer: Any) -> Optional[Deserializer]:
    """
    Return a deserializer of any era behind one call; None for none.

    ``name`` is that of the option it was given as. Raises ``KafkaConfigurationError`` for what is
    no deserializer.
    """
    if deserializer is None or isinstance(deserializer, Deserializer):
        return deserializer
    deserialize = getattr(deserializer, 'deserialize', None)
    if deserialize is not None:
        return Deserializer(deserialize, 3 if takes(deserialize, 3, unknown=False) else 2)
    if callable(deserializer):
        return Deserializer(deserializer, 1)
    raise KafkaConfigurationError(
        '%s must be callable or have a method deserialize(), not be %r' % (name, deserializer)
    )
