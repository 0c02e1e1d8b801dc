"""The lag of streaming queries, as read from Spark's progress reports.

The reports of both connectors have the same offsets. They are received by listener.py. Pure.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from kafka.errors import InvalidOptionError
from kafka.spark.offsets import parse_offsets
from kafka.structs import TopicPartition

__all__ = ['Lag', 'lags_of']


class Lag(NamedTuple):
    """The lag of one source of a query after a micro-batch.

    query_id: the same after restarts; run_id: of this start; name: None for a query without one.
    source: the index of the source in the query, from 0. ends: the end of the batch, by partition.
    behind: the number of offsets still to be read, by partition; empty if the ends of the logs are
    not reported (a query of ``kafka-py`` on PySpark 4.0 and 4.1).
    """

    query_id: str
    run_id: str
    name: Optional[str]
    batch_id: int
    source: int
    ends: Mapping[TopicPartition, int]
    behind: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        """Offsets still to be read of all partitions."""
        return sum(self.behind.values())

    @property
    def most(self) -> int:
        """The largest number of offsets still to be read of a single partition."""
        return max(self.behind.values(), default=0)


def lags_of(report: Mapping[str, Any], unknowing: str = '') -> List[Lag]:
    """Return the lag of each Kafka source in a progress report.

    Arguments: report: the content of StreamingQueryProgress.json; unknowing: a part of the
    description of sources whose latestOffset is only the end of their batch.
    """
    found = []
    for number, source in enumerate(report.get('sources') or ()):
        ends = _offsets(source.get('endOffset'))
        if ends is None:
            continue
        knows = not unknowing or unknowing not in str(source.get('description'))
        latest = (_offsets(source.get('latestOffset')) if knows else None) or {}
        behind = {each: max(0, end - ends.get(each, 0)) for each, end in latest.items()}
        found.append(
            Lag(
                str(report.get('id')),
                str(report.get('runId')),
                report.get('name'),
                int(report.get('batchId', -1)),
                number,
                ends,
                behind,
            )
        )
    return found


def _offsets(told: Any) -> Optional[Dict[TopicPartition, int]]:
    """Return offsets that a report has as JSON text or as objects, None if it has none."""
    text = told if isinstance(told, str) else json.dumps(told)
    try:
        return parse_offsets(text, 'endOffset')
    except InvalidOptionError:
        return None  # of another source: files, a rate
