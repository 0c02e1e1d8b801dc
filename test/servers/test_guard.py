"""The guard kills what a program left running and removes its folder, however the program ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from servers.releases import SERVERS

GUARD = [sys.executable, '-S', '-E', str(SERVERS / 'guard.py')]

# The guard as it is, but it opens a pipe once it has set the last of its signal handlers.
TELLING_GUARD = """
import signal, sys
sys.path.insert(0, sys.argv[1])
import guard
real = signal.signal
def told(number, handler):
    real(number, handler)
    if number == signal.SIGHUP:
        open(ready, 'w').close()
ready = sys.argv.pop()
sys.argv.pop()
signal.signal = told
guard.main()
"""


@pytest.fixture
def sleeper():
    """A process that ends only when it is killed."""
    process = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])
    yield process
    process.kill()
    process.wait()


def test_what_was_told_and_not_taken_back_is_killed_at_the_end_of_input(sleeper, tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    guard = subprocess.Popen([*GUARD, str(folder)], stdin=subprocess.PIPE)
    guard.communicate(b'+%d\n' % sleeper.pid, timeout=30)
    assert guard.returncode == 0
    assert sleeper.wait(30) == -signal.SIGKILL
    assert not folder.exists()


def test_what_was_taken_back_is_left_alone(sleeper):
    guard = subprocess.Popen(GUARD, stdin=subprocess.PIPE)
    guard.communicate(b'+%d\n-%d\n' % (sleeper.pid, sleeper.pid), timeout=30)
    assert guard.returncode == 0
    assert sleeper.poll() is None


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_do_not_end_the_guard_before_its_work_is_done(sleeper, number, tmp_path):
    ready = tmp_path / 'ready'
    os.mkfifo(str(ready))
    guard = subprocess.Popen(
        [sys.executable, '-c', TELLING_GUARD, str(SERVERS), str(ready)], stdin=subprocess.PIPE
    )
    ready.open().close()  # waits until the guard has come so far
    guard.send_signal(number)
    guard.communicate(b'+%d\n' % sleeper.pid, timeout=30)
    assert guard.returncode == 0
    assert sleeper.wait(30) == -signal.SIGKILL
