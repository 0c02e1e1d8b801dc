"""Secured embedded brokers answer as secured real ones did, or there is a reason."""

from __future__ import annotations

import pytest

from kafka.testing.releases import broker_release
from test.differential import recordings, secured
from test.differential.compare import compare, explained
from test.differential.secured_deviations import DEVIATIONS

pytestmark = pytest.mark.once

RECORDED = sorted(path.name[: -len('.json.gz')] for path in secured.FOLDER.glob('*.json.gz'))


@pytest.mark.parametrize('release', RECORDED)
def test_secured_brokers_answer_as_recorded(release):
    real = recordings.read(secured.kept(release))
    differences = compare(real, secured.of_embedded(release))
    version = broker_release(release).version
    unexplained = [str(d) for d in differences if not explained(d, version, DEVIATIONS)]
    assert not unexplained, '%d differences:\n%s' % (len(unexplained), '\n'.join(unexplained[:50]))


def test_five_releases_were_recorded():
    assert len(RECORDED) == 5
