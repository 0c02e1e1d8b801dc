"""The script of test/differential on fresh real brokers and on the embedded one of their release.

It starts brokers of its own: what other tests leave behind would be in the answers. ``test/run.py
--all`` does it with three releases, and asks each scenario in the first and the last of its
versions, or in the last alone where that takes long. Left to the recordings, which hold the whole
script (test/testing/test_differential.py): the versions between, and the other releases. ``python
-m test.differential --release 4.4.0`` asks real brokers all of it.
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
from test.differential.script import end_cases

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.real,
    pytest.mark.timeout(400),  # two clusters and three thousand requests, on a busy machine
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


def unexplained(release, choose):
    """Return where the answers to some cases differ without a reason."""
    real = recordings.of_real(release, choose)
    ours = recordings.of_embedded(release, choose, hopeless(real))
    version = broker_release(release).version
    return [d for d in compare(real, ours) if not explained(d, version, DEVIATIONS)]


def test_embedded_broker_answers_as_the_real_one(release):
    reason = problem(release)
    if reason:
        pytest.skip(reason)
    found = unexplained(release.name, end_cases)
    if found:
        # On a busy machine timers of a real broker may end inside a case: those are asked again.
        labels = {difference.where.split('/')[0] for difference in found}
        found = unexplained(
            release.name,
            lambda *asked: (case for case in end_cases(*asked) if case.label in labels),
        )
    assert not found, '%d differences:\n%s' % (len(found), '\n'.join(map(str, found[:50])))
