"""What a caller may do, as the numbers that real brokers answer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.testing.releases import broker_release
from kafka.testing.security.operations import cluster_operations, group_operations, topic_operations


@pytest.mark.parametrize('release, on_group', [('2.8', 328), ('3.9', 328), ('4.0', 3400)])
def test_everything_is_allowed_without_an_authorizer(release, on_group):
    call = SimpleNamespace(state=SimpleNamespace(release=broker_release(release)))
    assert cluster_operations(call) == 8096
    assert topic_operations(call, 't') == 3576
    assert group_operations(call, 'g') == on_group
