"""Promises about flush() and close(), threads, and transactions."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, List

from asking import Asking, becomes, outcome, promise, raised, threads_of, told

from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata


@promise('M 14')
def flush_ends_lingering(at: Asking) -> Any:
    producer = at.producer(linger_ms=60000)
    futures = [producer.send(at.topic, b'%d' % n, partition=n % 3) for n in range(30)]
    began = time.monotonic()
    returned = producer.flush()
    return [returned, all(future.is_done for future in futures), time.monotonic() - began < 30]


@promise('M 14, L 5')
def flush_of_nothing(at: Asking) -> Any:
    producer = at.producer()
    return [told(producer.flush), told(producer.flush, 1), told(producer.flush, timeout=0)]


@promise('M 14, L 5')
def flush_and_nobody_is_there(at: Asking) -> Any:
    producer = at.offline()
    told(producer.send, at.topic, b'v')
    return told(producer.flush, timeout=1)


@promise('L 5')
def flush_after_close(at: Asking) -> Any:
    producer = at.producer()
    producer.close()
    return told(producer.flush)


@promise('M 14')
def closing_sends_what_is_left(at: Asking) -> Any:
    producer = at.producer(linger_ms=60000)
    futures = [producer.send(at.topic, b'%d' % n, partition=0) for n in range(30)]
    returned = producer.close()
    return [returned, [future.get(0).offset for future in futures]]


@promise('M 14')
def closing_without_waiting(at: Asking) -> Any:
    producer = at.producer(linger_ms=60000)
    producer.partitions_for(at.topic)
    future = producer.send(at.topic, b'v', partition=0)
    told(producer.close, timeout=0)
    return [becomes(lambda: future.is_done), future.failed(), future.exception is not None]


@promise('M 14, L 5')
def closing_again(at: Asking) -> Any:
    producer = at.producer()
    return [told(producer.close), told(producer.close), told(producer.close, timeout=5)]


@promise('M 14, L 5')
def closing_in_less_than_no_time(at: Asking) -> Any:
    return told(at.producer().close, timeout=-1)


@promise('L 5')
def what_a_closed_producer_says(at: Asking) -> Any:
    producer = at.producer()
    producer.send(at.topic, b'v', partition=0).get(20)
    producer.close()
    return told(lambda: outcome(producer.send(at.topic, b'v')))


@promise('L 13')
def one_thread(at: Asking) -> Any:
    producer = at.producer(client_id='threads-' + at.topic)
    found = [(each.daemon, each.is_alive()) for each in threads_of('threads-' + at.topic)]
    producer.send(at.topic, b'v', partition=0).get(20)
    count = len(threads_of('threads-' + at.topic))
    producer.close()
    return [found, count, becomes(lambda: not threads_of('threads-' + at.topic))]


@promise('L 13')
def a_producer_that_is_forgotten(at: Asking) -> Any:
    import gc

    at.producer(client_id='forgotten-' + at.topic).partitions_for(at.topic)
    at._open.clear()
    gc.collect()
    return becomes(lambda: not threads_of('forgotten-' + at.topic))


@promise('L 5')
def closing_by_contextlib(at: Asking) -> Any:
    with contextlib.closing(at.producer(linger_ms=60000)) as producer:
        future = producer.send(at.topic, b'v', partition=0)
    return future.get(0).offset


@promise('L 5', since='3.0.12')
def with_a_producer(at: Asking) -> Any:
    with at.producer(linger_ms=60000) as producer:
        future = producer.send(at.topic, b'v', partition=0)
    return future.get(0).offset


@promise('M 14')
def closing_in_a_callback(at: Asking) -> Any:
    done = threading.Event()
    producer = at.producer()

    def close(found: Any) -> None:
        with contextlib.suppress(Exception):
            producer.close()
        done.set()

    producer.send(at.topic, b'v', partition=0).add_callback(close)
    return [done.wait(20), becomes(lambda: producer._closed)]


# ------------------------------------------------------------ transactions


@promise('L 6', since='2.2.15', release='0.11')
def transactions_out_of_turn(at: Asking) -> Any:
    producer = at.producer(transactional_id=at.topic)
    found: List[Any] = [
        told(producer.begin_transaction),
        told(producer.commit_transaction),
        told(producer.abort_transaction),
        told(producer.send, at.topic, b'v'),
        told(producer.init_transactions),
        told(producer.commit_transaction),
        told(producer.abort_transaction),
        told(producer.send, at.topic, b'v'),
        told(producer.begin_transaction),
        told(producer.begin_transaction),
    ]
    return found


@promise('L 6', since='2.2.15', release='0.11')
def what_is_not_transactional(at: Asking) -> Any:
    producer = at.producer()
    return [
        told(producer.init_transactions),
        told(producer.begin_transaction),
        told(producer.commit_transaction),
        told(producer.abort_transaction),
        told(producer.send_offsets_to_transaction, {}, 'g'),
    ]


@promise('L 6, L 16', since='2.2.15', release='0.11')
def transactions(at: Asking) -> Any:
    producer = at.producer(transactional_id=at.topic)
    producer.init_transactions()
    producer.init_transactions()
    found: List[Any] = []
    producer.begin_transaction()
    found.append(outcome(producer.send(at.topic, b'aborted', partition=0)))
    producer.abort_transaction()
    producer.begin_transaction()
    futures = [producer.send(at.topic, b'committed', partition=0) for _ in range(3)]
    offsets = {TopicPartition(at.topic, 0): OffsetAndMetadata(5, 'text', -1)}
    producer.send_offsets_to_transaction(offsets, at.topic + '-group')
    producer.commit_transaction()
    found += [outcome(each, 0) for each in futures]
    producer.begin_transaction()
    producer.commit_transaction()
    return found


@promise('L 6', since='2.2.15', release='0.11')
def unsent_records_of_an_aborted_transaction(at: Asking) -> Any:
    producer = at.producer(transactional_id=at.topic, linger_ms=60000)
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send(at.topic, b'unsent', partition=0)
    producer.abort_transaction()
    return [future.is_done, raised(future.exception) if future.exception else None]


@promise('L 6', since='2.2.15', release='0.11')
def fenced(at: Asking) -> Any:
    old = at.producer(transactional_id=at.topic)
    old.init_transactions()
    old.begin_transaction()
    outcome(old.send(at.topic, b'old', partition=0))
    new = at.producer(transactional_id=at.topic)
    new.init_transactions()
    sent = told(lambda: outcome(old.send(at.topic, b'fenced', partition=0)))
    found = [
        'raises' in sent,
        'KafkaError' in told(old.commit_transaction).get('raises', ()),
        'KafkaError' in told(lambda: old.send(at.topic, b'v')).get('raises', ()),
    ]
    new.begin_transaction()
    found.append(outcome(new.send(at.topic, b'new', partition=1)))
    new.commit_transaction()
    began = time.monotonic()
    told(old.close)
    return [*found, time.monotonic() - began < 30]


@promise('L 6', since='2.2.15')
def names_of_transactions(at: Asking) -> Any:
    from kafka.cluster import ClusterMetadata
    from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager

    manager = TransactionManager(None, 1000, 100, (0, 11), ClusterMetadata())
    first = manager.producer_id_and_epoch
    found = [first.producer_id, first.epoch, first.is_valid, manager.has_producer_id()]
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(5, 1))
    found += [manager.has_producer_id(), manager.producer_id_and_epoch == ProducerIdAndEpoch(5, 1)]
    manager.reset_producer_id()
    found += [manager.has_producer_id(), manager.is_transactional()]
    return [found, told(manager.set_producer_id_and_epoch, (1, 2))]
