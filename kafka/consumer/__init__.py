"""The package of the consumers: SimpleConsumer, MultiProcessConsumer and KafkaConsumer (0.9.5).

As in ``kafka`` itself, each class is imported on first use: a program that reads a topic with
KafkaConsumer does not pay for the import of ``multiprocessing``.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka.consumer.group import KafkaConsumer as KafkaConsumer
    from kafka.consumer.multiprocess import MultiProcessConsumer as MultiProcessConsumer
    from kafka.consumer.simple import SimpleConsumer as SimpleConsumer

__all__ = ['SimpleConsumer', 'MultiProcessConsumer', 'KafkaConsumer']

_HOMES = {
    'SimpleConsumer': 'kafka.consumer.simple',
    'MultiProcessConsumer': 'kafka.consumer.multiprocess',
    'KafkaConsumer': 'kafka.consumer.group',
}

# Reachable as attributes after a bare `import kafka`, as in 0.9.5.
_SUBMODULES = ('base', 'simple', 'multiprocess', 'kafka')


def __getattr__(name: str) -> object:
    """Import a class or submodule on first use, and store it as a global, so that this runs once.

    Raises: AttributeError for any other name.
    """
    found: object
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    elif name in _SUBMODULES:
        found = import_module('kafka.consumer.' + name)
    else:
        raise AttributeError('module %r has no attribute %r' % (__name__, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the names of all attributes, imported yet or not."""
    return sorted(set(globals()) | set(_HOMES) | set(_SUBMODULES))
