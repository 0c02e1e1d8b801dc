"""The journal: the last value of a key counts, a write that was not finished does not."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

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
def test_a_torn_write_is_cut_off_and_told(opened, left, caplog):
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
    for number in range(2):
        journal.put(('a',), number)
        journal.write()
    journal.path.write_bytes(damage + journal.path.read_bytes())
    before = journal.path.read_bytes()
    with pytest.raises(StorageError, match='journal is broken in line 1: restore'):
        opened()
    assert journal.path.read_bytes() == before


PAGE = 512


def pages(data, start, lost):
    """Return a file as a power cut leaves it: the pages of the last write that were lost are empty.

    Arguments: start: of that write, whose first page was there already in part.
    """
    first = start // PAGE
    kept = [
        data[at : at + PAGE] if number - first not in lost else bytes(PAGE)
        for number, at in enumerate(range(0, len(data), PAGE))
    ]
    if 0 in lost:
        begun = data[first * PAGE : start]
        kept[first] = begun + bytes(PAGE - len(begun))
    return b''.join(kept)[: len(data)]


@hypothesis.given(
    lost=strategies.frozensets(strategies.integers(0, 8), min_size=1),
    lines=strategies.integers(1, 40),
    before=strategies.integers(0, 5),
)
def test_pages_of_the_last_write_that_are_not_on_the_disk(lost, lines, before):
    """Whichever they are: what was there before comes back, and the next write counts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'journal'
        journal = Journal(path, fsync=True)
        journal.open()
        for number in range(before):
            journal.put(('kept', number), 'x' * 50 * number)
            journal.write()
        known = dict(enumerate(range(before)))
        start = path.stat().st_size if before else 0
        for number in range(lines):
            journal.put(('lost', number), 'y' * 60)
        journal.write()
        journal.close()
        whole = path.read_bytes()
        left = pages(whole, start, lost)
        path.write_bytes(left)
        after = Journal(path, fsync=True)
        values = after.open()
        kept = {('kept', number): 'x' * 50 * number for number in known}
        if left != whole:
            assert values == kept
            assert path.stat().st_size == start
        after.put(('more',), 1)
        after.write()
        after.close()
        again = Journal(path, fsync=True)
        assert again.open() == {**values, ('more',): 1}
        again.close()


def test_damage_to_what_was_acknowledged_is_refused_wherever_it_is(opened):
    """With a later write behind it, of which only the end need be whole."""
    journal, _ = opened(fsync=True)
    journal.put(('a',), 'x' * 300)
    journal.put(('b',), 'x' * 300)
    journal.write()
    size = journal.path.stat().st_size
    journal.put(('c',), 'y' * 300)
    journal.write()
    whole = journal.path.read_bytes()
    for at in range(0, size, 7):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        damaged[size + 20] ^= 1
        journal.path.write_bytes(damaged)
        with pytest.raises(StorageError, match='is broken in line'):
            opened()
        assert journal.path.read_bytes() == damaged


def test_a_file_written_anew_is_never_taken_for_torn(opened):
    journal, _ = opened()
    for number in range(5):
        journal.put(('a', number % 3), number)
        journal.write()
    journal._renew()
    whole = journal.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 5
    for kept in (lines[:-1], lines[:1], [*lines[:3], b'x' + lines[3], lines[4]]):
        journal.path.write_bytes(b''.join(kept))
        with pytest.raises(StorageError, match='is broken'):
            opened()
    journal.path.write_bytes(whole)
    assert set(opened()[1]) == {('a', 0), ('a', 1), ('a', 2)}


def test_what_an_earlier_attempt_has_left_is_no_later_write(opened):
    """A write was torn, its end was not; the next one was shorter, and the power went again."""
    journal, _ = opened()
    journal.put(('a',), 1)
    journal.write()
    first = journal.path.read_bytes()
    journal.put(('b',), 'x' * 100)
    journal.put(('c',), 'x' * 100)
    journal.write()
    torn = journal.path.read_bytes()[len(first) :]
    journal.path.write_bytes(first)
    again, _ = opened()
    again.put(('d',), 1)
    again.write()
    finished = again.path.read_bytes()
    again.path.write_bytes(finished + torn[len(finished) - len(first) :])
    assert opened()[1] == {('a',): 1, ('d',): 1}
    assert again.path.read_bytes() == finished


@pytest.mark.skipif(os.name != 'posix', reason='modes are those of POSIX')
def test_only_the_owner_reads_it(opened):
    before = os.umask(0)
    try:
        journal, _ = opened()
        journal.put(('a',), 1)
        journal.write()
        journal._renew()
    finally:
        os.umask(before)
    assert journal.path.stat().st_mode & 0o777 == 0o600


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
    assert 1 <= caplog.text.count('is not compacted') <= 3
    assert opened()[1] == {('a',): 59}
    size = journal.path.stat().st_size
    while journal.path.stat().st_size >= size:
        number += 1
        journal.put(('a',), number)
        journal.write()
    assert opened()[1] == {('a',): number}
