"""How KafkaClient sends: to any host, to leaders, and what becomes of payloads when that fails."""

from __future__ import annotations

from unittest import mock

import pytest

import kafka.client
from kafka.client import KafkaClient
from kafka.errors import (
    BufferUnderflowError,
    FailedPayloadsError,
    KafkaConnectionError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol import KafkaProtocol, create_message, produce
from kafka.protocol.api import ApiKey
from kafka.structs import (
    FetchRequest,
    OffsetRequest,
    OffsetResponse,
    ProduceRequest,
    ProduceResponse,
)
from test.fake_brokers import Cluster


@pytest.fixture
def cluster(monkeypatch):
    found = Cluster(3, {'a': [0, 1, 2], 'b': [1, 1], 'dim': [-1]})
    monkeypatch.setattr(kafka.client, 'KafkaConnection', found.connect)
    yield found
    assert found.unread() == [], 'an answer was left for a later request'


@pytest.fixture
def client(cluster):
    found = KafkaClient('host0:9000')
    cluster.trace.clear()
    cluster.requests.clear()
    return found


def written(topic, partition, value=b'v'):
    return ProduceRequest(topic, partition, [create_message(value)])


def produce_errors(**codes):
    """Return an answer to Produce with error codes by topic and partition, such as a0=3."""

    def answer(node, request):
        return produce.ProduceResponse(
            responses=[
                produce.TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        produce.PartitionProduceResponse(
                            index=p.index,
                            error_code=codes.get('%s%d' % (topic.name, p.index), 0),
                            base_offset=-1,
                        )
                        for p in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return answer


# --- to any host --------------------------------------------------------------------------------


def test_hosts_are_tried_in_order_until_one_answers(cluster):
    client = KafkaClient(['host0:9000', 'host1:9001'])
    client.hosts = [('host2', 9002), ('host1', 9001), ('host0', 9000)]
    cluster.down.add(('host2', 9002))
    cluster.breaking['host1', 'recv'] = RuntimeError('of any kind')
    cluster.trace.clear()
    assert client.send_metadata_request([b'a']).topics[0].topic == b'a'
    assert [step[:2] for step in cluster.trace] == [
        ('send', 'host1'),
        ('send', 'host0'),
        ('recv', 'host0'),
    ]


@pytest.mark.parametrize('step', ['send', 'recv'])
def test_no_host_that_answers_is_unavailable(cluster, client, step):
    cluster.breaking['host0', step] = KafkaConnectionError('gone')
    with pytest.raises(KafkaUnavailableError, match='host0:9000: .*gone') as caught:
        client.send_metadata_request()
    assert isinstance(caught.value.__cause__, KafkaConnectionError)


def test_no_host_at_all_is_unavailable(client):
    client.hosts = []
    with pytest.raises(KafkaUnavailableError):
        client.send_metadata_request()


def test_answer_that_cannot_be_decoded_moves_on_to_the_next_host(cluster, client, monkeypatch):
    client.hosts = [('host0', 9000), ('host1', 9001)]
    decode = mock.Mock(side_effect=[BufferUnderflowError('cut off'), 'decoded'])
    monkeypatch.setattr(KafkaProtocol, 'decode_metadata_response', decode)
    assert client.send_metadata_request() == 'decoded'
    assert [step[:2] for step in cluster.trace if step[0] == 'recv'] == [
        ('recv', 'host0'),
        ('recv', 'host1'),
    ]


def test_request_that_cannot_be_encoded_goes_to_no_host(cluster, client):
    with pytest.raises(TypeError, match='topics'):
        client.send_metadata_request(['text'])
    with pytest.raises(TypeError, match='group'):
        client.send_consumer_metadata_request('text')
    assert cluster.requests == []


def test_hook_for_any_host_passes_ids_and_results_on(client):
    """``encoder_fn`` by keywords, ``send(id, encoded)``, ``recv(id)``, ``decoder_fn(answer)``."""
    conns = {address: mock.Mock() for address in [('a', 1), ('b', 2)]}
    client.hosts = list(conns)
    conns['a', 1].send.side_effect = RuntimeError('not connected')
    conns['b', 2].recv.return_value = 'answer'
    encoder = mock.Mock(return_value='encoded')
    with mock.patch.object(
        client, '_get_conn', side_effect=lambda host, port: conns[host, port]
    ), mock.patch.object(client, '_next_id', return_value=1):
        found = client._send_broker_unaware_request(
            payloads=['payload'], encoder_fn=encoder, decoder_fn=lambda data: [data]
        )
    assert found == ['answer']
    encoder.assert_called_with(client_id=b'kafka-python', correlation_id=1, payloads=['payload'])
    conns['a', 1].send.assert_called_once_with(1, 'encoded')
    conns['b', 2].send.assert_called_once_with(1, 'encoded')
    conns['b', 2].recv.assert_called_once_with(1)


def test_interrupt_while_waiting_leaves_no_answer_behind(cluster, client):
    cluster.breaking['host0', 'recv'] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        client.send_metadata_request()


# --- by leader ----------------------------------------------------------------------------------


def test_one_request_a_leader_all_sent_before_the_first_answer_is_read(cluster, client):
    payloads = [written(b'a', 2), written(b'b', 1), written(b'a', 0), written(b'a', 1)]
    assert client.send_produce_request(payloads) == [
        ProduceResponse(b'a', 2, 0, 202),
        ProduceResponse(b'b', 1, 0, 101),
        ProduceResponse(b'a', 0, 0, 0),
        ProduceResponse(b'a', 1, 0, 101),
    ]
    assert [step[0] for step in cluster.trace] == ['send'] * 3 + ['recv'] * 3
    assert sorted(node for node, _ in cluster.requests) == [0, 1, 2]


def test_request_carries_what_was_asked(cluster, client):
    client.send_produce_request([written(b'a', 0, b'value')], acks=-1, timeout=77)
    ((_, request),) = cluster.requests
    assert (request.acks, request.timeout_ms) == (-1, 77)
    client.send_fetch_request([FetchRequest(b'a', 0, 5, 99)], max_wait_time=3, min_bytes=2)
    _, request = cluster.requests[-1]
    assert (request.max_wait_ms, request.min_bytes) == (3, 2)
    assert request.topics[0].partitions[0].fetch_offset == 5


def test_fetch_and_offset_answers_come_as_tuples(client):
    (fetched,) = client.send_fetch_request([FetchRequest(b'a', 0, 5, 99)])
    assert (fetched[:4], list(fetched.messages)) == ((b'a', 0, 0, 7), [])
    assert client.send_offset_request([OffsetRequest(b'b', 0, -1, 1)]) == [
        OffsetResponse(b'b', 0, 0, (9,))
    ]


def test_nothing_to_send_is_nothing_sent(cluster, client):
    assert client.send_produce_request() == []
    assert client.send_fetch_request([]) == []
    assert cluster.requests == []


def test_without_acks_nothing_is_read(cluster, client):
    assert client.send_produce_request([written(b'a', 0), written(b'a', 1)], acks=0) == []
    assert [step[0] for step in cluster.trace] == ['send', 'send']
    assert client.send_produce_request([written(b'a', 0)])[0].error == 0


def test_without_acks_a_failed_send_is_still_reported(cluster, client):
    cluster.down.add(('host1', 9001))
    payloads = [written(b'a', 0), written(b'a', 1)]
    (failure,) = client.send_produce_request(payloads, acks=0, fail_on_error=False)
    assert failure == FailedPayloadsError(payloads[1])
    client.load_metadata_for_topics()
    with pytest.raises(FailedPayloadsError):
        client.send_produce_request(payloads, acks=0)


@pytest.mark.parametrize('code', [38, -1])
def test_a_broker_that_would_create_the_topic_and_cannot_is_one_that_knows_no_leader(
    cluster, client, code
):
    """So it is just after its start, while another broker is down: the topic is there."""
    client.reset_all_metadata()
    cluster.topic_errors['a'] = code
    with pytest.raises(LeaderNotAvailableError):
        client.send_produce_request([written(b'a', 0)])
    del cluster.topic_errors['a']
    (answer,) = client.send_produce_request([written(b'a', 0)])
    assert answer.error == 0


def test_missing_leader_is_reported_before_anything_is_encoded(cluster, client):
    broken = ProduceRequest(b'a', 0, ['no message'])
    with pytest.raises(LeaderNotAvailableError):
        client.send_produce_request([broken, written(b'dim', 0)], fail_on_error=False)
    with pytest.raises(UnknownTopicOrPartitionError):
        client.send_produce_request([broken, written(b'a', 9)], fail_on_error=False)
    with pytest.raises(UnknownTopicOrPartitionError):
        client.send_produce_request([broken, written(b'new', 0)], fail_on_error=False)
    assert cluster.sent('ProduceRequest') == []


def test_what_cannot_be_encoded_goes_nowhere(cluster, client):
    with pytest.raises(TypeError, match='create_message'):
        client.send_produce_request([written(b'a', 0), ProduceRequest(b'a', 1, [b'raw'])])
    with pytest.raises(AssertionError):
        client.send_produce_request([written(b'a', 0), written(b'b', 0), written(b'b', 0)])
    assert cluster.sent('ProduceRequest') == []


@pytest.mark.parametrize(
    'payloads', [None, 5, b'a', [b'a'], ProduceRequest(b'a', 0, []), [('a', 0)]]
)
def test_payloads_of_a_wrong_type_are_named(client, payloads):
    with pytest.raises(TypeError, match='payloads'):
        client.send_produce_request(payloads)


def test_topic_as_text_is_refused_by_name(client):
    with pytest.raises(TypeError, match='topic'):
        client.send_fetch_request([FetchRequest('a', 0, 0, 1)])


# --- connections that fail ------------------------------------------------------------------------


@pytest.mark.parametrize('step', ['connect', 'send', 'recv'])
def test_failed_broker_fails_its_payloads_and_no_others(cluster, client, step):
    if step == 'connect':
        cluster.down.add(('host1', 9001))
    else:
        cluster.breaking['host1', step] = KafkaConnectionError('gone')
    payloads = [written(b'a', 1), written(b'a', 0), written(b'b', 0), written(b'a', 2)]
    responses = client.send_produce_request(payloads, fail_on_error=False)
    assert responses == [
        FailedPayloadsError(payloads[0]),
        ProduceResponse(b'a', 0, 0, 0),
        FailedPayloadsError(payloads[2]),
        ProduceResponse(b'a', 2, 0, 202),
    ]
    assert responses[0].payload is payloads[0]
    assert isinstance(responses[0].__cause__, KafkaConnectionError)
    assert (client.topic_partitions, client.topics_to_brokers) == ({}, {})
    cluster.down.clear()
    assert client.send_produce_request(payloads)[0] == ProduceResponse(b'a', 1, 0, 101)


def test_failed_payload_is_raised_with_its_reason(cluster, client):
    cluster.breaking['host1', 'recv'] = KafkaConnectionError('gone')
    payload = written(b'a', 1)
    with pytest.raises(FailedPayloadsError) as caught:
        client.send_produce_request([written(b'a', 0), payload])
    assert caught.value.payload is payload
    assert 'gone' in str(caught.value.__cause__)


def test_leader_without_an_address_fails_its_payloads(cluster, client):
    cluster.topics['lost'] = [9]
    (failure,) = client.send_produce_request([written(b'lost', 0)], fail_on_error=False)
    assert isinstance(failure, FailedPayloadsError)
    cluster.topics['lost'] = [2]
    assert client.send_produce_request([written(b'lost', 0)])[0].error == 0


def test_cluster_that_cannot_be_asked_for_leaders_fails_those_payloads(cluster, client):
    cluster.topics['new'] = [1]
    cluster.down.add(('host0', 9000))
    payloads = [written(b'new', 0), written(b'b', 0)]
    responses = client.send_produce_request(payloads, fail_on_error=False)
    assert responses == [FailedPayloadsError(payloads[0]), ProduceResponse(b'b', 0, 0, 100)]
    assert isinstance(responses[0].__cause__, KafkaUnavailableError)


def test_unreachable_cluster_is_waited_for_once_a_call(cluster, client, monkeypatch):
    """Not once a payload: each time may take the whole timeout for each host."""
    client.reset_all_metadata()
    asked = []

    def load(*topics):
        asked.append(topics)
        raise KafkaUnavailableError('nobody')

    monkeypatch.setattr(client, 'load_metadata_for_topics', load)
    payloads = [written(b'a', 0), written(b'a', 1), written(b'b', 0)]
    for _ in range(2):
        found = client.send_produce_request(payloads, fail_on_error=False)
        assert [type(response) for response in found] == [FailedPayloadsError] * 3
    assert asked == [(b'a',)] * 2


def test_other_failure_while_reading_leaves_no_answer_behind(cluster, client):
    """The answers of the other brokers would be taken for those of the next requests."""
    cluster.breaking['host0', 'recv'] = ProtocolError('nonsense')
    payloads = [written(b'a', 0), written(b'a', 1), written(b'a', 2)]
    with pytest.raises(ProtocolError, match='nonsense'):
        client.send_produce_request(payloads)
    assert cluster.unread() == []
    assert [r.offset for r in client.send_produce_request(payloads)] == [0, 101, 202]


@pytest.mark.parametrize('step', ['send', 'recv'])
def test_interrupt_leaves_no_answer_behind(cluster, client, step):
    cluster.breaking['host1', step] = KeyboardInterrupt()
    payloads = [written(b'a', 0), written(b'a', 1), written(b'a', 2)]
    with pytest.raises(KeyboardInterrupt):
        client.send_produce_request(payloads)
    assert cluster.unread() == []
    assert [r.offset for r in client.send_produce_request(payloads)] == [0, 101, 202]


def test_answer_that_cannot_be_decoded_is_raised_after_all_were_read(cluster, client, monkeypatch):
    with monkeypatch.context() as patched:
        broken = mock.Mock(side_effect=BufferUnderflowError('cut off'))
        patched.setattr(KafkaProtocol, 'decode_produce_response', broken)
        with pytest.raises(BufferUnderflowError):
            client.send_produce_request([written(b'a', 0), written(b'a', 1)])
    assert client.send_produce_request([written(b'a', 1)])[0].offset == 101


def test_answer_without_one_of_the_partitions_is_a_protocol_error(cluster, client):
    cluster.answers[ApiKey.PRODUCE] = lambda node, request: produce.ProduceResponse(responses=[])
    with pytest.raises(ProtocolError, match="b'a', partition 0"):
        client.send_produce_request([written(b'a', 0)])


# --- errors in answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    'code, error, forgotten',
    [
        (3, UnknownTopicOrPartitionError, True),
        (6, NotLeaderForPartitionError, True),
        (1, OffsetOutOfRangeError, False),
    ],
)
def test_first_error_is_raised(cluster, client, code, error, forgotten):
    cluster.answers[ApiKey.PRODUCE] = produce_errors(b0=code, a2=2)
    with pytest.raises(error) as caught:
        client.send_produce_request([written(b'a', 0), written(b'b', 0), written(b'a', 2)])
    assert caught.value.args == (ProduceResponse(b'b', 0, code, -1),)
    assert client.has_metadata_for_topic('b') is not forgotten
    assert client.has_metadata_for_topic('a')


def test_errors_come_back_where_that_is_wanted(cluster, client):
    cluster.answers[ApiKey.PRODUCE] = produce_errors(b0=6)
    payloads = [written(b'a', 0), written(b'b', 0)]
    found = client.send_produce_request(payloads, fail_on_error=False)
    assert [response.error for response in found] == [0, 6]
    assert client.has_metadata_for_topic('b')


SENDERS = {
    'send_produce_request': (),
    'send_fetch_request': (),
    'send_offset_request': (),
    'send_offset_commit_request': (b'g',),
    'send_offset_fetch_request': (b'g',),
    'send_offset_fetch_request_kafka': (b'g',),
}


@pytest.mark.parametrize('name', SENDERS)
@pytest.mark.parametrize('argument', ['callback', 'payloads'])
def test_a_wrong_argument_is_named_before_anything_is_sent(cluster, client, name, argument):
    with pytest.raises(TypeError, match='%s must be ' % argument):
        getattr(client, name)(*SENDERS[name], **{argument: 5})
    assert cluster.trace == []


def test_topics_of_metadata_are_named_where_they_are_no_list(cluster, client):
    with pytest.raises(TypeError, match='payloads must be '):
        client.send_metadata_request(5)
    assert cluster.trace == []


@pytest.mark.parametrize('group', [5, None])
@pytest.mark.parametrize('name', [name for name in SENDERS if SENDERS[name]])
def test_a_group_of_a_wrong_type_is_named_before_anything_is_sent(cluster, client, name, group):
    with pytest.raises(TypeError, match='group'):
        getattr(client, name)(group, [OffsetRequest(b'a', 0, -1, 1)])
    assert cluster.trace == []


def test_callback_makes_the_items_of_the_list(cluster, client):
    cluster.down.add(('host1', 9001))
    payloads = [written(b'a', 0), written(b'a', 1)]
    found = client.send_produce_request(payloads, fail_on_error=False, callback=type)
    assert found == [ProduceResponse, FailedPayloadsError]


# --- hooks ----------------------------------------------------------------------------------------


def test_hook_by_leader_is_what_requests_go_through(client):
    responses = [ProduceResponse('t', 0, 0, 5), None]
    with mock.patch.object(client, '_send_broker_aware_request', return_value=responses) as hook:
        assert client.send_produce_request(['payload'], acks=3, timeout=9) == responses[:1]
    (payloads, encoder, decoder), _ = hook.call_args
    assert (payloads, decoder) == (['payload'], KafkaProtocol.decode_produce_response)
    assert encoder(client_id=b'', correlation_id=0, payloads=[]) == (
        KafkaProtocol.encode_produce_request(b'', 0, [], 3, 9)
    )


def test_hook_for_leaders_is_asked_for_each_payload(cluster, client):
    """A replaced look-up is not told what an earlier one of the same call found."""
    leaders = [KafkaUnavailableError('nobody'), client.brokers[1]]
    with mock.patch.object(client, '_get_leader_for_partition', side_effect=leaders) as hook:
        found = client.send_produce_request(
            [written(b'a', 0), written(b'a', 1)], fail_on_error=False
        )
    assert hook.call_args_list == [mock.call(b'a', 0), mock.call(b'a', 1)]
    assert [type(response) for response in found] == [FailedPayloadsError, ProduceResponse]


def test_replaced_protocol_and_payloads_may_have_topics_as_text(cluster, client):
    client.load_metadata_for_topics()
    encoder = mock.Mock(
        side_effect=lambda client_id, correlation_id, payloads: KafkaProtocol.encode_fetch_request(
            client_id, correlation_id, [FetchRequest(b'a', 0, 0, 1)]
        )
    )
    responses = client._send_broker_aware_request(
        [FetchRequest('a', 0, 0, 1)], encoder, KafkaProtocol.decode_fetch_response
    )
    assert [response.topic for response in responses] == [b'a']
