"""
A data source for PySpark that reads, streams and writes Kafka without a jar: the format
``kafka-py``.

``kafka.spark.register(spark)``, then ``spark.read.format('kafka-py')`` with the options of Spark's
own Kafka connector. Needs the extra ``spark`` and Java. If the package is installed on the driver
and the executors, Spark discovers the format by itself, through the package ``pyspark_kafka``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kafka.errors import KafkaConfigurationError
from kafka.internals.lazy_imports import import_late, look_up
from kafka.internals.logging_setup import be_heard
from kafka.spark.active_session import activate_for_writers
from kafka.spark.takeover import has_connector, take_over

if TYPE_CHECKING:
    from kafka.spark.helpers import read_kafka, to_kafka
    from kafka.spark.listener import LagListener

__all__ = [
    'LagListener',
    'MissingSparkError',
    'read_kafka',
    'register',
    'takeover',
    'to_kafka',
]

log = logging.getLogger(__name__)
# Warnings in Spark's workers go to their standard error, which Spark keeps in its logs.
be_heard(__name__)
# Also brokers that cannot be reached, for example because an advertised host does not resolve.
be_heard('kafka.net.node_connection')

#: The pattern of options that Spark hides in plans, and an option with a secret to add to it.
_REDACTION, _KEY = 'spark.sql.redaction.options.regex', r'keystore\.key'

_HOMES = {
    'LagListener': 'kafka.spark.listener',
    'read_kafka': 'kafka.spark.helpers',
    'to_kafka': 'kafka.spark.helpers',
}


def __getattr__(name: str) -> Any:
    """Import the module of a name when it is first used (PEP 562)."""
    try:
        return look_up(globals(), name, _HOMES)
    except ImportError as error:
        raise _missing(error) from error


class MissingSparkError(KafkaConfigurationError, ImportError):
    """PySpark is missing, or has no data sources in Python."""


def _missing(error: ImportError) -> MissingSparkError:
    return MissingSparkError(
        'kafka.spark needs PySpark 4.0 or later and pyarrow: pip install'
        ' kafka-evergreen[spark] (%s)' % error
    )


def register(spark: Any) -> None:
    """
    Register the format ``kafka-py`` in a session.

    Spark shows the options of a sink in some plans. It hides passwords by itself, and private keys
    by its setting ``spark.sql.redaction.options.regex``, to which the name of their option is
    added. Afterwards all threads can write with the format, also those that did not create the
    session.

    Arguments: spark: a SparkSession of PySpark 4.0 or later, classic or of Spark Connect.
    Raises: MissingSparkError, a KafkaConfigurationError and an ImportError, if PySpark has no data
    sources in Python.
    """
    try:
        source = import_late('kafka.spark.source')
    except ImportError as error:
        raise _missing(error) from error
    try:
        spark.dataSource.register(source.KafkaDataSource)
    except Exception as error:  # 4.0 refuses a format that it discovered; later releases replace it
        if 'DATA_SOURCE_ALREADY_EXISTS' not in str(error):
            raise
    if hasattr(spark, '_jsparkSession'):  # not one of Spark Connect
        activate_for_writers()
    hidden = spark.conf.get(_REDACTION)
    if _KEY not in hidden:
        spark.conf.set(_REDACTION, '%s|%s' % (hidden, _KEY) if hidden else '(?i)' + _KEY)


def takeover(spark: Any) -> bool:
    """
    Register the format, and make ``format('kafka')`` an alias of it in this process.

    Programs for Spark's own connector then run unchanged, batch and streaming, classic and Spark
    Connect, except for SQL's ``USING kafka``. Queries with outputMode('update'), which Spark
    refuses for sinks in Python, are written by foreachBatch. If the session has the connector of
    the JVM, only the registration is made.

    Arguments: spark: as for register(). Returns: whether ``kafka`` is an alias now. Raises: as
    register().
    """
    register(spark)
    if has_connector(spark):
        log.warning('the session has the connector of the JVM, which keeps the format kafka')
        return False
    take_over('kafka-py')
    return True
