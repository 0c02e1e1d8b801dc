"""kafka.producer.keyed: the partition of a key."""

from __future__ import annotations

import pytest

from kafka.errors import LeaderNotAvailableError
from kafka.partitioner import HashedPartitioner, RoundRobinPartitioner
from kafka.partitioner.base import Partitioner
from kafka.producer import KeyedProducer
from kafka.structs import Message
from test.fake_client import FakeClient, LaterFakeClient


class Lengths(Partitioner):
    """Choose by the length of the key."""

    def partition(self, key):
        return self.partitions[len(key) % len(self.partitions)]


def requests(client):
    return [args[0][0] for args, _ in client.called('send_produce_request')]


def test_the_partitioner_chooses_and_the_key_goes_along():
    client = FakeClient((0, 0), (0, 0), (0, 0))
    producer = KeyedProducer(client, partitioner=Lengths)
    producer.send_messages('topic', b'four', b'a', b'b')
    producer.send_messages('topic', b'fives', b'c')
    one, two = requests(client)
    assert (one.topic, one.partition) == (b'topic', 1)
    assert one.messages == [Message(0, 0, b'four', b'a'), Message(0, 0, b'four', b'b')]
    assert two.partition == 2


def test_one_partitioner_is_kept_per_topic_under_its_bytes_name():
    client = FakeClient((0, 0), (0, 0))
    producer = KeyedProducer(client, partitioner=RoundRobinPartitioner)
    for topic in ('one', b'one', 'two'):
        producer.send_messages(topic, b'key', b'a')
    assert [r.partition for r in requests(client)] == [0, 1, 0]
    assert sorted(producer.partitioners) == [b'one', b'two']
    assert producer.partitioners[b'one'].partitions == [0, 1]
    assert len(client.called('get_partition_ids_for_topic')) == 2


def test_the_default_partitioner_is_the_hashed_one():
    producer = KeyedProducer(FakeClient())
    assert producer.partitioner_class is HashedPartitioner
    assert repr(producer) == '<KeyedProducer batch=False>'


def test_metadata_is_loaded_for_an_unknown_topic():
    client = FakeClient()
    client.known = False
    KeyedProducer(client).send_messages('new', b'key', b'a')
    assert client.called('load_metadata_for_topics') == [((b'new',), {})]


def test_a_message_may_be_none_where_there_is_a_key():
    client = FakeClient()
    producer = KeyedProducer(client)
    producer.send_messages(b'topic', b'key', None)
    assert requests(client)[0].messages == [Message(0, 0, b'key', None)]
    with pytest.raises(TypeError, match='msg 1'):
        producer.send_messages(b'topic', None, None)


def test_a_key_may_be_none():
    client = FakeClient()
    KeyedProducer(client).send_messages(b'topic', None, b'a')
    assert requests(client)[0].messages == [Message(0, 0, None, b'a')]


@pytest.mark.parametrize('message', ['text', 12, ['l'], ('t',), {}])
def test_messages_of_other_types_are_refused_before_anything_is_done(message):
    client = FakeClient()
    with pytest.raises(TypeError, match='msg 1'):
        KeyedProducer(client).send_messages(b'topic', b'key', message)
    assert client.calls == []


@pytest.mark.parametrize('key', ['text', 12, bytearray(b'k')])
def test_keys_of_other_types_are_refused_before_anything_is_done(key):
    client = FakeClient()
    with pytest.raises(TypeError, match='key'):
        KeyedProducer(client).send_messages(b'topic', key, b'a')
    assert client.calls == []


def test_a_partitioner_that_chooses_no_number_is_found_out():
    class Bad(Partitioner):
        def partition(self, key):
            return 'first'

    with pytest.raises(TypeError, match='partition'):
        KeyedProducer(FakeClient(), partitioner=Bad).send_messages(b'topic', b'key', b'a')


def test_send_is_deprecated_and_the_warning_points_at_the_caller():
    client = FakeClient()
    with pytest.warns(DeprecationWarning, match='send_messages') as caught:
        KeyedProducer(client).send('topic', b'key', b'a')
    assert caught[0].filename == __file__
    assert requests(client)[0].messages == [Message(0, 0, b'key', b'a')]


def test_a_partitioner_that_cannot_be_called_is_named():
    with pytest.raises(TypeError, match='partitioner must be a class, not int'):
        KeyedProducer(FakeClient(), partitioner=5)


def test_new_topic_is_loaded_though_it_is_being_created_with_a_client_of_1_x():
    client = LaterFakeClient()
    client.known = False
    with pytest.raises(LeaderNotAvailableError):
        KeyedProducer(client).send_messages('topic', b'key', b'a')
    client.answers['load_metadata_for_topics'] = [lambda *_, **__: setattr(client, 'known', True)]
    client.calls.clear()
    KeyedProducer(client).send_messages('topic', b'key', b'a')
    assert client.called('load_metadata_for_topics') == [
        (('topic',), {'ignore_leadernotavailable': True})
    ]
