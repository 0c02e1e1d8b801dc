"""Handlers for the logger ``kafka`` in programs without logging set up: they show only errors.

Releases from 1.x on added a NullHandler on import, so that warnings of a client did not reach the
terminal of a program that had not asked for them. QuietHandler still shows errors, as the
interpreter itself would (``logging.lastResort``): lost records must not go unnoticed. Programs of
0.9.5, which had no such handler, load no module that calls this. In processes that are started by
another program, such as Spark's workers, no program can set up logging: modules made for those show
their warnings as well (WarningHandler).
"""

from __future__ import annotations

import logging
import math
from typing import Optional


class QuietHandler(logging.NullHandler):
    """Drops records below ERROR; leaves everything else to the handlers of the program."""

    least, below = logging.ERROR, math.inf  # levels

    def handle(self, record: logging.LogRecord) -> bool:
        """Show an error if no handler of the program does."""
        if self.least <= record.levelno < self.below and logging.lastResort is not None:
            if not _is_heard(logging.getLogger(record.name)):
                logging.lastResort.handle(record)
        return True


class WarningHandler(QuietHandler):
    """Shows warnings if no handler of the program does; QuietHandler shows the errors."""

    least, below = logging.WARNING, logging.ERROR


def _is_heard(logger: Optional[logging.Logger]) -> bool:
    """Return True if a logger, or one that it propagates to, has a handler of the program."""
    while logger is not None:
        if any(not isinstance(each, QuietHandler) for each in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def be_quiet() -> None:
    """Add the QuietHandler to the logger ``kafka``, once."""
    logger = logging.getLogger('kafka')
    if not any(isinstance(each, logging.NullHandler) for each in logger.handlers):
        logger.addHandler(QuietHandler())


def be_heard(name: str) -> None:
    """Show the warnings of a logger below ``kafka`` as well. Repeated calls have no effect."""
    be_quiet()
    logger = logging.getLogger(name)
    if not any(isinstance(each, WarningHandler) for each in logger.handlers):
        logger.addHandler(WarningHandler())
