"""kafka.interceptors: bases that change nothing, and are what the option takes."""

from __future__ import annotations

import pytest

from kafka import config
from kafka.errors import InvalidOptionError
from kafka.interceptors import ConsumerInterceptor, ProducerInterceptor


def test_the_bases_change_nothing():
    record, records = object(), {}
    assert ProducerInterceptor().on_send(record) is record
    assert ProducerInterceptor().on_acknowledgement(None, KeyError()) is None
    assert ConsumerInterceptor().on_consume(records) is records
    assert ConsumerInterceptor().on_commit({}) is None


@pytest.mark.parametrize(
    'face, given',
    [
        (config.PRODUCER, [ProducerInterceptor]),
        (config.PRODUCER, (ProducerInterceptor(),)),
        (config.CONSUMER, [ConsumerInterceptor]),
    ],
)
def test_the_option_takes_classes_and_objects(face, given):
    assert config.resolve(face, {'interceptors': given})['interceptors'] == given


@pytest.mark.parametrize('given', [ProducerInterceptor, [object()], 'x', None, [None]])
def test_the_option_refuses_what_intercepts_nothing(given):
    with pytest.raises(InvalidOptionError, match='interceptors must be a list of'):
        config.resolve(config.PRODUCER, {'interceptors': given})
