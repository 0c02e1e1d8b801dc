"""Imports that wait until something is first needed, kept apart from forks.

Owns the one lock that a late import holds and a fork takes. Sequence without it: a thread imports a
module; another one forks; the child, which has no such thread, imports the same module and waits
for ever. What is imported late, and why, stands where it is needed.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType
from typing import Any, Dict, Mapping

# Reentrant: a module may import another one late while it is imported itself.
_importing = threading.RLock()

if hasattr(os, 'register_at_fork'):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_importing.acquire,
        after_in_parent=_importing.release,
        after_in_child=_importing.release,
    )


def import_late(name: str) -> ModuleType:
    """Import a module, here or in another thread never while this process forks.

    Raises: what importing the module raises.
    """
    with _importing:
        return import_module(name)


def look_up(module: Dict[str, Any], name: str, homes: Mapping[str, str]) -> Any:
    """Return a name that a module gets from another one, and keep it there (PEP 562).

    Arguments: module: its globals(); homes: of its late names, the modules that have them.
    Raises: AttributeError for a name that is not one of them.
    """
    if name not in homes:
        raise AttributeError('module %r has no attribute %r' % (module['__name__'], name))
    found = module[name] = getattr(import_late(homes[name]), name)
    return found


class LateModule:
    """Stands for a module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return '<LateModule %s>' % self._name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_late(self._name), name)
