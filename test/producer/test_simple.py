"""kafka.producer.simple: the partitions of a topic in turn."""

from __future__ import annotations

import pytest

from kafka.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kafka.producer import SimpleProducer, simple
from test.fake_client import FakeClient, LaterFakeClient


def partitions_of(client):
    return [args[0][0].partition for args, _ in client.called('send_produce_request')]


def test_each_call_goes_to_the_next_partition_as_a_whole():
    client = FakeClient((0, 0), (0, 0), (0, 0))
    producer = SimpleProducer(client, random_start=False)
    for _ in range(4):
        producer.send_messages(b'topic', b'a', b'b')
    assert partitions_of(client) == [0, 1, 2, 0]
    assert all(len(args[0][0].messages) == 2 for args, _ in client.called('send_produce_request'))


@pytest.mark.parametrize('on_the_class', [True, False])
def test_method_that_a_program_put_in_the_place_of_the_senders_own_is_called(on_the_class):
    class Mine(SimpleProducer):
        pass

    producer = Mine(FakeClient((0, 0)), random_start=False)
    sent = []
    if on_the_class:
        Mine._send_messages = lambda _, *arguments, key=None: sent.append((*arguments, key))
    else:
        producer._send_messages = lambda *arguments, key=None: sent.append((*arguments, key))
    producer.send_messages(b'topic', b'a', b'b')
    assert sent == [(b'topic', 0, b'a', b'b', None)]
    assert partitions_of(producer.client) == []


def test_each_topic_has_its_own_turn_and_text_and_bytes_are_one_topic():
    client = FakeClient((0, 0), (0, 0))
    producer = SimpleProducer(client, random_start=False)
    for topic in ('one', 'two', b'one', b'two'):
        producer.send_messages(topic, b'a')
    assert partitions_of(client) == [0, 0, 1, 1]


def test_partitions_are_taken_in_sorted_order():
    client = FakeClient()
    client.answers['get_partition_ids_for_topic'] = [[2, 0, 1]]
    producer = SimpleProducer(client, random_start=False)
    for _ in range(3):
        producer.send_messages(b'topic', b'a')
    assert partitions_of(client) == [0, 1, 2]


def test_a_random_start_goes_on_in_order(monkeypatch):
    monkeypatch.setattr(simple.random, 'randrange', lambda count: count - 1)
    client = FakeClient((0, 0), (0, 0), (0, 0))
    producer = SimpleProducer(client)
    for _ in range(4):
        producer.send_messages(b'topic', b'a')
    assert partitions_of(client) == [2, 0, 1, 2]


def test_a_random_start_reaches_every_partition():
    client = FakeClient((0, 0), (0, 0), (0, 0))
    for _ in range(200):
        SimpleProducer(client).send_messages(b'topic', b'a')
    assert set(partitions_of(client)) == {0, 1, 2}


def test_new_topic_is_waited_for_with_a_client_of_1_x():
    client = LaterFakeClient()
    client.known = False
    SimpleProducer(client).send_messages('topic', b'a')
    assert client.called('ensure_topic_exists') == [(('topic',), {})]
    assert client.called('load_metadata_for_topics') == []


def test_metadata_is_loaded_only_for_an_unknown_topic_and_only_once():
    client = FakeClient()
    producer = SimpleProducer(client)
    producer.send_messages('known', b'a')
    assert client.called('load_metadata_for_topics') == []
    client.known = False
    producer.send_messages('new', b'a')
    producer.send_messages('new', b'a')
    assert client.called('load_metadata_for_topics') == [((b'new',), {})]


@pytest.mark.parametrize('error', [UnknownTopicOrPartitionError, LeaderNotAvailableError])
def test_what_loading_metadata_reports_is_raised(error):
    client = FakeClient()
    client.known = False
    client.answers['load_metadata_for_topics'] = [error('topic')]
    with pytest.raises(error):
        SimpleProducer(client).send_messages(b'topic', b'a')


def test_a_topic_without_partitions_is_unknown_and_asked_for_again_next_time():
    client = FakeClient()
    client.answers['get_partition_ids_for_topic'] = [[]]
    producer = SimpleProducer(client)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_messages(b'topic', b'a')
    producer.send_messages(b'topic', b'a')
    assert partitions_of(client) == [0]


def test_a_bad_message_does_not_cost_a_turn_nor_a_look_at_the_metadata():
    client = FakeClient((0, 0), (0, 0))
    producer = SimpleProducer(client, random_start=False)
    with pytest.raises(TypeError, match='msg 1'):
        producer.send_messages(b'topic', 'text')
    assert client.calls == []
    with pytest.raises(TypeError, match='msg 1'):
        producer.send_messages(b'topic', None)


def test_options_of_the_base_class_go_through():
    client = FakeClient()
    producer = SimpleProducer(client, -1, 5, random_start=False, sync_fail_on_error=False)
    assert (producer.req_acks, producer.ack_timeout, producer.random_start) == (-1, 5, False)
    assert repr(producer) == '<SimpleProducer batch=False>'
