"""The logger ``kafka`` of a program that has not set up logging: silent, but for errors.

Owns two handlers. From 1.x on importing the package put a NullHandler there, so that warnings of a
client did not reach the terminal of a program that never asked for them. Ours still lets errors
through, as the interpreter itself would (``logging.lastResort``): records that were lost are not to
be lost in silence. Programs of 0.9.5, which had no such handler, load no module that calls this.
Where others start the processes, as Spark does its workers, no program can set up logging: what is
for those lets its warnings through, too.
"""

from __future__ import annotations

import logging
import math
from typing import Optional


class QuietHandler(logging.NullHandler):
    """Drops what is less than an error; leaves everything to the handlers of the program."""

    least, below = logging.ERROR, math.inf  # levels

    def handle(self, record: logging.LogRecord) -> bool:
        """Show an error if nobody else does."""
        if self.least <= record.levelno < self.below and logging.lastResort is not None:
            if not _is_heard(logging.getLogger(record.name)):
                logging.lastResort.handle(record)
        return True


class WarningHandler(QuietHandler):
    """Shows warnings as well if nobody else does; errors are for the handler of ``kafka``."""

    least, below = logging.WARNING, logging.ERROR


def _is_heard(logger: Optional[logging.Logger]) -> bool:
    """Tell whether a logger, or one that it hands its records to, has a handler of the program."""
    while logger is not None:
        if any(not isinstance(each, QuietHandler) for each in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def be_quiet() -> None:
    """Put the handler in place, once."""
    logger = logging.getLogger('kafka')
    if not any(isinstance(each, logging.NullHandler) for each in logger.handlers):
        logger.addHandler(QuietHandler())


def be_heard(name: str) -> None:
    """Let the warnings of a logger below ``kafka`` through, too. Done twice it is as done once."""
    be_quiet()
    logger = logging.getLogger(name)
    if not any(isinstance(each, WarningHandler) for each in logger.handlers):
        logger.addHandler(WarningHandler())
