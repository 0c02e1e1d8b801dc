"""The versions that releases serve, as clients take them from the release that a program names."""

from __future__ import annotations

import pytest

from kafka.protocol.release_ranges import NEWEST, RELEASES, TABLE, client_ranges, ranges_in


@pytest.mark.parametrize('name', RELEASES)
def test_each_release_has_its_ranges(name):
    assert client_ranges(tuple(map(int, name.split('.')))) == ranges_in(TABLE, name)


@pytest.mark.parametrize(
    'release, same_as',
    [((2, 8, 2), '2.8'), ((0, 10), '0.9'), ((3, 3, 1), '3.3'), ((9,), NEWEST), ((0, 7), '0.8.0')],
)
def test_a_release_that_is_not_listed_is_as_the_one_before_it(release, same_as):
    assert client_ranges(release) == ranges_in(TABLE, same_as)


def test_later_releases_serve_what_those_from_2_1_on_do():
    """KIP-896: so a release that a program names can be believed without asking."""
    newest = client_ranges((4, 4))
    for name in RELEASES[RELEASES.index('2.1') :]:
        for key in set(range(26)) & set(newest) & set(ranges_in(TABLE, name)) - {4, 5, 6, 7}:
            low, high = newest[key]
            assert low <= ranges_in(TABLE, name)[key][1] <= high, (name, key)
