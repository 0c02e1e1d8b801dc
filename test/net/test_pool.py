"""All brokers of a cluster: bootstrap, routes, refreshing, coordinators, beginning anew."""

from __future__ import annotations

import random
import socket
import time

import pytest

from kafka.errors import (
    GroupAuthorizationFailedError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
    UnsupportedVersionError,
)
from kafka.net import coordinators
from kafka.net.metadata_updater import metadata_request
from kafka.net.node_connection import ConnectionState
from kafka.net.pool import Pool
from kafka.net.security import SecuritySettings
from kafka.net.settings import NetSettings, parse_servers
from kafka.protocol.admin.groups import DescribeGroupsRequest
from kafka.protocol.commit import OffsetFetchRequest
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.errors import COORDINATOR_NOT_AVAILABLE, GROUP_AUTHORIZATION_FAILED
from kafka.testing.faults import Cut, Error, Hang
from test.hostile_servers import Server
from test.simulation.loop import SimLoop

RELEASES = ['0.8.2.2', '0.9.0.1', '0.10.0.1', '0.11', '2.8', '4.4']
NODES = {0, 1, 2}


@pytest.fixture
def sim():
    """Return a cluster in memory, a loop and a pool on it, bootstrapped."""
    with MemoryCluster(version='4.4', brokers=3, seed=1, topics={'t': 3}) as cluster:
        loop = SimLoop(cluster)
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(), 60)
        cluster.forget_requests()
        yield cluster, loop, pool
        pool.close()
        loop.close()


def pool_of(loop, bootstrap, **settings):
    return Pool(loop, NetSettings(servers=parse_servers(bootstrap), **settings), random.Random(5))


def asked(cluster, api):
    """Return the nodes that got requests of one kind."""
    return [each.node for each in cluster.requests if each.api.name == api]


def end_offsets(topic, *partitions):
    asked = [ListOffsetsPartition(partition_index=p, timestamp=-1) for p in partitions]
    topics = [ListOffsetsTopic(name=topic, partitions=asked)]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


# ---------------------------------------------------------------- every release, over sockets


@pytest.mark.parametrize('release', RELEASES)
def test_every_release_is_found_and_asked(loop, release):
    with Cluster(version=release, brokers=3, topics={'t': 3}) as cluster:
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(20), 30)
        assert {broker.nodeId for broker in pool.cluster.brokers()} == NODES
        loop.run(pool.wait_for_topic('t', 20), 30)
        assert pool.cluster.partitions_for_topic('t') == {0, 1, 2}
        assert loop.run(pool.coordinator(0, 'group'), 30) == cluster.coordinator('group')
        for partition in range(3):
            answer = loop.run(pool.send(end_offsets('t', partition), highest=1), 30)
            assert answer.topics[0].partitions[0].error_code == 0
        pool.close()


def test_a_broker_of_0_8_that_has_no_topic_lists_no_brokers_and_is_asked_all_the_same(loop):
    with Cluster(version='0.8.2.2', brokers=2) as cluster:
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(20), 30)
        loop.run(pool.wait_for_topic('new', 20), 30)
        assert len(pool.cluster.brokers()) == 2
        pool.close()


def test_brokers_before_0_8_2_list_those_alone_that_have_what_was_asked_about(caplog):
    """A new topic that has no leader yet is nothing to warn of, and costs no other its broker."""
    with MemoryCluster(version='0.8.1.1', brokers=4, seed=1, topics={'t': 1}) as cluster:
        loop = SimLoop(cluster)
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(), 60)
        for name in 'abcd':
            loop.run(pool.wait_for_topic(name, 20), 30)
        leaders = {pool.cluster.leader_for_partition(TopicPartition(name, 0)) for name in 'abcd'}
        assert len(leaders) > 1
        assert leaders <= {broker.nodeId for broker in pool.cluster.brokers()}
        pool.close()
        loop.close()
    assert [record for record in caplog.records if record.name.startswith('kafka.net')] == []


# ---------------------------------------------------------------- bootstrap


def test_nobody_there_is_told_with_all_attempts_in_time(loop):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))  # and does not listen
        port = taken.getsockname()[1]
        pool = pool_of(loop, '127.0.0.1:%d' % port)
        began = time.monotonic()
        with pytest.raises(NoBrokersAvailable) as raised:
            loop.run(pool.bootstrap(0.5), 5)
        assert 0.49 <= time.monotonic() - began < 4  # refusals do not end it before its time
    attempt = raised.value.attempts[0]
    assert (attempt.stage, attempt.ip) == ('TCP', '127.0.0.1')
    assert attempt.address == '127.0.0.1:%d' % port
    assert 'TCP after' in str(raised.value)
    assert 'nothing listens there' in str(raised.value)


def test_a_web_server_is_recognised(loop):
    with Server(lambda data: (b'HTTP/1.1 400 Bad Request\r\n\r\n', 'close')) as server:
        pool = pool_of(loop, server.address)
        with pytest.raises(NoBrokersAvailable, match='answered with HTTP') as raised:
            loop.run(pool.bootstrap(3), 20)
    assert raised.value.attempts[0].stage == 'ApiVersions'


def test_what_was_under_way_when_time_was_up_is_told_too(loop):
    with Server() as silent:
        with pytest.raises(NoBrokersAvailable, match='said nothing') as raised:
            loop.run(pool_of(loop, silent.address).bootstrap(0.5), 20)
    assert [each.stage for each in raised.value.attempts] == ['ApiVersions']


def test_a_server_that_says_nothing_holds_the_others_up_for_a_second_only(loop):
    with Server() as silent, Cluster(version='4.4') as cluster:
        servers = '%s,%s' % (silent.address, cluster.bootstrap)
        for seed in (0, 1, 2, 3):  # the order is drawn
            settings = NetSettings(servers=parse_servers(servers), setup_timeout=100.0)
            pool = Pool(loop, settings, random.Random(seed))
            began = time.monotonic()
            loop.run(pool.bootstrap(100), 120)
            assert time.monotonic() - began < 50  # a busy machine takes some seconds for one
            pool.close()


def test_wrong_credentials_are_told_at_once_and_each_time(loop):
    with Cluster(version='4.4', sasl={'alice': 'right'}) as cluster:
        security = SecuritySettings.from_options(
            {
                'security_protocol': 'SASL_PLAINTEXT',
                'sasl_mechanism': 'SCRAM-SHA-256',
                'sasl_plain_username': 'alice',
                'sasl_plain_password': 'canary',
            }
        )
        pool = pool_of(loop, cluster.bootstrap, security=security)
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(SaslAuthenticationFailedError) as raised:
                loop.run(pool.bootstrap(20), 30)
            assert time.monotonic() - began < 5
            assert raised.value.attempts[0].stage == 'SASL'
            assert 'canary' not in str(raised.value) + repr(raised.value.attempts)


def test_no_servers(loop):
    with pytest.raises(NoBrokersAvailable, match='none'):
        loop.run(pool_of(loop, '').bootstrap(0.2), 5)


# ---------------------------------------------------------------- routes


def test_requests_go_where_they_belong(sim):
    cluster, loop, pool = sim
    cluster.move_coordinator('g', 2)
    loop.run(pool.send(DescribeGroupsRequest(groups=['g'])), 10)
    assert asked(cluster, 'DESCRIBE_GROUPS') == [2]
    for partition in range(3):
        loop.run(pool.send(end_offsets('t', partition)), 10)
    assert asked(cluster, 'LIST_OFFSETS') == [cluster.leader('t', p) for p in range(3)]
    loop.run(pool.send(MetadataRequest(topics=[]), node=1), 10)
    assert asked(cluster, 'METADATA')[-1] == 1


def test_a_request_for_several_leaders_is_refused(sim):
    _, loop, pool = sim
    with pytest.raises(IllegalArgumentError, match='concerns 3 leaders'):
        loop.run(pool.send(end_offsets('t', 0, 1, 2)), 10)


def test_a_request_about_several_groups_needs_a_key(sim):
    cluster, loop, pool = sim
    request = DescribeGroupsRequest(groups=['a', 'b'])
    with pytest.raises(IllegalArgumentError, match='about one group'):
        loop.run(pool.send(request), 10)
    loop.run(pool.send(request, key='a'), 10)
    assert asked(cluster, 'DESCRIBE_GROUPS') == [cluster.coordinator('a')]


def test_a_node_that_is_not_known(sim):
    _, loop, pool = sim
    with pytest.raises(UnknownBrokerIdError, match='node id 77'):
        loop.run(pool.send(MetadataRequest(topics=[]), node=77), 10)


def test_a_node_that_hangs_runs_into_the_time_out(sim):
    cluster, loop, pool = sim
    cluster.faults.add(Hang(), 'Metadata', node=1)
    began = loop.time()
    with pytest.raises(KafkaTimeoutError):
        loop.run(pool.send(MetadataRequest(topics=[]), node=1, timeout=3), 100)
    assert loop.time() - began == pytest.approx(3, abs=0.3)


# ---------------------------------------------------------------- coordinators


def test_a_coordinator_is_looked_up_once_for_all(sim):
    cluster, loop, pool = sim
    found = loop.run(loop.gather(*[pool.coordinator(0, 'g') for _ in range(5)]), 10)
    assert set(found) == {cluster.coordinator('g')}
    assert len(asked(cluster, 'FIND_COORDINATOR')) == 1
    pool.forget_coordinator(0, 'g')
    loop.run(pool.coordinator(0, 'g'), 10)
    assert len(asked(cluster, 'FIND_COORDINATOR')) == 2


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(sim):
    cluster, loop, pool = sim
    cluster.faults.add(Error(COORDINATOR_NOT_AVAILABLE), 'FindCoordinator', times=3)
    assert loop.run(pool.coordinator(1, 'tx'), 10) == cluster.coordinator('tx')
    assert len(asked(cluster, 'FIND_COORDINATOR')) == 4


def test_what_a_broker_says_for_good_is_raised(sim):
    cluster, loop, pool = sim
    cluster.faults.add(Error(GROUP_AUTHORIZATION_FAILED), 'FindCoordinator', times=1)
    with pytest.raises(GroupAuthorizationFailedError):
        loop.run(pool.coordinator(0, 'g'), 10)
    assert loop.run(pool.coordinator(0, 'g'), 10) in NODES  # asked anew


def test_a_release_without_coordinators():
    with MemoryCluster(version='0.8.1.1', topics={'t': 1}) as cluster:
        loop = SimLoop(cluster)
        pool = pool_of(loop, cluster.bootstrap)
        loop.run(pool.bootstrap(), 60)
        with pytest.raises(UnsupportedVersionError):
            loop.run(pool.send(OffsetFetchRequest(group_id='g', topics=[])), 10)
        pool.close()
        loop.close()


def test_what_a_broker_parks_for_a_member_holds_nothing_else_up(sim):
    cluster, loop, pool = sim
    parked = loop.spawn(group_asked(pool, HEARTBEAT, 20))
    cluster.faults.add(Hang(), 'Heartbeat', times=1)
    node = loop.run(pool.coordinator(0, 'g'), 10)
    loop.wait(lambda: asked(cluster, 'HEARTBEAT'), 10)
    began = loop.time()
    loop.run(pool.send(MetadataRequest(topics=None), node=node), 10)
    assert loop.time() - began < 1
    assert not parked.done
    assert loop.run(pool.group_link('g'), 10) is pool.group_link_at_hand('g')
    assert pool.group_link_at_hand('g') is not pool.link(node)


HEARTBEAT = HeartbeatRequest(group_id='g', generation_id=1, member_id='m')


async def group_asked(pool, request, timeout):
    return await (await pool.group_link('g')).request(request, timeout)


def test_the_link_to_a_coordinator_is_closed_with_the_others(sim):
    cluster, loop, pool = sim
    link = loop.run(pool.group_link('g'), 10)
    assert link.is_ready
    pool.close()
    assert link.state is ConnectionState.CLOSED
    assert not pool.is_connected


def test_a_broker_that_is_given_up_before_its_turn_to_be_asked_is_no_mistake(sim):
    cluster, loop, pool = sim
    for node in NODES:
        cluster.kill(node)
    loop.wait(lambda: not pool.is_connected, 10)
    ready = loop.spawn(pool.any_ready())
    for node in NODES:
        loop.call_soon(pool.link(node).close)
    loop.wait(lambda: ready.done, 60)
    assert isinstance(ready.exception, NoBrokersAvailable)


def test_who_closes_the_link_to_a_coordinator_gets_a_new_one(sim):
    _, loop, pool = sim
    link = loop.run(pool.group_link('g'), 10)
    link.close()
    again = loop.run(pool.group_link('g'), 10)
    assert again is not link
    assert again.is_ready


def test_a_coordinator_that_is_listed_no_longer_is_looked_up_anew(sim):
    cluster, loop, pool = sim
    loop.run(pool.coordinator(0, 'g'), 10)
    pool.cluster.set_coordinator(0, 'g', 77)
    assert loop.run(pool.group_link('g'), 10).node_id == cluster.coordinator('g')


def test_the_link_to_a_coordinator_that_is_gone_is_closed(sim):
    cluster, loop, pool = sim
    link = loop.run(pool.group_link('g'), 10)
    cluster.kill(link.node_id)
    loop.wait(lambda: pool.cluster.broker_metadata(link.node_id) is None, 60)
    assert link.state is ConnectionState.CLOSED


# ---------------------------------------------------------------- refreshing


def test_a_topic_is_created_and_waited_for(sim):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('new', 30), 60)
    assert pool.cluster.partitions_for_topic('new')


def asked_about(cluster):
    return [
        sorted(topic.name for topic in each.request.topics)
        for each in cluster.requests
        if each.api.name == 'METADATA'
    ]


def test_a_new_topic_is_asked_about_alone_and_at_once(sim):
    cluster, loop, pool = sim
    for name in ('t', 'one', 'two', 'three'):
        cluster.create_topic(name, partitions=2) if name != 't' else None
    loop.run(pool.wait_for_topic('t', 30), 60)
    cluster.forget_requests()
    began = loop.time()
    for name in ('one', 'two', 'three'):
        loop.run(pool.wait_for_topic(name, 30), 60)
    assert loop.time() - began < 0.1
    assert asked_about(cluster) == [['one'], ['two'], ['three']]
    assert pool.cluster.topics() == {'t', 'one', 'two', 'three'}
    loop.run(pool.refreshed(), 10)
    assert asked_about(cluster)[-1] == ['one', 't', 'three', 'two']


def test_what_is_known_of_a_topic_goes_with_the_interest_in_it(sim):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('t', 30), 60)
    assert pool.cluster.topic_id('t') != bytes(16)
    pool.topics.forget('t')
    loop.run(pool.wait_for_topic('new', 30), 60)
    loop.run(pool.refreshed(), 10)
    assert asked_about(cluster)[-1] == ['new']
    assert pool.cluster.topics() == {'new'}
    assert pool.cluster.topic_id('t') == bytes(16)


def test_asking_about_new_topics_puts_off_no_refresh_of_the_others(sim):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('t', 30), 60)
    for number in range(5):
        loop.wait(lambda: False, 70)
        loop.run(pool.wait_for_topic('new-%d' % number, 30), 60)
    assert 't' in [name for names in asked_about(cluster)[2:] for name in names]


def test_a_topic_that_must_not_be_created_times_out(sim):
    cluster, loop, _ = sim
    pool = pool_of(loop, cluster.bootstrap, allow_auto_create_topics=False)
    loop.run(pool.bootstrap(), 60)
    began = loop.time()
    with pytest.raises(KafkaTimeoutError, match='topic never .*UnknownTopicOrPartitionError'):
        loop.run(pool.wait_for_topic('never', 5), 60)
    assert loop.time() - began == pytest.approx(5, rel=0.1)
    assert len(asked(cluster, 'METADATA')) < 15  # with back-off
    pool.close()


def test_a_topic_may_be_asked_about_until_it_is_there(sim):
    """Ever more seldom, while nothing comes of it."""
    cluster, loop, _ = sim
    pool = pool_of(loop, cluster.bootstrap, allow_auto_create_topics=False)
    loop.run(pool.bootstrap(), 60)
    pool.cluster.add_listener(lambda _: pool.topics.want_still('late'))
    pool.want_topic('late')
    loop.wait(lambda: False, 20)
    assert 15 < len(asked(cluster, 'METADATA')) < 40
    pool.close()


def test_a_name_that_no_topic_can_have_is_told_at_once_each_time(sim):
    _, loop, pool = sim
    for _ in range(2):
        began = loop.time()
        with pytest.raises(InvalidTopicError):
            loop.run(pool.wait_for_topic('not a name', 30), 60)
        assert loop.time() - began < 5


def test_refreshes_come_by_themselves_when_what_is_known_is_old(sim):
    cluster, loop, pool = sim
    loop.wait(lambda: False, 1000)
    assert 3 <= len(asked(cluster, 'METADATA')) <= 4


def test_many_who_want_a_refresh_share_it(sim):
    cluster, loop, pool = sim
    loop.run(loop.gather(*[pool.refreshed() for _ in range(10)]), 10)
    assert len(asked(cluster, 'METADATA')) == 1


def test_a_leader_that_dies_is_replaced(sim):
    cluster, loop, pool = sim
    loop.run(pool.wait_for_topic('t', 10), 20)
    old = cluster.leader('t', 0)
    loop.run(pool.send(end_offsets('t', 0)), 10)
    cluster.kill(old)
    loop.wait(lambda: pool.cluster.leader_for_partition(('t', 0)) not in (old, -1, None), 30)
    loop.run(pool.send(end_offsets('t', 0)), 30)
    assert asked(cluster, 'LIST_OFFSETS')[-1] == cluster.leader('t', 0) != old


def test_when_nobody_known_answers_the_servers_are_asked_again(sim, caplog):
    cluster, loop, pool = sim
    for node in NODES:
        cluster.kill(node)
    loop.wait(lambda: False, 5)
    for node in NODES:
        cluster.restart(node)
    loop.run(pool.refreshed(), 60)
    assert len(pool.cluster.brokers()) >= 1
    assert 'asking the bootstrap servers' in caplog.text


def test_features_are_those_of_the_newest_epoch(sim):
    _, loop, pool = sim
    assert pool.finalized_features()['metadata.version'] > 0
    assert pool.versions(77) is None


def test_waiting_without_an_upkeep_is_refused(sim):
    cluster, loop, _ = sim
    pool = pool_of(loop, cluster.bootstrap)
    with pytest.raises(IllegalStateError, match='bootstrap'):
        loop.run(pool.refreshed(), 10)


def test_a_mistake_in_a_refresh_does_not_end_the_upkeep(sim, monkeypatch, caplog):
    _, loop, pool = sim
    with monkeypatch.context() as patch:
        patch.setattr(pool.cluster, 'replace', lambda *answer: 1 / 0)
        pool.refresh()
        assert loop.wait(lambda: 'ZeroDivisionError' in caplog.text, 60)
    loop.run(pool.refreshed(), 60)


def test_closing_ends_those_who_wait(sim):
    cluster, loop, pool = sim
    cluster.faults.add(Hang(), 'Metadata', times=None)
    loop.call_threadsafe(loop.call_later, 1, pool.close)
    with pytest.raises(IllegalStateError, match='closed'):
        loop.run(pool.refreshed(), 60)
    with pytest.raises(IllegalStateError, match='closed'):
        loop.run(pool.send(MetadataRequest(topics=[]), node=0), 60)


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(
    'topics, version, creates, expected',
    [
        (None, 0, True, []),
        (None, 1, True, None),
        ([], 1, True, []),
        (['a'], 0, True, ['a']),
        (['a'], 3, False, None),
        (['a'], 4, False, ['a']),
    ],
)
def test_the_question_about_topics_fits_the_version(topics, version, creates, expected):
    request = metadata_request(topics, version, creates)
    names = None if request.topics is None else [each.name for each in request.topics]
    assert names == expected
    assert request.allow_auto_topic_creation is (version < 4 or creates)
    assert MetadataRequest.decode(request.encode(version), version) == request


def test_refreshes_that_fail_are_tried_again_and_told_less_and_less(sim, caplog):
    cluster, loop, pool = sim
    cluster.faults.add(Cut(0), 'Metadata', times=8)
    loop.run(pool.refreshed(), 60)
    told = [each for each in caplog.records if 'could not be refreshed' in each.message]
    assert len(told) == 4  # the 1st, 2nd, 4th and 8th


def test_connections_to_brokers_that_are_no_longer_listed_are_closed(sim):
    cluster, loop, pool = sim
    links = [pool.link(node) for node in sorted(NODES)]
    for link in links:
        loop.run(link.ready(), 10)
    kept = next(link for link in links if link.load == 0)
    pool.cluster._brokers.pop(kept.node_id)
    pool._connections.close_gone()
    assert kept.state is ConnectionState.CLOSED
    assert [link.is_ready for link in links if link is not kept] == [True, True]


def test_beginning_anew_leaves_no_old_connection_behind(sim):
    cluster, loop, pool = sim
    links = [pool.link(node) for node in sorted(NODES)]
    for link in links:
        loop.run(link.ready(), 10)
    loop.run(pool._rebootstrap(), 60)
    for link in links:
        assert link.state is ConnectionState.CLOSED or pool.link(link.node_id) is link
    assert sum(link.state is ConnectionState.CLOSED for link in links) >= 2


def test_an_answer_about_another_group_is_not_taken_for_the_one_asked_for(sim, monkeypatch):
    _, loop, pool = sim
    other = coordinators._answer_for

    def answer_for(response, key):
        response.coordinators[0].key = 'other'
        return other(response, key)

    monkeypatch.setattr(coordinators, '_answer_for', answer_for)
    with pytest.raises(KafkaError, match='the coordinator of g and named others'):
        loop.run(pool.coordinator(0, 'g'), 60)
