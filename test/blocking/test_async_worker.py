"""kafka.blocking.async_worker: batches, retries, and the end of an asynchronous producer."""

from __future__ import annotations

import logging
import threading
from queue import Queue

import pytest

from kafka.blocking import async_worker as upstream
from kafka.blocking.async_worker import Tally
from kafka.errors import (
    FailedPayloadsError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka.producer.base import STOP_ASYNC_PRODUCER, _send_upstream
from kafka.protocol import CODEC_GZIP, CODEC_NONE, KafkaProtocol
from kafka.structs import Message, ProduceResponse, RetryOptions, TopicAndPartition
from test.fake_client import FakeClient

RAN_OUT = (STOP_ASYNC_PRODUCER, None, None)
NOT_LEADER, TIMED_OUT, TOO_LARGE, UNLISTED = 6, 7, 10, 9999
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_ALLOWED, STORAGE_ERROR = 19, 20, 29, 56


@pytest.fixture
def slept(monkeypatch):
    """Let pauses take no time, and return how long they would have been."""
    pauses = []

    class NoTime:
        monotonic = staticmethod(upstream.time.monotonic)
        sleep = staticmethod(pauses.append)

    monkeypatch.setattr(upstream, 'time', NoTime)
    return pauses


def items(count, partitions=1):
    return [(TopicAndPartition(b'test', n % partitions), b'msg %d' % n, None) for n in range(count)]


def run(client, queued, limit=3, size=3, codec=CODEC_NONE, stop=RAN_OUT, **options):
    """Work through what is queued, in this thread."""
    queue = Queue()
    for item in [*queued, stop]:
        queue.put(item)
    retry = RetryOptions(limit, 50, options.pop('retry_on_timeouts', False))
    event = options.pop('event', None) or threading.Event()
    options.setdefault('tally', Tally())
    _send_upstream(queue, client, codec, 0.3, size, 1, 1000, retry, event, **options)
    return queue


def answered(error):
    """Return an answer that gives every request this code."""
    return lambda payloads, **kw: [
        ProduceResponse(p.topic, p.partition, error, -1) for p in payloads
    ]


def all_failed(payloads, **kwargs):
    return [FailedPayloadsError(p) for p in payloads]


def sent(client):
    """Return what each call sent: [[(partition, values)]]."""
    return [
        [(p.partition, [m.value for m in p.messages]) for p in args[0]]
        for args, _ in client.called('send_produce_request')
    ]


# ---------------------------------------------------------------- the counts 0.9.5 is known for


def test_ten_messages_of_one_partition_in_threes_are_four_sends(slept):
    client = FakeClient()
    assert run(client, items(10)).empty()
    assert len(sent(client)) == 4


def test_a_first_send_that_fails_wholly_makes_it_five(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed]
    assert run(client, items(10, partitions=10)).empty()
    assert len(sent(client)) == 5


def test_three_retries_of_four_failing_batches_are_sixteen_sends(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 100
    assert run(client, items(10, partitions=10), limit=3).empty()
    assert len(sent(client)) == 16


def test_a_first_send_answered_by_a_moved_leader_makes_it_five(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(NOT_LEADER)]
    assert run(client, items(10, partitions=10)).empty()
    assert len(sent(client)) == 5


# ---------------------------------------------------------------- batches


def test_one_request_per_partition_in_queue_order_with_the_options(slept):
    client = FakeClient()
    queued = [
        (TopicAndPartition(b'a', 1), b'1', b'k1'),
        (TopicAndPartition(b'b', 0), b'2', None),
        (TopicAndPartition(b'a', 1), b'3', b'k3'),
    ]
    run(client, queued)
    ((args, kwargs),) = client.called('send_produce_request')
    assert kwargs == {'acks': 1, 'timeout': 1000, 'fail_on_error': False}
    assert args[0] == [
        (b'a', 1, (Message(0, 0, b'k1', b'1'), Message(0, 0, b'k3', b'3'))),
        (b'b', 0, (Message(0, 0, None, b'2'),)),
    ]
    assert all(isinstance(request.messages, tuple) for request in args[0])


def test_a_codec_compresses_each_request(slept):
    client = FakeClient()
    run(client, items(2), codec=CODEC_GZIP, codec_compresslevel=1)
    (message,) = client.called('send_produce_request')[0][0][0][0].messages
    assert message.attributes == CODEC_GZIP
    inner = KafkaProtocol._decode_message(KafkaProtocol._encode_message(message), 0)
    assert [m.value for _, m in inner] == [b'msg 0', b'msg 1']


def test_messages_that_cannot_be_compressed_do_not_stop_the_others(slept, caplog):
    client = FakeClient()
    queued = items(3, partitions=3)
    queued[1] = (queued[1][0], object(), None)
    run(client, queued, codec=CODEC_GZIP)
    assert [partition for partition, _ in sent(client)[0]] == [0, 2]
    assert 'are lost' in caplog.text


def test_a_batch_ends_when_its_time_is_over():
    client = FakeClient()
    queue = Queue()
    for item in items(2):
        queue.put(item)
    event = threading.Event()

    def then_stop(payloads, **kwargs):
        queue.put(RAN_OUT)
        return []

    client.answers['send_produce_request'] = [then_stop]
    retry = RetryOptions(0, 1, False)
    _send_upstream(queue, client, CODEC_NONE, 0.01, 100, 1, 1000, retry, event)
    assert sent(client) == [[(0, [b'msg 0', b'msg 1'])]]


def test_what_is_queued_behind_the_mark_is_sent_too(slept):
    client = FakeClient()
    run(client, [RAN_OUT, *items(2)])
    assert sent(client) == [[(0, [b'msg 0', b'msg 1'])]]


# ---------------------------------------------------------------- connecting


def test_the_client_connects_first_and_is_closed_at_last(slept):
    client = FakeClient()
    run(client, items(1))
    names = [name for name, _, _ in client.calls]
    assert names == ['reinit', 'send_produce_request', 'close']


def test_a_client_that_cannot_be_closed_is_not(slept):
    class Bare:
        def __init__(self):
            self.sent = []

        def reinit(self):
            pass

        def load_metadata_for_topics(self):
            pass

        def send_produce_request(self, requests, **options):
            self.sent += requests
            return []

    client = Bare()
    run(client, items(1))
    assert len(client.sent) == 1


def test_connecting_is_tried_until_it_works(slept):
    client = FakeClient()
    client.answers['reinit'] = [KafkaUnavailableError(), OSError()]
    client.answers['load_metadata_for_topics'] = [KafkaUnavailableError()] * 2
    run(client, items(1))
    assert len(client.called('reinit')) == 3
    assert len(sent(client)) == 1


def test_a_host_that_was_not_connected_before_will_do_when_the_known_ones_are_gone(slept):
    client = FakeClient()
    client.answers['reinit'] = [KafkaUnavailableError()] * 9
    run(client, items(1))
    assert [name for name, _, _ in client.calls[:3]] == [
        'reinit',
        'load_metadata_for_topics',
        'send_produce_request',
    ]


def test_connecting_ends_with_a_stop_and_what_is_queued_is_still_sent(slept):
    client = FakeClient()
    event = threading.Event()

    def refuse():
        event.set()
        raise KafkaUnavailableError()

    client.answers['reinit'] = [refuse] * 9
    client.answers['load_metadata_for_topics'] = [KafkaUnavailableError()] * 9
    run(client, items(1), event=event)
    assert len(client.called('reinit')) == 1
    assert len(sent(client)) == 1


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    'error, sends, pauses, refreshes',
    [
        (3, 2, 0, 1),
        (5, 2, 1, 1),
        (NOT_LEADER, 2, 0, 1),
        (TIMED_OUT, 1, 0, 0),
        (TOO_LARGE, 1, 0, 0),
        (NOT_ENOUGH_REPLICAS, 2, 1, 0),
        (NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1, 0, 0),
        (STORAGE_ERROR, 2, 1, 1),
        (NOT_ALLOWED, 1, 0, 0),
        (UNLISTED, 1, 0, 0),
        (-1, 1, 0, 0),
    ],
)
def test_what_each_error_leads_to(slept, error, sends, pauses, refreshes):
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(error)]
    run(client, items(1))
    assert len(sent(client)) == sends
    assert slept == [0.05] * pauses
    assert client.called('load_metadata_for_topics') == [((), {})] * refreshes


def test_failed_payloads_pause_and_do_not_refresh(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed]
    run(client, items(1))
    assert slept == [0.05]
    assert client.called('load_metadata_for_topics') == []


@pytest.mark.parametrize('error', [TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_time_outs_are_retried_where_that_was_asked_for(slept, error):
    """After either of the two the leader has the messages, and perhaps nobody else."""
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(error)]
    run(client, items(1), retry_on_timeouts=True)
    assert len(sent(client)) == 2


def test_what_failed_again_waits_whatever_the_error(slept):
    """Three retries within some milliseconds would all meet the election of the same leader."""
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(NOT_LEADER)] * 3
    run(client, items(1))
    assert slept == [0.05] * 2


def test_only_what_failed_is_sent_again_before_anything_new(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [
        lambda payloads, **kw: [
            ProduceResponse(b'test', 0, 0, 0),
            FailedPayloadsError(payloads[1]),
            ProduceResponse(b'test', 2, NOT_LEADER, -1),
        ]
    ]
    run(client, items(4, partitions=3))
    assert sent(client) == [
        [(0, [b'msg 0']), (1, [b'msg 1']), (2, [b'msg 2'])],
        [(1, [b'msg 1']), (2, [b'msg 2'])],
        [(0, [b'msg 3'])],
    ]


def test_a_failed_payload_is_told_by_its_payload_and_without_one_by_its_place(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [
        lambda payloads, **kw: [FailedPayloadsError(payloads[1])],
        lambda payloads, **kw: [FailedPayloadsError('no request')],
    ]
    run(client, items(2, partitions=2))
    assert [[p for p, _ in call] for call in sent(client)] == [[0, 1], [1], [1]]


def test_a_request_is_sent_at_most_once_more_than_the_limit(slept, caplog):
    for limit in (0, 1, 2):
        client = FakeClient()
        client.answers['send_produce_request'] = [all_failed] * 50
        run(client, items(1), limit=limit)
        assert len(sent(client)) == 1 + limit
    assert 'lost after 2 retries' in caplog.text


def test_without_a_limit_it_goes_on_until_it_works(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 50
    run(client, items(1), limit=None)
    assert len(sent(client)) == 51


def test_no_answer_means_nothing_to_retry(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [lambda payloads, **kw: iter(())]
    run(client, items(1))
    assert len(sent(client)) == 1


def test_metadata_that_cannot_be_refreshed_is_only_logged(slept, caplog):
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(NOT_LEADER)]
    client.answers['load_metadata_for_topics'] = [KafkaUnavailableError('none left')]
    run(client, items(1))
    assert len(sent(client)) == 2
    assert 'none left' in caplog.text


def test_a_call_that_raises_for_one_partition_is_repeated_one_by_one(slept):
    client = FakeClient()

    def no_leader_for_1(payloads, **kwargs):
        if any(p.partition == 1 for p in payloads):
            raise LeaderNotAvailableError('topic')

    client.answers['send_produce_request'] = [no_leader_for_1] * 4
    run(client, items(3, partitions=3))
    assert [[p for p, _ in call] for call in sent(client)] == [[0, 1, 2], [0], [1], [2], [1]]


def test_a_request_that_cannot_be_encoded_is_lost_alone(slept, caplog):
    client = FakeClient()

    def refuse_1(payloads, **kwargs):
        if any(p.partition == 1 for p in payloads):
            raise TypeError('no bytes')

    client.answers['send_produce_request'] = [refuse_1] * 4
    run(client, items(2, partitions=2))
    assert [[p for p, _ in call] for call in sent(client)] == [[0, 1], [0], [1]]
    assert 'lost' in caplog.text


# ---------------------------------------------------------------- the end


def test_giving_up_after_the_stop_timeout_logs_what_is_lost(slept, caplog):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 1000
    event = threading.Event()
    event.set()
    queue = run(client, items(6), limit=None, stop_timeout=0, event=event)
    assert queue.qsize() == 4  # the mark is one
    assert '1 requests and 3 queued messages are lost, 6 messages in all' in caplog.text
    assert client.called('close') == [((), {})]


def test_a_topic_that_never_comes_does_not_outlive_the_stop_timeout(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [UnknownTopicOrPartitionError('gone')] * 10**5
    run(client, items(1), limit=None, stop_timeout=0.01)


@pytest.mark.parametrize('shown', [True, False])
def test_failed_messages_are_logged_themselves_or_by_a_hash(slept, caplog, shown):
    caplog.set_level(logging.DEBUG)
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 9
    run(client, items(1), limit=1, log_messages_on_error=shown)
    assert ('msg 0' in caplog.text) is shown
    request = client.called('send_produce_request')[0][0][0][0]
    assert (str(hash(request.messages)) in caplog.text) is not shown


# ---------------------------------------------------------------- counting


def counted(client, queued, **options):
    """Return (delivered, resent, lost) of a run."""
    tally = Tally()
    run(client, queued, tally=tally, **options)
    return tally.delivered, tally.resent, tally.lost


def test_messages_are_counted_when_they_are_delivered(slept):
    assert counted(FakeClient(), items(7, partitions=2)) == (7, 0, 0)
    assert counted(FakeClient(), items(7, partitions=2), codec=CODEC_GZIP) == (7, 0, 0)


def test_messages_that_are_sent_again_are_counted_each_time(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 2
    assert counted(client, items(4)) == (4, 6, 0)


def test_messages_that_are_refused_are_counted_as_lost(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [answered(TOO_LARGE)]
    assert counted(client, items(4)) == (1, 0, 3)


def test_messages_that_failed_too_often_are_counted_as_lost(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 2
    assert counted(client, items(4), limit=1) == (1, 3, 3)


def test_messages_that_cannot_be_compressed_are_counted_as_lost(slept):
    queued = items(3, partitions=3)
    queued[1] = (queued[1][0], object(), None)
    assert counted(FakeClient(), queued, codec=CODEC_GZIP) == (2, 0, 1)


def test_messages_that_are_left_at_the_end_are_counted_as_lost(slept):
    client = FakeClient()
    client.answers['send_produce_request'] = [all_failed] * 1000
    event = threading.Event()
    event.set()
    assert counted(client, items(6), limit=None, stop_timeout=0, event=event) == (0, 3, 6)


def test_messages_are_counted_as_lost_when_the_thread_breaks_down(slept, caplog):
    client, tally = FakeClient(), Tally()
    client.answers['send_produce_request'] = [lambda payloads, **kw: 5]  # no list of answers
    with pytest.raises(TypeError):
        run(client, items(5), tally=tally)
    assert (tally.delivered, tally.lost) == (0, 5)
    assert client.called('close') == [((), {})]
    assert '5 messages in all' in caplog.text


def test_a_tally_shows_its_numbers():
    tally = Tally()
    tally.lost += 2
    assert repr(tally) == '<Tally delivered=0 resent=0 lost=2>'
