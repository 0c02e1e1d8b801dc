"""What programs and clusters do to a KafkaProducer that is none of its own doing."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest

from kafka import KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaTimeoutError
from kafka.future import Future
from kafka.net.loop.loop import Loop
from kafka.testing import Cluster
from kafka.testing.faults import Throttle
from test.raising import Interruption


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


# --- callbacks ----------------------------------------------------------------------------------


def failed_check():
    pytest.fail('as a test does in a callback')


@pytest.mark.parametrize('ends', [sys.exit, lambda: 1 / 0, failed_check])
def test_a_callback_that_raises_keeps_nothing_else_from_its_end(cluster, ends, monkeypatch, caplog):
    monkeypatch.setattr(Future, 'error_on_callbacks', True)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=100_000) as producer:
        first, second = producer.send('t', b'1'), producer.send('t', b'2')
        told = threading.Event()
        first.add_callback(lambda metadata: ends())
        second.add_callback(lambda metadata: told.set())
        producer.flush(60)
        assert told.wait(60) and first.succeeded()
        assert producer.send('t', b'3').add_callback(lambda metadata: None) is not None
        producer.flush(60)
        assert producer._accumulator.is_empty() and not producer._accumulator.memory.used
    assert 'callback' in caplog.text


# --- the beginning ------------------------------------------------------------------------------


def test_transactions_find_the_cluster_when_nothing_else_did(cluster):
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, api_version=(2, 8), transactional_id='x'
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send('t', b'v')
        producer.commit_transaction()
        assert future.succeeded()


# --- what cannot be waited for ------------------------------------------------------------------


@pytest.mark.parametrize('is_closed', [False, True])
@pytest.mark.parametrize('verb', ['flush', 'close'])
@pytest.mark.parametrize('seconds', [-1, -0.001, float('-inf')])
def test_no_verb_waits_for_less_than_nothing(cluster, verb, seconds, is_closed):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        if is_closed:
            producer.close()
        with pytest.raises(ValueError, match='timeout must be at least 0 seconds') as caught:
            getattr(producer, verb)(seconds)
        assert isinstance(caught.value, AssertionError)
        assert producer._closed is is_closed


def test_no_option_is_deprecated_as_in_3_0():
    assert KafkaProducer.DEPRECATED_CONFIGS == ()


# --- what programs bring along ------------------------------------------------------------------


def sent_by(cluster, **options):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **options) as producer:
        return producer.send('t', b'v').get(60)


@pytest.mark.parametrize('chosen', [None, '0', 99, -1, 0.0, b'0'])
def test_a_partitioner_that_returns_no_partition_is_named(cluster, chosen):
    with pytest.raises(ValueError, match='the partitioner returned .* not one of its'):
        sent_by(cluster, partitioner=lambda key, all_partitions, available: chosen)


def test_what_a_partitioner_returns_is_shown_in_part(cluster):
    with pytest.raises(ValueError, match='the partitioner returned ') as caught:
        sent_by(cluster, partitioner=lambda key, all_partitions, available: 'payload' * 1000)
    assert len(str(caught.value)) < 200 and str(caught.value).count('payload') <= 4


def test_a_partitioner_may_return_integers_of_any_type(cluster):
    class Zero:
        def __index__(self):
            return 0

    assert sent_by(cluster, partitioner=lambda key, partitions, some: Zero()).partition == 0


def test_text_is_no_partitioner():
    with pytest.raises(KafkaConfigurationError, match='partitioner'):
        KafkaProducer(bootstrap_servers='127.0.0.1:1', api_version=(2, 8), partitioner='murmur2')


@pytest.mark.parametrize('returned', [None, 5, 'text', ('t', b'v')])
def test_an_interceptor_that_returns_no_record_is_named(cluster, returned):
    class Strange:
        def on_send(self, record):
            return returned

    with pytest.raises(TypeError, match='Strange.on_send.. must return a record') as caught:
        sent_by(cluster, interceptors=[Strange()])
    assert str(caught.value).endswith('not %s' % type(returned).__name__)


def test_an_interceptor_that_fails_does_not_hide_why_a_record_was_refused(cluster, caplog):
    class Failing:
        def on_acknowledgement(self, metadata, exception):
            raise ZeroDivisionError('mine')

    with KafkaProducer(bootstrap_servers=cluster.bootstrap, interceptors=[Failing()]) as producer:
        with pytest.raises(ValueError, match='topic'):
            producer.send('..', b'v')
        assert producer.send('t', b'v').get(60).topic == 't'
    assert caplog.text.count('ZeroDivisionError') >= 2


@pytest.mark.parametrize('values', ['text', b'bytes', None, {b'a': 1}, 5])
def test_what_is_no_list_of_values(cluster, values):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for _ in range(2):
            with pytest.raises(TypeError, match='values must be a list, not'):
                producer.send_many('t', values)
            producer.send('t', b'v').get(60)  # from here on there is a quick way


def test_many_from_a_generator_and_headers_that_are_no_text(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for base in (0, 3):
            many = producer.send_many('t', (b'%d' % n for n in range(3)))
            assert [metadata.offset for metadata in many.get(60)] == [base, base + 1, base + 2]
        with pytest.raises(ValueError, match='name of a header'):
            producer.send('t', b'v', headers=[('\ud800', b'x')])
        assert producer.send('t', b'v', None, 0, 0).get(60).timestamp == 0


def test_who_closes_waits_for_the_callbacks_that_run_in_another_thread(cluster):
    told, has_begun, may_go_on = [], threading.Event(), threading.Event()

    def wait_and_tell(metadata):
        has_begun.set()
        may_go_on.wait(30)
        told.append((metadata.offset, producer._accumulator.has_told_all()))

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=100_000)
    for _ in range(3):
        producer.send('t', b'v').add_callback(wait_and_tell)
    sender = threading.Thread(target=producer.flush)
    sender.start()
    has_begun.wait(30)
    threading.Timer(0.2, may_go_on.set).start()
    producer.close()
    # close() waits for that; what is left then has five seconds.
    assert told == [(0, False), (1, False), (2, False)]
    sender.join(30)


def test_who_closes_waits_for_no_record_that_failed_and_cannot_be_sent(cluster):
    """The broker wants to be left alone for weeks: a request with it waits for that time."""
    cluster.faults.add(Throttle(2**31 - 1), 'Produce')
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap, delivery_timeout_ms=200, request_timeout_ms=100
    )
    assert producer.send('t', b'v').get(30).offset == 0
    late = producer.send('t', b'w')
    with pytest.raises(KafkaTimeoutError, match='delivery_timeout_ms'):
        late.get(30)
    began = time.monotonic()
    producer.close()  # which may take delivery_timeout_ms and 5 seconds
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    'call',
    [
        lambda producer: producer.init_transactions(),
        lambda producer: producer.begin_transaction(),
        lambda producer: producer.commit_transaction(),
        lambda producer: producer.abort_transaction(),
        lambda producer: producer.prepare_transaction(),
        lambda producer: producer.partitions_for('new'),
    ],
)
def test_a_call_that_ends_before_the_loop_has_it_shows_no_warning(cluster, call, monkeypatch):
    """pytest would fail: a coroutine that was never awaited warns of it."""

    def end(*arguments):
        raise Interruption

    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        with monkeypatch.context() as patched:
            patched.setattr(Loop, 'run', end)
            with pytest.raises(Interruption):
                call(producer)
            gc.collect()
