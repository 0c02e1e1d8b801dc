"""What must hold of what the members of a group were handed out, given the logs that they read.

Owns the judgement of chaos_groups.py and test_mixed_groups.py; pure. It knows the records of each
partition as another client read them, and what each member said, in the order of its doing and with
the time of the machine (group_member.py). A *stint* is the time for which a member had a partition,
from the call of its listener to the next, its death or its end.

* Every record was handed out, in each stint in the order of the log and without a gap.
* A stint begins where somebody has been already, and not before what was committed, and known to
  be, before it began: a record is handed out again only after a death or a rebalance that came
  before its commit.
* A commit is never ahead of what was handed out by then.
* Nobody is handed records of a partition that it has not; two have one at the same time only if the
  first was killed, or finds out afterwards that the group took it for dead.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

FOR_EVER = float('inf')
REVOKED, LOST, KILLED, CLOSED, OPEN = 'revoked', 'lost', 'killed', 'closed', 'open'


class Handed(NamedTuple):
    """Records that a program was handed at once, of one partition."""

    at: float
    offsets: List[int]
    numbers: List[int]


class Stint(NamedTuple):
    """A member has a partition; handed: what it was given meanwhile."""

    member: str
    partition: int
    begins: float
    ends: float
    how: str
    handed: List[Handed]


class Committed(NamedTuple):
    """A member knew by then that this was committed."""

    at: float
    partition: int
    offset: int


class Told(NamedTuple):
    """What members said, put in order. unowned: records that came to somebody without a stint."""

    stints: List[Stint]
    commits: List[Committed]
    unowned: int


class Verdict(NamedTuple):
    """Counts, all of which but the first four have to be 0.

    records: in the logs; handed: to anybody, with those that came again; again: for a reason;
    missed: never handed out; ahead: records that the beginning of a stint passed over, and commits
    of what nobody had been handed; unexplained: handed out again though that was committed before;
    disordered: behind a later one, or the same, of their partition in one stint, or not first of
    their key; unowned, shared: see above; wrong: other than the log has at that offset; behind:
    not committed at the end.
    """

    records: int
    handed: int
    again: int
    stints: int
    missed: int
    ahead: int
    unexplained: int
    disordered: int
    unowned: int
    shared: int
    wrong: int
    behind: int

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self[4:])

    def __str__(self) -> str:
        return ', '.join('%s %d' % pair for pair in zip(self._fields, self))


#: Of each partition, {offset: number} of its records.
Logs = Dict[int, Dict[int, int]]


def stints_of(lives: Iterable[Any]) -> Told:
    """Put together what members said; each has name, events and killed_at (group_processes.py)."""
    told = Told([], [], 0)
    for life in lives:
        told = _add(told, life)
    told.stints.sort(key=lambda each: each.begins)
    told.commits.sort()
    return told


def _add(told: Told, life: Any) -> Told:
    running: Dict[int, Tuple[float, List[Handed]]] = {}
    unowned = told.unowned

    def end(partitions: Iterable[int], at: float, how: str) -> None:
        for partition in list(partitions):
            if partition in running:
                begins, handed = running.pop(partition)
                told.stints.append(Stint(life.name, partition, begins, at, how, handed))

    for at, what, words in life.events:
        if what == 'assigned':
            for partition in words[0]:
                end([partition], at, REVOKED)  # told twice: a new one begins all the same
                running[partition] = (at, [])
        elif what in (REVOKED, LOST):
            end(words[0], at, what)
        elif what == 'records':
            partition, offsets, numbers = words
            if partition in running:
                running[partition][1].append(Handed(at, offsets, numbers))
            else:
                unowned += len(offsets)
        elif what == 'committed':
            for partition, offset in words[0].items():
                told.commits.append(Committed(at, int(partition), offset))
        elif what == CLOSED:
            end(running, at, CLOSED)
    if life.killed_at is not None:
        end(running, life.killed_at, KILLED)
    end(running, FOR_EVER, OPEN)
    return told._replace(unowned=unowned)


def judge(
    logs: Logs, told: Told, committed: Optional[Dict[int, int]] = None, keys: int = 0
) -> Verdict:
    """Compare.

    Arguments: committed: {partition: offset} at the end, None not to look; keys: how many there
    are, a record's key being its number modulo it; 0 not to look at their order.
    """
    sums = dict.fromkeys(Verdict._fields, 0)
    sums['records'] = sum(map(len, logs.values()))
    sums['stints'] = len(told.stints)
    sums['unowned'] = told.unowned
    for partition, log in logs.items():
        stints = [each for each in told.stints if each.partition == partition]
        commits = [each for each in told.commits if each.partition == partition]
        for name, count in _judge_partition(log, stints, commits, keys).items():
            sums[name] += count
        sums['shared'] += _shared(stints)
        if committed is not None:
            end = max(log) + 1 if log else 0
            sums['behind'] += sum(offset >= committed.get(partition, 0) for offset in log)
            sums['ahead'] += max(0, committed.get(partition, 0) - end)
    return Verdict(**sums)


def _judge_partition(
    log: Dict[int, int], stints: List[Stint], commits: List[Committed], keys: int
) -> Dict[str, int]:
    sums = dict.fromkeys(('handed', 'again', 'missed', 'ahead', 'unexplained', 'disordered'), 0)
    sums['wrong'] = 0
    places = {offset: at for at, offset in enumerate(sorted(log))}
    first_at: Dict[int, float] = {}  # by place in the log: when it was handed out first
    moments = sorted(
        ((handed.at, number, handed) for number, s in enumerate(stints) for handed in s.handed),
        key=lambda each: each[:2],
    )
    latest: Dict[int, int] = {}  # by key: the largest number
    next_place: Dict[int, int] = {}  # by stint
    front = 0  # all places below it were handed out
    for at, number, handed in moments:
        floor = _known(commits, stints[number].begins)
        for offset, value in zip(handed.offsets, handed.numbers):
            sums['handed'] += 1
            if log.get(offset) != value:
                sums['wrong'] += 1
                continue
            place = places[offset]
            wanted = next_place.get(number)
            if wanted is not None and place < wanted:
                sums['disordered'] += 1
            elif place > max(front, wanted or 0):
                sums['ahead'] += place - max(front, wanted or 0)
            next_place[number] = place + 1
            if place in first_at:
                sums['again'] += 1
                sums['unexplained'] += offset < floor
                continue
            first_at[place] = at
            while front in first_at:
                front += 1
            if keys:
                sums['disordered'] += latest.get(value % keys, -1) > value
                latest[value % keys] = max(latest.get(value % keys, -1), value)
    sums['missed'] = len(log) - len(first_at)
    sums['ahead'] += _early(commits, places, first_at)
    return sums


def _known(commits: List[Committed], before: float) -> int:
    return max((each.offset for each in commits if each.at < before), default=0)


def _early(commits: List[Committed], places: Dict[int, int], first_at: Dict[int, float]) -> int:
    """Count the commits of something that nobody had been handed by then."""
    offsets = sorted(places)
    latest = list(accumulate((first_at.get(place, FOR_EVER) for place in range(len(offsets))), max))
    below = ((bisect_left(offsets, each.offset), each.at) for each in commits)
    return sum(count > 0 and latest[count - 1] > at for count, at in below)


def _shared(stints: List[Stint]) -> int:
    """Count the stints that began while another member still had the partition, in order."""
    count = 0
    ordered = sorted(stints, key=lambda each: each.begins)
    for number, stint in enumerate(ordered):
        count += any(
            other.ends > stint.begins and other.how in (REVOKED, CLOSED, OPEN)
            for other in ordered[:number]
            if other.member != stint.member
        )
    return count
