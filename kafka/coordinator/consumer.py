"""Alias of kafka.evented.consumer_coordinator (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.evented import consumer_coordinator
from kafka.evented.consumer_coordinator import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = consumer_coordinator
