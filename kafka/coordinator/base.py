"""Alias of kafka.evented.base_coordinator (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.evented import base_coordinator
from kafka.evented.base_coordinator import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = base_coordinator
