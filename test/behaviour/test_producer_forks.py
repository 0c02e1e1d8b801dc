"""What is left of a producer in the child of a fork: nothing that blocks, and a clear error."""

from __future__ import annotations

import os
import select
import warnings

import pytest

from kafka import KafkaProducer
from kafka.errors import IllegalStateError
from kafka.producer import kafka as face
from kafka.testing import Cluster

pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')


def in_child(work):
    """Return what a function returns in a forked child; None if it takes more than a minute."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)  # 3.12 on: threads and fork
        child = os.fork()
    if not child:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], 60)
        if ready:
            return os.read(reader, 10_000).decode()
        os.kill(child, 9)
        return None
    finally:
        os.close(reader)
        os.waitpid(child, 0)


@pytest.fixture
def producer():
    with Cluster(version='4.4', topics={'t': 1}) as cluster, KafkaProducer(
        bootstrap_servers=cluster.bootstrap, linger_ms=10_000_000, delivery_timeout_ms=20_000_000
    ) as made:
        made.partitions_for('t')
        yield made


def test_callbacks_are_told_at_once_though_another_thread_held_the_lock(producer):
    """
    Thread 1 is in send() and holds the lock. Thread 2 forks: nobody will ever let go of it in the
    child, where somebody asks to be called.
    """
    waits = producer.send('t', b'v')
    called = []
    waits.add_callback(called.append)
    waits.add_errback(called.append)

    def work():
        told = []
        waits.add_callback(told.append).add_errback(told.append)
        try:
            waits.get(30)
        except IllegalStateError as error:
            told.append(error)
        assert not called and waits.is_done
        return [type(each).__name__ for each in told]

    with producer._accumulator.lock:
        said = in_child(work)
    assert said == "['IllegalStateError', 'IllegalStateError']"
    producer.flush(60)
    assert waits.get(0).offset == 0 and called == [waits.get(0)]


def test_what_was_stored_before_is_known_in_the_child(producer):
    done = producer.send('t', b'v')
    producer.flush(60)

    def work():
        told = []
        done.add_callback(told.append)
        return told[0].offset, done.get(0).offset

    with producer._accumulator.lock:
        assert in_child(work) == '(0, 0)'


def test_a_producer_that_is_just_being_closed_blocks_nobody_either(producer):
    waits = producer.send('t', b'v')
    producer._closed = True
    face._open.discard(producer)
    try:
        with producer._accumulator.lock:
            assert in_child(lambda: waits.add_errback(print).is_done) == 'True'
    finally:
        producer._closed = False


def test_a_child_does_not_wait_for_a_thread_that_was_closing(producer):
    closing = producer._closing
    producer._closed = closing.is_first([-1])
    try:
        assert in_child(lambda: (producer.close(), producer.flush())) == '(None, None)'
    finally:
        producer._closed = False
        producer._closing = type(closing)()


def test_figures_are_refused(producer):
    def work():
        with pytest.raises(IllegalStateError, match='forked'):
            producer.metrics()
        return 'refused'

    assert in_child(work) == 'refused'
