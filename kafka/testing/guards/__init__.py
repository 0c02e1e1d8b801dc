"""What each API of an embedded broker demands of who asks, and what it answers if that is missing.

A guard meets a request before its handler, where brokers have an authorizer: one module for each
family, as in handlers/. The decision itself is :mod:`kafka.testing.security.authorizer`'s.
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late

MODULES = ('data', 'topics', 'groups', 'transactions', 'cluster', 'configs')


def load() -> None:
    """Import all guards, once."""
    for name in MODULES:
        import_late('kafka.testing.guards.' + name)
