"""The embedded broker against recordings of real releases: no difference without a reason."""

from __future__ import annotations

import pytest

from kafka.testing.releases import broker_release
from test.differential import recordings, report
from test.differential.compare import compare, explained
from test.differential.deviations import DEVIATIONS
from test.differential.runner import hopeless

pytestmark = pytest.mark.once


@pytest.mark.parametrize('release', recordings.all_kept())
def test_embedded_broker_answers_as_recorded(release):
    real = recordings.read(recordings.kept(release))
    ours = recordings.of_embedded(release, known=hopeless(real))
    version = broker_release(release).version
    differences = compare(real, ours)
    unexplained = [str(d) for d in differences if not explained(d, version, DEVIATIONS)]
    assert not unexplained, '%d differences:\n%s' % (len(unexplained), '\n'.join(unexplained[:50]))
    row = report.release_row(report.result_of(release, real, ours))
    page = [line.split() for line in report.PAGE.read_text(encoding='utf-8').splitlines()]
    assert list(row) in page, 'write it again: ' + report.COMMAND
