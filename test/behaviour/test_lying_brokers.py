"""What a broker may lie about, and the documented error each lie ends in.

It tells that it is Kafka 4.4, so the requests of the 0.9.5 client reach it translated, and then
answers Fetch, Produce, ListOffsets, Metadata and FindCoordinator with what no broker says.
"""

from __future__ import annotations

import functools
import struct
from contextlib import closing

import pytest

from kafka import KafkaClient, SimpleConsumer, SimpleProducer
from kafka.codec import compress, gzip_decode, has_lz4, has_snappy, has_zstd
from kafka.errors import (
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaUnavailableError,
    ProtocolError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol import KafkaProtocol, api, create_message
from kafka.record.crc32c import crc32c
from kafka.record.default_records import encode_batch
from kafka.structs import (
    FetchRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetRequest,
    ProduceRequest,
)
from test.hostile_servers import CLOSE, Broker, fetched, listed, produced, raw
from test.record import oracle

MIB = 1024 * 1024

#: Where the fields of a batch's header stand.
BASE_OFFSET, LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_OFFSET_DELTA, COUNT = 0, 8, 16, 17, 21, 23, 57


def batch(base_offset=0, count=3, **options):
    return encode_batch(
        [(1000, None, b'v%d' % (base_offset + n), []) for n in range(count)],
        base_offset=base_offset,
        **options,
    )


def forged(position, form, value):
    """Return a batch with one field of its header overwritten and the right CRC."""
    data = bytearray(batch())
    struct.pack_into(form, data, position, value)
    return with_crc(data)


def with_payload(payload, codec=0):
    """Return a batch that tells of one record and holds these bytes, with the right CRC."""
    data = bytearray(batch(count=0)) + payload
    struct.pack_into('>i', data, LENGTH, len(data) - 12)
    struct.pack_into('>h', data, ATTRIBUTES, codec)
    struct.pack_into('>i', data, LAST_OFFSET_DELTA, 0)
    struct.pack_into('>i', data, COUNT, 1)
    return with_crc(data)


def with_crc(data):
    struct.pack_into('>I', data, CRC, crc32c(data[ATTRIBUTES:]))
    return bytes(data)


#: What a fetch is answered with, and the error that reaches the program.
LIES_ABOUT_RECORDS = {
    'wrong CRC': (fetched(batch()[:-1] + b'x'), ChecksumError, 'CRC'),
    'more records than bytes': (fetched(forged(COUNT, '>i', 2**31 - 1)), ProtocolError, 'fit'),
    'negative number of records': (fetched(forged(COUNT, '>i', -1)), ProtocolError, 'negative'),
    'negative length of a batch': (fetched(forged(LENGTH, '>i', -1)), ProtocolError, '-1 bytes'),
    'unknown magic': (fetched(forged(MAGIC, '>b', 3)), ProtocolError, 'magic 3'),
    'offsets below 0': (fetched(forged(BASE_OFFSET, '>q', -9)), ProtocolError, 'was requested'),
    'offsets beyond int64': (
        fetched(forged(BASE_OFFSET, '>q', 2**63 - 1)),
        ProtocolError,
        'out of range',
    ),
    'last offset before the first': (
        fetched(forged(LAST_OFFSET_DELTA, '>i', -1)),
        ProtocolError,
        'was requested',
    ),
    'endless varint': (fetched(with_payload(b'\xff' * 40)), ProtocolError, 'batch'),
    'varint that is cut off': (fetched(with_payload(b'\x80' * 9)), ProtocolError, 'batch'),
    'garbage': (fetched(b'\xff' * 100), ProtocolError, '-1 bytes'),
    'only the beginning of a batch': (
        fetched(batch()[:40]),
        ConsumerFetchSizeTooSmall,
        'larger than 40 bytes',
    ),
    'another topic': (fetched(batch(), topic='x'), UnknownError, 'UnknownError'),
    'another partition': (fetched(batch(), partitions=(7,)), UnknownError, 'UnknownError'),
    'no partition': (fetched(batch(), partitions=()), UnknownError, 'UnknownError'),
    'error code that does not exist': (fetched(b'', error_code=999), UnknownError, 'UnknownError'),
    'unknown topic': (fetched(b'', error_code=3), UnknownTopicOrPartitionError, 'UnknownTopic'),
}


@pytest.mark.parametrize('lie', LIES_ABOUT_RECORDS)
def test_a_broker_that_lies_about_records(lie):
    answer, error, told = LIES_ABOUT_RECORDS[lie]
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False, iter_timeout=1)
        for attempt in (
            consumer.get_message,
            consumer.get_messages,
            functools.partial(list, consumer),
        ):
            consumer.queue.clear()
            consumer.fetch_offsets[0] = 0
            with pytest.raises(error, match=told):
                attempt()
        assert broker.count(1) < 50


def bombs():
    """Yield codec and a few KiB that expand to 200 MiB: streams that follow each other."""
    for codec in [1] + [3] * has_lz4() + [4] * has_zstd():
        yield codec, compress(codec, bytes(MIB)) * 200
    if has_snappy():
        framed = compress(2, bytes(32 * 1024))
        yield 2, framed[:16] + framed[16:] * 6400


BOMBS = dict(bombs())


@pytest.mark.parametrize('codec', BOMBS)
def test_a_compression_bomb(codec):
    """128 MiB is the limit of a batch."""
    answer = fetched(with_payload(BOMBS[codec], codec))
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=5)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        with pytest.raises(ProtocolError, match='partition 0: .*expands to more than'):
            consumer.get_message(timeout=5)


def test_a_compression_bomb_in_an_old_message_set():
    bomb = oracle.write_message(None, BOMBS[1], 0, 1)
    with pytest.raises(ProtocolError, match='expands to more than'):
        list(KafkaProtocol._decode_message_set_iter(oracle.write_entry(0, bomb)))
    with pytest.raises(ProtocolError, match='expands to more than 10 bytes'):
        gzip_decode(compress(1, bytes(11)), limit=10)


def test_messages_before_the_damage_are_handed_out():
    """The header tells of two records; what they begin with is read, what follows is not."""
    answer = fetched(forged(COUNT, '>i', 2))
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        with pytest.raises(ProtocolError, match='follow the last record'):
            consumer.get_messages(9)
        assert [m.offset for m in consumer.get_messages(9)] == [0, 1]
        with pytest.raises(ProtocolError, match='follow the last record'):
            consumer.get_messages(9)
        assert consumer.offsets == {0: 2}


def test_records_that_never_reach_the_offset_asked_for_are_told_and_not_delivered_twice():
    answer = fetched(batch())  # whatever is asked
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        assert [m.offset for m in consumer.get_messages(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(ProtocolError, match='up to offset 2, but 3 was requested'):
                consumer.get_messages(3)
        assert (broker.count(1), consumer.offsets) == (3, {0: 3})


def test_control_batches_without_end_end_with_the_time_of_the_call():
    answer = fetched(lambda offset: batch(offset, 1, control=True, transactional=True))
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        assert consumer.get_messages(3, timeout=0.1) == []
        assert consumer.offsets == {0: 0}


def test_partitions_that_come_twice_or_unasked_bring_each_message_once():
    answer = fetched(lambda offset: batch(offset), partitions=(0, 0, 7))
    with Broker({1: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        assert [m.offset for m in consumer.get_messages(6)] == [0, 1, 2, 3, 4, 5]


LIES_ABOUT_WRITING = {
    'another topic': produced('x'),
    'another partition': produced(partitions=(7,)),
    'no partition': produced(partitions=()),
    'error code that does not exist': produced(error_code=999),
}


@pytest.mark.parametrize('lie', LIES_ABOUT_WRITING)
def test_success_for_what_was_not_asked_is_no_success(lie):
    answer = LIES_ABOUT_WRITING[lie]
    with Broker({0: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        with pytest.raises(UnknownError):
            SimpleProducer(client).send_messages(b't', b'v')
        (response,) = SimpleProducer(client, sync_fail_on_error=False).send_messages(b't', b'v')
        assert response.error not in (0, None)


@pytest.mark.parametrize(
    ('answer', 'error'),
    [
        (listed('x'), UnknownError),
        (listed(partitions=()), UnknownError),
        (listed(offset=-7), ProtocolError),
    ],
)
def test_a_position_that_is_none_moves_nothing(answer, error):
    with Broker({2: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        consumer = SimpleConsumer(client, None, b't', auto_commit=False)
        with pytest.raises(error):
            consumer.seek(0, 2)
        assert consumer.offsets == consumer.fetch_offsets == {0: 0}


#: Answers that fit no request: each fails the payloads of the broker, with the cause.
BROKEN_ANSWERS = {
    'nothing': lambda header, request: b'',
    'another correlation id': lambda header, request: (
        struct.pack('>i', header.correlation_id + 1) + b'\x00' * 50
    ),
    'cut off': raw(b'\x00'),
    'endless varint': raw(b'\x00' * 5 + b'\xff' * 50),
    'a count of a billion': raw(b'\x00' * 5 + b'\x81\x94\xeb\xdc\x03' * 9),
    'bytes behind the end': raw(b'\x00' * 500),
    'none, and the connection closed': lambda header, request: CLOSE,
}


@pytest.mark.parametrize('key', [0, 1, 2, 8, 9, 18])
@pytest.mark.parametrize('broken', BROKEN_ANSWERS)
def test_a_broken_answer_fails_the_payloads(key, broken):
    answer = BROKEN_ANSWERS[broken]
    with Broker({key: answer}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        calls = {
            0: lambda: client.send_produce_request(
                [ProduceRequest(b't', 0, [create_message(b'v')])], fail_on_error=False
            ),
            1: lambda: client.send_fetch_request(
                [FetchRequest(b't', 0, 0, 100)], fail_on_error=False
            ),
            2: lambda: client.send_offset_request(
                [OffsetRequest(b't', 0, -1, 1)], fail_on_error=False
            ),
            8: lambda: client.send_offset_commit_request(
                b'g', [OffsetCommitRequest(b't', 0, 5, b'')], fail_on_error=False
            ),
            9: lambda: client.send_offset_fetch_request(
                b'g', [OffsetFetchRequest(b't', 0)], fail_on_error=False
            ),
        }
        (failure,) = calls.get(key, calls[0])()
        assert isinstance(failure, FailedPayloadsError)
        assert isinstance(failure.__cause__, KafkaConnectionError)


@pytest.mark.parametrize(
    'leader',
    [{'host': ''}, {'port': 0}, {'port': -1}, {'port': 70000}, {'leader': 7}, {'leader': -7}],
    ids=str,
)
def test_a_leader_without_a_usable_address_fails_its_payloads(leader):
    with Broker() as broker:
        broker.answers[3] = lambda header, request: broker.metadata(**leader)
        with closing(KafkaClient(broker.address, timeout=2)) as client:
            with pytest.raises(FailedPayloadsError) as caught:
                SimpleProducer(client).send_messages(b't', b'v')
            assert isinstance(caught.value.__cause__, KafkaConnectionError)


def test_a_leader_whose_host_is_no_text_fails_its_payloads():
    def metadata(header, request):
        return (
            struct.pack('>iiih', header.correlation_id, 1, 0, 2)  # one broker, a host of 2 bytes
            + b'\xff\xfe'
            + struct.pack('>iihh', 9092, 1, 0, 1)  # port; one topic, no error, a name of 1 byte
            + b't'
            + struct.pack('>ihiiii', 1, 0, 0, 0, 0, 0)  # partition 0, leader 0
        )

    with Broker({3: metadata}) as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        with pytest.raises(FailedPayloadsError):
            SimpleProducer(client).send_messages(b't', b'v')


@pytest.mark.parametrize('where', [{'host': ''}, {'port': 0}, {'port': 70000}], ids=str)
def test_a_coordinator_without_a_usable_address_fails_its_payloads(where):
    with Broker() as broker, closing(KafkaClient(broker.address, timeout=2)) as client:
        broker.answers[10] = lambda header, request: broker.coordinator(**where)
        with pytest.raises(FailedPayloadsError):
            client.send_offset_fetch_request(b'g', [OffsetFetchRequest(b't', 0)])


def test_an_answer_to_a_request_that_wants_none_is_never_taken_for_another():
    with Broker({0: produced()}) as broker:
        with closing(KafkaClient(broker.address, timeout=2)) as client:
            assert SimpleProducer(client, req_acks=0).send_messages(b't', b'v') == []
            with pytest.raises(KafkaUnavailableError, match='correlation id 2 where 3 was next'):
                client.send_metadata_request()
            assert client.send_metadata_request().topics[0].topic == b't'


def test_a_broker_that_closes_at_any_byte_of_its_answer():
    """Whatever part of an answer has come, no message is taken for written."""
    whole = len(api.encode_response(produced()(None, None), 12, 0)) + 4
    kept = [whole]

    class Cutter(Broker):
        def _answer_frame(self, data):
            said = super()._answer_frame(data)
            return (said[: kept[0]], CLOSE) if self.requests[-1][0] == 0 else said

    with Cutter({0: produced()}) as broker:
        with closing(KafkaClient(broker.address, timeout=2)) as client:
            for position in range(whole):
                kept[:] = [position]
                payload = ProduceRequest(b't', 0, [create_message(b'v')])
                (failure,) = client.send_produce_request([payload], fail_on_error=False)
                assert isinstance(failure, FailedPayloadsError), position
            kept[:] = [whole]
            (response,) = client.send_produce_request([payload])
            assert response.offset == 5
