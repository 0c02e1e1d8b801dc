"""The API versions that releases of Apache Kafka support.

For clients with the option ``api_version``, and for the embedded brokers of kafka.testing. The
table contains the releases in which a range changed; those in between equal the one before. Pure.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

__all__ = ['NEWEST', 'RELEASES', 'TABLE', 'client_ranges', 'ranges_in']

#: One for each minor release (for each release of 0.8), oldest first.
RELEASES = (
    '0.8.0 0.8.1 0.8.2 0.9 0.10.0 0.10.1 0.10.2 0.11 1.0 1.1 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8'
    ' 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 4.0 4.1 4.2 4.3 4.4'
).split()
NEWEST = RELEASES[-1]

# A line has an API key and, for each release that changed it, the versions from there on; a single
# number is the highest, with 0 as the lowest; "none" means removed. Up to 3.2 these are brokers
# with ZooKeeper, from 3.3 on with KRaft, which lacked tokens until 3.6 and SCRAM until 3.5. As
# listed by real brokers: servers/api_ranges.py (the last patch release of each: 4.0.0 refused
# JoinGroup v0 and v1, 4.0.2 accepts them).
TABLE = """
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


def ranges_in(table: str, name: str) -> Dict[int, Tuple[int, int]]:
    """Return {API key: (lowest, highest version)} of a release, from a table such as TABLE."""
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
    """Return the lines of a table; indented ones continue the line before."""
    return table.replace('\n    ', ' ').strip().splitlines()


def client_ranges(release: Tuple[int, ...]) -> Dict[int, Tuple[int, int]]:
    """Return the versions that a client may send to brokers of a release.

    A release that is not in the table counts as the last one before it.
    """
    names = [name for name in RELEASES if tuple(map(int, name.split('.'))) <= release]
    return ranges_in(TABLE, names[-1] if names else RELEASES[0])
