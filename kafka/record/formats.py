"""
The budget of struct formats that the readers of records may compile and keep.

Compiling a format for one combination of lengths costs as much as reading ten records, and pays if
the combination recurs. So each piece of work may compile a few, the rest is read by the next
method, and all are dropped if there are too many.
"""

from __future__ import annotations

from typing import Callable, List


class Formats:
    """The budget; small errors by race conditions do no harm."""

    #: The maximum number of formats that are kept (about 8 MiB).
    MOST = 16384

    def __init__(self) -> None:
        """Start with no formats and no allowance."""
        self.kept = 0
        self.allowed = 0
        #: The functions that drop all formats.
        self.forgetters: List[Callable[[], None]] = []

    def allow(self, records: int) -> None:
        """Set how many formats may be compiled for this number of records."""
        self.allowed = records // 8 + 4

    def take(self) -> bool:
        """Return True if one more format may be compiled now."""
        if self.allowed <= 0:
            return False
        self.allowed -= 1
        self.kept += 1
        if self.kept > self.MOST:
            self.kept = 0
            for forget in self.forgetters:
                forget()
        return True


formats = Formats()
