"""A blocking request that is interrupted at any point leaves no answer for the next one to read."""

from __future__ import annotations

import pytest

from kafka import KafkaClient, SimpleClient, SimpleProducer
from kafka.conn import KafkaConnection
from kafka.structs import OffsetRequestPayload
from kafka.testing import Cluster
from test.consumer.modern import write
from test.raising import Interruption, Raiser, needs_points, points

pytestmark = [pytest.mark.once, needs_points]

MOST_POINTS = 30


class Limit(Exception):
    """What a job runner raises when the time is over."""


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'a': 1, 'b': 1}) as made:
        write(made, 3, 'a')
        write(made, 5, 'b')
        yield made


def raised(call, at, error):
    """Call something and raise at a point of it; return how many points were met."""
    raiser = Raiser(at, error)
    try:
        with raiser:
            call()
    except error:
        pass
    return raiser


def end_of(client, topic):
    name = topic if isinstance(client, SimpleClient) else topic.encode()
    (answer,) = client.send_offset_request([OffsetRequestPayload(name, 0, -1, 1)])
    return answer.offsets[0]


@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError])
@pytest.mark.parametrize('kind', [KafkaClient, SimpleClient])
def test_the_next_request_gets_its_own_answer(cluster, kind, error):
    client = kind(cluster.bootstrap)
    try:
        assert (end_of(client, 'a'), end_of(client, 'b')) == (3, 5)
        count = raised(lambda: end_of(client, 'a'), None, error).count
        for at in points(count, MOST_POINTS):
            where = raised(lambda: end_of(client, 'a'), at, error).raised_at
            assert end_of(client, 'b') == 5, where
    finally:
        client.close()


@pytest.mark.parametrize('error', [Limit, Interruption])
@pytest.mark.parametrize('kind', [KafkaClient, SimpleClient])
def test_the_next_request_gets_its_own_answer_where_the_clean_up_was_interrupted(
    cluster, monkeypatch, kind, error
):
    """A second exception comes before the connection with the unread answer is closed."""

    def interrupt(*arguments):
        raise error

    client = kind(cluster.bootstrap)
    try:
        assert end_of(client, 'a') == 3
        with monkeypatch.context() as patched, pytest.raises(error):
            patched.setattr(KafkaConnection, '_read_frame', interrupt)
            patched.setattr(KafkaConnection, 'close', interrupt)
            end_of(client, 'a')
        assert end_of(client, 'b') == 5
        assert end_of(client, 'a') == 3
    finally:
        client.close()


@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError])
def test_what_was_sent_after_an_interruption_is_stored(cluster, error):
    """Each message that was confirmed is stored once, one that was interrupted once or never."""
    client = KafkaClient(cluster.bootstrap)
    producer = SimpleProducer(client)
    log = cluster.state.topics['a'].partitions[0].log
    try:
        producer.send_messages('a', b'first')
        count = raised(lambda: producer.send_messages('a', b'torn'), None, error).count
        for at in points(count, MOST_POINTS):
            before = log.end_offset
            where = raised(lambda: producer.send_messages('a', b'torn'), at, error).raised_at
            assert log.end_offset - before <= 1, where
            (answer,) = producer.send_messages('a', b'whole')
            assert answer.offset == log.end_offset - 1, where
    finally:
        producer.stop()
        client.close()
