"""No lock hangs a thread in which a finalizer or the handler of a signal comes back in."""

from __future__ import annotations

import os
import re
import threading

import pytest

import kafka
from kafka.cluster import ClusterMetadata
from kafka.future import Future
from kafka.metrics import MetricName, Metrics
from kafka.metrics.dict_reporter import DictReporter
from kafka.metrics.kafka_metric import KafkaMetric
from kafka.metrics.measurable import AnonMeasurable
from kafka.net.loop.loop import Loop

PACKAGE = os.path.dirname(os.path.abspath(kafka.__file__))
#: Plain locks, and why nobody waits for one that his own thread has.
PLAIN = {
    'net/loop/loop.py: self._driver_lock': 'a call in the thread that has it is refused',
    'net/loop/loop.py: self._background_wakeup': 'slept on',
    'net/loop/loop.py: self._lock': 'slept on, for a bounded time',
    'net/sasl/oidc.py: self._asking': 'waited for a bounded time',
    'producer/kafka.py: self._has_ended': 'slept on, for a bounded time',
    'spark/clients.py: self.making': 'held while a producer is made, which lends no other',
    'util.py: lock': 'slept on',
    'cli/broker.py: held': 'the main program of the command line: slept on',
    'testing/server.py: self._lock': 'of the embedded broker: held where nothing is made',
}


def plain_locks():
    """Yield each plain lock of the package: file and name."""
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith('.py'):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as file:
                    for found in re.finditer(
                        r'(?m)^ *([\w.]+)[^=\n]* = threading\.Lock\(', file.read()
                    ):
                        yield '%s: %s' % (os.path.relpath(path, PACKAGE), found.group(1))


def test_each_plain_lock_has_a_reason():
    assert sorted(plain_locks()) == sorted(PLAIN)


def test_a_callback_can_be_added_where_the_lock_of_a_future_is_held():
    future, told = Future(), []
    with future._lock:
        future.add_callback(told.append)
    future.success(1)
    assert told == [1]


def test_an_update_can_be_asked_for_where_the_lock_of_the_cluster_is_held():
    cluster = ClusterMetadata()
    with cluster._lock:
        future = cluster.request_update()
    assert cluster.request_update() is future


def test_metrics_can_be_looked_at_where_their_locks_are_held():
    reporter = DictReporter()
    metrics = Metrics(reporters=[reporter])
    with reporter._lock, metrics._lock:
        metrics.sensor('s')
        name = MetricName('n', 'g')
        reporter.metric_change(KafkaMetric(name, AnonMeasurable(lambda config, now: 1), None))
        assert reporter.snapshot()['g'] == {'n': 1}


@pytest.mark.parametrize('call', ['call_threadsafe', 'call_lazily'])
def test_a_call_can_be_brought_while_the_thread_of_a_loop_is_started(call):
    loop, done = Loop(), threading.Event()
    try:
        with loop._thread_lock:
            getattr(loop, call)(done.set)
        assert done.wait(30)
    finally:
        loop.close(5.0)
