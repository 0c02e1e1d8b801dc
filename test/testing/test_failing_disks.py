"""A cluster in a folder on a disk that fails: nobody is told what may be lost."""

from __future__ import annotations

import errno
import os

import pytest

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.transaction import EndTxnRequest
from kafka.testing import errors
from kafka.testing.logs.partition_log import Batch
from kafka.testing.logs.segments import StorageError
from kafka.testing.logs.stored_log import StoredLog
from kafka.testing.memory import MemoryCluster
from kafka.testing.security.acls import Acl
from kafka.testing.storage import cluster_storage as storage
from kafka.testing.transactions.transaction import S
from test.testing.data_requests import TOPIC, batch, fetch, list_offsets, produce, values
from test.testing.drive import Driver
from test.testing.durable import with_topic
from test.testing.handlers.test_transactions import V2, Producer


def failing(number):
    def fail(*args):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EACCES])
def test_a_produce_that_the_disk_does_not_take(folders, monkeypatch, number):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    with monkeypatch.context() as patched:
        patched.setattr(os, 'write', failing(number))
        answer = produce(driver, batch(b'lost'))
        assert (answer.error_code, answer.base_offset) == (errors.KAFKA_STORAGE_ERROR, -1)
        assert values(fetch(driver).records) == [b'a']
    assert produce(driver, batch(b'b')).base_offset == 1
    assert values(fetch(folders.after_kill()).records) == [b'a', b'b']


def test_records_that_cannot_be_read(folders):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    [path] = driver.path.glob('logs/*/*.log')
    path.write_bytes(b'')
    assert fetch(driver).error_code == errors.KAFKA_STORAGE_ERROR


def test_what_could_not_be_brought_to_the_disk_is_not_acknowledged(tmp_path, monkeypatch):
    """With fsync; and nothing more is written there, since nobody knows what is on the disk."""
    with MemoryCluster(data=tmp_path, fsync=True, topics={'t': 1}) as cluster:
        partition = cluster.state.topics['t'].partitions[0]
        sock = cluster.connect()
        with monkeypatch.context() as patched:
            patched.setattr('kafka.testing.logs.segments.sync_data', failing(errno.EIO))
            assert isinstance(partition.log, StoredLog)
            partition.log._keep(batch_of_log(b'a'))
            sock.connection.send(b'an answer')
        assert sock.connection.is_closed
        with pytest.raises(OSError, match='Input/output'):
            partition.log._keep(batch_of_log(b'b'))


def batch_of_log(value):
    return Batch(0, 0, 5, 2, batch(value), -1)


def test_a_journal_that_cannot_be_written_answers_nobody_who_changed_something(folders):
    driver = with_topic(folders)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, 'write', failing(errno.ENOSPC))
        driver.state.acls.add(Acl(2, 't', 3, 'User:me', '*', 3, 3))
        driver.storage.note_everything()
        with pytest.raises(StorageError, match='No space left'):
            driver.storage.commit()
        driver.ask(MetadataRequest(topics=[]))  # commits, and has nothing to say
        driver.storage.note_everything()  # somebody asked for the same once more
        with pytest.raises(StorageError):
            driver.storage.commit()
        driver.advance(storage.RETRY_SECONDS)
        with pytest.raises(StorageError):
            driver.storage.commit()
    driver.advance(storage.RETRY_SECONDS)
    driver.storage.commit()
    assert len(folders.after_kill().state.acls) == 1


def test_deleted_records_that_would_come_back_are_told_to_nobody(folders, monkeypatch):
    driver = with_topic(folders)
    produce(driver, batch(b'a'))
    log = driver.state.topics[TOPIC].partitions[0].log
    with monkeypatch.context() as patched:
        patched.setattr(log._files, 'write_checkpoint', failing(errno.ENOSPC))
        for _ in range(2):
            log.delete_before(1)
            with pytest.raises(StorageError, match='No space left'):
                driver.storage.commit()
            produce(driver, batch(b'b'))  # costs the next start some time
    log.delete_before(1)
    driver.storage.commit()
    assert list_offsets(folders.after_kill(), -2).offset == 1


def test_an_end_that_cannot_be_written_down_is_carried_out_later(folders, monkeypatch):
    driver = folders.start()
    producer = Producer(driver)
    producer.init()
    producer.add(0)
    producer.write()
    log = driver.state.topics['t'].partitions[0].log
    end = log.end_offset
    with monkeypatch.context() as patched:
        patched.setattr(driver.storage._journal, 'write', failing(errno.ENOSPC))
        Driver.ask(driver, EndTxnRequest('id', producer.id, producer.epoch, True), V2, 0)
        driver.advance(0.1)
        assert log.end_offset == end
        with pytest.raises(StorageError):  # nobody is told
            driver.storage.commit()
    driver.advance(10)
    assert (log.end_offset, producer.state) == (end + 1, S.COMPLETE_COMMIT)


def test_a_log_that_fails_while_a_transaction_ends_is_told(folders, monkeypatch):
    """Its records are acknowledged at the end of the turn, and must not be then."""
    driver = with_topic(folders, fsync=True)
    log = driver.state.topics[TOPIC].partitions[0].log
    with monkeypatch.context() as patched:
        patched.setattr(log._files, 'sync', failing(errno.EIO))
        log.append(Batch(0, 0, 5, 2, batch(b'a'), -1), 0)
        with pytest.raises(StorageError):
            driver.storage.decide()
        with pytest.raises(StorageError, match='Input/output'):
            driver.storage.commit()


def test_the_journal_says_nothing_of_which_a_log_does_not_know(folders, monkeypatch):
    """After a power cut a transaction that has ended would lack its markers."""
    driver = with_topic(folders, fsync=True)
    log = driver.state.topics[TOPIC].partitions[0].log
    before = (driver.path / 'journal').read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(log._files, 'sync', failing(errno.EIO))
        log.append(Batch(0, 0, 5, 2, batch(b'a'), -1), 0)
        driver.state.acls.add(Acl(2, 't', 3, 'User:me', '*', 3, 3))
        driver.storage.note_everything()
        with pytest.raises(StorageError):
            driver.storage.commit()
        assert (driver.path / 'journal').read_bytes() == before
    driver.advance(storage.RETRY_SECONDS)
    driver.storage.commit()
    assert (driver.path / 'journal').read_bytes() != before
