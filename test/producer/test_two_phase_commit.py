"""Transactions that one producer prepares, and somebody else ends."""

from __future__ import annotations

import pickle
import time

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    ProducerFencedError,
    UnsupportedVersionError,
)
from kafka.producer import KafkaProducer
from kafka.producer.two_phase_commit import PreparedTransactions, is_over
from kafka.testing import Cluster
from kafka.testing.faults import Error

#: The last with transactions of version 1 only, and one with version 2.
RELEASES = ['2.8', '4.4']


@pytest.fixture(params=RELEASES)
def cluster(request):
    with Cluster(
        version=request.param, topics={'t': 1}, transaction_abort_interval_ms=100
    ) as cluster:
        yield cluster


@pytest.fixture
def prepare(cluster):
    """Return a function that prepares a transaction with a record, and leaves."""

    def make(name, value=b'x', **config):
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id=name, **config
        ) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send('t', value)
            return producer.prepare_transaction()

    return make


@pytest.fixture
def client(cluster):
    with PreparedTransactions(bootstrap_servers=cluster.bootstrap, max_block_ms=5000) as client:
        yield client


def committed(cluster):
    """Return the values that readers of committed records see, once nothing is open."""
    with KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, isolation_level='read_committed'
    ) as consumer:
        place = TopicPartition('t', 0)
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        found = []
        while consumer.position(place) < end:
            for records in consumer.poll(1000).values():
                found += [each.value for each in records]
        return found


def test_somebody_else_commits(cluster, prepare, client):
    state = pickle.loads(pickle.dumps(prepare('a')))
    assert client.check({'a': state}) == {}
    assert client.commit({'a': state}) == {}
    assert client.commit({'a': state}) == {}  # as often as one likes
    assert client.fence(['a']) == {}  # when this answers the end is written
    assert committed(cluster) == [b'x']


def test_somebody_else_aborts(cluster, prepare, client):
    states = {'a': prepare('a'), 'b': prepare('b', b'y')}
    assert client.abort(states) == {}
    assert client.abort(states) == {}
    assert client.fence(states) == {}
    assert committed(cluster) == []


def test_an_end_is_not_changed(prepare, client):
    state = prepare('a')
    client.commit({'a': state})
    assert is_over(client.abort({'a': state})['a'])
    other = prepare('b')
    client.abort({'b': other})
    assert is_over(client.commit({'b': other})['b'])


def test_the_next_producer_of_the_id_aborts_it(cluster, prepare, client):
    first = prepare('a', b'1')
    second = prepare('a', b'2')
    errors = {**client.check({'a': first}), **client.commit({'a': first})}
    assert is_over(errors['a']) and "transactional id 'a'" in str(errors['a'])
    assert client.commit({'a': second}) == {} and client.fence(['a']) == {}
    assert committed(cluster) == [b'2']


def test_who_is_fenced_cannot_commit_nor_send(cluster, client):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send('t', b'x')
        state = producer.prepare_transaction()
        assert client.fence(['a']) == {}
        assert is_over(client.commit({'a': state})['a'])
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()


def test_open_transactions_are_listed_by_their_first_letters(cluster, prepare, client):
    prepare('a-1')
    prepare('a-2')
    prepare('b-1')
    found = client.open_ids('a-')
    if cluster.state.release.version >= (3, 0):
        assert found == ['a-1', 'a-2']
        client.fence(found)
        assert client.open_ids('') == ['b-1']
    else:
        assert found is None


def test_ids_of_producers_that_have_not_begun_are_listed_too(cluster, prepare, client):
    state = prepare('a-1')
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a-2') as producer:
        producer.init_transactions()
        found = client.held_ids('a-')
        if found is None:
            assert cluster.state.release.version < (3, 0)
            return
        assert (found, client.open_ids('a-')) == (['a-1', 'a-2'], ['a-1'])
        client.commit({'a-1': state})
        assert client.held_ids('a-') == ['a-2']
        client.fence(['a-2'])
        producer.begin_transaction()
        with pytest.raises(ProducerFencedError):
            producer.send('t', b'x').get(5)


def test_brokers_that_read_their_log_of_transactions_are_waited_for_a_little():
    with Cluster(version='4.4', topics={'t': 1}) as cluster, PreparedTransactions(
        bootstrap_servers=cluster.bootstrap, max_block_ms=5000
    ) as client, KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as other:
        other.init_transactions()
        cluster.faults.add(Error(14), 'ListTransactions', times=2)
        assert client.held_ids('') == ['a']
        cluster.faults.add(Error(31), 'ListTransactions')
        with pytest.raises(ClusterAuthorizationFailedError):
            client.held_ids('')
    with Cluster(version='4.4') as cluster, PreparedTransactions(
        bootstrap_servers=cluster.bootstrap, max_block_ms=100
    ) as client:
        cluster.faults.add(Error(14), 'ListTransactions', times=1000)
        assert client.held_ids('') == []


def test_the_producer_may_end_it_itself(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        for value, end in ((b'1', producer.commit_transaction), (b'2', producer.abort_transaction)):
            producer.begin_transaction()
            producer.send('t', value)
            producer.prepare_transaction()
            with pytest.raises(IllegalStateError, match='open transaction'):
                producer.send('t', b'y')
            end()
        producer.begin_transaction()
        producer.abort_transaction()
    assert committed(cluster) == [b'1']


def test_a_record_that_failed_cannot_be_prepared(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send('t', b'x')
        producer.purge()
        with pytest.raises(Exception, match='prepare_transaction.*abort_transaction'):
            producer.prepare_transaction()


def test_nothing_is_not_prepared(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        with pytest.raises(IllegalStateError, match='begin_transaction'):
            producer.prepare_transaction()
        producer.begin_transaction()
        with pytest.raises(IllegalStateError, match='nothing was sent'):
            producer.prepare_transaction()


def test_offsets_alone_can_be_prepared(cluster, client):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id='a') as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition('t', 0): (5, '')}, 'g')
        state = producer.prepare_transaction()
    assert state.partition is None and client.check({'a': state}) == {}
    assert client.commit({'a': state}) == {} and client.fence(['a']) == {}
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id='g') as consumer:
        assert consumer.committed(TopicPartition('t', 0)) == 5


def test_a_transaction_that_timed_out_cannot_be_committed(prepare, client):
    state = prepare('a', transaction_timeout_ms=500)
    deadline = time.monotonic() + 30
    while not client.check({'a': state}):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert is_over(client.commit({'a': state})['a'])


def test_a_coordinator_that_moves_is_followed(prepare, client, cluster):
    state = prepare('a')
    cluster.faults.add(Error(16), 'EndTxn', times=2)
    assert client.commit({'a': state}) == {}


def test_a_coordinator_that_never_answers_is_waited_for_until_the_time_is_over(prepare, cluster):
    state = prepare('a')
    cluster.faults.add(Error(15), 'EndTxn', times=1000)
    with PreparedTransactions(bootstrap_servers=cluster.bootstrap, max_block_ms=300) as client:
        error = client.commit({'a': state})['a']
    assert isinstance(error, KafkaTimeoutError) and 'max_block_ms' in str(error)


def test_what_may_not_be_used_is_told_with_its_name(prepare, client, cluster):
    state = prepare('a')
    cluster.faults.add(Error(53), 'EndTxn', times=1)
    error = client.commit({'a': state})['a']
    assert error.errno == 53 and "transactional id 'a'" in str(error) and not is_over(error)


def test_old_brokers_are_told_by_the_version_that_is_missing():
    with Cluster(version='0.10.2', topics={'t': 1}) as cluster, PreparedTransactions(
        bootstrap_servers=cluster.bootstrap, max_block_ms=2000
    ) as client:
        assert isinstance(client.fence(['a'])['a'], UnsupportedVersionError)


def test_nobody_there():
    with PreparedTransactions(bootstrap_servers='127.0.0.1:1', max_block_ms=200) as client:
        with pytest.raises(NoBrokersAvailable):
            client.fence(['a'])


def test_it_shows_its_state_and_no_secret(cluster):
    client = PreparedTransactions(bootstrap_servers=cluster.bootstrap, sasl_plain_password='geheim')
    assert repr(client) == '<PreparedTransactions new>'
    client.open_ids('')
    assert repr(client) == '<PreparedTransactions connected>'
    client.close()
    client.close()
    assert repr(client) == '<PreparedTransactions closed>'
    with pytest.raises(IllegalStateError, match='closed'):
        client.open_ids('')
