"""How programs with a KafkaConsumer end: the handler of a signal, and the interpreter's own exit.

Each program is a real process that talks to an embedded broker of the test's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from kafka.testing import Cluster
from test.sources import ROOT

PRELUDE = """
import os, signal, sys, threading, time
from kafka import *
from kafka import ConsumerRebalanceListener
from kafka.structs import *

servers = sys.argv[1]
main = threading.get_ident()

def new(*topics, **options):
    return KafkaConsumer(*topics, bootstrap_servers=servers, **options)

def terminate(consumer):
    while consumer._engine.loop._driver != main:  # until the main thread waits
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

def stopped_while_waiting(consumer):
    def stop(number, frame):
        consumer.close()
        sys.exit(3)

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=terminate, args=(consumer,), daemon=True).start()
"""


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 2}) as running:
        yield running


def run(program, cluster, python=sys.executable):
    """Run a program; return its exit code and what it wrote to standard error."""
    done = subprocess.run(
        [python, '-W', 'error', '-c', PRELUDE + textwrap.dedent(program), cluster.bootstrap],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': ROOT},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr.decode()


WAITS = {
    'poll': """
        while True:
            consumer.poll(timeout_ms=1000)
    """,
    'iteration in a with block': """
        with consumer:
            for record in consumer:
                pass
    """,
}


@pytest.mark.skipif(os.name == 'nt', reason='a process of Windows cannot send itself SIGTERM')
@pytest.mark.parametrize('protocol', ['classic', 'consumer'])
@pytest.mark.parametrize('wait', WAITS)
def test_a_handler_that_closes_and_exits_while_the_consumer_waits_ends_the_program(
    cluster, wait, protocol
):
    program = """
        consumer = new('t', group_id='g-%s', group_protocol='%s')
        stopped_while_waiting(consumer)
    """
    text = textwrap.dedent(program % (protocol, protocol)) + textwrap.dedent(WAITS[wait])
    assert run(text, cluster) == (3, '')


LEFT_OPEN = {
    'polled': "consumer = new('t', group_id='g'); consumer.poll(timeout_ms=1000)",
    'polled, KIP-848': """
        consumer = new('t', group_id='g8', group_protocol='consumer')
        consumer.poll(timeout_ms=1000)
    """,
    'kept by a module that goes last': """
        import builtins
        builtins.consumer = new('t', group_id='g')
        builtins.consumer.poll(timeout_ms=500)
    """,
    'in use by a daemon thread': """
        def read():
            consumer = new('t', group_id='g')
            while True:
                consumer.poll(timeout_ms=100)

        threading.Thread(target=read, daemon=True).start()
        time.sleep(0.7)
    """,
    'no cluster': """
        consumer = KafkaConsumer('t', bootstrap_servers='127.0.0.1:1', api_version=(2, 0))
        consumer.poll(timeout_ms=300)
    """,
}


@pytest.mark.parametrize('case', LEFT_OPEN)
def test_the_end_of_the_interpreter_begins_and_prints_nothing(cluster, case):
    assert run(LEFT_OPEN[case], cluster) == (0, '')
