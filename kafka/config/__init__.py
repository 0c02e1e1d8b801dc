"""The option table: every option of every client, and how the options of a program are resolved.

A face, a public class that takes options, uses it like this::

    from kafka import config

    class KafkaProducer:
        DEFAULT_CONFIG = config.defaults(config.PRODUCER)

        def __init__(self, **configs):
            self.config = config.resolve(config.PRODUCER, configs)   # raises InvalidOptionError

The result is an :class:`Options`, a dict with every option of the face, checked and converted:
``acks`` is a number, ``api_version`` a tuple or None, deprecated names are replaced, and a default
that contradicts an option that was given is adjusted. ``.given`` is the set of the names that the
program gave. It can be pickled, and its repr shows no secret. Once the release of the brokers is
known, ``config.settle_release(self.config, (2, 8))`` adjusts the options to it, and may raise too.

The faces are PRODUCER, CONSUMER, ADMIN, CLIENT (evented), CONNECTION and TOWER (the KafkaConsumer
of 0.9.5). CLIENT and CONNECTION ignore unknown names, as they did in every release. Values that a
face has to create itself, because their classes are in higher layers, are None or empty in the
table: ``partitioner`` and ``partition_assignment_strategy``.

The classes below a face get single values, not this dict. The checks of single values are in
``kinds.py``, the rules between options in ``contradictions.py``, the masking of secrets in
``secrets.py``. The dependencies of the security options are checked in :mod:`kafka.net.security`.
``docs/options.rst`` is generated from the table by ``docs/options.py``.
"""

from __future__ import annotations

from kafka.config.consumer_table import OF_0_9_5
from kafka.config.contradictions import settle_release
from kafka.config.option import (
    ADMIN,
    CLIENT,
    CONNECTION,
    CONSUMER,
    DIALECTS,
    FACES,
    PRODUCER,
    TOWER,
    Face,
    Option,
    dialect_of,
)
from kafka.config.resolution import (
    OPTIONS,
    Options,
    current_dialect,
    defaults,
    hidden,
    options_of,
    resolve,
    set_dialect,
    with_changed,
)
from kafka.config.security_table import SECURITY

__all__ = [
    'ADMIN', 'CLIENT', 'CONNECTION', 'CONSUMER', 'DIALECTS', 'FACES', 'ONLY_0_9', 'OPTIONS',
    'PRODUCER', 'SECURITY', 'TOWER', 'Face', 'Option', 'Options', 'current_dialect', 'defaults',
    'dialect_of', 'hidden', 'options_of', 'resolve', 'set_dialect', 'settle_release',
    'with_changed',
]  # fmt: skip

#: Names that only the KafkaConsumer of 0.9.5 had: an option of these selects that dialect.
ONLY_0_9 = frozenset(OF_0_9_5) - frozenset(OPTIONS) | {'metadata_broker_list'}
