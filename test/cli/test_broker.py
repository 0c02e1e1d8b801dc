"""``python -m kafka broker``: its command line, what it says, and its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from kafka import KafkaClient
from kafka import __main__ as command_line
from kafka.cli import broker
from test.cli.conftest import ROOT, ended_with


@pytest.mark.parametrize('args', [['--help'], ['-h'], ['--port', '1', '-h']])
def test_usage(capsys, args):
    out = ended_with(0, capsys, command_line.main, ['broker', *args])
    assert '--topic NAME[:N]' in out and '--super-user NAME' in out and '(9092)' in out


@pytest.mark.parametrize(
    'args, command',
    [
        ([], {}),
        (['--port', '19092', '--version=2.8'], {'port': 19092, 'version': '2.8'}),
        (['--brokers', '3', '--host', '::1'], {'brokers': 3, 'host': '::1'}),
        (['--topic', 't:6', '--topic=u'], {'topics': {'t': 6, 'u': 1}}),
        (['--port=0'], {'port': 0}),
        (['--data', 'here'], {'data': 'here'}),
        (['--fsync', '--data=here'], {'data': 'here', 'fsync': True}),
    ],
)
def test_a_command_line_is_taken_apart(args, command):
    assert broker.parse(args) == broker.BrokerCommand(**{'topics': {}, **command})


@pytest.mark.parametrize(
    'args, reason',
    [
        (['--port'], '--port: expected one argument'),
        (['--port', 'x'], "--port: expected a number from 0 to 65535, got 'x'"),
        (['--port', '65536'], "--port: expected a number from 0 to 65535, got '65536'"),
        (['--port=-1'], "--port: expected a number from 0 to 65535, got '-1'"),
        (['--port', '\N{ARABIC-INDIC DIGIT ONE}'], '--port: expected a number'),
        (['--brokers', '0'], "--brokers: expected a number from 1 to 2147483647, got '0'"),
        (['--topic', ':3'], "--topic: expected NAME or NAME:PARTITIONS, got ':3'"),
        (['--topic', 't:'], "--topic: expected a number from 1 to 2147483647, got ''"),
        (['--topic', 't:0'], "got '0'"),
        (['--host='], '--host: expected a value, got none'),
        (['--users='], '--users: expected a value, got none'),
        (['--users', ''], '--users: expected a value, got none'),
        (['--certificate=', '--key='], '--certificate: expected a value, got none'),
        (['--super-user='], '--super-user: expected a value, got none'),
        (['--verbose'], 'unrecognized arguments: --verbose'),
        (['--vers', '2.8'], 'unrecognized arguments: --vers 2.8'),
        (['9092'], 'unrecognized arguments: 9092'),
        (['--fsync'], '--fsync needs --data'),
        (['--fsync=no', '--data', 'here'], '--fsync'),
        (['--version', '9.9'], "unknown version '9.9'"),
        (['--topic', 'a b'], "invalid name of a topic: 'a b'"),
        (['--port', '65535', '--brokers', '2'], 'room for 2'),
    ],
)
def test_wrong_command_lines_are_told(capsys, args, reason):
    assert reason in ended_with(2, capsys, broker.main, args)


@pytest.mark.parametrize(
    'make, reason',
    [
        (lambda path: path.write_text('mine'), 'cannot be used'),
        (lambda path: (path.mkdir(), (path / 'thesis').write_text('x')), 'it holds thesis. Choose'),
        (lambda path: (path / 'under').parent.symlink_to(path), 'cannot be used'),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line_and_status_1(capsys, tmp_path, make, reason):
    make(tmp_path / 'data')
    assert broker.main(['--port', '0', '--data', str(tmp_path / 'data')]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count('\n')) == ('', 1)
    assert reason in err
    assert str(tmp_path / 'data') in err


@pytest.mark.parametrize('more, ports', [([], '%d'), (['--brokers', '2'], '%d to %d')])
def test_a_port_that_is_taken_is_one_line_and_status_1(capsys, more, ports):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        assert broker.main(['--port', str(port), *more]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count('\n')) == ('', 1)
    assert 'port ' + ports % (port, port + 1)[: ports.count('%')] in err
    assert 'in use' in err.lower()


def test_a_host_that_is_none_is_one_line(capsys):
    assert broker.main(['--host', 'no.such.host.invalid', '--port', '0']) == 1
    out, err = capsys.readouterr()
    assert (out, err.count('\n')) == ('', 1)
    assert 'no.such.host.invalid' in err


@pytest.fixture
def running():
    """Start brokers in a process; returns it and what it said first."""
    started = []

    def start(*args, by=('-m', 'kafka', 'broker')):
        process = subprocess.Popen(
            [sys.executable, *by, *args],
            env={**os.environ, 'PYTHONPATH': ROOT},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        said = ''
        while 'Stop with' not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        return process, said

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize('number, status', [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_a_signal_ends_it(running, number, status):
    process, said = running('--port', '0', '--brokers', '2', '--version', '2.8', '--topic', 't:6')
    assert said.startswith('Kafka 2.8 in pure Python, everything in memory: 2 brokers\n')
    assert 't (6)' in said
    assert 'kill %d' % process.pid in said
    bootstrap = re.search('Clients start with: (.+)', said).group(1)
    client = KafkaClient(bootstrap)
    assert len(client.get_partition_ids_for_topic('t')) == 6
    client.close()
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (status, 'Stopped.\n', '')


@pytest.mark.parametrize('turn', range(3))
def test_a_signal_ends_it_in_whatever_moment_it_comes(running, turn):
    """Once in some thousand times it came where the handler waited for what it had interrupted."""
    look_always = 'broker.LOOK_SECONDS = 0; raise SystemExit(broker.main(sys.argv[1:]))'
    process, _ = running(
        '--port', '0', by=('-c', 'import sys; from kafka.cli import broker; ' + look_always)
    )
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=10) == ('Stopped.\n', '')


def test_what_it_kept_is_there_at_the_next_start(running, tmp_path):
    for topics in ([], ['--topic', 't:6']):
        process, said = running('--port', '0', '--data', str(tmp_path), '--fsync', *topics)
        assert 'everything in %s: 1 broker' % tmp_path in said
        bootstrap = re.search('Clients start with: (.+)', said).group(1)
        client = KafkaClient(bootstrap)
        client.ensure_topic_exists('u')
        client.close()
        assert ('u (1)' in said) is bool(topics)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=10) == ('Stopped.\n', '')


def test_nobody_needs_to_read_what_it_says(running):
    process, _ = running('--port', '0')
    process.stdout.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert process.stderr.read() == ''
    process.stdout = open(os.devnull)
