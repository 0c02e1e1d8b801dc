"""A record that is alone goes the short way, and is stored as any other; whatever is not, does not.

On embedded brokers over sockets. All kinds of trouble meet it in test/simulation, where every
second program without transactions waits for each record.
"""

from __future__ import annotations

import threading
import time

import pytest

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.net.loop.loop import NAP, Loop
from kafka.net.node_connection import NodeConnection
from kafka.producer.in_flight_batches import InFlightBatches
from kafka.producer.single_batch_path import SingleBatchAnswer
from kafka.testing import Cluster
from kafka.testing.faults import DropRequest, DropResponse, Error, Hang
from test.raising import in_worker, needs_attempts
from test.stored import stored, stored_records


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 3, 'one': 1}) as running:
        yield running


@pytest.fixture
def ways(monkeypatch):
    """What went the short way: 'sent', and how it was answered, 'take', 'wake' or 'fail'.

    The thread in the background looks for nothing meanwhile, or it might be quicker than get().
    """
    noted = []
    monkeypatch.setattr(Loop, '_has_work', lambda loop, now: False)

    def noting(owner, name, word):
        original = getattr(owner, name)

        def note(*arguments):
            noted.append(word)
            return original(*arguments)

        monkeypatch.setattr(owner, name, note)

    noting(NodeConnection, 'submit_made', 'sent')
    noting(InFlightBatches, 'on_stored', 'take')
    for name in ('wake', 'fail'):
        noting(SingleBatchAnswer, name, name)
    return noted


SHORT = ['sent', 'take']
#: Seconds for what takes none.
BUSY = 30
KINDS = {
    'plain': {'acks': 1, 'enable_idempotence': False},
    'all': {'acks': 'all', 'enable_idempotence': False},
    'idempotent': {},
    'one': {'acks': 1, 'enable_idempotence': False, 'max_in_flight_requests_per_connection': 1},
    'gzip': {'compression_type': 'gzip'},
    'unmeasured': {'metrics_enabled': False},
}


def warm(producer, topic='one', count=2):
    """Send the records before: the first of a connection goes the way of all."""
    for _ in range(count):
        producer.send(topic, b'warm').get(30)


def until(condition):
    """Tell whether something comes to be."""
    end = time.monotonic() + BUSY
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize('kind', KINDS)
def test_a_record_that_is_waited_for_goes_the_short_way(make, cluster, ways, kind):
    producer = make(**KINDS[kind])
    warm(producer)
    del ways[:]
    futures = [producer.send('one', b'%d' % n, key=b'k%d' % n) for n in range(1)]
    for n in range(1, 6):
        futures[-1].get(30)
        futures.append(producer.send('one', b'%d' % n, key=b'k%d' % n))
    futures[-1].get(30)
    assert ways == SHORT * 6
    assert [future.value.offset for future in futures] == list(range(2, 8))
    assert futures[0].value.topic_partition == TopicPartition('one', 0)
    records = stored_records(cluster, 'one')[2:]
    assert [(r.key, r.value) for r in records] == [(b'k%d' % n, b'%d' % n) for n in range(6)]
    assert [r.timestamp for r in records] == [future.value.timestamp for future in futures]


@pytest.mark.parametrize(
    'where',
    [pytest.param(in_worker, marks=needs_attempts, id='worker'), lambda call: call()],
)
def test_a_flush_of_one_batch_goes_the_short_way(make, ways, where):
    producer = make()
    warm(producer)
    del ways[:]
    futures = [producer.send('one', b'%d' % n) for n in range(9)]
    where(lambda: producer.flush(30))
    assert ways == SHORT
    assert [future.value.offset for future in futures] == list(range(2, 11))


@pytest.fixture
def slept(monkeypatch):
    """What came out of each sleep: whether the answer was there and nothing else."""
    noted, submit = [], NodeConnection.submit_made

    def note(*arguments):
        found = submit(*arguments)
        noted.append(found is not None)
        return found

    monkeypatch.setattr(NodeConnection, 'submit_made', note)
    return noted


@pytest.mark.parametrize('kind', KINDS)
def test_who_waits_sleeps_until_the_answer_is_there(make, cluster, slept, kind):
    producer = make(**KINDS[kind])
    warm(producer)
    del slept[:]
    offsets = [producer.send('one', b'%d' % n).get(30).offset for n in range(50)]
    assert offsets == list(range(2, 52))
    assert stored(cluster, 'one')[2:] == [b'%d' % n for n in range(50)]
    # The thread in the background may be quicker than get() now and then.
    assert slept.count(True) > 30
    assert producer._engine.sender.in_flight == 0 and len(producer) == 0


def test_who_waits_sleeps_over_tls_too(slept):
    with Cluster(version='4.4', topics={'one': 1}, tls=True) as running:
        options = {'security_protocol': 'SSL', 'ssl_cafile': running.ca_file}
        with KafkaProducer(bootstrap_servers=running.bootstrap, **options) as producer:
            assert [producer.send('one', b'v').get(30).offset for _ in range(50)] == [*range(50)]
    assert slept.count(True) > 30


def test_the_background_rests_while_each_record_is_waited_for(make, cluster, monkeypatch):
    """And sends what nobody waits for all the same, soon."""
    rests, rest = [], Loop._background_sleep
    monkeypatch.setattr(
        Loop, '_background_sleep', lambda loop, now: (rests.append(now), rest(loop, now))
    )
    producer = make()
    warm(producer, count=50)
    del rests[:]
    began = time.monotonic()
    for n in range(300):
        producer.send('one', b'%d' % n).get(30)
    seconds = time.monotonic() - began
    assert len(rests) < 0.5 * seconds / NAP, 'it wakes up as for records nobody waits for'
    future = producer.send('one', b'last')
    assert until(lambda: future.is_done)


def test_headers_and_a_value_of_none_go_it_too(make, cluster, ways):
    producer = make()
    warm(producer)
    del ways[:]
    producer.send('one', b'v', headers=[('h', b'1')]).get(30)
    producer.send('one', None, key=b'k').get(30)
    assert ways == SHORT * 2
    first, second = stored_records(cluster, 'one')[2:]
    assert (list(first.headers), second.value) == ([('h', b'1')], None)


def test_a_record_that_is_a_batch_of_its_own_does_not(make, cluster, ways):
    producer = make()
    warm(producer)
    del ways[:]
    assert producer.send('one', bytes(900000)).get(30).offset == 2
    assert not ways


def test_callbacks_are_called(make, ways):
    producer = make()
    warm(producer)
    del ways[:]
    called = []
    future = producer.send('one', b'v').add_callback(called.append)
    future.get(30)
    assert ways == SHORT
    assert [metadata.offset for metadata in called] == [2]


@pytest.mark.parametrize(
    'options', [{'acks': 0, 'enable_idempotence': False}, {'linger_ms': 20}], ids=str
)
def test_some_producers_never_go_it(make, cluster, ways, options):
    producer = make(**options)
    warm(producer, count=4)
    producer.flush(30)
    assert not ways
    assert until(lambda: len(stored(cluster, 'one')) == 4)  # with acks=0 nobody tells


def test_transactions_never_go_it(make, cluster, ways):
    producer = make(transactional_id='id')
    producer.init_transactions()
    producer.begin_transaction()
    warm(producer, count=4)
    producer.commit_transaction()
    assert not ways and stored(cluster, 'one')[:4] == [b'warm'] * 4


def test_what_is_not_alone_does_not(make, cluster, ways):
    producer = make()
    warm(producer, 't', 20)  # to each partition, so that all is known
    del ways[:]
    futures = [producer.send('t', b'%d' % n, partition=n % 3) for n in range(6)]
    futures[0].get(30)
    assert not ways and all(future.get(30) for future in futures)


def test_old_brokers_are_asked_as_ever(ways):
    with Cluster(version='0.11', topics={'one': 1}) as old:
        with KafkaProducer(bootstrap_servers=old.bootstrap, acks=1) as producer:
            warm(producer, count=4)
        assert not ways and len(stored(old, 'one')) == 4


@pytest.mark.parametrize('release', ['1.0', '2.8', '3.9', '4.0'])
def test_brokers_since_1_0_take_it(ways, release):
    with Cluster(version=release, topics={'one': 1}) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap) as producer:
            warm(producer)
            del ways[:]
            assert producer.send('one', b'v').get(30).offset == 2
        assert ways == SHORT
        assert stored(running, 'one') == [b'warm', b'warm', b'v']


@pytest.mark.parametrize(
    ('fault', 'answered'),
    [(Error(6), 'wake'), (Error(7), 'wake'), (DropRequest(), 'fail'), (DropResponse(), 'fail')],
    ids=['not leader', 'timed out', 'connection lost', 'answer lost'],
)
def test_trouble_is_as_ever_and_the_record_stored_once(make, cluster, ways, fault, answered):
    producer = make(retry_backoff_ms=10)
    warm(producer)
    del ways[:]
    cluster.faults.add(fault, 'Produce', times=1)
    assert producer.send('one', b'v').get(30).offset == 2
    assert ways[:2] == ['sent', answered]
    assert producer.send('one', b'w').get(30).offset == 3
    assert stored(cluster, 'one')[2:] == [b'v', b'w']
    for _ in range(10):  # as long as somebody looks for brokers it is not alone
        producer.send('one', b'x').get(30)
    assert ways[-2:] == SHORT, 'the short way is not found again'


def test_without_retries_the_error_is_told(make, cluster, ways):
    producer = make(acks=1, enable_idempotence=False, retries=0)
    warm(producer)
    cluster.faults.add(DropRequest(), 'Produce', times=1)
    with pytest.raises(KafkaConnectionError):
        producer.send('one', b'v').get(30)
    assert producer.send('one', b'w').get(30).offset == 2


def test_a_broker_that_does_not_answer_is_waited_for_so_long(make, cluster, ways):
    producer = make(delivery_timeout_ms=900, request_timeout_ms=600, max_block_ms=500)
    warm(producer)
    del ways[:]
    cluster.faults.add(Hang(), 'Produce', times=None)
    future = producer.send('one', b'v')
    with pytest.raises(KafkaTimeoutError, match='may still be'):
        future.get(0.1)
    with pytest.raises(KafkaTimeoutError, match='delivery_timeout_ms'):
        future.get(30)
    assert ways[0] == 'sent'


def test_a_leader_that_moves_is_followed(ways):
    with Cluster(brokers=2, version='4.4', topics={'one': 1}) as running:
        with KafkaProducer(bootstrap_servers=running.bootstrap, retry_backoff_ms=10) as producer:
            warm(producer)
            leader = running.leader('one', 0)
            running.move_leader('one', 0, 1 - leader)
            assert producer.send('one', b'v').get(30).offset == 2
            # What was asked about the move is answered, and the sender has looked at that.
            producer._loop.run(producer._engine.pool.refreshed(), 30)
            assert producer._loop.wait(lambda: not producer._engine.sender._is_poked, 30)
            del ways[:]
            assert producer.send('one', b'w').get(30).offset == 3
            assert ways == SHORT
        assert stored(running, 'one')[2:] == [b'v', b'w']


def test_threads_share_a_producer(make, cluster):
    """Now one is alone, now another."""
    producer, failed = make(), []

    def work(number):
        try:
            for n in range(100):
                producer.send('one', b'%d %d' % (number, n)).get(60)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    values = stored(cluster, 'one')
    for number in range(3):
        mine = [value for value in values if value.startswith(b'%d ' % number)]
        assert mine == [b'%d %d' % (number, n) for n in range(100)]


def test_the_figures_are_those_of_the_other_way(make, ways):
    producer = make(client_id='me')
    warm(producer, count=10)
    assert ways.count('take') >= 8
    figures = producer.metrics()
    assert figures['producer-metrics']['record-send-rate'] > 0
    total = figures['producer-topic-metrics.one']
    assert total['record-send-rate'] > 0 and total['byte-rate'] > 0
    assert figures['producer-metrics']['records-per-request-avg'] == 1
    assert figures['producer-metrics']['request-latency-avg'] > 0
    assert figures['producer-metrics']['requests-in-flight'] == 0


def test_what_follows_a_record_that_ctrl_c_kept_from_being_told_of_is_sent(make, cluster):
    """The sender was not woken for it, and those behind it in the batch wake nobody either."""

    def interrupt():
        raise KeyboardInterrupt

    producer = make()
    warm(producer)
    accumulator = producer._accumulator
    accumulator._wake, wake = interrupt, accumulator._wake
    with pytest.raises(KeyboardInterrupt):
        producer.send('one', b'torn')
    accumulator._wake = wake
    assert producer.send('one', b'next').get(5).offset == 3
    assert stored(cluster, 'one')[2:] == [b'torn', b'next']


def test_memory_is_free_afterwards(make):
    producer = make(buffer_memory=100000)
    warm(producer, count=50)
    assert len(producer) == 0 and producer._accumulator.memory.used == 0


def test_a_callback_below_it_is_in_no_call_that_may_have_the_lock(cluster, ways, monkeypatch):
    """Before Python 3.10 such a call is told by its name and a local: this path is none of them."""
    monkeypatch.setattr('kafka.producer.record_accumulator._MAY_KEEP_LOCK', True)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    accumulator, noted = producer._accumulator, []

    def note(_):
        accumulator.lock.acquire()  # which an exception has kept from being released
        noted.append(accumulator.is_inside())

    with producer:
        warm(producer)
        del ways[:]
        future = producer.send('one', b'v')
        future.add_callback(note)
        future.get(30)
        assert ways == SHORT and noted == [False]
        assert not accumulator.is_mine()
