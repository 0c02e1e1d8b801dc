"""The package runs under ``python -bb -W error -X dev``, where bytes meet no text and no number.

test/run.py runs all tests without brokers so, once; here is what every program does, in a process
of its own, with topics that are bytes, as 0.9.5 had them.
"""

from __future__ import annotations

import subprocess
import sys

from test.sources import ROOT

STRICT = ['-bb', '-W', 'error', '-X', 'dev']

IMPORTS = """
import importlib, pkgutil, kafka
for module in pkgutil.walk_packages(kafka.__path__, 'kafka.'):
    if not module.name.endswith('__main__'):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # of an optional package
            assert not error.name.startswith('kafka'), error
"""

CLIENTS = """
from kafka import KafkaClient, KafkaConsumer, KafkaProducer, SimpleConsumer, SimpleProducer
from kafka.common import UnknownTopicOrPartitionError
from kafka.testing import Cluster

with Cluster(version='4.4', topics={'t': 1}) as cluster:
    servers = {'bootstrap_servers': cluster.bootstrap}
    with KafkaProducer(**servers) as producer:
        producer.send_many('t', [b'v'] * 9000)
        producer.send('t', b'v', b'k', [('h', None)]).get(30)
    client = KafkaClient(cluster.bootstrap)
    SimpleProducer(client).send_messages(b't', b'v')
    old = SimpleConsumer(client, b'g', b't', auto_offset_reset='smallest')
    assert b't' in repr(old).encode() and len(old.get_messages(9002, timeout=30)) == 9002
    client.load_metadata_for_topics('t')
    assert client.has_metadata_for_topic(b't') and client.has_metadata_for_topic('t')
    old.stop()
    client.close()
    for options in ({'group_id': 'h'}, {'dialect': '0.9.5'}):
        reset = 'smallest' if 'dialect' in options else 'earliest'
        with KafkaConsumer('t', auto_offset_reset=reset, **options, **servers) as consumer:
            for number, _ in zip(range(9002), consumer):
                pass
            assert number == 9001
"""


def strictly(*arguments):
    """Run the interpreter so, and return what it prints; it must print no warning."""
    done = subprocess.run(
        [sys.executable, *STRICT, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout


def test_every_module_can_be_imported():
    strictly('-c', IMPORTS)


def test_clients_of_all_eras_send_and_read():
    strictly('-c', CLIENTS)


def test_kafka_run_shows_no_warning_of_its_own(tmp_path):
    program = tmp_path / 'program.py'
    program.write_text('from kafka import KafkaConsumer, KafkaProducer\nprint(5)\n')
    assert strictly('-m', 'kafka', 'run', str(program)) == '5\n'
