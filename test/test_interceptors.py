"""kafka.interceptors: bases that change nothing, and are what the option takes."""

from __future__ import annotations

import pytest

from kafka import KafkaProducer, config
from kafka.errors import InvalidOptionError
from kafka.interceptors import ConsumerInterceptor, ProducerInterceptor
from kafka.testing import Cluster


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


def test_a_record_that_is_refused_is_told_of_too():
    """It has passed on_send(); the program gets its error, whatever the interceptor does."""
    told = []

    class Told(ProducerInterceptor):
        def on_acknowledgement(self, metadata, exception):
            told.append((metadata, type(exception)))
            raise KeyError('its own')

    with Cluster(version='4.4', topics={'t': 1}) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, interceptors=[Told]
    ) as producer:
        with pytest.raises(TypeError, match='must be bytes'):
            producer.send('t', 'text')
    assert [each[0] for each in told] == [None] and issubclass(told[0][1], TypeError)
