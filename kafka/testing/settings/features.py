"""Features of a cluster and their levels, in releases with KRaft (KIP-584, KIP-778).

The supported levels of each release and those of a new cluster; the current ones are in
``state.features``.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

from kafka.testing.releases import RELEASES


class Levels(NamedTuple):
    """The lowest and highest supported level, and that of a new cluster."""

    lowest: int
    highest: int
    first: int


# A line has a feature and, from a release on, its levels.
_TABLE = """
metadata.version 3.3:1,7,7 3.4:1,8,8 3.5:1,11,11 3.6:1,14,14 3.7:1,19,19 3.8:1,20,20 3.9:1,21,21
    4.0:7,25,25 4.1:7,27,27 4.2:7,29,29 4.3:7,30,30 4.4:7,33,33
kraft.version 3.9:0,1,0
transaction.version 4.0:0,2,2
group.version 4.0:0,1,1
eligible.leader.replicas.version 4.0:0,1,0 4.1:0,1,1
share.version 4.1:0,1,0 4.2:0,1,1 4.4:0,2,2
streams.version 4.2:0,1,1
"""


def supported_features(release: str) -> Mapping[str, Levels]:
    """Return the supported levels of each feature of a release."""
    found: Dict[str, Levels] = {}
    for line in _TABLE.replace('\n    ', ' ').strip().splitlines():
        name, *levels = line.split()
        for each in levels:
            since, _, numbers = each.partition(':')
            if RELEASES.index(since) <= RELEASES.index(release):
                found[name] = Levels(*map(int, numbers.split(',')))
    return found


def first_features(release: str) -> Dict[str, int]:
    """Return the level of each feature in a new cluster; those at 0 are left out."""
    supported = supported_features(release)
    return {name: levels.first for name, levels in supported.items() if levels.first > 0}
