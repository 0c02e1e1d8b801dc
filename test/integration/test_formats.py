"""Every codec and message format, against clients that nobody here wrote, on real brokers.

What this package writes they read, and what they write it reads: through the 0.9.5 client, and
through ``kafka.record`` by itself, in the format that the request's version carries and in the one
that the topic is stored in.
"""

from __future__ import annotations

import pytest

from kafka import KeyedProducer, RoundRobinPartitioner
from kafka.protocol import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from test.integration import wire
from test.integration.fixtures import fetch, keys_and_values
from test.integration.oracles import Confluent, console_of

pytestmark = pytest.mark.integration

CODECS = {'none': 0, 'gzip': 1, 'snappy': 2, 'lz4': 3, 'zstd': 4}
PAIRS = [(b'key %d' % i, b'value %d ' % i + b'and so on ' * (i % 7)) for i in range(50)]


def needs(since, *values):
    """A parameter (or several) that older releases know nothing of."""
    return pytest.param(*values, marks=pytest.mark.releases(since=since))


legacy_codec = pytest.mark.parametrize(
    'codec', [CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY], ids=['none', 'gzip', 'snappy']
)


# --- the 0.9.5 client and the console programs --------------------------------------------------


@legacy_codec
def test_the_console_consumer_reads_what_the_keyed_producer_writes(cluster, client, topic, codec):
    producer = KeyedProducer(client, codec=codec, partitioner=RoundRobinPartitioner)
    for key, value in PAIRS[:10]:
        producer.send_messages(topic, key, value, value + b'!')
    written = [(key, value + end) for key, value in PAIRS[:10] for end in (b'', b'!')]
    assert console_of(cluster).read(topic, len(written)) == sorted(written)


@pytest.mark.parametrize(
    'codec',
    ['none', 'gzip', needs('0.8.2', 'snappy'), needs('0.8.2', 'lz4'), needs('2.1', 'zstd')],
)
def test_the_client_reads_what_the_console_producer_writes(cluster, client, topic, codec):
    console_of(cluster).write(topic, codec, PAIRS)
    found = keys_and_values(fetch(client, topic, 0) + fetch(client, topic, 1))
    assert sorted(found) == sorted(PAIRS)


# --- the 0.9.5 client and confluent-kafka -------------------------------------------------------


@legacy_codec
def test_confluent_reads_what_the_keyed_producer_writes(cluster, client, topic, codec):
    producer = KeyedProducer(client, codec=codec, partitioner=lambda _: FirstPartition())
    for key, value in PAIRS:
        producer.send_messages(topic, key, value, None)
    written = [(key, said) for key, value in PAIRS for said in (value, None)]
    assert Confluent(cluster).read(topic, len(written)) == written


class FirstPartition:
    """A program's own partitioner."""

    def partition(self, key, partitions=None):
        return 0


@pytest.mark.parametrize(
    'codec', ['none', 'gzip', 'snappy', needs('0.8.2', 'lz4'), needs('2.1', 'zstd')]
)
def test_the_client_reads_what_confluent_writes(cluster, client, topic, codec):
    Confluent(cluster).write(topic, codec, [*PAIRS, (None, b'no key'), (b'no value', None)])
    assert keys_and_values(fetch(client, topic, 0)) == [
        *PAIRS,
        (None, b'no key'),
        (b'no value', None),
    ]


# --- stored in an older format than the request carries ------------------------------------------


@pytest.mark.releases(since='0.10', until='2')
@pytest.mark.parametrize(
    'stored, codec',
    [
        *[needs('0.10', '0.9.0', codec) for codec in ('none', 'gzip', 'snappy', 'lz4')],
        *[needs('0.10', '0.10.0', codec) for codec in ('none', 'gzip', 'snappy', 'lz4')],
        *[needs('0.11', '0.11.0', codec) for codec in ('none', 'gzip', 'snappy', 'lz4')],
        needs('2.1', '0.11.0', 'zstd'),
    ],
)
def test_topics_kept_in_an_older_format_are_written_and_read(
    cluster, client, new_name, stored, codec
):
    topic = new_name()
    cluster.create_topic(topic, 1, config={'message.format.version': stored})
    Confluent(cluster).write(topic, codec, PAIRS)
    if CODECS[codec] in (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY):
        producer = KeyedProducer(client, codec=CODECS[codec])
        for key, value in PAIRS:
            producer.send_messages(topic, key, value)
        assert keys_and_values(fetch(client, topic, 0)) == 2 * PAIRS
        assert Confluent(cluster).read(topic, 2 * len(PAIRS)) == 2 * PAIRS
    else:
        assert keys_and_values(fetch(client, topic, 0)) == PAIRS


# --- kafka.record by itself ---------------------------------------------------------------------


def _carried(magic, codec, since, until, produce, fetch_version):
    """A format, the releases that take it in a request, and those versions of Produce and Fetch."""
    return pytest.param(
        magic,
        codec,
        produce,
        fetch_version,
        marks=pytest.mark.releases(since=since, until=until),
        id='%d-%s' % (magic, codec),
    )


@pytest.mark.parametrize(
    'magic, codec, produce, fetch_version',
    [
        *[_carried(0, codec, '0.8', '3', 0, 0) for codec in ('none', 'gzip', 'snappy')],
        _carried(0, 'lz4', '0.8.2', '3', 0, 0),
        *[_carried(1, codec, '0.10', '3', 2, 2) for codec in ('none', 'gzip', 'snappy', 'lz4')],
        *[_carried(2, codec, '0.11', '99', 3, 4) for codec in ('none', 'gzip', 'snappy', 'lz4')],
        _carried(2, 'zstd', '2.1', '99', 7, 10),
    ],
)
def test_encoded_records_are_read_by_confluent_and_by_the_decoders(
    cluster, topic, magic, codec, produce, fetch_version
):
    stamp = 1500000000000
    if magic == 2:
        headers = [('name', b'text'), ('none', None)]
        records = encode_batch(
            [(stamp + i, key, value, headers) for i, (key, value) in enumerate(PAIRS)],
            codec=CODECS[codec],
        )
    else:
        entries = [(i, stamp + i, key, value) for i, (key, value) in enumerate(PAIRS)]
        records = encode_message_set(entries, magic=magic, codec=CODECS[codec])
    assert wire.write(cluster, topic, records, produce) == 0

    assert Confluent(cluster).read(topic, len(PAIRS)) == PAIRS
    found, magics = wire.read(cluster, topic, len(PAIRS), fetch_version)
    assert magics == [magic]
    assert [(record.key, record.value) for record in found] == PAIRS
    assert [record.offset for record in found] == list(range(len(PAIRS)))
    if magic:
        assert [record.timestamp for record in found] == [stamp + i for i in range(len(PAIRS))]
    if magic == 2:
        assert {tuple(record.headers) for record in found} == {tuple(headers)}


@pytest.mark.releases(since='0.10', until='3')
@pytest.mark.parametrize('fetch_version', [0, 2, needs('0.11', 4)])
def test_records_are_read_whatever_version_fetches_them(cluster, topic, fetch_version):
    for codec in ('none', 'gzip', 'snappy', 'lz4'):
        Confluent(cluster).write(topic, codec, PAIRS)
    found, _ = wire.read(cluster, topic, 4 * len(PAIRS), fetch_version)
    assert [(record.key, record.value) for record in found] == 4 * PAIRS
