"""kafka.consumer.simple: seeking and resetting."""

from __future__ import annotations

import pytest

from kafka.errors import (
    FailedPayloadsError,
    KafkaUnavailableError,
    OffsetOutOfRangeError,
)
from kafka.structs import OffsetRequest, OffsetResponse
from test.consumer.helpers import consumer, offsets_of
from test.fake_client import FakeClient

# ---------------------------------------------------------------- reset_partition_offset


@pytest.mark.parametrize('policy, time, offset', [('largest', -1, 9), ('smallest', -2, 4)])
def test_reset_asks_for_one_end_and_sets_both_positions(policy, time, offset):
    client = FakeClient((4, 9), (4, 9))
    made = consumer(client, partitions=[0], auto_offset_reset=policy)
    # The partition need not be known yet.
    assert made.reset_partition_offset(1) == offset
    assert client.called('send_offset_request') == [(([OffsetRequest(b'topic', 1, time, 1)],), {})]
    assert made.offsets == made.fetch_offsets == {0: 0, 1: offset}


def test_reset_takes_the_first_offset_of_the_answer_by_its_index():
    class Indexed:
        def __getitem__(self, index):
            return [7, 3][index]

    client = FakeClient((4, 9))
    client.answers['send_offset_request'] = [[OffsetResponse(b'topic', 0, 0, Indexed())]]
    made = consumer(client)
    assert made.reset_partition_offset(0) == 7


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
    for partition in ('0', 1.5, [0]):
        with pytest.raises(TypeError, match='partition'):
            made.seek(0, partition=partition)
    assert made.offsets == {0: 0, 1: 0, 2: 0}
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
