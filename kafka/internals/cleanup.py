"""Clean-up at the end of a block that never replaces the exception which ended the block.

Called by the ``__exit__`` methods of clients and by calls that have to finish something. Runs in
the caller's thread; no locks.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Optional

__all__ = ['CleanUp', 'clean_up']

log = logging.getLogger(__name__)


def clean_up(call: Callable[[], Any], error: Optional[BaseException]) -> None:
    """Make a call; if the block was ended by an error already, log what the call raises.

    Arguments: error: the exception that ended the block, None if there was none.
    Raises: what the call raises if `error` is None; always exceptions that are not an Exception,
        such as a second KeyboardInterrupt.
    """
    if error is None:
        call()
        return
    try:
        call()
    except Exception:  # any error: the program must see the one that ended the block
        log.exception('cleaning up after %s failed', type(error).__name__)


class CleanUp:
    """A context manager that makes a call at the end of its block, as in clean_up().

    Arguments: call: takes no arguments.
    """

    __slots__ = ('_call',)

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        clean_up(self._call, error)
