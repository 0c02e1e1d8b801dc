"""Frames that are almost requests: nothing fails inside the brokers, and nothing piles up."""

from __future__ import annotations

import gc
import os
import random
import tracemalloc

import pytest

from kafka.protocol.api import encode_request, request_class
from kafka.protocol.frames import frame
from kafka.record.default_records import encode_message_batch
from kafka.testing.calls import HANDLERS
from test.testing.drive import Driver
from test.testing.filled_messages import filled, made_by_chance

pytestmark = pytest.mark.once

#: Together 100,000 in the thorough profile.
RELEASES = ['0.8.0', '0.8.2', '0.9', '0.10.2', '0.11', '1.1', '2.8', '3.9', '4.0', '4.4']
BATCH = encode_message_batch([b'k', None], [b'v' * 20, None], 1_600_000_000_000, 0, None)
FRAMES = 10000 if os.environ.get('HYPOTHESIS_PROFILE') == 'thorough' else 150
#: The log of requests is full after 10,000, and a quarter of that is what it may hold.
MAX_GROWTH_BYTES = 32 * 1024 * 1024


def request_bytes(chance, driver):
    """Return a request of what the release serves, without a length."""
    served = driver.state.release.served
    key = chance.choice([key for key in served if key in HANDLERS])
    version = chance.randint(*served[key])
    if chance.random() < 0.7:
        ids = [topic.topic_id for topic in list(driver.state.topics.values())[:3]]
        made = made_by_chance(request_class(key), version, chance, BATCH, ids)
        return bytearray(encode_request(made, version, 1, 'noise'))
    request = filled(request_class(key), version)
    if key == 0:
        batch = BATCH if chance.random() < 0.9 else chance.choice([None, bytes(99)])
        request.topic_data[0].partition_data[0].records = batch
    return bytearray(encode_request(request, version, 1, 'noise'))


def damaged(chance, driver):
    """Return a frame: a request with some bytes changed, cut off or added, or noise."""
    kind = chance.random()
    if kind < 0.03:
        body = bytearray(chance.getrandbits(8) for _ in range(chance.randrange(60)))
    else:
        body = request_bytes(chance, driver)
        for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
            changed = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
            body[chance.randrange(8, len(body))] = changed
    if kind > 0.9:
        del body[chance.randrange(8, len(body)) :]
    elif kind > 0.85:
        body += bytes(chance.randrange(10))
    elif kind > 0.82:
        body[chance.randrange(4)] = chance.randrange(256)  # of API key or version
    whole = bytearray(frame(bytes(body)))
    if kind > 0.995:
        whole[chance.randrange(4)] = chance.choice([0, 127, 255])  # of the length
    return bytes(whole)


def pieces(chance, data):
    """Yield the bytes as a network may cut them."""
    while data:
        size = len(data) if chance.random() < 0.8 else chance.randrange(1, len(data) + 1)
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize('release', RELEASES)
def test_noise_fails_nowhere_and_piles_up_nowhere(release):
    chance = random.Random(release)
    driver = Driver(release, brokers=2)
    client = driver.client()
    held = {}
    tracemalloc.start()
    try:
        for number in range(FRAMES):
            inside_frame = client.connection._frames.inside_frame  # it would swallow what follows
            if client.wire.is_closed or not client.connection.wants_data or inside_frame:
                client.connection.close()
                client = driver.client(chance.randrange(2))
            if number % 50 == 0 and 'x' not in driver.state.topics:
                driver.state.create_topic('x')
            data = damaged(chance, driver)
            for piece in pieces(chance, data):
                client.connection.receive_data(piece)
            client.wire.written.clear()
            driver.advance(chance.choice([0, 0, 0.5]))
            assert not driver.state.control.failures, data
            if number in (FRAMES // 2, FRAMES - 1):
                gc.collect()
                held[number], _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    client.connection.close()
    driver.advance(3600)
    assert not driver.state.control.failures
    assert all(broker._connections == {} for broker in driver.brokers.values())
    assert held[FRAMES - 1] - held[FRAMES // 2] < MAX_GROWTH_BYTES, held
