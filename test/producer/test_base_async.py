"""kafka.producer.base in asynchronous mode: the queue, the thread and its end."""

from __future__ import annotations

import gc
import logging
import math
import threading
import weakref

import pytest

from kafka.errors import AsyncProducerQueueFull, IllegalStateError
from kafka.producer import KeyedProducer, SimpleProducer, base
from kafka.producer.base import Producer
from kafka.structs import ProduceResponse, RetryOptions, TopicAndPartition
from test.fake_client import FakeClient
from test.leaks import collect_what_others_left

TARGET = TopicAndPartition(b'topic', 0)


@pytest.fixture
def idle(monkeypatch):
    """Let the thread do nothing, and return what it was started with."""
    started = []
    monkeypatch.setattr(base, '_send_upstream', lambda *args, **kw: started.append((args, kw)))
    return started


def asynchronous(client=None, **options):
    return Producer(client or FakeClient(), async_send=True, **options)


def drained(queue):
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_the_thread_runs_what_the_module_calls_send_upstream_with_a_copy_of_the_client(idle):
    client = FakeClient()
    options = {'async': True}
    producer = Producer(
        client,
        req_acks=-1,
        ack_timeout=5,
        codec=1,
        codec_compresslevel=2,
        batch_send_every_n=7,
        batch_send_every_t=8,
        async_retry_limit=9,
        async_retry_backoff_ms=10,
        async_retry_on_timeouts=False,
        async_log_messages_on_error=False,
        async_stop_timeout=11,
        **options,
    )
    producer.thread.join(5)
    assert client.called('copy') == [((), {})]
    assert idle == [
        (
            (producer.queue, client, 1, 8, 7, -1, 5, RetryOptions(9, 10, False))
            + (producer.thread_stop_event,),
            {
                'log_messages_on_error': False,
                'stop_timeout': 11,
                'codec_compresslevel': 2,
                'tally': producer.tally,
            },
        )
    ]
    assert producer.thread.daemon
    assert producer.async_send is getattr(producer, 'async') is True
    assert not hasattr(producer, 'sync_fail_on_error')
    producer.stop()


def test_messages_are_queued_one_by_one_and_nothing_is_returned(idle):
    producer = asynchronous()
    assert producer.send_messages('topic', 0, b'a', b'b') == []
    assert drained(producer.queue) == [(TARGET, b'a', None), (TARGET, b'b', None)]
    producer.stop()


def test_keys_are_queued_along(idle):
    producer = KeyedProducer(FakeClient(), async_send=True)
    producer.send_messages('topic', b'key', b'a', None)
    assert drained(producer.queue) == [(TARGET, b'a', b'key'), (TARGET, None, b'key')]
    producer.stop()


def test_wrong_messages_are_refused_before_anything_is_queued(idle):
    producer = asynchronous()
    with pytest.raises(TypeError):
        producer.send_messages('topic', 0, b'a', 'text')
    assert producer.queue.empty()
    producer.stop()


def test_a_wait_without_end_for_room_ends_when_there_is_room(idle):
    producer = asynchronous(async_queue_maxsize=1, async_queue_put_timeout=math.inf)
    producer.send_messages('topic', 0, b'a')
    taking = threading.Timer(0.02, producer.queue.get)
    taking.start()
    producer.send_messages('topic', 0, b'b')
    taking.join(10)
    assert [message for _, message, _ in drained(producer.queue)] == [b'b']


def test_a_batch_that_ends_by_number_alone():
    producer = asynchronous(batch_send_every_n=2, batch_send_every_t=math.inf)
    producer.send_messages('topic', 0, b'a')
    producer.thread.join(0.1)
    assert producer.thread.is_alive()
    producer.send_messages('topic', 0, b'b')
    producer.stop()
    assert (producer.tally.delivered, producer.tally.lost) == (2, 0)


@pytest.mark.parametrize('put_timeout', [0, 0.01])
def test_a_full_queue_reports_the_messages_from_the_failing_one_on(idle, put_timeout):
    producer = asynchronous(async_queue_maxsize=2, async_queue_put_timeout=put_timeout)
    with pytest.raises(AsyncProducerQueueFull) as caught:
        producer.send_messages(b'topic', 0, b'a', b'b', b'c')
    assert list(caught.value.failed_msgs) == [b'c']
    assert producer.queue.qsize() == 2
    producer.stop()


@pytest.mark.parametrize(
    'options',
    [{'batch_send_every_n': 0}, {'batch_send_every_t': 0}, {'async_queue_maxsize': -1}],
)
def test_sizes_below_their_minimum_are_refused_in_asynchronous_mode_only(options):
    with pytest.raises(AssertionError):
        asynchronous(**options)
    Producer(FakeClient(), **options)


@pytest.mark.parametrize(
    'option',
    [
        'ack_timeout',
        'async_queue_maxsize',
        'async_queue_put_timeout',
        'async_retry_backoff_ms',
        'async_retry_limit',
        'async_stop_timeout',
        'batch_send_every_n',
        'batch_send_every_t',
        'req_acks',
    ],
)
def test_an_option_of_a_wrong_type_is_named_before_the_thread_starts(option):
    """In the thread it would cost the messages that were queued meanwhile."""
    with pytest.raises(TypeError, match='%s must be ' % option):
        asynchronous(**{option: '5'})


@pytest.mark.parametrize('pause', [-1, float('nan')])
def test_a_pause_that_nobody_can_make_is_refused(pause):
    with pytest.raises(ValueError, match='async_retry_backoff_ms'):
        asynchronous(async_retry_backoff_ms=pause)


def test_stop_sends_what_is_queued_first():
    client = FakeClient()
    producer = SimpleProducer(client, async_send=True, random_start=False)
    thread = producer.thread
    for number in range(45):
        producer.send_messages('topic', b'%d' % number)
    producer.stop()
    assert not thread.is_alive()
    assert producer.stopped
    values = [
        message.value
        for args, _ in client.called('send_produce_request')
        for request in args[0]
        for message in request.messages
    ]
    assert values == [b'%d' % number for number in range(45)]
    assert client.calls[-1][0] == 'close'


def test_stop_waits_in_steps(idle):
    """A signal that comes right before a wait without end would be seen only behind it."""
    waited = []

    class Ended(threading.Event):
        def wait(self, timeout=None):
            waited.append(timeout)
            return len(waited) == 3

    producer = asynchronous()
    producer._ended = Ended()
    producer.stop()
    assert waited == [base.STOP_WAIT_SECONDS] * 3
    assert producer.stopped


def test_stopping_twice_is_a_warning(idle, caplog):
    producer = asynchronous()
    producer.stop()
    assert not caplog.records
    producer.stop()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_timeout_of_stop_is_ignored_with_a_warning(idle, caplog):
    producer = asynchronous()
    producer.stop(timeout=0.001)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert producer.stopped


def test_stop_does_not_wait_for_room_in_a_full_queue(idle):
    producer = asynchronous(async_queue_maxsize=1)
    producer.send_messages(b'topic', 0, b'a')
    producer.stop()
    assert producer.stopped


def test_a_stopped_producer_takes_no_more_messages(idle):
    producer = asynchronous()
    producer.stop()
    with pytest.raises(IllegalStateError):
        producer.send_messages(b'topic', 0, b'a')


def test_the_clean_up_function_stops_what_is_not_stopped(idle, monkeypatch):
    producer = asynchronous()
    calls = []
    with monkeypatch.context() as patch:
        patch.setattr(Producer, 'stop', lambda self: calls.append(self))
        producer._cleanup_func(producer)
        assert calls == [producer]
        producer.stopped = True
        producer._cleanup_func(producer)
        assert calls == [producer]
    producer.stopped = False
    producer.stop()
    assert not hasattr(Producer(FakeClient()), '_cleanup_func')


def test_interpreter_exit_stops_and_stop_drops_the_hook(idle, exit_hooks):
    producer = asynchronous()
    exit_hooks[0]()
    assert producer.stopped
    assert exit_hooks == []


def test_collecting_a_producer_stops_it():
    client = FakeClient()
    producer = asynchronous(client)
    thread = producer.thread
    producer.send_messages(b'topic', 0, b'a')
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None
    assert not thread.is_alive()
    assert len(client.called('send_produce_request')) == 1


def test_collecting_a_synchronous_producer_is_silent(caplog):
    collect_what_others_left()
    caplog.clear()
    Producer(FakeClient())
    gc.collect()
    assert not caplog.records


def test_a_producer_stopped_by_its_own_thread_does_not_wait_for_itself(monkeypatch):
    done = threading.Event()
    producers = []

    def stop_from_inside(*args, **kwargs):
        done.wait(5)
        producers[0].stop()

    monkeypatch.setattr(base, '_send_upstream', stop_from_inside)
    producers.append(asynchronous())
    done.set()
    producers[0].thread.join(5)
    assert producers[0].stopped


def test_repr_shows_the_flag(idle):
    producer = SimpleProducer(FakeClient(), async_send=True)
    assert repr(producer) == '<SimpleProducer batch=True>'
    producer.stop()


# ---------------------------------------------------------------- what became of the messages


def test_a_program_can_read_what_became_of_its_messages():
    client = FakeClient()
    client.answers['send_produce_request'] = [
        lambda payloads, **kw: [ProduceResponse(p.topic, p.partition, 10, -1) for p in payloads]
    ]
    producer = asynchronous(client, batch_send_every_n=2)
    for number in range(5):
        producer.send_messages(b'topic', 0, b'%d' % number)
    producer.stop()
    assert (producer.tally.delivered, producer.tally.resent, producer.tally.lost) == (3, 0, 2)


def test_a_message_that_comes_when_all_is_over_is_refused_and_counted(idle, caplog):
    """The program looked whether the producer was stopped before another thread stopped it."""
    producer = asynchronous()
    producer.queue.put((TARGET, b'left behind', None))
    producer.tally.ended_with = 1
    with pytest.raises(IllegalStateError):
        producer.send_messages(b'topic', 0, b'a', b'b')
    assert producer.tally.lost == 2
    assert '2 messages' in caplog.text
    assert drained(producer.queue) == [(TARGET, b'left behind', None)]
    producer.stop()


def test_a_message_that_was_sent_before_all_was_over_is_not_refused(idle):
    """Another thread stops the producer behind it: who is told that it failed sends it again."""
    producer = asynchronous()
    put = producer.queue.put_all

    def put_and_end(items):
        count = put(items)
        drained(producer.queue)
        producer.tally.ended_with = 0
        return count

    producer.queue.put_all = put_and_end
    producer.send_messages(b'topic', 0, b'a')
    assert producer.tally.lost == 0
    producer.stop()


def test_a_producer_whose_thread_died_takes_no_more_messages(monkeypatch):
    client = FakeClient()
    client.answers['send_produce_request'] = [lambda payloads, **kw: 5]  # no list of answers
    died = []
    monkeypatch.setattr(threading, 'excepthook', lambda args: died.append(args.exc_type))
    producer = asynchronous(client, batch_send_every_n=1)
    producer.send_messages(b'topic', 0, b'a')
    producer.thread.join(5)
    assert died == [TypeError]
    with pytest.raises(IllegalStateError):
        producer.send_messages(b'topic', 0, b'b')
    assert producer.tally.lost == 2
    producer.stop()


def test_an_exit_that_is_interrupted_says_what_is_lost(idle, monkeypatch, caplog):
    producer = asynchronous()
    producer.send_messages(b'topic', 0, b'a', b'b', b'c')

    def interrupt(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Producer, 'stop', interrupt)
        with pytest.raises(KeyboardInterrupt):
            producer._exit_hook()
    assert 'about 3 messages are lost' in caplog.text
    producer.stop()


# ---------------------------------------------------------------- other processes


def fork(monkeypatch):
    """Let the producer believe that it is in a child process from now on."""
    monkeypatch.setattr('kafka.producer.base.os.getpid', lambda: -1)


def test_a_forked_process_sends_its_messages_by_a_thread_of_its_own(idle, monkeypatch):
    client = FakeClient()
    producer = asynchronous(client)
    producer.send_messages(b'topic', 0, b'of the parent')
    queue, thread = producer.queue, producer.thread
    fork(monkeypatch)
    producer.send_messages(b'topic', 0, b'of the child')
    assert producer.thread is not thread
    assert drained(producer.queue) == [(TARGET, b'of the child', None)]
    assert drained(queue) == [(TARGET, b'of the parent', None)]
    assert len(client.called('copy')) == 2
    producer.stop()


def test_a_forked_process_that_sent_nothing_has_nothing_to_stop(idle, monkeypatch):
    producer = asynchronous()
    event = producer.thread_stop_event
    with monkeypatch.context() as patch:
        fork(patch)
        producer.stop()
        assert producer.stopped
        assert not event.is_set()
        with pytest.raises(IllegalStateError):
            producer.send_messages(b'topic', 0, b'a')
    producer.stopped = False
    producer.thread_stop_event = event
    producer.stop()


def test_a_child_of_multiprocessing_stops_its_producer_too(idle, monkeypatch):
    """One that was forked ends without a look at atexit's list."""
    hooks = []
    monkeypatch.setattr('multiprocessing.process.parent_process', lambda: 'somebody')
    monkeypatch.setattr('multiprocessing.util.Finalize', lambda *args, **kw: hooks.append(args[1]))
    producer = asynchronous()
    hooks[0]()
    assert producer.stopped
