"""Secured embedded brokers answer as secured real ones did, or there is a reason."""

from __future__ import annotations

import pytest

from kafka.testing.releases import broker_release
from test.differential import recordings, report
from test.differential.compare import compare, explained
from test.differential.comparisons import SECURED
from test.differential.secured_logins import dialogues
from test.differential.secured_people import ASKS, LEFT_OUT, PEOPLE, asked_by

pytestmark = pytest.mark.once


@pytest.mark.parametrize('release', SECURED.all_kept())
def test_secured_brokers_answer_as_recorded(release):
    real = SECURED.kept(release)
    ours = SECURED.of_embedded(release, '', real)
    version = broker_release(release).version
    differences = compare(real, ours)
    found = [str(d) for d in differences if not explained(d, version, SECURED.deviations)]
    assert not found, '%d differences:\n%s' % (len(found), '\n'.join(found[:50]))
    row = report.release_row(report.result_of(SECURED, release, real, ours))
    page = [line.split() for line in report.PAGE.read_text(encoding='utf-8').splitlines()]
    assert list(row) in page, 'write it again: ' + report.COMMAND


@pytest.mark.parametrize('release', SECURED.all_kept())
def test_recordings_hold_what_is_asked(release):
    about = broker_release(release)
    labels = [label for each in PEOPLE for label, _, _ in asked_by(*each, about)]
    labels += [label for label, _ in dialogues(about)]
    assert len(set(labels)) == len(labels)
    assert {name.split('/')[0] for name in SECURED.kept(release)} == set(labels), 'record it again'


def test_five_releases_were_recorded():
    assert len(SECURED.all_kept()) == 5


def test_what_is_left_out_would_be_asked_and_is_told_on_the_page():
    page = report.PAGE.read_text(encoding='utf-8')
    for who, ask, reason in LEFT_OUT:
        assert who in {each for each, _ in PEOPLE}
        assert ask in {each.name for each in ASKS}
        assert reason in page


def test_every_deviation_of_secured_brokers_has_a_reason_and_is_met():
    page = report.PAGE.read_text(encoding='utf-8')
    for deviation in SECURED.deviations:
        assert len(deviation.reason) > 20
        assert '``%s``; none' % deviation.path not in page


def test_only_what_is_wanted_is_asked():
    told = SECURED.of_embedded('4.4.0', 'bob: produce-0,login: no handshake', {})
    assert {name.split('-')[0] for name in told} == {'bob: produce', 'login: no handshake/ask'}


def test_recordings_are_small():
    for release in SECURED.all_kept():
        assert recordings.kept(release, SECURED.folder).stat().st_size < 100_000
