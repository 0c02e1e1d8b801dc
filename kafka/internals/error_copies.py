"""Copies of an error that several callers raise, one for each.

Called by futures and by code that fails several waiters with one error. Raising an exception object
adds entries to its traceback and sets its context: if 800 callers raised the same object, the last
one would log the tracebacks of all. Pure.
"""

from __future__ import annotations

from typing import TypeVar

from kafka.errors import KafkaError

__all__ = ['unraised_copy']

_E = TypeVar('_E', bound=BaseException)


def unraised_copy(error: _E) -> _E:
    """Return an equal error with the same causes, without a traceback.

    An error of another package may hold more than arguments and attributes: it is returned itself.
    """
    if not isinstance(error, KafkaError):
        return error
    copied = type(error).__new__(type(error), *error.args)
    copied.__dict__.update(error.__dict__)
    copied.__cause__, copied.__context__ = error.__cause__, error.__context__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
