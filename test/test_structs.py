"""kafka.structs and kafka.common: the tuples, their fields, their aliases."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka import common, errors, structs

FIELDS = {
    'MetadataRequest': 'topics',
    'MetadataResponse': 'brokers topics',
    'ConsumerMetadataRequest': 'groups',
    'ConsumerMetadataResponse': 'error nodeId host port',
    'ProduceRequest': 'topic partition messages',
    'ProduceResponse': 'topic partition error offset',
    'FetchRequest': 'topic partition offset max_bytes',
    'FetchResponse': 'topic partition error highwaterMark messages',
    'OffsetRequest': 'topic partition time max_offsets',
    'OffsetResponse': 'topic partition error offsets',
    'OffsetCommitRequest': 'topic partition offset metadata',
    'OffsetCommitResponse': 'topic partition error',
    'OffsetFetchRequest': 'topic partition',
    'OffsetFetchResponse': 'topic partition offset metadata error',
    'BrokerMetadata': 'nodeId host port',
    'TopicMetadata': 'topic error partitions',
    'PartitionMetadata': 'topic partition leader replicas isr error',
    'OffsetAndMessage': 'offset message',
    'Message': 'magic attributes key value',
    'TopicAndPartition': 'topic partition',
    'TopicPartition': 'topic partition',
    'KafkaMessage': 'topic partition offset key value',
    'RetryOptions': 'limit backoff_ms retry_on_timeouts',
}


@pytest.mark.parametrize('name, fields', sorted(FIELDS.items()))
def test_tuples_have_their_name_and_fields_and_equal_plain_tuples(name, fields):
    cls = getattr(common, name)
    names = tuple(fields.split())
    assert (cls.__name__, cls._fields) == (name, names)
    values = tuple(range(len(names)))
    made = cls(**dict(zip(names, values)))
    assert made == values == cls(*values)
    assert hash(made) == hash(values)
    assert pickle.loads(pickle.dumps(made)) == made
    assert type(made._replace(**{names[0]: 7})) is cls


@pytest.mark.parametrize(
    'name',
    [
        'Produce', 'Fetch', 'Offset', 'OffsetCommit', 'OffsetFetch',
    ],
)  # fmt: skip
def test_payload_names_of_1_x_are_the_same_classes(name):
    for kind in ('Request', 'Response'):
        old = getattr(structs, name + kind)
        assert getattr(structs, name + kind + 'Payload') is old
        assert getattr(common, name + kind + 'Payload') is old


def test_a_partition_of_0_9_5_is_one_of_1_x():
    old, new = structs.TopicAndPartition('t', 1), structs.TopicPartition('t', 1)
    assert old == new and hash(old) == hash(new)
    assert isinstance(old, structs.TopicPartition)
    assert repr(old) == "TopicAndPartition(topic='t', partition=1)"
    assert not hasattr(old, '__dict__')


def test_broker_metadata_answers_to_both_spellings_of_the_node_id():
    assert structs.BrokerMetadata(3, b'h', 9092).node_id == 3


def test_broker_metadata_takes_a_rack_as_in_1_3():
    for broker in (
        structs.BrokerMetadata(3, 'h', 9092, 'r'),
        structs.BrokerMetadata(nodeId=3, host='h', port=9092, rack='r'),
        structs.BrokerMetadata._make((3, 'h', 9092, 'r')),
        structs.BrokerMetadata(3, 'h', 9092)._replace(rack='r'),
        structs.BrokerMetadata(3, 'h', 9092, None)._replace(rack='r'),
    ):
        node_id, host, port, rack = broker
        assert (node_id, host, port, rack) == broker == (3, 'h', 9092, 'r')
        assert (broker.node_id, broker.rack, type(broker)) == (3, 'r', structs.Broker)
        assert isinstance(broker, structs.BrokerMetadata)
        assert repr(broker) == "BrokerMetadata(nodeId=3, host='h', port=9092, rack='r')"
        assert broker._asdict() == {'nodeId': 3, 'host': 'h', 'port': 9092, 'rack': 'r'}
        assert pickle.loads(pickle.dumps(broker)) == copy.copy(broker) == broker
    assert structs.BrokerMetadata(3, 'h', 9092, None) == (3, 'h', 9092, None)


def test_broker_metadata_of_three_fields_is_that_of_0_9_5():
    broker = structs.BrokerMetadata(3, b'h', 9092)
    node_id, host, port = broker
    assert (len(broker), broker.rack, type(broker)) == (3, None, structs.BrokerMetadata)
    assert repr(broker) == "BrokerMetadata(nodeId=3, host=b'h', port=9092)"
    assert broker._asdict() == {'nodeId': 3, 'host': b'h', 'port': 9092}
    assert pickle.loads(pickle.dumps(broker)) == copy.copy(broker) == broker
    for wrong in ((3, 'h'), (3, 'h', 9092, 'r', 5)):
        with pytest.raises(TypeError):
            structs.BrokerMetadata(*wrong)
        with pytest.raises(TypeError):
            structs.BrokerMetadata._make(wrong)


def test_structs_and_common_offer_every_error_as_the_same_object():
    for name, thing in vars(errors).items():
        if isinstance(thing, type) and issubclass(thing, errors.KafkaError):
            assert getattr(common, name) is thing
            assert getattr(structs, name) is thing
    for name in ('check_error', 'kafka_errors', 'RETRY_ERROR_TYPES', 'RETRY_BACKOFF_ERROR_TYPES'):
        assert getattr(common, name) is getattr(errors, name)
    assert common.RETRY_REFRESH_ERROR_TYPES is errors.RETRY_REFRESH_ERROR_TYPES
    assert common.ConnectionError is errors.KafkaConnectionError


@pytest.mark.parametrize('cls', [structs.OffsetAndMetadata, structs.OffsetAndTimestamp])
def test_an_epoch_left_out_on_one_side_does_not_count(cls):
    assert cls(5, 7) == cls(5, 7, 3) == (5, 7)
    assert cls(5, 7, None) == cls(5, 7, 3)
    assert hash(cls(5, 7)) == hash(cls(5, 7, 3)) == hash((5, 7))
    assert not cls(5, 7) != cls(5, 7, 3)


@pytest.mark.parametrize('cls', [structs.OffsetAndMetadata, structs.OffsetAndTimestamp])
@pytest.mark.parametrize('other', [(5, 8, 3), (6, 7, 3), (5, 7, 4), (5,), (5, 7, 3, 1), 5, None])
def test_what_differs_is_not_equal(cls, other):
    assert cls(5, 7, 3) != other
    assert not cls(5, 7, 3) == other


def test_offset_and_metadata_takes_metadata_of_any_type():
    assert structs.OffsetAndMetadata(1, None).metadata is None
    assert structs.OffsetAndMetadata(1).metadata == ''


def test_a_broker_may_be_made_by_the_name_of_3_0():
    made = structs.BrokerMetadata(node_id=1, host='h', port=2)
    assert made == structs.BrokerMetadata(1, 'h', 2) and made.node_id == made.nodeId == 1
    made = structs.BrokerMetadata(node_id=1, host='h', port=2, rack='r')
    assert made == (1, 'h', 2, 'r') and made._replace(rack='s').rack == 's'
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made


@pytest.mark.parametrize(
    'wrong', [{}, {'node_id': 1}, {'node_id': 1, 'nodeId': 1, 'host': 'h', 'port': 2}, {'port': 2}]
)
@pytest.mark.parametrize('cls', ['BrokerMetadata', 'Broker'])
def test_a_broker_of_which_too_little_or_too_much_is_told(cls, wrong):
    with pytest.raises(TypeError, match='nodeId'):
        getattr(structs, cls)(**wrong)


SIX = {'topic': 't', 'partition': 1, 'leader': 2, 'replicas': [2, 3], 'isr': [2], 'error': 0}


def test_a_partition_may_have_the_eight_fields_of_2_1():
    six = structs.PartitionMetadata(**SIX)
    assert (six.leader_epoch, six.offline_replicas) == (-1, ()) and len(six) == 6
    eight = structs.PartitionMetadata('t', 1, 2, 5, [2, 3], [2], [3], 0)
    assert eight == ('t', 1, 2, 5, [2, 3], [2], [3], 0)
    assert eight == structs.PartitionMetadata(**SIX, leader_epoch=5, offline_replicas=[3])
    assert isinstance(eight, structs.PartitionMetadata)
    assert (eight.leader_epoch, eight.offline_replicas, eight.replicas) == (5, [3], [2, 3])
    assert eight._replace(leader_epoch=6).leader_epoch == 6
    assert eight._asdict() == {**SIX, 'leader_epoch': 5, 'offline_replicas': [3]}
    assert pickle.loads(pickle.dumps(eight)) == copy.copy(eight) == eight
    assert structs.PartitionMetadata(**SIX, leader_epoch=5).offline_replicas == ()
    assert repr(eight).startswith(
        "PartitionMetadata(topic='t', partition=1, leader=2, leader_epoch"
    )
    with pytest.raises(TypeError):
        structs.PartitionMetadata('t', 1, 2, 5, [2, 3], [2], [3])
