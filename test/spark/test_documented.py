"""The programs in the README and in the page about PySpark do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka.consumer.bounded.reader import BoundedReader
from kafka.testing import Cluster
from test.spark.conftest import SETTINGS, environment
from test.spark.embedded import fill

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r'\.\. code:: python\n\n((?:    .*\n|\n)+)')


def programs(page, word='SparkSession'):
    """Return the programs of a page that have a word in them: those that begin a session."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding='utf-8'))
    return [re.sub('(?m)^    ', '', block) for block in blocks if word in block]


def run(program, cluster, folder):
    """Run a program as its user would, in a folder of its own; return what it prints."""
    assert '127.0.0.1:9092' in program
    settings = ''.join('.config(%r, %r)' % each for each in SETTINGS.items())
    program = program.replace('SparkSession.builder', 'SparkSession.builder' + settings)
    done = subprocess.run(
        [sys.executable, '-'],
        input=program.replace('127.0.0.1:9092', cluster.bootstrap).encode(),
        cwd=str(folder),
        env={**environment(), 'PATH': '/usr/bin:/bin', 'SPARK_LOCAL_IP': '127.0.0.1'},
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture
def cluster():
    with Cluster(topics={'numbers': 2, 'shouted': 1, 'squares': 1}) as made:
        fill(made, 'numbers', 0, [b'one', b'two'])
        fill(made, 'numbers', 1, [b'three'])
        yield made


def stored(cluster, topic):
    with BoundedReader(topic, bootstrap_servers=cluster.bootstrap) as reader:
        return sorted(record.value for record in reader)


def test_the_readme_reads_streams_and_writes(cluster, tmp_path):
    read, stream, write = programs('README.rst', 'spark.r')
    shown = run('\n'.join([read, stream, write]), cluster, tmp_path)
    assert sorted(re.findall(r'\|\s*(\w+)\|', shown)) == ['one', 'three', 'two', 'value']
    assert stored(cluster, 'shouted') == [b'ONE', b'THREE', b'TWO']
    assert stored(cluster, 'squares') == sorted(b'%d' % (n * n) for n in range(100))


def test_the_programs_of_the_page(cluster, tmp_path):
    read, stream, write, taken_over = programs('docs/spark.rst')
    shown = run(read, cluster, tmp_path)
    assert sorted(re.findall(r'\|\s*(\d+)\|\s*(\d+)\|\s*(\w+)\|', shown)) == [
        ('0', '0', 'one'), ('0', '1', 'two'), ('1', '0', 'three')
    ]  # fmt: skip
    run(stream, cluster, tmp_path)
    assert stored(cluster, 'shouted') == [b'ONE', b'THREE', b'TWO']
    run(write, cluster, tmp_path)
    assert stored(cluster, 'squares') == sorted(b'%d' % (n * n) for n in range(100))
    assert run(taken_over, cluster, tmp_path).splitlines()[-1] == '3 records'
