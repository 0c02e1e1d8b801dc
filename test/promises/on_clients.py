"""Promises about the evented KafkaClient, BrokerConnection and ClusterMetadata, up to 2.3."""

from __future__ import annotations

import socket
import time
from typing import Any, List

from asking import Asking, becomes, promise, raised, told

from kafka import TopicPartition
from kafka.cluster import ClusterMetadata


def _client(at: Asking, **options: Any) -> Any:
    from kafka.evented.client import KafkaClient

    made = KafkaClient(bootstrap_servers=at.bootstrap, **options)
    at._open.append(_Closing(made))
    return made


class _Closing:
    def __init__(self, client: Any) -> None:
        self._client = client

    def close(self, timeout: Any = None) -> None:
        self._client.close()


def _ready(client: Any, node: Any = 0) -> bool:
    """Poll until a node is ready."""

    def look() -> bool:
        if client.ready(node):
            return True
        client.poll(timeout_ms=50)
        return bool(client.is_ready(node))

    return becomes(look)


def _metadata_request(topics: Any = ()) -> Any:
    from kafka.protocol.metadata import MetadataRequest

    return MetadataRequest[0](list(topics))


@promise('M 12', until='3.0')
def an_evented_client_finds_its_cluster(at: Asking) -> Any:
    client = _client(at)
    brokers = client.cluster.brokers()
    return [
        sorted(each.nodeId for each in brokers),
        at.topic in client.cluster.topics(),
        type(client).__name__,
        client.config['client_id'].startswith('kafka-python'),
    ]


@promise('M 12', until='3.0')
def nodes_of_an_evented_client(at: Asking) -> Any:
    client = _client(at)
    first = [client.connected(0), client.is_disconnected(0), client.connection_delay(0)]
    first += [client.in_flight_request_count(), client.in_flight_request_count(0)]
    is_ready = _ready(client)
    later = [client.connected(0), client.is_disconnected(0), client.connection_delay(0) > 10**6]
    later += [client.least_loaded_node(), client.is_ready(0)]
    client.close(0)
    last = [client.connected(0), told(client.close, 99)]
    return [first, is_ready, later, last, client.connected(99), client.is_disconnected(99)]


@promise('M 12', until='3.0')
def nodes_that_nobody_knows(at: Asking) -> Any:
    client = _client(at)
    return [
        told(client.ready, 99),
        told(client.send, 99, _metadata_request()),
        client.connection_delay(99),
        client.in_flight_request_count(99),
        client.is_ready(99),
    ]


@promise('M 12', until='3.0')
def requests_of_an_evented_client(at: Asking) -> Any:
    client = _client(at)
    early = client.send(0, _metadata_request())
    found = [early.failed(), early.exception and raised(early.exception)]
    found.append(_ready(client))
    future = client.send(0, _metadata_request([at.topic]))
    count = client.in_flight_request_count(0)
    client.poll(future=future)
    response = future.value
    found += [count, client.in_flight_request_count(), future.succeeded()]
    found.append([each[0] for each in response.brokers])
    found.append([[each[0], each[1] == at.topic, len(each[2])] for each in response.topics])
    return found


@promise('M 12', until='2.2')
def offsets_by_an_evented_client(at: Asking) -> Any:
    from kafka.protocol.offset import OffsetRequest

    client = _client(at)
    _ready(client)
    future = client.send(0, OffsetRequest[0](-1, [(at.topic, [(0, -1, 5)])]))
    client.poll(future=future)
    return future.value.topics[0][1]


@promise('M 12', until='2.2')
def offsets_of_an_unknown_partition(at: Asking) -> Any:
    from kafka.protocol.offset import OffsetRequest

    client = _client(at)
    _ready(client)
    future = client.send(0, OffsetRequest[0](-1, [(at.topic, [(99, -1, 5)])]))
    client.poll(future=future)
    return future.value.topics[0][1]


@promise('M 12', until='3.0')
def topics_of_an_evented_client(at: Asking) -> Any:
    client = _client(at)
    first = client.set_topics([at.topic])
    again = client.set_topics([at.topic])
    found = [first.is_done, again.is_done and again.value]
    becomes(lambda: client.poll(timeout_ms=50) is None or first.is_done)
    found.append(first.value is client.cluster)
    found.append(at.topic in client.cluster.topics())
    found.append(sorted(client.cluster.partitions_for_topic(at.topic)))
    more = client.add_topic(at.topic)
    found += [more.is_done, more.value == {at.topic}]
    added = client.add_topic(at.other('new'))
    becomes(lambda: client.poll(timeout_ms=50) is None or added.is_done)
    found.append(added.value is client.cluster)
    return [str(each).replace(at.topic, 'topic') for each in found]


@promise('M 12', until='3.0')
def polls(at: Asking) -> Any:
    client = _client(at)
    _ready(client)
    found = [isinstance(client.poll(timeout_ms=0), list)]
    began = time.monotonic()
    client.poll(timeout_ms=300)
    found.append(time.monotonic() - began < 10)
    return found


@promise('L 12', until='3.0')
def waking_an_evented_client(at: Asking) -> Any:
    import threading

    client = _client(at)
    _ready(client)
    while client.poll(timeout_ms=0):
        pass
    timer = threading.Timer(0.3, client.wakeup)
    timer.start()
    began = time.monotonic()
    client.poll(timeout_ms=20000)
    return time.monotonic() - began < 15


@promise('M 12', until='3.0')
def the_version_of_a_broker(at: Asking) -> Any:
    client = _client(at)
    found = client.check_version()
    return [tuple(found) >= (0, 9) if isinstance(found, tuple) else found >= '0.9']


@promise('L 12', since='2.2.15', until='3.0')
def waiting_calls_of_an_evented_client(at: Asking) -> Any:
    from kafka.protocol.metadata import MetadataRequest

    client = _client(at)
    found = [client.await_ready(0, timeout_ms=20000)]
    response = client.send_and_receive(0, _metadata_request([at.topic]))
    found.append([each[0] for each in response.brokers])
    versions = client.get_api_versions()
    found.append(isinstance(versions, dict) and all(len(each) == 2 for each in versions.values()))
    found.append(0 <= client.api_version(MetadataRequest, max_version=1) <= 1)
    found.append(told(client.await_ready, 99))
    return found


@promise('M 12', until='3.0')
def an_evented_client_without_a_broker(at: Asking) -> Any:
    from kafka.evented.client import KafkaClient

    options = {'bootstrap_servers': '127.0.0.1:1', 'api_version_auto_timeout_ms': 300}
    found = [told(KafkaClient, **options)]
    client = KafkaClient(bootstrap_servers='127.0.0.1:1', api_version=(0, 10))
    found.append(isinstance(client.poll(timeout_ms=100), list))
    found.append(client.in_flight_request_count())
    client.close()
    return found


# ------------------------------------------------------------ connections


def _connection(at: Asking, **options: Any) -> Any:
    from kafka.conn import BrokerConnection

    host, port = at.bootstrap.split(',')[0].rsplit(':', 1)
    made = BrokerConnection(host, int(port), socket.AF_INET, **options)
    at._open.append(_Closing(made))
    return made


def _connected(conn: Any) -> bool:
    def look() -> bool:
        conn.connect()
        return bool(conn.connected())

    return becomes(look)


@promise('M 10', until='3.0')
def a_connection_and_its_states(at: Asking) -> Any:
    from kafka.conn import ConnectionStates

    calls: List[Any] = []
    conn = _connection(at, state_change_callback=lambda *given: calls.append(len(given)))
    first = [conn.connected(), conn.connecting(), conn.disconnected(), conn.blacked_out()]
    first += [conn.can_send_more(), conn.state is ConnectionStates.DISCONNECTED]
    is_connected = _connected(conn)
    later = [conn.connected(), conn.connecting(), conn.disconnected(), conn.blacked_out()]
    conn.close()
    last = [conn.connected(), conn.disconnected(), len(calls) >= 3]
    return [first, is_connected, later, last]


@promise('M 10', until='3.0')
def requests_of_a_connection(at: Asking) -> Any:
    conn = _connection(at)
    early = conn.send(_metadata_request([at.topic]))
    found = [early.failed(), raised(early.exception)]
    _connected(conn)
    future = conn.send(_metadata_request([at.topic]), blocking=True)
    found.append(len(conn.in_flight_requests))
    got: List[Any] = []
    becomes(lambda: got.extend(conn.recv()) or bool(got))
    (response, its) = got[0]
    its.success(response)
    found += [its is future, [each[0] for each in future.value.brokers]]
    return [*found, len(conn.in_flight_requests)]


@promise('M 10', until='3.0')
def too_many_requests_of_a_connection(at: Asking) -> Any:
    conn = _connection(at, max_in_flight_requests_per_connection=1)
    _connected(conn)
    conn.send(_metadata_request([at.topic]), blocking=True)
    future = conn.send(_metadata_request([at.topic]), blocking=True)
    found = [conn.can_send_more(), future.failed(), raised(future.exception)]
    waiting = conn.in_flight_requests
    count = len(waiting)
    conn.close()
    return [*found, count, len(conn.in_flight_requests)]


@promise('M 10', until='3.0')
def closing_fails_what_waits(at: Asking) -> Any:
    conn = _connection(at)
    _connected(conn)
    first = conn.send(_metadata_request([at.topic]), blocking=True)
    conn.close()
    found = [first.failed(), raised(first.exception)]
    _connected(conn)
    second = conn.send(_metadata_request([at.topic]), blocking=True)
    conn.close(error=ValueError('mine'))
    return [*found, second.failed(), raised(second.exception)]


@promise('L 12', until='3.0')
def connecting_blocks(at: Asking) -> Any:
    from kafka.conn import BrokerConnection

    conn = _connection(at)
    found = [conn.connect_blocking(timeout=20), conn.connected(), conn.connection_delay() > 10**6]
    nobody = BrokerConnection('127.0.0.1', 1, socket.AF_INET)
    found += [nobody.connect_blocking(timeout=1), nobody.disconnected(), nobody.blacked_out()]
    found.append(0 < nobody.connection_delay() < 10**6)
    return found


@promise('M 9', until='3.0')
def addresses(at: Asking) -> Any:
    from kafka.conn import get_ip_port_afi

    texts = ('localhost', 'localhost:1', '127.0.0.1', '127.0.0.1:5', '[::1]', '[::1]:77', '::1')
    texts += ('2001::1', '[localhost]:3', ' localhost:1 ', 'kafka.example.org:9093')
    return [told(lambda text=each: list(get_ip_port_afi(text))) for each in texts]


# ------------------------------------------------------------ what is known of a cluster


def _metadata_response(brokers: Any, topics: Any) -> Any:
    from kafka.protocol.metadata import MetadataResponse

    return MetadataResponse[0](brokers, topics)


@promise('M 11', until='3.0')
def what_is_known_of_a_cluster(at: Asking) -> Any:
    cluster = ClusterMetadata(bootstrap_servers=[])
    calls: List[Any] = []
    cluster.add_listener(calls.append)
    first = [told(cluster.brokers), cluster.topics(), cluster.partitions_for_topic('t')]
    first += [cluster.leader_for_partition(TopicPartition('t', 0)), cluster.broker_metadata(5)]
    future = cluster.request_update()
    first.append(cluster.request_update() is future)
    partitions = [(0, 0, 5, [5, 6], [5]), (5, 1, -1, [6], []), (0, 2, 6, [6], [6])]
    cluster.update_metadata(_metadata_response([(5, 'a', 1), (6, 'b', 2)], [(0, 't', partitions)]))
    found = [
        sorted(each.nodeId for each in cluster.brokers()),
        list(cluster.broker_metadata(6))[:3],
        cluster.partitions_for_topic('t'),
        cluster.available_partitions_for_topic('t'),
        cluster.available_partitions_for_topic('unknown'),
        [cluster.leader_for_partition(TopicPartition('t', n)) for n in range(4)],
        cluster.partitions_for_broker(5) == {TopicPartition('t', 0)},
        cluster.partitions_for_broker(99),
        cluster.topics(),
        [each is cluster for each in calls],
        future.value is cluster,
        str(cluster),
    ]
    return [first, found]


@promise('M 11', until='3.0')
def updates_that_fail(at: Asking) -> Any:
    cluster = ClusterMetadata(bootstrap_servers=[])
    future = cluster.request_update()
    cluster.update_metadata(_metadata_response([(5, 'a', 1)], [(5, 't', [])]))
    found = [future.failed(), raised(future.exception), cluster.topics()]
    again = cluster.request_update()
    cluster.failed_update(ValueError('mine'))
    found += [again.failed(), raised(again.exception), cluster.ttl() > 0]
    empty = cluster.request_update()
    cluster.update_metadata(_metadata_response([], []))
    return [*found, empty.failed(), empty.failed() and raised(empty.exception)]


@promise('M 11', until='3.0')
def when_an_update_is_due(at: Asking) -> Any:
    cluster = ClusterMetadata(bootstrap_servers=[], retry_backoff_ms=100, metadata_max_age_ms=5000)
    found = [cluster.ttl() == 0]
    cluster.update_metadata(_metadata_response([(5, 'a', 1)], []))
    found.append(4000 < cluster.ttl() <= 5000)
    cluster.request_update()
    found.append(cluster.ttl() <= 100)
    time.sleep(0.15)
    return [*found, cluster.ttl()]


@promise('M 11', until='3.0')
def topics_that_may_not_be_seen(at: Asking) -> Any:
    cluster = ClusterMetadata(bootstrap_servers=[])
    topics = [(29, 'hidden', []), (0, 't', [(0, 0, 5, [5], [5])]), (17, 'bad name', [])]
    cluster.update_metadata(_metadata_response([(5, 'a', 1)], topics))
    return [cluster.unauthorized_topics, cluster.topics()]
