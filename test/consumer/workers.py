"""What child processes run in the tests of the processes: functions that any start method finds."""

from __future__ import annotations

import os
import signal
import sys
import time
import types


def count_up(link, first, until):
    """Send the numbers of a range, then stay."""
    link.say_ready()
    link.send(list(range(first, until)))
    link.rest(60)


def send_facts(link):
    """Send what a child finds: its parent, its main module's file, how it takes signals."""
    main = sys.modules['__main__']
    link.send(
        [
            (
                os.getpid(),
                getattr(main, '__file__', None),
                signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
                signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
                signal.getsignal(signal.SIGHUP) == signal.SIG_IGN,
            )
        ]
    )
    link.rest(60)


def die_after(link, first, until):
    """Send the numbers of a range and end without being told."""
    link.send(list(range(first, until)))
    os._exit(7)


def be_deaf(link):
    """Heed neither the flag nor SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    link._leave = types.SimpleNamespace(is_set=lambda: False)
    link.say_ready()
    link.send(['deaf'])
    while True:
        time.sleep(60)
