"""The embedded broker against recordings of real releases: no difference without a reason.

Client and broker are in memory, on a clock of their own: silence takes no time, and every run is
the same. One release runs over sockets as well.
"""

from __future__ import annotations

import pytest

from kafka.testing import Cluster
from kafka.testing.releases import broker_release
from test.differential import recordings, report
from test.differential.compare import compare, explained
from test.differential.comparisons import SCRIPT
from test.differential.deviations import DEVIATIONS
from test.differential.runner import hopeless

pytestmark = pytest.mark.once


#: Its script is sent to an embedded broker on sockets, too: short, but with silence in it.
ON_SOCKETS = '0.10.2.2'


def unexplained(release, real, ours):
    version = broker_release(release).version
    return [str(d) for d in compare(real, ours) if not explained(d, version, DEVIATIONS)]


@pytest.mark.parametrize('release', recordings.all_kept())
def test_embedded_broker_answers_as_recorded(release):
    real = recordings.read(recordings.kept(release))
    ours = recordings.of_embedded(release, known=hopeless(real))
    found = unexplained(release, real, ours)
    assert not found, '%d differences:\n%s' % (len(found), '\n'.join(found[:50]))
    row = report.release_row(report.result_of(SCRIPT, release, real, ours))
    page = [line.split() for line in report.PAGE.read_text(encoding='utf-8').splitlines()]
    assert list(row) in page, 'write it again: ' + report.COMMAND


def test_an_embedded_broker_on_sockets_answers_the_same():
    real = recordings.read(recordings.kept(ON_SOCKETS))
    ours = recordings.of_embedded(ON_SOCKETS, known=hopeless(real), kind=Cluster)
    found = unexplained(ON_SOCKETS, real, ours)
    assert not found, '%d differences:\n%s' % (len(found), '\n'.join(found[:50]))
