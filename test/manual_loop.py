"""The real scheduler of kafka.net without sockets, on a clock that is moved by hand."""

from __future__ import annotations

from kafka.net.loop.tasks import Scheduler


class ManualLoop(Scheduler):
    """Time passes when a test says so. Attributes: now: what the clock shows, in seconds."""

    def __init__(self):
        super().__init__(lambda: self.now)
        self.now = 1000.0

    def settle(self):
        """Run all that can run now."""
        for _ in range(1000):
            self.run_timers(self.now)
            if not self.ready:
                return
            self.run_ready()
        raise AssertionError('the loop does not come to rest')

    def advance(self, seconds):
        """Let time pass, timer by timer."""
        self.settle()
        end = self.now + seconds
        while True:
            due = self.next_time()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self.settle()
        self.now = end
        self.settle()
