"""Queries in output mode update: written batch by batch, as foreachBatch of PySpark.

Called by takeover.py. Spark refuses this mode for sinks in Python, which cannot say that they take
an update as an append; the JVM connector can, and does just that. Here a function that foreachBatch
calls writes each batch as a DataFrame. With exactlyOnce its tasks are those of the query: their
transactions are named and decided by the query and the batch, which sink.py reads in BATCH_OPTION.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from kafka.errors import InvalidOptionError
from kafka.spark.options import SinkOptions

__all__ = ['BATCH_OPTION', 'BatchWrite', 'check']

#: Says which micro-batch of its query a DataFrame is. Spark's own options begin so, too.
BATCH_OPTION = '_kafka_batch_of_query'
#: What is about the query and not about its rows.
_OF_QUERIES = ('checkpointlocation', 'queryname', 'path')


class BatchWrite:
    """Writes the batches of a query; what foreachBatch is given. Travels as a pickle.

    Arguments: name: of the format; options: of the query's writer.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._options: Dict[str, Any] = {
            key: value for key, value in options.items() if key.lower() not in _OF_QUERIES
        }

    def __repr__(self) -> str:  # options have secrets
        return '<BatchWrite by %s>' % self._name

    def __call__(self, frame: Any, batch: int) -> None:
        """Append the rows of a batch to their topics."""
        writer = frame.write.format(self._name).mode('append').options(**self._options)
        writer.option(BATCH_OPTION, str(batch)).save()


def check(options: Mapping[str, Any], is_classic: bool) -> None:
    """Refuse options before the query is started.

    Arguments: options: of the query's writer; is_classic: False with Spark Connect.
    Raises: InvalidOptionError.
    """
    if SinkOptions.of(options, True).exactly_once and not is_classic:
        raise InvalidOptionError(
            "exactlyOnce=true with outputMode('update') needs a classic session: Spark Connect does"
            ' not tell a function of foreachBatch which query it writes for. Use another output'
            ' mode, or a classic session'
        )
