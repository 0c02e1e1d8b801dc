"""Modules at paths of earlier releases that stand for modules elsewhere: their table and text.

    python3 -m test.aliases

writes them. An alias is the module that it stands for: what a program replaces in one of them, as
tests do with mock.patch(), is replaced in the other. test_architecture.py compares the files with
the table.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The path of an earlier release: where the module is.
ALIASES = {
    'kafka.client_async': 'kafka.evented.client',
    'kafka.consumer.fetcher': 'kafka.evented.fetcher',
    'kafka.consumer.reader': 'kafka.consumer.bounded.reader',
    'kafka.coordinator.base': 'kafka.evented.base_coordinator',
    'kafka.coordinator.consumer': 'kafka.evented.consumer_coordinator',
    'kafka.producer.prepared': 'kafka.producer.two_phase_commit',
    'kafka.coordinator.heartbeat': 'kafka.evented.heartbeat',
}

TEXT = '''"""Alias of {target} (written by test/aliases.py)."""

from __future__ import annotations

import sys

from {package} import {name}
from {target} import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = {name}
'''


def path_of(alias):
    """Return the file of an alias."""
    return ROOT / (alias.replace('.', '/') + '.py')


def text_of(alias):
    """Return what the file of an alias has to hold."""
    target = ALIASES[alias]
    package, _, name = target.rpartition('.')
    return TEXT.format(target=target, package=package, name=name)


if __name__ == '__main__':
    for alias in ALIASES:
        path_of(alias).write_text(text_of(alias), encoding='utf-8')
