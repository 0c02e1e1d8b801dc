"""Run a cluster of real brokers in the foreground until Ctrl-C or SIGTERM.

``python3 servers/start.py RELEASE [BROKERS]`` prints ``READY host:port,...`` when it can be used.
The jars come from build_integration.sh.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # run as a script: find the package

from servers.cluster import Cluster, stop_on_signals  # noqa: E402  (after the line above)
from servers.releases import chosen, problem  # noqa: E402


def main() -> None:
    """Start what the arguments name and wait."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    (release,) = chosen(sys.argv[1])
    reason = problem(release)
    if reason:
        raise SystemExit(reason)
    stop_on_signals()
    try:
        with Cluster(release, int(sys.argv[2]) if len(sys.argv) == 3 else 1) as cluster:
            print('READY', cluster.bootstrap, flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        pass


if __name__ == '__main__':
    main()
