"""Where the offsets of a group are asked for and stored: ZooKeeper, or the coordinator."""

from __future__ import annotations

from unittest import mock

import pytest

import kafka.blocking.stored_offsets
import kafka.client
from kafka.blocking.stored_offsets import OffsetsStorage
from kafka.client import KafkaClient
from kafka.errors import (
    ConsumerCoordinatorNotAvailableCode,
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaUnavailableError,
    NotCoordinatorForConsumerCode,
)
from kafka.protocol import find_coordinator
from kafka.protocol.api import ApiKey
from kafka.structs import (
    BrokerMetadata,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from test.fake_brokers import Cluster

COMMITS = [OffsetCommitRequest(b't', p, 10 + p, None) for p in range(3)]
FETCHES = [OffsetFetchRequest(b't', p) for p in range(3)]


class Clock:
    """Only sleeping moves it."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(kafka.blocking.stored_offsets, 'time', found)
    return found


@pytest.fixture
def cluster(monkeypatch, clock):
    """Four brokers; the last coordinates every group and leads nothing."""
    found = Cluster(4, {'t': [0, 1, 2]})
    monkeypatch.setattr(kafka.client, 'KafkaConnection', found.connect)
    yield found
    assert found.unread() == [], 'an answer was left for a later request'


@pytest.fixture
def versions(cluster, monkeypatch):
    """Let brokers tell versions: {node: {api key: (lowest, highest)}}."""
    told = {}

    class Own:
        def __init__(self, host, port, timeout):
            self.fake = cluster.connect(host, port, timeout)
            self.send, self.recv, self.close = self.fake.send, self.fake.recv, self.fake.close

        def api_versions(self):
            found = told.get(cluster.node((self.fake.host, self.fake.port)), {})
            if isinstance(found, Exception):
                raise found
            return found

    monkeypatch.setattr(kafka.client, 'KafkaConnection', Own)
    monkeypatch.setattr(kafka.client, '_OwnConnection', Own)
    return told


def refusing(*nodes):
    """Return answers of brokers that refuse version 0 with error 35, as those on KRaft do."""

    def answer(cluster, key):
        def found(node, request):
            if node in nodes:
                return getattr(cluster, '_answer_%d' % key)(node, request, error=35)
            return None

        return found

    return answer


def nodes(cluster, name):
    return sorted(node for node, _ in cluster.sent(name))


def test_offsets_go_to_the_leaders(cluster):
    client = KafkaClient('host0:9000')
    assert client.send_offset_commit_request(b'group', COMMITS) == [
        OffsetCommitResponse(b't', p, 0) for p in range(3)
    ]
    assert nodes(cluster, 'OffsetCommitRequest') == [0, 1, 2]
    for _, request in cluster.sent('OffsetCommitRequest'):
        assert request.group_id == 'group'
    assert client.send_offset_fetch_request(b'group', FETCHES) == [
        OffsetFetchResponse(b't', p, 40 + p, b'', 0) for p in range(3)
    ]
    assert nodes(cluster, 'OffsetFetchRequest') == [0, 1, 2]
    assert cluster.sent('FindCoordinatorRequest') == []


def test_brokers_that_dropped_version_0_leave_offsets_to_the_coordinator(cluster, versions):
    for node in range(4):
        versions[node] = {ApiKey.OFFSET_COMMIT: (2, 9), ApiKey.OFFSET_FETCH: (1, 9)}
    client = KafkaClient('host0:9000')
    assert [r.error for r in client.send_offset_commit_request(b'group', COMMITS)] == [0, 0, 0]
    assert [r.offset for r in client.send_offset_fetch_request(b'group', FETCHES)] == [43] * 3
    assert nodes(cluster, 'OffsetCommitRequest') == nodes(cluster, 'OffsetFetchRequest') == [3]
    assert len(cluster.sent('FindCoordinatorRequest')) == 1


def test_each_leader_of_a_rolling_upgrade_is_judged_by_itself(cluster, versions):
    versions[1] = {ApiKey.OFFSET_COMMIT: (2, 9)}
    versions[2] = {ApiKey.OFFSET_COMMIT: (0, 8)}
    client = KafkaClient('host0:9000')
    found = client.send_offset_commit_request(b'group', COMMITS)
    assert found == [OffsetCommitResponse(b't', p, 0) for p in range(3)]
    sent = {
        n: [p.partition_index for p in r.topics[0].partitions]
        for n, r in cluster.requests
        if r.api_key == 8
    }
    assert sent == {0: [0], 2: [2], 3: [1]}


def test_versions_that_cannot_be_learned_decide_nothing(cluster, versions):
    versions.update(dict.fromkeys(range(4), KafkaConnectionError('gone')))
    client = KafkaClient('host0:9000')
    assert [r.error for r in client.send_offset_commit_request(b'group', COMMITS)] == [0, 0, 0]
    assert nodes(cluster, 'OffsetCommitRequest') == [0, 1, 2]


@pytest.mark.parametrize('key', [ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH])
def test_refusal_sends_the_payload_to_the_coordinator_and_is_remembered(cluster, key):
    """Up to 3.9 a broker without ZooKeeper lists version 0 and answers it with 35."""
    cluster.answers[key] = refusing(0, 2)(cluster, key)
    client = KafkaClient('host0:9000')

    def send():
        cluster.requests.clear()
        if key == ApiKey.OFFSET_COMMIT:
            found = client.send_offset_commit_request(b'group', COMMITS)
        else:
            found = client.send_offset_fetch_request(b'group', FETCHES)
        assert [(r.partition, r.error) for r in found] == [(0, 0), (1, 0), (2, 0)]
        return sorted(n for n, request in cluster.requests if request.api_key == key)

    assert send() == [0, 1, 2, 3]
    assert send() == [1, 3]
    client.reset_all_metadata()
    assert send() == [0, 1, 2, 3]


def test_coordinator_that_is_being_made_is_waited_for(cluster, clock):
    cluster.answers[ApiKey.OFFSET_COMMIT] = refusing(0, 1, 2)(cluster, ApiKey.OFFSET_COMMIT)
    cluster.answers[ApiKey.FIND_COORDINATOR] = lambda node, request: (
        None if clock.now > 1 else _no_coordinator(15)
    )
    client = KafkaClient('host0:9000')
    assert [r.error for r in client.send_offset_commit_request(b'group', COMMITS)] == [0, 0, 0]
    assert 1 < clock.now < 1.5


def _no_coordinator(error):
    return find_coordinator.FindCoordinatorResponse(error_code=error, node_id=-1, port=-1)


def test_coordinator_that_never_comes_is_an_error_in_time(cluster, clock):
    cluster.answers[ApiKey.FIND_COORDINATOR] = lambda node, request: _no_coordinator(15)
    client = KafkaClient('host0:9000')
    with pytest.raises(ConsumerCoordinatorNotAvailableCode):
        client.send_offset_fetch_request_kafka(b'group', FETCHES)
    assert clock.now == pytest.approx(kafka.blocking.stored_offsets.COORDINATOR_SECONDS, abs=0.2)
    with pytest.raises(ConsumerCoordinatorNotAvailableCode):
        client._get_coordinator_for_group(b'group')
    assert clock.now == pytest.approx(kafka.blocking.stored_offsets.COORDINATOR_SECONDS, abs=0.2)


@pytest.mark.parametrize('code', [14, 15, 16])
def test_coordinator_that_moves_is_followed(cluster, clock, code):
    refused = refusing(0, 1, 2)(cluster, ApiKey.OFFSET_COMMIT)

    def commit(node, request):
        if node == 3 and clock.now < 1:
            return cluster._answer_8(node, request, error=code)
        return refused(node, request)

    cluster.answers[ApiKey.OFFSET_COMMIT] = commit
    client = KafkaClient('host0:9000')
    assert [r.error for r in client.send_offset_commit_request(b'group', COMMITS)] == [0, 0, 0]
    assert len(cluster.sent('FindCoordinatorRequest')) > 1


def test_coordinator_that_never_settles_answers_as_it_is(cluster, clock):
    refused = refusing(0, 1, 2)(cluster, ApiKey.OFFSET_COMMIT)
    cluster.answers[ApiKey.OFFSET_COMMIT] = lambda node, request: (
        cluster._answer_8(node, request, error=16) if node == 3 else refused(node, request)
    )
    client = KafkaClient('host0:9000')
    found = client.send_offset_commit_request(b'group', COMMITS, fail_on_error=False)
    assert [r.error for r in found] == [16, 16, 16]
    assert clock.now >= kafka.blocking.stored_offsets.COORDINATOR_SECONDS
    with pytest.raises(NotCoordinatorForConsumerCode):
        client.send_offset_commit_request(b'group', COMMITS)


def test_coordinator_whose_connection_fails_fails_the_payloads(cluster):
    cluster.answers[ApiKey.OFFSET_COMMIT] = refusing(0, 1, 2)(cluster, ApiKey.OFFSET_COMMIT)
    cluster.breaking['host3', 'recv'] = KafkaConnectionError('gone')
    client = KafkaClient('host0:9000')
    found = client.send_offset_commit_request(b'group', COMMITS, fail_on_error=False)
    assert found == [FailedPayloadsError(payload) for payload in COMMITS]
    assert [r.error for r in client.send_offset_commit_request(b'group', COMMITS)] == [0, 0, 0]


def test_coordinator_that_nobody_can_be_asked_for_fails_the_payloads(cluster, versions):
    for node in range(4):
        versions[node] = {ApiKey.OFFSET_COMMIT: (2, 9)}
    client = KafkaClient('host0:9000')
    cluster.down.add(('host0', 9000))
    found = client.send_offset_commit_request(b'group', COMMITS[1:], fail_on_error=False)
    assert [type(response) for response in found] == [FailedPayloadsError] * 2
    assert isinstance(found[0].__cause__, KafkaUnavailableError)


def test_leaders_that_nobody_can_be_asked_for_are_asked_for_once(cluster):
    """Each further question would take another time-out per host."""
    client = KafkaClient('host0:9000')
    client.reset_all_metadata()
    cluster.down.add(('host0', 9000))
    with mock.patch.object(
        client, 'send_metadata_request', side_effect=client.send_metadata_request
    ) as asked:
        found = client.send_offset_commit_request(b'group', COMMITS, fail_on_error=False)
    assert found == [FailedPayloadsError(payload) for payload in COMMITS]
    assert all(isinstance(failure.__cause__, KafkaUnavailableError) for failure in found)
    assert asked.call_count == 1


def test_offsets_in_kafka_are_always_asked_of_the_coordinator(cluster):
    client = KafkaClient('host0:9000')
    found = client.send_offset_fetch_request_kafka(b'group', FETCHES)
    assert found == [OffsetFetchResponse(b't', p, 43, b'', 0) for p in range(3)]
    assert nodes(cluster, 'OffsetFetchRequest') == [3]
    assert client.send_offset_fetch_request_kafka(b'group', FETCHES, callback=len) == [5, 5, 5]
    assert client.send_offset_fetch_request_kafka(b'group') == []


def test_answer_of_a_broker_that_no_longer_coordinates_is_the_callers(cluster):
    """As in 0.9.5: who asks the coordinator knows that it may move."""
    cluster.answers[ApiKey.OFFSET_FETCH] = lambda node, request: cluster._answer_9(
        node, request, error=16
    )
    client = KafkaClient('host0:9000')
    with pytest.raises(NotCoordinatorForConsumerCode):
        client.send_offset_fetch_request_kafka(b'group', FETCHES)
    cluster.answers.clear()
    assert client.send_offset_fetch_request_kafka(b'group', FETCHES)[0].error == 0
    assert len(cluster.sent('FindCoordinatorRequest')) == 2


def test_hooks_of_the_coordinator(cluster):
    client = KafkaClient('host0:9000')
    found = client._get_coordinator_for_group(b'group')
    assert found == BrokerMetadata(3, b'host3', 9003)
    found = client._send_consumer_aware_request(
        b'group',
        FETCHES,
        lambda client_id, correlation_id, payloads: (
            kafka.client.KafkaProtocol.encode_offset_fetch_request(
                client_id, correlation_id, b'group', payloads, True
            )
        ),
        kafka.client.KafkaProtocol.decode_offset_fetch_response,
    )
    assert [response.offset for response in found] == [43] * 3


@pytest.mark.parametrize('group', ['text', None, 5])
def test_group_of_a_wrong_type_is_named(cluster, group):
    client = KafkaClient('host0:9000')
    for send, payloads in (
        (client.send_offset_commit_request, COMMITS),
        (client.send_offset_fetch_request, FETCHES),
        (client.send_offset_fetch_request_kafka, FETCHES),
    ):
        with pytest.raises(TypeError, match='group'):
            send(group, payloads)
    assert cluster.unread() == []


def test_payloads_of_a_wrong_type_are_named(cluster):
    client = KafkaClient('host0:9000')
    with pytest.raises(TypeError, match='payloads'):
        client.send_offset_commit_request(b'group', COMMITS[0])


@pytest.mark.parametrize('payloads', [COMMITS, COMMITS[:1]])
def test_a_replaced_way_to_the_leaders_is_taken(cluster, payloads):
    """Programs of 0.9.5 subclass the client, or put their own function into one."""

    class Client(KafkaClient):
        def _send_broker_aware_request(self, payloads, encoder_fn, decoder_fn):
            called.append(list(payloads))
            return super()._send_broker_aware_request(payloads, encoder_fn, decoder_fn)

    called = []
    wanted = [OffsetCommitResponse(b't', payload.partition, 0) for payload in payloads]
    assert Client('host0:9000').send_offset_commit_request(b'group', payloads) == wanted
    client = KafkaClient('host0:9000')
    client._send_broker_aware_request = lambda payloads, *functions: wanted
    before = len(cluster.sent('OffsetCommitRequest'))
    assert client.send_offset_commit_request(b'group', payloads) == wanted
    assert called == [payloads]
    assert len(cluster.sent('OffsetCommitRequest')) == before


# --- what is known of it ------------------------------------------------------------------------


def test_a_group_is_named_by_bytes_or_text(clock):
    with pytest.raises(TypeError, match='group must be bytes, not int'):
        OffsetsStorage().find_coordinator(5, pytest.fail)


def test_a_coordinator_is_asked_for_once_until_an_answer_says_it_has_moved(clock):
    storage, asked = OffsetsStorage(), []

    def ask(group):
        asked.append(group)
        return BrokerMetadata(1, 'one', 9)

    for _ in range(2):
        assert storage.find_coordinator(b'g', ask).nodeId == 1
    storage.note_answers(b'g', [OffsetCommitResponse(b't', 0, 3), FailedPayloadsError(None)])
    assert (asked, repr(storage)) == ([b'g'], '<OffsetsStorage of 1 coordinators>')
    storage.note_answers(b'g', [OffsetCommitResponse(b't', 0, 16)])
    assert repr(storage) == '<OffsetsStorage of 0 coordinators>'


def test_leaders_that_dropped_the_version_or_refused_it_are_passed_by():
    storage, asked = OffsetsStorage(), []

    def versions_of(address):
        asked.append(address)
        return {8: (2, 9)} if address == ('new', 9) else {}

    led = [(COMMITS[0], ('new', 9)), (COMMITS[1], ('old', 9)), (COMMITS[2], ('old', 9))]
    assert storage.split(8, led, versions_of) == (led[1:], [COMMITS[0]])
    assert asked == [('new', 9), ('old', 9)]
    answers = [OffsetCommitResponse(b't', 1, 35), OffsetCommitResponse(b't', 2, 0)]
    assert storage.refused(led[1:], answers) == [COMMITS[1]]
    assert storage.split(8, led[1:], versions_of) == ([], [COMMITS[1], COMMITS[2]])
