"""A data folder belongs to one cluster at a time, and to embedded clusters only."""

from __future__ import annotations

import json
import os

import pytest

from kafka.testing.logs.segments import StorageError
from kafka.testing.storage import data_folder as module
from kafka.testing.storage.data_folder import DataFolder


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the folder; all are closed at the end."""
    made = []

    def give():
        folder = DataFolder(tmp_path / 'data')
        made.append(folder)
        return folder, folder.open()

    yield give
    for folder in made:
        folder.close()


def test_what_was_saved_comes_back(opened):
    folder, known = opened()
    assert known == {}
    folder.save({'topics': ['t']})
    folder.close()
    assert opened()[1] == {'topics': ['t']}


def test_a_folder_in_use_is_refused(opened):
    folder, _ = opened()
    with pytest.raises(StorageError, match='in use by another process'):
        opened()
    folder.close()
    opened()


def test_a_folder_whose_first_process_was_killed_early(opened):
    folder, _ = opened()
    (folder.path / 'embedded-kafka.json.new').write_text('{')
    folder.close()
    assert opened()[1] == {}


def test_a_foreign_folder_is_refused_and_left_alone(opened, tmp_path):
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'thesis.txt').write_text('mine')
    with pytest.raises(StorageError, match=r'it holds thesis\.txt'):
        opened()
    assert [path.name for path in (tmp_path / 'data').iterdir()] == ['thesis.txt']


@pytest.mark.parametrize('text', ['', '{', '[]', '{"format": 1}', 'null'])
def test_a_torn_file_is_refused_and_left_alone(opened, text):
    folder, _ = opened()
    folder.save({})
    folder.close()
    mark = folder.path / 'embedded-kafka.json'
    mark.write_text(text)
    with pytest.raises(StorageError, match='cannot be read'):
        opened()
    assert mark.read_text() == text


def test_another_format_is_refused(opened):
    folder, _ = opened()
    folder.save({})
    folder.close()
    (folder.path / 'embedded-kafka.json').write_text(json.dumps({'format': 1, 'known': {}}))
    with pytest.raises(StorageError, match='has format 1, this version reads 2'):
        opened()


def test_a_refused_folder_is_not_locked(opened):
    folder, _ = opened()
    folder.save({})
    folder.close()
    mark = folder.path / 'embedded-kafka.json'
    whole = mark.read_text()
    mark.write_text('{')
    with pytest.raises(StorageError):
        opened()
    mark.write_text(whole)
    opened()


@pytest.mark.skipif(os.name != 'posix', reason='modes are those of POSIX')
def test_only_the_owner_enters_it(tmp_path):
    before = os.umask(0)
    try:
        folder = DataFolder(tmp_path / 'new' / 'data')
        folder.open()
        folder.save({})
        folder.close()
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (folder.path, folder.path.parent)} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}


def test_folders_that_were_made_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(module, 'sync_folder', synced.append)
    folder = DataFolder(tmp_path / 'new' / 'data')
    folder.open()
    folder.close()
    assert synced == [tmp_path, tmp_path / 'new']
    folder.open()
    folder.close()
    assert len(synced) == 2


def test_logs_lie_in_folders_of_their_own(tmp_path):
    folder = DataFolder(tmp_path)
    assert folder.log_folder('Aa0', 3) == tmp_path / 'logs' / 'Aa0-3'
