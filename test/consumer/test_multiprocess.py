"""kafka.consumer.multiprocess: who reads what, handing out, and what runs in the processes."""

from __future__ import annotations

import inspect
import logging
import queue
from collections import deque
from unittest import mock

import pytest

import kafka
from kafka.consumer import MultiProcessConsumer, base, multiprocess
from kafka.consumer.base import Consumer
from kafka.consumer.multiprocess import Events, consume
from kafka.errors import FailedPayloadsError, LeaderNotAvailableError
from test.fake_client import FakeClient, record


class FakeCrew:
    """Starts nothing; what it hands out is put in by the test."""

    def __init__(self, target, arguments, count, capacity, leave, method):
        self.target, self.arguments, self.capacity = target, arguments, capacity
        self.leave = leave
        self.processes = [None] * count
        self.started = []
        self.waits = []
        self.starting = deque()
        self.items = deque()

    def start(self):
        self.started += [self.arguments(index) for index in range(len(self.processes))]

    def restart(self, index, is_stale):
        self.items = deque(item for item in self.items if not is_stale(item))
        self.started.append(self.arguments(index))

    def end(self):
        self.leave.set()

    def get(self, block, timeout):
        self.waits.append(timeout)
        if not self.items:
            raise queue.Empty
        item = self.items.popleft()
        if isinstance(item, BaseException):
            raise item
        return item

    def put(self, *items):
        self.items.extend(items)

    def put_back(self, items):
        self.items.extendleft(reversed(items))

    def qsize(self):
        return len(self.items)

    def waiting(self):
        return list(self.items)

    def is_starting(self):
        return self.starting.popleft() if self.starting else False


@pytest.fixture
def crews(monkeypatch):
    monkeypatch.setattr(multiprocess, 'Crew', FakeCrew)


@pytest.fixture
def consumer(crews):
    """Return a maker of consumers without processes."""

    def make(client=None, group='group', topic='topic', **options):
        options.setdefault('auto_commit', False)
        client = client or FakeClient((0, 9), (0, 9), (0, 9))
        return MultiProcessConsumer(client, group, topic, **options)

    return make


def positions(made):
    """Return {partition: offset} as each process was given it, in the order of the starts."""
    return [arguments[2] for arguments in made.queue.started]


def pairs(partition, first, until):
    return [(partition, record(number)) for number in range(first, until)]


def offsets_of(messages):
    return [message.offset for message in messages]


# ---------------------------------------------------------------- construction


def test_it_is_reached_from_the_package():
    assert kafka.MultiProcessConsumer is kafka.consumer.MultiProcessConsumer
    assert 'MultiProcessConsumer' in kafka.__all__
    assert issubclass(MultiProcessConsumer, Consumer)


def test_arguments_and_their_order():
    names = list(inspect.signature(MultiProcessConsumer).parameters)
    assert names == [
        'client',
        'group',
        'topic',
        'partitions',
        'auto_commit',
        'auto_commit_every_n',
        'auto_commit_every_t',
        'num_procs',
        'partitions_per_proc',
        'simple_consumer_options',
    ]


def test_positional_arguments(crews):
    made = MultiProcessConsumer(FakeClient(), 'g', 't', (0,), False, 7, 70, 3, 0)
    assert (made.offsets, made.auto_commit) == ({0: 0}, False)
    assert (made.auto_commit_every_n, made.auto_commit_every_t) == (7, 70)
    assert len(made.procs) == 3


@pytest.mark.parametrize('flag', [True, False])
def test_a_bool_in_the_fourth_place_is_auto_commit_as_in_the_first_releases(crews, flag):
    client = FakeClient((0, 9), (0, 9))
    made = MultiProcessConsumer(client, 'g', 't', flag, 7, None, 2)
    assert (made.auto_commit, made.auto_commit_every_n, made.auto_commit_every_t) == (flag, 7, None)
    assert (len(made.procs), made.offsets) == (2, {0: 0, 1: 0})
    made = MultiProcessConsumer(client, 'g', 't', flag, auto_commit_every_t=None, partitions=[1])
    assert (made.auto_commit, made.auto_commit_every_n, made.offsets) == (flag, 100, {1: 0})


def test_repr(consumer):
    assert (
        repr(consumer(num_procs=2))
        == "<MultiProcessConsumer group=b'group', topic=b'topic', consumers=2>"
    )


def test_events_are_a_named_tuple():
    assert Events._fields == ('start', 'pause', 'exit')
    assert issubclass(Events, tuple)


def test_attributes(consumer):
    made = consumer()
    assert isinstance(made.events, Events)
    assert [flag.is_set() for flag in made.events] == [False, False, False]
    assert made.size.value == 0
    assert made.queue.capacity == 1024


@pytest.mark.parametrize(
    'options, error, words',
    [
        ({'num_procs': 0}, ValueError, 'num_procs'),
        ({'num_procs': '2'}, TypeError, 'num_procs'),
        ({'partitions_per_proc': -1}, ValueError, 'partitions_per_proc'),
        ({'partitions_per_proc': 1.5}, TypeError, 'partitions_per_proc'),
        ({'buffer_size': 10, 'max_buffer_size': 9}, ValueError, 'max_buffer_size'),
        ({'iter_timeout': 'x'}, TypeError, 'iter_timeout'),
        ({'bufer_size': 10}, TypeError, 'bufer_size'),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_done(consumer, options, error, words):
    client = FakeClient()
    with pytest.raises(error, match=words):
        consumer(client, **options)
    assert client.calls == []


def test_processes_are_started_before_the_timer(monkeypatch, crews):
    order = []
    monkeypatch.setattr(FakeCrew, 'start', lambda self: order.append('processes'))
    timer = mock.Mock()
    timer.return_value.start = lambda: order.append('timer')
    monkeypatch.setattr(base, 'ReentrantTimer', timer)
    MultiProcessConsumer(FakeClient(), 'g', 't').stop()
    assert order == ['processes', 'timer']


# ---------------------------------------------------------------- who reads what


@pytest.mark.parametrize(
    'partitions, options, shares',
    [
        (range(5), {'num_procs': 2}, [[0, 2, 4], [1, 3]]),
        (range(5), {'num_procs': 1}, [[0, 1, 2, 3, 4]]),
        ([7, 3, 5], {'num_procs': 2}, [[7, 5], [3]]),
        (range(2), {'num_procs': 4}, [[0], [1], [], []]),
        ([], {'num_procs': 2}, [[], []]),
        (range(5), {'partitions_per_proc': 2}, [[0, 3], [1, 4], [2]]),
        (range(4), {'partitions_per_proc': 2}, [[0, 2], [1, 3]]),
        (range(5), {'partitions_per_proc': 9, 'num_procs': 3}, [[0, 1, 2, 3, 4]]),
        (range(2), {'partitions_per_proc': None, 'num_procs': 2}, [[0], [1]]),
    ],
)
def test_partitions_are_dealt_out(consumer, partitions, options, shares):
    made = consumer(FakeClient(*[(0, 9)] * 9), partitions=partitions, **options)
    assert [list(share) for share in positions(made)] == shares


def test_given_partitions_are_never_looked_up_and_passed_on_as_they_are(consumer, monkeypatch):
    seen = []
    monkeypatch.setattr(
        Consumer, 'fetch_last_known_offsets', lambda self, *args, **kw: seen.append((args, kw))
    )
    client, given = FakeClient((0, 9), (0, 9)), (0, 1)
    consumer(client, partitions=given)
    assert seen[0][0][0] is given
    assert client.called('get_partition_ids_for_topic') == []


def test_known_partitions_are_those_with_an_offset(consumer, monkeypatch):
    monkeypatch.setattr(
        Consumer, 'fetch_last_known_offsets', lambda self, given: self.offsets.update({2: 5})
    )
    assert positions(consumer(partitions=(0, 1, 2))) == [{2: 5}]


def test_each_process_gets_a_copy_of_the_client_and_begins_where_the_group_is(consumer):
    client = FakeClient((0, 9), (0, 9))
    client.stored = {0: 3, 1: 5}
    made = consumer(client, num_procs=2, iter_timeout=3, buffer_size=5000)
    assert len(client.called('copy')) == 2
    assert client.called('reinit') == []
    assert positions(made) == [{0: 3}, {1: 5}]
    ((copy, topic, _, events, options), _) = made.queue.started
    assert (copy, topic, events) == (client, b'topic', made.events)
    assert (options['iter_timeout'], options['buffer_size']) == (3, 5000)


def test_names_stay_as_given_with_a_client_of_1_x(consumer):
    class LaterClient(FakeClient):
        names_as_given = True

        def load_metadata_for_topics(self, *topics, ignore_leadernotavailable=False):
            super().load_metadata_for_topics(*topics)

    made = consumer(LaterClient())
    assert (made.topic, made.queue.started[0][1]) == ('topic', 'topic')


# ---------------------------------------------------------------- iteration


def test_iteration_yields_bare_messages_until_none_comes_for_a_second(consumer):
    made = consumer()
    made.provide_partition_info()
    made.queue.put(*pairs(0, 0, 2), *pairs(1, 4, 5))
    assert list(made) == [record(0), record(1), record(4)]
    assert made.queue.waits == [1.0] * 4
    assert made.offsets == {0: 2, 1: 5, 2: 0}
    assert made.count_since_commit == 3
    assert made.events.start.is_set()


def test_the_second_begins_when_all_processes_have_asked_once(consumer):
    made = consumer()
    # It is asked before each wait and after a whole one in vain: here another one was started then.
    made.queue.starting.extend([True, True, False, True, False, False])
    assert list(made) == []
    assert made.queue.waits == [0.1, 0.1, 1.0, 1.0]


def test_iteration_commits_by_count(consumer):
    client = FakeClient((0, 99))
    made = consumer(client, auto_commit_every_n=20)
    made.auto_commit = True
    made.queue.put(*pairs(0, 0, 50))
    stored = []
    for _ in made:
        stored.append(client.stored.get(0))
    assert (stored[18], stored[19], stored[38], stored[39], stored[49]) == (None, 20, 20, 40, 40)


# ---------------------------------------------------------------- get_messages


def test_get_messages_returns_at_most_count_and_keeps_the_rest_uncommitted(consumer):
    client = FakeClient((0, 99))
    made = consumer(client, auto_commit_every_n=4)
    made.auto_commit = True
    made.queue.put(*pairs(0, 0, 7))
    assert offsets_of(made.get_messages(5)) == [0, 1, 2, 3, 4]
    assert (made.offsets[0], client.stored) == (5, {0: 5})
    assert offsets_of(made.get_messages(5)) == [5, 6]
    assert (made.offsets[0], client.stored, made.count_since_commit) == (7, {0: 5}, 2)


def test_partition_info(consumer):
    made = consumer()
    made.provide_partition_info()
    made.queue.put(*pairs(1, 0, 1))
    assert made.get_messages() == [(1, record(0))]


def test_blocking_waits_for_what_is_left_of_the_time(consumer):
    made = consumer()
    made.queue.put(*pairs(0, 0, 2))
    assert len(made.get_messages(3, timeout=50)) == 2
    assert all(40 < wait <= 50 for wait in made.queue.waits)
    assert len(made.queue.waits) == 3


def test_the_time_is_ten_seconds_by_default_and_none_is_for_ever(consumer):
    made = consumer()
    assert made.get_messages() == []
    assert 9 < made.queue.waits[0] <= 10
    assert made.get_messages(timeout=None) == []
    assert made.queue.waits[1:] == [None]


def test_blocking_for_a_number_waits_only_until_that_many_came(consumer):
    made = consumer()
    made.queue.put(*pairs(0, 0, 4))
    assert len(made.get_messages(10, block=2, timeout=50)) == 4
    assert [wait > 1 for wait in made.queue.waits] == [True, True, False, False]
    assert len(made.get_messages(10, block=2, timeout=50)) == 0


def test_not_blocking_takes_what_is_there_after_the_time_of_one_fetch(consumer):
    made = consumer()
    assert made.get_messages(10, block=False) == []
    made.queue.starting.append(True)
    made.queue.put(*pairs(0, 0, 4))
    assert len(made.get_messages(3, block=False)) == 3
    assert made.queue.waits == [0.1, 1, 0.0, 0.0]


def test_a_time_that_is_over_takes_what_is_there(consumer):
    made = consumer()
    made.queue.put(*pairs(0, 0, 4))
    assert len(made.get_messages(10, timeout=0)) == 4


def test_nothing_is_waited_for_when_nothing_is_wanted(consumer):
    made = consumer()
    made.queue.put(*pairs(0, 0, 4))
    for count in (0, -1):
        assert made.get_messages(count) == made.get_messages(count, block=False) == []
    assert made.queue.waits == []


@pytest.mark.parametrize(
    'arguments, error',
    [
        ({'count': '5'}, TypeError),
        ({'block': 'x'}, TypeError),
        ({'timeout': 'x'}, TypeError),
        ({'timeout': float('nan')}, ValueError),
    ],
)
def test_wrong_arguments_of_a_call_are_named(consumer, arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        consumer().get_messages(**arguments)


@pytest.mark.parametrize('error', [KeyboardInterrupt, ArithmeticError, MemoryError])
@pytest.mark.parametrize('take', [lambda made: made.get_messages(5), lambda made: next(iter(made))])
def test_the_processes_go_back_to_before_a_call_that_is_interrupted(consumer, take, error):
    """A message may be lost between the queue and the call."""
    made = consumer()
    made.queue.put(*pairs(0, 0, 2))
    made.get_messages(2)
    made.queue.put(error())
    with pytest.raises(error):
        take(made)
    assert (made.offsets[0], made.size.value) == (2, 0)
    made.get_messages(0)
    assert made.queue.started[-1][2][0] == 2
    made.queue.put(*pairs(0, 2, 4))
    assert offsets_of(made.get_messages(5)) == [2, 3]


@pytest.mark.parametrize('error', [KeyboardInterrupt, ArithmeticError, MemoryError])
def test_a_call_that_is_interrupted_when_it_has_its_messages_commits_none(
    consumer, monkeypatch, error
):
    made = consumer()

    def interrupt():
        raise error

    made.queue.put(*pairs(0, 0, 2))
    monkeypatch.setattr(made, '_auto_commit', interrupt)
    with pytest.raises(error):
        made.get_messages(2)
    monkeypatch.undo()
    assert made._read().get(0, 0) == 0
    made.get_messages(0)
    assert made.offsets[0] == 0
    assert made.queue.started[-1][2][0] == 0


def test_size_says_how_many_messages_a_call_wants(consumer):
    made = consumer()
    seen = []
    made.queue.get = lambda block, timeout: seen.append(made.size.value) or pairs(0, 0, 1)[0]
    made.get_messages(2)
    assert (seen, made.size.value) == ([2, 2], 0)


# ---------------------------------------------------------------- going on


def test_offsets_that_the_program_writes_are_where_the_processes_go_on(consumer):
    made = consumer(num_procs=2)
    made.queue.put(*pairs(0, 0, 3), *pairs(1, 0, 1), *pairs(2, 0, 1))
    assert len(made.get_messages(1)) == 1
    made.offsets[2] = 70
    assert made.get_messages(9, timeout=0) == [record(0)]  # of partition 1, whose process stays
    assert positions(made)[2:] == [{0: 1, 2: 70}]


def test_a_process_that_is_started_again_goes_on_behind_what_it_has_sent(consumer):
    made = consumer()
    made.queue.put(*pairs(0, 0, 3), *pairs(1, 5, 6))
    made.get_messages(1)
    assert made.queue.arguments(0)[2] == {0: 3, 1: 6, 2: 0}
    restarted = []

    def get(block, timeout):
        restarted.append(made.queue.arguments(0)[2])
        return made.queue.items.popleft()

    made.queue.get = get
    made.get_messages(3)
    assert restarted == [{0: 3, 1: 6, 2: 0}] * 3


# ---------------------------------------------------------------- the end


def test_stop_ends_the_processes_and_commits(crews):
    client = FakeClient((0, 9))
    made = MultiProcessConsumer(client, 'group', 'topic')
    made.queue.put(*pairs(0, 0, 3))
    made.get_messages(3)
    made.stop()
    assert made.events.exit.is_set()
    assert client.stored == {0: 3}
    made.stop()
    assert len(client.called('send_offset_commit_request')) == 1


# ---------------------------------------------------------------- in the processes


class FakeLink:
    """Collects what is sent, and leaves after so many rounds or rests."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.sent = []
        self.rests = []
        self.ready = 0

    def leaving(self):
        return self.rounds <= 0

    def send(self, items):
        self.rounds -= 1
        self.sent.append(items)

    def rest(self, seconds):
        self.rounds -= 1
        self.rests.append(seconds)

    def say_ready(self):
        self.ready += 1


@pytest.fixture
def events():
    flags = [mock.Mock(name=name) for name in Events._fields]
    flags[0].wait.return_value = True
    flags[1].is_set.return_value = False
    return Events(*flags)


def run(client, events, rounds, at, **options):
    link = FakeLink(rounds)
    consume(link, client, b'topic', at, events, options)
    return link


def test_a_process_connects_and_sends_pairs_from_its_positions_on(events):
    client = FakeClient((0, 4), (0, 9))
    link = run(client, events, 1, {0: 2, 1: 7})
    assert client.calls[0][0] == 'reinit'
    assert [item for batch in link.sent for item in batch] == [*pairs(0, 2, 4), *pairs(1, 7, 9)]
    assert client.called('get_partition_ids_for_topic') == []
    assert client.called('send_offset_fetch_request') == []
    assert client.called('send_offset_commit_request') == []


def test_batches_are_bounded(events):
    link = run(FakeClient((0, 500), per_fetch=400), events, 3, {0: 0})
    assert [len(batch) for batch in link.sent] == [128, 128, 128]


def test_the_first_round_does_not_wait_and_tells_that_the_process_is_ready(events):
    client = FakeClient((0, 0))
    link = run(client, events, 1, {0: 0})
    (arguments,) = client.called('send_fetch_request')
    assert arguments[1]['min_bytes'] == 0
    assert (link.sent, link.ready) == ([[]], 1)


def test_options_are_those_of_the_consumer(events):
    client = FakeClient((0, 9))
    run(client, events, 1, {0: 0}, buffer_size=777, max_buffer_size=None)
    assert client.asked()[0] == [(0, 0, 777)]


def test_nothing_is_fetched_before_the_start(events):
    client = FakeClient((0, 9))
    link = FakeLink(1)

    def wait(seconds):
        link.rounds -= 1
        return False

    events.start.wait.side_effect = wait
    consume(link, client, b'topic', {0: 0}, events, {})
    assert client.asked() == []


def test_nothing_is_fetched_during_a_pause(events):
    client = FakeClient((0, 9))
    events.pause.is_set.side_effect = [True, True, False]
    link = run(client, events, 3, {0: 0})
    assert link.rests == [0.1, 0.1]
    assert len(client.asked()) == 1


def test_errors_are_retried_after_1_2_4_up_to_60_seconds(events, caplog):
    client = FakeClient((0, 9))
    client.answers['reinit'] = [LeaderNotAvailableError('gone')] * 8
    with caplog.at_level(logging.ERROR):
        link = run(client, events, 9, {0: 0})
    assert link.rests == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [len(batch) for batch in link.sent] == [9]
    assert link.ready > 0
    assert 'trying again in 60 s: ' in caplog.text


def test_after_an_error_reading_goes_on_and_the_pauses_begin_anew(events):
    client = FakeClient((0, 9), per_fetch=3)
    failure = FailedPayloadsError('payload')
    client.answers['send_fetch_request'] = [None, failure, failure, None, failure]
    link = run(client, events, 6, {0: 0})
    assert link.rests == [1, 2, 1]
    assert [item for batch in link.sent for item in batch] == pairs(0, 0, 9)
    assert len(client.called('reinit')) == 4
    assert len(client.called('load_metadata_for_topics')) == 1


def test_a_process_without_partitions_asks_nobody(events):
    client = FakeClient((0, 9))
    link = run(client, events, 2, {})
    assert (client.calls, link.rests, link.ready > 0) == ([], [60, 60], True)
