"""Which files of tests a process of pytest gets, dealt out before anything is collected.

Used by run.py, which runs before anything is installed: standard library alone. Owns the dealing
and ``test/seconds.txt``: how long files of tests take, by kind of step and by cluster. Files of one
cluster share as few processes as can be, because each process starts it again. After a change of
what takes long, write the table again on a machine that does nothing else::

    python3 test/run.py --all --write-seconds
"""

from __future__ import annotations

import collections
import math
import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, 'test', 'seconds.txt')
PROPERTY = 'room'  # of a test, in the results: kind of step, file, cluster
WITHOUT, SPARK = 'without', 'spark'  # kinds of steps beside those of brokers
THOROUGH = '+'  # behind the kind of tests with this marker
OTHERS = 'others'
LONG = 2.0  # seconds
#: In a file of which all tests are on brokers.
_ON_BROKERS = re.compile(r'^pytestmark = \[?\s*pytest\.mark\.integration', re.MULTILINE)
HEAD = """\
# Seconds that files of tests take, by kind of step and cluster, where it is two or more; "others"
# is the mean of the rest. With a "+": of their tests with the marker thorough. test/dealing.py
# reads it. Written by test/run.py --all --write-seconds.
"""


class Times(NamedTuple):
    """Seconds of files, by kind, name and cluster; mean seconds of a file that is not named."""

    files: Dict[Tuple[str, str, str], float]
    others: Dict[str, float]

    def by_cluster(self, kinds: Sequence[str], file: str, release: str) -> Dict[str, float]:
        """Return the seconds of a file on each cluster, of a release where one is named."""
        found: Dict[str, float] = collections.Counter()
        for (kind, its_file, cluster), seconds in self.files.items():
            if its_file == file and kind in kinds and release in ('', cluster.split('-')[0]):
                found[cluster] += seconds
        return found

    def of(self, kinds: Sequence[str], file: str, release: str = '') -> float:
        """Return the seconds of a file: the mean of those that are not named if it is not."""
        found = self.by_cluster(kinds, file, release)
        return sum(found.values()) if found else self.others.get(kinds[0], 1.0)

    def cluster_of(self, kinds: Sequence[str], file: str, release: str) -> str:
        """Return the cluster of a release on which a file takes longest."""
        found = self.by_cluster(kinds, file, release)
        return max(found, key=lambda each: (found[each], each), default='')


def test_files(*folders: str, but: Sequence[str] = ()) -> List[str]:
    """Return the files of tests in some folders, as paths below the root, without some folders."""
    found = []
    for folder in folders:
        for path, _, names in os.walk(os.path.join(ROOT, *folder.split('/'))):
            inside = os.path.relpath(path, ROOT).replace(os.sep, '/')
            if not any((inside + '/').startswith(each + '/') for each in but):
                found += [
                    inside + '/' + name
                    for name in names
                    if name.startswith('test_') and name.endswith('.py')
                ]
    return sorted(found)


def with_units(files: Iterable[str]) -> List[str]:
    """Return those of some files that may have tests without brokers among those on brokers."""
    found = []
    for file in files:
        with open(os.path.join(ROOT, file), encoding='utf-8') as source:
            if not _ON_BROKERS.search(source.read()):
                found.append(file)
    return found


def marked(files: Iterable[str], marker: str) -> List[str]:
    """Return those of some files in which a marker is used at all."""
    word, found = 'mark.%s' % marker, []
    for file in files:
        with open(os.path.join(ROOT, file), encoding='utf-8') as source:
            if word in source.read():
                found.append(file)
    return found


def deal(
    files: Sequence[str],
    kinds: Sequence[str],
    most_seconds: float,
    times: Times,
    release: str = '',
) -> List[List[str]]:
    """Return the files as lists that take about as long as each other, the longest list first.

    Arguments: kinds: of tests that are selected; most_seconds: how long a list may take; a file
    that takes longer is alone; release: of the brokers.
    """
    seconds = {file: times.of(kinds, file, release) for file in files}
    homes = {file: times.cluster_of(kinds, file, release) for file in files}
    clusters: Dict[str, float] = collections.Counter()
    for file in files:
        clusters[homes[file]] += seconds[file]
    count = max(1, math.ceil(sum(seconds.values()) / most_seconds))
    share = sum(seconds.values()) / count
    loads = [0.0] * count
    lists: List[List[str]] = [[] for _ in loads]
    having: Dict[str, set] = collections.defaultdict(set)
    for file in sorted(
        files, key=lambda each: (-clusters[homes[each]], homes[each], -seconds[each], each)
    ):
        home = homes[file]
        fit = {at for at in having[home] if loads[at] + seconds[file] <= share}
        if not fit or not home:
            fit = set(range(count))
        at = min(fit, key=lambda at: (loads[at], at))
        lists[at].append(file)
        loads[at] += seconds[file]
        having[home].add(at)
    order = sorted(range(count), key=lambda at: -loads[at])
    return [sorted(lists[at]) for at in order if lists[at]]


# --- the table ----------------------------------------------------------------------------------


def read(path: Optional[str] = None) -> Times:
    """Return what the table says."""
    times = Times({}, {})
    with open(path or TABLE, encoding='utf-8') as file:
        for line in file:
            if not line.startswith('#'):
                kind, seconds, name, *cluster = line.split()
                if name == OTHERS:
                    times.others[kind] = float(seconds)
                else:
                    times.files[kind, name, ' '.join(cluster)] = float(seconds)
    return times


def write(measured: Iterable[Tuple[str, float]], path: Optional[str] = None) -> None:
    """Write what was measured, the seconds of tests by their rooms; other kinds of steps stay."""
    seconds: Dict[Tuple[str, str, str], float] = collections.Counter()
    for words, each in measured:
        kind, name, *cluster = words.split()
        seconds[kind, name, ' '.join(cluster)] += each
    files = {key: each for key, each in seconds.items() if each >= LONG}
    others: Dict[str, List[float]] = collections.defaultdict(list)
    for key, each in seconds.items():
        if key not in files:
            others[key[0]].append(each)
    times = read(path)
    measured_kinds = {key[0] for key in seconds}
    files.update({key: n for key, n in times.files.items() if key[0] not in measured_kinds})
    means = dict(times.others)  # also of a kind of which all that ran takes long
    means.update({kind: sum(each) / len(each) for kind, each in others.items()})
    lines = ['%-8s %6.2f %s\n' % (kind, mean, OTHERS) for kind, mean in sorted(means.items())]
    lines += [
        ('%-8s %6.0f %s %s' % (kind, files[kind, name, cluster], name, cluster)).rstrip() + '\n'
        for kind, name, cluster in sorted(files)
    ]
    with open(path or TABLE, 'w', encoding='utf-8') as file:
        file.writelines([HEAD, *lines])


def measured_in(suite: Any) -> List[Tuple[str, float]]:
    """Return the rooms that the results of a run name, with the seconds of each test."""
    return [
        (str(found.get('value')), float(case.get('time')))
        for case in suite.iter('testcase')
        for found in case.iterfind("properties/property[@name='%s']" % PROPERTY)
    ]


def name_room(item: Any, kind: str, cluster: str = '') -> None:
    """Have the results say of a test which kind of step, file and cluster it belongs to."""
    if item.get_closest_marker('thorough') is not None:
        kind += THOROUGH
    words = ' '.join([kind, item.nodeid.split('::')[0], cluster])
    item.user_properties.append((PROPERTY, words.rstrip()))
