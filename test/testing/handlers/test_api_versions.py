"""A release lists what it serves."""

from __future__ import annotations

import pytest

from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.testing.calls import HANDLERS
from kafka.testing.releases import broker_release
from test.testing.drive import Driver


@pytest.mark.parametrize('name', ['0.10.0', '1.1', '2.8', '4.4'])
def test_what_is_listed_is_what_the_release_has(name):
    answer = Driver(name).ask(ApiVersionsRequest(), version=0)
    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    release = broker_release(name).listed
    assert listed == {key: release[key] for key in release if key in HANDLERS}
    assert answer.error_code == 0


def test_the_list_is_in_order():
    keys = [each.api_key for each in Driver().ask(ApiVersionsRequest(), version=0).api_keys]
    assert keys == sorted(keys)


def test_every_version_is_answered():
    driver = Driver()
    low, high = driver.state.release.served[18]
    for version in range(low, high + 1):
        request = ApiVersionsRequest(client_software_name='test', client_software_version='1')
        if version < 3:
            request = ApiVersionsRequest()
        assert driver.ask(request, version=version).api_keys
