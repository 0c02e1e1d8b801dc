"""Alias of kafka.producer.two_phase_commit (written by test/aliases.py)."""

from __future__ import annotations

import sys

from kafka.producer import two_phase_commit
from kafka.producer.two_phase_commit import *  # noqa: F403  (for type checkers)

sys.modules[__name__] = two_phase_commit
