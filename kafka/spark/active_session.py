"""Lets every thread write by the format, also one that did not make the session.

Called by register(). Spark looks a format in Python up in the active session of the thread that
writes, and only the thread that made a session has one; to read it asks the session of the reader.
So the two methods of classic PySpark that begin to write are wrapped: while one of them runs, the
session of its DataFrame is the active one. Spark Connect needs nothing: its server knows the
session of each call.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from kafka.internals.cleanup import CleanUp
from kafka.internals.lazy_imports import import_late

__all__ = ['activate_for_writers', 'active']

_WRITERS = (
    ('pyspark.sql.readwriter', 'DataFrameWriter', 'save'),
    ('pyspark.sql.streaming.readwriter', 'DataStreamWriter', 'start'),
)
_MARK = 'activates_session'


@contextmanager
def active(session: Any) -> Iterator[None]:
    """Make a session the active one of this thread for a while.

    Arguments: session: a SparkSession, classic or of Spark Connect, which stays as it is.
    """
    java = getattr(session, '_jsparkSession', None)
    if java is None:
        yield
        return
    sessions = session._get_j_spark_session_class(session._jvm)
    before = sessions.getActiveSession()

    def restore() -> None:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()

    sessions.setActiveSession(java)
    with CleanUp(restore):  # which may fail where the JVM has ended
        yield


def activate_for_writers() -> None:
    """Let writers of this process activate their session; may be called again."""
    for module, name, method in _WRITERS:
        cls = getattr(import_late(module), name)
        original = getattr(cls, method)
        if not getattr(original, _MARK, False):
            setattr(cls, method, _activating(original))


def _activating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def write(self: Any, *args: Any, **options: Any) -> Any:
        with active(self._spark):
            return original(self, *args, **options)

    setattr(write, _MARK, True)
    return write
