"""Lets programs that say ``format('kafka')`` run without the JVM connector, unchanged.

Owns the wrapping of four methods of PySpark, classic and Connect. It lasts as long as the process,
may be done again, and is never done by itself. Not reached: SQL's ``USING kafka`` and JVM code.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Tuple

from kafka.late_imports import import_late

__all__ = ['CONNECTOR', 'has_connector', 'take_over']

#: The class of the JVM connector that Spark looks for.
CONNECTOR = 'org.apache.spark.sql.kafka010.KafkaSourceProvider'
#: Where the methods are; those of Connect are there with its packages only.
_PLACES = (
    ('pyspark.sql.readwriter', ('DataFrameReader', 'DataFrameWriter')),
    ('pyspark.sql.streaming.readwriter', ('DataStreamReader', 'DataStreamWriter')),
    ('pyspark.sql.connect.readwriter', ('DataFrameReader', 'DataFrameWriter')),
    ('pyspark.sql.connect.streaming.readwriter', ('DataStreamReader', 'DataStreamWriter')),
)


#: Attributes of a writer: whether its format stands for kafka, and whether the program has named
#: a mode that is not the default.
_TAKEN, _NAMED = '_kafka_taken', '_kafka_has_mode'
#: Modes that mean Append to the JVM connector: a topic cannot be there before in any other way.
_DEFAULTS = ('error', 'errorifexists', 'default')


def has_connector(spark: Any) -> bool:
    """Tell whether a session has the JVM connector, as far as that can be asked.

    A session of Spark Connect cannot be asked: False.
    """
    java = getattr(spark, '_jvm', None)
    if java is None:
        return False
    try:
        loader = java.Thread.currentThread().getContextClassLoader()
        java.java.lang.Class.forName(CONNECTOR, False, loader)
    except Exception as error:  # Java's ClassNotFoundException, as py4j wraps it
        if 'ClassNotFoundException' in str(error):
            return False
        raise
    return True


def take_over(name: str) -> None:
    """Let 'kafka' as a format mean another one, for all sessions of this process.

    A batch writer appends then, unless the program has named another mode than Spark's own default,
    which is refused for formats in Python.
    """
    for cls in _classes():
        wrapped = cls.format
        if getattr(wrapped, 'stands_for', None) is None:
            cls.format = _wrapped(wrapped, name)
            if cls.__name__ == 'DataFrameWriter':
                cls.mode = _noting(cls.mode)


def _classes() -> List[Any]:
    found: List[Tuple[Any, str]] = []
    for module, names in _PLACES:
        try:
            loaded = import_late(module)
        except ImportError:  # no Connect
            continue
        found += [(loaded, name) for name in names]
    return [getattr(module, name) for module, name in found]


def _wrapped(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def with_format(self: Any, source: str) -> Any:
        is_taken = isinstance(source, str) and source.lower() == 'kafka'
        made = original(self, name if is_taken else source)
        if type(self).__name__ == 'DataFrameWriter':
            setattr(self, _TAKEN, is_taken)
            if is_taken and not getattr(self, _NAMED, False):
                return made.mode('append')
        return made

    with_format.stands_for = name  # type: ignore[attr-defined]
    return with_format


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def mode(self: Any, saveMode: Any) -> Any:
        if saveMode is None:  # of save()
            return original(self, saveMode)
        is_default = isinstance(saveMode, str) and saveMode.lower() in _DEFAULTS
        setattr(self, _NAMED, not is_default)
        is_to_append = is_default and getattr(self, _TAKEN, False)
        return original(self, 'append' if is_to_append else saveMode)

    return mode
