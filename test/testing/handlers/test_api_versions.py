"""A release lists what it serves."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.testing.calls import HANDLERS
from kafka.testing.releases import broker_release
from test.testing.drive import Driver

SOFTWARE = {'client_software_name': 'test', 'client_software_version': '1'}
GOOD = ApiVersionsRequest(**SOFTWARE)


@pytest.mark.parametrize('name', ['0.10.0', '1.1', '2.8', '4.4'])
def test_what_is_listed_is_what_the_release_has(name):
    answer = Driver(name).ask(ApiVersionsRequest(), version=0)
    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    release = broker_release(name)
    for_clients = {key: release.listed[key] for key in release.listed if key in HANDLERS}
    assert listed == {**for_clients, **release.between_brokers}
    assert answer.error_code == 0


@pytest.mark.parametrize('name, there', [('0.10.0', True), ('3.2', True), ('3.3', False)])
def test_where_zookeeper_is_the_calls_of_its_controller_are_listed(name, there):
    answer = Driver(name).ask(ApiVersionsRequest(), version=0)
    assert ({4, 5, 6, 7} <= {each.api_key for each in answer.api_keys}) is there


def test_the_list_is_in_order():
    keys = [each.api_key for each in Driver().ask(ApiVersionsRequest(), version=0).api_keys]
    assert keys == sorted(keys)


def test_every_version_is_answered():
    driver = Driver()
    low, high = driver.state.release.served[18]
    for version in range(low, high + 1):
        assert driver.ask(GOOD if version >= 3 else ApiVersionsRequest(), version).api_keys


@pytest.mark.parametrize('release', ['2.8', '3.9', '4.4'])
@pytest.mark.parametrize('word', ['', 'a b', '-a', 'a.', 'ä', 'a_b', 'a\n'])
def test_software_that_has_no_good_name_or_version_is_refused(release, word):
    driver = Driver(release)
    for fields in ({'client_software_name': word}, {'client_software_version': word}):
        request = ApiVersionsRequest(**{**SOFTWARE, **fields})
        assert driver.ask(request, version=3) == ApiVersionsResponse(error_code=42, api_keys=[])


@pytest.mark.parametrize('word', ['a', 'Z9', 'a-b.c', '1.0'])
def test_names_of_software(word):
    request = ApiVersionsRequest(client_software_name=word, client_software_version=word)
    assert Driver().ask(request).error_code == 0


@pytest.mark.parametrize('fields', [{'cluster_id': 'other'}, {'node_id': 1}, {'cluster_id': ''}])
def test_who_means_another_broker_has_to_bootstrap_anew(fields):
    driver = Driver()
    request = ApiVersionsRequest(**SOFTWARE, **fields)
    assert driver.ask(request) == ApiVersionsResponse(error_code=129, api_keys=[])


def test_who_means_this_broker_is_answered():
    driver = Driver(brokers=2)
    place = {'cluster_id': driver.state.cluster_id, 'node_id': 1}
    assert driver.ask(ApiVersionsRequest(**SOFTWARE, **place), node=1).error_code == 0


def test_features_whose_lowest_level_is_0_can_be_told_from_version_4_on():
    driver = Driver('3.9')
    told = {
        version: [
            (each.name, each.min_version) for each in driver.ask(GOOD, version).supported_features
        ]
        for version in (3, 4)
    }
    assert told == {
        3: [('metadata.version', 1)],
        4: [('metadata.version', 1), ('kraft.version', 0)],
    }


@pytest.mark.parametrize('release, epoch', [('2.6', -1), ('2.8', 0), ('3.9', 1)])
def test_features_have_an_epoch(release, epoch):
    assert Driver(release).ask(GOOD, version=3).finalized_features_epoch == epoch


def test_the_epoch_rises_with_every_change_of_a_feature():
    driver = Driver('3.9')
    update = FeatureUpdateKey(feature='metadata.version', max_version_level=20, upgrade_type=2)
    request = UpdateFeaturesRequest(feature_updates=[update])
    for epoch in (2, 2):  # the second changes nothing
        driver.ask(request, version=1)
        assert driver.ask(GOOD).finalized_features_epoch == epoch
