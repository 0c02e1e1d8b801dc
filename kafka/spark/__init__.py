"""
PySpark reads, streams and writes Kafka, without a jar: the format ``kafka-py``.

``kafka.spark.register(spark)``, then ``spark.read.format('kafka-py')`` with the options of Spark's
own Kafka connector. Needs the extra ``spark`` and Java. Where the package is installed on the
driver and on the executors Spark finds the format by itself, through the package ``pyspark_kafka``.
"""

from __future__ import annotations

import logging
from typing import Any

from kafka.errors import KafkaConfigurationError
from kafka.late_imports import import_late
from kafka.spark.takeover import has_connector, take_over

__all__ = ['MissingSparkError', 'register', 'takeover']

log = logging.getLogger(__name__)


class MissingSparkError(KafkaConfigurationError, ImportError):
    """PySpark, or a version of it with data sources in Python, is not there."""


def register(spark: Any) -> None:
    """
    Make the format ``kafka-py`` known to a session.

    Arguments: spark: a SparkSession of PySpark 4.0 or later, classic or of Spark Connect.
    Raises: MissingSparkError, a KafkaConfigurationError and an ImportError, where PySpark has no
    data sources in Python.
    """
    try:
        source = import_late('kafka.spark.source')
    except ImportError as error:
        raise MissingSparkError(
            'kafka.spark needs PySpark 4.0 or later and pyarrow: pip install'
            ' kafka-evergreen[spark] (%s)' % error
        ) from error
    try:
        spark.dataSource.register(source.KafkaDataSource)
    except Exception as error:  # 4.0 refuses what it has found by itself; later ones replace it
        if 'DATA_SOURCE_ALREADY_EXISTS' not in str(error):
            raise


def takeover(spark: Any) -> bool:
    """
    Register the format, and let ``format('kafka')`` mean it from now on in this process.

    Programs written for Spark's own connector run then as they are, batch and streaming, classic
    and Spark Connect; not SQL's ``USING kafka``. Where the session has that connector nothing is
    changed but the registration.

    Arguments: spark: as register(). Returns: whether ``kafka`` was taken over. Raises: as
    register().
    """
    register(spark)
    if has_connector(spark):
        log.warning('the session has the connector of the JVM: format kafka stays with it')
        return False
    take_over('kafka-py')
    return True
