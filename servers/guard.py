"""Kill the processes of a cluster when the program that started them is gone.

Owns: the last line of defence against leaked brokers. :mod:`servers.cluster` starts this file as a
process of its own and tells it, one line each on its standard input, ``+pid`` for a process that it
started and ``-pid`` for one that has ended. However the program ends (a failed test run, Ctrl-C,
SIGTERM, SIGKILL), its end of the pipe closes; the guard then kills what is left and removes the
folder named by its argument. Does not own: the orderly stop, which leaves the guard nothing to do.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys


def main() -> None:
    """Follow the lines of standard input to its end, then kill and remove what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it is to outlive the program, whatever ends that
    alive = set()
    for line in sys.stdin:
        if line.startswith('+'):
            alive.add(int(line[1:]))
        elif line.startswith('-'):
            alive.discard(int(line[1:]))
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if len(sys.argv) > 1:
        shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == '__main__':
    main()
