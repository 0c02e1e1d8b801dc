"""The fetcher on embedded brokers of every age, with faults, moves and long polls."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError, RecordTooLargeError
from kafka.net.node_connection import ConnectionState
from kafka.net.security import SecuritySettings
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.structs import TopicPartition
from kafka.testing.errors import FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH
from kafka.testing.faults import DropResponse, Error, Throttle
from test.consumer.fetching import Rig

RELEASES = {
    '0.8.2.2': 0,
    '0.9.0.1': 1,
    '0.10.2.2': 3,
    '0.11.0.3': 5,
    '1.1.1': 7,
    '2.8.2': 12,
    '4.4.0': 18,
}
T0 = TopicPartition('t', 0)


@pytest.fixture
def rig_of():
    rigs = []

    def make(*args, **more):
        rigs.append(Rig(*args, **more))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


def fill(rig, count=4):
    for n in range(count):
        for at in rig.partitions:
            rig.produce(
                at.partition, b'%d-%d-a' % (at.partition, n), b'%d-%d-b' % (at.partition, n)
            )


@pytest.mark.parametrize('release, version', list(RELEASES.items()))
def test_everything_comes_in_order_from_every_release(rig_of, release, version):
    rig = rig_of(release, brokers=2, partitions=4)
    fill(rig)
    rig.begin_all()
    rig.drain()
    fill(rig, 2)
    rig.drain()
    assert {each.version for each in rig.fetches} == {version}
    assert rig.subscription.state(T0).highwater == len(rig.sent[T0])


@pytest.mark.parametrize('release', ['1.1.1', '4.4.0'])
def test_a_session_names_everything_once(rig_of, release):
    rig = rig_of(release, partitions=5)
    fill(rig, 2)
    rig.begin_all()
    rig.drain()
    fill(rig, 2)
    rig.drain()
    full = [each for each in rig.fetches if each.request.session_epoch == 0]
    assert len(full) == 1
    rig.rest(3.0)
    assert rig.fetches[-1].request.topics == []


@pytest.mark.parametrize('release', ['0.8.2.2', '1.1.1', '4.4.0'])
def test_an_idle_fetcher_asks_once_in_the_time_that_brokers_wait(rig_of, release):
    rig = rig_of(release)
    rig.begin_all()
    rig.rest(1.0)
    before = len(rig.fetches)
    rig.rest(10.0)
    assert 15 <= len(rig.fetches) - before <= 22


def test_what_is_new_comes_at_once_and_not_when_time_is_over(rig_of):
    rig = rig_of(max_wait=0.9)
    rig.begin_all()
    rig.rest(1.0)
    rig.produce(0, b'v')
    begun = rig.loop.time()
    rig.drain()
    assert rig.loop.time() - begun < 0.3


@pytest.mark.parametrize('release', ['0.8.2.2', '0.10.2.2', '1.1.1', '2.8.2', '4.4.0'])
def test_with_tiny_limits_every_partition_has_its_turn(rig_of, release):
    rig = rig_of(release, partitions=6, max_bytes=150, max_partition_bytes=150)
    for n in range(6):
        for _ in range(6):
            rig.produce(n, b'x' * 60)
    rig.begin_all()
    while not all(rig.got.values()):
        rig.poll()
    assert max(map(len, rig.got.values())) <= 3, 'nobody is far ahead'
    rig.drain()


@pytest.mark.parametrize('release', ['0.8.2.2', '0.9.0.1'])
def test_old_brokers_are_asked_for_more_where_a_message_is_cut_off(rig_of, release):
    rig = rig_of(release, max_partition_bytes=100, max_bytes=5000)
    rig.produce(0, b'a')
    rig.produce(0, b'x' * 1000)
    rig.produce(0, b'b')
    rig.begin_all()
    rig.drain()


def test_a_message_larger_than_all_limits_is_told_and_can_be_stepped_over(rig_of):
    rig = rig_of('0.9.0.1', max_partition_bytes=100, max_bytes=500)
    rig.produce(0, b'a')
    rig.produce(0, b'x' * 1000)
    rig.produce(0, b'b')
    rig.begin_all()
    while not rig.fetcher.errors:
        rig.poll()
    (error,) = rig.fetcher.errors
    assert isinstance(error, RecordTooLargeError) and error.args[1:] == ({T0: 1}, 500)
    assert rig.got[T0] == [b'a']
    rig.fetcher.errors.clear()
    rig.subscription.seek(T0, 2)
    rig.sent[T0].remove(b'x' * 1000)
    rig.drain()


def test_newer_brokers_let_the_first_batch_pass(rig_of):
    rig = rig_of('0.10.2.2', max_partition_bytes=100, max_bytes=500)
    rig.produce(0, b'x' * 1000)
    rig.begin_all()
    rig.drain()
    assert not rig.fetcher.errors


@pytest.mark.parametrize('release', ['0.9.0.1', '1.1.1', '2.8.2', '4.4.0'])
def test_leaders_that_move_are_followed(rig_of, release):
    rig = rig_of(release, brokers=3, partitions=3)
    fill(rig, 2)
    rig.begin_all()
    rig.drain()
    for at in rig.partitions:
        leader = rig.cluster.leader('t', at.partition)
        rig.cluster.move_leader('t', at.partition, (leader + 1) % 3)
    rig.rest(2.0)
    rig.loop.run(rig.pool.refreshed(), 30)
    fill(rig, 2)
    rig.drain()


@pytest.mark.parametrize('release', ['0.9.0.1', '1.1.1', '2.8.2', '4.4.0'])
def test_brokers_that_die_and_come_back_lose_nothing(rig_of, release):
    rig = rig_of(release, brokers=3, partitions=3)
    fill(rig, 3)
    rig.begin_all()
    rig.poll()
    node = rig.cluster.leader('t', 0)
    rig.cluster.kill(node)
    rig.rest(2.0)
    rig.drain(60.0)
    rig.cluster.restart(node)
    rig.rest(2.0)
    fill(rig, 2)
    rig.drain(60.0)


@pytest.mark.parametrize('release', ['0.9.0.1', '1.1.1', '4.4.0'])
def test_answers_that_are_lost_are_asked_for_again(rig_of, release):
    rig = rig_of(release, partitions=3)
    rig.cluster.faults.add(DropResponse(), api='Fetch', probability=0.3, times=8)
    fill(rig, 5)
    rig.begin_all()
    rig.drain(200.0)


@pytest.mark.parametrize('code', [FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, 70, 71, 3, 6])
def test_errors_that_pass_cost_nothing_but_time(rig_of, code):
    rig = rig_of(partitions=3)
    fill(rig, 3)
    rig.begin_all()
    with rig.cluster.faults.add(Error(code), api='Fetch', times=3):
        rig.drain(60.0)
    assert not rig.fetcher.errors


def test_a_throttled_fetcher_waits_as_long_as_it_is_told(rig_of):
    rig = rig_of()
    rig.begin_all()
    rig.rest(2.0)
    with rig.cluster.faults.add(Throttle(2000), api='Fetch', times=100):
        rig.rest(1.0)
        before = len(rig.fetches)
        rig.rest(10.0)
    assert len(rig.fetches) - before <= 6


def test_a_nearer_replica_is_read_from(rig_of):
    rig = rig_of('4.4.0', brokers=3, cluster={'racks': ['a', 'b', 'c']}, client_rack='b')
    selector = 'org.apache.kafka.common.replica.RackAwareReplicaSelector'
    rig.cluster.state.configs[4, ''] = {'replica.selector.class': selector}
    fill(rig, 2)
    rig.begin_all()
    rig.drain()
    fill(rig, 2)
    rig.cluster.forget_requests()
    rig.drain()
    assert {each.node for each in rig.fetches} == {1}


def test_figures_are_told(rig_of):
    rig = rig_of()
    rig.produce(0, b'v')
    rig.begin_all()
    rig.drain()
    node, seconds, throttle_ms, sizes = rig.figures.answers[0]
    assert (node, throttle_ms) == (0, 0) and seconds > 0 and sizes['t'] > 60


def test_closing_ends_sessions_at_the_broker(rig_of):
    rig = rig_of()
    rig.begin_all()
    rig.rest(1.0)
    (sessions,) = rig.cluster.state.fetch_sessions.values()
    assert len(sessions) == 1
    rig.fetcher.close()
    rig.rest(2.0)
    assert len(sessions) == 0


def test_records_in_pieces_come_in_order(rig_of):
    rig = rig_of(partitions=1)
    rig.produce(0, *[b'%d' % n for n in range(10)])
    rig.begin_all()
    rig.loop.wait(rig.fetcher.has_news, 5)
    while rig.take(3):
        pass
    assert rig.got == rig.sent


@pytest.mark.parametrize('is_under_way', [True, False])
def test_a_connection_that_the_pool_closed_by_itself_raises_nothing(rig_of, is_under_way):
    rig = rig_of()
    rig.begin_all()
    rig.rest(0.2)
    link = rig.pool.fetch_link(0)
    link.close()  # as the pool does when it looks for the cluster anew
    if not is_under_way:
        rig.loop.run(rig.fetcher._connect(0, rig.fetcher._nodes[0], link), 5)
    rig.rest(0.5)
    assert not rig.fetcher.errors
    fill(rig, 1)
    rig.drain()


# ---------------------------------------------------------------- a connection of its own


def asks_others(rig):
    """Return the seconds that an answer about something else takes."""
    began = rig.loop.time()
    rig.loop.run(rig.pool.send(MetadataRequest(topics=[MetadataRequestTopic(name='t')]), 0), 30)
    return rig.loop.time() - began


@pytest.mark.parametrize('release', ['0.8.2.2', '0.9.0.1', '4.4.0'])
def test_nothing_waits_behind_a_fetch_that_a_broker_keeps(rig_of, release):
    rig = rig_of(release, max_wait=1.4)
    rig.begin_all()
    rig.rest(0.5)
    assert rig.fetcher.in_flight == 1
    assert asks_others(rig) < 0.2
    assert rig.cluster.requests[-1].api.name == 'METADATA'
    assert {each.connection for each in rig.fetches} != {rig.cluster.requests[-1].connection}


def test_a_broker_that_throttles_fetches_is_asked_other_things(rig_of):
    rig = rig_of()
    fill(rig, 1)
    rig.cluster.faults.add(Throttle(5000), 'Fetch', times=1)
    rig.begin_all()
    rig.drain()
    rig.rest(1.0)
    assert len(rig.fetches) == 1 and asks_others(rig) < 0.2
    rig.rest(5.0)
    assert len(rig.fetches) > 1


def test_a_connection_that_is_lost_is_made_anew_and_the_other_stays(rig_of):
    rig = rig_of()
    rig.begin_all()
    rig.rest(1.0)
    rig.pool.fetch_link(0)._lose(KafkaConnectionError('gone'))
    before = asks_others(rig), rig.cluster.requests[-1].connection
    fill(rig, 1)
    rig.drain()
    assert asks_others(rig) < 0.2 and rig.cluster.requests[-1].connection == before[1]
    assert len({each.connection for each in rig.fetches}) == 2
    assert not rig.fetcher.errors


def test_a_connection_that_nobody_needs_is_closed_and_made_anew(rig_of):
    rig = rig_of(net={'idle_timeout': 20.0})
    rig.begin_all()
    rig.rest(1.0)
    for at in rig.partitions:
        rig.subscription.pause(at)
    rig.rest(30.0)
    assert rig.pool.fetch_link(0).state is ConnectionState.DISCONNECTED and not rig.fetcher.errors
    fill(rig, 1)
    for at in rig.partitions:
        rig.subscription.resume(at)
    rig.drain()


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_the_login_of_fetches_is_renewed(rig_of, mechanism):
    options = {
        'security_protocol': 'SASL_PLAINTEXT',
        'sasl_mechanism': mechanism,
        'sasl_plain_username': 'alice',
        'sasl_plain_password': 'secret',
    }
    rig = rig_of(
        cluster={'sasl': {'alice': 'secret'}, 'connections_max_reauth_ms': 10000},
        net={'security': SecuritySettings.from_options(options)},
    )
    rig.begin_all()
    rig.rest(60.0)
    (of_fetches,) = {each.connection for each in rig.fetches}
    logins = [each for each in rig.cluster.requests if each.api.name == 'SASL_HANDSHAKE']
    assert 6 <= sum(each.connection == of_fetches for each in logins) <= 9
    fill(rig, 1)
    rig.drain()
    assert not rig.fetcher.errors
