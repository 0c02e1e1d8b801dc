"""What a cluster does when it cannot start, with a stand-in for Java; real ones run elsewhere."""

from __future__ import annotations

import os
import re
import tempfile

import pytest

from servers import cluster
from servers.cluster import Cluster, ClusterError
from servers.releases import releases

TABLE = releases()


@pytest.fixture
def java(monkeypatch, tmp_path):
    """Return a function that makes these lines of shell the program ``java``; temporary folders
    are made in ``tmp_path / 'temporary'``."""
    programs, temporary = tmp_path / 'programs', tmp_path / 'temporary'
    programs.mkdir()
    temporary.mkdir()
    monkeypatch.setenv('PATH', '%s:%s' % (programs, os.environ['PATH']))
    monkeypatch.setattr(tempfile, 'tempdir', str(temporary))

    def make(lines):
        program = programs / 'java'
        program.write_text('#!/bin/sh\n' + lines + '\n')
        program.chmod(0o755)

    return make


@pytest.mark.parametrize('name', ['0.8.0', '4.4.0'])
def test_a_failed_start_shows_the_log_and_leaves_nothing(java, tmp_path, name):
    java('echo could not reserve enough space; exit 3')
    with pytest.raises(ClusterError, match='could not reserve enough space'):
        Cluster(TABLE[name]).start()
    assert list((tmp_path / 'temporary').iterdir()) == []


def test_a_port_that_was_taken_meanwhile_is_tried_again_with_others(java, tmp_path):
    java('echo once >> %s; echo Address already in use; exit 1' % (tmp_path / 'count'))
    with pytest.raises(ClusterError, match='Address already in use'):
        Cluster(TABLE['4.4.0']).start()
    assert (tmp_path / 'count').read_text() == 'once\n' * 3


def test_a_start_that_takes_too_long_ends_with_the_log(java, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster.Cluster, 'start_seconds', 0.2)
    java('echo thinking; exec sleep 600')
    with pytest.raises(ClusterError, match='thinking'):
        Cluster(TABLE['4.4.0']).start()
    assert list((tmp_path / 'temporary').iterdir()) == []


@pytest.mark.parametrize('name', ['0.8.0', '2.8.2', '4.4.0'])
def test_every_word_in_braces_of_the_templates_is_filled_in(java, name):
    """The stand-in prints the files that it was started with: none may hold braces."""
    java('cat *.properties; exit 1')
    with pytest.raises(ClusterError) as caught:
        Cluster(TABLE[name], 3, {'own.setting': 'own value'}).start()
    shown = str(caught.value)
    assert re.search(r'(?m)^own\.setting=own value$', shown)
    assert re.search(r'(?m)^[^#\n]*[{}]', shown) is None


def test_brokers_have_the_jvm_options_that_are_given(java):
    java('case "$*" in *kafka.Kafka*) echo "with $*"; exit 1;; *StorageTool*) exit 0;; esac')
    said = []
    for given in ({}, {'jvm': cluster.AS_SHIPPED}):
        with pytest.raises(ClusterError) as caught:
            Cluster(TABLE['4.4.0'], **given).start()
        said.append(str(caught.value))
    assert 'with -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ' in said[0]
    assert 'with -Xms1g -Xmx1g -server -XX:+UseG1GC ' in said[1]
    assert 'TieredStopAtLevel' not in said[1]


def test_stop_may_be_called_without_a_start_and_twice():
    made = Cluster(TABLE['4.4.0'])
    made.stop()
    made.stop()
    assert repr(made) == '<Cluster release=4.4.0 brokers=stopped>'


def test_free_ports_are_distinct():
    assert len(set(cluster.free_ports(6))) == 6
