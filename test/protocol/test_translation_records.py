"""Old Produce and Fetch requests on brokers that keep magic 2."""

from __future__ import annotations

import pytest

from kafka.errors import ChecksumError, ProtocolError, UnsupportedCodecError
from kafka.protocol import api, translation_records
from kafka.protocol.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafka.protocol.frames import frame
from kafka.protocol.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka.protocol.translation import Translator, parse_old_request
from kafka.protocol.translation_records import LEAST_PARTITION_BYTES, MOST_MORE_BYTES
from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.record.memory_records import MemoryRecords

NEW = {0: (3, 13), 1: (4, 18)}
NOW = 1_700_000_000_000


def translate(message, version=0, translator=None, ranges=NEW):
    parsed = parse_old_request(frame(api.encode_request(message, version, 5, 'kafka-python')))
    return (translator or Translator(ranges)).translate(parsed, NOW)


def answer(translation, message, version, *responses):
    """Return the old answer, read in the old layout, given what the broker answers."""
    sent = [type(r).decode(r.encode(translation.version), translation.version) for r in responses]
    data = translation.answer(sent)
    return api.decode_response(api.response_class(message.api_key), data, version)[1]


# ---------------------------------------------------------------- Produce


def messages(*values, **options):
    return encode_message_set([(0, None, None, v) for v in values], magic=0, **options)


def produce(acks=1, **sets):
    """A request for topic t with one set per partition: p3=b'...'."""
    partitions = [PartitionProduceData(index=int(p[1:]), records=s) for p, s in sets.items()]
    topic = TopicProduceData(name='t', partition_data=partitions)
    return ProduceRequest(acks=acks, timeout_ms=99, topic_data=[topic])


def produced(*results, throttle_time_ms=0):
    """The broker's answer: (partition, error, offset) each."""
    partitions = [
        PartitionProduceResponse(
            index=index,
            error_code=error,
            base_offset=offset,
            log_append_time_ms=77,
            log_start_offset=1,
            error_message='why',
        )
        for index, error, offset in results
    ]
    topic = TopicProduceResponse(name='t', partition_responses=partitions)
    return ProduceResponse(responses=[topic], throttle_time_ms=throttle_time_ms)


def results(response):
    return [
        (topic.name, part.index, part.error_code, part.base_offset)
        for topic in response.responses
        for part in topic.partition_responses
    ]


def test_each_partition_gets_one_batch_and_topics_are_named():
    asked = produce(p0=messages(b'a', b'b'), p3=messages(b'c', codec=1))
    translation = translate(asked)
    (request,) = translation.requests
    assert translation.version == 12
    assert (request.acks, request.timeout_ms, request.transactional_id) == (1, 99, None)
    (topic,) = request.topic_data
    assert topic.name == 't'
    batches = {part.index: list(MemoryRecords(part.records)) for part in topic.partition_data}
    assert [(b.magic, b.codec) for b in batches[0]] == [(2, 0)]
    assert [(b.magic, b.codec) for b in batches[3]] == [(2, 1)]
    assert [(r.value, r.timestamp) for r in batches[0][0]] == [(b'a', NOW), (b'b', NOW)]


@pytest.mark.parametrize('version', [0, 1, 2])
def test_the_answer_has_the_layout_of_the_version_asked_in(version):
    asked = produce(p0=messages(b'a'), p3=messages(b'b'))
    response = produced((3, 6, -1), (0, 0, 42), throttle_time_ms=8)
    got = answer(translate(asked, version), asked, version, response)
    assert results(got) == [('t', 0, 0, 42), ('t', 3, 6, -1)]
    assert got.throttle_time_ms == (8 if version else 0)
    assert got.responses[0].partition_responses[0].log_append_time_ms == (
        77 if version == 2 else -1
    )


def test_error_codes_of_later_years_come_through():
    asked = produce(p0=messages(b'a'))
    assert results(answer(translate(asked), asked, 0, produced((0, 87, -1)))) == [('t', 0, 87, -1)]


def corrupt(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def test_a_damaged_set_is_answered_with_error_2_and_the_rest_is_sent():
    asked = produce(p0=corrupt(messages(b'a')), p3=messages(b'b'))
    translation = translate(asked)
    assert [p.index for p in translation.requests[0].topic_data[0].partition_data] == [3]
    got = answer(translation, asked, 0, produced((3, 0, 42)))
    assert results(got) == [('t', 0, 2, -1), ('t', 3, 0, 42)]


@pytest.mark.parametrize(
    'damaged',
    [
        corrupt(messages(b'a')),
        messages(b'a')[:-1],
        encode_batch([(NOW, None, b'a', ())]),
        b'\x00' * 30,
        b'garbage',
    ],
    ids=['crc', 'cut off', 'magic 2', 'zeros', 'short'],
)
def test_nothing_is_sent_when_every_set_is_damaged(damaged):
    asked = produce(p0=damaged)
    translation = translate(asked)
    assert translation.requests == []
    assert results(answer(translation, asked, 0)) == [('t', 0, 2, -1)]


@pytest.mark.parametrize('empty', [b'', None])
def test_an_empty_set_is_answered_as_0_8_did(empty):
    asked = produce(p0=empty)
    translation = translate(asked)
    assert translation.requests == []
    assert results(answer(translation, asked, 0)) == [('t', 0, 0, -1)]


def test_damage_with_acks_0_is_raised_because_no_answer_could_tell():
    with pytest.raises(ChecksumError, match='topic t partition 3'):
        translate(produce(acks=0, p3=corrupt(messages(b'a'))))


def test_a_partition_that_comes_twice_is_refused():
    """Brokers would keep one of the two and say nothing."""
    asked = produce(p0=messages(b'a'))
    asked.topic_data[0].partition_data *= 2
    with pytest.raises(ProtocolError, match='topic t partition 0 is repeated'):
        translate(asked)


def test_a_partition_that_the_broker_left_out_is_an_unknown_error():
    asked = produce(p0=messages(b'a'))
    got = answer(translate(asked), asked, 0, ProduceResponse(responses=[]))
    assert results(got) == [('t', 0, -1, -1)]


@pytest.mark.parametrize(('acks', 'sent'), [(0, 0), (1, 1), (-1, -1), (2, -1), (3, -1)])
def test_a_number_of_acks_that_was_given_up_becomes_all(acks, sent):
    translation = translate(produce(acks=acks, p0=messages(b'a')))
    assert translation.requests[0].acks == sent
    assert bool(translation.remark) == (acks > 1)


@pytest.mark.parametrize(('high', 'translated'), [(0, False), (1, True), (2, True)])
def test_acks_are_lowered_on_every_release_that_refuses_them(high, translated):
    """0.8 serves them; 0.9 and 0.10 answer 21, and otherwise get the request as it is."""
    asked = produce(acks=2, p0=messages(b'a'))
    translation = translate(asked, ranges={0: (0, high)})
    assert (translation is not None) == translated
    assert translate(produce(p0=messages(b'a')), ranges={0: (0, high)}) is None
    if translated:
        assert (translation.requests[0].acks, translation.version) == (-1, 0)
        assert translation.requests[0].topic_data == asked.topic_data
        assert results(answer(translation, asked, 0, produced((0, 0, 42)))) == [('t', 0, 0, 42)]


# ---------------------------------------------------------------- Fetch


def fetch(offset=0, max_bytes=1000, partitions=(0,), topics=('t',), **options):
    return FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=max_bytes)
                    for p in partitions
                ],
            )
            for topic in topics
        ],
        **options,
    )


def batch(*values, base_offset=0, **options):
    return encode_batch([(NOW, None, v, ()) for v in values], base_offset=base_offset, **options)


def control(base_offset):
    marker = (NOW, b'\x00\x00\x00\x00', b'\x00\x00\x00\x00\x00\x00', ())
    return encode_batch([marker], base_offset=base_offset, control=True, transactional=True)


def fetched(records=None, high_watermark=100, error_code=0, **more):
    """The broker's answer for topic t; partition 0, and others as p3=bytes."""
    given = dict({'p0': records}, **more)
    partitions = [
        PartitionData(
            partition_index=int(name[1:]),
            error_code=error_code,
            high_watermark=high_watermark,
            last_stable_offset=1,
            records=data,
        )
        for name, data in given.items()
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic='t', partitions=partitions)])


def parts(response):
    return {
        (topic.topic, part.partition_index): part
        for topic in response.responses
        for part in topic.partitions
    }


def values(response, key=('t', 0)):
    return [(r.offset, r.value) for b in MemoryRecords(parts(response)[key].records) for r in b]


def test_a_fetch_reads_what_is_uncommitted_and_opens_no_session():
    translation = translate(fetch(offset=7))
    (request,) = translation.requests
    assert translation.version == 12
    assert (request.max_wait_ms, request.min_bytes) == (100, 1)
    assert (request.max_bytes, request.isolation_level) == (2**31 - 1, 0)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert request.topics == fetch(offset=7).topics


def asked_bytes(translation):
    (request,) = translation.requests
    return {part.partition_max_bytes for topic in request.topics for part in topic.partitions}


def test_more_is_asked_for_than_the_first_batch_of_a_small_buffer():
    """Brokers send the first batch whatever its size: alone it would cost a request."""
    assert asked_bytes(translate(fetch(max_bytes=4096))) == {LEAST_PARTITION_BYTES}
    large = LEAST_PARTITION_BYTES + 1
    assert asked_bytes(translate(fetch(max_bytes=large))) == {large}


def test_who_asks_for_less_than_the_old_default_gets_little():
    assert asked_bytes(translate(fetch(max_bytes=4095))) == {4095}


def test_many_partitions_share_what_more_is_asked_for():
    (each,) = asked_bytes(translate(fetch(max_bytes=4096, partitions=range(1000))))
    assert 4096 < each <= MOST_MORE_BYTES // 1000
    assert asked_bytes(translate(fetch(max_bytes=4096, partitions=range(5000)))) == {4096}


def test_a_message_beyond_the_buffer_of_the_program_is_cut_off_all_the_same():
    asked = fetch(max_bytes=50)
    response = answer(translate(asked), asked, 0, fetched(batch(b'x' * 100)))
    assert len(parts(response)['t', 0].records) == 50


@pytest.mark.parametrize('version', [0, 1, 2, 3])
def test_the_answer_holds_a_message_set_in_the_layout_of_the_version_asked_in(version):
    asked = fetch(offset=1)
    response = fetched(batch(b'a', b'b', b'c'))
    response.throttle_time_ms = 8
    got = answer(translate(asked, version), asked, version, response)
    assert values(got) == [(1, b'b'), (2, b'c')]
    assert parts(got)['t', 0].high_watermark == 100
    assert got.throttle_time_ms == (8 if version else 0)
    assert all(b.magic == 0 for b in MemoryRecords(parts(got)['t', 0].records))


def test_the_limit_of_the_whole_response_is_kept_in_version_3():
    assert translate(fetch(max_bytes=5), 3).requests[0].max_bytes == 2**31 - 1
    asked = fetch()
    asked.max_bytes = 500
    assert translate(asked, 3).requests[0].max_bytes == 500


@pytest.mark.parametrize('nothing', [None, b''])
def test_no_records_are_an_empty_set(nothing):
    asked = fetch()
    assert bytes(parts(answer(translate(asked), asked, 0, fetched(nothing)))['t', 0].records) == b''


@pytest.mark.parametrize('code', [1, 3, 6, 76, 103])
def test_error_codes_come_through_without_records(code):
    asked = fetch()
    part = parts(answer(translate(asked), asked, 0, fetched(None, -1, code)))['t', 0]
    assert (part.error_code, part.high_watermark, bytes(part.records)) == (code, -1, b'')


def test_the_order_of_the_answer_is_that_of_the_request():
    asked = fetch(partitions=(3, 0))
    got = answer(translate(asked), asked, 0, fetched(batch(b'a'), p3=batch(b'b')))
    assert list(parts(got)) == [('t', 3), ('t', 0)]


def test_a_partition_left_out_has_the_error_of_the_whole_or_is_unknown():
    asked = fetch()
    for code, told in ((0, -1), (70, 70)):
        response = FetchResponse(error_code=code, responses=[])
        assert parts(answer(translate(asked), asked, 0, response))['t', 0].error_code == told


# ---------------------------------------------------------------- getting anywhere


def test_the_next_fetch_from_a_gap_is_sent_from_its_end():
    """Only control batches came: the consumer asks for the same offset again."""
    translator = Translator(NEW)
    asked = fetch(offset=3)
    got = answer(translate(asked, 0, translator), asked, 0, fetched(control(3) + control(4)))
    assert values(got) == []
    assert sent_offset(translate(asked, 0, translator)) == 5


def test_the_gap_behind_the_last_message_is_remembered_as_well():
    translator = Translator(NEW)
    asked = fetch()
    records = batch(b'a', b'b') + control(2)
    assert len(values(answer(translate(asked, 0, translator), asked, 0, fetched(records)))) == 2
    assert sent_offset(translate(fetch(offset=2), 0, translator)) == 3
    assert sent_offset(translate(fetch(offset=1), 0, translator)) == 1
    assert sent_offset(translate(fetch(offset=3), 0, translator)) == 3


def test_a_gap_is_forgotten_when_a_later_fetch_finds_none():
    translator = Translator(NEW)
    for asked, records in ((fetch(3), control(3)), (fetch(9), batch(b'a', base_offset=9))):
        answer(translate(asked, 0, translator), asked, 0, fetched(records))
    assert sent_offset(translate(fetch(3), 0, translator)) == 3


def test_a_gap_is_forgotten_after_an_error():
    """A log that lost its end may have other records at the same offsets."""
    translator = Translator(NEW)
    asked = fetch(3)
    for response in (fetched(control(3)), fetched(None, -1, error_code=1)):
        answer(translate(asked, 0, translator), asked, 0, response)
    assert sent_offset(translate(asked, 0, translator)) == 3


def test_gaps_belong_to_one_partition_of_one_connection():
    translator = Translator(NEW)
    asked = fetch(3)
    answer(translate(asked, 0, translator), asked, 0, fetched(control(3)))
    assert sent_offset(translate(fetch(3, partitions=(1,)), 0, translator)) == 3
    assert sent_offset(translate(fetch(3), 0, Translator(NEW))) == 3


def test_records_before_the_end_of_a_gap_that_was_asked_for_are_refused():
    """Whose last offset says more than it holds would be asked for again and again."""
    translator = Translator(NEW)
    asked = fetch(2)
    records = control(2) + control(3)
    assert values(answer(translate(asked, 0, translator), asked, 0, fetched(records))) == []
    with pytest.raises(ProtocolError, match='partition 0: .*up to offset 3, but 4 was requested'):
        answer(translate(asked, 0, translator), asked, 0, fetched(records))


def test_a_gap_is_kept_while_the_message_behind_it_is_too_large():
    translator = Translator(NEW)
    asked = fetch(3)
    answer(translate(asked, 0, translator), asked, 0, fetched(control(3)))
    large = fetched(batch(b'x' * 5000, base_offset=4))
    got = answer(translate(asked, 0, translator), asked, 0, large)
    assert 0 < len(parts(got)['t', 0].records) < 5000
    assert sent_offset(translate(asked, 0, translator)) == 4


def sent_offset(translation):
    return translation.requests[0].topics[0].partitions[0].fetch_offset


def sent_order(translation):
    return [
        (topic.topic, part.partition)
        for topic in translation.requests[0].topics
        for part in topic.partitions
    ]


def test_a_partition_that_got_nothing_though_there_is_something_is_asked_for_first():
    """Only the first partition with data gets a batch that is larger than its limit."""
    translator = Translator(NEW)
    asked = fetch(partitions=(0, 1, 2))
    response = fetched(batch(b'a'), p1=b'', p2=b'')
    answer(translate(asked, 0, translator), asked, 0, response)
    translation = translate(asked, 0, translator)
    assert sent_order(translation) == [('t', 1), ('t', 2), ('t', 0)]
    answer(translation, asked, 0, fetched(b'', p1=batch(b'b'), p2=b''))
    assert sent_order(translate(asked, 0, translator)) == [('t', 2), ('t', 0), ('t', 1)]


def test_its_topic_comes_first_too():
    translator = Translator(NEW)
    asked = fetch(topics=('s', 't'), partitions=(0, 1))
    response = fetched(b'', high_watermark=0, p1=b'')
    response.responses[0].partitions[1].high_watermark = 9
    translation = translate(asked, 0, translator)
    answer(translation, asked, 0, response)
    again = translate(asked, 0, translator)
    assert sent_order(again) == [('t', 1), ('t', 0), ('s', 0), ('s', 1)]


def test_a_partition_at_its_end_waits_its_turn():
    translator = Translator(NEW)
    asked = fetch(offset=7, partitions=(0, 1))
    answer(translate(asked, 0, translator), asked, 0, fetched(b'', high_watermark=7, p1=b''))
    assert sent_order(translate(asked, 0, translator)) == [('t', 0), ('t', 1)]


def test_what_an_answer_brings_beyond_the_limit_of_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr(translation_records, 'MAX_SET_BYTES', 10)
    translator = Translator(NEW)
    asked = fetch(partitions=(0, 1, 2))
    got = answer(
        translate(asked, 0, translator), asked, 0, fetched(batch(b'a'), p1=batch(b'b'), p2=b'')
    )
    assert values(got) == [(0, b'a')]
    assert values(got, ('t', 1)) == []
    again = translate(asked, 0, translator)
    assert sent_order(again) == [('t', 1), ('t', 2), ('t', 0)]
    got = answer(again, asked, 0, fetched(batch(b'a'), p1=batch(b'b'), p2=b''))
    assert values(got, ('t', 1)) == [(0, b'b')]


# ---------------------------------------------------------------- sizes and damage


def test_a_message_beyond_the_partitions_limit_comes_cut_off():
    asked = fetch(max_bytes=50)
    got = answer(translate(asked), asked, 0, fetched(batch(b'x' * 100)))
    data = parts(got)['t', 0].records
    assert len(data) == 50
    assert MemoryRecords(data).partial


def test_a_wrong_crc_reaches_the_reader_of_the_message_set():
    """The other partitions of the response stay readable."""
    asked = fetch(partitions=(0, 3))
    response = fetched(corrupt(batch(b'a')), p3=batch(b'b'))
    got = answer(translate(asked), asked, 0, response)
    with pytest.raises(ChecksumError):
        values(got)
    assert values(got, ('t', 3)) == [(0, b'b')]


def test_malformed_records_are_an_error_that_names_the_partition():
    asked = fetch()
    malformed = bytearray(batch(b'a'))
    malformed[16] = 9  # magic
    with pytest.raises(ProtocolError, match='topic t partition 0: .*magic 9'):
        answer(translate(asked), asked, 0, fetched(bytes(malformed)))


def test_a_codec_that_is_missing_is_an_error_that_names_the_partition(monkeypatch):
    asked = fetch()

    def missing(*_, **__):
        raise UnsupportedCodecError('install kafka-evergreen[zstd]')

    monkeypatch.setattr('kafka.record.conversion.MemoryRecords', missing)
    with pytest.raises(UnsupportedCodecError, match=r'topic t partition 0: .*\[zstd\]'):
        answer(translate(asked), asked, 0, fetched(batch(b'a')))
