"""Batches in segment files: what was written comes back, and a torn end does not."""

from __future__ import annotations

import pytest

from kafka.record.default_records import encode_batch
from kafka.record.legacy_records import encode_message_set
from kafka.testing.segments import Segments, StorageError


def batch(offset, count=1, size=10):
    records = [(1000 + n, None, b'v' * size, []) for n in range(count)]
    return encode_batch(records, base_offset=offset)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / 'topic-0'


@pytest.fixture
def opened(folder):
    """Return a function that opens the folder and recovers; all are closed at the end."""
    made = []

    def give(**options):
        segments = Segments(folder, **options)
        made.append(segments)
        return segments, segments.recover()

    yield give
    for segments in made:
        segments.close()


def fill(segments, offsets, count=1):
    return [segments.append(batch(offset, count), offset) for offset in offsets]


def test_what_was_written_is_read(opened):
    segments, heads = opened()
    assert heads == []
    places = fill(segments, range(3))
    assert [segments.read(place) for place in places] == [batch(n) for n in range(3)]


def test_heads_come_back_at_the_next_start(opened):
    segments, _ = opened()
    places = fill(segments, [0, 4, 8], count=4)
    segments.close()
    again, heads = opened()
    assert [(head.base_offset, head.last_offset) for head in heads] == [(0, 3), (4, 7), (8, 11)]
    assert [head.place for head in heads] == places
    assert {head.max_timestamp for head in heads} == {1003}
    assert again.read(heads[1].place) == batch(4, 4)


def test_messages_of_old_formats_come_back_too(opened):
    segments, _ = opened()
    for magic in (0, 1):
        data = encode_message_set([(magic, 7, b'k', b'v')], magic=magic)
        segments.append(data, magic)
    segments.close()
    _, heads = opened()
    assert [(head.magic, head.last_offset, head.max_timestamp) for head in heads] == [
        (0, 0, -1),
        (1, 1, 7),
    ]


@pytest.mark.parametrize('left', [1, 11, 16, 60, 70])
def test_a_torn_end_is_cut_off(opened, folder, left):
    segments, _ = opened()
    fill(segments, range(2))
    segments.close()
    file = folder / ('%020d.log' % 0)
    whole = file.read_bytes()
    file.write_bytes(whole + batch(2)[:left])
    again, heads = opened()
    assert len(heads) == 2
    assert file.read_bytes() == whole
    fill(again, [2])
    again.close()
    assert len(opened()[1]) == 3


def test_an_end_whose_checksum_is_wrong_is_cut_off(opened, folder):
    segments, _ = opened()
    fill(segments, range(2))
    segments.close()
    file = folder / ('%020d.log' % 0)
    damaged = bytearray(batch(2))
    damaged[-1] ^= 1
    file.write_bytes(file.read_bytes() + damaged)
    assert len(opened()[1]) == 2


def test_damage_before_the_checkpoint_is_no_torn_end(opened, folder):
    """It is reported, and nothing is cut off."""
    segments, _ = opened()
    fill(segments, range(3))
    segments.close()
    file = folder / ('%020d.log' % 0)
    data = bytearray(file.read_bytes())
    data[8] = 0x7F  # the size of the first batch
    file.write_bytes(data)
    with pytest.raises(StorageError, match='broken at byte 0 of'):
        Segments(folder).recover()
    assert file.read_bytes() == data


def test_segments_roll_by_size_and_go_when_they_are_before_the_start(opened, folder):
    size = len(batch(0))
    segments, _ = opened(segment_bytes=2 * size)
    fill(segments, range(5))
    assert list(segments.segments()) == [(0, 2 * size), (2, 2 * size), (4, size)]
    assert segments.delete_before(3, {0: 2, 2: 4, 4: 5}) == [0]
    segments.close()
    again, heads = opened(segment_bytes=2 * size)
    assert again.start_offset == 3
    assert [head.base_offset for head in heads] == [2, 3, 4]


def test_the_last_segment_stays_even_when_all_of_it_is_before_the_start(opened):
    segments, _ = opened()
    fill(segments, range(2))
    assert segments.delete_before(2, {0: 2}) == []
    assert list(segments.segments()) == [(0, 2 * len(batch(0)))]


@pytest.mark.parametrize('name', ['7.log', 'notes.log'])
def test_foreign_files_are_named_and_left_alone(folder, name):
    folder.mkdir()
    (folder / name).write_bytes(b'mine')
    with pytest.raises(StorageError, match='no segment of a log'):
        Segments(folder).recover()
    assert (folder / name).read_bytes() == b'mine'


def test_a_foreign_checkpoint_is_named(folder):
    folder.mkdir()
    (folder / 'checkpoint').write_text('who knows')
    with pytest.raises(StorageError, match='no checkpoint'):
        Segments(folder).recover()


def test_a_file_that_became_shorter_is_noticed(opened, folder):
    segments, _ = opened()
    (place,) = fill(segments, [0])
    (folder / ('%020d.log' % 0)).write_bytes(b'')
    with pytest.raises(StorageError, match='ends inside a batch'):
        segments.read(place)
