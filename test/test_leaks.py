"""The leak check sees each of the three things that it is there for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

from test.leaks import Belongings, leaked_since, take_stock

NOTHING = Belongings(set(), set(), set())
needs_proc = pytest.mark.skipif(not os.path.isdir('/proc/self/fd'), reason='needs /proc')


def test_nothing_is_reported_when_nothing_stays():
    before = take_stock()
    with socket.socket():
        pass
    assert leaked_since(before) == NOTHING


def test_running_thread_is_reported():
    before, stop = take_stock(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert leaked_since(before, patience=0.01).threads == {thread}
    finally:
        stop.set()
        thread.join()
    assert leaked_since(before) == NOTHING


def test_ending_thread_is_waited_for():
    before, stop = take_stock(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    stop.set()
    assert leaked_since(before) == NOTHING


@needs_proc
def test_open_socket_is_reported():
    before = take_stock()
    with socket.socket():
        assert len(leaked_since(before).sockets) == 1
    assert leaked_since(before) == NOTHING


@needs_proc
def test_reused_file_number_is_still_another_socket():
    with socket.socket() as first:
        before, number = take_stock(), first.fileno()
    with socket.socket() as second:
        assert second.fileno() == number
        assert len(leaked_since(before).sockets) == 1


@needs_proc
def test_child_process_is_reported_until_it_is_waited_for():
    before = take_stock()
    with subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE) as child:
        assert leaked_since(before).children == {child.pid}
    assert leaked_since(before) == NOTHING
