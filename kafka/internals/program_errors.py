"""The log's account of an exception in code of the program: callbacks, listeners, interceptors.

Called by what calls such code and goes on. The frames of this package that led there are left out,
so that the traceback begins in the program.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ['log_program_error']


def log_program_error(log: logging.Logger, error: BaseException, text: str, *args: Any) -> None:
    """Log an error that code of the program raised, with the traceback of its own frames."""
    traceback = error.__traceback__
    while traceback is not None and _is_own(traceback.tb_frame.f_globals.get('__name__')):
        traceback = traceback.tb_next
    # Without own frames, as of a call with wrong arguments, there is only the message.
    log.error(text, *args, exc_info=(type(error), error, traceback))


def _is_own(name: Any) -> bool:
    return isinstance(name, str) and name.startswith('kafka.')
