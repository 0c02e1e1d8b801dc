"""What brokers of old releases cannot store is refused, or told, before anything is sent."""

from __future__ import annotations

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError, UnsupportedForMessageFormatError
from kafka.producer import record_checks


@pytest.fixture
def offline():
    made = []

    def make(*release):
        made.append(
            KafkaProducer(bootstrap_servers='127.0.0.1:1', api_version=release, max_block_ms=1)
        )
        return made[-1]

    yield make
    for producer in made:
        producer.close(timeout=0)


WAYS = [
    lambda producer, **more: producer.send('t', None, b'k', **more),
    lambda producer, **more: producer.send_many('t', [b'v', None], [b'k', b'l'], **more),
]


@pytest.mark.parametrize('way', WAYS, ids=['send', 'send_many'])
def test_a_null_value_before_0_8_1_is_refused(offline, way):
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind, match=r'before 0\.8\.1 .* is 0\.8\.0'):
            way(offline(0, 8, 0))
    with pytest.raises(KafkaTimeoutError):  # nobody is there, but it could be stored
        way(offline(0, 8, 1))


@pytest.mark.parametrize('way', WAYS, ids=['send', 'send_many'])
def test_headers_before_0_11_are_refused(offline, way):
    headers = [('h', b'x')]
    with pytest.raises(UnsupportedForMessageFormatError, match=r'before 0\.11 .* is 0\.10\.2'):
        way(offline(0, 10, 2), headers=headers)
    with pytest.raises(KafkaTimeoutError):
        way(offline(0, 11), headers=headers)


@pytest.mark.parametrize('way', WAYS, ids=['send', 'send_many'])
def test_a_timestamp_before_0_10_is_told_to_be_lost(offline, way, caplog, monkeypatch):
    monkeypatch.setattr(record_checks, '_told_of_timestamps', [])
    for release, told in (((0, 10), 0), ((0, 9), 1), ((0, 9), 1)):  # once
        producer = offline(*release)
        with pytest.raises(KafkaTimeoutError):
            way(producer, timestamp_ms=1)
        assert caplog.text.count('before 0.10 store no timestamps') == told
