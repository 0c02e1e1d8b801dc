"""The journal: the last value of a key counts, a torn line does not."""

from __future__ import annotations

import errno
import os

import pytest

from kafka.testing.logs.segments import StorageError
from kafka.testing.storage import journal as module
from kafka.testing.storage.journal import Journal


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the journal; all are closed at the end."""
    made = []

    def give(fsync=False):
        journal = Journal(tmp_path / 'journal', fsync)
        made.append(journal)
        return journal, journal.open()

    yield give
    for journal in made:
        journal.close()


@pytest.mark.parametrize('fsync', [True, False])
def test_what_was_written_comes_back(opened, fsync):
    journal, values = opened(fsync)
    assert values == {}
    journal.put(('topic', 't'), {'id': 'x'})
    journal.put(('quota', (('user', None),)), 1.5)
    journal.put(('topic', 'u'), None)
    journal.put(('topic', 't'), {'id': 'y'})
    journal.write()
    journal.put(('topic', 'v'), 'was not written')
    assert opened()[1] == {
        ('topic', 't'): {'id': 'y'},
        ('topic', 'u'): None,
        ('quota', (('user', None),)): 1.5,
    }


def test_what_was_forgotten_does_not_come_back(opened):
    journal, _ = opened()
    journal.put(('a',), 1)
    journal.forget(('a',))
    journal.forget(('b',))
    journal.put_all('c', {('c', 1): 1, ('c', 2): 2})
    journal.put_all('c', {('c', 2): 3})
    journal.write()
    assert opened()[1] == {('c', 2): 3}


def test_what_is_known_is_not_written_again(opened):
    journal, _ = opened()
    journal.put(('a',), 1)
    journal.write()
    size = journal.path.stat().st_size
    journal.put(('a',), 1)
    journal.write()
    again, _ = opened()
    again.put(('a',), 1)
    again.write()
    assert journal.path.stat().st_size == size


@pytest.mark.parametrize('left', [1, 5, 9, 20, -1])
def test_a_torn_line_is_cut_off_and_told(opened, left, caplog):
    journal, _ = opened()
    journal.put(('a',), 1)
    journal.write()
    whole = journal.path.read_bytes()
    journal.put(('b',), 'a long value')
    journal.write()
    line = journal.path.read_bytes()[len(whole) :]
    journal.path.write_bytes(whole + line[:left])
    again, values = opened()
    assert values == {('a',): 1}
    assert 'cut off' in caplog.text
    assert journal.path.read_bytes() == whole
    again.put(('b',), 2)
    again.write()
    assert opened()[1] == {('a',): 1, ('b',): 2}


@pytest.mark.parametrize('damage', [b'xxx\n', b'00000000 [["a"],1]\n', b'\n'])
def test_damage_before_the_end_is_an_error_that_changes_nothing(opened, damage):
    journal, _ = opened()
    journal.put(('a',), 1)
    journal.write()
    journal.path.write_bytes(damage + journal.path.read_bytes())
    before = journal.path.read_bytes()
    with pytest.raises(StorageError, match='journal is broken in line 1: restore'):
        opened()
    assert journal.path.read_bytes() == before


def test_a_write_that_fails_is_made_up_for(opened, monkeypatch):
    journal, _ = opened()
    room = [5]

    def write(fd, data, write=os.write):
        left, room[0] = room[0], 0
        if not left:
            raise OSError(errno.ENOSPC, 'No space left on device')
        return write(fd, bytes(data)[:left])

    journal.put(('a',), 1)
    with monkeypatch.context() as patched:
        patched.setattr(os, 'write', write)
        with pytest.raises(OSError, match='No space'):
            journal.write()
    assert journal.path.read_bytes() == b''
    journal.put(('b',), 2)
    journal.write()
    assert opened()[1] == {('a',): 1, ('b',): 2}


def test_it_is_written_anew_when_most_of_it_is_old(opened, monkeypatch):
    monkeypatch.setattr(module, 'RENEW_BYTES', 1000)
    journal, _ = opened()
    journal.put(('kept',), 'x')
    for number in range(200):
        journal.put(('a',), number)
        journal.write()
        assert journal.path.stat().st_size < 1100
    journal.put(('b',), 1)
    journal.write()
    assert opened()[1] == {('kept',): 'x', ('a',): 199, ('b',): 1}


def test_a_journal_that_cannot_be_written_anew_goes_on_as_it_is(opened, monkeypatch, caplog):
    monkeypatch.setattr(module, 'RENEW_BYTES', 1000)
    journal, _ = opened()
    journal._renew_at = 1000

    def fail(*args):
        raise OSError(errno.EIO, 'Input/output error')

    with monkeypatch.context() as patched:
        patched.setattr(os, 'replace', fail)
        for number in range(60):
            journal.put(('a',), number)
            journal.write()
    assert 1 <= caplog.text.count('not written anew') <= 3
    assert opened()[1] == {('a',): 59}
    size = journal.path.stat().st_size
    while journal.path.stat().st_size >= size:
        number += 1
        journal.put(('a',), number)
        journal.write()
    assert opened()[1] == {('a',): number}
