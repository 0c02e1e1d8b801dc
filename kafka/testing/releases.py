"""Which release of Apache Kafka an embedded broker is, and which versions of each API it serves.

Owns the table of versions and what follows from a release alone. The table holds the releases in
which a range begins to differ; those between are as the one before them. What a release does with
a request outside its ranges is :mod:`kafka.testing.connection`'s business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Dict, List, Mapping, NamedTuple, Tuple

#: One for each minor release (for each release of 0.8), oldest first.
RELEASES = (
    '0.8.0 0.8.1 0.8.2 0.9 0.10.0 0.10.1 0.10.2 0.11 1.0 1.1 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8'
    ' 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 4.0 4.1 4.2 4.3 4.4'
).split()
NEWEST = RELEASES[-1]

# A line is an API key and, for each release that changed it, the versions from there on; a single
# number is the highest, and 0 the lowest; "none" means that it is gone. Up to 3.2 these are brokers
# with ZooKeeper, from 3.3 on with KRaft, which lacked tokens until 3.6 and SCRAM until 3.5. As real
# brokers list them: servers/api_ranges.py (the last patch release of each: 4.0.0 refused JoinGroup
# v0 and v1, 4.0.2 takes them).
_TABLE = """
0 0.8.0:0 0.9:1 0.10.0:2 0.11:3 1.0:5 2.0:6 2.1:7 2.4:8 2.8:9 3.7:10 3.8:11 4.0:12 4.1:13
1 0.8.0:0 0.9:1 0.10.0:2 0.10.1:3 0.11:5 1.0:6 1.1:7 2.0:8 2.1:10 2.3:11 2.7:12 3.1:13
    3.5:15 3.7:16 3.9:17 4.0:4-17 4.1:4-18
2 0.8.0:0 0.10.1:1 0.11:2 2.0:3 2.1:4 2.2:5 2.8:6 3.0:7 3.5:8 3.9:9 4.0:1-10 4.2:1-11
3 0.8.0:0 0.10.0:1 0.10.1:2 0.11:4 1.0:5 2.0:6 2.1:7 2.3:8 2.4:9 2.8:11 3.1:12 4.0:13
8 0.8.1:0 0.8.2:1 0.9:2 0.11:3 2.0:4 2.1:6 2.3:7 2.4:8 3.7:9 4.0:2-9 4.2:2-10
9 0.8.1:0 0.8.2:1 0.10.2:2 0.11:3 2.0:4 2.1:5 2.4:6 2.5:7 3.0:8 3.7:9 4.0:1-9 4.2:1-10
10 0.8.2:0 0.11:1 2.0:2 2.4:3 3.0:4 3.8:5 3.9:6
11 0.9:0 0.10.1:1 0.11:2 2.0:3 2.2:4 2.3:5 2.4:6 2.5:7 3.2:9
12 0.9:0 0.11:1 2.0:2 2.3:3 2.4:4
13 0.9:0 0.11:1 2.0:2 2.4:4 3.2:5
14 0.9:0 0.11:1 2.0:2 2.3:3 2.4:4 2.5:5
15 0.9:0 0.11:1 2.0:2 2.3:3 2.4:5 4.0:6
16 0.9:0 0.11:1 2.0:2 2.4:3 2.6:4 3.8:5
17 0.10.0:0 1.0:1
18 0.10.0:0 0.11:1 2.0:2 2.4:3 3.9:4 4.4:5
19 0.10.1:0 0.10.2:1 0.11:2 2.0:3 2.4:5 2.7:6 2.8:7 4.0:2-7
20 0.10.1:0 0.11:1 2.0:2 2.1:3 2.4:4 2.7:5 2.8:6 4.0:1-6
21 0.11:0 2.0:1 2.6:2
22 0.11:0 2.0:1 2.4:2 2.5:3 2.7:4 3.8:5
23 0.11:0 2.0:1 2.1:2 2.3:3 2.8:4 4.0:2-4
24 0.11:0 2.0:1 2.7:2 2.8:3 3.6:4 3.8:5
25 0.11:0 2.0:1 2.7:2 2.8:3 3.8:4
26 0.11:0 2.0:1 2.7:2 2.8:3 3.8:4 4.0:5
27 0.11:0 2.8:1 4.0:1-1 4.2:1-2
28 0.11:0 2.0:1 2.1:2 2.5:3 3.8:4 4.0:5 4.4:6
29 0.11:0 2.0:1 2.5:2 3.3:3 4.0:1-3
30 0.11:0 2.0:1 2.5:2 3.3:3 4.0:1-3
31 0.11:0 2.0:1 2.5:2 3.3:3 4.0:1-3
32 0.11:0 1.1:1 2.0:2 2.6:3 2.8:4 4.0:1-4
33 0.11:0 2.0:1 2.8:2
34 1.0:0 2.0:1 2.8:2 4.0:1-2
35 1.0:0 2.0:1 2.6:2 3.2:3 3.3:4 4.0:1-4 4.3:1-5
36 1.0:0 2.2:1 2.5:2
37 1.0:0 2.0:1 2.5:2 2.7:3
38 1.1:0 2.0:1 2.4:2 3.3:none 3.6:3 4.0:1-3
39 1.1:0 2.0:1 2.5:2 3.3:none 3.6:2 4.0:1-2
40 1.1:0 2.0:1 2.5:2 3.3:none 3.6:2 4.0:1-2
41 1.1:0 2.0:1 2.5:2 3.3:none 3.6:3 4.0:1-3
42 1.1:0 2.0:1 2.4:2 4.4:3
43 2.2:0 2.4:2
44 2.3:0 2.4:1
45 2.4:0 4.1:1
46 2.4:0
47 2.4:0
48 2.6:0 2.8:1
49 2.6:0 2.8:1
50 2.7:0 3.3:none 3.5:0
51 2.7:0 3.3:none 3.5:0
55 3.3:1 3.9:2
57 2.7:0 3.3:1 4.0:2
60 2.8:0 3.7:1 4.0:2
61 2.8:0
64 3.3:0
65 3.0:0
66 3.0:0 3.8:1 4.1:2
68 3.7:0 4.0:1
69 3.8:0 4.0:1
74 3.7:0 4.1:1
75 3.8:0
76 4.1:1-1
77 4.1:1-1
78 4.1:1-1 4.2:1-2
79 4.1:1-1 4.2:1-2
80 3.9:0 4.2:1
81 3.9:0
88 4.2:0 4.4:1
89 4.2:0 4.4:1
90 4.1:0 4.2:1
91 4.1:0
92 4.1:0
93 4.4:0
94 4.4:0
"""

# The same of the calls between brokers, which a release lists too: clients tell by them whether
# there is a ZooKeeper. An embedded cluster lists them and has none.
_BETWEEN_BROKERS = """
4 0.10.0:0 1.0:1 2.2:2 2.4:4 2.8:5 3.2:6 3.3:none
5 0.10.0:0 2.2:1 2.4:2 2.6:3 3.3:none
6 0.10.0:2 0.10.2:3 1.0:4 2.2:5 2.4:6 2.8:7 3.3:none
7 0.10.0:1-1 1.0:1 2.2:2 2.4:3 3.3:none
56 2.7:0 3.2:1 3.3:none
67 3.0:0 3.3:none
83 4.1:0
84 4.1:0
85 4.1:0 4.2:1
86 4.1:0
87 4.1:0 4.2:1
"""

Ranges = Mapping[int, Tuple[int, int]]

PRODUCE = 0
#: GetTelemetrySubscriptions and PushTelemetry, where somebody receives the metrics of clients.
TELEMETRY: Ranges = {71: (0, 0), 72: (0, 0)}
HEARTBEAT = 12


class BrokerRelease(NamedTuple):
    """A release of Apache Kafka as a broker.

    ``name`` is one of :data:`RELEASES`. ``served`` is which versions it answers, by API key;
    ``listed`` is what ApiVersions says of them, and ``between_brokers`` of the calls that only
    brokers make.
    """

    name: str
    served: Ranges
    listed: Ranges
    between_brokers: Ranges

    @property
    def version(self) -> Tuple[int, ...]:
        """The number as integers, for comparisons: ``(0, 10, 2)``."""
        return _numbers(self.name)

    @property
    def has_zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper: up to 3.2, as brokers are usually run."""
        return self.version < (3, 3)

    @property
    def highest_magic(self) -> int:
        """The newest format of records that it stores."""
        return 0 if self.version < (0, 10) else 1 if self.version < (0, 11) else 2


@lru_cache(maxsize=None)
def _numbers(name: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in name.split('.'))


def broker_release(version: str) -> BrokerRelease:
    """Return a release by its number; more digits than the table has are fine (``2.8.2``).

    Raises ValueError, naming those there are, for any other; TypeError for what is no str.
    """
    if not isinstance(version, str):
        raise TypeError('version must be str, such as %r, not %r' % (NEWEST, version))
    for name in RELEASES:
        if version == name or version.startswith(name + '.'):
            return _made(name)
    raise ValueError(
        'version %r is no release that an embedded broker can be: there are %s'
        % (version, ', '.join(RELEASES))
    )


def _made(name: str) -> BrokerRelease:
    listed = _ranges(_TABLE, name)
    served = dict(listed)
    if name == '0.8.2':
        served[HEARTBEAT] = 0, 0  # it can read one, and answers with an error
    if listed[PRODUCE][1] >= 12:
        # 4.0 and later list 0, for old librdkafka, and answer 3 and later (KAFKA-18659).
        served[PRODUCE] = 3, listed[PRODUCE][1]
    return BrokerRelease(name, served, listed, _ranges(_BETWEEN_BROKERS, name))


def _ranges(table: str, name: str) -> Dict[int, Tuple[int, int]]:
    position = RELEASES.index(name)
    found: Dict[int, Tuple[int, int]] = {}
    for line in _lines(table):
        key, *changes = line.split()
        for change in changes:
            since, _, versions = change.partition(':')
            if RELEASES.index(since) <= position:
                if versions == 'none':
                    found.pop(int(key), None)
                    continue
                low, _, high = versions.rpartition('-')
                found[int(key)] = int(low or 0), int(high)
    return found


def _lines(table: str) -> List[str]:
    """Return the lines of a table; one that begins with blanks goes on."""
    return table.replace('\n    ', ' ').strip().splitlines()
