"""The script of test/differential on a fresh real broker and on the embedded one of its release.

It starts a broker of its own: what other tests leave behind would be in the answers. The ordinary
run does it with three releases; recordings of more are compared without any real broker.
"""

from __future__ import annotations

import os

import pytest

from kafka.testing.releases import broker_release
from servers.releases import chosen, problem
from test.differential import recordings
from test.differential.compare import compare, explained
from test.differential.deviations import DEVIATIONS
from test.differential.runner import hopeless

pytestmark = [
    pytest.mark.integration,
    pytest.mark.real,
    pytest.mark.timeout(900),  # thousands of requests, to two clusters one after the other
    pytest.mark.releases(some=('0.8.2.2', '2.8.2', '4.4.0')),
]

#: Without KAFKA_VERSION: the first API versions, the last with ZooKeeper, the newest.
USUAL = '0.8.2.2 2.8.2 4.4.0'


def pytest_generate_tests(metafunc):
    try:
        wanted = chosen(os.environ.get('KAFKA_VERSION') or USUAL)
    except ValueError as error:
        raise pytest.UsageError('KAFKA_VERSION: %s' % error) from None
    metafunc.parametrize('release', wanted, ids=[release.name for release in wanted])


def test_embedded_broker_answers_as_the_real_one(release):
    reason = problem(release)
    if reason:
        pytest.skip(reason)
    real = recordings.of_real(release.name)
    differences = compare(real, recordings.of_embedded(release.name, known=hopeless(real)))
    version = broker_release(release.name).version
    unexplained = [str(d) for d in differences if not explained(d, version, DEVIATIONS)]
    assert not unexplained, '%d differences:\n%s' % (len(unexplained), '\n'.join(unexplained[:50]))
