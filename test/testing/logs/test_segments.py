"""The files of a log: batches, indexes, lines with checksums."""

from __future__ import annotations

import errno
import os
from array import array

import pytest

from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.testing.logs.segments import OpenFiles, SegmentFiles, StorageError, opened, sealed


def batch(offset, count=1, size=10):
    records = [(1000 + n, None, b'v' * size, []) for n in range(count)]
    return encode_batch(records, base_offset=offset)


@pytest.fixture
def open_files():
    files = OpenFiles(most=3)
    yield files
    files.close_all()


@pytest.fixture
def files(tmp_path, open_files):
    made = SegmentFiles(tmp_path / 'topic-0', open_files)
    made.create(0, False)
    return made


def test_what_was_written_is_read(files):
    files.write(0, 0, b'abc')
    files.write(0, 3, b'def')
    assert files.read(0, 2, 3) == b'cde'
    assert files.size(0) == 6


def test_few_files_are_open_at_once(files, open_files):
    for base_offset in range(1, 9):
        files.create(base_offset, True)
        files.write(base_offset, 0, b'%d' % base_offset)
    assert [files.read(base_offset, 0, 1) for base_offset in range(1, 9)] == [
        b'%d' % base_offset for base_offset in range(1, 9)
    ]
    assert files.found() == list(range(9))
    assert len(open_files._open) == 3


def test_a_file_that_became_shorter_is_noticed(files):
    files.write(0, 0, b'abc')
    with pytest.raises(StorageError, match='00000.log ends inside a batch'):
        files.read(0, 1, 3)


def test_a_write_that_fails_leaves_nothing_behind(files, monkeypatch):
    """Half of it went to the disk, which is full then."""
    files.write(0, 0, b'abc')
    room = [2]

    def write(fd, data, write=os.write):
        left, room[0] = room[0], 0
        if not left:
            raise OSError(errno.ENOSPC, 'No space left on device')
        return write(fd, bytes(data)[:left])

    with monkeypatch.context() as patched:
        patched.setattr(os, 'write', write)
        with pytest.raises(OSError, match='No space left'):
            files.write(0, 3, b'defg')
    assert files.size(0) == 3
    files.write(0, 3, b'hij')
    assert files.read(0, 0, 6) == b'abchij'


def test_what_could_not_be_cut_off_is_cut_off_before_the_next_write(files, monkeypatch):
    def fail(*args):
        raise OSError(errno.EIO, 'Input/output error')

    with monkeypatch.context() as patched:
        patched.setattr(os, 'write', fail)
        patched.setattr(os, 'ftruncate', fail)
        with pytest.raises(OSError, match='Input/output'):
            files.write(0, 0, b'abc')
    with open(files.path(0), 'wb') as file:
        file.write(b'ab')
    files.write(0, 0, b'xyz')
    assert files.read(0, 0, 3) == b'xyz'
    assert files.size(0) == 3


@pytest.mark.parametrize('name', ['7.log', 'notes.log'])
def test_foreign_files_are_named_and_left_alone(files, name):
    (files.folder / name).write_bytes(b'mine')
    with pytest.raises(StorageError, match='%s is not a segment of a log: move it' % name):
        files.found()
    assert (files.folder / name).read_bytes() == b'mine'


def test_heads_of_all_formats_are_found(files):
    data = [
        encode_message_set([(0, 7, b'k', b'v')], magic=0),
        encode_message_set([(1, 7, b'k', b'v'), (2, 9, b'k', b'v')], magic=1, codec=1),
        batch(3, 4),
    ]
    files.write(0, 0, b''.join(data))
    heads = list(files.heads(0, 0, 0, True))
    assert [head[:4] for head in heads] == [(0, 0, -1, 0), (1, 2, 9, 1), (3, 6, 1003, 2)]
    assert [head.size_bytes for head in heads] == list(map(len, data))


@pytest.mark.parametrize('left', [0, 1, 11, 16, 60, 70])
def test_heads_end_where_a_batch_is_torn(files, left):
    files.write(0, 0, batch(0) + batch(1) + batch(2)[:left])
    assert [head.base_offset for head in files.heads(0, 0, 0, False)] == [0, 1]


@pytest.mark.parametrize('magic', [0, 1, 2])
def test_heads_end_where_a_checksum_is_wrong(files, magic):
    old = encode_message_set([(0, 7, b'k', b'v')], magic=min(magic, 1))
    damaged = bytearray(old if magic < 2 else batch(0))
    damaged[-1] ^= 1
    files.write(0, 0, bytes(damaged))
    assert list(files.heads(0, 0, 0, True)) == []
    assert len(list(files.heads(0, 0, 0, False))) == 1


def test_zeros_are_no_batch(files):
    files.write(0, 0, batch(0) + bytes(4096))
    assert len(list(files.heads(0, 0, 0, True))) == 1


def test_an_index_grows_at_its_end(files):
    files.write_index(0, 0, array('q', range(8)), False)
    files.write_index(0, 1, array('q', range(10, 18)), False)
    assert list(files.read_index(0, 3)) == [0, 1, 2, 3, *range(10, 18)]
    assert files.read_index(0, 4) is None
    assert files.read_index(7, 1) is None


def test_a_checkpoint_is_whole_or_not_there(files):
    assert files.read_checkpoint() is None
    files.write_checkpoint({'start': 7}, True)
    assert files.read_checkpoint() == {'start': 7}
    (files.folder / 'checkpoint').write_bytes(b'who knows')
    assert files.read_checkpoint() is None


def test_leftovers_go(files):
    for name in ('%020d.cleaned' % 0, 'checkpoint.new'):
        (files.folder / name).write_bytes(b'x')
    files.remove_leftovers()
    assert sorted(path.name for path in files.folder.iterdir()) == ['%020d.log' % 0]


def test_a_segment_is_replaced_and_removed(files):
    files.write(0, 0, b'abc')
    files.replace(0, b'x')
    assert files.read(0, 0, 1) == b'x'
    files.remove(0)
    assert files.size(0) == -1


@pytest.mark.parametrize('damage', [b'', b'\n', b'00000000 7\n', b'{}', b'x' * 30])
def test_lines_with_checksums(damage):
    assert opened(sealed(['a', 1])) == ['a', 1]
    assert opened(sealed(['a', 1])[:-1]) is None
    assert opened(damage) is None
