"""What a KafkaProducer records into, from its options.

Owns which options matter; the figures are those of :mod:`kafka.metrics.producer_metrics`, the
registry and its reporters are made by :mod:`kafka.metrics.reporting`.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from kafka.metrics.producer_metrics import ProducerMetrics
from kafka.metrics.reporting import registry_of

__all__ = ['figures_of']


def figures_of(
    config: Mapping[str, Any], in_flight: Callable[[], float], metadata_age: Callable[[], float]
) -> ProducerMetrics:
    """Return what a producer records into; arguments: its options, the rest as ProducerMetrics."""
    compresses = config['compression_type'] is not None
    registry = registry_of(config)
    return ProducerMetrics(registry, config['client_id'], in_flight, metadata_age, compresses)
