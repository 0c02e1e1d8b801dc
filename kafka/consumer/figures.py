"""The factory of the metrics of a consumer.

Called by the engine. :mod:`kafka.metrics.consumer_metrics` defines the metrics,
:mod:`kafka.metrics.reporting` makes the registry and its reporters.
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
    """Return the metrics of a consumer, with a DictReporter among the reporters, as in 1.x.

    Arguments: config: the options of the consumer; now, assigned, metadata_age: as ConsumerMetrics.
    """
    prefix = config['metric_group_prefix'] or 'consumer'
    registry = registry_of(config, [DictReporter('kafka.' + prefix)])
    client_id = config['client_id']
    return ConsumerMetrics(registry, client_id, now, assigned, metadata_age, prefix)
