"""The pytest plugin: a fixture with an embedded cluster, and a marker with its arguments.

``kafka_cluster`` and ``@pytest.mark.kafka(version=..., brokers=..., topics=...)``. It is loaded in
every run of pytest if this package is installed, and therefore imports nothing itself.
"""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from kafka.internals.lazy_imports import import_late

MARKER = 'kafka'


def pytest_configure(config: Any) -> None:
    """Register the marker."""
    config.addinivalue_line(
        'markers',
        'kafka(version, brokers, topics, ...): the arguments of kafka.testing.Cluster for the'
        ' fixture kafka_cluster',
    )


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Give a test a cluster of its own, of one broker of the newest release unless it is marked.

    The marks of the test, its class and its module are combined; the nearest takes precedence. A
    failure inside the brokers fails the test afterwards.
    """
    arguments = {}
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        if mark.args:
            pytest.fail('the marker kafka takes keywords: kafka(version=%r)' % mark.args[0], False)
        arguments.update(mark.kwargs)
    try:
        cluster = import_late('kafka.testing').Cluster(**arguments)
    except (TypeError, ValueError) as error:
        pytest.fail('the marker kafka: %s' % error, False)
    cluster.start()
    yield cluster
    cluster.stop()
