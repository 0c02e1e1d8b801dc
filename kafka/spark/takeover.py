"""``format('kafka')`` without the JVM connector, for programs that run unchanged.

It wraps PySpark's readers and writers, classic and Connect, for the life of the process;
idempotent, and never done implicitly. It does not cover SQL's ``USING kafka`` and JVM code. Queries
in update mode are written by update_mode.py.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Mapping, Optional, Tuple

from kafka.internals.lazy_imports import import_late

__all__ = ['CONNECTOR', 'has_connector', 'take_over']

#: The class of the JVM connector, by which Spark finds it.
CONNECTOR = 'org.apache.spark.sql.kafka010.KafkaSourceProvider'
#: The modules of the methods; those of Connect need its packages.
_PLACES = (
    ('pyspark.sql.readwriter', ('DataFrameReader', 'DataFrameWriter')),
    ('pyspark.sql.streaming.readwriter', ('DataStreamReader', 'DataStreamWriter')),
    ('pyspark.sql.connect.readwriter', ('DataFrameReader', 'DataFrameWriter')),
    ('pyspark.sql.connect.streaming.readwriter', ('DataStreamReader', 'DataStreamWriter')),
)


#: Attributes of a writer: whether its format means kafka, and whether the program chose a mode
#: other than the default.
_TAKEN, _NAMED = '_kafka_taken', '_kafka_has_mode'
#: Modes that the JVM connector treats as append, because a topic never counts as existing.
_DEFAULTS = ('error', 'errorifexists', 'default')


def has_connector(spark: Any) -> bool:
    """Return True if a session is known to have the JVM connector.

    A session of Spark Connect cannot be checked: False.
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
    """Make the format 'kafka' an alias of another one, for all sessions of this process.

    A batch writer then appends, unless the program chose a mode other than Spark's default, which
    is refused for formats in Python.
    """
    for cls in _classes():
        wrapped = cls.format
        if getattr(wrapped, 'stands_for', None) is None:
            cls.format = _wrapped(wrapped, name)
            if cls.__name__ == 'DataFrameWriter':
                cls.mode = _noting(cls.mode)
            elif cls.__name__ == 'DataStreamWriter':
                _take_queries_over(cls, name)


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
        elif type(self).__name__ == 'DataStreamWriter':
            setattr(self, _TAKEN, is_taken or source == name)
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


# ------------------------------------------------------------ queries

#: Attributes of a writer of a query: its options, and its output mode.
_OPTIONS, _MODE = '_kafka_options', '_kafka_output_mode'


def _take_queries_over(cls: Any, name: str) -> None:
    """Let a class of query writers write queries in update mode by foreachBatch."""
    cls.option = _noting_option(cls.option)
    cls.options = _noting_options(cls.options)
    cls.outputMode = _noting_mode(cls.outputMode)
    cls.foreach = _noting_function(cls.foreach)
    cls.foreachBatch = _noting_function(cls.foreachBatch)
    cls.start = _starting(cls.start, name)


def _note(writer: Any, options: Mapping[str, Any]) -> None:
    given = {key: value for key, value in options.items() if value is not None}
    setattr(writer, _OPTIONS, {**getattr(writer, _OPTIONS, {}), **given})


def _noting_option(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def option(self: Any, key: str, value: Any) -> Any:
        _note(self, {key: value})
        return original(self, key, value)

    return option


def _noting_options(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def options(self: Any, **given: Any) -> Any:
        _note(self, given)
        return original(self, **given)

    return options


def _noting_mode(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def outputMode(self: Any, outputMode: str) -> Any:
        setattr(self, _MODE, outputMode)
        return original(self, outputMode)

    return outputMode


def _noting_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note that a function of the program replaces the format."""

    @functools.wraps(original)
    def foreach(self: Any, *args: Any, **named: Any) -> Any:
        setattr(self, _TAKEN, False)
        return original(self, *args, **named)

    return foreach


def _starting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(
        self: Any,
        path: Optional[str] = None,
        format: Optional[str] = None,
        outputMode: Optional[str] = None,
        partitionBy: Any = None,
        queryName: Optional[str] = None,
        **options: Any,
    ) -> Any:
        self.options(**options)
        if format is not None:
            self.format(format)
        if outputMode is not None:
            self.outputMode(outputMode)
        mode = getattr(self, _MODE, None)
        if getattr(self, _TAKEN, False) and isinstance(mode, str) and mode.lower() == 'update':
            # Late: it imports options, so `import kafka.spark` would load half of the package.
            update_mode = import_late('kafka.spark.update_mode')
            given = getattr(self, _OPTIONS, {})
            update_mode.check(given, hasattr(self, '_jwrite'))
            self.foreachBatch(update_mode.BatchWrite(name, given))
        return original(self, path, partitionBy=partitionBy, queryName=queryName)

    return start
