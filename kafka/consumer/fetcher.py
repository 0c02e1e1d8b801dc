"""Alias of kafka.evented.fetcher (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.evented import fetcher
from kafka.evented.fetcher import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = fetcher
