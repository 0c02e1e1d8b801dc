"""Alias of kafka.evented.heartbeat (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.evented import heartbeat
from kafka.evented.heartbeat import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = heartbeat
