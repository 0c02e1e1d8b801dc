"""Alias of kafka.consumer.bounded.reader (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.consumer.bounded import reader
from kafka.consumer.bounded.reader import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = reader
