"""The loop of kafka.net, with its threads, on the clock and the connections of a cluster in memory.

What stands for the machine: a poller that lets virtual time pass in place of a sleep, and the lock
that the background thread sleeps on. Which thread runs the loop, and how the others wait, is what
kafka/net/loop/loop.py decides. The threads are real, so a seed decides what is done and where
something is raised, but not always which thread is first.
"""

from __future__ import annotations

import contextlib
import sys
import threading

from kafka.net.loop.loop import Loop
from test.simulation.loop import InMemory, SimTransport

#: For so many seconds of the machine the background sleeps before virtual time passes.
MOMENT = 0.0005
#: The same where nobody waits for it.
PAUSE = 0.05


@contextlib.contextmanager
def untraced():
    """Raise nothing in a block: it stands for a call of the system, and the broker runs in it."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)


class DrivenTransport(SimTransport):
    """A connection that counts itself while it expects something, as in earnest."""

    _expecting = False

    @property
    def expecting(self):
        return self._expecting

    @expecting.setter
    def expecting(self, expecting):
        if expecting != self._expecting:
            self._expecting = expecting
            self._loop.pending += 1 if expecting else -1

    def abandon(self):
        self.close()

    def write(self, buffers, noted=None):
        with untraced():
            super().write(buffers, noted)

    def receive_into(self, received):
        with untraced():
            super().receive_into(received)


class VirtualPoller:
    """What a loop sleeps in: time passes until something is ready in the loop.

    Used in the turn, but for wake().
    """

    is_open = True
    sockets = 0  # none has to be looked at every second

    def __init__(self, loop, timers):
        self._loop = loop
        self._timers = timers
        self._is_woken = False

    def open(self):
        """Do nothing: there is nothing to open."""

    def close(self):
        """Do nothing."""

    def wake(self):
        self._is_woken = True

    def poll(self, seconds):
        end = self._loop.time() + seconds
        with untraced():
            while not self._loop._ready and not self._is_woken:
                if not self._timers.step(end):
                    self._timers.advance(end - self._loop.time())
                    break
        self._is_woken = False
        return []

    def is_only(self, descriptor, seconds):
        self.poll(seconds)
        ready, transport = self._loop._ready, descriptor.on_ready.__self__
        if len(ready) != 1 or ready[0] != (transport._look, ()):
            return False
        ready.popleft()
        transport._is_told = False
        return True


class VirtualLock:
    """What the background thread sleeps on: time passes, if anybody waits for that."""

    def __init__(self, loop, timers):
        self._loop = loop
        self._timers = timers
        self._woken = threading.Semaphore(0)

    def release(self):
        self._woken.release()

    def acquire(self, timeout):
        waits = bool(self._loop._waiting)
        if self._woken.acquire(timeout=MOMENT if waits else PAUSE):
            while self._woken.acquire(False):  # woken several times
                pass
            return
        if waits and self._loop._driver_lock.acquire(False):
            try:
                if not self._timers.step(self._loop.time() + timeout):
                    self._timers.advance(timeout)
            finally:
                self._loop._driver_lock.release()
            self._loop._wake_all()


class DrivenLoop(InMemory, Loop):
    """The loop of kafka/net/loop/loop.py over a cluster in memory. Arguments: cluster."""

    transport_class = DrivenTransport

    def __init__(self, cluster):
        super().__init__('simulated-network-thread', clock=cluster.timers.clock.monotonic)
        self.transports = self._transports
        self._cluster = cluster
        self._poller = VirtualPoller(self, cluster.timers)
        self._background_wakeup = VirtualLock(self, cluster.timers)
