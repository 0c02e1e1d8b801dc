"""kafka.consumer.simple: fetching, handing out, seeking."""

from __future__ import annotations

import logging

import pytest

from kafka.consumer import SimpleConsumer, simple
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
from kafka.structs import FetchResponse, OffsetAndMessage, OffsetRequest, OffsetResponse
from test.fake_client import FakeClient, failing, record


class Clock:
    """Time that passes only when somebody sleeps, or a fetch waits for messages in vain."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(simple, 'time', made)
    return made


class WaitingClient(FakeClient):
    """Waits as a broker does: for max_wait_time when there is nothing and a byte is wanted."""

    def __init__(self, clock, *logs, **options):
        super().__init__(*logs, **options)
        self.clock = clock

    def send_fetch_request(self, payloads, **kwargs):
        answers = [
            answer._replace(messages=list(answer.messages))
            if isinstance(answer, FetchResponse)
            else answer
            for answer in super().send_fetch_request(payloads, **kwargs)
        ]
        nothing = not any(getattr(answer, 'messages', True) for answer in answers)
        if nothing and kwargs['min_bytes']:
            self.clock.now += kwargs['max_wait_time'] / 1000
        return answers


def consumer(client, group=None, **options):
    options.setdefault('auto_commit', False)
    return SimpleConsumer(client, group, 'topic', **options)


def offsets_of(messages):
    return [message.offset for message in messages]


def waits(client):
    """Return (max_wait_time, min_bytes) of each fetch."""
    return [
        (kwargs['max_wait_time'], kwargs['min_bytes'])
        for _, kwargs in client.called('send_fetch_request')
    ]


# ---------------------------------------------------------------- construction


def test_arguments_and_their_order():
    client = FakeClient()
    made = SimpleConsumer(client, 'group', 'topic', False, [0], 7, None, 11, 12, 13, 14, 'smallest')
    assert made.auto_commit is False
    assert (made.auto_commit_every_n, made.auto_commit_every_t) == (7, None)
    assert (made.fetch_min_bytes, made.buffer_size, made.max_buffer_size) == (11, 12, 13)
    assert (made.iter_timeout, made.auto_offset_reset) == (14, 'smallest')


def test_defaults():
    made = consumer(FakeClient())
    assert (made.fetch_min_bytes, made.buffer_size, made.max_buffer_size) == (4096, 4096, 32768)
    assert (made.fetch_max_wait_time, made.iter_timeout) == (100, None)
    assert made.auto_offset_reset == 'largest'
    assert made.queue.empty() and made.queue.qsize() == 0


def test_a_buffer_above_its_maximum_is_refused_before_anything_is_done():
    client = FakeClient()
    with pytest.raises(ValueError):
        consumer(client, buffer_size=10, max_buffer_size=9)
    assert client.calls == []
    assert consumer(client, buffer_size=10, max_buffer_size=None).max_buffer_size is None


def test_fetch_offsets_begin_as_a_copy_of_the_stored_offsets():
    client = FakeClient((0, 9), (0, 9))
    client.stored = {0: 3}
    made = consumer(client, 'group')
    assert made.fetch_offsets == made.offsets == {0: 3, 1: 0}
    assert made.fetch_offsets is not made.offsets


def test_repr():
    assert (
        repr(consumer(FakeClient(), 'g'))
        == "<SimpleConsumer group=b'g', topic=b'topic', partitions=[0]>"
    )


# ---------------------------------------------------------------- get_message


def test_get_message_hands_out_one_after_the_other_from_one_fetch():
    client = FakeClient((0, 2))
    made = consumer(client)
    assert made.get_message() == record(0)
    assert (made.offsets, made.fetch_offsets, made.count_since_commit) == ({0: 1}, {0: 2}, 1)
    assert made.get_message() == record(1)
    assert len(client.asked()) == 1


def test_get_message_makes_a_single_attempt_without_waiting_when_not_blocking():
    client = FakeClient()
    assert consumer(client).get_message(block=False) is None
    assert waits(client) == [(100, 0)]


def test_get_message_waits_until_something_comes_or_the_time_is_over(clock):
    client = WaitingClient(clock)
    made = consumer(client)
    assert made.get_message(True, 0.25) is None
    assert clock.now == pytest.approx(1000.25)
    assert waits(client) == [(250, 1)]


def test_get_message_asks_again_after_a_fetch_that_came_back_early(clock):
    client = FakeClient()
    made = consumer(client)

    def late(payloads, **kwargs):
        client.logs[0] = (0, 1)
        return [client.fetched(p)._replace(messages=[]) for p in payloads]

    client.answers['send_fetch_request'] = [late]
    assert made.get_message(True, 5) == record(0)


@pytest.mark.parametrize('timeout', [0, None])
def test_a_false_timeout_waits_a_second_per_fetch(clock, timeout):
    client = WaitingClient(clock, (0, 0))
    client.answers['send_fetch_request'] = [
        lambda payloads, **kw: [FetchResponse(b'topic', 0, 0, 0, [record(0)])]
    ]
    consumer(client).get_message(True, timeout)
    assert waits(client) == [(1000, 1)]


def test_no_timeout_waits_for_ever(clock):
    client = WaitingClient(clock)
    client.answers['send_fetch_request'] = [None] * 50 + [
        lambda payloads, **kw: [FetchResponse(b'topic', 0, 0, 0, [record(0)])]
    ]
    made = consumer(client)
    assert made.get_message(True, None) == record(0)
    assert clock.now == pytest.approx(1050)
    client.answers['send_fetch_request'] = [None] * 50 + [
        lambda payloads, **kw: [FetchResponse(b'topic', 0, 0, 0, [record(1)])]
    ]
    assert made.get_messages(1, True, None) == [record(1)]


def test_instance_settings_hold_for_non_blocking_fetches_and_are_live(clock):
    client = WaitingClient(clock)
    made = consumer(client)
    made.fetch_max_wait_time = 33
    made.get_message(False)
    made.get_message(True, 2)
    assert waits(client) == [(33, 0), (2000, 1)]
    assert (made.fetch_max_wait_time, made.fetch_min_bytes) == (33, 4096)


def test_partition_info_by_setting_and_by_call():
    client = FakeClient((0, 5))
    made = consumer(client)
    assert made.get_message(get_partition_info=True) == (0, record(0))
    made.provide_partition_info()
    assert made.get_message() == (0, record(1))
    assert made.get_message(get_partition_info=False) == record(2)
    assert made.get_messages(1) == [(0, record(3))]
    assert next(iter(made)) == (0, record(4))


# ---------------------------------------------------------------- get_messages


def test_get_messages_collects_over_several_fetches():
    client = FakeClient((0, 10), per_fetch=4)
    made = consumer(client)
    assert offsets_of(made.get_messages(10)) == list(range(10))
    assert made.offsets == {0: 10}
    assert made.count_since_commit == 10


def test_get_messages_returns_at_most_count_and_keeps_the_rest():
    client = FakeClient((0, 10))
    made = consumer(client)
    assert offsets_of(made.get_messages(4)) == [0, 1, 2, 3]
    assert (made.offsets, made.fetch_offsets) == ({0: 4}, {0: 10})
    assert offsets_of(made.get_messages(4)) == [4, 5, 6, 7]
    assert len(client.asked()) == 1
    assert made.queue.qsize() == 2


def test_get_messages_asks_for_no_more_than_it_was_asked_for():
    client = FakeClient((0, 10))
    made = consumer(client)
    assert made.get_messages(0) == []
    assert client.asked() == []
    with pytest.raises(TypeError, match='count'):
        made.get_messages('5')


def test_get_messages_gives_what_came_when_the_time_is_over(clock):
    client = WaitingClient(clock, (0, 3))
    made = consumer(client)
    assert offsets_of(made.get_messages(5, True, 1)) == [0, 1, 2]
    assert clock.now == pytest.approx(1001)
    assert waits(client) == [(1000, 1), (1000, 1)]


def test_the_timeout_is_for_the_whole_call(clock):
    client = WaitingClient(clock, (0, 9), per_fetch=1)

    def slow(payloads, **kwargs):
        clock.now += 0.4
        return [client.fetched(p) for p in payloads]

    client.answers['send_fetch_request'] = [slow] * 9
    made = consumer(client)
    assert offsets_of(made.get_messages(9, True, 1)) == [0, 1, 2]
    assert [wait for wait, _ in waits(client)] == pytest.approx([1000, 600, 200], abs=1)


def test_not_blocking_gives_what_one_fetch_gives():
    client = FakeClient((0, 9), per_fetch=3)
    made = consumer(client)
    assert offsets_of(made.get_messages(9, block=False)) == [0, 1, 2]
    assert waits(client) == [(100, 0)]


def test_blocking_for_a_number_waits_only_until_that_many_came(clock):
    client = WaitingClient(clock, (0, 4), per_fetch=2)
    made = consumer(client)
    assert offsets_of(made.get_messages(10, block=3, timeout=1)) == [0, 1, 2, 3]
    assert clock.now == 1000
    assert [min_bytes for _, min_bytes in waits(client)] == [1, 1, 0]


def test_partitions_are_mixed_and_each_moves_its_own_offset():
    client = FakeClient((0, 3), (5, 7))
    client.stored = {1: 5}
    made = consumer(client, 'group')
    made.provide_partition_info()
    got = made.get_messages(5)
    assert [(partition, message.offset) for partition, message in got] == [
        (0, 0), (0, 1), (0, 2), (1, 5), (1, 6),
    ]  # fmt: skip
    assert made.offsets == {0: 3, 1: 7}


def test_a_count_based_commit_is_checked_once_at_the_end_of_the_call():
    client = FakeClient((0, 100))
    made = consumer(client, 'group', auto_commit_every_n=20)
    made.auto_commit = True
    made.get_messages(65)
    assert client.stored == {0: 65}
    assert len(client.called('send_offset_commit_request')) == 1
    assert made.count_since_commit == 0


def test_a_count_based_commit_every_20_leaves_180_after_195():
    client = FakeClient((0, 300))
    made = consumer(client, 'group', auto_commit_every_n=20)
    made.auto_commit = True
    for _ in range(195):
        made.get_message()
    assert client.stored == {0: 180}


# ---------------------------------------------------------------- iteration


def test_iteration_ends_when_the_time_brings_nothing(clock):
    client = WaitingClient(clock, (0, 3))
    assert offsets_of(consumer(client, iter_timeout=2)) == [0, 1, 2]
    assert clock.now == pytest.approx(1002)


def test_an_iter_timeout_of_0_waits_one_fetch_of_a_second(clock):
    client = WaitingClient(clock)
    assert list(consumer(client, iter_timeout=0)) == []
    assert waits(client) == [(1000, 1)]


def test_endless_iteration_asks_for_60_seconds_and_one_byte_and_pauses(clock):
    client = WaitingClient(clock, (0, 1))
    stream = iter(consumer(client))
    assert next(stream) == record(0)

    def late(payloads, **kwargs):
        return [FetchResponse(b'topic', 0, 0, 0, [record(1)])]

    client.answers['send_fetch_request'] = [None, late]
    assert next(stream) == record(1)
    assert waits(client) == [(60000, 1)] * 3
    assert clock.slept == [0.1]


def test_iteration_goes_through_get_message():
    class Doubling(SimpleConsumer):
        def get_message(self, *args, **kwargs):
            message = super().get_message(*args, **kwargs)
            return message and (message, message)

    made = Doubling(FakeClient((0, 1)), None, 'topic', auto_commit=False, iter_timeout=0)
    assert next(iter(made)) == (record(0), record(0))


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


# ---------------------------------------------------------------- reset_partition_offset


@pytest.mark.parametrize('policy, time, offset', [('largest', -1, 9), ('smallest', -2, 4)])
def test_reset_asks_for_one_end_and_sets_both_positions(policy, time, offset):
    client = FakeClient((4, 9), (4, 9))
    made = consumer(client, partitions=[0], auto_offset_reset=policy)
    # The partition need not be known yet.
    assert made.reset_partition_offset(1) == offset
    assert client.called('send_offset_request') == [(([OffsetRequest(b'topic', 1, time, 1)],), {})]
    assert made.offsets == made.fetch_offsets == {0: 0, 1: offset}


def test_a_failed_reset_gives_none_and_leaves_the_positions(caplog):
    client = FakeClient((4, 9))
    client.answers['send_offset_request'] = [FailedPayloadsError('payload', 'gone'), []]
    made = consumer(client)
    assert made.reset_partition_offset(0) is None
    assert made.reset_partition_offset(0) is None
    assert made.offsets == made.fetch_offsets == {0: 0}
    assert 'gone' in caplog.text


def test_reset_without_a_policy_raises_what_is_being_handled():
    made = consumer(FakeClient(), auto_offset_reset='neither')
    with pytest.raises(OffsetOutOfRangeError):
        made.reset_partition_offset(0)
    error = OffsetOutOfRangeError('mine')
    with pytest.raises(OffsetOutOfRangeError) as caught:
        try:
            raise error
        except OffsetOutOfRangeError:
            made.reset_partition_offset(0)
    assert caught.value is error


# ---------------------------------------------------------------- seek


def three(first=10, end=1000):
    client = FakeClient((first, end), (first, end), (first, end))
    return client, consumer(client, 'group')


@pytest.mark.parametrize(
    'arguments, offsets',
    [
        ((7,), {0: 7, 1: 7, 2: 7}),
        ((7, None, 1), {0: 100, 1: 7, 2: 300}),
        ((5, 1), {0: 105, 1: 205, 2: 305}),
        ((-5, 1, 2), {0: 100, 1: 200, 2: 295}),
        ((0, 0), {0: 10, 1: 10, 2: 10}),
        ((10, 0), {0: 14, 1: 13, 2: 13}),
        ((0, 2), {0: 1000, 1: 1000, 2: 1000}),
        ((-10, 2), {0: 997, 1: 997, 2: 996}),
        ((-13, 2), {0: 996, 1: 996, 2: 995}),
        ((-13, 2, 1), {0: 100, 1: 987, 2: 300}),
        ((5, 0, 0), {0: 15, 1: 200, 2: 300}),
    ],
)
def test_seek(arguments, offsets):
    client, made = three()
    made.offsets.update({0: 100, 1: 200, 2: 300})
    made.seek(*arguments)
    assert made.offsets == made.fetch_offsets == offsets
    assert made.fetch_offsets is not made.offsets
    assert made.count_since_commit == 1


def test_seek_to_an_end_asks_all_partitions_in_one_request():
    client, made = three()
    made.seek(0, 2)
    made.seek(0, 0)
    requests = [args[0] for args, _ in client.called('send_offset_request')]
    assert requests == [
        [OffsetRequest(b'topic', partition, time, 1) for partition in (0, 1, 2)]
        for time in (-1, -2)
    ]


def test_one_back_from_the_end_of_two_partitions_gives_one_of_them_its_last_message():
    client = FakeClient((0, 5), (0, 5))
    made = consumer(client)
    made.seek(-1, 2)
    assert sorted(made.offsets.values()) == [4, 5]


def test_seek_throws_away_what_is_queued():
    client = FakeClient((0, 9))
    made = consumer(client)
    assert offsets_of(made.get_messages(2)) == [0, 1]
    assert made.queue.qsize() == 7
    made.seek(1)
    assert made.queue.empty()
    assert offsets_of(made.get_messages(2)) == [1, 2]


def test_seek_commits_with_auto_commit_only():
    client, made = three()
    made.seek(5)
    assert client.stored == {}
    made.auto_commit = True
    made.seek(6)
    assert client.stored == {0: 6, 1: 6, 2: 6}
    assert made.count_since_commit == 0


def test_seek_refuses_what_it_does_not_know():
    client, made = three()
    for whence in (3, -1, '1'):
        with pytest.raises(ValueError):
            made.seek(0, whence)
    with pytest.raises(ValueError):
        made.seek(0, 1, partition=9)
    for offset in ('0', None, 1.5):
        with pytest.raises(TypeError, match='offset'):
            made.seek(offset)
    assert made.count_since_commit == 0


def test_seek_that_cannot_ask_the_brokers_changes_nothing():
    client, made = three()
    made.fetch_offsets[0] = 77
    client.answers['send_offset_request'] = [KafkaUnavailableError()]
    with pytest.raises(KafkaUnavailableError):
        made.seek(0, 2)
    assert made.fetch_offsets[0] == 77
    assert made.offsets == {0: 0, 1: 0, 2: 0}


def test_seek_without_partitions_is_harmless():
    for whence in (None, 0, 1, 2):
        consumer(FakeClient(), partitions=[]).seek(-1, whence)


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


# ---------------------------------------------------------------- logs


def test_log_lines_format_whatever_they_are_given(caplog):
    """Topics may be str or bytes, messages of any type, levels down to DEBUG switched on."""
    caplog.set_level(logging.DEBUG)

    class LaterClient(FakeClient):
        names_as_given = True

    for kind in (FakeClient, LaterClient):
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
