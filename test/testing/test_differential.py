"""The embedded broker against recordings of real releases: no difference without a reason."""

from __future__ import annotations

import pytest

from kafka.testing.releases import broker_release
from test.differential import recordings
from test.differential.compare import compare, explained
from test.differential.deviations import DEVIATIONS

RECORDED = sorted(path.name[: -len('.json.gz')] for path in recordings.FOLDER.glob('*.json.gz'))


@pytest.mark.parametrize('release', RECORDED)
def test_embedded_broker_answers_as_recorded(release):
    real = recordings.read(recordings.kept(release))
    differences = compare(real, recordings.of_embedded(release))
    version = broker_release(release).version
    unexplained = [str(d) for d in differences if not explained(d, version, DEVIATIONS)]
    assert not unexplained, '%d differences:\n%s' % (len(unexplained), '\n'.join(unexplained[:50]))
