"""Queries in output mode update, written batch by batch through foreachBatch of PySpark.

Called by takeover.py. Spark refuses this mode for sinks in Python, which cannot declare that they
treat updates as appends, as the JVM connector does. Instead a function for foreachBatch writes each
batch as a DataFrame. With exactlyOnce its tasks belong to the query: their transactions are named
and decided by query and batch, which sink.py reads from BATCH_OPTION.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from kafka.errors import InvalidOptionError
from kafka.spark.options import SinkOptions

__all__ = ['BATCH_OPTION', 'BatchWrite', 'check']

#: The option with the number of the micro-batch. Spark's own options start with ``_`` too.
BATCH_OPTION = '_kafka_batch_of_query'
#: Options of the query rather than of its rows.
_OF_QUERIES = ('checkpointlocation', 'queryname', 'path')


class BatchWrite:
    """Writes the batches of a query; the function for foreachBatch. It is pickled.

    Arguments: name: of the format; options: of the query's writer.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._options: Dict[str, Any] = {
            key: value for key, value in options.items() if key.lower() not in _OF_QUERIES
        }

    def __repr__(self) -> str:  # options may be secrets
        return '<BatchWrite by %s>' % self._name

    def __call__(self, frame: Any, batch: int) -> None:
        """Append the rows of a batch to their topics."""
        writer = frame.write.format(self._name).mode('append').options(**self._options)
        writer.option(BATCH_OPTION, str(batch)).save()


def check(options: Mapping[str, Any], is_classic: bool) -> None:
    """Check options before the query is started.

    Arguments: options: of the query's writer; is_classic: False with Spark Connect.
    Raises: InvalidOptionError.
    """
    if SinkOptions.of(options, True).exactly_once and not is_classic:
        raise InvalidOptionError(
            "exactlyOnce=true with outputMode('update') needs a classic session: Spark Connect"
            ' does not'
            ' pass the id of the query to a function of foreachBatch. Use another output mode, or a'
            ' classic session'
        )
