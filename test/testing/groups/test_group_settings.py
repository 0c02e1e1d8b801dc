"""Which values the settings of groups may have, and which one holds."""

from __future__ import annotations

import pytest

from kafka.testing.groups.group_settings import group_config, reset_duration_ms, wrong_value
from test.testing.drive import Driver

GROUP_KIND = 32


@pytest.mark.parametrize(
    ('name', 'right', 'wrong'),
    [
        ('consumer.heartbeat.interval.ms', ['5000', '15000'], ['4999', '15001']),
        ('consumer.session.timeout.ms', ['45000', '60000'], ['44999', '60001']),
        ('share.delivery.count.limit', ['2', '10'], ['1', '11']),
        ('share.partition.max.record.locks', ['100', '4000'], ['99', '4001']),
        ('share.record.lock.duration.ms', ['15000', '60000'], ['14999', '60001']),
        ('share.session.timeout.ms', ['45000'], ['44999']),
        ('streams.num.standby.replicas', ['0', '2'], ['3']),
        ('streams.initial.rebalance.delay.ms', ['0', '1000000'], []),
        ('streams.assignor.name', ['sticky'], ['foo']),
        ('errors.deadletterqueue.topic.name', ['', 'dlq'], ['__dlq']),
        (
            'share.auto.offset.reset',
            ['latest', 'earliest', 'by_duration:PT1H'],
            ['Latest', 'none', 'by_duration:', 'by_duration:x', 'by_duration:-PT1H'],
        ),
    ],
)
def test_values_are_within_the_limits_of_the_brokers(name, right, wrong):
    state = Driver('4.4').state
    assert [wrong_value(state, name, each) for each in right] == [None] * len(right)
    assert all(wrong_value(state, name, each) for each in wrong)


def test_what_was_given_to_the_cluster_is_within_the_limits():
    state = Driver('4.4', group_share_record_lock_duration_ms=500).state
    name = 'share.record.lock.duration.ms'
    assert wrong_value(state, name, '500') is None
    assert wrong_value(state, name, '499')
    assert group_config(state, 'g', name) == '500'


def test_the_setting_of_the_group_holds_before_that_of_the_brokers():
    state = Driver('4.4').state
    name = 'share.record.lock.duration.ms'
    assert group_config(state, 'g', name) == '30000'
    state.configs[GROUP_KIND, 'g'] = {name: '20000'}
    assert group_config(state, 'g', name) == '20000'
    assert group_config(state, 'h', name) == '30000'


def test_a_release_lacks_the_settings_of_later_ones():
    with pytest.raises(KeyError):
        group_config(Driver('4.2').state, 'g', 'share.delivery.count.limit')


@pytest.mark.parametrize(
    ('value', 'back_ms'),
    [
        ('by_duration:PT1H', 3600000),
        ('by_duration:P2DT3H4M5.25S', 183845250),
        ('by_duration:pt0.5s', 500),
        ('by_duration:P', None),
        ('by_duration:P1M', None),
        ('latest', None),
    ],
)
def test_a_time_to_begin_at_is_written_as_iso_8601_says(value, back_ms):
    assert reset_duration_ms(value) == back_ms
