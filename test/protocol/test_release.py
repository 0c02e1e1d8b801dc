"""Each release is told by what it serves."""

from __future__ import annotations

import pytest

from kafka.protocol.release import release_of
from kafka.testing.releases import RELEASES, broker_release


@pytest.mark.parametrize('release', RELEASES)
def test_releases_are_told_apart(release):
    if release == '3.4':
        pytest.skip('3.4 serves what 3.3 serves')
    expected = tuple(int(part) for part in release.split('.'))
    assert release_of(broker_release(release).listed) == expected


def test_nothing_is_the_oldest():
    assert release_of({}) == (0, 8, 0)
