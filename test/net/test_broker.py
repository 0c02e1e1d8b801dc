"""One broker: the ways to it, and what goes wrong on them."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from kafka.net.attempts import Attempt, at_stage, describe, hint_for, stage_of


def test_an_attempt_says_where_when_and_why():
    error = at_stage(KafkaConnectionError('refused'), 'TCP')
    attempt = Attempt('broker:9092', '10.0.0.1', stage_of(error, 'DNS'), 0.25, error, 'hint')
    assert str(attempt) == (
        'broker:9092 (10.0.0.1): TCP after 0.25 s: ConnectionError: refused; hint'
    )
    assert describe([attempt] * 9).count('refused') == 5


def test_the_first_stage_that_is_noted_counts():
    error = at_stage(at_stage(KafkaConnectionError('x'), 'DNS'), 'TLS')
    assert stage_of(error, 'SASL') == 'DNS'
    assert stage_of(KafkaConnectionError('x'), 'SASL') == 'SASL'


def test_a_hint_where_the_cause_is_known():
    error = KafkaConnectionError('the peer sent an HTTP answer; this is a web server')
    assert 'web server' in hint_for('ApiVersions', error)
    assert hint_for('ApiVersions', KafkaConnectionError('closed')) == ''
