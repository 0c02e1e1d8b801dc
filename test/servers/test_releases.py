"""Which releases there are, which ones words choose, and what is said where one cannot run."""

from __future__ import annotations

import subprocess

import pytest

from servers import releases
from servers.releases import SERVERS, chosen, problem

TABLE = releases.releases()
ASKED_FOR = (
    '0.8.0 0.8.1.1 0.8.2.2 0.9.0.1 0.10.0.1 0.10.2.2 0.11.0.3 1.1.1 2.0.1 2.8.2 3.9.2 4.0.2 4.2.1'
    ' 4.3.1 4.4.0'
).split()


def names(found):
    return [release.name for release in found]


def test_the_table_set_is_every_release_that_the_documents_promise():
    assert names(chosen('table')) == ASKED_FOR


def test_the_default_set_has_the_oldest_and_the_newest_and_is_part_of_the_table():
    default = names(chosen('default'))
    assert (default[0], default[-1]) == ('0.8.0', '4.4.0')
    assert set(default) < set(ASKED_FOR)


def test_releases_stand_from_the_oldest_to_the_newest():
    versions = [release.version for release in TABLE.values()]
    assert versions == sorted(versions)


def test_words_choose_in_the_order_of_the_table_whatever_stands_between():
    assert names(chosen('4.4.0, 0.8.0 2.8.2')) == ['0.8.0', '2.8.2', '4.4.0']
    assert names(chosen('all')) == list(TABLE)


def test_the_environment_chooses_when_no_words_do(monkeypatch):
    monkeypatch.setenv('KAFKA_VERSION', '0.9.0.1')
    assert names(chosen()) == ['0.9.0.1']
    monkeypatch.setenv('KAFKA_VERSION', '')
    assert names(chosen()) == names(chosen('default'))


def test_a_set_is_no_name_of_a_release(monkeypatch):
    monkeypatch.delenv('KAFKA_VERSION', raising=False)
    assert not releases.are_named()
    assert not releases.are_named('embedded, more')
    assert releases.are_named('table 0.8.0')


def test_an_unknown_word_is_an_error_that_names_it():
    with pytest.raises(ValueError, match='5.0.0'):
        chosen('5.0.0')


@pytest.mark.parametrize('release', TABLE.values(), ids=TABLE)
def test_every_release_has_templates_of_its_era(release):
    assert (release.resources / 'common.properties').is_file()
    server = (release.resources / 'server.properties').read_text()
    assert ('zookeeper.connect' in server) == release.has_zookeeper
    assert ('process.roles' in server) != release.has_zookeeper
    assert ('host.name' in server) == (release.version < (0, 9))


def test_build_script_chooses_the_same_releases_as_the_fixtures():
    """Both read releases.txt, one in bash, one in Python."""
    script = SERVERS.parent / 'build_integration.sh'
    start = script.read_text().index('# Print the table')
    end = script.read_text().index('dependency() {')
    program = 'table=%s\nfail() { echo "$*"; exit 1; }\n%s\nselect_releases "$@"' % (
        SERVERS / 'releases.txt',
        script.read_text()[start:end],
    )
    for words in ('default', 'embedded', 'table', 'all', '0.8.0 4.4.0'):
        done = subprocess.run(
            ['bash', '-c', program, 'bash', *words.split()], capture_output=True, check=True
        )
        assert done.stdout.decode().split() == names(chosen(words))


def test_missing_jars_are_told_with_the_command_that_brings_them(monkeypatch, tmp_path):
    monkeypatch.setattr(releases, 'SERVERS', tmp_path)
    monkeypatch.setattr(releases.shutil, 'which', lambda program: '/usr/bin/' + program)
    assert problem(TABLE['0.8.0']) == (
        'servers/0.8.0/kafka-bin is missing: run ./build_integration.sh 0.8.0'
    )


def test_missing_maven_and_missing_java_are_told_by_name(monkeypatch, tmp_path):
    monkeypatch.setattr(releases, 'SERVERS', tmp_path)
    monkeypatch.setattr(releases.shutil, 'which', lambda program: None)
    assert 'Maven' in problem(TABLE['0.8.0'])
    TABLE['0.8.0'].libs.mkdir(parents=True)
    assert 'Java' in problem(TABLE['0.8.0'])


@pytest.mark.parametrize(
    'told, expected',
    [
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "25" 2025-09-16', None),
        ('openjdk version "11.0.2" 2019-01-15', 'says: openjdk version "11.0.2"'),
        ('java version "1.8.0_202"', 'says: java version "1.8.0_202"'),
        ('', 'no answer'),
    ],
)
def test_java_is_new_enough_or_its_own_words_are_shown(monkeypatch, told, expected):
    done = subprocess.CompletedProcess([], 0, stdout=told.encode())
    monkeypatch.setattr(releases.shutil, 'which', lambda program: '/usr/bin/' + program)
    monkeypatch.setattr(releases.subprocess, 'run', lambda *_, **__: done)
    found = releases.java_problem()
    assert found is None if expected is None else expected in found


def test_the_kind_of_broker_is_one_of_two(monkeypatch):
    monkeypatch.delenv('KAFKA_BROKER', raising=False)
    assert releases.chosen_kind() == 'real'
    monkeypatch.setenv('KAFKA_BROKER', 'embedded')
    assert releases.chosen_kind() == 'embedded'
    monkeypatch.setenv('KAFKA_BROKER', 'imbedded')
    with pytest.raises(ValueError, match='imbedded'):
        releases.chosen_kind()
