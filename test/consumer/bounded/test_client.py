"""Connections that readers share one after the other, on an embedded cluster in memory."""

from __future__ import annotations

import pickle

import pytest

from kafka import config as options
from kafka.consumer.bounded.client import ReaderClient
from kafka.consumer.bounded.reader import BoundedReader
from kafka.errors import IllegalStateError, KafkaConfigurationError, NoBrokersAvailable
from kafka.net.client import NetworkClient
from test.consumer.written_logs import Stage, values
from test.simulation.loop import SimLoop


@pytest.fixture
def stage():
    made = Stage()
    yield made
    made.close()


@pytest.fixture
def client(stage):
    with_servers = {'bootstrap_servers': stage.cluster.bootstrap, 'request_timeout_ms': 2000}
    config = options.resolve(options.CONSUMER, with_servers)
    made = ReaderClient(
        config,
        'reader',
        lambda settings, name: NetworkClient(settings, loop=SimLoop(stage.cluster)),
    )
    yield made
    made.close()


def connections(stage):
    return sum(each.api.name == 'API_VERSIONS' for each in stage.cluster.requests)


def test_nothing_is_connected_before_it_is_used(stage, client):
    BoundedReader('t', client=client).close()
    assert client.loop is None and connections(stage) == 0


def test_the_next_reader_goes_on_with_the_connections(stage, client):
    stage.write(b'a', b'b', b'c')
    with BoundedReader('t', 0, 1, client=client) as reader:
        assert values(reader) == [b'a']
    before = connections(stage)
    with BoundedReader('t', 1, client=client) as reader:
        assert values(reader) == [b'b', b'c']
    assert connections(stage) == before


def test_a_reader_that_was_left_in_the_middle_is_no_hindrance(stage, client):
    for number in range(20):
        stage.write(b'%d' % number)
    with BoundedReader('t', client=client) as reader:
        assert reader.read(1)[0].value == b'0'
    with BoundedReader('t', 19, client=client) as reader:
        assert values(reader) == [b'19']


def test_a_cluster_that_was_not_found_is_looked_for_again(stage, client):
    stage.cluster.kill(0)
    with BoundedReader('t', client=client) as reader, pytest.raises(NoBrokersAvailable):
        reader.read()
    stage.cluster.restart(0)
    stage.write(b'a')
    with BoundedReader('t', client=client) as reader:
        assert values(reader) == [b'a']


def test_options_are_those_of_the_client(client):
    with pytest.raises(KafkaConfigurationError, match="client's"):
        BoundedReader('t', client=client, check_crcs=False)
    assert BoundedReader('t', client=client).config is client.config


def test_a_reader_with_such_a_client_is_no_pickle(client):
    with pytest.raises(IllegalStateError, match='pickled'):
        pickle.dumps(BoundedReader('t', client=client))


def test_it_says_how_it_is(stage, client):
    assert repr(client) == '<ReaderClient new>'
    client.connected()
    assert repr(client) == '<ReaderClient connected>'
    client.close()
    assert repr(client) == '<ReaderClient closed>'
    with pytest.raises(IllegalStateError):
        client.connected()
