"""A complete program of 2015, examples/simple_0_9_5.py, run as it is on every release."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [b'message 0', b'message 1', b'message 2']


def run(*arguments):
    """Run the program to its end and return (what it wrote, what it read) by partition, offset."""
    done = subprocess.run(
        [sys.executable, '-W', 'error', str(ROOT / 'examples' / 'simple_0_9_5.py'), *arguments],
        cwd=str(ROOT),
        env={'PYTHONPATH': str(ROOT)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')
    line = re.compile(rb'(wrote|read) (message \d): partition (\d+), offset (\d+)\n')
    assert line.sub(b'', done.stdout) == b''
    found = {b'wrote': {}, b'read': {}}
    for verb, message, partition, offset in line.findall(done.stdout):
        found[verb][int(partition), int(offset)] = message
    return found[b'wrote'], found[b'read']


def test_the_program_reads_what_it_wrote(cluster, new_name):
    name = new_name()
    wrote, read = run(cluster.bootstrap, name)
    assert sorted(wrote.values()) == WRITTEN
    assert read == wrote


def test_a_second_run_reads_all_again(cluster, topic):
    first, _ = run(cluster.bootstrap, topic)
    second, read = run(cluster.bootstrap, topic)
    assert read == {**first, **second}
    assert len(read) == 6


@pytest.mark.releases(since='0.8.1')
def test_a_group_goes_on_where_the_run_before_it_ended(cluster, topic, new_name):
    group = new_name()
    wrote, read = run(cluster.bootstrap, topic, group)
    assert read == wrote
    wrote, read = run(cluster.bootstrap, topic, group)
    assert read == wrote
