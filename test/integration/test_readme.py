"""The programs in the README do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka import KafkaProducer, SimpleClient, SimpleConsumer

pytestmark = [pytest.mark.integration, pytest.mark.releases(some=('4.4.0',), since='0.8.1')]

ROOT = Path(__file__).resolve().parents[2]


def run(cluster, name):
    """Run the program of the README that imports a name; return what it prints."""
    text = (ROOT / 'README.rst').read_text(encoding='utf-8')
    blocks = re.findall(r'\.\. code:: python\n\n((?:    .*\n|\n)+)', text)
    (code,) = [block for block in blocks if re.search(r'import .*\b%s\b' % name, block)]
    program = re.sub(r'(?m)^    ', '', code)
    assert '127.0.0.1:9092' in program
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-'],
        input=program.replace('127.0.0.1:9092', cluster.bootstrap).encode(),
        cwd=str(ROOT),
        env={'PYTHONPATH': str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')
    return done.stdout


def test_the_program_of_2015_reads_what_it_wrote(cluster):
    printed = run(cluster, 'SimpleProducer')
    assert re.findall(rb"b'(\w+)'", printed) in ([b'hello', b'world'], [b'world', b'hello'])


def test_the_consumer_reads_what_the_producer_wrote(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        stored = producer.send('numbers', b'told', key=b'first').get(timeout=30)
    line = b"%d %d b'first' b'told'" % (stored.partition, stored.offset)
    assert line in run(cluster, 'KafkaConsumer').splitlines()


def test_the_records_of_the_producer_are_stored(cluster):
    printed = run(cluster, 'KafkaProducer')
    assert re.fullmatch(rb'partition \d, offset \d+\n998 more are stored\n', printed)
    client = SimpleClient(cluster.bootstrap)
    consumer = SimpleConsumer(client, None, 'numbers', auto_commit=False, iter_timeout=2)
    found = {each.message.value for each in consumer}
    client.close()
    assert found >= {b'one', *(b'%d' % number for number in range(2, 1000))}
