"""Records whose headers have names that are not UTF-8 are returned by every reader, as any others.

Brokers store such names unchecked: librdkafka sends any bytes.
"""

from __future__ import annotations

import pytest

from kafka import KafkaClient, KafkaProducer, SimpleConsumer
from kafka.consumer import fetch_collector
from kafka.consumer.bounded.reader import BoundedReader
from kafka.structs import TopicPartition
from kafka.testing import Cluster
from test.consumer.modern import SECONDS, consumer_of, poll_until
from test.consumer.written_logs import write
from test.record.batches import AnyBytes

FIRST = TopicPartition('t', 0)
LATIN_1 = 'Zähler'.encode('latin-1')
#: As Java decodes the name, too.
DECODED = 'Z\ufffdhler'
COUNT = 40


def producer_of(cluster):
    return KafkaProducer(bootstrap_servers=cluster.bootstrap)


@pytest.fixture(params=['0.11', '4.4'])
def cluster(request):
    """Offset 7 has such a name; all others, in the same batch, have a right one."""
    with Cluster(version=request.param, topics={'t': 1}) as made:
        log = made.state.topics['t'].partitions[0].log
        names = [AnyBytes(LATIN_1) if number == 7 else 'Zaehler' for number in range(COUNT)]
        values = [(None, b'%d' % i, [(name, b'%d' % i)]) for i, name in enumerate(names)]
        write(log, *values)
        yield made


EXPECTED = [[('Zaehler' if i != 7 else DECODED, b'%d' % i)] for i in range(COUNT)]


def test_poll_returns_every_record_of_the_batch(cluster):
    with consumer_of(cluster) as consumer:
        consumer.assign([FIRST])
        found = poll_until(consumer, COUNT)
    assert [record.headers for record in found] == EXPECTED
    assert found[7].headers[0][0].raw == LATIN_1
    assert found[7].serialized_header_size == len(LATIN_1) + 1


def test_iterating_returns_every_record_of_the_batch(cluster):
    with consumer_of(cluster, consumer_timeout_ms=SECONDS * 1000) as consumer:
        consumer.assign([FIRST])
        assert [next(consumer).headers for _ in range(COUNT)] == EXPECTED


@pytest.fixture(params=['numpy', 'objects'])
def arrow(request, monkeypatch):
    """Arrow batches with numpy, and without it."""
    pytest.importorskip('pyarrow')
    if request.param == 'objects':
        monkeypatch.setattr(fetch_collector, 'has_numpy', lambda: False)
        monkeypatch.setattr('kafka.consumer.arrow_batches.has_numpy', lambda: False)
    else:
        pytest.importorskip('numpy')


def pairs(rows):
    return [[(header['key'], header['value']) for header in row] for row in rows]


@pytest.mark.usefixtures('arrow')
def test_arrow_batches_of_a_consumer_have_every_record(cluster):
    with consumer_of(cluster) as consumer:
        consumer.assign([FIRST])
        batch = consumer.poll_arrow(SECONDS * 1000, ['headers'])
    assert pairs(batch['headers'].to_pylist()) == EXPECTED


@pytest.mark.usefixtures('arrow')
def test_arrow_batches_of_a_bounded_reader_have_every_record(cluster):
    with BoundedReader('t', bootstrap_servers=cluster.bootstrap) as reader:
        (batch,) = reader.arrow(['headers'])
    assert pairs(batch['headers'].to_pylist()) == EXPECTED


def test_a_bounded_reader_returns_every_record(cluster):
    with BoundedReader('t', bootstrap_servers=cluster.bootstrap) as reader:
        found = list(reader)
    assert [list(record.headers) for record in found] == EXPECTED
    assert found[7].headers[0][0].raw == LATIN_1


def test_consumers_of_0_9_5_get_the_message_of_each_record(cluster):
    """They know no headers; those are left out when a batch becomes a message set."""
    client = KafkaClient(cluster.bootstrap)
    consumer = SimpleConsumer(client, None, 't', auto_offset_reset='smallest', auto_commit=False)
    consumer.seek(0, 0)
    found = consumer.get_messages(count=COUNT, timeout=SECONDS)
    consumer.stop()
    client.close()
    assert [each.message.value for each in found] == [b'%d' % i for i in range(COUNT)]


def test_what_was_read_is_sent_on_with_the_decoded_name(cluster):
    """A producer writes no name that is not UTF-8: the replacement character is stored."""
    with consumer_of(cluster) as consumer, producer_of(cluster) as producer:
        consumer.assign([FIRST])
        found = poll_until(consumer, COUNT)
        producer.send('t', b'on', headers=found[7].headers).get(SECONDS)
        (copied,) = poll_until(consumer, 1)
    ((name, content),) = copied.headers
    assert (name, type(name), content) == (DECODED, str, b'7')
