"""Makes the metrics of a consumer, from its options.

Called by the engine. The metrics are those of :mod:`kafka.metrics.consumer_metrics`, the registry
and its reporters are made by :mod:`kafka.metrics.reporting`.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from kafka.metrics.consumer_metrics import ConsumerMetrics
from kafka.metrics.dict_reporter import DictReporter
from kafka.metrics.reporting import registry_of

__all__ = ['figures_of']


def figures_of(
    config: Mapping[str, Any],
    now: Callable[[], float],
    assigned: Callable[[], float],
    metadata_age: Callable[[], float],
) -> ConsumerMetrics:
    """Return the metrics of a consumer; arguments: its options, the rest as ConsumerMetrics.

    A DictReporter is among the reporters, as in 1.x.
    """
    prefix = config['metric_group_prefix'] or 'consumer'
    registry = registry_of(config, [DictReporter('kafka.' + prefix)])
    client_id = config['client_id']
    return ConsumerMetrics(registry, client_id, now, assigned, metadata_age, prefix)
