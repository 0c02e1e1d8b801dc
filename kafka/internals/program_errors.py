"""Logging of exceptions raised by the program's own code: callbacks, listeners, interceptors.

Used where such code is called and the client continues after its errors. The frames of this package
at the start of the traceback are left out, so that it begins in the program.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ['log_program_error']


def log_program_error(log: logging.Logger, error: BaseException, text: str, *args: Any) -> None:
    """Log an error that code of the program raised, without this package's frames before it."""
    traceback = error.__traceback__
    while traceback is not None and _is_own(traceback.tb_frame.f_globals.get('__name__')):
        traceback = traceback.tb_next
    # If no frame of the program is left, as for a call with wrong arguments, log only the message.
    log.error(text, *args, exc_info=(type(error), error, traceback))


def _is_own(name: Any) -> bool:
    return isinstance(name, str) and name.startswith('kafka.')
