"""kafka.consumer.simple: what is fetched, and what an answer leads to."""

from __future__ import annotations

import logging

import pytest

from kafka.consumer import SimpleConsumer
from kafka.consumer.simple import FetchContext
from kafka.errors import (
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    FailedPayloadsError,
    KafkaUnavailableError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.message import PartialMessage
from kafka.structs import FetchResponse, OffsetAndMessage, OffsetResponse
from test.consumer.helpers import WaitingClient, consumer, offsets_of, waits
from test.fake_client import FakeClient, LaterFakeClient, failing, record

# ---------------------------------------------------------------- positions are live


def test_fetching_goes_by_fetch_offsets_as_programs_write_them():
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client)
    made.fetch_offsets[0] = 7
    del made.fetch_offsets[1]
    assert offsets_of(made.get_messages(2)) == [7, 8]
    assert made.offsets == {0: 9, 1: 0}


def test_all_partitions_go_into_one_request_with_their_own_offsets():
    client = FakeClient((0, 9), (0, 9))
    made = consumer(client, buffer_size=777)
    made.fetch_offsets[1] = 5
    made.get_message(False)
    assert client.asked() == [[(0, 0, 777), (1, 5, 777)]]
    assert client.called('send_fetch_request')[0][0][0][0].topic == b'topic'


def test_nothing_to_fetch_pauses_instead_of_spinning(clock):
    client = WaitingClient(clock)
    made = consumer(client, partitions=[])
    assert made.get_message(True, 0.35) is None
    assert client.asked() == []
    assert clock.now == pytest.approx(1000.35)
    assert len(clock.slept) == 4


# ---------------------------------------------------------------- answers that are no messages


def answer(error=0, messages=(), partition=0):
    return FetchResponse(b'topic', partition, error, -1, messages)


def test_an_unknown_topic_is_forgotten_and_raised():
    client = FakeClient()
    client.answers['send_fetch_request'] = [[answer(3)]]
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer(client).get_message()
    assert client.called('reset_topic_metadata') == [((b'topic',), {})]


def test_a_moved_leader_is_looked_up_again_without_an_error_and_asked_next_round(clock):
    client = WaitingClient(clock, (0, 1), (0, 1))
    client.answers['send_fetch_request'] = [
        lambda payloads, **kw: [answer(6), client.fetched(payloads[1])]
    ]
    made = consumer(client)
    assert offsets_of(made.get_messages(2)) == [0, 0]
    assert client.called('reset_topic_metadata') == [((b'topic',), {})]
    assert client.asked() == [[(0, 0, 4096), (1, 0, 4096)], [(0, 0, 4096), (1, 1, 4096)]]


def test_a_leader_that_keeps_moving_is_not_asked_in_a_tight_loop(clock):
    client = WaitingClient(clock)
    client.answers['send_fetch_request'] = [[answer(6)] for _ in range(100)]
    assert consumer(client).get_message(True, 1) is None
    assert len(client.asked()) <= 11


@pytest.mark.parametrize('policy, offset', [('largest', 9), ('smallest', 4)])
def test_an_offset_out_of_range_is_reset_by_policy_and_asked_at_once(policy, offset):
    client = FakeClient((4, 9))
    made = consumer(client, auto_offset_reset=policy)
    made.get_message(False)
    assert client.asked() == [[(0, 0, 4096)], [(0, offset, 4096)]]
    assert made.offsets[0] == (9 if policy == 'largest' else 5)


@pytest.mark.parametrize('is_sought', [False, True])
def test_where_a_reset_led_is_not_committed_before_something_is_read_there(is_sought):
    """The group would skip what came before, which nobody was given."""
    client = FakeClient((0, 9), (500, 500))
    made = consumer(client, group='group', auto_commit=False, auto_offset_reset='largest')
    made.fetch_offsets[1] = made.offsets[1] = 3
    made.get_messages(9)
    assert made.offsets == {0: 9, 1: 500}
    if is_sought:
        made.seek(500, None, 1)
    assert made.commit() is True
    client.logs[1] = (500, 502)
    if not is_sought:
        made.get_messages(1)
        made.commit()
    committed = [
        {each.partition: each.offset for each in args[1]}
        for args, _ in client.called('send_offset_commit_request')
    ]
    assert committed == ([{0: 9, 1: 500}] if is_sought else [{0: 9}, {0: 9, 1: 501}])


def test_an_offset_out_of_range_without_a_policy_is_raised():
    client = FakeClient((4, 9))
    made = consumer(client, auto_offset_reset='none')
    with pytest.raises(OffsetOutOfRangeError) as caught:
        made.get_message(False)
    assert caught.value.args[0].partition == 0
    assert made.fetch_offsets == {0: 0}


def test_failed_payloads_are_asked_again_at_once_without_the_others():
    client = FakeClient((0, 0), (0, 2))
    client.answers['send_fetch_request'] = [failing(1), failing(1)]
    made = consumer(client)
    assert offsets_of(made.get_messages(2)) == [0, 1]
    assert client.asked() == [[(0, 0, 4096), (1, 0, 4096)], [(1, 0, 4096)], [(1, 0, 4096)]]


def test_a_broker_that_stays_away_is_given_up_when_the_time_is_over(clock, caplog):
    client = WaitingClient(clock)
    client.answers['send_fetch_request'] = [failing(0)] * 1000
    made = consumer(client)
    assert made.get_messages(5, True, 1) == []
    assert clock.now == pytest.approx(1001)
    assert len(client.asked()) < 30
    assert 'cannot be fetched' in caplog.text


def test_a_broker_that_stays_away_is_given_up_without_blocking_too(clock):
    client = WaitingClient(clock)
    client.answers['send_fetch_request'] = [failing(0)] * 1000
    assert consumer(client).get_message(False) is None
    assert clock.now <= 1000.11


def test_another_error_is_raised_and_what_came_before_stays_for_the_next_call():
    client = FakeClient((0, 2), (0, 2))
    client.answers['send_fetch_request'] = [
        lambda payloads, **kw: [client.fetched(payloads[0]), answer(7, partition=1)]
    ]
    made = consumer(client)
    with pytest.raises(RequestTimedOutError):
        made.get_messages(4)
    assert made.offsets == {0: 0, 1: 0}
    made.provide_partition_info()
    got = made.get_messages(4)
    assert [(p, m.offset) for p, m in got] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_messages_taken_before_a_later_fetch_fails_are_handed_out_by_the_next_call():
    client = FakeClient((0, 4), per_fetch=2)
    made = consumer(client)
    client.answers['send_fetch_request'] = [None, KafkaUnavailableError()]
    with pytest.raises(KafkaUnavailableError):
        made.get_messages(4)
    assert (made.offsets, made.count_since_commit) == ({0: 0}, 0)
    assert offsets_of(made.get_messages(4)) == [0, 1, 2, 3]


def test_messages_taken_before_one_that_is_too_large_are_handed_out_by_the_next_call():
    client = FakeClient((0, 2), per_fetch=2)
    made = consumer(client, buffer_size=4, max_buffer_size=4)
    client.answers['send_fetch_request'] = [None, needing(50)]
    with pytest.raises(ConsumerFetchSizeTooSmall):
        made.get_messages(4)
    assert made.offsets == {0: 0}
    assert offsets_of(made.get_messages(2)) == [0, 1]


def test_an_error_that_lasts_keeps_no_messages_back():
    """Those of healthy partitions would pile up in the queue and never be handed out."""
    client = FakeClient((0, 9), (0, 9), per_fetch=2)
    client.answers['send_fetch_request'] = [
        lambda payloads, **kw: [client.fetched(payloads[0]), answer(7, partition=1)]
    ] * 4
    made = consumer(client)
    with pytest.raises(RequestTimedOutError):
        made.get_messages(9)
    assert offsets_of(made.get_messages(9)) == [0, 1]
    with pytest.raises(RequestTimedOutError):
        made.get_messages(9)
    assert offsets_of(made.get_messages(9)) == [2, 3, 4, 5]
    assert made.offsets == {0: 6, 1: 0}


@pytest.mark.parametrize('timeout', [float('inf'), 1e300, 10**7])
def test_a_timeout_beyond_what_the_wire_can_say_waits_as_long_as_that(timeout):
    client = FakeClient((0, 3))
    assert len(consumer(client).get_messages(3, timeout=timeout)) == 3
    assert consumer(client).get_message(timeout=timeout).offset == 0
    assert {max_wait for max_wait, _ in waits(client)} == {2**31 - 1}


@pytest.mark.parametrize(
    ('options', 'error', 'named'),
    [
        ({'timeout': 'x'}, TypeError, 'timeout'),
        ({'timeout': float('nan')}, ValueError, 'timeout'),
        ({'block': 'x'}, TypeError, 'block'),
        ({'count': 'x'}, TypeError, 'count'),
    ],
)
def test_an_argument_of_get_messages_that_cannot_be_meant_is_named(options, error, named):
    with pytest.raises(error, match=named):
        consumer(FakeClient((0, 3))).get_messages(**options)


@pytest.mark.parametrize('option', ['buffer_size', 'max_buffer_size', 'fetch_size_bytes'])
def test_a_size_that_is_no_number_is_named(option):
    with pytest.raises(TypeError, match='%s must be an int' % option):
        consumer(FakeClient((0, 3)), **{option: 'x'})


def test_an_iter_timeout_that_is_no_number_is_named():
    """Not by the loop that meets it first: the argument of that is called otherwise."""
    with pytest.raises(TypeError, match='iter_timeout must be a number'):
        consumer(FakeClient((0, 3)), iter_timeout='2')


def test_an_exception_instance_of_another_kind_is_raised():
    client = FakeClient()
    client.answers['send_fetch_request'] = [[KafkaUnavailableError('none left')]]
    with pytest.raises(KafkaUnavailableError):
        consumer(client).get_message()


def test_messages_below_the_wanted_offset_are_dropped():
    client = FakeClient((0, 9))
    client.answers['send_fetch_request'] = [[answer(0, [record(n) for n in range(6)])]]
    made = consumer(client)
    made.seek(4)
    assert offsets_of(made.get_messages(2)) == [4, 5]


def test_messages_may_be_any_iterable_of_anything_with_an_offset():
    class Thing:
        offset = 0
        message = {'any': 'thing'}

    for messages in ([Thing], (Thing,), iter([Thing])):
        client = FakeClient()
        client.answers['send_fetch_request'] = [[answer(0, messages)]]
        assert consumer(client).get_message() is Thing


def test_messages_before_a_damaged_one_are_handed_out():
    def damaged():
        yield record(0)
        raise ChecksumError('at 1')

    client = FakeClient()
    client.answers['send_fetch_request'] = [[answer(0, damaged())], [answer(0, damaged())]]
    made = consumer(client)
    with pytest.raises(ChecksumError):
        made.get_message()
    assert made.get_message() == record(0)
    assert made.fetch_offsets == {0: 1}


def test_an_answer_for_a_partition_that_is_not_fetched_is_dropped():
    client = FakeClient()
    client.answers['send_fetch_request'] = [[answer(0, [record(0)], partition=5)]]
    assert consumer(client).get_message(False) is None


# ---------------------------------------------------------------- buffer growth


def needing(size):
    """Return an answer whose first message needs so many bytes."""

    def messages(buffer):
        if buffer < size:
            raise ConsumerFetchSizeTooSmall()
        yield record(0)

    return lambda payloads, **kw: [
        answer(0, messages(p.max_bytes), partition=p.partition) for p in payloads
    ]


def test_a_small_buffer_is_doubled_up_to_its_maximum_and_only_where_needed():
    client = FakeClient((0, 1), (0, 1))
    fits, needs = client.fetched, needing(11)
    client.answers['send_fetch_request'] = [
        lambda payloads, **kw: [fits(payloads[0]), *needs(payloads[1:])],
        needs,
        needs,
    ]
    made = consumer(client, buffer_size=4, max_buffer_size=11)
    assert len(made.get_messages(2)) == 2
    assert client.asked() == [[(0, 0, 4), (1, 0, 4)], [(1, 0, 8)], [(1, 0, 11)]]


def test_the_larger_buffer_holds_for_one_round_only():
    client = FakeClient()
    client.answers['send_fetch_request'] = [needing(8)] * 2 + [[answer(0, [record(1)])]]
    made = consumer(client, buffer_size=4)
    made.get_messages(2)
    assert client.asked() == [[(0, 0, 4)], [(0, 0, 8)], [(0, 1, 4)]]


def test_a_message_above_the_maximum_is_raised():
    client = FakeClient()
    client.answers['send_fetch_request'] = [needing(50)] * 9
    made = consumer(client, buffer_size=4, max_buffer_size=20)
    with pytest.raises(ConsumerFetchSizeTooSmall):
        made.get_message(False, 0.1)
    assert [asked[0][2] for asked in client.asked()] == [4, 8, 16, 20]


def test_without_a_maximum_the_buffer_grows_as_far_as_the_wire_can_say():
    client = FakeClient()
    client.answers['send_fetch_request'] = [needing(10**6)] * 30
    made = consumer(client, max_buffer_size=None)
    assert made.get_message(False) == record(0)
    client.answers['send_fetch_request'] = [needing(2**40)] * 30
    with pytest.raises(ConsumerFetchSizeTooSmall):
        made.get_message(False)
    assert client.asked()[-1][0][2] == 2**31 - 1


def test_a_buffer_of_0_can_grow_too():
    client = FakeClient()
    client.answers['send_fetch_request'] = [needing(2)] * 9
    assert consumer(client, buffer_size=0).get_message(False) == record(0)


# ---------------------------------------------------------------- FetchContext


def test_fetch_context_sets_and_restores_the_waits():
    made = consumer(FakeClient())
    made.fetch_max_wait_time, made.fetch_min_bytes = 55, 66
    with FetchContext(made, True, 2.5):
        assert (made.fetch_max_wait_time, made.fetch_min_bytes) == (2500, 1)
    with FetchContext(made, True, None):
        assert (made.fetch_max_wait_time, made.fetch_min_bytes) == (1000, 1)
    with pytest.raises(KeyError):
        with FetchContext(made, False, 2):
            assert (made.fetch_max_wait_time, made.fetch_min_bytes) == (55, 0)
            raise KeyError
    assert (made.fetch_max_wait_time, made.fetch_min_bytes) == (55, 66)


# ---------------------------------------------------------------- the lists of 1.x

PARTIAL = OffsetAndMessage(None, PartialMessage())


def lists(*answers):
    """Return a client whose fetches bring these lists of messages, and then nothing."""
    client = FakeClient((0, 9))
    client.answers['send_fetch_request'] = [
        [FetchResponse(b'topic', 0, 0, 9, messages)] for messages in (*answers, [])
    ]
    return client


@pytest.mark.parametrize('messages', [[PARTIAL], [record(0), PARTIAL]], ids=['alone', 'behind'])
def test_message_cut_off_at_the_end_of_a_list_is_asked_for_again_with_a_larger_buffer(messages):
    whole = [record(len(messages) - 1)]
    client = lists(messages, whole)
    made = consumer(client, buffer_size=100)
    assert made.get_messages(10, block=False) == [m for m in messages if m is not PARTIAL] + whole
    assert client.asked()[:2] == [[(0, 0, 100)], [(0, len(messages) - 1, 200)]]


def test_message_cut_off_is_never_handed_out_whatever_its_offset():
    cut_off = OffsetAndMessage(1, PartialMessage(b'begin'))
    made = consumer(lists([record(0), cut_off]), buffer_size=100, max_buffer_size=100)
    assert made.get_messages(10, block=False) == [record(0)]
    assert made.fetch_offsets == {0: 1}


def test_message_cut_off_alone_in_the_largest_buffer_is_too_large():
    client = lists([PARTIAL], [PARTIAL])
    made = consumer(client, buffer_size=100, max_buffer_size=200)
    with pytest.raises(ConsumerFetchSizeTooSmall):
        made.get_message(False, 0.1)
    assert client.asked() == [[(0, 0, 100)], [(0, 0, 200)]]


def test_message_cut_off_behind_others_in_the_largest_buffer_waits_for_the_next_round():
    client = lists([record(0), PARTIAL], [record(1)])
    made = consumer(client, buffer_size=100, max_buffer_size=100)
    assert made.get_message(False) == record(0)
    assert client.asked() == [[(0, 0, 100)]]
    assert made.get_message(False) == record(1)
    assert client.asked()[1:] == [[(0, 1, 100)]]


def test_message_cut_off_behind_others_does_not_fill_the_memory():
    """Without a maximum a round would go on to the end of the log, each time with twice as much."""
    answers = [[record(number), PARTIAL] for number in range(8)]
    client = lists(*answers)
    consumer(client, buffer_size=4096, max_buffer_size=None).get_message(False)
    assert [size for ((_, _, size),) in client.asked()] == [4096, 8192, 16384, 32768]


# ---------------------------------------------------------------- logs


def test_log_lines_format_whatever_they_are_given(caplog):
    """Topics may be str or bytes, messages of any type, levels down to DEBUG switched on."""
    caplog.set_level(logging.DEBUG)

    for kind in (FakeClient, LaterFakeClient):
        client = kind((4, 9))
        made = SimpleConsumer(client, 'gr\xfcn', 't\xf6pic', auto_commit=False)
        made.get_messages(2)
        client.answers['send_offset_commit_request'] = [FailedPayloadsError('payload')]
        made.commit()
        client.answers['send_offset_request'] = [FailedPayloadsError('payload')]
        made.reset_partition_offset(0)
    assert all(log_record.getMessage() for log_record in caplog.records)


def test_offset_answers_are_iterated_never_indexed():
    client = FakeClient((0, 9))
    made = consumer(client)
    client.answers['send_offset_request'] = [iter([OffsetResponse(b'topic', 0, 0, [5])])]
    made.seek(0, 2)
    assert made.offsets == {0: 5}
    assert isinstance(made.get_message(), OffsetAndMessage)


@pytest.mark.parametrize(
    'offsets, handed_out',
    [
        ([0, 1, 2], [0, 1, 2]),
        ([0, 2, 9], [0, 2, 9]),
        ([2, 3], [2, 3]),
        ([0, 0, 1], [0, 1]),
        ([1, 0, 2], [1, 2]),
        ([], []),
    ],
)
@pytest.mark.parametrize('start', [0, 1, 2])
def test_messages_are_queued_from_the_wanted_offset_on_each_once(offsets, handed_out, start):
    client = FakeClient((0, 0))
    client.answers['send_fetch_request'] = [
        lambda payloads, **_: [FetchResponse(b'topic', 0, 0, 9, map(record, offsets))]
    ]
    made = consumer(client)
    made.fetch_offsets[0] = start
    expected = [offset for offset in handed_out if offset >= start]
    first = made.get_message(block=False)
    queued = [message.offset for _, message in made.queue]
    assert ([] if first is None else [first.offset]) + queued == expected
    assert made.fetch_offsets[0] == (expected[-1] + 1 if expected else start)


def test_what_came_before_an_error_is_handed_out_first():
    client = FakeClient((0, 0))

    def broken():
        yield record(0)
        yield record(1)
        raise ChecksumError('the third')

    client.answers['send_fetch_request'] = [
        lambda payloads, **_: [FetchResponse(b'topic', 0, 0, 9, broken())]
    ]
    made = consumer(client, iter_timeout=0)
    with pytest.raises(ChecksumError):
        made.get_message()
    assert made.fetch_offsets == {0: 2}
    assert [message.offset for _, message in made.queue] == [0, 1]


def test_where_a_reset_puts_a_partition_is_not_committed_in_the_middle_of_it():
    """The timer's thread may look between the reset and the mark that nobody has read it."""
    client = FakeClient((0, 9), (5, 9))
    made = consumer(client, auto_offset_reset='smallest')
    made.fetch_offsets[1] = 100
    seen, reset = [], made.reset_partition_offset

    def look(partition):
        offset = reset(partition)
        seen.append((made.offsets[partition], made._read()))
        return offset

    made.reset_partition_offset = look
    made.get_message(False)
    ((offset, committed),) = seen
    assert offset == made.offsets[1] and 1 not in committed
    assert not made._resetting
