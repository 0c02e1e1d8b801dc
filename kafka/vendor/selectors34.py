"""The names of kafka.vendor.selectors34 (1.3 to 2.x): the module selectors."""

from __future__ import annotations

from selectors import *  # noqa: F403 - those that this platform has
