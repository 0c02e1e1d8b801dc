"""The deserializers of all eras behind one call."""

from __future__ import annotations

import pytest

from kafka.consumer.deserializers import adapt_deserializer
from kafka.errors import KafkaConfigurationError
from kafka.serializer import DefaultSerializer


class Old:
    def deserialize(self, topic, data):
        return topic, data


class New:
    def deserialize(self, topic, headers, data):
        return topic, headers, data


def test_that_none_is_none():
    assert adapt_deserializer('key_deserializer', None) is None


def test_that_a_callable_gets_the_data():
    adapted = adapt_deserializer('value_deserializer', bytes.decode)
    assert list(adapted.over('t', [[], []], [b'a', b'b'])) == ['a', 'b']


def test_that_an_object_of_1_3_gets_the_topic_too():
    adapted = adapt_deserializer('value_deserializer', Old())
    assert list(adapted.over('t', [[]], [b'a'])) == [('t', b'a')]


def test_that_an_object_of_3_0_gets_topic_and_headers():
    adapted = adapt_deserializer('value_deserializer', New())
    assert list(adapted.over('t', [[('h', b'1')]], [None])) == [('t', [('h', b'1')], None)]


def test_that_ours_is_one():
    adapted = adapt_deserializer('value_deserializer', DefaultSerializer())
    assert list(adapted.over('t', [[]], [b'a'])) == ['a']


def test_that_an_adapted_one_stays_as_it_is():
    adapted = adapt_deserializer('value_deserializer', bytes.decode)
    assert adapt_deserializer('value_deserializer', adapted) is adapted


def test_that_anything_else_is_refused_by_the_name_of_the_option():
    with pytest.raises(KafkaConfigurationError, match='key_deserializer must be callable'):
        adapt_deserializer('key_deserializer', 'utf-8')
