"""A release is found by its number and knows its ranges."""

from __future__ import annotations

import pytest

from kafka.conn import KafkaConnection
from kafka.protocol.api import ApiKey, request_class
from kafka.protocol.probe import OLD_RELEASES
from kafka.testing.memory import MemoryCluster
from kafka.testing.releases import NEWEST, RELEASES, broker_release


@pytest.mark.parametrize(
    'asked, found',
    [
        ('0.8.2.2', '0.8.2'),
        ('0.9.0.1', '0.9'),
        ('0.10.2', '0.10.2'),
        ('2.1.1', '2.1'),
        ('3.9.2', '3.9'),
        ('4.4.0', '4.4'),
    ],
)
def test_a_release_is_found_by_more_digits(asked, found):
    assert broker_release(asked).name == found


@pytest.mark.parametrize('asked', ['', '0.8', '2', '2.88', '5.0', 'newest', '4.4-rc1'])
def test_what_is_no_release_is_told_those_there_are(asked):
    with pytest.raises(ValueError, match=NEWEST):
        broker_release(asked)


def test_a_number_is_no_release():
    with pytest.raises(TypeError, match='must be str'):
        broker_release(4.4)


@pytest.mark.parametrize('name', RELEASES)
def test_ranges_are_such_that_this_package_can_read_them(name):
    release = broker_release(name)
    for ranges in (release.listed, release.served):
        for key, (low, high) in ranges.items():
            cls = request_class(key)
            assert cls.min_version <= low <= high <= cls.max_version, ApiKey(key)


def test_no_range_gets_lower():
    for older, newer in zip(RELEASES, RELEASES[1:]):
        before, after = broker_release(older).listed, broker_release(newer).listed
        for key in set(before) & set(after):
            assert before[key][1] <= after[key][1], (newer, ApiKey(key))


@pytest.mark.parametrize(
    'name, magic, zookeeper',
    [('0.9', 0, True), ('0.10.0', 1, True), ('0.11', 2, True), ('3.2', 2, True), ('3.3', 2, False)],
)
def test_what_follows_from_a_release(name, magic, zookeeper):
    release = broker_release(name)
    assert (release.highest_magic, release.has_zookeeper) == (magic, zookeeper)


def test_versions_compare_as_numbers():
    assert broker_release('0.10.2').version > broker_release('0.9').version


def test_4_0_lists_old_produce_versions_that_it_refuses():
    release = broker_release('4.0')
    assert (release.listed[0][0], release.served[0][0]) == (0, 3)


@pytest.mark.parametrize('name', sorted(OLD_RELEASES))
def test_clients_can_tell_releases_apart_that_list_nothing(name):
    with MemoryCluster(version=name) as cluster, cluster.patched():
        host, _, port = cluster.bootstrap.partition(':')
        connection = KafkaConnection(host, int(port))
        assert connection.api_versions() == OLD_RELEASES[name]
        connection.close()
