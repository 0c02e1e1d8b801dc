"""The evented client, on embedded brokers, and what tells it from the blocking one."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import time

import pytest

import kafka
from kafka.client import KafkaClient
from kafka.errors import Cancelled, IllegalStateError, NoBrokersAvailable, NodeNotReadyError
from kafka.evented import client as client_async
from kafka.evented.client import DelayedTaskQueue
from kafka.evented.client import KafkaClient as SameClient
from kafka.metrics import MetricConfig, Metrics
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.message import Message
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.produce import ProduceRequest
from kafka.testing import Cluster
from kafka.testing.faults import Hang
from test.hostile_servers import nobody
from test.raising import Interruption, Raiser, needs_points, points


@pytest.fixture(params=['0.8.2', '0.9', '0.10.0', '2.8', '4.4'])
def cluster(request):
    with Cluster(version=request.param, topics={'topic': 1}) as running:
        yield running


@pytest.fixture
def client(cluster):
    made = KafkaClient(bootstrap_servers=cluster.bootstrap, client_id='me', no_such_option=1)
    yield made
    made.close()


def wait_until_ready(client, node_id, seconds=20):
    ends_at = time.monotonic() + seconds
    while not client.ready(node_id) and time.monotonic() < ends_at:
        client.poll(timeout_ms=20)
    assert client.is_ready(node_id)


def ask(client, node_id, request):
    future = client.send(node_id, request)
    client.poll(timeout_ms=20000, future=future)
    if future.failed():
        raise future.exception
    return future.value


def test_a_program_writes_and_reads(client):
    """With structs of 1.2.1, at brokers of every age."""
    assert SameClient is KafkaClient is kafka.KafkaClient
    assert client.cluster.topics() == {'topic'}
    node_id = client.cluster.leader_for_partition(('topic', 0))
    assert client.ready(node_id) is False  # it has just begun
    wait_until_ready(client, node_id)
    assert client.connected(node_id)
    assert not client.is_disconnected(node_id)
    assert client.connection_delay(node_id) == 999999999
    messages = [(0, Message(b'value').encode())]
    produced = ask(client, node_id, ProduceRequest[0](1, 5000, [('topic', [(0, messages)])]))
    assert produced.topics == [('topic', [(0, 0, 0)])]
    unanswered = ProduceRequest[0](0, 5000, [('topic', [(0, messages)])])
    assert client.send(node_id, unanswered).succeeded()
    fetch = FetchRequest[0](-1, 100, 1, [('topic', [(0, 0, 10000)])])
    ((_, ((_, error, _, found),)),) = ask(client, node_id, fetch).topics
    assert (error, found[0][2].value) == (0, b'value')
    assert client.in_flight_request_count() == client.in_flight_request_count(node_id) == 0
    assert client.get_api_versions()
    assert client.check_version(node_id) == client.check_version()
    client.close(node_id)
    assert not client.connected(node_id)
    client.close('never heard of')


def test_metadata_is_tracked_for_topics(client):
    """Set topics give futures; the cluster resolves them."""
    future = client.set_topics(['topic'])
    client.poll(timeout_ms=20000, future=future)
    assert future.value is client.cluster
    assert client.set_topics(['topic']).value == {'topic'}
    assert client.add_topic('topic').is_done


def added_meanwhile(cluster, client):
    """Add a topic while a request about another one waits for its answer; return the future."""
    client.poll(timeout_ms=20000, future=client.set_topics(['topic']))
    cluster.pause(cluster.nodes[0])
    client.cluster.request_update()
    ends_at = time.monotonic() + 20
    while not client.in_flight_request_count():
        assert time.monotonic() < ends_at, client
        client.poll(timeout_ms=20)
    return client.add_topic('other')


def test_topics_that_are_set_while_others_are_asked_about_are_asked_about_too(cluster, client):
    """The answer that is under way does not tell of them."""
    cluster.create_topic('other', partitions=2)
    future = added_meanwhile(cluster, client)
    cluster.resume(cluster.nodes[0])
    client.poll(timeout_ms=20000, future=future)
    assert future.value is client.cluster
    assert client.cluster.partitions_for_topic('other') == {0, 1}


def test_who_sets_topics_hears_that_the_refresh_under_way_has_failed(cluster, client):
    future = added_meanwhile(cluster, client)
    client.close()
    assert future.failed()
    cluster.resume(cluster.nodes[0])


def test_metadata_tells_all_that_the_brokers_know(cluster, client):
    """Not only what the first version of the request had."""
    release = client.config['api_version']
    for topics in ([], ['topic'], ['topic', 'made-by-asking']):
        future = client.set_topics(topics)
        client.poll(timeout_ms=20000, future=future)
        assert future.value is client.cluster
        assert (client.cluster.controller in client.cluster.brokers()) is (release >= (0, 10))
        assert (client.cluster.cluster_id is not None) is (release >= (0, 10, 1))
        assert client.cluster.partitions_for_topic('topic') == {0}


def test_topics_and_requests_that_are_none(client):
    """Refused where they are named, and not in a poll() that meets them later."""
    wait_until_ready(client, 0)
    for call in (client.add_topic, lambda topic: client.set_topics([topic]), client.set_topics):
        with pytest.raises(TypeError, match='a topic is named by str, not by bytes'):
            call(b'topic')
    with pytest.raises(TypeError, match='a request struct is needed, not dict'):
        client.send(0, {})
    future = client.set_topics('topic')
    client.poll(timeout_ms=20000, future=future)
    assert client.set_topics(['topic']).value == {'topic'}


def test_a_node_that_is_not_in_the_metadata(client):
    """It is a mistake of the program."""
    assert not client.connected(99)
    assert not client.is_disconnected(99)
    assert client.connection_delay(99) == 0
    assert client.in_flight_request_count(99) == 0
    for call in (client.ready, lambda node_id: client.send(node_id, MetadataRequest[0]([]))):
        with pytest.raises(AssertionError, match='99'):
            call(99)


def test_a_request_before_there_is_a_connection_fails(client):
    """At once, so that the program tries again."""
    node_id = client.least_loaded_node()
    future = client.send(node_id, MetadataRequest[0]([]))
    assert isinstance(future.exception, NodeNotReadyError)


def test_waiting_calls_of_2_1(client):
    """One request after the other, without a loop of the program's own."""
    node_id = client.least_loaded_node()
    assert client.await_ready(node_id, timeout_ms=20000)
    assert client.send_and_receive(node_id, MetadataRequest[0]([])).brokers
    assert client.api_version(MetadataRequest, max_version=1) <= 1
    assert client.bootstrap_connected()


def test_tasks_run_in_poll(client):
    """At their time; what they raise fails their future and nothing else."""

    def fails():
        raise ValueError('mine')

    done = client.schedule(lambda: 5, time.time())
    failed = client.schedule(fails, time.time())
    later = client.schedule(len, time.time() + 1000)
    client.poll(timeout_ms=0)
    assert done.value == 5
    assert isinstance(failed.exception, ValueError)
    client.unschedule(len)
    assert isinstance(later.exception, Cancelled)
    client.unschedule(len)  # the document: a no-op


def test_wakeup_ends_a_poll(client):
    """The next one if none is under way."""
    client.set_topics(['topic'])
    began = time.monotonic()
    client.wakeup()
    client.poll(timeout_ms=15000)
    assert time.monotonic() - began < 10


@pytest.fixture(name='nobody')
def nobody_there():
    with nobody() as address:
        yield address


@pytest.fixture
def once(monkeypatch):
    """Let constructors ask each server once, as long as that takes."""
    monkeypatch.setattr('kafka.evented.client.REFUSED_SECONDS', 0)


def test_nobody_there(nobody, once):
    """Without a release one is needed, as from 1.3 on; with one it goes on looking."""
    with pytest.raises(NoBrokersAvailable, match=nobody) as raised:
        KafkaClient(bootstrap_servers=['localhost:1', nobody])
    tried = raised.value.attempts
    assert {each.address for each in tried} == {'localhost:1', nobody}
    assert {each.stage for each in tried} == {'TCP'}
    assert 'nothing listens there' in {each.hint for each in tried}
    client = KafkaClient(bootstrap_servers=nobody, api_version=(0, 10))
    assert client.least_loaded_node() is None
    with pytest.raises(NoBrokersAvailable) as raised:
        client.check_version()
    assert raised.value.attempts[-1].address == nobody
    client.close()


def test_a_name_that_is_not_known():
    with pytest.raises(NoBrokersAvailable) as raised:
        KafkaClient(bootstrap_servers='no-such-host.invalid', api_version_auto_timeout_ms=0)
    (attempt,) = raised.value.attempts
    assert (attempt.address, attempt.ip, attempt.stage) == (
        'no-such-host.invalid:9092',
        None,
        'DNS',
    )


def test_it_asks_again_for_as_long_as_it_was_told(nobody):
    began = time.monotonic()
    with pytest.raises(NoBrokersAvailable) as raised:
        KafkaClient(
            bootstrap_servers=nobody, api_version_auto_timeout_ms=200, reconnect_backoff_ms=10
        )
    assert 0.1 <= time.monotonic() - began < 10
    assert len(raised.value.attempts) > 1


def test_a_listener_that_wants_tls(once):
    """What was tried says how far it came and what may be the cause."""
    with Cluster(version='2.8', tls=True) as running:
        with pytest.raises(NoBrokersAvailable, match='TLS') as raised:
            KafkaClient(bootstrap_servers=running.bootstrap)
    (attempt,) = raised.value.attempts
    assert attempt.stage == 'ApiVersions'


def test_a_broker_that_says_nothing_takes_the_time_there_is():
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(NoBrokersAvailable) as raised:
            KafkaClient(
                bootstrap_servers='127.0.0.1:%d' % silent.getsockname()[1],
                api_version_auto_timeout_ms=300,
            )
        assert 0.3 <= time.monotonic() - began < 10
    assert raised.value.attempts[-1].stage == 'ApiVersions'


@pytest.mark.parametrize('turned_back', [0, 3600])
def test_poll_finds_a_cluster_that_comes_later(turned_back, monkeypatch):
    """A client that was made without any broker; whatever the clock on the wall is set to."""
    wall = time.time
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        port = unused.getsockname()[1]
    client = KafkaClient(
        bootstrap_servers='127.0.0.1:%d' % port, api_version=(2, 8), reconnect_backoff_ms=1
    )
    assert client.cluster.brokers() == set()
    monkeypatch.setattr(time, 'time', lambda: wall() - turned_back)
    with Cluster(version='2.8', topics={'topic': 1}, port=port):
        ends_at = time.monotonic() + 20
        while not client.cluster.brokers() and time.monotonic() < ends_at:
            client.poll(timeout_ms=10)
        assert client.cluster.topics() == {'topic'}
        client.close()


def test_the_release_is_found_in_the_constructor(cluster, client):
    assert client.config['api_version'][:2] == cluster.state.release.version[:2]


def test_an_evented_client_is_pickled_as_its_options(cluster, client):
    again = pickle.loads(pickle.dumps(client))
    try:
        assert again.cluster.topics() == client.cluster.topics()
        assert again.config['client_id'] == 'me'
        assert again.cluster is not client.cluster
    finally:
        again.close()


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork')
def test_a_forked_process_has_connections_of_its_own(cluster, client):
    """Those of the parent go on, whatever the child does with its copy of the client."""
    node_id = client.cluster.leader_for_partition(('topic', 0))
    wait_until_ready(client, node_id)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 2 if client.connected(node_id) and client.poll(timeout_ms=0) else 3
            wait_until_ready(client, node_id)
            code = 0 if ask(client, node_id, MetadataRequest[0](['topic'])).brokers else 4
            client.close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert client.connected(node_id)
    assert ask(client, node_id, MetadataRequest[0](['topic'])).brokers


def test_metrics_are_counted_where_there_is_a_registry(cluster):
    registry = Metrics(MetricConfig(tags={'client-id': 'me'}))
    client = KafkaClient(
        bootstrap_servers=cluster.bootstrap, metrics=registry, metric_group_prefix='probe'
    )

    def value(name, group='probe-metrics'):
        return registry.metrics[registry.metric_name(name, group)].value()

    try:
        assert value('connection-count') == 0
        node_id = client.cluster.leader_for_partition(('topic', 0))
        wait_until_ready(client, node_id)
        assert value('connection-count') == 1
        before = value('response-rate')
        ask(client, node_id, MetadataRequest[0](['topic']))
        assert value('response-rate') > before
        node = 'probe-node-metrics.node-%s' % node_id
        for name in ('request-latency-avg', 'request-latency-max', 'request-size-max'):
            assert value(name) > 0
            assert value(name, node) > 0
        for name in ('network-io-rate', 'outgoing-byte-rate', 'incoming-byte-rate', 'request-rate'):
            assert value(name) > 0
        for name in ('select-rate', 'io-time-ns-avg', 'io-wait-ratio', 'connection-creation-rate'):
            assert value(name) > 0
        assert not any('bootstrap' in name.group for name in registry.metrics)
        client.close(node_id)
        assert value('connection-count') == 0
        assert value('connection-close-rate') > 0
    finally:
        client.close()


def test_two_kinds_of_client(nobody):
    """Each says what the other kind's calls need."""
    evented = KafkaClient(bootstrap_servers=nobody, api_version=(0, 10))
    with pytest.raises(AttributeError, match='evented'):
        evented.load_metadata_for_topics('topic')
    assert 'evented' in repr(evented)
    evented.close()
    blocking = KafkaClient.__new__(KafkaClient)
    with pytest.raises(IllegalStateError, match='bootstrap_servers'):
        blocking.poll()


def test_the_queue_of_tasks():
    """Earliest first, each once, replaced when added again."""
    queue = DelayedTaskQueue()
    assert queue.next_at() == 9999999999
    first = queue.add('task', 5)
    second = queue.add('task', 3)
    queue.add('later', time.time() + 1000)
    assert isinstance(first.exception, Cancelled)
    assert queue.next_at() == 0
    assert queue.pop_ready() == [('task', second)]
    assert queue.pop_ready() == []
    assert 990 < queue.next_at() <= 1000, 'seconds from now'
    with pytest.raises(KeyError):
        queue.remove('task')


def test_each_server_gets_its_share_of_the_time(monkeypatch):
    shares = []

    class Search(client_async.Bootstrap):
        def __init__(self, hosts, make, seconds):
            super().__init__(hosts, make, seconds)
            shares.append(seconds)

    monkeypatch.setattr(client_async, 'Bootstrap', Search)
    with nobody() as address:
        KafkaClient(bootstrap_servers=[address] * 3, api_version=(2, 8)).close()
        KafkaClient(bootstrap_servers=address, api_version=(2, 8), request_timeout_ms=1500).close()
    assert shares == [client_async.SILENT_SECONDS / 3, 1.5]


def test_metadata_that_is_due_goes_first():
    with Cluster(version='2.8', topics={'topic': 1}) as running:
        client = KafkaClient(bootstrap_servers=running.bootstrap, retry_backoff_ms=0)
        wait_until_ready(client, 0)
        client.cluster.request_update()
        assert not client.ready(0)
        assert client.ready(0, metadata_priority=False)
        client.close()


def test_the_least_loaded_node_is_the_one_that_has_the_least_to_do():
    with Cluster(version='2.8', brokers=2, topics={'topic': 1}) as running:
        client = KafkaClient(bootstrap_servers=running.bootstrap)
        for node_id in (0, 1):
            wait_until_ready(client, node_id)
        running.faults.add(Hang(), 'Metadata', times=None)
        for busy, idle in ((0, 1), (1, 0)):
            for _ in range(busy + 1):
                client.send(busy, MetadataRequest[1]([]))
            assert client.least_loaded_node() == idle
        client.close()


@needs_points
# A socket that was just made, or is being closed, is left to the collector.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@pytest.mark.filterwarnings('ignore:unclosed')
@pytest.mark.parametrize('error', [ValueError, Interruption, MemoryError])
def test_an_exception_at_any_point_leaves_no_future_without_an_outcome(error):
    """As a time limit raises it: the connection that is half read or written is made again."""
    raise_at_points(error)
    gc.collect()


def raise_at_points(error):
    def call():
        ends_at = time.monotonic() + 5
        node_id = client.least_loaded_node()
        while node_id is None or not client.ready(node_id):
            assert time.monotonic() < ends_at
            client.poll(timeout_ms=20)
            node_id = client.least_loaded_node()
        futures.append(client.send(node_id, MetadataRequest[0]([])))
        client.poll(timeout_ms=5000, future=futures[-1])

    with Cluster(version='4.4', topics={'topic': 1}) as cluster:
        client, futures = KafkaClient(bootstrap_servers=cluster.bootstrap), []
        with Raiser() as counting:
            call()
        for at in points(counting.count, 60):
            futures.clear()
            raiser = Raiser(at, error)
            try:
                with raiser:
                    call()
            except error:
                pass
            began = time.monotonic()
            client.poll(timeout_ms=0)
            for future in futures:
                if not future.is_done:
                    client.poll(timeout_ms=5000, future=future)
                assert future.is_done, raiser.raised_at
            call()  # what it finds half written it is told of
            call()
            assert futures[-1].succeeded(), (raiser.raised_at, futures[-1].exception)
            assert time.monotonic() - began < 2, raiser.raised_at
        client.close()
