"""kafka.consumer.kafka_09: rounds of fetches, what errors lead to, and how long next() waits."""

from __future__ import annotations

import types

import pytest

from kafka.consumer import KafkaConsumer
from kafka.errors import (
    ChecksumError,
    ConsumerFetchSizeTooSmall,
    ConsumerTimeout,
    FailedPayloadsError,
    KafkaStorageError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import FetchRequest, KafkaMessage, Message, OffsetAndMessage
from test.consumer.helpers_09 import SERVERS, consumer, fetched, kept, message, places
from test.fake_client import failing

ZERO, ONE = (b'topic', 0), (b'topic', 1)


def position(made, key=ZERO):
    return made.offsets('fetch')[key]


def loads(client):
    """Return how often metadata was loaded since the constructor did."""
    return len(client.called('load_metadata_for_topics')) - 1


# ---------------------------------------------------------------- messages


def test_a_message_has_topic_partition_offset_key_and_value(serve):
    client = serve((0, 9))
    made = consumer()
    whole = OffsetAndMessage(0, Message(0, 0, b'key', b'value'))
    client.answers['send_fetch_request'] = [[fetched(messages=[whole])]]
    (got,) = made.fetch_messages()
    assert got == KafkaMessage(b'topic', 0, 0, b'key', b'value')
    assert type(got) is KafkaMessage
    assert type(got.topic) is bytes


def test_a_message_without_value_is_deserialized_too(serve):
    client = serve((0, 9))
    made = consumer(deserializer_class=lambda raw: (raw, 'seen'))
    client.answers['send_fetch_request'] = [
        [fetched(messages=[OffsetAndMessage(0, Message(0, 0, b'key', None))])]
    ]
    assert next(made).value == (None, 'seen')


def test_fetch_messages_is_a_generator_over_one_round(serve):
    client = serve((0, 3), (5, 7))
    made = consumer()
    messages = made.fetch_messages()
    assert isinstance(messages, types.GeneratorType)
    assert client.asked() == []
    assert places(messages) == [(0, 0), (0, 1), (0, 2), (1, 5), (1, 6)]
    assert client.asked() == [[(0, 0, 1048576), (1, 5, 1048576)]]
    assert made.offsets('highwater') == {ZERO: 3, ONE: 7}
    assert list(made.fetch_messages()) == []


def test_options_of_the_fetch_reach_the_client(serve):
    client = serve((0, 3))
    made = consumer(fetch_message_max_bytes=777, fetch_min_bytes=55, fetch_wait_max_ms=66)
    list(made.fetch_messages())
    assert client.called('send_fetch_request') == [
        (([FetchRequest(b'topic', 0, 0, 777)],), {'max_wait_time': 66, 'min_bytes': 55})
    ]


def test_brokers_wait_less_long_than_sockets(serve):
    client = serve((0, 3))
    made = consumer(fetch_wait_max_ms=30000, socket_timeout_ms=30000)
    list(made.fetch_messages())
    assert client.called('send_fetch_request')[0][1]['max_wait_time'] == 15000


def test_messages_before_the_position_are_skipped(serve):
    client = serve((0, 20))
    made = consumer(('topic', 0, 5))
    client.answers['send_fetch_request'] = [[fetched(messages=kept(3, 4, 5, 6))]]
    assert places(made.fetch_messages()) == [(0, 5), (0, 6)]
    assert position(made) == 7


def test_the_position_is_behind_a_message_as_soon_as_it_is_handed_out(serve):
    serve((0, 9))
    made = consumer()
    for got in made.fetch_messages():
        assert position(made) == got.offset + 1


def test_messages_that_were_not_taken_come_again(serve):
    serve((0, 9))
    made = consumer()
    for got in made.fetch_messages():
        if got.offset == 3:
            break
    assert places(made.fetch_messages())[0] == (0, 4)


def test_next_and_fetch_messages_mix_without_loss_or_repetition(serve):
    serve((0, 10), per_fetch=6)
    made = consumer()
    found = [next(made), next(made)]
    for got in made.fetch_messages():
        found.append(got)
        if len(found) == 4:
            break
    found += [next(made), next(made)]
    found += made.fetch_messages()
    assert places(found) == [(0, number) for number in range(10)]


def test_each_round_begins_with_another_partition(serve):
    """A program that breaks off, or an error, would else keep the last ones waiting for ever."""
    client = serve((0, 9), (0, 9), (0, 9))
    made = consumer()
    firsts = [next(made.fetch_messages()).partition for _ in range(4)]
    assert firsts == [0, 1, 2, 0]
    assert [p for p, _, _ in client.asked()[1]] == [1, 2, 0]


def test_answers_about_other_partitions_are_ignored(serve):
    client = serve((0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [
        [fetched(messages=kept(0), partition=7), fetched(messages=kept(0))]
    ]
    assert places(made.fetch_messages()) == [(0, 0)]


# ---------------------------------------------------------------- the deserializer


class Picky:
    """Raises at a value, as often as told."""

    def __init__(self, value, times):
        self.value, self.times, self.seen = value, times, []

    def __call__(self, raw):
        self.seen.append(raw)
        if raw == self.value and self.times:
            self.times -= 1
            raise LookupError(raw)
        return raw


@pytest.mark.parametrize('verb', ['next', 'fetch_messages'])
def test_a_message_that_was_not_deserialized_comes_again(serve, verb):
    """Nothing is lost: the position stays on it, and those behind it were not handed out."""
    serve((0, 5))
    made = consumer(deserializer_class=Picky(b'2', 1))
    take = made.next if verb == 'next' else lambda: next(messages)
    messages = made.fetch_messages()
    assert places([take(), take()]) == [(0, 0), (0, 1)]
    with pytest.raises(LookupError):
        take()
    assert position(made) == 2
    messages = made.fetch_messages()
    assert places([take(), take()]) == [(0, 2), (0, 3)]


def test_a_message_that_never_deserializes_holds_up_its_partition_only(serve):
    serve((0, 5), (0, 3))
    made = consumer(deserializer_class=Picky(b'2', -1), consumer_timeout_ms=0)
    found, errors = [], 0
    while errors < 6:
        try:
            found.append(next(made))
        except LookupError:
            errors += 1
    assert [m.offset for m in found if m.partition == 0] == [0, 1]
    assert position(made) == 2


def test_a_message_that_never_deserializes_can_be_stepped_over(serve):
    serve((0, 5))
    made = consumer(deserializer_class=Picky(b'2', -1))
    for _ in range(2):
        next(made)
    with pytest.raises(LookupError):
        next(made)
    (((topic, partition), offset),) = made.offsets('fetch').items()
    made.set_topic_partitions((topic, partition, offset + 1))
    assert places([next(made), next(made)]) == [(0, 3), (0, 4)]


def test_a_deserializer_that_raises_StopIteration_does_not_end_the_round_in_silence(serve):
    serve((0, 5))

    def end(raw):
        raise StopIteration

    with pytest.raises(RuntimeError, match='StopIteration'):
        next(consumer(deserializer_class=end))


def test_the_deserializer_sees_no_message_before_the_position(serve):
    client = serve((0, 20))
    picky = Picky(None, 0)
    made = consumer(('topic', 0, 5), deserializer_class=picky)
    client.answers['send_fetch_request'] = [[fetched(messages=kept(3, 4, 5))]]
    list(made.fetch_messages())
    assert picky.seen == [b'5']


# ---------------------------------------------------------------- leaders that are gone


@pytest.mark.parametrize('error', [NotLeaderForPartitionError, KafkaStorageError])
def test_a_leader_that_moved_costs_a_pause_and_new_metadata(serve, clock_09, error):
    client = serve((0, 9), (0, 9))
    made = consumer(refresh_leader_backoff_ms=500)
    client.answers['send_fetch_request'] = [
        [fetched(error=error.errno), fetched(messages=kept(0, 1), partition=1)]
    ]
    assert places(made.fetch_messages()) == [(1, 0), (1, 1)]
    assert loads(client) == 1
    (pause,) = clock_09.slept
    assert 0.45 <= pause <= 0.55
    assert client.called('load_metadata_for_topics')[-1] == ((), {})
    assert (0, 0) in places(made.fetch_messages())
    assert loads(client) == 1


def test_payloads_that_failed_cost_one_pause_however_many(serve, clock_09):
    client = serve((0, 9), (0, 9), (0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [failing(0, 1)]
    assert list(made.fetch_messages()) == []
    assert (loads(client), len(clock_09.slept)) == (1, 1)
    assert {p for p, _ in places(made.fetch_messages())} == {0, 1, 2}


def test_metadata_is_loaded_in_the_next_round_if_the_program_breaks_off(serve):
    client = serve((0, 9), (0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [
        [FailedPayloadsError(FetchRequest(b'topic', 1, 0, 1)), fetched(messages=kept(0, 1))]
    ]
    next(made.fetch_messages())
    assert loads(client) == 0
    next(made.fetch_messages())
    assert loads(client) == 1


def test_metadata_is_loaded_again_and_again_while_no_broker_answers(serve, clock_09, caplog):
    client = serve((0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [failing(0)]
    client.answers['load_metadata_for_topics'] = [KafkaUnavailableError('down')] * 50
    assert next(made) == message(0)
    assert loads(client) == 51
    assert len(clock_09.slept) == 51
    told = [r for r in caplog.records if r.levelname == 'WARNING' and 'metadata' in r.message]
    assert len(told) == 1


def test_the_consumer_timeout_ends_the_wait_for_a_broker(serve, clock_09):
    client = serve((0, 9))
    made = consumer(consumer_timeout_ms=1000)
    client.answers['send_fetch_request'] = [failing(0)]
    client.answers['load_metadata_for_topics'] = [KafkaUnavailableError('down')] * 50
    with pytest.raises(ConsumerTimeout, match='no broker') as caught:
        next(made)
    assert isinstance(caught.value.__cause__, KafkaUnavailableError)
    assert clock_09.now == pytest.approx(1001, abs=0.01)
    client.answers.clear()
    assert next(made) == message(0)


def test_when_the_time_is_over_metadata_is_left_to_the_next_call(serve, clock_09):
    """A broker that hangs costs a time-out of the socket; asking it again would cost another."""
    client = serve((0, 9))
    made = consumer(consumer_timeout_ms=1000)

    def hang(payloads, **kwargs):
        clock_09.now += 30
        return failing(0)(payloads, **kwargs)

    client.answers['send_fetch_request'] = [hang]
    with pytest.raises(ConsumerTimeout):
        next(made)
    assert loads(client) == 0
    assert next(made) == message(0)
    assert loads(client) == 1


def test_metadata_is_loaded_with_no_time_to_wait_at_all(serve):
    client = serve((0, 9))
    made = consumer(consumer_timeout_ms=0)
    client.answers['send_fetch_request'] = [failing(0)]
    with pytest.raises(ConsumerTimeout):
        next(made)
    assert next(made) == message(0)
    assert loads(client) == 1


def test_a_partition_without_leader_does_not_keep_the_others_waiting(serve):
    client = serve((0, 2), (0, 2), (0, 2))
    made = consumer()

    def no_leader(payloads, **kwargs):
        if any(p.partition == 1 for p in payloads):
            raise LeaderNotAvailableError('of partition 1')
        return [client.fetched(p) for p in payloads]

    client.answers['send_fetch_request'] = [no_leader] * 4
    assert places(made.fetch_messages()) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert loads(client) == 1
    assert places(made.fetch_messages()) == [(1, 0), (1, 1)]


def test_a_partition_without_leader_is_waited_for_as_long_as_the_program_says(serve, clock_09):
    client = serve((0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [LeaderNotAvailableError('of partition 0')] * 50
    assert next(made) == message(0)
    assert loads(client) == 50
    made.configure(bootstrap_servers=SERVERS, consumer_timeout_ms=1000)
    client.answers['send_fetch_request'] = [LeaderNotAvailableError('of partition 0')] * 50
    started = clock_09.now
    with pytest.raises(ConsumerTimeout):
        next(made)
    assert clock_09.now - started == pytest.approx(1, abs=0.01)


# ---------------------------------------------------------------- other errors


def test_a_request_that_timed_out_is_sent_again(serve):
    client = serve((0, 9), (0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [
        [fetched(error=RequestTimedOutError.errno), fetched(messages=kept(0), partition=1)]
    ]
    assert places(made.fetch_messages()) == [(1, 0)]
    assert loads(client) == 0
    assert (0, 0) in places(made.fetch_messages())


@pytest.mark.parametrize(
    'error',
    [
        UnknownError,
        UnknownTopicOrPartitionError,
        LeaderNotAvailableError,
        ReplicaNotAvailableError,
        TopicAuthorizationFailedError,
    ],
)
def test_other_errors_come_out_and_the_consumer_goes_on(serve, error):
    client = serve((0, 9), (0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [
        [fetched(messages=kept(0)), fetched(error=error.errno, partition=1)]
    ]
    assert places([next(made)]) == [(0, 0)]
    with pytest.raises(error):
        next(made)
    assert places([next(made)]) == [(1, 0)]


def test_an_unknown_topic_is_looked_up_again_after_its_error(serve):
    client = serve((0, 9))
    made = consumer()
    client.answers['send_fetch_request'] = [[fetched(error=3)]]
    with pytest.raises(UnknownTopicOrPartitionError):
        next(made)
    assert client.called('reset_topic_metadata') == [((b'topic',), {})]


def too_large():
    raise ConsumerFetchSizeTooSmall()
    yield


def test_a_message_that_is_too_large_names_itself_and_the_option(serve):
    client = serve((0, 9))
    made = consumer(('topic', 0, 4), fetch_message_max_bytes=100)
    client.answers['send_fetch_request'] = [[fetched(messages=too_large())] for _ in range(2)]
    for _ in range(2):
        with pytest.raises(ConsumerFetchSizeTooSmall) as caught:
            next(made)
        for part in ("topic b'topic'", 'partition 0', 'offset 4', 'fetch_message_max_bytes (100)'):
            assert part in str(caught.value)
    made.configure(bootstrap_servers=SERVERS, fetch_message_max_bytes=1000)
    assert places([next(made)]) == [(0, 4)]


def test_a_damaged_message_comes_out_after_those_before_it(serve):
    client = serve((0, 9))
    made = consumer()

    def damaged():
        yield from kept(0, 1)
        raise ChecksumError('crc')

    client.answers['send_fetch_request'] = [[fetched(messages=damaged())]]
    assert places([next(made), next(made)]) == [(0, 0), (0, 1)]
    with pytest.raises(ChecksumError):
        next(made)
    assert position(made) == 2


# ---------------------------------------------------------------- offsets out of range


@pytest.mark.parametrize('policy, goes_on', [('smallest', 40), ('largest', 50)])
def test_an_offset_out_of_range_becomes_that_of_the_policy(serve, caplog, policy, goes_on):
    client = serve((40, 50), (0, 2))
    made = consumer(('topic', 0, 7), ('topic', 1, 0), auto_offset_reset=policy)
    assert places(made.fetch_messages()) == [(1, 0), (1, 1)]
    assert position(made) == goes_on
    assert '7 is out of range, going on at %d' % goes_on in caplog.text
    client.logs[0] = (40, 51)
    assert places(made.fetch_messages())[0] == (0, goes_on)


def test_without_a_policy_the_error_comes_out_and_the_position_stays(serve):
    serve((40, 50))
    made = consumer(('topic', 0, 7), auto_offset_reset='none')
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="offset 7 .* auto_offset_reset is 'none'"):
            next(made)
    assert position(made) == 7


@pytest.mark.parametrize(
    'failure', [FailedPayloadsError(None), NotLeaderForPartitionError(), LeaderNotAvailableError()]
)
def test_a_reset_whose_leader_is_gone_is_made_in_a_later_round(serve, failure):
    client = serve((40, 50))
    made = consumer(('topic', 0, 7))
    client.answers['send_offset_request'] = [failure]
    assert list(made.fetch_messages()) == []
    assert (position(made), loads(client)) == (7, 1)
    assert places([next(made)]) == [(0, 40)]


def test_a_reset_that_fails_for_good_comes_out(serve):
    client = serve((40, 50))
    made = consumer(('topic', 0, 7))
    client.answers['send_offset_request'] = [TopicAuthorizationFailedError()]
    with pytest.raises(TopicAuthorizationFailedError):
        next(made)


# ---------------------------------------------------------------- how long next() waits


def test_iteration_is_next(serve):
    serve((0, 3))
    made = consumer(consumer_timeout_ms=500)
    assert iter(made) is made
    found = []
    with pytest.raises(ConsumerTimeout):
        for got in made:
            found.append(got)
    assert found == [message(0), message(1), message(2)]


def test_iteration_brings_what_the_fetch_messages_of_a_subclass_does(serve):
    serve((0, 6))

    class Odd(KafkaConsumer):
        def fetch_messages(self):
            for got in super().fetch_messages():
                if got.offset % 2:
                    yield got

    made = Odd(
        b'topic', bootstrap_servers=SERVERS, auto_offset_reset='smallest', consumer_timeout_ms=500
    )
    assert [next(made) for _ in range(3)] == [message(1), message(3), message(5)]
    with pytest.raises(ConsumerTimeout):
        next(made)


def test_next_takes_messages_from_a_fetch_messages_put_in_its_place(serve):
    client = serve((0, 6))
    made = consumer()
    made.fetch_messages = lambda: [message(4), message(5)]
    assert [next(made), next(made), next(made)] == [message(4), message(5), message(4)]
    assert client.asked() == []


@pytest.mark.parametrize('timeout', [0, 50, 1000, 1234.5])
def test_consumer_timeout_counts_from_each_call(serve, clock_09, timeout):
    serve((0, 1))
    made = consumer(consumer_timeout_ms=timeout)
    next(made)
    for _ in range(2):
        started = clock_09.now
        with pytest.raises(ConsumerTimeout, match='no message within'):
            made.next()
        assert clock_09.now - started == pytest.approx(timeout / 1000, abs=0.002)


def test_time_that_the_program_takes_is_not_counted(serve, clock_09):
    serve((0, 3))
    made = consumer(consumer_timeout_ms=1000)
    for got in range(3):
        assert next(made).offset == got
        clock_09.now += 3600


def test_iteration_goes_on_after_a_timeout(serve):
    client = serve((0, 1))
    made = consumer(consumer_timeout_ms=100)
    next(made)
    with pytest.raises(ConsumerTimeout):
        next(made)
    client.logs[0] = (0, 2)
    assert next(made) == message(1)


@pytest.mark.parametrize('never', [-1, None, -0.5])
def test_without_a_timeout_next_waits_for_the_message(serve, clock_09, never):
    client = serve((0, 0))
    made = consumer(consumer_timeout_ms=never)

    def later(payloads, **kwargs):
        client.logs[0] = (0, 1)
        return [fetched()]

    client.answers['send_fetch_request'] = [[fetched()]] * 500 + [later]
    assert next(made) == message(0)


def test_a_timeout_is_no_StopIteration(serve):
    """Programs catch it around their loop; a loop that just ended would look like success."""
    serve((0, 0))
    with pytest.raises(ConsumerTimeout):
        list(consumer(consumer_timeout_ms=0))


def test_brokers_that_answer_nothing_at_once_are_not_asked_in_a_tight_loop(serve, clock_09):
    client = serve((0, 0))
    made = consumer(consumer_timeout_ms=1000)
    client.answers['send_fetch_request'] = [[fetched(error=7)]] * 1000
    with pytest.raises(ConsumerTimeout):
        next(made)
    assert len(client.asked()) <= 110


def test_a_fetch_waits_no_longer_than_the_consumer(serve):
    client = serve((0, 0))
    made = consumer(consumer_timeout_ms=250, fetch_wait_max_ms=100)
    with pytest.raises(ConsumerTimeout):
        next(made)
    waits = [kwargs['max_wait_time'] for _, kwargs in client.called('send_fetch_request')]
    assert waits[:3] == [100, 100, 50]
