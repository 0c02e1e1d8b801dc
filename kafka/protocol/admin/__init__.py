"""The messages for the administration of a cluster, a module per family."""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late


def __getattr__(name: str) -> object:
    """Return the classes of single versions that 1.x and 2.x had here (struct_names.py)."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
