"""A cluster in a folder: what must be there after a stop or a kill is there."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import socket

import pytest

from kafka import KafkaClient, SimpleProducer
from kafka.errors import KafkaError
from kafka.protocol.admin.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicState
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka.protocol.session import ResponseReceived, Role, Session
from kafka.protocol.transaction import EndTxnRequest
from kafka.protocol.wire import ZERO_UUID
from kafka.testing import Cluster, errors
from kafka.testing.groups.group_states import GroupState
from kafka.testing.logs.appending import append_marker
from kafka.testing.logs.partition_log import EpochStart
from kafka.testing.logs.segments import StorageError
from kafka.testing.memory import MemoryCluster
from kafka.testing.security.acls import Acl
from kafka.testing.security.scram import ScramCredential
from kafka.testing.security.tokens import Principal, Tokens
from kafka.testing.storage import cluster_storage as storage
from kafka.testing.storage.kept_state import text_of
from kafka.testing.transactions.transaction import S
from test.testing import group_requests
from test.testing.consumer_group_members import Member, settled
from test.testing.data_requests import (
    TOPIC,
    batch,
    fetch,
    list_offsets,
    message_set,
    produce,
    values,
)
from test.testing.drive import Driver
from test.testing.durable import Folders, with_topic
from test.testing.group_requests import Consumer, settle
from test.testing.handlers.test_transactions import V2, Producer
from test.testing.test_failing_disks import failing

DELETED = DeleteTopicsRequest(
    topics=[DeleteTopicState(name=TOPIC, topic_id=ZERO_UUID)], timeout_ms=1
)
HOW = pytest.mark.parametrize('how', ['stop', 'kill'])


@HOW
@pytest.mark.parametrize('fsync', [True, False])
def test_topics_and_records(folders, how, fsync):
    driver = with_topic(folders, fsync=fsync)
    topic = driver.state.topics[TOPIC]
    topic.configs['retention.ms'] = '-1'
    produce(driver, batch(b'a', b'b', at=7), acks=-1)
    produce(driver, batch(b'c', at=9), acks=-1)
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how)
    again = found.state.topics[TOPIC]
    assert (again.topic_id, again.configs) == (topic.topic_id, {'retention.ms': '-1'})
    assert found.state.cluster_id == driver.state.cluster_id
    assert values(fetch(found).records) == [b'a', b'b', b'c']
    assert list_offsets(found, 8).offset == 2
    assert list_offsets(found, -1).offset == 3
    produce(found, batch(b'd'))
    last = folders.after('stop')
    assert values(fetch(last).records) == [b'a', b'b', b'c', b'd']


@HOW
@pytest.mark.parametrize('release', ['0.8.0', '0.9', '0.10.2'])
@pytest.mark.parametrize('codec', [0, 1])
def test_records_in_the_formats_of_old_releases(folders, how, release, codec):
    magic = 1 if release == '0.10.2' else 0
    driver = with_topic(folders, version=release)
    for sent in ([b'a', b'b'], [b'c', b'd', b'e']):
        assert not produce(driver, message_set(*sent, magic=magic, codec=codec)).error_code
    found = folders.after(how, release)
    assert values(fetch(found).records) == [b'a', b'b', b'c', b'd', b'e']
    assert values(fetch(found, 3).records)[-2:] == [b'd', b'e']
    assert produce(found, message_set(b'f', magic=magic)).base_offset == 5
    assert values(fetch(folders.after_stop('2.8'), 0).records)[-2:] == [b'e', b'f']


@HOW
def test_each_start_has_a_leader_epoch_of_its_own(folders, how):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    found = folders.after(how)
    produce(found, batch(b'b'))
    partition = found.state.topics[TOPIC].partitions[0]
    assert partition.leader_epoch == 1
    assert partition.log.epochs == [EpochStart(0, 0), EpochStart(1, 1)]


@HOW
def test_a_repeated_batch_is_known_again(folders, how):
    driver = with_topic(folders)
    ids = {'producer_id': 7, 'producer_epoch': 0}
    produce(driver, batch(b'a', b'b', base_sequence=0, **ids))
    produce(driver, batch(b'c', base_sequence=2, **ids))
    found = folders.after(how)
    for sequence, sent in ((0, [b'a', b'b']), (2, [b'c'])):
        answer = produce(found, batch(*sent, base_sequence=sequence, **ids))
        assert (answer.error_code, answer.base_offset) == (errors.NONE, sequence)
    answer = produce(found, batch(b'x', base_sequence=4, **ids))
    assert answer.error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(found, batch(b'd', base_sequence=3, **ids)).base_offset == 3


@HOW
def test_deleted_records_stay_deleted(folders, how):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    produce(driver, batch(b'b'))
    driver.state.topics[TOPIC].partitions[0].log.delete_before(1)
    driver.storage.commit()
    found = folders.after(how)
    assert list_offsets(found, -2).offset == 1
    assert fetch(found, 0).error_code == errors.OFFSET_OUT_OF_RANGE


@HOW
def test_a_deleted_topic_is_gone_with_its_files(folders, how):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    logs = driver.path / 'logs'
    assert len(list(logs.iterdir())) == 1
    driver.ask(DELETED)
    assert list(logs.iterdir()) == []
    found = folders.after(how)
    assert TOPIC not in found.state.topics
    found.state.create_topic(TOPIC, assignments=[[0]])
    assert fetch(found).high_watermark == 0


def test_files_whose_deletion_was_only_noted_go_at_the_next_start(folders, monkeypatch):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    with monkeypatch.context() as patched:
        patched.setattr(storage.shutil, 'rmtree', lambda *args, **more: None)
        driver.ask(DELETED)
    assert len(list((driver.path / 'logs').iterdir())) == 1
    found = folders.after_kill()
    assert list((found.path / 'logs').iterdir()) == []


@HOW
def test_settings_users_and_what_they_may_do(folders, how):
    driver = with_topic(folders, delegation_token_secret='secret')
    resource = IncrementalAlterConfigsResource(
        resource_type=4,
        resource_name='',
        configs=[
            IncrementalAlterableConfig(name='log.retention.ms', config_operation=0, value='5')
        ],
    )
    driver.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    state = driver.state
    acl = Acl(2, 't', 3, 'User:me', '*', 3, 3)
    entity = (('user', 'me'), ('client-id', None))
    state.acls.add(acl)
    state.quotas[entity] = {'producer_byte_rate': 1024.0}
    state.scram['me'] = {1: ScramCredential(4096, b'\0salt', b'\xffword')}
    state.tokens = Tokens(state, 'secret')
    token = state.tokens.create(Principal('User', 'me'), Principal('User', 'me'), (), -1)
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how, delegation_token_secret='secret').state
    assert found.configs == {(4, ''): {'log.retention.ms': '5'}}
    assert found.acls == {acl}
    assert found.quotas == {entity: {'producer_byte_rate': 1024.0}}
    assert found.scram == state.scram
    assert found.features == state.features
    again = found.tokens.get(token.token_id)
    assert text_of(token.password) not in (driver.path / 'journal').read_text()
    assert (again.password, again.expires_ms) == (token.password, token.expires_ms)


def test_acls_of_the_program_itself_are_there_after_a_kill(tmp_path):
    before, after = tmp_path / 'before', tmp_path / 'after'
    with MemoryCluster(data=before, authorizer=True) as cluster:
        cluster.allow('me', 'Read', topic='t')
        cluster.state.storage.commit()  # as at the end of each turn
        shutil.copytree(str(before), str(after))
    with MemoryCluster(data=after, authorizer=True) as cluster:
        assert len(cluster.state.acls) == 1


def test_a_deletion_that_was_written_in_part_did_not_happen(folders, monkeypatch):
    """A kill or a power cut may leave some lines of what was written to the journal at once.

    None of them counts then.
    """
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    with monkeypatch.context() as patched:
        patched.setattr(storage.shutil, 'rmtree', lambda *args, **more: None)
        driver.ask(DELETED)
    journal = driver.path / 'journal'
    lines = journal.read_bytes().splitlines(keepends=True)
    [at] = [at for at, line in enumerate(lines) if b'[["deleted",' in line]
    journal.write_bytes(b''.join(lines[: at + 1]))
    found = folders.after_kill()
    assert TOPIC in found.state.topics
    assert values(fetch(found).records) == [b'a']
    assert values(fetch(folders.after_kill()).records) == [b'a']


@HOW
def test_committed_offsets(folders, how):
    driver = with_topic(folders, version='2.8')
    driver.ask(group_requests.commit(7, topic=TOPIC, metadata='x'))
    driver.ask(group_requests.commit(3, topic=TOPIC, group='other'))
    driver.ask(group_requests.commit(8, topic=TOPIC, metadata='y'))
    driver.state.offsets.delete_group('other')
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how, '2.8').state
    stored = found.offsets.fetch('g', TOPIC, 0)
    assert (stored.offset, stored.metadata) == (8, 'y')
    assert stored.topic_id == found.topics[TOPIC].topic_id
    assert found.offsets.groups == ['g']


@HOW
def test_offsets_in_zookeeper(folders, how):
    driver = with_topic(folders, version='0.8.2')
    driver.ask(group_requests.commit(7, topic=TOPIC), 0)
    found = folders.after(how, '0.8.2').state
    assert found.offsets.fetch_from_zookeeper('g', TOPIC, 0) == 7


@HOW
@pytest.mark.parametrize('commit', [True, False])
def test_an_open_transaction_goes_on(folders, how, commit):
    driver = folders.start(version='4.0')
    producer = Producer(driver)
    producer.init()
    producer.add(0)
    producer.add_offsets()
    assert producer.commit_offset(5) == errors.NONE
    producer.write()
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how, '4.0')
    log = found.state.topics['t'].partitions[0].log
    assert log.last_stable_offset == 0
    producer.driver = found
    producer.write(base_sequence=1)
    assert found.state.offsets.has_pending('g', 't', 0)
    assert producer.end(commit) == errors.NONE
    found.advance(1)
    assert producer.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert log.last_stable_offset == 3
    assert bool(log.aborted) is not commit
    assert (found.state.offsets.fetch('g', 't', 0) is not None) is commit
    assert producer.init() == errors.NONE
    assert producer.epoch == 1


def test_a_transaction_whose_end_was_decided_ends(folders):
    driver = folders.start()
    producer = Producer(driver)
    producer.init()
    producer.add(0)
    producer.write()
    driver.state.transactions._end(
        driver.state.transactions.get('id'), commit=True, raised=True, keep_last=True
    )
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after_kill()
    producer.driver = found
    assert producer.state is S.PREPARE_COMMIT
    found.advance(1)
    assert producer.state is S.COMPLETE_COMMIT
    assert found.state.topics['t'].partitions[0].log.last_stable_offset == 2


def test_a_batch_whose_transaction_was_not_noted_belongs_to_one(folders):
    """The process was killed between the records and the journal."""
    driver = folders.start()
    producer = Producer(driver)
    producer.init()
    driver.storage.commit()
    producer.write()
    found = folders.after_kill()
    producer.driver = found
    assert producer.state is S.ONGOING
    assert producer.end(False, V2) == errors.NONE
    found.advance(1)
    assert found.state.topics['t'].partitions[0].log.last_stable_offset == 2


class Killed(BaseException):
    """Ends what is done, wherever it is."""


def test_a_kill_between_the_markers_of_a_transaction(folders, monkeypatch):
    driver = folders.start()
    producer = Producer(driver)
    producer.init()
    producer.add(0, 1)
    for index in (0, 1):
        producer.write(index)

    def append(state, waiting, partition, *more):
        if partition.index == 1:
            raise Killed
        return append_marker(state, waiting, partition, *more)

    with monkeypatch.context() as patched:
        patched.setattr('kafka.testing.transactions.coordinator.append_marker', append)
        Driver.ask(driver, EndTxnRequest('id', producer.id, producer.epoch, True), V2, 0)
        with pytest.raises(Killed):
            driver.advance(0.1)
    found = folders.after_kill()
    found.advance(100)  # nobody comes to end it
    for partition in found.state.topics['t'].partitions:
        assert (partition.log.open_transactions, partition.log.aborted) == ({}, [])


def test_a_transaction_that_was_aborted_for_its_time_is_not_committed_later(folders):
    driver = folders.start()
    producer = Producer(driver)
    producer.init(timeout_ms=1000)
    producer.add(0)
    producer.write()
    driver.advance(30)
    assert producer.state is S.COMPLETE_ABORT
    producer.driver = folders.after_kill()
    assert producer.state is not S.ONGOING
    assert producer.end(True, V2) != errors.NONE


@HOW
def test_producer_ids_do_not_come_again(folders, how):
    driver = folders.start()
    first = Producer(driver)
    first.init()
    found = folders.after(how)
    second = Producer(found, 'other')
    second.init()
    assert second.id > first.id


@HOW
def test_a_classic_group_is_stable_again(folders, how):
    driver = with_topic(folders)
    first, second = Consumer(driver), Consumer(driver, instance='one')
    settle(first, second)
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how)
    group = found.state.groups.get('g')
    assert group.state is GroupState.STABLE
    for consumer in (first, second):
        consumer.driver, consumer.client = found, found.client()
        assert consumer.heartbeat() == errors.NONE
        consumer.send_sync()
        assert consumer.client.receive().assignment == consumer.member_id.encode()
    found.advance(11)
    assert not found.state.groups.get('g').members


@HOW
def test_a_rebalance_that_was_going_on_is_forgotten(folders, how):
    driver = with_topic(folders)
    first = Consumer(driver)
    settle(first)
    driver.storage.note_everything()
    driver.storage.commit()
    Consumer(driver).join()
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how)
    group = found.state.groups.get('g')
    assert (group.state, group.generation) == (GroupState.STABLE, first.generation)
    assert list(group.members) == [first.member_id]


@HOW
def test_a_group_without_members(folders, how):
    driver = with_topic(folders)
    consumer = Consumer(driver)
    settle(consumer)
    driver.state.groups.leave('g', consumer.member_id, None)
    driver.storage.note_everything()
    driver.storage.commit()
    group = folders.after(how).state.groups.get('g')
    assert (group.state, group.generation) == (GroupState.EMPTY, 2)


@HOW
def test_a_group_of_the_new_protocol(folders, how):
    driver = folders.start('4.2')
    driver.state.create_topic('t', 4)
    members = [Member(driver, 'a'), Member(driver, 'b')]
    for member in members:
        member.join()
    settled(*members)
    found = folders.after(how, '4.2')
    before = [(member.epoch, member.partitions) for member in members]
    for member in members:
        member.driver = found
        assert not member.heartbeat().error_code
    settled(*members)
    assert [(member.epoch, member.partitions) for member in members] == before
    found.advance(46)
    assert not found.state.groups.consumers.get('g').members


@HOW
def test_where_a_share_group_is(folders, how):
    driver = with_topic(folders)
    place = driver.state.topics[TOPIC].topic_id, 0
    group = driver.state.groups.shares.make('s')
    group.epoch = 7
    group.begin_at(place, 5)
    driver.storage.note_everything()
    driver.storage.commit()
    found = folders.after(how).state.groups.shares.get('s')
    assert (found.epoch, found.stored_offset(place)) == (7, 5)


def test_ids_do_not_come_again_with_the_same_seed(folders):
    first = with_topic(folders).state.topics[TOPIC].topic_id
    state = folders.after_stop().state
    assert state.create_topic('u', assignments=[[0]]).topic_id != first


# ------------------------------------------------------------ folders that are refused


def test_a_folder_in_use(folders, tmp_path):
    driver = with_topic(folders)
    with pytest.raises(StorageError, match='in use by another process: stop that one'):
        Folders(tmp_path).start()
    produce(driver, batch(b'a'))
    assert values(fetch(folders.after_stop()).records) == [b'a']


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(
        StorageError, match=r'file cannot be used: \w[\w ]+\. Choose another folder'
    ):
        Cluster(data=tmp_path / 'file').start()


def test_a_folder_of_a_newer_release(folders):
    with_topic(folders, version='4.0')
    with pytest.raises(StorageError, match="written by release 4.0.*version='4.0'"):
        folders.after_stop('2.8')
    assert TOPIC in folders.start('4.0').state.topics


def test_a_folder_of_more_brokers(folders):
    driver = folders.start(brokers=3)
    driver.state.create_topic(TOPIC, assignments=[[0, 1, 2]])
    with pytest.raises(StorageError, match='start the cluster with brokers=3'):
        folders.after_stop()
    assert TOPIC in folders.start(brokers=3).state.topics


@pytest.mark.skipif(os.name != 'posix', reason='modes are those of POSIX')
def test_only_the_owner_reads_records_and_checkpoints(folders):
    before = os.umask(0)
    try:
        driver = with_topic(folders)
        produce(driver, batch(b'a'))
        folders.stop()
    finally:
        os.umask(before)
    modes = {
        (path.is_dir(), path.stat().st_mode & 0o777)
        for path in [driver.path, *driver.path.rglob('*')]
    }
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize('name', ['journal', 'embedded-kafka.json'])
def test_a_broken_folder_is_named_and_left_alone(folders, name):
    driver = with_topic(folders)
    folders.stop()
    path = driver.path / name
    folders.start()
    folders.stop()  # so that something was acknowledged behind what is broken now
    path.write_bytes(b'broken\n' + path.read_bytes())
    before = path.read_bytes()
    with pytest.raises(StorageError, match='%s.*(broken|cannot be read).*[Rr]estore' % name):
        folders.start()
    assert path.read_bytes() == before


# ------------------------------------------------------------ what the next start reads


def test_checkpoints_keep_what_is_to_be_read_small(folders, monkeypatch):
    monkeypatch.setattr(storage, 'UNCHECKED', 10_000)
    driver = folders.start()
    driver.state.create_topic(TOPIC, assignments=[[0]] * 4)
    for number in range(200):
        produce(driver, batch(b'x' * 100), index=number % 4)
    found = folders.after_kill()
    unchecked = [each.log.unchecked for each in found.state.partitions()]
    assert 0 < sum(unchecked) <= 11_000
    assert sum(each.log.end_offset for each in found.state.partitions()) == 200


# ------------------------------------------------------------ over sockets


def test_a_cluster_of_sockets(tmp_path):
    for number in range(2):
        with Cluster(data=tmp_path, fsync=True, topics={'t': 1}) as cluster:
            client = KafkaClient(cluster.bootstrap)
            [answer] = SimpleProducer(client).send_messages('t', b'm')
            client.close()
            assert (answer.error, answer.offset) == (0, number)
            with pytest.raises(StorageError, match='in use'):
                Cluster(data=tmp_path).start()
        assert cluster.state.storage is None


def test_topics_of_the_start_are_there_after_a_death_before_the_first_request(tmp_path):
    with Cluster(data=tmp_path / 'data', topics={'t': 1}):
        shutil.copytree(str(tmp_path / 'data'), str(tmp_path / 'left'))
    (tmp_path / 'left' / '.lock').unlink()
    with Cluster(data=tmp_path / 'left') as cluster:
        assert list(cluster.state.topics) == ['t']


def test_nobody_is_answered_before_the_disk_has_it(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, 'kafka')
    with Cluster(data=tmp_path, fsync=True, topics={'t': 1, 'u': 1}) as cluster:
        client = KafkaClient(cluster.bootstrap)
        producer = SimpleProducer(client)
        producer.send_messages('t', b'm')
        with monkeypatch.context() as patched:
            patched.setattr('kafka.testing.logs.segments.sync_data', failing(errno.EIO))
            with pytest.raises(KafkaError):
                producer.send_messages('t', b'lost')
        [answer] = producer.send_messages('u', b'm')  # the broker goes on
        assert answer.error == 0
        client.close()


def test_requests_that_come_together_wait_for_the_disk_once(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr('kafka.testing.logs.segments.sync_data', synced.append)
    with Cluster(data=tmp_path, fsync=True, topics={'t': 1}) as cluster:
        session = Session(Role.CLIENT)
        session.adopt(BrokerVersions(dict(cluster.state.release.served)))
        topic = TopicProduceData(
            topic_id=cluster.state.topics['t'].topic_id,
            partition_data=[PartitionProduceData(index=0, records=batch(b'a'))],
        )
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        with socket.create_connection(cluster.bootstrap.split(':')) as sock:
            sock.sendall(b''.join(session.send(request) for _ in range(5)))
            answers = 0
            while answers < 5:
                session.receive_data(sock.recv(65536))
                while isinstance(session.next_event(), ResponseReceived):
                    answers += 1
    assert 1 <= len(synced) < 5
