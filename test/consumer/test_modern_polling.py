"""poll() and iteration of the modern consumer, on embedded brokers."""

from __future__ import annotations

import functools
import threading
import time

import pytest

from kafka.consumer.fetch.completed_fetch import CompletedFetch
from kafka.errors import IllegalStateError, WakeupError
from kafka.testing import Cluster
from test.consumer.modern import FIRST, SECOND, consumer_of, poll_until, values, write
from test.timing import within

pytestmark = pytest.mark.once


class Interceptor:
    """One that changes nothing."""

    def on_consume(self, records):
        return records


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2, 'empty': 1}) as made:
        write(made, 100)
        write(made, 100, partition=1)
        yield made


@pytest.fixture
def consumer(cluster):
    with consumer_of(cluster) as made:
        made.assign([FIRST])
        yield made


def test_poll_returns_lists_by_partition(consumer):
    found = {}
    while not found:
        found = consumer.poll(timeout_ms=1000)
    assert list(found) == [FIRST]
    assert values(found[FIRST]) == list(range(len(found[FIRST])))
    assert consumer.position(FIRST) == len(found[FIRST])


def test_poll_returns_no_more_than_it_was_asked_for(consumer):
    assert values(poll_until(consumer, 7, max_records=7)) == list(range(7))
    assert consumer.position(FIRST) == 7
    assert values(poll_until(consumer, 93)) == list(range(7, 100))


def test_a_poll_without_anything_ends_in_time(cluster):
    with consumer_of(cluster, 'empty') as made:
        for seconds in (0, 0.3):
            poll = functools.partial(made.poll, timeout_ms=seconds * 1000)
            assert within(seconds, seconds + 1, poll) == {}


def test_a_poll_without_anything_looks_once_for_what_is_owed(cluster, monkeypatch):
    with consumer_of(cluster, 'empty') as made:
        made.poll(timeout_ms=100)
        looks, attend = [], made._modern._attend
        monkeypatch.setattr(made._modern, '_attend', lambda: (looks.append(1), attend()))
        for _ in range(10):
            made.poll(timeout_ms=10)
        assert 10 <= len(looks) <= 13


def test_iteration_hands_out_one_record_after_the_other(consumer):
    found = [next(consumer) for _ in range(10)]
    assert values(found) == list(range(10))
    assert consumer.position(FIRST) == 10
    assert iter(consumer) is consumer


def test_iteration_ends_after_consumer_timeout_ms_and_can_be_resumed(cluster):
    with consumer_of(cluster, consumer_timeout_ms=100) as made:
        made.assign([FIRST])
        assert values(made) == list(range(100))
        write(cluster, 0)
        made.seek(FIRST, 98)
        assert values(made) == [98, 99]


def test_poll_and_iteration_lose_and_repeat_nothing(consumer):
    found = [next(consumer) for _ in range(3)]
    found += poll_until(consumer, 2, max_records=2)
    found += [next(consumer) for _ in range(3)]
    found += poll_until(consumer, 92)
    assert values(found) == list(range(100))


@pytest.mark.parametrize('options', [{}, {'interceptors': [Interceptor]}])
def test_the_position_is_behind_the_last_record_of_iteration(cluster, options):
    with consumer_of(cluster, **options) as made:
        made.assign([FIRST])
        for number in range(99):
            assert int(next(made).value) == number
            assert made.position(FIRST) == number + 1
        made.position(FIRST)
        assert values(poll_until(made, 1)) == [99]


def test_iteration_takes_no_more_at_once_than_max_poll_records_where_it_is_set(cluster):
    with consumer_of(cluster, max_poll_records=7) as made:
        made.assign([FIRST])
        for _ in range(99):
            next(made)
            assert made._modern._iterated_size <= 7


def test_who_has_nothing_to_read_is_told_instead_of_waiting_for_ever(cluster):
    with consumer_of(cluster) as made:
        with pytest.raises(AssertionError, match='nothing is to be read'):
            next(made)
        assert made.poll(timeout_ms=10) == {}
        made.assign([FIRST])
        assert int(next(made).value) == 0
    with consumer_of(cluster, consumer_timeout_ms=10) as made:
        assert list(made) == []


def test_a_seek_between_two_records_of_iteration_is_followed(consumer):
    next(consumer)
    consumer.seek(FIRST, 50)
    assert int(next(consumer).value) == 50


@pytest.mark.parametrize('count', [30, 100], ids=['in the middle', 'at the end'])
def test_iteration_doubles_nothing_when_what_was_fetched_ahead_is_dropped(consumer, count):
    """By a turn, as the log of a new leader is shorter: what was handed out stays handed out."""
    write_again = [int(next(consumer).value) for _ in range(count)]
    engine = consumer._engine
    with engine.lock:
        state = engine.subscription.assignment[FIRST]
        assert state.position < count
        state.rewind()
    rest = [int(next(consumer).value) for _ in range(100 - count)]
    assert write_again + rest == list(range(100))
    assert consumer.position(FIRST) == 100


def test_seek_to_end_without_names_takes_all_partitions_at_once(consumer, monkeypatch):
    """A topic that a pattern matches may be assigned in a turn meanwhile."""
    subscription, lock = consumer._engine.subscription, consumer._engine.lock
    meant, held = subscription.meant, []

    def look():
        held.append(lock._is_owned())
        return meant()

    monkeypatch.setattr(subscription, 'meant', look)
    consumer.seek_to_end()
    assert held == [True]


def test_what_is_paused_in_the_middle_of_iteration_comes_after_resume(consumer):
    consumer.assign([FIRST, SECOND])
    first = next(consumer)
    at = FIRST if first.partition == 0 else SECOND
    other = SECOND if at == FIRST else FIRST
    consumer.pause(at)
    rest = [next(consumer) for _ in range(100)]
    assert {record.partition for record in rest} == {other.partition}
    consumer.resume(at)
    assert consumer.position(at) == 1
    assert int(next(consumer).value) == 1


def test_wakeup_of_what_its_thread_closes_just_then_does_not_matter(consumer, monkeypatch):
    loop = consumer._engine.loop
    usual = loop.call_threadsafe

    def late(call):
        monkeypatch.undo()
        consumer.close()
        usual(call)

    monkeypatch.setattr(loop, 'call_threadsafe', late)
    consumer.wakeup()
    consumer.wakeup()


def test_wakeup_ends_a_poll_of_another_thread_and_loses_nothing(cluster):
    with consumer_of(cluster, 'empty') as made:
        made.poll(timeout_ms=100)
        threading.Timer(0.1, made.wakeup).start()
        began = time.monotonic()
        with pytest.raises(WakeupError):
            made.poll(timeout_ms=30000)
        assert time.monotonic() - began < 15
        made.wakeup()
        with pytest.raises(WakeupError):
            next(made)
        assert made.poll(timeout_ms=0) == {}


def test_a_second_thread_is_refused_while_one_polls(cluster):
    with consumer_of(cluster, 'empty') as made:
        thread = threading.Thread(target=lambda: made.poll(timeout_ms=3000))
        thread.start()
        try:
            deadline = time.monotonic() + 10
            while True:
                try:
                    made.pause()
                except IllegalStateError as error:
                    assert 'thread' in str(error)
                    break
                assert time.monotonic() < deadline
        finally:
            thread.join()
        assert made.poll(timeout_ms=0) == {}


@pytest.mark.parametrize(
    'arguments, error',
    [
        ({'timeout_ms': -1}, ValueError),
        ({'timeout_ms': 'long'}, TypeError),
        ({'max_records': 0}, ValueError),
        ({'max_records': 1.5}, TypeError),
        ({'max_records': True}, TypeError),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(consumer, arguments, error):
    with pytest.raises(error) as caught:
        consumer.poll(**arguments)
    assert isinstance(caught.value, AssertionError)


def test_a_closed_consumer_says_so(cluster):
    made = consumer_of(cluster, 't')
    made.close()
    made.close()
    with pytest.raises(IllegalStateError, match='closed'):
        made.poll()
    assert list(made) == []


def test_a_deserializer_that_fails_leaves_the_position_on_its_record(cluster):
    def strict(value):
        if value == b'5':
            raise ArithmeticError('five')
        return value

    with consumer_of(cluster, value_deserializer=strict) as made:
        made.assign([FIRST])
        assert values(poll_until(made, 5)) == list(range(5))
        for _ in range(2):
            with pytest.raises(ArithmeticError, match='five'):
                made.poll(timeout_ms=1000)
            assert made.position(FIRST) == 5
        made.seek(FIRST, 6)
        assert values(poll_until(made, 94)) == list(range(6, 100))


def test_an_error_that_is_about_no_record_is_raised_and_loses_none(consumer, monkeypatch):
    """The handler of a signal may have raised it: what was taken before it comes again."""
    fetcher = consumer._engine.fetcher
    take, calls = fetcher.next_fetch, []

    def fail_then():
        if calls:
            raise IllegalStateError('gone')
        fetch = take()
        if fetch is not None:
            calls.append(fetch)
        return fetch

    monkeypatch.setattr(fetcher, 'next_fetch', fail_then)
    with pytest.raises(IllegalStateError, match='gone'):
        poll_until(consumer, 1)
    monkeypatch.undo()
    assert values(poll_until(consumer, 100)) == list(range(100))


def test_interceptors_see_what_is_handed_out(cluster):
    class Doubling:
        def on_consume(self, records):
            return {
                partition: [each._replace(value=each.value * 2) for each in some]
                for partition, some in records.items()
            }

    with consumer_of(cluster, interceptors=[Doubling]) as made:
        made.assign([FIRST])
        assert poll_until(made, 3)[2].value == b'22'
        made.seek(FIRST, 3)
        assert next(made).value == b'33'


class Failing:
    """An interceptor that does with every second list what it was made for."""

    def __init__(self, failure):
        self.failure = failure
        self.calls = 0

    def on_consume(self, records):
        self.calls += 1
        if self.calls % 2:
            return self.failure(records)
        return records


def spoil(records):
    records.clear()
    raise ValueError('not today')


@pytest.mark.parametrize(
    'failure, error, text',
    [(spoil, ValueError, 'not today'), (len, TypeError, 'Failing.on_consume.. must return a dict')],
)
def test_what_an_interceptor_fails_at_is_not_consumed_and_comes_again(
    cluster, failure, error, text
):
    with consumer_of(cluster, interceptors=[Failing(failure)], consumer_timeout_ms=9000) as made:
        made.assign([FIRST])
        found = []
        while len(found) < 40:
            with pytest.raises(error, match=text):
                poll_until(made, 1, max_records=7)
            assert made.position(FIRST) == len(found)
            found += poll_until(made, 1, max_records=10)
            assert made.position(FIRST) == len(found)
        made._modern._interceptors[0].calls = 0
        with pytest.raises(error, match=text):
            next(made)
        assert made.position(FIRST) == len(found)
        found += [next(made) for _ in range(100 - len(found))]
        assert values(found) == list(range(100))


@pytest.mark.parametrize('way', [lambda made: poll_until(made, 1, max_records=5), next])
@pytest.mark.parametrize('figure', ['consumed', 'polled'])
def test_ctrl_c_at_the_end_of_a_poll_loses_no_record(consumer, monkeypatch, way, figure):
    """Positions have moved, or the first record was made, and the program has nothing yet."""
    figures = consumer._engine.figures

    def torn(*arguments):
        collector = consumer._modern._collector
        if collector.iterated is not None or figure == 'consumed' or collector.hand_out.is_open:
            raise KeyboardInterrupt
        return whole(*arguments)

    found, whole = poll_until(consumer, 5, max_records=5), getattr(figures, figure)
    monkeypatch.setattr(figures, figure, torn)
    with pytest.raises(KeyboardInterrupt):
        way(consumer)
    monkeypatch.setattr(figures, figure, whole)
    assert consumer.position(FIRST) == 5
    found += [next(consumer) for _ in range(3)]
    assert values(found + poll_until(consumer, 92)) == list(range(100))


class Torn:
    """Records of iteration; Ctrl-C comes when all that is left of them was taken."""

    def __init__(self, records):
        self.left, self.last = records.left, records.last
        self.iterator = self._iterated(records.iterator)

    def _iterated(self, records):
        yield from records
        raise KeyboardInterrupt


def test_ctrl_c_while_iteration_is_interrupted_loses_no_record(consumer):
    found = [next(consumer) for _ in range(5)]
    collector = consumer._modern._collector
    torn = Torn(collector.iterated.records)
    collector.iterated = collector.iterated._replace(records=torn)
    with pytest.raises(KeyboardInterrupt):
        consumer.pause(FIRST)
    assert consumer.position(FIRST) == 5
    assert values(found + poll_until(consumer, 95)) == list(range(100))


def test_ctrl_c_while_a_position_is_validated_loses_no_record(consumer, monkeypatch):
    """What was fetched ahead is dropped, and has to be asked for once more."""
    found = poll_until(consumer, 5, max_records=5)
    state = consumer._engine.subscription.state(FIRST)
    monkeypatch.setattr(consumer._modern, '_attend', lambda: None)

    def torn(most):
        assert state.doubt()
        raise KeyboardInterrupt

    monkeypatch.setattr(consumer._modern._collector, 'collect', torn)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll()
    monkeypatch.undo()
    assert values(found + poll_until(consumer, 95)) == list(range(100))


def test_ctrl_c_in_the_middle_of_a_poll_loses_no_record(consumer, monkeypatch):
    """It may come when a fetch has given its records, before anybody has them."""
    whole = CompletedFetch.take

    def torn(fetch, most=None):
        whole(fetch, most)
        raise KeyboardInterrupt

    found = poll_until(consumer, 5, max_records=5)
    monkeypatch.setattr(CompletedFetch, 'take', torn)
    with pytest.raises(KeyboardInterrupt):
        poll_until(consumer, 1, max_records=5)
    monkeypatch.setattr(CompletedFetch, 'take', whole)
    assert consumer.position(FIRST) == 5
    assert consumer._engine.fetcher._buffer.used == 0
    assert values(found + poll_until(consumer, 95)) == list(range(100))
