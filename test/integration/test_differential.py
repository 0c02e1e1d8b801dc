"""The script of test/differential on a fresh real broker and on the embedded one of its release."""

from __future__ import annotations

from kafka.testing.releases import broker_release
from test.differential import recordings
from test.differential.compare import compare, explained
from test.differential.deviations import DEVIATIONS
from test.differential.runner import run


def test_embedded_broker_answers_as_the_real_one(cluster):
    release = broker_release(cluster.release.name)
    real = run(recordings.SCRIPT, cluster.address(0), release)
    ours = recordings.of_embedded(cluster.release.name)
    differences = compare(real, ours)
    unexplained = [str(d) for d in differences if not explained(d, release.version, DEVIATIONS)]
    assert not unexplained, '%d differences:\n%s' % (len(unexplained), '\n'.join(unexplained[:50]))
