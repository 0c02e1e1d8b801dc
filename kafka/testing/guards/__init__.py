"""The authorization that each API of an embedded broker requires.

A guard checks a request before its handler if the cluster has an authorizer: one module for each
family, as in handlers/. The decisions are made by :mod:`kafka.testing.security.authorizer`.
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late

MODULES = ('data', 'topics', 'groups', 'transactions', 'cluster', 'configs')


def load() -> None:
    """Import all guards, once."""
    for name in MODULES:
        import_late('kafka.testing.guards.' + name)
