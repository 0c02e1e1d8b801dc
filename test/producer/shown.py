"""Which options of KafkaProducer tests have shown to have an effect."""

from __future__ import annotations

SHOWN = set()


def shows(*names):
    """Say of a test which options it shows the effect of."""
    SHOWN.update(names)
    return lambda test: test


def received(cluster, api):
    """Return the requests of one kind that brokers got."""
    return [each for each in cluster.requests if each.api.name == api]


def batches_of(produce):
    """Return the batches in a produce request, as bytes."""
    return [
        bytes(part.records) for topic in produce.request.topic_data for part in topic.partition_data
    ]
