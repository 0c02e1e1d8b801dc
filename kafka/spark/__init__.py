"""
PySpark reads, streams and writes Kafka, without a jar: the format ``kafka-py``.

``kafka.spark.register(spark)``, then ``spark.read.format('kafka-py')`` with the options of Spark's
own Kafka connector. Needs the extra ``spark`` and Java. Where the package is installed on the
driver and on the executors Spark finds the format by itself, through the package ``pyspark_kafka``.
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
# What is passed over is told from within Spark's workers, whose standard error is in Spark's logs.
be_heard(__name__)
# So is a broker that cannot be reached, such as one whose advertised host does not resolve.
be_heard('kafka.net.node_connection')

#: What Spark hides of the options in plans, and the option with a secret that it does not know.
_REDACTION, _KEY = 'spark.sql.redaction.options.regex', r'keystore\.key'

_HOMES = {
    'LagListener': 'kafka.spark.listener',
    'read_kafka': 'kafka.spark.helpers',
    'to_kafka': 'kafka.spark.helpers',
}


def __getattr__(name: str) -> Any:
    """Load the module of a name when it is first asked for (PEP 562)."""
    try:
        return look_up(globals(), name, _HOMES)
    except ImportError as error:
        raise _missing(error) from error


class MissingSparkError(KafkaConfigurationError, ImportError):
    """PySpark, or a version of it with data sources in Python, is not there."""


def _missing(error: ImportError) -> MissingSparkError:
    return MissingSparkError(
        'kafka.spark needs PySpark 4.0 or later and pyarrow: pip install'
        ' kafka-evergreen[spark] (%s)' % error
    )


def register(spark: Any) -> None:
    """
    Make the format ``kafka-py`` known to a session.

    Spark shows the options of a sink in some plans. Passwords it hides by itself, private keys by
    its setting ``spark.sql.redaction.options.regex``, to which their option is added. Threads that
    did not make the session can write by the format from then on.

    Arguments: spark: a SparkSession of PySpark 4.0 or later, classic or of Spark Connect.
    Raises: MissingSparkError, a KafkaConfigurationError and an ImportError, where PySpark has no
    data sources in Python.
    """
    try:
        source = import_late('kafka.spark.source')
    except ImportError as error:
        raise _missing(error) from error
    try:
        spark.dataSource.register(source.KafkaDataSource)
    except Exception as error:  # 4.0 refuses what it has found by itself; later ones replace it
        if 'DATA_SOURCE_ALREADY_EXISTS' not in str(error):
            raise
    if hasattr(spark, '_jsparkSession'):  # not one of Spark Connect
        activate_for_writers()
    hidden = spark.conf.get(_REDACTION)
    if _KEY not in hidden:
        spark.conf.set(_REDACTION, '%s|%s' % (hidden, _KEY) if hidden else '(?i)' + _KEY)


def takeover(spark: Any) -> bool:
    """
    Register the format, and let ``format('kafka')`` mean it from now on in this process.

    Programs written for Spark's own connector run then as they are, batch and streaming, classic
    and Spark Connect; not SQL's ``USING kafka``. Queries with outputMode('update'), which Spark
    refuses for sinks in Python, are written by foreachBatch. Where the session has that connector
    nothing is changed but the registration.

    Arguments: spark: as register(). Returns: whether ``kafka`` was taken over. Raises: as
    register().
    """
    register(spark)
    if has_connector(spark):
        log.warning('the session has the connector of the JVM: format kafka stays with it')
        return False
    take_over('kafka-py')
    return True
