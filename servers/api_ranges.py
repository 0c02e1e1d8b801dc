"""Ask real releases of Apache Kafka which versions of each API they serve; compare our table.

``python -m servers.api_ranges [RELEASE ...]`` starts one broker of each release from 0.10.0 on (of
all in releases.txt without an argument), asks for ApiVersions, and prints where
``kafka.testing.releases`` says something else. The exit status is 1 when there is a difference.

Owns: the question and the comparison. Does not own: the table, nor starting brokers.
"""

from __future__ import annotations

import sys
from typing import Dict, List, Optional, Sequence, Tuple

from kafka.protocol.api import ApiKey
from kafka.testing.releases import broker_release
from servers import probe
from servers.cluster import Cluster, stop_on_signals
from servers.releases import Release, releases

API_VERSIONS = 18
FIRST = (0, 10)  # the first release with ApiVersions

Ranges = Dict[int, Tuple[int, int]]


def ask(address: Tuple[str, int]) -> Ranges:
    """Return what a broker lists in ApiVersions v0, all keys. OSError when it does not answer."""
    answer = probe.call(address, API_VERSIONS, 0, b'', timeout=10)
    error = answer.take('h')
    if error:
        raise OSError('ApiVersions answers with error %d' % error)
    found = {}
    for _ in range(answer.take('i')):
        key = answer.take('h')
        found[key] = answer.take('h'), answer.take('h')
    return found


def differences(name: str, real: Ranges) -> List[str]:
    """Return a line for each API in which the table of a release differs from the real one."""
    release = broker_release(name)
    table = {**release.listed, **release.between_brokers}
    names = {int(key): key.name for key in ApiKey}
    return [
        '%s: %d %s: real %s, table %s'
        % (name, key, names.get(key, '(brokers)'), _text(real.get(key)), _text(table.get(key)))
        for key in sorted(set(real) | set(table))
        if real.get(key) != table.get(key)
    ]


def _text(versions: Optional[Tuple[int, int]]) -> str:
    return 'none' if versions is None else '%d-%d' % versions


def main(arguments: Sequence[str]) -> int:
    """Compare the releases that are named, or all; return the exit status."""
    stop_on_signals()
    every = releases()
    chosen: List[Release] = [every[name] for name in arguments] or list(every.values())
    is_equal = True
    for release in chosen:
        if release.version < FIRST:
            continue
        with Cluster(release) as cluster:
            real = ask(cluster.address(0))
        lines = differences(release.name, real)
        mode = 'ZooKeeper' if release.has_zookeeper else 'KRaft'
        print('%s (%s): %d keys, %d differences' % (release.name, mode, len(real), len(lines)))
        for line in lines:
            print('  ' + line)
        sys.stdout.flush()
        is_equal = is_equal and not lines
    return 0 if is_equal else 1


if __name__ == '__main__':
    raise SystemExit(main(sys.argv[1:]))
