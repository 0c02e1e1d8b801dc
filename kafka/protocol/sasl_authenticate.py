"""The names of 2.x for SaslAuthenticateRequest and its response, by version.

Aliases: struct_names.py makes the classes from the declarations in sasl.py.
"""

from __future__ import annotations

from kafka.internals.lazy_imports import import_late


def __getattr__(name: str) -> object:
    """Find the request, the response, and the class of each version."""
    return import_late('kafka.protocol.struct_names').look_up(__name__, name)
