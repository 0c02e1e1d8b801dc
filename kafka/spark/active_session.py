"""Session activation, so that any thread can write with the format, not only the session's creator.

Called by register(). To write, Spark looks up a format in Python in the active session of the
calling thread, which only the thread that created a session has; to read, it uses the session of
the reader. Therefore the two methods of classic PySpark that start a write are wrapped: while one
of them runs, the session of its DataFrame is the active one. Spark Connect needs no such thing: its
server knows the session of each call.
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
    """Make a session the active one of this thread in a ``with`` block.

    Arguments: session: a SparkSession, classic or of Spark Connect; it is not changed.
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
    with CleanUp(restore):  # which may fail if the JVM has ended
        yield


def activate_for_writers() -> None:
    """Wrap the writers of this process so that they activate their session; idempotent."""
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
