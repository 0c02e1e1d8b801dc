"""Requests and answers that are not written say what the bytes of KafkaProtocol say."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.codec import has_snappy
from kafka.errors import ChecksumError, ConsumerFetchSizeTooSmall
from kafka.protocol import KafkaProtocol, create_gzip_message, create_message, create_message_set
from kafka.protocol.fetch import FetchableTopicResponse, PartitionData
from kafka.protocol.fetch import FetchResponse as FetchMessage
from kafka.protocol.later import MessagesLater
from kafka.protocol.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka.protocol.translation import Translator, parse_old_request
from kafka.protocol.unwritten import fetched, produced, unwritten_fetch, unwritten_produce
from kafka.record.default_records import encode_batch
from kafka.record.memory_records import MemoryRecords
from kafka.structs import FetchRequest, Message, ProduceRequest

NEW = {0: (3, 9), 1: (4, 12)}
NOW = 1_700_000_000_000
READ = KafkaProtocol._decode_message_set_iter

names = st.sampled_from([b't', b'u', 'tö'.encode()])
fields = st.one_of(st.none(), st.binary(max_size=9))
messages = st.lists(
    st.builds(create_message, st.binary(max_size=9), fields), min_size=1, max_size=5
)


def produce(payloads, client_id=b'me', correlation_id=7, acks=1, timeout=1000):
    """Return the request both ways: not written (or None), and the function that writes it."""
    write = functools.partial(
        KafkaProtocol.encode_produce_request,
        client_id,
        correlation_id,
        payloads,
        acks=acks,
        timeout=timeout,
    )
    return unwritten_produce(client_id, correlation_id, payloads, acks, timeout, write), write


def fetch(payloads, client_id=b'me', correlation_id=7, max_wait_time=100, min_bytes=1):
    write = functools.partial(
        KafkaProtocol.encode_fetch_request,
        client_id,
        correlation_id,
        payloads,
        max_wait_time=max_wait_time,
        min_bytes=min_bytes,
    )
    return unwritten_fetch(
        client_id, correlation_id, payloads, max_wait_time, min_bytes, write
    ), write


def translate(old, translator=None):
    return (translator or Translator(NEW)).translate(old, NOW)


def distinct(payloads):
    return list({(p.topic, p.partition): p for p in payloads}.values())


# ---------------------------------------------------------------- requests


@given(
    st.lists(st.builds(ProduceRequest, names, st.integers(0, 3), messages), min_size=1),
    st.sampled_from([0, 1, -1, 2]),
)
def test_plain_messages_are_sent_as_their_bytes_would_be(payloads, acks):
    request, write = produce(distinct(payloads), acks=acks)
    written = parse_old_request(write())
    assert request.write() == write()
    assert request.old.header == written.header
    mine, theirs = translate(request.old), translate(written)
    assert (mine.requests, mine.version, mine.remark) == (
        theirs.requests,
        theirs.version,
        theirs.remark,
    )


@pytest.mark.parametrize('codec', [0, 1] + [2] * has_snappy())
def test_messages_made_later_are_sent_as_their_bytes_would_be(codec):
    pairs = [(b'%d' % number, b'k') for number in range(30)]
    make = functools.partial(create_message_set, pairs, codec, b'k', 6)
    values, keys = zip(*pairs)
    later = [ProduceRequest(b't', 0, MessagesLater(values, keys, codec, 6, make))]
    request, write = produce(later)
    mine, theirs = translate(request.old), translate(parse_old_request(write()))
    # Compressed once and compressed twice need not be the same bytes.
    assert [[r for b in batches(t) for r in b] for t in (mine, theirs)] == [records(pairs)] * 2
    assert [b.codec for t in (mine, theirs) for b in batches(t)] == [codec] * 2


def batches(translation):
    (request,) = translation.requests
    return list(MemoryRecords(request.topic_data[0].partition_data[0].records))


def records(pairs):
    return [(at, NOW, key, value, ()) for at, (value, key) in enumerate(pairs)]


@given(
    st.lists(
        st.builds(
            FetchRequest, names, st.integers(0, 3), st.integers(0, 1 << 62), st.integers(0, 1 << 30)
        ),
        min_size=1,
    ),
    st.integers(0, 60000),
)
def test_fetches_are_what_their_bytes_say(payloads, wait):
    request, write = fetch(distinct(payloads), max_wait_time=wait)
    assert request.old == parse_old_request(write())
    assert request.write() == write()


GOOD = create_message(b'v')


@pytest.mark.parametrize(
    'messages',
    [
        [],
        [GOOD, create_gzip_message([(b'v', None)])],
        [Message(1, 0, None, b'v')],
        [Message(0, 0, None, 'text')],
        [Message(0, 0, 5, b'v')],
        [(0, 0, None, b'v')],
        iter([GOOD]),
        None,
        'text',
    ],
)
def test_unusual_messages_are_left_to_kafka_protocol(messages):
    assert produce([ProduceRequest(b't', 0, messages)])[0] is None


@pytest.mark.parametrize(
    'topic, partition', [('t', 0), (b'\xff', 0), (b't' * 40000, 0), (b't', '0'), (b't', 1 << 31)]
)
def test_unusual_names_and_numbers_are_left_to_kafka_protocol(topic, partition):
    assert produce([ProduceRequest(topic, partition, [GOOD])])[0] is None
    assert fetch([FetchRequest(topic, partition, 0, 1)])[0] is None


@pytest.mark.parametrize(
    'unusual',
    [{'client_id': b'\xff'}, {'client_id': 'me'}, {'correlation_id': 1 << 31}],
)
def test_unusual_headers_are_left_to_kafka_protocol(unusual):
    assert produce([ProduceRequest(b't', 0, [GOOD])], **unusual)[0] is None
    assert fetch([FetchRequest(b't', 0, 0, 1)], **unusual)[0] is None


@pytest.mark.parametrize('unusual', [{'acks': 1 << 15}, {'acks': None}, {'timeout': 1.5}])
def test_unusual_acknowledgements_are_left_to_kafka_protocol(unusual):
    assert produce([ProduceRequest(b't', 0, [GOOD])], **unusual)[0] is None


@pytest.mark.parametrize('unusual', [{'max_wait_time': 1.5}, {'min_bytes': None}])
def test_unusual_waits_are_left_to_kafka_protocol(unusual):
    assert fetch([FetchRequest(b't', 0, 0, 1)], **unusual)[0] is None


def test_nothing_and_what_comes_twice_is_left_to_kafka_protocol():
    twice = [ProduceRequest(b't', 0, [GOOD])] * 2
    assert produce(twice)[0] is produce([])[0] is fetch([])[0] is None


def test_a_client_without_a_name():
    request, write = fetch([FetchRequest(b't', 0, 0, 1)], client_id=None)
    assert request.old == parse_old_request(write())


# ---------------------------------------------------------------- answers


def test_a_produce_answer_is_read_as_its_bytes():
    parts = [PartitionProduceResponse(index=i, error_code=i, base_offset=9 - i) for i in range(3)]
    topics = [TopicProduceResponse(name=name, partition_responses=parts) for name in ('t', 'tö')]
    translation = translate(produce([ProduceRequest(b't', 0, [GOOD])])[0].old)
    translation._answer = lambda responses: ProduceResponse(responses=topics)
    unread = translation.unread([])
    assert list(produced(unread.response)) == list(
        KafkaProtocol.decode_produce_response(unread.write())
    )


def answer(records, error=0, offset=0, max_bytes=1 << 20):
    """Return an answer to a fetch, not written yet; called again it is another one."""
    request, _ = fetch([FetchRequest(b't', 3, offset, max_bytes)])
    part = PartitionData(partition_index=3, error_code=error, high_watermark=9, records=records)
    topic = FetchableTopicResponse(topic='t', partitions=[part])
    return translate(request.old).unread([FetchMessage(responses=[topic])])


def both_ways(*arguments, **options):
    """Read an answer both ways; messages as lists."""
    found = fetched(answer(*arguments, **options).response, READ)
    written = KafkaProtocol.decode_fetch_response(answer(*arguments, **options).write())
    return [[r._replace(messages=list(r.messages)) for r in way] for way in (found, written)]


def batch(pairs, base_offset=0, codec=0):
    rows = [(NOW, key, value, ()) for key, value in pairs]
    return encode_batch(rows, base_offset=base_offset, codec=codec)


@given(st.lists(st.tuples(fields, fields), min_size=1, max_size=9), st.integers(0, 8))
def test_fetched_messages_are_those_of_the_bytes(pairs, offset):
    offset %= 2 * len(pairs)
    data = batch(pairs) + batch(pairs, len(pairs), codec=1)
    found, written = both_ways(data, offset=offset)
    assert found == written
    (response,) = found
    assert [type(m) for m in response.messages] == [type(m) for m in written[0].messages]
    assert all(type(m.message) is Message for m in response.messages)
    assert [m.offset for m in response.messages] == list(range(offset, 2 * len(pairs)))


@pytest.mark.parametrize('records', [b'', None])
def test_no_messages(records):
    found, written = both_ways(records)
    assert found == written
    assert found[0].messages == []


def test_an_error_of_a_partition():
    found, written = both_ways(b'', error=3)
    assert found == written
    assert found[0].error == 3


def test_what_cannot_be_read_raises_where_the_bytes_would():
    damaged = bytearray(batch([(None, b'v')]))
    damaged[-1] ^= 1
    for records, options, error in (
        (bytes(damaged), {}, ChecksumError),
        (batch([(None, b'v' * 99)]), {'max_bytes': 50}, ConsumerFetchSizeTooSmall),
        (batch([(None, b'v')])[:-1], {}, ConsumerFetchSizeTooSmall),
    ):
        unread = answer(records, **options)
        for way in (
            fetched(answer(records, **options).response, READ),
            KafkaProtocol.decode_fetch_response(unread.write()),
        ):
            (response,) = way
            with pytest.raises(error):
                list(response.messages)


def test_messages_are_read_once():
    (response,) = fetched(answer(batch([(None, b'v')])).response, READ)
    assert len(list(response.messages)) == 1
    assert list(response.messages) == []
