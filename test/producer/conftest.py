"""What the tests of producers share."""

from __future__ import annotations

import pytest

from kafka import KafkaProducer


@pytest.fixture
def make(cluster):
    """Return what makes producers of the test's cluster, of these options; closed at the end."""
    made = []

    def give(**more):
        made.append(KafkaProducer(bootstrap_servers=cluster.bootstrap, **more))
        return made[-1]

    yield give
    for producer in made:
        producer.close(timeout=30)
