"""Alias of kafka.evented.client (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.evented import client
from kafka.evented.client import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = client
