"""
How many struct formats the readers of records may compile and keep.

Owns the budget alone. Compiling a format for one combination of lengths costs as much as reading
ten records, and it pays when the combination comes back. So each piece of work may compile a few,
the rest is read in the next best way, and all are dropped when there are too many.
"""

from __future__ import annotations

from typing import Callable, List


class Formats:
    """The budget; being off by a few when threads race does no harm."""

    #: Most formats that are kept (about 8 MiB).
    MOST = 16384

    def __init__(self) -> None:
        """Start with nothing kept and nothing allowed."""
        self.kept = 0
        self.allowed = 0
        #: What to call to drop all formats.
        self.forgetters: List[Callable[[], None]] = []

    def allow(self, records: int) -> None:
        """Set how many formats may be compiled for so many records."""
        self.allowed = records // 8 + 4

    def take(self) -> bool:
        """Tell whether one more format may be compiled now."""
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
