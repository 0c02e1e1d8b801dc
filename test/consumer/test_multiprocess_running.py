"""kafka.consumer.multiprocess with processes: what arrives, and what happens when they die."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from unittest import mock

import pytest

from kafka import KafkaClient, SimpleClient
from kafka.blocking import worker_processes as processes
from kafka.consumer import MultiProcessConsumer, multiprocess
from kafka.structs import BrokerMetadata, TopicAndPartition
from test.fake_client import FakeClient, record

METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture
def real():
    """Return a maker of consumers with processes; each is stopped."""
    made = []

    def make(client, group=None, **options):
        options.setdefault('auto_commit', False)
        made.append(MultiProcessConsumer(client, group, 'topic', **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def pairs(partition, first, until):
    return [(partition, record(number)) for number in range(first, until)]


@pytest.mark.parametrize('method', METHODS)
def test_processes_bring_every_message_once(real, monkeypatch, method):
    monkeypatch.setattr(multiprocess, 'start_method', lambda: method)
    made = real(FakeClient((0, 300), (0, 500), (0, 7)), num_procs=2)
    made.provide_partition_info()
    got = made.get_messages(807, timeout=30)
    assert sorted(got) == sorted(pairs(0, 0, 300) + pairs(1, 0, 500) + pairs(2, 0, 7))
    assert made.offsets == {0: 300, 1: 500, 2: 7}
    assert all(process.daemon for process in made.procs)


def test_any_client_will_do_where_there_is_fork(real):
    """Its answers may be anything, and nothing of it can be pickled."""
    client = mock.MagicMock()
    made = real(client, 'group', partitions=(0,), num_procs=2)
    assert [process.is_alive() for process in made.procs] == [True, True]
    assert made.get_messages(1, timeout=0.1) == []
    assert client.get_partition_ids_for_topic.call_count == 0
    started = time.monotonic()
    made.stop()
    assert time.monotonic() - started < 20
    assert [process.is_alive() for process in made.procs] == [False, False]


def test_a_client_that_cannot_be_sent_is_named_where_there_is_no_fork(real, monkeypatch):
    monkeypatch.setattr(multiprocess, 'start_method', lambda: 'spawn')
    client = FakeClient((0, 9))
    client.lock = threading.Lock()
    with pytest.raises(TypeError, match='^client cannot be sent'):
        real(client)
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(real, caplog):
    client = FakeClient((0, 3000), (0, 3000), per_fetch=50)
    made = real(client, num_procs=2)
    made.provide_partition_info()
    got = made.get_messages(1, timeout=20)
    for _ in range(3):
        made.procs[0].kill()
        got += made.get_messages(1500, timeout=20)
    got += made.get_messages(6000 - len(got), timeout=20)
    assert made.get_messages(timeout=0.1) == []
    assert sorted(got) == sorted(pairs(0, 0, 3000) + pairs(1, 0, 3000))
    assert 'ended with code -9' in caplog.text


def test_an_error_that_is_not_kafkas_ends_a_process_and_is_told(real, caplog, capfd):
    client = FakeClient((0, 9))
    client.answers['send_fetch_request'] = [ZeroDivisionError()] * 9
    made = real(client)
    assert made.get_messages(1, timeout=0.5) == []
    made.stop()
    assert 'process 0 ended with code 1' in caplog.text
    assert 'ZeroDivisionError' in capfd.readouterr().err


def test_a_timer_and_processes_get_along_without_a_warning(real):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        made = real(FakeClient((0, 9)), 'group', auto_commit=True, auto_commit_every_t=20)
        assert len(made.get_messages(9, timeout=20)) == 9
        os.kill(made.procs[0].pid, signal.SIGKILL)  # the next one is forked beside the timer
        assert made.get_messages(1, timeout=0.2) == []
    made.stop()
    assert made.client.stored == {0: 9}


def test_each_half_of_a_forked_program_has_processes_of_its_own(real):
    made = real(FakeClient((0, 50)))
    assert len(made.get_messages(10, timeout=20)) == 10
    locked = threading.Thread(target=made.commit_lock.acquire)
    locked.start()
    locked.join()  # as when the timer's thread is committing at that moment
    with processes._fork_unwarned():
        child = os.fork()
    if not child:
        code = 1
        try:
            got = made.get_messages(40, timeout=20)
            made.stop()
            code = 0 if [message.offset for message in got] == list(range(10, 50)) else 2
        finally:
            os._exit(code)
    made.commit_lock = threading.RLock()
    assert os.waitpid(child, 0)[1] == 0
    assert made.procs[0].is_alive()
    assert [message.offset for message in made.get_messages(40, timeout=20)] == list(range(10, 50))


def test_it_can_be_made_in_any_thread(real):
    made = []
    thread = threading.Thread(target=lambda: made.append(real(FakeClient((0, 9)))))
    thread.start()
    thread.join()
    assert len(made[0].get_messages(9, timeout=20)) == 9


@pytest.mark.parametrize('kind', [KafkaClient, SimpleClient])
def test_clients_can_be_sent(kind, monkeypatch):
    monkeypatch.setattr(kind, 'load_metadata_for_topics', lambda self, *topics: None)
    client = kind('one:1,two:2', client_id=b'me', timeout=7)
    client.brokers = {3: BrokerMetadata(3, 'one', 1)}
    client.topics_to_brokers[TopicAndPartition(b'topic', 0)] = client.brokers[3]
    again = pickle.loads(pickle.dumps(client.copy()))
    assert type(again) is kind
    for name in ('hosts', 'client_id', 'timeout', 'brokers', 'topics_to_brokers'):
        assert getattr(again, name) == getattr(client, name)
    assert again.topics_to_brokers['topic', 0] == client.brokers[3]


def test_stop_is_harmless_in_a_signal_handler(real):
    made = real(FakeClient((0, 0)), 'group', auto_commit=True)
    before = signal.signal(signal.SIGALRM, lambda *args: made.stop())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert made.get_messages(1, timeout=20) == []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not made.procs[0].is_alive()
    assert list(made) == []


def test_ctrl_c_reaches_the_parent_alone(real):
    made = real(FakeClient((0, 5)))
    assert len(made.get_messages(5, timeout=20)) == 5
    for process in made.procs:
        os.kill(process.pid, signal.SIGINT)
    assert made.get_messages(1, timeout=0.2) == []
    assert made.procs[0].is_alive()
