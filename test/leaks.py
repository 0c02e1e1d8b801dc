"""What a test may leave behind: nothing.

Owns the count of a process's threads, sockets and child processes. The fixture in ``conftest.py``
takes it before and after every test. Sockets and children are read from ``/proc``; where that is
missing, sockets are not counted, and of the children only those that ``multiprocessing`` started.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import warnings
from typing import NamedTuple, Set

FD_DIRECTORY = '/proc/self/fd'
TASK_DIRECTORY = '/proc/self/task'
HELPERS = (b'multiprocessing.resource_tracker', b'multiprocessing.forkserver')


class Belongings(NamedTuple):
    """Threads, sockets (by inode: file numbers are used again) and process ids at one moment."""

    threads: Set[threading.Thread]
    sockets: Set[str]
    children: Set[int]


def take_stock() -> Belongings:
    """Return what this process holds now."""
    return Belongings(set(threading.enumerate()), _sockets(), _children())


def leaked_since(before: Belongings, patience: float = 1.0) -> Belongings:
    """Return what came after `before` and is still there.

    A thread that is on its way out when its test ends gets `patience` seconds to end.
    """
    for thread in set(threading.enumerate()) - before.threads:
        thread.join(patience)
    return Belongings(*(now - then for now, then in zip(take_stock(), before)))


def _sockets() -> Set[str]:
    found = set()
    if os.path.isdir(FD_DIRECTORY):
        for fd in os.listdir(FD_DIRECTORY):
            try:
                target = os.readlink(os.path.join(FD_DIRECTORY, fd))
            except FileNotFoundError:  # the descriptor of the listing itself
                continue
            if target.startswith('socket:'):
                found.add(target)
    return found


def _children() -> Set[int]:
    if not os.path.isdir(TASK_DIRECTORY):
        return {child.pid for child in multiprocessing.active_children()}
    found = set()
    for task in os.listdir(TASK_DIRECTORY):
        try:
            with open(os.path.join(TASK_DIRECTORY, task, 'children'), encoding='ascii') as file:
                found.update(int(pid) for pid in file.read().split())
        except FileNotFoundError:  # a thread that ended meanwhile
            continue
    # multiprocessing keeps helpers of its own until the interpreter ends.
    return {pid for pid in found if not any(name in _command_line(pid) for name in HELPERS)}


def _command_line(pid: int) -> bytes:
    try:
        with open('/proc/%d/cmdline' % pid, 'rb') as file:
            return file.read()
    except FileNotFoundError:
        return b''


def collect_what_others_left() -> None:
    """Collect now what tests before this one have left, whatever it warns of.

    A coroutine that one of them interrupted before its first statement would else tell of itself
    in the middle of this one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        gc.collect()
