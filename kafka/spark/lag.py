"""How far streaming queries are behind: what Spark's progress reports say of it.

Owns the reading of a report; of which connector a source is makes no difference, both write the
same offsets. Does not own how reports come (listener.py). Pure.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from kafka.errors import InvalidOptionError
from kafka.spark.offsets import parse_offsets
from kafka.structs import TopicPartition

__all__ = ['Lag', 'lags_of']


class Lag(NamedTuple):
    """How far one source of a query is behind the ends of its logs, after a micro-batch.

    query_id: the same after restarts; run_id: of this start; name: None for a query without one.
    source: which one of the query, from 0. ends: what was read up to, by partition. behind: offsets
    still to be read, by partition; empty where the ends of the logs are not reported (a query of
    ``kafka-py`` on PySpark 4.0 and 4.1).
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
        """Offsets still to be read of the partition that has most of them."""
        return max(self.behind.values(), default=0)


def lags_of(report: Mapping[str, Any], unknowing: str = '') -> List[Lag]:
    """Return the lag of each source of Kafka that a progress report tells of.

    Arguments: report: what StreamingQueryProgress.json says; unknowing: what stands in the
    description of sources whose latestOffset is no more than the end of their batch.
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
    """Return offsets that a report has as JSON or as what that means, None if it has none."""
    text = told if isinstance(told, str) else json.dumps(told)
    try:
        return parse_offsets(text, 'endOffset')
    except InvalidOptionError:
        return None  # of another source: files, a rate
