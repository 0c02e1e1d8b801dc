"""THE option table: every option of every client, and what is made of those that a program gives.

A face, a public class that takes options, does this::

    from kafka import config

    class KafkaProducer:
        DEFAULT_CONFIG = config.defaults(config.PRODUCER)

        def __init__(self, **configs):
            self.config = config.resolve(config.PRODUCER, configs)   # raises InvalidOptionError

What it gets is a dict, an :class:`Options`, that has all options, checked and complete: ``acks`` is
a number, ``api_version`` a tuple or None, old names are replaced, and what was not given gave way
where it contradicted what was. ``.given`` tells which names the program gave. It can be pickled,
and shows no secret. When the release of the brokers is known,
``config.settle_release(self.config, (2, 8))`` goes by it; it may raise, too.

The faces are PRODUCER, CONSUMER, ADMIN, CLIENT (evented), CONNECTION and TOWER (the KafkaConsumer
of 0.9.5); CLIENT and CONNECTION pass over names that they do not know, as ever. Values that a face
has to make itself, because they come from higher floors, are None or empty in the table:
``partitioner`` and ``partition_assignment_strategy``.

Classes below get values, not this dict. Owns: names, defaults, types and units (``kinds.py``),
rules over several options (``contradictions.py``), how secrets are shown (``secrets.py``). Does not
own: what options of security need of each other (:mod:`kafka.net.security`), and which codecs are
installed. ``docs/options.rst`` is made of the table by ``docs/options.py``.
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

#: Names that only the KafkaConsumer of 0.9.5 had: who gives one means that dialect.
ONLY_0_9 = frozenset(OF_0_9_5) - frozenset(OPTIONS) | {'metadata_broker_list'}
