"""What is logged of rebalances: each once with its reason, a row of them once with advice."""

from __future__ import annotations

import logging

import pytest

from kafka.coordinator.classic.state_machine import Reason
from kafka.coordinator.rebalance_log import RebalanceLog
from kafka.errors import KafkaConnectionError


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG, 'kafka.coordinator')
    return lambda level: [
        record.getMessage() for record in caplog.records if record.levelno == level
    ]


def test_each_rebalance_is_logged_with_group_generation_and_reason(lines):
    RebalanceLog('g').began(1.0, 7, Reason.GROUP.value)
    assert lines(logging.INFO) == ['group=g generation=7: rebalance: the group is rebalancing']


def test_five_within_a_minute_are_nothing_to_warn_of_and_six_are_once_with_advice(lines):
    log = RebalanceLog('g')
    for number in range(5):
        log.began(number, number, Reason.LATE.value)
    assert lines(logging.WARNING) == []
    for number in range(5, 20):
        log.began(number, number, Reason.LATE.value)
    (line,) = lines(logging.WARNING)
    assert line.startswith('group=g: 6 rebalances within 5 s, the last one because: ')
    assert 'max_poll_interval_ms' in line
    assert len(lines(logging.INFO)) == 20


def test_a_loop_that_begins_again_after_a_while_is_warned_of_again(lines):
    log = RebalanceLog('g')
    for number in range(10):
        log.began(number, 1, 'because')
    for number in range(10):
        log.began(1000 + number, 1, 'because')
    assert len(lines(logging.WARNING)) == 2


def test_rare_rebalances_are_no_loop(lines):
    log = RebalanceLog('g')
    for number in range(50):
        log.began(13.0 * number, 1, 'because')
    assert lines(logging.WARNING) == []


def test_the_second_half_of_a_cooperative_rebalance_does_not_count(lines):
    log = RebalanceLog('g')
    for number in range(5):
        log.began(number, 1, Reason.GROUP.value)
        log.began(number, 1, Reason.FOLLOW_UP.value)
    assert lines(logging.WARNING) == []


def test_calls_that_fail_again_and_again_are_logged_ever_more_rarely(lines):
    log = RebalanceLog('g')
    for _ in range(9):
        log.failed('JoinGroup', KafkaConnectionError('gone'))
    assert [line.split()[3] for line in lines(logging.WARNING)] == ['1', '2', '4', '8']
    log.joined(3, 4)
    log.failed('JoinGroup', KafkaConnectionError('gone'))
    assert len(lines(logging.WARNING)) == 5
