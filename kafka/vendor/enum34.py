"""The names of kafka.vendor.enum34 (1.3 to 2.x): the module enum."""

from __future__ import annotations

from enum import Enum, EnumMeta, IntEnum, unique

__all__ = ['Enum', 'EnumMeta', 'IntEnum', 'unique']
