"""The consumers of 0.9.5, under the name that programs import them from.

Owns where each of them lives. As in ``kafka`` itself nothing is loaded before it is used: not every
program that reads a topic wants to pay for ``multiprocessing``.
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
    """Load what is asked for by its name and keep it, so that this is called once per name."""
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
    """Name everything that can be reached, loaded or not."""
    return sorted(set(globals()) | set(_HOMES) | set(_SUBMODULES))
