"""Settings of members: what holds where an option says nothing."""

from __future__ import annotations

from kafka.coordinator.group_settings import GroupSettings


def test_a_member_is_dynamic_and_has_the_times_of_3_0():
    settings = GroupSettings('g')
    assert settings.group_instance_id is None
    assert (settings.session_timeout, settings.heartbeat_interval) == (45.0, 3.0)
    assert settings.rebalance_timeout == 300.0
