"""The logger ``kafka`` of a program that has not set up logging: silent, but for errors.

Owns one handler. From 1.x on importing the package put a NullHandler there, so that warnings of a
client did not reach the terminal of a program that never asked for them. Ours still lets errors
through, as the interpreter itself would (``logging.lastResort``): records that were lost are not to
be lost in silence. Programs of 0.9.5, which had no such handler, load no module that calls this.
"""

from __future__ import annotations

import logging
from typing import Optional


class QuietHandler(logging.NullHandler):
    """Drops what is less than an error; leaves everything to the handlers of the program."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Show an error if nobody else does."""
        if record.levelno >= logging.ERROR and logging.lastResort is not None:
            if not _is_heard(logging.getLogger(record.name)):
                logging.lastResort.handle(record)
        return True


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
