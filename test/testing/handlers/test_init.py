"""All handlers are loaded, and each API has its handler."""

from __future__ import annotations

import os

from kafka.protocol.api import ApiKey
from kafka.testing import handlers
from kafka.testing.calls import HANDLERS


def test_every_module_is_loaded():
    """A module that is not in the list answers nothing."""
    files = os.listdir(os.path.dirname(handlers.__file__))
    modules = {name[:-3] for name in files if name.endswith('.py')} - {'__init__'}
    assert set(handlers.MODULES) == modules
    assert len(handlers.MODULES) == len(modules)


def test_loading_registers_the_handlers():
    handlers.load()
    handlers.load()
    assert {ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR} <= set(HANDLERS)
