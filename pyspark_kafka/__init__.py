"""Lets PySpark 4 find the format ``kafka-py`` by itself: it looks for packages ``pyspark_*``.

Never raises when it is imported, nor imports much: one such package that does hides all others.
"""

from __future__ import annotations

try:
    from kafka.spark.source import KafkaDataSource as DefaultSource
except Exception as error:  # Spark would find no data source at all
    import logging

    logging.getLogger(__name__).warning('format kafka-py is not available: %s', error)
else:
    __all__ = ['DefaultSource']
