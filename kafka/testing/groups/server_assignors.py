"""The assignors of brokers: ``uniform`` and ``range`` (KIP-848), ``simple`` for share groups.

Each computes a target from the subscriptions and the previous target. Sticky as in Kafka; ties are
broken by member id, so that results can be repeated. Pure.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Set, Tuple

#: A topic id and a partition number.
TopicPartition = Tuple[bytes, int]

#: The partitions of each member, by member id.
Assignments = Dict[str, Set[TopicPartition]]


def uniform(
    wanted: Mapping[str, Set[bytes]], counts: Mapping[bytes, int], owned: Assignments
) -> Assignments:
    """Assign about the same number of partitions to each member, and move as few as possible.

    Arguments: wanted: topic ids of each member; counts: the number of partitions of each topic;
        owned: the previous assignment.
    """
    result: Assignments = {name: set() for name in sorted(wanted)}
    owners = {partition: name for name, had in sorted(owned.items()) for partition in had}
    able: Dict[TopicPartition, List[str]] = {}
    for topic, count in sorted(counts.items()):
        names = [name for name in result if topic in wanted[name]]
        for index in range(count if names else 0):
            able[topic, index] = names
    free = []
    for partition, names in able.items():
        if owners.get(partition) in names:
            result[owners[partition]].add(partition)
        else:
            free.append(partition)
    for partition in free:
        result[min(able[partition], key=lambda name: len(result[name]))].add(partition)
    while _level(result, able):
        pass
    return result


def _level(result: Assignments, able: Mapping[TopicPartition, List[str]]) -> bool:
    """Move partitions to members that have at least two fewer; return True if any moved.

    Each move reduces the sum of the squares, so this terminates.
    """
    holders = {partition: name for name, has in result.items() for partition in has}
    has_moved = False
    for partition, holder in sorted(holders.items(), reverse=True):
        least = min(able[partition], key=lambda name: len(result[name]))
        if len(result[holder]) - len(result[least]) >= 2:
            result[holder].remove(partition)
            result[least].add(partition)
            has_moved = True
    return has_moved


def ranges(
    wanted: Mapping[str, Set[bytes]], counts: Mapping[bytes, int], owned: Assignments
) -> Assignments:
    """Assign a range of partitions of each topic to each of its members; arguments as uniform()."""
    result: Assignments = {name: set() for name in sorted(wanted)}
    for topic, count in sorted(counts.items()):
        names = [name for name in result if topic in wanted[name]]
        if not names:
            continue
        each, more = divmod(count, len(names))
        start = 0
        for position, name in enumerate(names):
            end = start + each + (position < more)
            result[name].update((topic, index) for index in range(start, end))
            start = end
    return result


ASSIGNORS: Dict[
    str,
    Callable[[Mapping[str, Set[bytes]], Mapping[bytes, int], Assignments], Assignments],
] = {'uniform': uniform, 'range': ranges}

DEFAULT_ASSIGNOR = 'uniform'


def simple(
    wanted: Mapping[str, Set[bytes]], partitions: Set[TopicPartition], owned: Assignments
) -> Assignments:
    """Assign each partition to the same number of members, for share groups (KIP-932).

    Each topic separately; every member gets a partition even if members outnumber partitions.
    Arguments: wanted: topic ids of each member; partitions: the available ones; owned: as in
    uniform().
    """
    result: Assignments = {name: set() for name in sorted(wanted)}
    for topic in sorted({topic for topic, _ in partitions}):
        names = [name for name in result if topic in wanted[name]]
        if names:
            _share(sorted(each for each in partitions if each[0] == topic), names, owned, result)
    return result


def _share(
    partitions: List[TopicPartition], names: List[str], owned: Assignments, result: Assignments
) -> None:
    """Assign the partitions of one topic, each to the same number of members."""
    sharing = -(-len(names) // len(partitions))
    places = sharing * len(partitions)
    readers = dict.fromkeys(partitions, 0)
    quotas = {}
    for position, name in enumerate(names):
        given = -(-places * position // len(names))
        quotas[name] = min(len(partitions), -(-places * (position + 1) // len(names)) - given)
        for partition in sorted(owned.get(name, ())):
            if readers.get(partition, sharing) < sharing and quotas[name]:
                result[name].add(partition)
                readers[partition] += 1
                quotas[name] -= 1
    for name in names:
        for _ in range(quotas[name]):
            free = [each for each in partitions if each not in result[name]]
            partition = min(free, key=lambda each: readers[each])
            if readers[partition] == sharing:  # the rest are the member's own
                spare = min(partitions, key=lambda each: readers[each])
                has_one = [other for other in names if partition in result[other]]
                others = [other for other in has_one if spare not in result[other]]
                mover = min(others, key=lambda other: partition in owned.get(other, ()))
                result[mover] = result[mover] - {partition} | {spare}
                readers[spare] += 1  # and the count of the other is unchanged: one left, one came
            else:
                readers[partition] += 1
            result[name].add(partition)
