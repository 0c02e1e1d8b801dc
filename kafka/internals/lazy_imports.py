"""Imports on first use that are safe with forks.

A lock is held during such an import and during a fork. Without it, if one thread forks while
another imports a module, the child, which does not have the importing thread, would wait forever
when it imports the same module. What is imported late, and why, is explained at each use.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType
from typing import Any, Dict, Mapping

# Reentrant: a module may call import_late() while it is being imported itself.
_importing = threading.RLock()

if hasattr(os, 'register_at_fork'):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_importing.acquire,
        after_in_parent=_importing.release,
        after_in_child=_importing.release,
    )


def import_late(name: str) -> ModuleType:
    """Import a module; no thread of this process can fork meanwhile.

    Raises: what importing the module raises.
    """
    with _importing:
        return import_module(name)


def look_up(module: Dict[str, Any], name: str, homes: Mapping[str, str]) -> Any:
    """Return a name that a module gets from another one, and store it in the module (PEP 562).

    Arguments: module: its globals(); homes: the defining module of each of its late names.
    Raises: AttributeError for a name that is not one of them.
    """
    if name not in homes:
        raise AttributeError('module %r has no attribute %r' % (module['__name__'], name))
    found = module[name] = getattr(import_late(homes[name]), name)
    return found


class LateModule:
    """A placeholder for a module that is imported on first access to one of its attributes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return '<LateModule %s>' % self._name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_late(self._name), name)
