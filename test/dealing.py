"""Which part of a step has which tests (``KAFKA_TEST_PART=1/3``), so that all take about as long.

Owns the dealing and ``test/seconds.txt``: how long the long files of tests take, by the kind of
step and by cluster. The tests of a file on one cluster stay together, unless they are marked
``apart``; those of one cluster share as few parts as can be, because each starts it anew. After a
change of what takes long, write the table anew on a machine that does nothing else::

    python3 test/run.py --write-seconds

Which test is in which room is the business of the two conftest.py. Uses the standard library alone,
as run.py does.
"""

from __future__ import annotations

import collections
import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'seconds.txt')
PROPERTY = 'room'  # of a test, in the results
WITHOUT, SPARK = 'without', 'spark'  # kinds of steps beside those of brokers
OTHERS = 'others'
LONG = 10.0  # seconds
HEAD = """\
# How long the files of tests take that take long, by kind of step and cluster, and each test of the
# others: what test/dealing.py goes by. Written by test/run.py --write-seconds.
"""


class Room(NamedTuple):
    """What stays together: tests of one file, on one cluster or on none, and one that is apart."""

    kind: str
    file: str
    cluster: str = ''
    test: str = ''


class Times(NamedTuple):
    """How long something takes: files by kind, name and cluster, and a test of the others."""

    files: Dict[Tuple[str, str, str], float]
    others: Dict[str, float]


def part() -> Tuple[int, int]:
    """Return which part this run is, and of how many."""
    number, parts = map(int, os.environ.get('KAFKA_TEST_PART', '1/1').split('/'))
    return number, parts


def left_to_others(items: Iterable[Any], rooms: List[Room]) -> List[Any]:
    """Return those of the tests, given with the room of each, that other parts have."""
    number, parts = part()
    place = deal(collections.Counter(rooms), parts, read())
    return [item for item, room in zip(items, rooms) if place[room] != number - 1]


def deal(rooms: Mapping[Room, int], parts: int, times: Times) -> Dict[Room, int]:
    """Return the part, from 0, of each room, given how many tests it has: longest first.

    A room goes where its cluster is already, as long as that part has no more than its share.
    """
    lengths = lengths_of(rooms, times)
    clusters: Dict[str, float] = collections.Counter()
    for room, seconds in lengths.items():
        clusters[room.cluster] += seconds
    share = sum(lengths.values()) / parts
    loads, place = [0.0] * parts, {}
    homes: Dict[str, set] = collections.defaultdict(set)
    for room in sorted(
        rooms, key=lambda each: (-clusters[each.cluster], each.cluster, -lengths[each], each)
    ):
        fit = {at for at in homes[room.cluster] if loads[at] + lengths[room] <= share}
        if not fit or not room.cluster:
            fit = set(range(parts))
        place[room] = min(fit, key=lambda at: (loads[at], at))
        loads[place[room]] += lengths[room]
        homes[room.cluster].add(place[room])
    return place


def lengths_of(rooms: Mapping[Room, int], times: Times) -> Dict[Room, float]:
    """Return the seconds of each room: its share of its file's, or so many tests of the others."""
    tests: Dict[Tuple[str, str, str], int] = collections.Counter()
    for room, count in rooms.items():
        tests[room[:3]] += count
    return {
        room: count * (times.files[room[:3]] / tests[room[:3]])
        if room[:3] in times.files
        else count * times.others.get(room.kind, 1.0)
        for room, count in rooms.items()
    }


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
    seconds: Dict[Tuple[str, str, str], List[float]] = collections.defaultdict(list)
    for words, each in measured:
        kind, name, *cluster = words.split()
        seconds[kind, name, ' '.join(cluster)].append(each)
    files = {key: sum(each) for key, each in seconds.items() if sum(each) >= LONG}
    others: Dict[str, List[float]] = collections.defaultdict(list)
    for key, each in seconds.items():
        if key not in files:
            others[key[0]] += each
    times = read(path)
    anew = {key[0] for key in seconds}
    files.update({key: each for key, each in times.files.items() if key[0] not in anew})
    means = dict(times.others)  # also of a kind of which all that ran takes long
    means.update({kind: sum(each) / len(each) for kind, each in others.items()})
    lines = ['%-8s %6.3f %s\n' % (kind, mean, OTHERS) for kind, mean in sorted(means.items())]
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


def name_rooms(items: Iterable[Any], rooms: Iterable[Room]) -> None:
    """Have the results say of each test which room it is in."""
    for item, room in zip(items, rooms):
        item.user_properties.append((PROPERTY, ' '.join(room[:3]).rstrip()))
