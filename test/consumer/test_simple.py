"""kafka.consumer.simple: construction, handing out messages, iteration."""

from __future__ import annotations

import pytest

from kafka.consumer import SimpleConsumer
from kafka.structs import FetchResponse
from test.consumer.helpers import WaitingClient, consumer, offsets_of, waits
from test.fake_client import FakeClient, record

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


def test_not_blocking_fetches_until_a_fetch_brings_nothing():
    """As 0.9.5 did: one call drains what is there, and none of its fetches waits."""
    client = FakeClient((0, 5), per_fetch=3)
    made = consumer(client)
    assert offsets_of(made.get_messages(9, block=False)) == [0, 1, 2, 3, 4]
    assert waits(client) == [(100, 0)] * 3


def test_not_blocking_fetches_no_more_than_it_was_asked_for():
    client = FakeClient((0, 9), per_fetch=3)
    made = consumer(client)
    assert offsets_of(made.get_messages(4, block=False)) == [0, 1, 2, 3]
    assert len(client.asked()) == 2


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


@pytest.mark.parametrize('where', ['class', 'object'])
def test_iteration_goes_through_a_get_message_that_was_replaced(where, monkeypatch):
    made = consumer(FakeClient((0, 3)), iter_timeout=0)
    called = []
    original = made.get_message

    def noting(*args, **kwargs):
        called.append(args)
        return original(*args[-2:], **kwargs)

    monkeypatch.setattr(SimpleConsumer if where == 'class' else made, 'get_message', noting)
    assert offsets_of(made) == [0, 1, 2]
    assert len(called) == 4


def test_iteration_goes_by_what_a_program_writes_meanwhile():
    """What get_message() looks at for each message, iteration looks at for each message."""
    client = FakeClient((0, 6))
    made = consumer(client, 'group', auto_commit_every_n=None, iter_timeout=0)
    stream = iter(made)
    assert next(stream) == record(0)
    assert (made.offsets, made.count_since_commit, client.stored) == ({0: 1}, 1, {})
    made.auto_commit, made.auto_commit_every_n = True, 1
    assert next(stream) == record(1)
    assert (client.stored, made.count_since_commit) == ({0: 2}, 0)
    made.auto_commit = False
    made.count_since_commit = 7
    made.provide_partition_info()
    assert next(stream) == (0, record(2))
    assert (client.stored, made.count_since_commit) == ({0: 2}, 8)
    made.offsets = {0: 9}
    assert next(stream) == (0, record(3))
    assert made.offsets == {0: 4}
    made.seek(1)
    assert next(stream) == (0, record(1))
    made.queue = type(made.queue)([(0, record(5))])
    assert [offset for _, (offset, _) in stream] == [5]


@pytest.mark.parametrize('every', [1, 2, 3, 7])
def test_iteration_commits_when_get_message_would(every):
    stored = []
    for hand_out in (iter, lambda made: iter(lambda: made.get_message(False), None)):
        client = FakeClient((0, 7), per_fetch=3)
        made = consumer(client, 'group', auto_commit_every_n=every, iter_timeout=0)
        made.auto_commit = True
        stored.append([dict(client.stored) for _ in hand_out(made)])
    assert stored[0] == stored[1]
    assert stored[0][-1] == {0: 7 // every * every}
