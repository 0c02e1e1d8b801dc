"""A record that comes too late for a transaction, from whatever thread, is refused."""

from __future__ import annotations

import threading

import pytest

from kafka import KafkaProducer
from kafka.errors import IllegalStateError
from kafka.producer.future import FutureRecords
from kafka.testing import Cluster
from test.stored import stored

WAYS = {
    'send': lambda producer: producer.send('t', b'late'),
    'send with key': lambda producer: producer.send('t', b'late', b'k'),
    'send_many': lambda producer: producer.send_many('t', [b'late'] * 3),
    'send_and_forget': lambda producer: producer.send_and_forget('t', b'late'),
}


@pytest.fixture
def transactional():
    with Cluster(version='4.4', topics={'t': 1}) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id='x'
    ) as producer:
        producer.cluster = cluster
        producer.init_transactions()
        yield producer


@pytest.mark.parametrize('way', sorted(WAYS))
@pytest.mark.parametrize('ends', ['commit_transaction', 'abort_transaction'])
def test_who_saw_an_open_transaction_and_sends_when_it_is_over(transactional, ends, way):
    """
    Thread 1 is in send(): the transaction is open. Thread 2 ends it, and forgets which topics may
    be sent to without a look. Thread 1 notes that its topic is one of these; its next call comes
    when no transaction is open.
    """
    producer = transactional
    producer.begin_transaction()
    producer.send_and_forget('t', b'1')
    producer.send('t', b'1').get(20)
    producer.send_and_forget('t', b'1')
    queue = producer._accumulator.fast['t']
    getattr(producer, ends)()
    producer._accumulator.fast['t'] = queue
    with pytest.raises(IllegalStateError, match='begin_transaction'):
        WAYS[way](producer)
    assert producer._accumulator.is_empty()
    producer.begin_transaction()
    found = WAYS[way](producer)
    producer.commit_transaction()
    count = len(found) if isinstance(found, FutureRecords) else 1
    values = stored(producer.cluster)
    assert values.count(b'late') == count


def test_a_record_that_was_let_through_when_the_transaction_is_prepared_is_noticed(transactional):
    """The thread that sends it has asked, and has not put it into a batch."""
    producer = transactional
    producer.begin_transaction()
    producer.send('t', b'1').get(20)
    accumulator, asked, found = producer._accumulator, threading.Event(), []
    check = accumulator.check_send

    def check_send():
        check()
        if threading.current_thread() is sender:
            asked.set()
            has_prepared.wait(0.3)  # it waits for this thread

    def send():
        found.append(producer.send('t', b'late'))

    def prepare():
        sender.start()
        asked.wait(20)
        try:
            return prepare_now()
        finally:
            has_prepared.set()

    has_prepared, sender = threading.Event(), threading.Thread(target=send)
    prepare_now = producer._engine.transactions.prepare_transaction
    accumulator.check_send = check_send
    producer._engine.transactions.prepare_transaction = prepare
    with pytest.raises(IllegalStateError, match='records are being sent meanwhile'):
        producer.prepare_transaction()
    sender.join()
    producer.commit_transaction()
    assert found[0].succeeded() and stored(producer.cluster).count(b'late') == 1


def test_who_puts_into_a_box_when_it_was_emptied_for_the_last_time(transactional):
    producer = transactional
    producer.begin_transaction()
    producer.send('t', b'1').get(20)
    producer.send_and_forget('t', b'1')
    queue = producer._accumulator.fast['t']
    producer.commit_transaction()
    assert queue.box_until == 0.0 and not queue.is_watched
    queue.put_in_box(b'late')
    with pytest.raises(IllegalStateError, match='begin_transaction'):
        producer._accumulator.watch_box(queue)
    assert not queue.box
