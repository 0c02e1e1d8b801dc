"""The pipeline of examples/pipeline: what it writes, shows and draws, and says if it cannot run.

What it finds is computed here a second time, in plain Python from the same events.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from examples.pipeline import events, report
from test.spark.conftest import environment
from test.spark.embedded import fill

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / 'README.rst').read_text(encoding='utf-8')
MINUTES, SEED, SECONDS = events.SHORTEST_MINUTES, 7, 280
WINDOW_SECONDS, PATIENCE_SECONDS = 300, 600
START = events.START.replace(tzinfo=None)


def run(folder, *words, before=(), path='/usr/bin:/bin', **environ):
    """Run the README's command with more words, in a folder of its own; return the process."""
    (command,) = re.findall(r'(?m)^    (python -m examples\.pipeline)(?: +#.*)?$', README)
    python = [sys.executable, *before]
    return subprocess.run(
        [*python, *shlex.split(command)[1:], *words],
        cwd=str(folder),
        env={**environment(), 'PATH': path, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def expected(minutes, seed):
    """Return by (room, start of the window) the temperatures that count."""
    counted, found = set(), defaultdict(list)
    for event in events.make(minutes, seed):
        is_late = event.arrives - event.measured > PATIENCE_SECONDS
        if event.is_cut or is_late or event.number in counted:
            continue
        counted.add(event.number)
        window = int(event.measured // WINDOW_SECONDS * WINDOW_SECONDS)
        found[event.room, START + timedelta(seconds=window)].append(event.celsius)
    return found


def assert_right(means, minutes=MINUTES, seed=SEED):
    """Each window of each room is there once, with what its readings make."""
    wanted = expected(minutes, seed)
    assert sorted((each.room, each.start) for each in means) == sorted(wanted)
    for each in means:
        values = wanted[each.room, each.start]
        assert (each.readings, each.lowest, each.highest, each.limit) == (
            len(values), min(values), max(values), events.ROOMS[each.room]
        )  # fmt: skip
        mean = sum(values) / len(values)
        assert each.mean == pytest.approx(mean, abs=0.001)
        assert each.alarm == (each.mean > each.limit)


def as_means(minutes=MINUTES, seed=SEED):
    """Return what the events make, as results."""
    return sorted(
        report.Mean(
            room, start, len(values), sum(values) / len(values), min(values), max(values),
            events.ROOMS[room], sum(values) / len(values) > events.ROOMS[room],
        )
        for (room, start), values in expected(minutes, seed).items()
    )  # fmt: skip


def size_of(png):
    """Return width and height of a PNG."""
    assert png[:8] == b'\x89PNG\r\n\x1a\n'
    return int.from_bytes(png[16:20], 'big'), int.from_bytes(png[20:24], 'big')


def test_events_have_what_the_pipeline_is_for():
    found = events.make(MINUTES, SEED)
    assert found == events.make(MINUTES, SEED) != events.make(MINUTES, SEED + 1)
    late = [each.arrives - each.measured for each in found]
    assert any(later.measured < former.measured for former, later in zip(found, found[1:]))
    assert len({each.number for each in found}) < len(found)
    assert any(each.is_cut for each in found)
    # Nothing is late by nearly as much as is waited for: what counts does not depend on batches.
    assert any(each > PATIENCE_SECONDS for each in late)
    assert not any(events.DISORDER_SECONDS < each < 2 * PATIENCE_SECONDS for each in late)


def test_the_command_of_the_readme_shows_a_table_and_a_plot(tmp_path):
    words = ('--minutes', str(MINUTES), '--seed', str(SEED))
    done = run(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    arrived = [line for line in lines if ' events arrived; Spark: batch ' in line]
    assert len(arrived) == 5
    number = len(events.make(MINUTES, SEED))
    assert '%d of %d events' % (number, number) in arrived[-1]
    assert report.table(as_means()).splitlines() == lines[-1 - len(events.ROOMS) - 1 : -1]
    assert lines[-1].endswith('plot: %s' % (tmp_path / 'rooms.png'))
    width, height = size_of((tmp_path / 'rooms.png').read_bytes())
    assert width >= 600
    assert height >= 300


def test_results_on_a_real_broker_are_there_once(real_broker, tmp_path, new_name):
    prefix = new_name()
    words = ('--minutes', str(MINUTES), '--seed', str(SEED), '--prefix', prefix, '--no-plot')
    done = run(tmp_path, '--bootstrap-servers', real_broker.bootstrap, *words)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    found, offsets = committed(real_broker.bootstrap, prefix + '-means')
    assert_right(found)
    assert offsets > len(found), 'no markers of transactions: they were not written exactly once'


def committed(servers, topic):
    """Return what another client reads under read_committed, and how many offsets there are."""
    from confluent_kafka import Consumer, TopicPartition  # late: only jobs need it

    config = {
        'bootstrap.servers': servers,
        'group.id': topic,
        'isolation.level': 'read_committed',
        'auto.offset.reset': 'earliest',
    }
    consumer = Consumer(config)
    found = []
    try:
        consumer.subscribe([topic])
        wanted = len(expected(MINUTES, SEED))
        # One more poll behind the last that is wanted: nothing may be there.
        while len(found) <= wanted:
            message = consumer.poll(20 if len(found) < wanted else 3)
            if message is None:
                break
            assert message.error() is None
            fields = json.loads(message.value())
            assert message.key().decode() == fields['room']
            fields['start'] = datetime.strptime(fields['start'], '%Y-%m-%dT%H:%M:%SZ')
            found.append(report.Mean(**fields))
        partitions = consumer.list_topics(topic, 20).topics[topic].partitions
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, each), 20)[1]
            for each in partitions
        ]
    finally:
        consumer.close()
    return found, sum(ends)


def test_the_table_tells_what_went_wrong_in_the_rooms():
    head, *lines = (re.split('  +', line) for line in report.table(as_means(120, 1)).splitlines())
    assert head == report.COLUMNS
    shown = {line[0]: line[1:] for line in lines}
    assert set(shown) == set(events.ROOMS)
    assert shown['ice cream'][-2:] == ['06:30-06:40', '-']
    assert shown['fish'][-2:] == ['-', '06:40-07:00']
    assert shown['meat'][-2:] == ['07:15-07:45', '-']
    assert shown['dairy'] == ['1433', '24', '2.4', '3.5', '4.8', '6.0', '-', '-']


def test_spans_join_windows_that_follow_each_other():
    at = [START + report.WINDOW * number for number in range(6)]
    assert report.spans([at[0], at[1], at[3]]) == [(at[0], at[2]), (at[3], at[4])]
    assert report.spans([]) == []


@pytest.mark.parametrize('kind', ['png', 'svg', 'pdf'])
def test_the_plot_is_drawn_as_the_file_is_named(tmp_path, kind):
    path = tmp_path / ('plot.%s' % kind)
    report.plot(as_means(), str(path))
    start = {'png': b'\x89PNG', 'svg': b'<?xml', 'pdf': b'%PDF'}[kind]
    assert path.read_bytes().startswith(start)


def test_the_picture_of_the_readme_is_there_and_small():
    (path,) = re.findall(r'\.\. image:: (docs/\S+\.png)', README)
    png = (ROOT / path).read_bytes()
    assert len(png) < 60000
    assert size_of(png)[0] >= 600


def test_the_requirements_that_the_readme_names_are_there():
    (path,) = re.findall(r"pip install '\.\[spark\]' -r (\S+)", README)
    assert (ROOT / path).read_text().split() == ['matplotlib']


# --- what it says where it cannot run ------------------------------------------------------------


@pytest.mark.parametrize(
    'words, told',
    [
        (['--minutes', '5'], '--minutes: at least %d' % MINUTES),
        (['--port', '70000'], '--port: 0 to 65535'),
        (['--plot', 'plot.gif'], '--plot: a name that ends in .png, .svg or .pdf'),
        (['--port', '1', '--bootstrap-servers', 'x:1'], 'not allowed with argument'),
    ],
)
def test_wrong_options_are_refused(tmp_path, words, told):
    done = run(tmp_path, *words)
    assert done.returncode == 2
    assert told in done.stderr


def refusal(done):
    """Return what a run said that could not begin: one line, and nothing else."""
    assert (done.returncode, done.stdout) == (1, '')
    (line,) = done.stderr.splitlines()
    return line


def test_a_folder_that_is_not_there_is_told_first(tmp_path):
    told = refusal(run(tmp_path, '--plot', 'missing/plot.png'))
    assert told == '--plot: no file can be made in %s' % (tmp_path / 'missing')


@pytest.mark.parametrize(
    'package, told',
    [
        ('pyspark', "PySpark is missing: pip install '.[spark]'"),
        ('matplotlib', 'matplotlib is missing: pip install -r examples/requirements.txt, or'),
    ],
)
def test_a_package_that_is_missing_is_named_with_what_brings_it(tmp_path, package, told):
    program = 'import runpy, sys; sys.modules[%r] = None; sys.argv = sys.argv[2:];' % package
    program += ' runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)'
    assert refusal(run(tmp_path, before=['-c', program])).startswith(told)


def test_no_java_is_told(tmp_path):
    told = refusal(run(tmp_path, path=str(tmp_path)))
    assert told.startswith(
        'Spark needs Java 17 or later, on the PATH or at JAVA_HOME, and finds none'
    )


def test_an_old_java_is_told_with_its_place(tmp_path):
    java = tmp_path / 'java'
    java.write_text('#!/bin/sh\necho \'openjdk version "11.0.2" 2019-01-15\' >&2\n')
    java.chmod(0o755)
    assert 'and finds %s' % java in refusal(run(tmp_path, path=str(tmp_path)))


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen(1)
        port = str(taken.getsockname()[1])
        told = refusal(run(tmp_path, '--port', port))
    assert told.startswith('--port %s: the broker could not listen there' % port)


def test_brokers_that_do_not_answer_are_told(tmp_path):
    with socket.socket() as silent:  # bound, so that nobody else listens there
        silent.bind(('127.0.0.1', 0))
        servers = '127.0.0.1:%d' % silent.getsockname()[1]
        told = refusal(run(tmp_path, '--bootstrap-servers', servers))
    assert told.startswith('The brokers at %s: ' % servers)


def test_topics_that_have_records_are_left_alone(broker, tmp_path, new_name):
    prefix = new_name()
    broker.create_topic(prefix + '-readings', 1)
    fill(broker, prefix + '-readings', 0, [b'mine'])
    told = refusal(run(tmp_path, '--bootstrap-servers', broker.bootstrap, '--prefix', prefix))
    assert told.startswith('%s-readings: there are records already' % prefix)
