"""Programs patched by gevent and eventlet (test/patched.py) on embedded brokers: nothing blocks."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest

from kafka.testing import Cluster
from kafka.testing.faults import Hang
from test.hostile_servers import Server
from test.patched import KINDS, TICK
from test.sources import ROOT
from test.stored import stored

# A ticker that is blocked has no tick in a second, or the one that was due; on a busy machine one
# that is not has few of its hundred.
LEAST = 3


def program(kind, *arguments):
    """Start a program; skips where the package is not installed."""
    if importlib.util.find_spec(kind) is None:
        pytest.skip('%s is not installed on this Python' % kind)
    return subprocess.Popen(
        [sys.executable, '-m', 'test.patched', kind, *arguments],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process, may_tell='nothing'):
    """Return what a program printed, once it has ended well; it may tell of one thing only."""
    with process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and (not err or may_tell in err), (err, out)
    return json.loads(out)


def check_ticks(found):
    # What is over sooner leaves time for fewer; blocked throughout there would be one at most.
    assert found['ticks'] >= min(LEAST, max(2, found['seconds'] / TICK / 2)), found


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 1}) as running:
        yield running


@pytest.fixture
def stalled(cluster):
    cluster.faults.add(Hang(), 'Produce', times=None)
    return cluster.bootstrap


def test_greenlets_share_a_producer(kind, cluster):
    found = result(program(kind, 'shared', cluster.bootstrap, 't'))
    assert found['error'] is None
    check_ticks(found)
    records = stored(cluster)
    for name, offsets in enumerate(found['offsets']):
        assert [records[each] for each in offsets] == [
            b'%d-%d' % (name, number) for number in range(len(offsets))
        ]
    assert len(records) == 5 * 40 + 1000


def test_limits_are_obeyed_and_let_others_run(kind, stalled):
    with Server() as silent:
        found = result(program(kind, 'limits', silent.address, stalled))
    assert {what: each['error'] for what, each in found.items()} == {
        'constructor': 'NoBrokersAvailable',
        'send': 'KafkaTimeoutError',
        'close without work': None,
        'get': 'KafkaTimeoutError',
        'flush': 'FlushTimeoutError',
        'close': None,
    }
    idle = found.pop('close without work')
    assert idle['seconds'] < 5
    for each in found.values():
        assert 0.99 <= each['seconds'] < 5
        check_ticks(each)


@pytest.mark.skipif(os.name == 'nt', reason='signals of POSIX')
def test_ctrl_c_ends_a_wait(kind, stalled):
    process = program(kind, 'interrupted', stalled, 't')
    with process:
        assert process.stdout.readline() == 'READY\n', process.stderr.read()
        process.send_signal(signal.SIGINT)
        # gevent and eventlet show what ends a greenlet; that of the other one may have been told.
        found = result(process, may_tell='KeyboardInterrupt')
    assert found['interrupted']
    assert found['close']['seconds'] < 5


@pytest.mark.skipif(os.name == 'nt', reason='signals of POSIX')
def test_ctrl_c_tears_no_coroutine_of_a_greenlet(kind, cluster):
    found = result(program(kind, 'interrupted_within', cluster.bootstrap, 't'))
    assert found == {'greenlet': ['on'], 'offset': 0, 'handler': True}


def test_clients_of_0_9_5(kind, cluster):
    found = result(program(kind, 'clients_09', cluster.bootstrap, 't'))
    assert found['error'] is None
    check_ticks(found)
    records = stored(cluster)
    for name, count in enumerate((200, 200, 200, 100)):
        mine = [each for each in records if each.startswith(b'%d-' % name)]
        assert mine == [b'%d-%d' % (name, number) for number in range(count)]


def test_limits_of_clients_of_0_9_5(kind, stalled):
    with Server() as silent:
        found = result(program(kind, 'limits_09', silent.address, stalled))
    assert found['constructor']['error'] == 'KafkaUnavailableError'
    assert found['send_messages']['error'] == 'FailedPayloadsError'
    for each in found.values():
        assert 0.99 <= each['seconds'] < 10
        check_ticks(each)
